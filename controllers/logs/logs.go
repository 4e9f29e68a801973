// Package logs follows the logs of all rooms for the controllers of one process: where they begin, where they end, and what
// was sent under which key.
package logs

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// Logs follows the watches of rooms and batches in each process, so that one that comes to lead knows all at once. It is a
// Runnable of the manager.
type Logs struct {
	// Book holds the logs.
	Book *roomlog.Book

	mgr   ctrl.Manager
	ready chan struct{}
	mu    sync.RWMutex
	told  []func(types.NamespacedName)
}

// New makes Logs and adds them to a manager.
func New(mgr ctrl.Manager) (*Logs, error) {
	l := &Logs{mgr: mgr, ready: make(chan struct{})}
	l.Book = roomlog.NewBook(l.appended)
	if err := mgr.Add(l); err != nil {
		return nil, fmt.Errorf("adding the logs of rooms: %w", err)
	}
	return l, nil
}

// Over gives Logs of a Book that somebody else keeps.
func Over(book *roomlog.Book) *Logs {
	l := &Logs{Book: book, ready: make(chan struct{})}
	close(l.ready)
	return l
}

// Ready is closed when everything that existed has come.
func (l *Logs) Ready() <-chan struct{} { return l.ready }

// Of gives the log of a room.
func (l *Logs) Of(room *v1alpha1.Room) *roomlog.Log { return l.Book.Log(roomlog.KeyOf(room)) }

// NeedLeaderElection says that the logs are followed in any case.
func (*Logs) NeedLeaderElection() bool { return false }

// Start follows rooms and batches until the context ends.
func (l *Logs) Start(ctx context.Context) error {
	var synced []toolscache.InformerSynced
	for _, kind := range []client.Object{&v1alpha1.Room{}, &v1alpha1.MessageBatch{}} {
		informer, err := l.mgr.GetCache().GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: l.saw, UpdateFunc: func(_, o any) { l.saw(o) }, DeleteFunc: l.gone,
		})
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	close(l.ready)
	<-ctx.Done()
	return nil
}

func (l *Logs) saw(o any) {
	switch o := o.(type) {
	case *v1alpha1.Room:
		l.Book.Saw(o)
	case *v1alpha1.MessageBatch:
		l.Book.Apply(o)
	}
}

func (l *Logs) gone(o any) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	switch o := o.(type) {
	case *v1alpha1.Room:
		l.Book.Drop(roomlog.KeyOf(o))
	case *v1alpha1.MessageBatch:
		l.Book.Forget(o)
	}
}

// appended tells of a batch that stands in its log now, with all before it.
func (l *Logs) appended(k roomlog.Key, batch *v1alpha1.MessageBatch) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, tell := range l.told {
		tell(types.NamespacedName{Namespace: k.Namespace, Name: batch.Spec.RoomRef.Name})
	}
}

// Queue is where a controller's work waits.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Source is a controller's source: it hears of each room whose log has become longer. enqueue must not block.
func (l *Logs) Source(enqueue func(Queue, types.NamespacedName)) source.Source {
	return source.Func(func(_ context.Context, q Queue) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told = append(slices.Clone(l.told), func(room types.NamespacedName) { enqueue(q, room) })
		return nil
	})
}
