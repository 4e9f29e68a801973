package manager

import (
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// roomLog keeps the logs of rooms as far as posting to them needs: who wrote what under which key. It follows the watch in
// each process, so that one that comes to lead can post at once.
type roomLog struct {
	mgr       ctrl.Manager
	book      *roomlog.Book
	committer *roomlog.Committer
	ready     chan struct{}
}

func newRoomLog(mgr ctrl.Manager, clk clock.PassiveClock) *roomLog {
	if clk == nil {
		clk = clock.RealClock{}
	}
	book := roomlog.NewBook(nil)
	store := &batchStore{writer: mgr.GetClient(), reader: mgr.GetAPIReader()}
	return &roomLog{
		mgr: mgr, book: book, ready: make(chan struct{}),
		committer: roomlog.NewCommitter(store, book, clk, ulid.Make().String()),
	}
}

// NeedLeaderElection says that the logs are followed in any case.
func (*roomLog) NeedLeaderElection() bool { return false }

// Start follows the batches until the context ends.
func (l *roomLog) Start(ctx context.Context) error {
	informer, err := l.mgr.GetCache().GetInformer(ctx, &v1alpha1.MessageBatch{})
	if err != nil {
		return fmt.Errorf("watching message batches: %w", err)
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { l.saw(o, l.book.Apply) },
		UpdateFunc: func(_, o any) { l.saw(o, l.book.Apply) },
		DeleteFunc: func(o any) { l.saw(o, l.book.Forget) },
	})
	if err != nil {
		return fmt.Errorf("watching message batches: %w", err)
	}
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil
	}
	l.book.Settle()
	close(l.ready)
	<-ctx.Done()
	return nil
}

func (l *roomLog) saw(o any, then func(*v1alpha1.MessageBatch)) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if batch, ok := o.(*v1alpha1.MessageBatch); ok {
		then(batch)
	}
}

// Post appends a message to the log of a room. One whose key stands there already is dropped.
func (l *roomLog) Post(ctx context.Context, room *v1alpha1.Room, m v1alpha1.Message) error {
	select {
	case <-l.ready:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the logs of rooms: %w", ctx.Err())
	}
	_, err := l.committer.Send(ctx, room, m)
	return err //nolint:wrapcheck // says itself what it was about
}

// batchStore is the committer's way to the API server.
type batchStore struct {
	writer client.Client
	reader client.Reader
}

// Create makes a batch.
func (s *batchStore) Create(ctx context.Context, batch *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error) {
	created := batch.DeepCopy()
	if err := s.writer.Create(ctx, created); err != nil {
		return nil, err //nolint:wrapcheck // the committer judges the API server's own error
	}
	controllers.StripBatch(created)
	return created, nil
}

// Get reads a batch.
func (s *batchStore) Get(ctx context.Context, namespace, name string) (*v1alpha1.MessageBatch, error) {
	batch := &v1alpha1.MessageBatch{}
	if err := s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, batch); err != nil {
		return nil, err //nolint:wrapcheck // the committer judges the API server's own error
	}
	controllers.StripBatch(batch)
	return batch, nil
}
