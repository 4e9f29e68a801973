package room

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/builder"
	"github.com/agentrooms/agentrooms/controllers/internal/events"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/controllers/internal/members"
	"github.com/agentrooms/agentrooms/controllers/internal/pace"
	"github.com/agentrooms/agentrooms/controllers/logs"
)

// Reconciler keeps the status of Rooms.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Logs say how many messages there are.
	Logs *logs.Logs
	// Clock tells the time.
	Clock clock.PassiveClock
	// Events takes what people should hear of.
	Events events.Recorder
	// Every is how often the counts of a busy room are written. Zero stands for pace.Every.
	Every time.Duration

	pacer *pace.Pacer
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.pacer = pace.New(r.Clock, r.Every)
	if err := r.watch(builder.New(mgr, "room", 1)).Complete(builder.Quiet(r)); err != nil {
		return fmt.Errorf("building the room controller: %w", err)
	}
	return nil
}

// Reconcile brings the status of a Room up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	room := &v1alpha1.Room{}
	if err := r.Client.Get(ctx, req.NamespacedName, room); err != nil {
		if apierrors.IsNotFound(err) {
			r.pacer.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading room %s: %w", req.Name, err)
	}
	if !room.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	r.pacer.Mark(req.NamespacedName)
	set, err := members.Of(ctx, r.Client, room)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the members of room %s: %w", room.Name, err)
	}
	counts, err := r.count(ctx, room)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := status(room, set, counts, r.Logs.Of(room).LastSeq(), r.Clock.Now())
	return ctrl.Result{}, r.write(ctx, room, next)
}

// count counts the room's tasks from the cache.
func (r *Reconciler) count(ctx context.Context, room *v1alpha1.Room) (v1alpha1.TaskCounts, error) {
	var list v1alpha1.TaskList
	err := r.Client.List(ctx, &list, client.InNamespace(room.Namespace), client.MatchingFields{index.Room: room.Name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return v1alpha1.TaskCounts{}, fmt.Errorf("listing the tasks of room %s: %w", room.Name, err)
	}
	return count(list.Items), nil
}
