package rooms

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// contended says whether a write may succeed after a fresh look: somebody else was faster, the view was stale, or the
// outcome is not known. A rule of the schema that refuses a write was obeyed by the decision, so the view was stale.
func contended(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsAlreadyExists(err) || gone(err) || unknown(err)
}

// gone says whether the API server has an object no more. One that does not know the kind is no witness to that.
func gone(err error) bool { return apierrors.IsNotFound(err) && !problem.NotInstalled(err) }

// unknown says whether a write may have happened although it gave an error.
func unknown(err error) bool {
	var netErr net.Error
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || errors.As(err, &netErr) ||
		utilnet.IsConnectionReset(err) || utilnet.IsConnectionRefused(err) || utilnet.IsProbableEOF(err)
}

// pause waits a random time that grows with the attempts.
func pause(ctx context.Context, attempt int) {
	limit := 5 << min(attempt, 6)
	timer := time.NewTimer(time.Duration(rand.IntN(limit*1000)) * time.Microsecond) //nolint:gosec // spreads, and hides nothing
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// errViewSuffices is a decision to write nothing that may rest on the view alone. One that does not say so is made again on
// what the API server says: that there is nothing to do may only seem so to a view that is behind.
var errViewSuffices = errors.New("nothing is to be written")

// decision on a task: the status to write, nil for none, or a *problem.Problem.
type decision func(task *v1alpha1.Task) (*v1alpha1.TaskStatus, error)

// changeStatus writes what decide makes of a task's status, by compare-and-swap on what the view shows. A problem that the
// view gives is checked once against the API server, as the view may be behind. Writers of one replica take turns.
func (t *Toolset) changeStatus(ctx context.Context, task *v1alpha1.Task, decide decision) (*v1alpha1.Task, error) {
	return t.change(ctx, task, func(current *v1alpha1.Task) (*v1alpha1.Task, error) {
		status, err := decide(current)
		if err != nil || status == nil {
			return nil, err
		}
		next := current.DeepCopy()
		next.Status = *status
		return next, nil
	}, func(ctx context.Context, next *v1alpha1.Task) error { return t.api.Status().Update(ctx, next) })
}

// changeSpec writes what edit makes of a task, by compare-and-swap. A nil task writes nothing.
func (t *Toolset) changeSpec(
	ctx context.Context, task *v1alpha1.Task, edit func(*v1alpha1.Task) (*v1alpha1.Task, error),
) (*v1alpha1.Task, error) {
	return t.change(ctx, task, edit, func(ctx context.Context, next *v1alpha1.Task) error { return t.api.Update(ctx, next) })
}

func (t *Toolset) change(
	ctx context.Context, task *v1alpha1.Task, decide func(*v1alpha1.Task) (*v1alpha1.Task, error),
	write func(context.Context, *v1alpha1.Task) error,
) (*v1alpha1.Task, error) {
	key := string(task.UID)
	t.taskLocks.LockKey(key)
	defer func() { _ = t.taskLocks.UnlockKey(key) }()
	var last error
	fresh := false
	for attempt := range maxAttempts {
		current, err := t.current(task)
		if err != nil {
			return nil, err
		}
		next, err := decide(current)
		if errors.Is(err, errViewSuffices) {
			return current, nil
		}
		_, refused := problem.As(err)
		if idle := err == nil && next == nil; (refused || idle) && !fresh {
			if fresh, err = true, t.refresh(ctx, current); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil || next == nil {
			return current, err
		}
		if last = write(ctx, next); last == nil {
			t.wrote(ctx, "task", next)
			return next, nil
		}
		if !contended(last) || ctx.Err() != nil {
			break
		}
		pause(ctx, attempt)
		if err := t.refresh(ctx, current); err != nil {
			return nil, err
		}
		fresh = true
	}
	return nil, gaveUp("task", task.Namespace+"/"+task.Name, last)
}

// gaveUp says what is told of a write that was tried in vain: when others were faster each time, to come again.
func gaveUp(kind, key string, last error) error {
	if apierrors.IsConflict(last) || apierrors.IsAlreadyExists(last) {
		return problem.New(problem.Unavailable, "others write to this %s at the same moment: try again", kind)
	}
	return fmt.Errorf("writing %s %s: %w", kind, key, last)
}

func (t *Toolset) current(task *v1alpha1.Task) (*v1alpha1.Task, error) {
	current, ok := t.view.Task(task.Namespace, task.Name)
	if !ok || current.UID != task.UID {
		return nil, problem.New(problem.NotFound, "the task is gone")
	}
	return current, nil
}

// refresh reads a task from the API server into the view.
func (t *Toolset) refresh(ctx context.Context, task *v1alpha1.Task) error {
	current := &v1alpha1.Task{}
	err := t.api.Get(ctx, client.ObjectKeyFromObject(task), current)
	if gone(err) {
		t.view.Gone(task)
		return problem.New(problem.NotFound, "the task is gone")
	}
	if err != nil {
		return fmt.Errorf("reading task %s/%s: %w", task.Namespace, task.Name, err)
	}
	current.ManagedFields = nil
	t.view.Saw(current)
	return nil
}
