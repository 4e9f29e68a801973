package task

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/test/testenv"
)

// What an import has written of a task is how it was: an order that stands there was carried out long ago, and members who are
// not there yet have not left.
func TestTheTasksOfARoomThatIsRestoredAreLeftAlone(t *testing.T) {
	s := newStage(t)
	mark := func(change func(*v1alpha1.Room)) {
		t.Helper()
		room := &v1alpha1.Room{}
		s.must(s.env.Client.Get(s.Context(), s.key("lab"), room))
		change(room)
		s.must(s.client.Update(s.Context(), room))
	}
	var members []v1alpha1.RoomMember
	mark(func(r *v1alpha1.Room) {
		members, r.Spec.Members = r.Spec.Members, nil
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, v1alpha1.RestoringAnnotation, "digest")
	})
	task := testenv.Task(s.ns, "lab", "old", "said")
	task.Spec.Assignee = "cc"
	task.Spec.Intervention = &v1alpha1.TaskIntervention{ID: "i1", Action: v1alpha1.InterventionCancel, Reason: "no need", By: "said"}
	s.create(task)
	before := s.task("old")
	if _, err := s.once("old"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, s.task("old")); diff != "" || s.lease("old") != nil {
		t.Errorf("the task was written (-before +after):\n%s", diff)
	}
	ended := testenv.Task(s.ns, "lab", "ended", "said")
	s.create(ended)
	ended.Status = v1alpha1.TaskStatus{State: v1alpha1.TaskCancelled, Reason: "no need"}
	s.must(s.client.Status().Update(s.Context(), ended))
	mark(func(r *v1alpha1.Room) {
		r.Spec.Members = members
		delete(r.Annotations, v1alpha1.RestoringAnnotation)
	})
	if after := s.settle("old"); after.Status.State != v1alpha1.TaskCancelled {
		t.Errorf("in the restored room it is %s, want Cancelled", after.Status.State)
	}
	// The room's last change brings those that have ended here as well: nobody has dealt with them.
	room := &v1alpha1.Room{}
	s.must(s.env.Client.Get(s.Context(), s.key("lab"), room))
	var again []string
	for _, request := range s.r.tasksOfRoom(s.Context(), room) {
		again = append(again, request.Name)
	}
	if !slices.Contains(again, "ended") {
		t.Errorf("the change of the room is a reason to look at %v, want the task that has ended among them", again)
	}
}
