package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/conditions"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// status gives the status that an agent should have. rivals are the other Agents that list one of its subjects.
func status(agent *v1alpha1.Agent, rivals map[string][]string, live int, now time.Time) v1alpha1.AgentStatus {
	s := *agent.Status.DeepCopy()
	s.ObservedGeneration = agent.Generation
	s.Plate = ids.Plate(agent)
	s.LiveInstances = int32(live) //nolint:gosec // two billion instances of one agent do not run
	ready := conditions.New(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReadyReason,
		"the agent is in order", agent.Generation)
	if len(rivals) > 0 {
		ready = conditions.New(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.AmbiguousSubjectReason,
			"neither agent is let in: "+ambiguities(rivals), agent.Generation)
	}
	conditions.Set(&s.Conditions, ready, now)
	return s
}

// ambiguities says which subjects are listed twice, in a stable order.
func ambiguities(rivals map[string][]string) string {
	var parts []string
	for _, subject := range slices.Sorted(maps.Keys(rivals)) {
		others := slices.Sorted(slices.Values(rivals[subject]))
		parts = append(parts, fmt.Sprintf("%s is a subject of %s as well", subject, strings.Join(others, ", ")))
	}
	return strings.Join(parts, "; ")
}

// write writes the status when it differs from what was read.
func (r *Reconciler) write(ctx context.Context, agent *v1alpha1.Agent, next v1alpha1.AgentStatus) error {
	if equality.Semantic.DeepEqual(agent.Status, next) {
		return nil
	}
	agent.Status = next
	if err := r.Client.Status().Update(ctx, agent); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of agent %s: %w", agent.Name, err)
	}
	return nil
}
