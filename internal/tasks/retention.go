package tasks

import (
	"cmp"
	"slices"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// Rest is how long nothing must have happened to an archived task before it leaves the cluster: as long as the key that it was
// created under is a receipt, and an hour more for clocks that differ.
const Rest = 25 * time.Hour

// ArchivedLimit gives how many archived tasks of a room stay in the cluster.
func ArchivedLimit(r *v1alpha1.RoomRetention) int {
	if r == nil || r.ArchivedTasks == 0 {
		return v1alpha1.DefaultArchivedTasks
	}
	return int(r.ArchivedTasks)
}

// Beyond gives the archived tasks of a room that are to leave the cluster, the longest at rest first, and when the next one will
// be, zero when that takes something to happen. needed says whether a task on the board depends on one: that one stays.
func Beyond(
	list []*v1alpha1.Task, limit int, rest time.Duration, needed func(*v1alpha1.Task) bool, now time.Time,
) (over []*v1alpha1.Task, next time.Time) {
	var archived []*v1alpha1.Task
	for _, task := range list {
		if task.Spec.Archived && task.DeletionTimestamp.IsZero() {
			archived = append(archived, task)
		}
	}
	slices.SortFunc(archived, func(a, b *v1alpha1.Task) int {
		return cmp.Or(UpdatedAt(a).Compare(UpdatedAt(b)), cmp.Compare(a.Name, b.Name))
	})
	for _, task := range archived[:max(0, len(archived)-limit)] {
		if due := UpdatedAt(task).Add(rest); now.Before(due) {
			return over, due // those after it have rested no longer
		}
		if !needed(task) {
			over = append(over, task)
		}
	}
	return over, time.Time{}
}
