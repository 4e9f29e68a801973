package rooms

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/deps"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

func (t *Toolset) claimTask(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, task, err := t.writableTask(ctx, c, args.String("task_id"))
	if err != nil {
		return nil, err
	}
	done, result, err := t.claim(ctx, a, task)
	if err != nil {
		return nil, err
	}
	out := Claim{TaskID: ids.ID(done)}
	lease := t.lease(a, done, t.clock.Now())
	if result.Lost == "" {
		out.OK, out.Lease = true, lease
		return out, nil
	}
	out.Reason, out.State = string(result.Lost), tasks.ToolState(done.Status.State)
	if lease != nil {
		out.Holder, out.ExpiresAt = tasks.ClaimHolder(done), lease.ExpiresAt
	}
	if result.Lost == tasks.LostBlockedByDeps {
		out.BlockedBy = t.taskIDs(done.Namespace, deps.Open(done, t.lookup(done.Namespace)))
	}
	return out, nil
}

// claim tries to take a task with one write. A loss that the view shows costs no API call.
func (t *Toolset) claim(ctx context.Context, a *access, task *v1alpha1.Task) (*v1alpha1.Task, tasks.ClaimResult, error) {
	var result tasks.ClaimResult
	done, err := t.changeStatus(ctx, task, func(task *v1alpha1.Task) (*v1alpha1.TaskStatus, error) {
		now := t.clock.Now()
		_, assigned := t.assignee(task)
		settled, _ := consent.Settle(task, t.proposal(a, task), now)
		request := tasks.ClaimRequest{
			Actor: t.actor(a, task), Assigned: assigned, Consent: settled, Blockers: deps.Open(task, t.lookup(task.Namespace)),
		}
		r, p := tasks.Claim(task, request, now)
		if p != nil {
			return nil, p
		}
		switch result = r; {
		case r.Lost != "":
			return nil, errViewSuffices
		case !r.Write:
			return nil, nil
		}
		return &r.Status, nil
	})
	if err != nil {
		return nil, result, err
	}
	t.metrics.claims.WithLabelValues(outcome(result)).Inc()
	return done, result, nil
}

func outcome(r tasks.ClaimResult) string {
	switch {
	case r.Lost != "":
		return string(r.Lost)
	case r.Held:
		return "held"
	default:
		return "won"
	}
}

func (t *Toolset) renewLease(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, task, err := t.writableTask(ctx, c, args.String("task_id"))
	if err != nil {
		return nil, err
	}
	task, lease, err := t.renew(ctx, a, task, args.IntPtr("fence"))
	if err != nil {
		t.metrics.renews.WithLabelValues("explicit", "lost").Inc()
		return nil, err
	}
	t.metrics.renews.WithLabelValues("explicit", "ok").Inc()
	now := t.clock.Now()
	shown := t.lease(a, task, now)
	expires := now.Add(t.view.LeaseRemaining(lease))
	shown.ExpiresAt, shown.ExpiresInSeconds = stamp(expires), int64(expires.Sub(now)/time.Second)
	return Renewal{OK: true, TaskID: ids.ID(task), Lease: *shown}, nil
}

// renew extends the caller's lease with one update of the Lease, under the resourceVersion of the last one. Whether the
// caller still holds the task is decided by that compare-and-swap; a view that says no is checked against the API server.
func (t *Toolset) renew(
	ctx context.Context, a *access, task *v1alpha1.Task, fence *int64,
) (*v1alpha1.Task, *coordinationv1.Lease, error) {
	key := string(task.UID)
	t.taskLocks.LockKey(key)
	defer func() { _ = t.taskLocks.UnlockKey(key) }()
	var last error
	for attempt := range maxAttempts {
		current, err := t.current(task)
		if err != nil {
			return nil, nil, err
		}
		held := tasks.Holds(current, a.caller.Plate, a.caller.Session) && (fence == nil || *fence == current.Status.Epoch)
		if held {
			var lease *coordinationv1.Lease
			if lease, last = t.renewOnce(ctx, a, current); last == nil {
				return current, lease, nil
			}
			if !errors.Is(last, errLeaseTaken) && !contended(last) {
				return nil, nil, last
			}
		}
		if attempt > 0 && (!held || errors.Is(last, errLeaseTaken)) {
			return nil, nil, tasks.Lost(lostTo(current, a.caller, last))
		}
		if err := t.refreshBoth(ctx, current); err != nil {
			return nil, nil, err
		}
		pause(ctx, attempt)
	}
	return nil, nil, fmt.Errorf("renewing the lease of task %s/%s: %w", task.Namespace, task.Name, last)
}

// errLeaseTaken says that the Lease was taken from the holder, or belongs to a later claim.
var errLeaseTaken = errors.New("the lease was taken away")

// lostTo gives the task for the answer to its former holder: one whose Lease was taken is as good as reopened.
func lostTo(task *v1alpha1.Task, c *toolset.Caller, cause error) *v1alpha1.Task {
	if !errors.Is(cause, errLeaseTaken) || !tasks.Holds(task, c.Plate, c.Session) {
		return task
	}
	reopened := task.DeepCopy()
	reopened.Status.Claim, reopened.Status.State = nil, v1alpha1.TaskTodo
	return reopened
}

func (t *Toolset) renewOnce(ctx context.Context, a *access, task *v1alpha1.Task) (*coordinationv1.Lease, error) {
	api := t.kube.CoordinationV1().Leases(task.Namespace)
	d, now := leases.Duration(task, a.room), t.clock.Now()
	lease, known := t.view.TaskLease(task)
	if !known {
		return t.createLease(ctx, task, leases.New(task, d, now))
	}
	next, ok := leases.Renewed(lease, task, d, now)
	if !ok {
		return nil, errLeaseTaken
	}
	next.ManagedFields = untracked
	written, err := api.Update(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		t.view.Gone(lease)
		return t.createLease(ctx, task, leases.New(task, d, now))
	}
	if err != nil {
		return nil, fmt.Errorf("renewing lease %s: %w", next.Name, err)
	}
	written.ManagedFields = nil
	t.view.Wrote(written)
	return written, nil
}

// untracked tells the API server to keep no record of who owns which field of a Lease: nobody applies Leases, and the record
// would be made anew at each heartbeat.
var untracked = []metav1.ManagedFieldsEntry{{}}

// createLease makes the Lease of a claim that the controller has not made yet. A missing Lease may also mean that the claim
// ended, so the task is looked at first.
func (t *Toolset) createLease(ctx context.Context, task *v1alpha1.Task, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := t.refresh(ctx, task); err != nil {
		return nil, err
	}
	if current, err := t.current(task); err != nil || current.Status.Epoch != task.Status.Epoch {
		return nil, errLeaseTaken
	}
	written, err := t.kube.CoordinationV1().Leases(lease.Namespace).Create(ctx, lease, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating lease %s: %w", lease.Name, err)
	}
	written.ManagedFields = nil
	t.view.Wrote(written)
	return written, nil
}

// refreshBoth reads a task and its Lease from the API server into the view.
func (t *Toolset) refreshBoth(ctx context.Context, task *v1alpha1.Task) error {
	if err := t.refresh(ctx, task); err != nil {
		return err
	}
	lease, err := t.kube.CoordinationV1().Leases(task.Namespace).Get(ctx, ids.LeaseName(task.Name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if old, ok := t.view.TaskLease(task); ok {
			t.view.Gone(old)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the lease of task %s/%s: %w", task.Namespace, task.Name, err)
	}
	lease.ManagedFields = nil
	t.view.Saw(lease)
	return nil
}
