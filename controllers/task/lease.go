package task

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/conditions"
	"github.com/agentrooms/agentrooms/controllers/internal/metrics"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// margin is added to the time until a lease runs out, so that it has run out when the controller looks again.
const margin = 20 * time.Millisecond

// verdict is what is to be done about the Lease of a task.
type verdict string

const (
	// leaseNone has nothing to do and nothing to wait for.
	leaseNone verdict = "none"
	// leaseCreate makes the Lease of a claim.
	leaseCreate verdict = "create"
	// leaseTakeOver makes an earlier claim's Lease the present one's.
	leaseTakeOver verdict = "take over"
	// leaseDelete removes a Lease that is nobody's.
	leaseDelete verdict = "delete"
	// leaseDoubt has a Lease of a later claim than the task that was read: one of the two views is wrong.
	leaseDoubt verdict = "doubt"
	// leaseHold waits for the Lease to run out.
	leaseHold verdict = "hold"
	// leaseExpire takes the Lease away and reopens the task.
	leaseExpire verdict = "expire"
	// leaseFinish reopens a task whose Lease was taken away before.
	leaseFinish verdict = "finish"
	// leaseStale leaves the task with a holder that does not renew.
	leaseStale verdict = "stale"
)

// judge says what is to be done about a Lease. remaining gives how long the holder has by the observer's clock; it is
// asked only about the Lease of the present claim.
func judge(
	t *v1alpha1.Task, l *coordinationv1.Lease, onExpiry v1alpha1.LeaseExpiryAction, remaining func() time.Duration,
) verdict {
	doing := t.Status.State == v1alpha1.TaskDoing
	switch {
	case l == nil && doing:
		return leaseCreate
	case l == nil:
		return leaseNone
	case !metav1.IsControlledBy(l, t):
		// Left by a task that had the name before, or made by hand.
		return leaseDelete
	case leases.Epoch(l) > t.Status.Epoch:
		return leaseDoubt
	case !doing && tombstone(t, l):
		return leaseNone
	case !doing:
		return leaseDelete
	case leases.Taken(l, t):
		return leaseFinish
	case !leases.Current(l, t):
		return leaseTakeOver
	case remaining() > 0:
		return leaseHold
	case onExpiry == v1alpha1.LeaseMarkStale:
		return leaseStale
	default:
		return leaseExpire
	}
}

// tombstone says whether a Lease marks the expiry of the last claim. It stays while the task is open, so that a renewal
// that comes late finds it taken away. Were it deleted, a bridge that has not heard of the expiry could make it anew and
// tell the former holder that it still holds the task.
func tombstone(t *v1alpha1.Task, l *coordinationv1.Lease) bool {
	last := t.Status.LastClaim
	return leases.HolderOf(l) == "" && last != nil && last.Ended == v1alpha1.ClaimExpired &&
		last.Epoch == leases.Epoch(l) && !tasks.Terminal(t.Status.State)
}

// reconcileLease acts on the Lease of the task as it was read, and gives when to look again. A Lease that somebody deletes
// meanwhile wakes the controller by that, and a claim then gets its Lease anew: its time begins again.
func (r *Reconciler) reconcileLease(ctx context.Context, s *scope) (time.Duration, error) {
	key := client.ObjectKeyFromObject(s.task).String()
	var left time.Duration
	v := judge(s.task, s.lease, leases.OnExpiry(s.room), func() time.Duration {
		left = r.observer.Remaining(key, s.lease, s.now)
		return left
	})
	if s.task.Status.State != v1alpha1.TaskDoing {
		r.observer.Forget(key)
	}
	if err := r.actOnLease(ctx, s, v); err != nil {
		return 0, err
	}
	leaseLive(s, v)
	if v == leaseHold {
		return left + margin, nil
	}
	return 0, nil
}

func (r *Reconciler) actOnLease(ctx context.Context, s *scope, v verdict) error {
	switch v {
	case leaseCreate:
		return r.createLease(ctx, s)
	case leaseTakeOver:
		return r.takeOverLease(ctx, s)
	case leaseDelete:
		return r.deleteLease(ctx, s.lease)
	case leaseDoubt:
		return r.doubtLease(ctx, s)
	case leaseExpire:
		if err := r.Client.Update(ctx, leases.Cleared(s.lease)); err != nil {
			return fmt.Errorf("taking the lease of task %s from its holder: %w", s.task.Name, err)
		}
		expire(s)
	case leaseFinish:
		expire(s)
	case leaseNone, leaseHold, leaseStale:
	}
	return nil
}

// createLease makes the Lease of a claim. One that exists without being in the cache is new, or lacks its label.
func (r *Reconciler) createLease(ctx context.Context, s *scope) error {
	lease := leases.New(s.task, leases.Duration(s.task, s.room), s.now)
	err := r.Client.Create(ctx, lease)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("creating lease for task %s: %w", s.task.Name, err)
		}
		return nil
	}
	live := &coordinationv1.Lease{}
	if getErr := r.Live.Get(ctx, client.ObjectKeyFromObject(lease), live); getErr != nil {
		if apierrors.IsNotFound(getErr) {
			return err // It came and went. Try again.
		}
		return fmt.Errorf("reading the lease of task %s: %w", s.task.Name, getErr)
	}
	if live.Labels[v1alpha1.TaskLabel] == s.task.Name {
		return nil // The watch is about to bring it.
	}
	labelled := live.DeepCopy()
	metav1.SetMetaDataLabel(&labelled.ObjectMeta, v1alpha1.TaskLabel, s.task.Name)
	if err := r.Client.Update(ctx, labelled); err != nil {
		return fmt.Errorf("labelling the lease of task %s: %w", s.task.Name, err)
	}
	return nil
}

// takeOverLease makes an earlier claim's Lease the present one's.
func (r *Reconciler) takeOverLease(ctx context.Context, s *scope) error {
	lease, ok := leases.Renewed(s.lease, s.task, leases.Duration(s.task, s.room), s.now)
	if !ok {
		return nil
	}
	if err := r.Client.Update(ctx, lease); err != nil {
		return fmt.Errorf("taking over the lease of task %s: %w", s.task.Name, err)
	}
	return nil
}

// deleteLease deletes a Lease as it was read, and no later one.
func (r *Reconciler) deleteLease(ctx context.Context, lease *coordinationv1.Lease) error {
	err := r.Client.Delete(ctx, lease, client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting lease %s: %w", lease.Name, err)
	}
	return nil
}

// doubtLease asks the API server when a Lease belongs to a later claim than the task that was read. Mostly the watch of
// tasks is behind and will bring the claim. A Lease that is ahead of the task itself was tampered with, and would keep a
// dead holder's task for ever.
func (r *Reconciler) doubtLease(ctx context.Context, s *scope) error {
	live := &v1alpha1.Task{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.task), live); err != nil {
		return ignoreNotFound(err, "reading task %s from the API server", s.task.Name)
	}
	if live.UID != s.task.UID || live.Status.Epoch >= leases.Epoch(s.lease) {
		return nil
	}
	return r.deleteLease(ctx, s.lease)
}

// expire reopens a task whose Lease is taken away.
func expire(s *scope) {
	holder := tasks.ClaimHolder(s.next)
	status, ok := tasks.End(s.next, s.task.Status.Epoch, v1alpha1.ClaimExpired, controllerName, "the lease ran out", s.now)
	if !ok {
		return
	}
	s.next.Status = status
	s.events.Warning("LeaseExpired", "Reopen",
		fmt.Sprintf("%s did not renew its lease in time: the task is open again", holder))
	s.counts = append(s.counts, metrics.LeaseExpiries.WithLabelValues(string(v1alpha1.LeaseReopen)).Inc)
}

// leaseLive keeps the condition LeaseLive. It is there only once a holder has failed to renew: while all is well a claim
// costs one write less without it.
func leaseLive(s *scope, v verdict) {
	kind, list := v1alpha1.LeaseLiveCondition, &s.next.Status.Conditions
	switch {
	case s.next.Status.State != v1alpha1.TaskDoing:
		meta.RemoveStatusCondition(list, kind)
	case v == leaseStale:
		fresh := conditions.Reason(*list, kind) != v1alpha1.LeaseExpiredReason
		s.condition(kind, metav1.ConditionFalse, v1alpha1.LeaseExpiredReason,
			"the holder did not renew its lease in time, and the room leaves the task with it")
		if fresh {
			s.events.Warning("LeaseExpired", "MarkStale",
				fmt.Sprintf("%s did not renew its lease in time: the task stays with it", tasks.ClaimHolder(s.next)))
			s.counts = append(s.counts, metrics.LeaseExpiries.WithLabelValues(string(v1alpha1.LeaseMarkStale)).Inc)
		}
	case v == leaseHold && conditions.Reason(*list, kind) != "":
		s.condition(kind, metav1.ConditionTrue, v1alpha1.LeaseHeldReason, "the lease was renewed in time")
	}
}
