package task

import (
	"context"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// watch says what a Task depends on.
func (r *Reconciler) watch(b *ctrl.Builder) *ctrl.Builder {
	spec := ctrlbuilder.WithPredicates(predicate.Or(
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	return b.
		For(&v1alpha1.Task{}).
		Watches(&v1alpha1.Task{}, handler.EnqueueRequestsFromMapFunc(r.dependents),
			ctrlbuilder.WithPredicates(predicate.Funcs{UpdateFunc: stateChanged})).
		Watches(&v1alpha1.Task{}, handler.EnqueueRequestsFromMapFunc(r.chain),
			ctrlbuilder.WithPredicates(predicate.Funcs{CreateFunc: isNew, UpdateFunc: dependsOnChanged})).
		Watches(&coordinationv1.Lease{}, r.leaseHandler()).
		Watches(&v1alpha1.Room{}, handler.EnqueueRequestsFromMapFunc(r.tasksOfRoom), spec).
		Watches(&v1alpha1.Consent{}, handler.EnqueueRequestsFromMapFunc(r.tasksOfConsent), spec).
		Watches(&v1alpha1.Agent{}, handler.EnqueueRequestsFromMapFunc(r.tasksOfAgent), spec)
}

// isNew leaves out what existed when the watch began: all of that is dealt with anyway.
func isNew(e event.CreateEvent) bool { return !e.IsInInitialList }

func stateChanged(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.Task), e.ObjectNew.(*v1alpha1.Task)
	return before.Status.State != after.Status.State
}

func dependsOnChanged(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.Task), e.ObjectNew.(*v1alpha1.Task)
	return !slices.Equal(before.Spec.DependsOn, after.Spec.DependsOn)
}

// queue is the work queue of the controller.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// leaseHandler notes each renewal when it is seen, and asks for a reconcile only when there is more to a change: a task
// that is renewed in time costs one reconcile a lease and not one a heartbeat.
func (r *Reconciler) leaseHandler() handler.EventHandler {
	enqueue := func(o client.Object, q queue) {
		if name := o.GetLabels()[v1alpha1.TaskLabel]; name != "" {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*coordinationv1.Lease), e.ObjectNew.(*coordinationv1.Lease)
			if r.noteRenewal(before, after) {
				enqueue(e.ObjectNew, q)
			}
		},
	}
}

// noteRenewal tells the observer of a renewal. It answers true when the change is more than a renewal in time.
func (r *Reconciler) noteRenewal(before, after *coordinationv1.Lease) bool {
	name := after.Labels[v1alpha1.TaskLabel]
	if name == "" || leases.HolderOf(after) == "" {
		return true
	}
	key, now := types.NamespacedName{Namespace: after.Namespace, Name: name}.String(), r.Clock.Now()
	late := r.observer.Remaining(key, before, now) <= 0
	r.observer.Remaining(key, after, now)
	return late || !sameBut(before, after)
}

// sameBut says whether two Leases differ in nothing but the time of renewal.
func sameBut(a, b *coordinationv1.Lease) bool {
	return leases.HolderOf(a) == leases.HolderOf(b) && leases.Epoch(a) == leases.Epoch(b) &&
		equal(a.Spec.LeaseDurationSeconds, b.Spec.LeaseDurationSeconds) &&
		a.Labels[v1alpha1.TaskLabel] == b.Labels[v1alpha1.TaskLabel] && len(a.OwnerReferences) == len(b.OwnerReferences)
}

func equal(a, b *int32) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// list gives requests for the Tasks that an index finds, without those that keep drops.
func (r *Reconciler) list(ctx context.Context, keep func(*v1alpha1.Task) bool, opts ...client.ListOption) []reconcile.Request {
	var found v1alpha1.TaskList
	if err := r.Client.List(ctx, &found, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Finding the tasks that a change concerns")
		return nil
	}
	var requests []reconcile.Request
	for i := range found.Items {
		if t := &found.Items[i]; keep(t) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(t)})
		}
	}
	return requests
}

func open(t *v1alpha1.Task) bool { return !tasks.Terminal(t.Status.State) }

// dependents are the tasks that wait for a task.
func (r *Reconciler) dependents(ctx context.Context, o client.Object) []reconcile.Request {
	return r.list(ctx, open, client.InNamespace(o.GetNamespace()), client.MatchingFields{index.TaskBlocker: o.GetName()})
}

// maxChain is how many tasks a change of dependencies reaches.
const maxChain = 10000

// chain are the tasks that wait for a task through others: any of them may have come into a cycle, or out of one.
func (r *Reconciler) chain(ctx context.Context, o client.Object) []reconcile.Request {
	seen := map[types.NamespacedName]bool{client.ObjectKeyFromObject(o): true}
	requests := []reconcile.Request{}
	for next := []types.NamespacedName{client.ObjectKeyFromObject(o)}; len(next) > 0 && len(seen) < maxChain; next = next[1:] {
		for _, req := range r.list(ctx, open, client.InNamespace(next[0].Namespace),
			client.MatchingFields{index.TaskBlocker: next[0].Name}) {
			if !seen[req.NamespacedName] {
				seen[req.NamespacedName] = true
				next, requests = append(next, req.NamespacedName), append(requests, req)
			}
		}
	}
	return requests
}

// tasksOfRoom are the tasks of a room that have not ended, and those that nobody has dealt with: ended ones of a room that has
// just been restored.
func (r *Reconciler) tasksOfRoom(ctx context.Context, o client.Object) []reconcile.Request {
	waiting := func(t *v1alpha1.Task) bool { return open(t) || t.Status.ObservedGeneration < t.Generation }
	return r.list(ctx, waiting, client.InNamespace(o.GetNamespace()), client.MatchingFields{index.Room: o.GetName()})
}

// tasksOfConsent are the assigned tasks of the room that have not ended. Whose they are is seen when they are dealt with.
func (r *Reconciler) tasksOfConsent(ctx context.Context, o client.Object) []reconcile.Request {
	assigned := func(t *v1alpha1.Task) bool { return open(t) && t.Spec.Assignee != "" }
	return r.list(ctx, assigned, client.InNamespace(o.GetNamespace()),
		client.MatchingFields{index.Room: o.(*v1alpha1.Consent).Spec.RoomRef.Name})
}

// tasksOfAgent are the tasks that an agent is assigned to or has assigned, and those of its rooms, where it may be what
// makes its owner a member.
func (r *Reconciler) tasksOfAgent(ctx context.Context, o client.Object) []reconcile.Request {
	plate, inNamespace := ids.Plate(o.(*v1alpha1.Agent)), client.InNamespace(o.GetNamespace())
	requests := r.list(ctx, open, inNamespace, client.MatchingFields{index.TaskAgent: o.GetName()})
	requests = append(requests, r.list(ctx, open, client.MatchingFields{index.TaskAgent: plate})...)
	rooms, err := members.RoomsOf(ctx, r.Client, o.(*v1alpha1.Agent))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Finding the rooms of an agent")
	}
	for i := range rooms {
		requests = append(requests, r.tasksOfRoom(ctx, &rooms[i])...)
	}
	return requests
}
