package tasks_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

func TestIntervene(t *testing.T) {
	const held, before = 3, 2
	for _, tc := range []struct {
		name  string
		from  v1alpha1.TaskState
		order v1alpha1.TaskIntervention
		to    v1alpha1.TaskState
		words string
	}{
		{"release a held task", v1alpha1.TaskDoing, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionRelease}, v1alpha1.TaskTodo, ""},
		{"release from the one that was seen", v1alpha1.TaskDoing, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionRelease, Epoch: new(int64(held))}, v1alpha1.TaskTodo, ""},
		{"release from one that is gone", v1alpha1.TaskDoing, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionRelease, Epoch: new(int64(before))}, "", "changed hands"},
		{"release what nobody holds", v1alpha1.TaskTodo, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionRelease}, "", "nobody holds the task: it is Todo"},
		{"cancel a held task", v1alpha1.TaskDoing, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionCancel, Reason: "why"}, v1alpha1.TaskCancelled, ""},
		{"cancel an open task", v1alpha1.TaskTodo, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionCancel, Reason: "why"}, v1alpha1.TaskCancelled, ""},
		{"cancel a blocked task", v1alpha1.TaskBlocked, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionCancel, Reason: "why"}, v1alpha1.TaskCancelled, ""},
		{"cancel what has ended", v1alpha1.TaskDone, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionCancel, Reason: "why"}, "", "has ended: it is Done"},
		{"cancel without a reason", v1alpha1.TaskTodo, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionCancel}, "", "reason must be given"},
		{"reopen what is done", v1alpha1.TaskDone, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionReopen}, v1alpha1.TaskTodo, ""},
		{"reopen what failed", v1alpha1.TaskFailed, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionReopen}, v1alpha1.TaskTodo, ""},
		{"reopen what is blocked", v1alpha1.TaskBlocked, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionReopen}, v1alpha1.TaskTodo, ""},
		{"reopen what is open", v1alpha1.TaskTodo, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionReopen}, "", "is open: it is Todo"},
		{"reopen what is held", v1alpha1.TaskDoing, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionReopen}, "", "is open: it is Doing"},
		{"do something else", v1alpha1.TaskTodo, v1alpha1.TaskIntervention{Action: "Explode"}, "", "must be Release, Cancel or Reopen"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			task := &v1alpha1.Task{Status: v1alpha1.TaskStatus{State: tc.from, Epoch: held}}
			if tc.from == v1alpha1.TaskDoing {
				task.Status.Claim = &v1alpha1.TaskClaim{Holder: "agent", Session: "s1"}
			}
			tc.order.ID, tc.order.By = "i1", "ada"
			task.Spec.Intervention = &tc.order
			untouched := task.DeepCopy()
			if p := tasks.MayIntervene(task, &tc.order, now); (p == nil) != (tc.words == "") {
				t.Errorf("asked before, it says %v", p)
			}
			status, ordered := tasks.Intervene(task, now)
			if !ordered || status.Intervention == nil || status.Intervention.ID != "i1" {
				t.Fatalf("the order is not noted: %t %+v", ordered, status.Intervention)
			}
			if refused := status.Intervention.Refused; (refused == "") != (tc.words == "") || !strings.Contains(refused, tc.words) {
				t.Errorf("refused with %q, want %q", refused, tc.words)
			}
			want := tc.to
			if tc.words != "" {
				want = tc.from
			}
			if status.State != want || (status.Claim != nil) != (want == v1alpha1.TaskDoing) {
				t.Errorf("it is %s with claim %+v, want %s", status.State, status.Claim, want)
			}
			if tc.from == v1alpha1.TaskDoing && tc.words == "" &&
				(status.Epoch != held+1 || status.LastClaim == nil || status.LastClaim.Ended != v1alpha1.ClaimRevoked) {
				t.Errorf("the claim ended as %+v under epoch %d", status.LastClaim, status.Epoch)
			}
			if diff := cmp.Diff(untouched, task); diff != "" {
				t.Errorf("the task was changed:\n%s", diff)
			}
			task.Status = status
			if _, again := tasks.Intervene(task, now); again {
				t.Error("the order is carried out twice")
			}
		})
	}
	if _, ordered := tasks.Intervene(&v1alpha1.Task{Status: v1alpha1.TaskStatus{State: v1alpha1.TaskTodo}}, now); ordered {
		t.Error("without an order something is carried out")
	}
}

func TestAnArchivedTaskTakesNoOrder(t *testing.T) {
	task := &v1alpha1.Task{Status: v1alpha1.TaskStatus{State: v1alpha1.TaskDone}}
	task.Spec.Archived = true
	task.Spec.Intervention = &v1alpha1.TaskIntervention{ID: "i1", Action: v1alpha1.InterventionReopen, By: "ada"}
	status, _ := tasks.Intervene(task, now)
	if status.State != v1alpha1.TaskDone || !strings.Contains(status.Intervention.Refused, "archived") {
		t.Errorf("it is %s: %q", status.State, status.Intervention.Refused)
	}
}
