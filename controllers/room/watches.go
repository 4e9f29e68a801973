package room

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/members"
	"github.com/agentrooms/agentrooms/controllers/internal/pace"
)

// watch says what a Room's status depends on. The room's own spec and its agents count at once, tasks and messages when the
// room's turn comes.
func (r *Reconciler) watch(b *ctrl.Builder) *ctrl.Builder {
	spec := ctrlbuilder.WithPredicates(predicate.Or(
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	return b.
		For(&v1alpha1.Room{}, spec).
		Watches(&v1alpha1.Agent{}, handler.EnqueueRequestsFromMapFunc(members.MapToRooms(r.Client)), spec).
		Watches(&v1alpha1.Task{}, r.paced(func(o client.Object) string {
			return o.(*v1alpha1.Task).Spec.RoomRef.Name
		}), ctrlbuilder.WithPredicates(predicate.Funcs{UpdateFunc: countChanged})).
		WatchesRawSource(r.Logs.Source(r.pacer.Enqueue))
}

func countChanged(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1alpha1.Task), e.ObjectNew.(*v1alpha1.Task)
	return before.Status.State != after.Status.State || before.Spec.Archived != after.Spec.Archived
}

// paced asks for the room that roomOf names, when its turn comes.
func (r *Reconciler) paced(roomOf func(client.Object) string) handler.EventHandler {
	enqueue := func(o client.Object, q pace.Queue) {
		r.pacer.Enqueue(q, types.NamespacedName{Namespace: o.GetNamespace(), Name: roomOf(o)})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q pace.Queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q pace.Queue) { enqueue(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q pace.Queue) { enqueue(e.Object, q) },
	}
}
