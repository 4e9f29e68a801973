package instance

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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/builder"
	"github.com/agentrooms/agentrooms/controllers/internal/pace"
	"github.com/agentrooms/agentrooms/internal/leases"
)

// DeadAfter is how long the Lease of an instance is kept after it was last seen to change.
const DeadAfter = 10 * time.Minute

// margin is added to the time until an instance counts as dead, so that it does when the collector looks again.
const margin = 20 * time.Millisecond

// Reconciler collects the Leases of dead instances.
type Reconciler struct {
	// Client deletes.
	Client client.Client
	// Instances holds the Leases of instances.
	Instances cache.Cache
	// Clock tells the time. Life is judged by it alone.
	Clock clock.PassiveClock
	// DeadAfter is how long a Lease is kept after it was last seen to change. Zero stands for the constant of that name.
	DeadAfter time.Duration

	observer leases.Observer
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.DeadAfter == 0 {
		r.DeadAfter = DeadAfter
	}
	err := builder.New(mgr, "instance", 1).
		WatchesRawSource(source.Kind[client.Object](r.Instances, &coordinationv1.Lease{}, r.handler())).
		Complete(builder.Quiet(r))
	if err != nil {
		return fmt.Errorf("building the instance collector: %w", err)
	}
	return nil
}

// handler notes each renewal when it is seen. Only a Lease that is new is to be looked at.
func (r *Reconciler) handler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q pace.Queue) {
			r.remaining(e.Object.(*coordinationv1.Lease))
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ pace.Queue) {
			r.remaining(e.ObjectNew.(*coordinationv1.Lease))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ pace.Queue) {
			r.observer.Forget(string(e.Object.GetUID()))
		},
	}
}

// Reconcile deletes the Lease of an instance when it is dead, and else waits until it would be.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	lease := &coordinationv1.Lease{}
	if err := r.Instances.Get(ctx, req.NamespacedName, lease); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading lease %s: %w", req.Name, err)
	}
	if lease.Labels[v1alpha1.InstanceLabel] == "" {
		return ctrl.Result{}, nil
	}
	if left := r.remaining(lease); left > 0 {
		return ctrl.Result{RequeueAfter: left + margin}, nil
	}
	// A renewal that was not seen yet has another resourceVersion and makes this a conflict.
	err := r.Client.Delete(ctx, lease, client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("deleting the lease %s of a dead instance: %w", req.Name, err)
	}
	return ctrl.Result{}, nil
}

// remaining gives how long a Lease is kept if nobody renews it.
func (r *Reconciler) remaining(l *coordinationv1.Lease) time.Duration {
	judged := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		RenewTime: l.Spec.RenewTime, LeaseTransitions: l.Spec.LeaseTransitions,
		LeaseDurationSeconds: new(int32(r.DeadAfter / time.Second)),
	}}
	return r.observer.Remaining(string(l.UID), judged, r.Clock.Now())
}
