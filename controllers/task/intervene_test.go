package task

import (
	"testing"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

func TestAnOrderIsCarriedOutOnce(t *testing.T) {
	s := newStage(t)
	s.held("stuck", "cc")
	s.update("stuck", func(t *v1alpha1.Task) {
		t.Spec.Intervention = &v1alpha1.TaskIntervention{ID: "i1", Action: v1alpha1.InterventionRelease, By: "said"}
	})
	task := s.settle("stuck")
	if task.Status.State != v1alpha1.TaskTodo || task.Status.LastClaim.Ended != v1alpha1.ClaimRevoked {
		t.Fatalf("it is %s, last claim %+v", task.Status.State, task.Status.LastClaim)
	}
	if s.lease("stuck") != nil {
		t.Error("the lease stays")
	}
	s.restart()
	s.claim("stuck", "dd", "s2")
	if task = s.settle("stuck"); task.Status.State != v1alpha1.TaskDoing {
		t.Errorf("after a restart the order was carried out again: %s", task.Status.State)
	}
	s.update("stuck", func(t *v1alpha1.Task) {
		t.Spec.Intervention = &v1alpha1.TaskIntervention{ID: "i2", Action: v1alpha1.InterventionReopen, By: "said"}
	})
	task = s.settle("stuck")
	if i := task.Status.Intervention; i.ID != "i2" || i.Refused == "" || task.Status.State != v1alpha1.TaskDoing {
		t.Errorf("an order that does not fit: %+v, the task is %s", i, task.Status.State)
	}
	s.update("stuck", func(t *v1alpha1.Task) {
		t.Spec.Intervention = &v1alpha1.TaskIntervention{ID: "i3", Action: v1alpha1.InterventionCancel, Reason: "no need", By: "said"}
	})
	task = s.settle("stuck")
	if r := task.Status.Record; task.Status.State != v1alpha1.TaskCancelled || r == nil || r.Plate != "said" || r.Reason != "no need" {
		t.Errorf("cancelled, it is %s with the record %+v", task.Status.State, task.Status.Record)
	}
}
