package view

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// maxLagging own writes are timed at once; further ones are not.
const maxLagging = 1024

// lag times how long own writes take to come back by the watch.
type lag struct {
	clock   clock.PassiveClock
	observe func(time.Duration)
	mu      sync.Mutex
	out     map[types.UID]lagging
}

type lagging struct {
	obj metav1.Object
	at  time.Time
}

func newLag(clk clock.PassiveClock, observe func(time.Duration)) *lag {
	if observe == nil {
		observe = func(time.Duration) {}
	}
	return &lag{clock: clk, observe: observe, out: map[types.UID]lagging{}}
}

func (l *lag) wrote(o metav1.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.out) < maxLagging {
		l.out[o.GetUID()] = lagging{obj: o, at: l.clock.Now()}
	}
}

func (l *lag) saw(o metav1.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, ok := l.out[o.GetUID()]
	if !ok || newer(w.obj, o) {
		return
	}
	delete(l.out, o.GetUID())
	l.observe(l.clock.Since(w.at))
}

// forget drops an object that is gone: its last write will not come back.
func (l *lag) forget(o metav1.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.out, o.GetUID())
}
