package agent

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/controllers/internal/pace"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// watch says what an Agent's status depends on.
func (r *Reconciler) watch(b *ctrl.Builder) *ctrl.Builder {
	spec := ctrlbuilder.WithPredicates(predicate.Or(
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	return b.
		For(&v1alpha1.Agent{}, spec).
		Watches(&v1alpha1.Agent{}, handler.EnqueueRequestsFromMapFunc(r.sharing), spec).
		WatchesRawSource(source.Kind[client.Object](r.Instances, &coordinationv1.Lease{}, r.instanceHandler()))
}

// sharing are the other Agents that list one of an Agent's subjects. An update is mapped as it was and as it is.
func (r *Reconciler) sharing(ctx context.Context, o client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, subject := range ids.Usernames(o.(*v1alpha1.Agent)) {
		requests = append(requests, r.list(ctx, o.GetUID(), client.MatchingFields{index.AgentSubject: subject})...)
	}
	return requests
}

func (r *Reconciler) list(ctx context.Context, but types.UID, opts ...client.ListOption) []reconcile.Request {
	var agents v1alpha1.AgentList
	if err := r.Client.List(ctx, &agents, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Finding the agents that a change concerns")
		return nil
	}
	var requests []reconcile.Request
	for i := range agents.Items {
		if a := &agents.Items[i]; a.UID != but {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(a)})
		}
	}
	return requests
}

// instanceHandler notes each renewal when it is seen, and asks for a count only when one may come or go.
func (r *Reconciler) instanceHandler() handler.EventHandler {
	enqueue := func(ctx context.Context, o client.Object, q pace.Queue) {
		plate := o.GetLabels()[v1alpha1.InstanceLabel]
		for _, req := range r.list(ctx, "", client.MatchingFields{index.AgentPlate: plate}) {
			r.pacer.Enqueue(q, req.NamespacedName)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q pace.Queue) {
			r.remaining(e.Object.(*coordinationv1.Lease), r.Clock.Now())
			enqueue(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q pace.Queue) {
			now := r.Clock.Now()
			dead := r.remaining(e.ObjectOld.(*coordinationv1.Lease), now) <= 0
			r.remaining(e.ObjectNew.(*coordinationv1.Lease), now)
			if dead {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q pace.Queue) {
			r.observer.Forget(string(e.Object.GetUID()))
			enqueue(ctx, e.Object, q)
		},
	}
}
