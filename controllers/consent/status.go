package consent

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/conditions"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// status gives the status that a Consent should have. One that is not in force has decided nothing and waits for nothing.
func status(c *v1alpha1.Consent, f facts, now time.Time) v1alpha1.ConsentStatus {
	s := *c.Status.DeepCopy()
	s.ObservedGeneration = c.Generation
	s.Pending, s.AutoAccepted = 0, 0
	ready := conditions.New(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReadyReason,
		"the consent is in force", c.Generation)
	switch {
	case !f.room:
		ready = conditions.New(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.RoomNotFoundReason,
			fmt.Sprintf("room %s does not exist", c.Spec.RoomRef.Name), c.Generation)
	case f.inForce != nil && f.inForce.UID != c.UID:
		ready = conditions.New(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.DuplicateConsentReason,
			fmt.Sprintf("the older consent %s of the same owner is in force", f.inForce.Name), c.Generation)
	default:
		s.Pending, s.AutoAccepted = count(f)
	}
	conditions.Set(&s.Conditions, ready, now)
	return s
}

// count counts the proposals to the owner's agents that wait, and those that stand accepted without having been asked about.
func count(f facts) (pending, autoAccepted int32) {
	for i := range f.tasks {
		t := &f.tasks[i]
		c := t.Status.Consent
		if c == nil || t.Spec.Archived || !f.plates[c.Assignee] {
			continue
		}
		switch {
		case c.State == v1alpha1.ConsentPending && !tasks.Terminal(t.Status.State):
			pending++
		case c.State == v1alpha1.ConsentAccepted && c.Standing:
			autoAccepted++
		}
	}
	return pending, autoAccepted
}

// write writes the status when it differs from what was read.
func (r *Reconciler) write(ctx context.Context, c *v1alpha1.Consent, next v1alpha1.ConsentStatus) error {
	if equality.Semantic.DeepEqual(c.Status, next) {
		return nil
	}
	c.Status = next
	if err := r.Client.Status().Update(ctx, c); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of consent %s: %w", c.Name, err)
	}
	return nil
}
