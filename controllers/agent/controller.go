package agent

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/builder"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/controllers/internal/pace"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
)

// InstanceTTL is how long an instance counts as live after it was last seen to renew.
const InstanceTTL = 180 * time.Second

// Reconciler keeps the status of Agents.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Instances holds the Leases of instances.
	Instances cache.Cache
	// Clock tells the time. Life is judged by it alone.
	Clock clock.PassiveClock
	// Every is how often the count of an agent's instances is written. Zero stands for pace.Every.
	Every time.Duration
	// TTL is how long an instance counts as live after it was last seen to renew. Zero stands for InstanceTTL.
	TTL time.Duration

	pacer    *pace.Pacer
	observer leases.Observer
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.pacer = pace.New(r.Clock, r.Every)
	if r.TTL == 0 {
		r.TTL = InstanceTTL
	}
	if err := r.watch(builder.New(mgr, "agent", 1)).Complete(builder.Quiet(r)); err != nil {
		return fmt.Errorf("building the agent controller: %w", err)
	}
	return nil
}

// Reconcile brings the status of an Agent up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	agent := &v1alpha1.Agent{}
	if err := r.Client.Get(ctx, req.NamespacedName, agent); err != nil {
		if apierrors.IsNotFound(err) {
			r.pacer.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading agent %s: %w", req.Name, err)
	}
	if !agent.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	r.pacer.Mark(req.NamespacedName)
	rivals, err := r.rivals(ctx, agent)
	if err != nil {
		return ctrl.Result{}, err
	}
	live, after, err := r.live(ctx, agent)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := status(agent, rivals, live, r.Clock.Now())
	return ctrl.Result{RequeueAfter: after}, r.write(ctx, agent, next)
}

// rivals are the other Agents that list one of an Agent's subjects, by subject.
func (r *Reconciler) rivals(ctx context.Context, agent *v1alpha1.Agent) (map[string][]string, error) {
	rivals := map[string][]string{}
	for _, subject := range ids.Usernames(agent) {
		var list v1alpha1.AgentList
		err := r.Client.List(ctx, &list, client.MatchingFields{index.AgentSubject: subject}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("finding the agents of %s: %w", subject, err)
		}
		for i := range list.Items {
			if other := &list.Items[i]; other.UID != agent.UID {
				rivals[subject] = append(rivals[subject], other.Namespace+"/"+other.Name)
			}
		}
	}
	return rivals, nil
}

// live counts the instances that live, and says when to look again since one of them may be dead by then.
func (r *Reconciler) live(ctx context.Context, agent *v1alpha1.Agent) (count int, after time.Duration, err error) {
	var list coordinationv1.LeaseList
	err = r.Instances.List(ctx, &list, client.MatchingFields{index.LeasePlate: ids.Plate(agent)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return 0, 0, fmt.Errorf("listing the instances of agent %s: %w", agent.Name, err)
	}
	now := r.Clock.Now()
	for i := range list.Items {
		left := r.remaining(&list.Items[i], now)
		if left <= 0 {
			continue
		}
		count++
		if after == 0 || left < after {
			after = left
		}
	}
	if after > 0 {
		after = max(after+margin, r.pacer.Delay(client.ObjectKeyFromObject(agent)))
	}
	return count, after, nil
}

// margin is added to the time until an instance counts as dead, so that it does when the controller looks again.
const margin = 20 * time.Millisecond

// remaining gives how long an instance counts as live if it does not renew.
func (r *Reconciler) remaining(l *coordinationv1.Lease, now time.Time) time.Duration {
	judged := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		RenewTime: l.Spec.RenewTime, LeaseTransitions: l.Spec.LeaseTransitions, LeaseDurationSeconds: new(int32(r.TTL / time.Second)),
	}}
	return r.observer.Remaining(string(l.UID), judged, now)
}
