// Package pace keeps a controller that counts things from counting, and writing, each time one of them moves.
package pace

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Every is how often counts are brought up to date while things move.
const Every = 5 * time.Second

// Pacer remembers when each object was last dealt with. What comes soon after waits until the time is up, and waits
// together; what comes to a quiet object waits for nothing. It is safe for concurrent use.
type Pacer struct {
	clock clock.PassiveClock
	every time.Duration

	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

// New makes a Pacer that lets each object through once in a while. Zero stands for Every.
func New(c clock.PassiveClock, every time.Duration) *Pacer {
	if every == 0 {
		every = Every
	}
	return &Pacer{clock: c, every: every, last: map[types.NamespacedName]time.Time{}}
}

// Mark notes that an object is being dealt with now.
func (p *Pacer) Mark(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[key] = p.clock.Now()
}

// Forget drops an object that is gone.
func (p *Pacer) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}

// Delay gives how long an object has to wait, zero when its turn has come.
func (p *Pacer) Delay(key types.NamespacedName) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[key]
	if !ok {
		return 0
	}
	return max(0, p.every-p.clock.Since(last))
}

// Queue is the part of a work queue that Enqueue needs.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Enqueue asks for an object to be dealt with when its turn comes.
func (p *Pacer) Enqueue(q Queue, key types.NamespacedName) {
	if d := p.Delay(key); d > 0 {
		q.AddAfter(reconcile.Request{NamespacedName: key}, d)
		return
	}
	q.Add(reconcile.Request{NamespacedName: key})
}
