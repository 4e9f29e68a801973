package tasks

import (
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// maxRefused is the bound of the schema.
const maxRefused = 200

// Intervene carries out the order of a person that stands in the spec, once. It gives the status to write, and false when
// there is no order or it was dealt with before. The API server's roles decide who may give one, so whoever did counts as an
// admin of the room.
func Intervene(t *v1alpha1.Task, now time.Time) (v1alpha1.TaskStatus, bool) {
	i := t.Spec.Intervention
	if i == nil || (t.Status.Intervention != nil && t.Status.Intervention.ID == i.ID) {
		return v1alpha1.TaskStatus{}, false
	}
	status, p := intervened(t, i, now)
	if p != nil {
		status = t.Status.DeepCopy()
	}
	status.Intervention = &v1alpha1.TaskIntervened{ID: i.ID}
	if p != nil {
		status.Intervention.Refused = Truncate(p.Message, maxRefused)
	}
	return *status, true
}

// MayIntervene says what an order would meet now, nil when it would be carried out.
func MayIntervene(t *v1alpha1.Task, i *v1alpha1.TaskIntervention, now time.Time) *problem.Problem {
	_, p := intervened(t, i, now)
	return p
}

func intervened(t *v1alpha1.Task, i *v1alpha1.TaskIntervention, now time.Time) (*v1alpha1.TaskStatus, *problem.Problem) {
	if i.Epoch != nil && *i.Epoch != t.Status.Epoch {
		return nil, problem.New(problem.Conflict,
			"the task changed hands since the order was given: look at it again, and give the order anew if it still fits")
	}
	to, p := wanted(t.Status.State, i.Action)
	if p != nil {
		return nil, p
	}
	change := Change{To: to, Reason: i.Reason}
	if change.Reason == "" {
		change.Reason = map[v1alpha1.InterventionAction]string{
			v1alpha1.InterventionRelease: "released by a person", v1alpha1.InterventionReopen: "reopened by a person",
		}[i.Action]
	}
	out, p := SetStatus(t, Actor{Plate: i.By, Admin: true}, change, now)
	switch {
	case p != nil:
		return nil, p
	case out.Status == nil:
		return t.Status.DeepCopy(), nil // The task is there already.
	default:
		return out.Status, nil
	}
}

// wanted gives the state that an order leads to.
func wanted(from v1alpha1.TaskState, action v1alpha1.InterventionAction) (v1alpha1.TaskState, *problem.Problem) {
	switch action {
	case v1alpha1.InterventionRelease:
		if from != v1alpha1.TaskDoing {
			return "", problem.New(problem.Conflict, "nobody holds the task: it is %s", from)
		}
		return v1alpha1.TaskTodo, nil
	case v1alpha1.InterventionReopen:
		if from == v1alpha1.TaskDoing || from == v1alpha1.TaskTodo {
			return "", problem.New(problem.Conflict, "the task is open: it is %s", from)
		}
		return v1alpha1.TaskTodo, nil
	case v1alpha1.InterventionCancel:
		if Terminal(from) {
			return "", problem.New(problem.Conflict, "the task has ended: it is %s", from)
		}
		return v1alpha1.TaskCancelled, nil
	default:
		return "", problem.Invalid("action", "must be Release, Cancel or Reopen, not %q", action)
	}
}
