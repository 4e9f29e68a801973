package consent

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/controllers/internal/members"
	"github.com/agentrooms/agentrooms/controllers/internal/pace"
)

// watch says what a Consent's status depends on. Tasks count when the Consent's turn comes, all else at once.
func (r *Reconciler) watch(b *ctrl.Builder) *ctrl.Builder {
	spec := ctrlbuilder.WithPredicates(predicate.Or(
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	// Whether a room exists matters, and what it says does not.
	existence := ctrlbuilder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
	return b.
		For(&v1alpha1.Consent{}, spec).
		Watches(&v1alpha1.Consent{}, handler.EnqueueRequestsFromMapFunc(r.siblings), existence).
		Watches(&v1alpha1.Room{}, handler.EnqueueRequestsFromMapFunc(r.consentsOfRoom), existence).
		Watches(&v1alpha1.Agent{}, handler.EnqueueRequestsFromMapFunc(r.consentsOfAgent), spec).
		Watches(&v1alpha1.Task{}, r.taskHandler(),
			ctrlbuilder.WithPredicates(predicate.Funcs{UpdateFunc: countChanged}))
}

func countChanged(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.Task), e.ObjectNew.(*v1alpha1.Task)
	return !equality.Semantic.DeepEqual(before.Status.Consent, after.Status.Consent) ||
		before.Status.State != after.Status.State || before.Spec.Archived != after.Spec.Archived
}

func (r *Reconciler) list(
	ctx context.Context, keep func(*v1alpha1.Consent) bool, opts ...client.ListOption,
) []reconcile.Request {
	var found v1alpha1.ConsentList
	if err := r.Client.List(ctx, &found, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Finding the consents that a change concerns")
		return nil
	}
	var requests []reconcile.Request
	for i := range found.Items {
		if c := &found.Items[i]; keep(c) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		}
	}
	return requests
}

// siblings are the Consents of the same owner for the same room.
func (r *Reconciler) siblings(ctx context.Context, o client.Object) []reconcile.Request {
	c := o.(*v1alpha1.Consent)
	return r.ofOwner(ctx, c.Namespace, c.Spec.RoomRef.Name, c.Spec.Owner)
}

func (r *Reconciler) ofOwner(ctx context.Context, namespace, room, owner string) []reconcile.Request {
	keep := func(c *v1alpha1.Consent) bool { return c.Spec.Owner == owner }
	return r.list(ctx, keep, client.InNamespace(namespace), client.MatchingFields{index.Room: room})
}

func all(*v1alpha1.Consent) bool { return true }

func (r *Reconciler) consentsOfRoom(ctx context.Context, o client.Object) []reconcile.Request {
	return r.list(ctx, all, client.InNamespace(o.GetNamespace()), client.MatchingFields{index.Room: o.GetName()})
}

func (r *Reconciler) consentsOfAgent(ctx context.Context, o client.Object) []reconcile.Request {
	return r.list(ctx, all, client.MatchingFields{index.Owner: o.(*v1alpha1.Agent).Spec.Owner})
}

// taskHandler asks for the Consents of those whose agents a task is, or was, proposed to.
func (r *Reconciler) taskHandler() handler.EventHandler {
	enqueue := func(ctx context.Context, q pace.Queue, o client.Object) {
		t := o.(*v1alpha1.Task)
		if t.Status.Consent == nil || t.Status.Consent.Assignee == "" {
			return
		}
		agent, err := members.ByPlate(ctx, r.Client, t.Status.Consent.Assignee)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Finding the assignee of a task")
		}
		if agent == nil {
			return
		}
		for _, req := range r.ofOwner(ctx, t.Namespace, t.Spec.RoomRef.Name, agent.Spec.Owner) {
			r.pacer.Enqueue(q, req.NamespacedName)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q pace.Queue) { enqueue(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q pace.Queue) {
			enqueue(ctx, q, e.ObjectOld)
			enqueue(ctx, q, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q pace.Queue) { enqueue(ctx, q, e.Object) },
	}
}
