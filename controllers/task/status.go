package task

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/conditions"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// ready says whether room and assignee of a task exist. What has ended stays as it was: an agent that leaves later
// changes nothing about work that is done.
func ready(s *scope) {
	if frozen(s, v1alpha1.ReadyCondition) {
		return
	}
	status, reason, message := metav1.ConditionFalse, v1alpha1.UnknownAssigneeReason, ""
	name := s.task.Spec.Assignee
	switch {
	case s.room == nil:
		reason, message = v1alpha1.RoomNotFoundReason, fmt.Sprintf("room %s does not exist", s.task.Spec.RoomRef.Name)
	case name != "" && s.assignee.agent == nil:
		message = fmt.Sprintf("no agent is called %s", name)
	case name != "" && !s.assignee.member:
		message = fmt.Sprintf("%s is no member of room %s", name, s.room.Name)
	default:
		status, reason = metav1.ConditionTrue, v1alpha1.ReadyReason
		message = "the task is in order"
	}
	s.condition(v1alpha1.ReadyCondition, status, reason, message)
}

// frozen says whether a condition belongs to a task that has ended, and was set before.
func frozen(s *scope, kind string) bool {
	return tasks.Terminal(s.task.Status.State) && conditions.Reason(s.task.Status.Conditions, kind) != ""
}

func (s *scope) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(&s.next.Status.Conditions,
		conditions.New(kind, status, reason, message, s.task.Generation), s.now)
}

// write writes the status when it differs from what was read, with the resourceVersion that was read. Then it sends what
// has become true by it.
func (r *Reconciler) write(ctx context.Context, s *scope) error {
	s.next.Status.ObservedGeneration = s.task.Generation
	if equality.Semantic.DeepEqual(s.task.Status, s.next.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, s.next); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("writing the status of task %s: %w", s.task.Name, err)
	}
	s.events.Send(r.Events, s.next)
	for _, count := range s.counts {
		count()
	}
	return nil
}
