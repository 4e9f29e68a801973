package inbox

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/builder"
	"github.com/agentrooms/agentrooms/controllers/internal/members"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// Reconciler makes the Inboxes of Rooms.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Clock tells the time.
	Clock clock.PassiveClock
}

// SetupWithManager registers the controller. Of Inboxes only the metadata is kept in memory: what is in them is not
// looked at here.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	spec := ctrlbuilder.WithPredicates(predicate.Or(
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	gone := ctrlbuilder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	})
	err := builder.New(mgr, "inbox", 1).
		For(&v1alpha1.Room{}, spec).
		Owns(&v1alpha1.Inbox{}, ctrlbuilder.OnlyMetadata, gone).
		Watches(&v1alpha1.Agent{}, handler.EnqueueRequestsFromMapFunc(members.MapToRooms(r.Client)), spec).
		Complete(builder.Quiet(r))
	if err != nil {
		return fmt.Errorf("building the inbox controller: %w", err)
	}
	return nil
}

// Reconcile makes the Inboxes that a Room lacks, and deletes those whose agents are gone.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	room := &v1alpha1.Room{}
	if err := r.Client.Get(ctx, req.NamespacedName, room, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !room.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	set, err := members.Of(ctx, r.Client, room)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the members of room %s: %w", room.Name, err)
	}
	var failed []error
	for _, wanted := range inboxes(room, set) {
		failed = append(failed, r.ensure(ctx, wanted))
	}
	wait, err := r.collect(ctx, room)
	return ctrl.Result{RequeueAfter: wait}, errors.Join(append(failed, err)...)
}

// inboxes gives the Inboxes that a Room should have.
func inboxes(room *v1alpha1.Room, set members.Set) []*v1alpha1.Inbox {
	var list []*v1alpha1.Inbox
	for _, m := range set.Agents {
		list = append(list, &v1alpha1.Inbox{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: room.Namespace,
				Name:      ids.InboxName(room.Name, room.UID, m.Plate),
				Labels:    map[string]string{v1alpha1.RoomLabel: room.Name},
				OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(room, v1alpha1.GroupVersion.WithKind("Room")),
				},
			},
			Spec: v1alpha1.InboxSpec{RoomRef: v1alpha1.RoomReference{Name: room.Name}, Plate: m.Plate},
		})
	}
	return list
}

// ensure makes an Inbox unless it exists.
func (r *Reconciler) ensure(ctx context.Context, inbox *v1alpha1.Inbox) error {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Inbox"))
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(inbox), there)
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading inbox %s: %w", inbox.Name, err)
	}
	// The bridge makes one as well when it is there first.
	if err := r.Client.Create(ctx, inbox); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating inbox %s: %w", inbox.Name, err)
	}
	return nil
}
