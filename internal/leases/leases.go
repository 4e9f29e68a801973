// Package leases holds the arithmetic of task leases: how long they last, who may renew them, and when they have run out.
//
// A task's Lease belongs to one epoch of the task, kept in leaseTransitions. Expiry first takes the Lease away, by clearing
// its holder under its resourceVersion, and then reopens the task: a renewal that comes in between fails, and one that
// came before makes the clearing fail. A Lease without a holder is the tombstone of its epoch.
package leases

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// DefaultDuration of a lease when neither task nor room say anything.
const DefaultDuration = 600 * time.Second

// Duration of a task's lease: the task's own, else the room's, else DefaultDuration. The room may be nil.
func Duration(task *v1alpha1.Task, room *v1alpha1.Room) time.Duration {
	if d := task.Spec.LeaseDurationSeconds; d > 0 {
		return time.Duration(d) * time.Second
	}
	if room != nil && room.Spec.LeasePolicy != nil && room.Spec.LeasePolicy.DurationSeconds > 0 {
		return time.Duration(room.Spec.LeasePolicy.DurationSeconds) * time.Second
	}
	return DefaultDuration
}

// OnExpiry says what the room wants to happen with a task whose lease ran out. The room may be nil.
func OnExpiry(room *v1alpha1.Room) v1alpha1.LeaseExpiryAction {
	if room != nil && room.Spec.LeasePolicy != nil && room.Spec.LeasePolicy.OnExpiry != "" {
		return room.Spec.LeasePolicy.OnExpiry
	}
	return v1alpha1.LeaseReopen
}

// New makes the Lease of a task's present claim. The task must be Doing.
func New(task *v1alpha1.Task, d time.Duration, now time.Time) *coordinationv1.Lease {
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: task.Namespace,
			Name:      ids.LeaseName(task.Name),
			Labels:    map[string]string{v1alpha1.TaskLabel: task.Name},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(task, v1alpha1.GroupVersion.WithKind("Task")),
			},
		},
	}
	acquire(l, task, d, now)
	return l
}

// acquire fills in the claim. The lease counts from now, by the clock of whoever writes it; nobody judges by that clock.
func acquire(l *coordinationv1.Lease, task *v1alpha1.Task, d time.Duration, now time.Time) {
	t := metav1.NewMicroTime(now)
	l.Spec.HolderIdentity = new(tasks.ClaimHolder(task))
	l.Spec.LeaseTransitions = new(int32(task.Status.Epoch)) //nolint:gosec // two billion claims of one task do not happen
	l.Spec.LeaseDurationSeconds = new(int32(d / time.Second))
	l.Spec.AcquireTime, l.Spec.RenewTime = &t, &t
}

// Epoch of the task that a Lease belongs to.
func Epoch(l *coordinationv1.Lease) int64 {
	if l.Spec.LeaseTransitions == nil {
		return 0
	}
	return int64(*l.Spec.LeaseTransitions)
}

// HolderOf a Lease, empty when it was taken away.
func HolderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// Taken says whether the Lease of the task's present epoch was taken from its holder, so that the task is to be reopened.
func Taken(l *coordinationv1.Lease, task *v1alpha1.Task) bool {
	return Epoch(l) == task.Status.Epoch && HolderOf(l) == ""
}

// Current says whether the Lease is the one of the task's present claim, held by its holder.
func Current(l *coordinationv1.Lease, task *v1alpha1.Task) bool {
	return Epoch(l) == task.Status.Epoch && HolderOf(l) != "" && HolderOf(l) == tasks.ClaimHolder(task)
}

// Renewed gives the Lease to write for a renewal by the task's holder, and false when the Lease was taken away or belongs
// to a later claim. The task must be Doing as far as the caller knows; a Lease of an earlier epoch is taken over.
func Renewed(l *coordinationv1.Lease, task *v1alpha1.Task, d time.Duration, now time.Time) (*coordinationv1.Lease, bool) {
	if Epoch(l) > task.Status.Epoch || Taken(l, task) {
		return nil, false
	}
	next := l.DeepCopy()
	if !Current(l, task) {
		acquire(next, task, d, now)
		return next, true
	}
	t := metav1.NewMicroTime(now)
	next.Spec.RenewTime = &t
	next.Spec.LeaseDurationSeconds = new(int32(d / time.Second))
	return next, true
}

// Cleared gives the Lease to write when it is taken from its holder. It must be written with the resourceVersion of l.
func Cleared(l *coordinationv1.Lease) *coordinationv1.Lease {
	next := l.DeepCopy()
	next.Spec.HolderIdentity = new("")
	return next
}

// ExpiresAt gives when a Lease runs out by the clock of whoever renewed it. It is for people and agents to plan by, and
// decides nothing.
func ExpiresAt(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)
}

// Observer judges expiry by the observer's own clock: a lease has run out when its renewTime has not changed for its
// duration since the observer first saw it. So a clock that is wrong costs latency and never safety, as in client-go's
// leader election. The zero value is ready; it is safe for concurrent use.
type Observer struct {
	mu   sync.Mutex
	seen map[string]sighting
}

type sighting struct {
	renewed time.Time
	epoch   int64
	at      time.Time
}

// Remaining gives how long the lease under a key lasts, zero or less when it has run out. now must come from one clock.
func (o *Observer) Remaining(key string, l *coordinationv1.Lease, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[string]sighting{}
	}
	var renewed time.Time
	if l.Spec.RenewTime != nil {
		renewed = l.Spec.RenewTime.Time
	}
	s, ok := o.seen[key]
	if !ok || !s.renewed.Equal(renewed) || s.epoch != Epoch(l) {
		s = sighting{renewed: renewed, epoch: Epoch(l), at: now}
		o.seen[key] = s
	}
	d := DefaultDuration
	if l.Spec.LeaseDurationSeconds != nil {
		d = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	return d - now.Sub(s.at)
}

// Forget drops what was seen under a key.
func (o *Observer) Forget(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.seen, key)
}

// Len gives how many leases are being observed.
func (o *Observer) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.seen)
}
