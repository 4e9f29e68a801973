package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/builder"
	"github.com/agentrooms/agentrooms/controllers/internal/pace"
	"github.com/agentrooms/agentrooms/controllers/logs"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

const (
	// segmentsAtOnce is how many segments of a room are moved before others have their turn.
	segmentsAtOnce = 8
	// deletesAtOnce is how many batches of a room are deleted before others have their turn.
	deletesAtOnce = 1000
	// again is when a room goes on that others were let in before.
	again = 10 * time.Millisecond
)

// Reconciler moves old messages to the blob store.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Live reads from the API server: the cache holds no bodies of messages.
	Live client.Reader
	// Logs say where the logs of rooms begin and end.
	Logs *logs.Logs
	// Bucket takes the segments.
	Bucket archive.Bucket
	// Clock tells the time.
	Clock clock.PassiveClock
	// Every is how often a busy room is looked at. Zero stands for pace.Every.
	Every time.Duration
	// Grace is how long batches stay after their messages have moved. Zero stands for roomlog.Grace.
	Grace time.Duration

	pacer   *pace.Pacer
	graces  graces
	blocked blocked
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Grace == 0 {
		r.Grace = roomlog.Grace
	}
	r.pacer = pace.New(r.Clock, r.Every)
	spec := ctrlbuilder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := builder.New(mgr, "retention", 2).
		For(&v1alpha1.Room{}, spec).
		Watches(&v1alpha1.Inbox{}, handler.EnqueueRequestsFromMapFunc(r.blocked.roomOf), ctrlbuilder.OnlyMetadata).
		WatchesRawSource(r.Logs.Source(r.pacer.Enqueue)).
		Complete(builder.Quiet(r))
	if err != nil {
		return fmt.Errorf("building the retention controller: %w", err)
	}
	return nil
}

// Reconcile moves what is beyond a Room's retention.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	select {
	case <-r.Logs.Ready():
	case <-ctx.Done():
		return ctrl.Result{}, fmt.Errorf("waiting for the logs of rooms: %w", ctx.Err())
	}
	room := &v1alpha1.Room{}
	if err := r.Client.Get(ctx, req.NamespacedName, room); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading room %s: %w", req.Name, err)
	}
	if !room.DeletionTimestamp.IsZero() || ids.Restoring(room) {
		return ctrl.Result{}, nil
	}
	r.pacer.Mark(req.NamespacedName)
	wake, moveErr := r.move(ctx, room)
	swept, sweepErr := r.sweep(ctx, room)
	return ctrl.Result{RequeueAfter: sooner(wake, swept)}, errors.Join(moveErr, sweepErr)
}

func (r *Reconciler) forget(req ctrl.Request) {
	r.pacer.Forget(req.NamespacedName)
	r.graces.forget(req.NamespacedName)
	r.blocked.clear(req.NamespacedName)
}

// sooner gives the shorter of two times, where 0 stands for never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || (b > 0 && b < a) {
		return b
	}
	return a
}

// move moves segments as long as there are some to move. It gives how long until there is another one by its age alone.
func (r *Reconciler) move(ctx context.Context, room *v1alpha1.Room) (time.Duration, error) {
	if r.blocked.still(client.ObjectKeyFromObject(room), r.Clock.Now()) {
		return 0, nil
	}
	for range segmentsAtOnce {
		log := r.Logs.Of(room)
		due, wake := archive.Next(archive.PolicyOf(room), log.Seam().Archived, log.LastSeq(), takenIn(log), r.Clock.Now())
		if !due {
			return wake, r.settled(ctx, room)
		}
		fresh, err := r.segment(ctx, room, log)
		if fresh != nil {
			room = fresh
		}
		if err != nil || fresh == nil {
			return 0, err
		}
	}
	return again, nil
}

// takenIn tells when the API server took a message.
func takenIn(log *roomlog.Log) func(int64) (time.Time, bool) {
	return func(seq int64) (time.Time, bool) {
		places, ok := log.Holding(seq, seq)
		if !ok {
			return time.Time{}, false
		}
		return places[0].Batch.CreationTimestamp.Time, true
	}
}
