package archivedtask

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/builder"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/controllers/internal/metrics"
	"github.com/agentrooms/agentrooms/controllers/internal/pace"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

const (
	// atOnce is how many tasks of a room move before other rooms have their turn.
	atOnce = 100
	// again is when a room goes on that others were let in before.
	again = 10 * time.Millisecond
)

// errChanged says that a task is not what the cache showed.
var errChanged = errors.New("it has changed meanwhile")

// Reconciler moves archived tasks to the blob store.
type Reconciler struct {
	// Client reads from caches and deletes.
	Client client.Client
	// Live reads from the API server: what is written is the task as it stands there.
	Live client.Reader
	// Bucket takes the tasks.
	Bucket archive.Bucket
	// Clock tells the time.
	Clock clock.PassiveClock
	// Every is how often a busy room is looked at. Zero stands for pace.Every.
	Every time.Duration
	// Rest is how long nothing must have happened to a task. Zero stands for tasks.Rest.
	Rest time.Duration

	pacer *pace.Pacer
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Rest == 0 {
		r.Rest = tasks.Rest
	}
	r.pacer = pace.New(r.Clock, r.Every)
	err := builder.New(mgr, "archivedtask", 1).
		For(&v1alpha1.Room{}, ctrlbuilder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Task{}, r.taskHandler()).
		Complete(builder.Quiet(r))
	if err != nil {
		return fmt.Errorf("building the controller of archived tasks: %w", err)
	}
	return nil
}

// taskHandler asks for a room when a task of it was archived, and when one goes or is archived that an archived one may have
// been kept for.
func (r *Reconciler) taskHandler() handler.EventHandler {
	look := func(o client.Object, q pace.Queue) {
		if task, ok := o.(*v1alpha1.Task); ok {
			r.pacer.Enqueue(q, types.NamespacedName{Namespace: task.Namespace, Name: task.Spec.RoomRef.Name})
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q pace.Queue) {
			before, after := e.ObjectOld.(*v1alpha1.Task), e.ObjectNew.(*v1alpha1.Task)
			if before.Spec.Archived != after.Spec.Archived || len(before.Spec.DependsOn) > len(after.Spec.DependsOn) {
				look(after, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q pace.Queue) {
			if task, ok := e.Object.(*v1alpha1.Task); ok && len(task.Spec.DependsOn) > 0 {
				look(task, q)
			}
		},
	}
}

// Reconcile moves what is beyond a Room's retention, and comes back when more will be.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	room := &v1alpha1.Room{}
	if err := r.Client.Get(ctx, req.NamespacedName, room, client.UnsafeDisableDeepCopy); err != nil {
		r.pacer.Forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !room.DeletionTimestamp.IsZero() || ids.Restoring(room) {
		return ctrl.Result{}, nil // one that is being restored is looked at again when it is opened
	}
	r.pacer.Mark(req.NamespacedName)
	list, err := r.tasks(ctx, client.InNamespace(room.Namespace), client.MatchingFields{index.Room: room.Name})
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.Clock.Now()
	var failed error
	needed := func(task *v1alpha1.Task) bool {
		is, err := r.needed(ctx, task)
		if err != nil {
			failed = err
		}
		return is
	}
	over, next := tasks.Beyond(list, tasks.ArchivedLimit(room.Spec.Retention), r.Rest, needed, now)
	if failed != nil {
		return ctrl.Result{}, failed
	}
	for _, task := range over[:min(len(over), atOnce)] {
		if err := r.move(ctx, room, task); err != nil {
			return ctrl.Result{}, err
		}
	}
	switch {
	case len(over) > atOnce:
		return ctrl.Result{RequeueAfter: again}, nil
	case next.IsZero():
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(next.Sub(now), again)}, nil
}

func (r *Reconciler) tasks(ctx context.Context, opts ...client.ListOption) ([]*v1alpha1.Task, error) {
	var found v1alpha1.TaskList
	if err := r.Client.List(ctx, &found, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing tasks: %w", err)
	}
	list := make([]*v1alpha1.Task, len(found.Items))
	for i := range found.Items {
		list[i] = &found.Items[i]
	}
	return list, nil
}

// needed says whether a task depends on another that is not archived itself. When that cannot be told it is.
func (r *Reconciler) needed(ctx context.Context, task *v1alpha1.Task) (bool, error) {
	list, err := r.tasks(ctx, client.InNamespace(task.Namespace), client.MatchingFields{index.TaskBlocker: task.Name})
	if err != nil {
		return true, err
	}
	for _, dependent := range list {
		if !dependent.Spec.Archived {
			return true, nil
		}
	}
	return false, nil
}

// move writes a task into the blob store as the API server has it, and deletes it if it still is what was written.
func (r *Reconciler) move(ctx context.Context, room *v1alpha1.Room, seen *v1alpha1.Task) error {
	task := &v1alpha1.Task{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(seen), task)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return failed("read", fmt.Errorf("reading task %s: %w", seen.Name, err))
	}
	if task.UID != seen.UID || task.ResourceVersion != seen.ResourceVersion {
		// Judged by what it was. It is looked at again when the cache has caught up.
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("tasks").GroupResource(), task.Name, errChanged)
	}
	if err := archive.WriteTask(ctx, r.Bucket, room.UID, ids.ID(task), task); err != nil {
		return failed("write", fmt.Errorf("moving task %s: %w", task.Name, err))
	}
	err = r.Client.Delete(ctx, task, client.Preconditions{UID: &task.UID, ResourceVersion: &task.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return err //nolint:wrapcheck // as above
	case err != nil:
		return failed("delete", fmt.Errorf("deleting task %s: %w", task.Name, err))
	}
	metrics.ArchiveTasks.Inc()
	return nil
}

func failed(step string, err error) error {
	metrics.ArchiveFailures.WithLabelValues(step).Inc()
	return err
}
