package rooms

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/inboxes"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

const (
	// presenceInterval is how often an instance that is in use renews its Lease at most.
	presenceInterval = 30 * time.Second
	// flushInterval is how often the reads of an agent are written at most. It is less than the above, so that an agent with
	// one instance has them written each time.
	flushInterval = 20 * time.Second
	// presenceQueue bounds the renewals that wait. What finds no place is tried at the instance's next call.
	presenceQueue = 4096
	// presenceWorkers write renewals side by side.
	presenceWorkers = 2
	// presenceTimeout bounds one renewal.
	presenceTimeout = 10 * time.Second
	// lookInterval is how often the leases that an instance holds are looked at, at most: it may hold many, and calls often.
	lookInterval = time.Second
	// maxShown is how many instances of one agent are shown, so that one that calls itself something else each time fills
	// nothing. Those beyond it can call all the same; nobody sees them.
	maxShown = 256
	// maxInstances that are remembered.
	maxInstances = 20000
)

type instanceKey struct{ plate, session string }

// presence shows that instances live, behind their calls: a call notes it and goes on, workers write. Nothing is written
// for an instance that does not call.
type presence struct {
	t      *Toolset
	seed   maphash.Seed
	queues [presenceWorkers]chan job
	mu     sync.Mutex
	last   map[instanceKey]noted
	// flushed is when the reads of an agent were last written.
	flushed map[string]time.Time
}

type noted struct {
	// at is when the instance was last noted, and whether it listened then.
	at       time.Time
	wakeable bool
	// look is when the leases that it holds are to be looked at again.
	look time.Time
}

type job struct {
	caller   toolset.Caller
	wakeable bool
	task     *v1alpha1.Task
}

func newPresence(t *Toolset) *presence {
	p := &presence{t: t, seed: maphash.MakeSeed(), last: map[instanceKey]noted{}, flushed: map[string]time.Time{}}
	for i := range p.queues {
		p.queues[i] = make(chan job, presenceQueue)
	}
	return p
}

func (p *presence) start(ctx context.Context) {
	for _, queue := range p.queues {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case j := <-queue:
					p.work(ctx, j)
				}
			}
		}()
	}
}

// Touch notes that an instance showed a sign of life, and renews the task leases it holds that are half over.
func (t *Toolset) Touch(c *toolset.Caller, wakeable bool) {
	k, now := instanceKey{c.Plate, c.Session}, t.clock.Now()
	if t.presence.due(c, wakeable) {
		t.presence.enqueue(job{caller: *c, wakeable: wakeable})
	}
	if !t.presence.looks(k, now) {
		return
	}
	next := now.Add(lookInterval)
	for _, task := range t.view.HeldBy(c.Plate, c.Session) {
		half, ok := t.halfOver(task)
		switch {
		case !ok:
		case half.Before(now):
			t.presence.enqueue(job{caller: *c, task: task})
		case half.Before(next):
			next = half
		}
	}
	t.presence.lookAgain(k, next)
}

// halfOver gives when half of a task's lease is over, and false when it has none.
func (t *Toolset) halfOver(task *v1alpha1.Task) (time.Time, bool) {
	l, ok := t.view.TaskLease(task)
	if !ok || !leases.Current(l, task) {
		return time.Time{}, false
	}
	room, _ := t.view.Room(task.Namespace, task.Spec.RoomRef.Name)
	return t.clock.Now().Add(t.view.LeaseRemaining(l) - leases.Duration(task, room)/2), true
}

// looks says whether it is time to look at what an instance holds. A claim made since the last look has more than half of its
// lease left for longer than lookInterval.
func (p *presence) looks(k instanceKey, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !now.Before(p.last[k].look)
}

func (p *presence) lookAgain(k instanceKey, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, ok := p.last[k]; ok {
		n.look = at
		p.last[k] = n
	}
}

func (p *presence) due(c *toolset.Caller, wakeable bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, now := instanceKey{c.Plate, c.Session}, p.t.clock.Now()
	old, ok := p.last[k]
	if ok && now.Sub(old.at) < presenceInterval && (old.wakeable || !wakeable) {
		return false
	}
	if len(p.last) >= maxInstances {
		p.forgetOld(now)
	}
	p.last[k] = noted{at: now, wakeable: wakeable, look: old.look}
	return true
}

func (p *presence) forgetOld(now time.Time) {
	for k, n := range p.last {
		if now.Sub(n.at) > view.InstanceTTL {
			delete(p.last, k)
		}
	}
	if len(p.last) >= maxInstances {
		clear(p.last)
	}
	maps.DeleteFunc(p.flushed, func(_ string, at time.Time) bool { return now.Sub(at) > flushInterval })
}

// flushes says whether the reads of an agent are to be written now: not once more for each of its instances.
func (p *presence) flushes(plate string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.t.clock.Now()
	if at, ok := p.flushed[plate]; ok && now.Sub(at) < flushInterval {
		return false
	}
	p.flushed[plate] = now
	return true
}

// enqueue gives all of an instance's jobs to one worker, so that none overtakes another.
func (p *presence) enqueue(j job) {
	n := maphash.Comparable(p.seed, instanceKey{j.caller.Plate, j.caller.Session}) % presenceWorkers
	select {
	case p.queues[n] <- j:
	default:
		p.retry(j)
	}
}

// retry lets the next call of the instance try again.
func (p *presence) retry(j job) {
	if j.task == nil {
		p.mu.Lock()
		delete(p.last, instanceKey{j.caller.Plate, j.caller.Session})
		p.mu.Unlock()
	}
}

func (p *presence) work(ctx context.Context, j job) {
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()
	if j.task != nil {
		p.renewTask(ctx, j)
		return
	}
	if err := p.write(ctx, j); err != nil {
		p.t.log.V(1).Info("Showing that an instance lives failed", "plate", j.caller.Plate, "error", err.Error())
		p.retry(j)
	}
	p.flushReads(ctx, &j.caller)
}

// renewTask renews a lease in the name of its holder's other calls. The half may be over no more: many calls may have
// asked for the same renewal.
func (p *presence) renewTask(ctx context.Context, j job) {
	task, ok := p.t.view.Task(j.task.Namespace, j.task.Name)
	if !ok || !tasks.Holds(task, j.caller.Plate, j.caller.Session) {
		return
	}
	if half, ok := p.t.halfOver(task); !ok || p.t.clock.Now().Before(half) {
		return
	}
	room, ok := p.t.view.Room(task.Namespace, task.Spec.RoomRef.Name)
	if !ok {
		return
	}
	a, ok := p.t.member(&j.caller, room)
	if !ok || a.writable() != nil {
		return
	}
	result := "ok"
	if _, _, err := p.t.renew(ctx, a, task, nil); err != nil {
		result = "lost"
	}
	p.t.metrics.renews.WithLabelValues("implicit", result).Inc()
}

// write renews the instance's Lease, or makes it. When another replica was faster its word is taken, unless it does not
// know that the instance listens.
func (p *presence) write(ctx context.Context, j job) error {
	c := &j.caller
	api := p.t.kube.CoordinationV1().Leases(c.Agent.Namespace)
	var last error
	var squatter *coordinationv1.Lease
	for range maxAttempts {
		old, known := p.t.view.InstanceLease(c.Agent.Namespace, c.Plate, c.Session)
		if !known && p.t.view.InstanceCount(c.Plate) >= maxShown {
			return nil
		}
		lease := p.renewed(j, old)
		var written *coordinationv1.Lease
		if squatter != nil && !known {
			lease.ResourceVersion = squatter.ResourceVersion
		}
		if lease.ResourceVersion != "" {
			lease.ManagedFields = untracked
			written, last = api.Update(ctx, lease, metav1.UpdateOptions{})
		} else {
			written, last = api.Create(ctx, lease, metav1.CreateOptions{})
		}
		switch {
		case last == nil:
			written.ManagedFields = nil
			p.t.view.Wrote(written)
			return nil
		case apierrors.IsNotFound(last) && known:
			p.t.view.Gone(old)
		case apierrors.IsConflict(last) || apierrors.IsAlreadyExists(last):
			fresh, err := api.Get(ctx, lease.Name, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("reading lease %s: %w", lease.Name, err)
			}
			fresh.ManagedFields = nil
			if fresh.Labels[v1alpha1.InstanceLabel] != c.Plate {
				squatter = fresh // What has the name and no label was not made here, and shows nobody.
				continue
			}
			p.t.view.Saw(fresh)
			if !j.wakeable || fresh.Annotations[v1alpha1.WakeableAnnotation] == "true" {
				return nil
			}
		default:
			return fmt.Errorf("writing lease %s: %w", lease.Name, last)
		}
	}
	return fmt.Errorf("showing that the instance lives: %w", last)
}

func (p *presence) renewed(j job, old *coordinationv1.Lease) *coordinationv1.Lease {
	now := metav1.NewMicroTime(p.t.clock.Now())
	lease := newInstanceLease(&j.caller)
	if old != nil {
		lease = old.DeepCopy()
	} else {
		lease.Spec.AcquireTime = &now
	}
	lease.Spec.RenewTime = &now
	lease.Annotations = instanceAnnotations(&j.caller, j.wakeable)
	return lease
}

func newInstanceLease(c *toolset.Caller) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Agent.Namespace, Name: ids.InstanceLeaseName(c.Plate, c.Session),
			Labels: map[string]string{v1alpha1.InstanceLabel: c.Plate},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Agent", Name: c.Agent.Name, UID: c.Agent.UID,
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &c.Session, LeaseDurationSeconds: new(int32(view.InstanceTTL / time.Second)),
		},
	}
}

func instanceAnnotations(c *toolset.Caller, wakeable bool) map[string]string {
	out := map[string]string{}
	if c.Host != "" {
		out[v1alpha1.HostAnnotation] = c.Host
	}
	if c.Workspace != "" {
		out[v1alpha1.WorkspaceAnnotation] = c.Workspace
	}
	if wakeable {
		out[v1alpha1.WakeableAnnotation] = "true"
	}
	return out
}

// flushReads writes how far the agent has read, where its Inbox does not say so yet.
func (p *presence) flushReads(ctx context.Context, c *toolset.Caller) {
	if !p.flushes(c.Plate) {
		return
	}
	for _, room := range p.t.view.RoomsOf(c.Plate) {
		seq := p.t.reads.get(room.UID, c.Plate)
		box, ok := p.t.view.Inbox(room, c.Plate)
		if seq == 0 || !ok || box.Status.LastReadSeq >= seq {
			continue
		}
		a, ok := p.t.member(c, room)
		if !ok {
			continue
		}
		err := p.t.changeInbox(ctx, a, func(s *v1alpha1.InboxStatus, _ []inboxes.Ref) (*v1alpha1.InboxStatus, error) {
			if s.LastReadSeq >= seq {
				return nil, nil
			}
			next := s.DeepCopy()
			next.LastReadSeq = seq
			return next, nil
		})
		if err != nil {
			p.t.log.V(1).Info("Writing how far an agent has read failed", "plate", c.Plate, "error", err.Error())
		}
	}
}
