package room

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/conditions"
	"github.com/agentrooms/agentrooms/controllers/internal/events"
	"github.com/agentrooms/agentrooms/controllers/internal/members"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// count counts tasks by state, without the archived ones.
func count(list []v1alpha1.Task) v1alpha1.TaskCounts {
	var c v1alpha1.TaskCounts
	counters := map[v1alpha1.TaskState]*int32{
		v1alpha1.TaskTodo: &c.Todo, v1alpha1.TaskDoing: &c.Doing, v1alpha1.TaskBlocked: &c.Blocked,
		v1alpha1.TaskDone: &c.Done, v1alpha1.TaskFailed: &c.Failed, v1alpha1.TaskCancelled: &c.Cancelled,
	}
	for i := range list {
		if counter := counters[list[i].Status.State]; counter != nil && !list[i].Spec.Archived {
			*counter++
		}
	}
	return c
}

// status gives the status that a room should have.
func status(
	room *v1alpha1.Room, set members.Set, counts v1alpha1.TaskCounts, lastSeq int64, now time.Time,
) v1alpha1.RoomStatus {
	s := *room.Status.DeepCopy()
	s.ObservedGeneration = room.Generation
	s.ID = ids.ID(room)
	s.Members = int32(len(room.Spec.Members)) //nolint:gosec // at most 256
	s.Tasks = counts
	// Old messages leave the cluster, their numbers stay taken.
	s.LastSeq = max(s.LastSeq, lastSeq)
	conditions.Set(&s.Conditions, ready(room, set), now)
	return s
}

// maxNamed is how many unknown members a condition names.
const maxNamed = 10

func ready(room *v1alpha1.Room, set members.Set) metav1.Condition {
	status, reason, message := metav1.ConditionFalse, v1alpha1.UnknownMemberReason, ""
	switch {
	case room.Spec.State == v1alpha1.RoomArchived:
		reason, message = v1alpha1.RoomArchivedReason, "the room is closed and kept for reading"
	case room.Spec.State == v1alpha1.RoomPaused:
		reason, message = v1alpha1.RoomPausedReason, "the room takes no writes from agents for now"
	case len(set.Unknown) > 0:
		message = "members that do not exist: " + names(set.Unknown)
	default:
		status, reason, message = metav1.ConditionTrue, v1alpha1.ReadyReason, "the room is in use"
	}
	return conditions.New(v1alpha1.ReadyCondition, status, reason, message, room.Generation)
}

func names(refs []v1alpha1.AgentReference) string {
	var list []string
	for _, ref := range refs {
		if len(list) == maxNamed {
			list = append(list, fmt.Sprintf("and %d more", len(refs)-maxNamed))
			break
		}
		list = append(list, ref.Name+ref.Plate)
	}
	return strings.Join(list, ", ")
}

// write writes the status when it differs from what was read, and tells of an archived room.
func (r *Reconciler) write(ctx context.Context, room *v1alpha1.Room, next v1alpha1.RoomStatus) error {
	if equality.Semantic.DeepEqual(room.Status, next) {
		return nil
	}
	before, after := room.Status.Conditions, next.Conditions
	room.Status = next
	if err := r.Client.Status().Update(ctx, room); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("writing the status of room %s: %w", room.Name, err)
	}
	var q events.Queue
	if archived(after) && !archived(before) {
		q.Normal("Archived", "Archive", fmt.Sprintf("The room %q was archived: it is kept for reading", room.Spec.DisplayName))
	}
	q.Send(r.Events, room)
	return nil
}

func archived(list []metav1.Condition) bool {
	return conditions.Reason(list, v1alpha1.ReadyCondition) == v1alpha1.RoomArchivedReason
}
