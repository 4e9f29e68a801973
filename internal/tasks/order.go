package tasks

import (
	"cmp"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// ByOrder compares tasks by their place in a lane: by order, then the older first.
func ByOrder(x, y *v1alpha1.Task) int {
	return cmp.Or(cmp.Compare(x.Spec.Order, y.Spec.Order),
		ids.Created(x).Compare(ids.Created(y).Time), cmp.Compare(x.Name, y.Name))
}

// UpdatedAt gives when something last happened to a task, as far as the task tells.
func UpdatedAt(task *v1alpha1.Task) time.Time {
	at := ids.Created(task).Time
	if n := len(task.Status.History); n > 0 && task.Status.History[n-1].At.After(at) {
		at = task.Status.History[n-1].At.Time
	}
	if c := task.Status.Consent; c != nil && c.At.After(at) {
		at = c.At.Time
	}
	return at
}
