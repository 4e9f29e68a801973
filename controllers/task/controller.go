package task

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/builder"
	"github.com/agentrooms/agentrooms/controllers/internal/events"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
)

// controllerName is how histories and messages call the controller.
const controllerName = "task-controller"

// defaultWorkers is how many tasks are dealt with at once. Posting a notice waits for the API server, and several notices
// go out in one write.
const defaultWorkers = 4

// Poster posts messages to the logs of rooms. A message whose key stands in the log already is dropped.
type Poster interface {
	// Post appends a message to the log of a room and returns when it stands there.
	Post(ctx context.Context, room *v1alpha1.Room, m v1alpha1.Message) error
}

// Reconciler keeps Tasks.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock tells the time. Expiry is judged by it alone.
	Clock clock.PassiveClock
	// Events takes what people should hear of.
	Events events.Recorder
	// Poster takes the notices to rooms. Without one nothing is posted.
	Poster Poster
	// Workers is how many tasks are dealt with at once. Zero stands for a sensible number.
	Workers int

	observer  leases.Observer
	decisions decisions
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	workers := r.Workers
	if workers == 0 {
		workers = defaultWorkers
	}
	if err := r.watch(builder.New(mgr, "task", workers)).Complete(builder.Quiet(r)); err != nil {
		return fmt.Errorf("building the task controller: %w", err)
	}
	return nil
}

// Reconcile brings a Task up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	task := &v1alpha1.Task{}
	if err := r.Client.Get(ctx, req.NamespacedName, task); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading task %s: %w", req.Name, err)
	}
	if !task.DeletionTimestamp.IsZero() {
		r.forget(req)
		return ctrl.Result{}, nil
	}
	s, err := r.read(ctx, task)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.room != nil && ids.Restoring(s.room) {
		return ctrl.Result{}, nil // What the import writes is how it was; the room's last change brings the task here again.
	}
	r.announce(task)
	intervene(s)
	ready(s)
	revoke(s)
	settle(s)
	heard(s)
	dependencies(s)
	after, err := r.reconcileLease(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	// What was decided is written even when the room cannot be told: the notice is tried again.
	noticeErr := r.reconcileNotice(ctx, s)
	if err := r.write(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: after}, noticeErr
}

// forget drops what is remembered of a Task that is gone.
func (r *Reconciler) forget(req ctrl.Request) {
	r.observer.Forget(req.String())
	r.decisions.forget(req.NamespacedName)
}
