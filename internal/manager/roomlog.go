package manager

import (
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers"
	"github.com/agentrooms/agentrooms/controllers/logs"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// poster appends to the logs of rooms.
type poster struct {
	logs      *logs.Logs
	committer *roomlog.Committer
}

func newPoster(mgr ctrl.Manager, l *logs.Logs, clk clock.PassiveClock, archive roomlog.Archive) *poster {
	if clk == nil {
		clk = clock.RealClock{}
	}
	store := &batchStore{writer: mgr.GetClient(), reader: mgr.GetAPIReader()}
	return &poster{logs: l, committer: roomlog.NewCommitter(store, l.Book, clk, ulid.Make().String(), archive)}
}

// Post appends a message to the log of a room. One whose key stands there already is dropped.
func (p *poster) Post(ctx context.Context, room *v1alpha1.Room, m v1alpha1.Message) error {
	select {
	case <-p.logs.Ready():
	case <-ctx.Done():
		return fmt.Errorf("waiting for the logs of rooms: %w", ctx.Err())
	}
	_, err := p.committer.Send(ctx, room, m)
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

// Room reads a room.
func (s *batchStore) Room(ctx context.Context, namespace, name string) (*v1alpha1.Room, error) {
	room := &v1alpha1.Room{}
	if err := s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, room); err != nil {
		return nil, err //nolint:wrapcheck // the committer judges the API server's own error
	}
	return room, nil
}
