package roomlog

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// Reader reads MessageBatches at the API server, without a cache.
type Reader interface {
	// Get reads a batch.
	Get(ctx context.Context, namespace, name string) (*v1alpha1.MessageBatch, error)
	// Oldest gives the oldest batch of a room's log that is still there, nil when there is none.
	Oldest(ctx context.Context, room *v1alpha1.Room) (*v1alpha1.MessageBatch, error)
}

// Bounds of Open.
const (
	// readAhead is how many batches are read at once on the way back.
	readAhead = 8
	// maxDoubt is how many batches written by people are followed back to one that says for sure where it stands.
	maxDoubt = 64
)

// Open reads the end of a room's log into the Book, for a process that does not watch it. It asks about as often as the
// logarithm of the log's length to find the last batch, and then goes back batch by batch until enough says that the batch
// it is given is old enough, or to the seam that the room's status has. The room must have been read within Grace, and the
// log in the Book must be empty before.
func (b *Book) Open(ctx context.Context, r Reader, room *v1alpha1.Room, enough func(*v1alpha1.MessageBatch) bool) error {
	e := &ending{reader: r, room: room}
	first, last, err := e.find(ctx)
	if err != nil || last == nil {
		return err
	}
	batches, err := e.back(ctx, first, last, enough)
	if err != nil {
		return err
	}
	b.Saw(room)
	log := b.Log(KeyOf(room))
	log.begin(batches[len(batches)-1])
	for _, batch := range slices.Backward(batches) {
		b.Apply(batch)
	}
	// The numbers behind the seam have no gap, so that none of these was free again.
	log.prove(last.Spec.Number)
	return nil
}

// ending is the end of a room's log while it is looked for.
type ending struct {
	reader Reader
	room   *v1alpha1.Room
}

// get reads a batch by its number, nil when there is none.
func (e *ending) get(ctx context.Context, number int64) (*v1alpha1.MessageBatch, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	batch, err := e.reader.Get(ctx, e.room.Namespace, ids.BatchName(e.room.Name, e.room.UID, number))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading batch %d of room %s: %w", number, e.room.Name, err)
	}
	return batch, nil
}

// begin makes an empty log begin with a batch that was read in its middle, which says itself where it stands. Where the log
// begins with that batch anyway, its place is known.
func (l *Log) begin(oldest *v1alpha1.MessageBatch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.batches) == 0 && l.first != oldest.Spec.Number {
		l.first, l.next = oldest.Spec.Number, oldest.Spec.FirstSeq
	}
	l.proven = max(l.proven, oldest.Spec.Number)
}

// find gives the number of the oldest batch that the cluster needs, and the last batch, nil when the log is empty. It begins
// behind the seam: a number before it may be free, or taken by a writer who does not know better.
func (e *ending) find(ctx context.Context) (first int64, last *v1alpha1.MessageBatch, err error) {
	if last, err = e.get(ctx, SeamOf(e.room).Batch+1); err != nil {
		return 0, nil, err
	}
	if last == nil {
		if last, err = e.reader.Oldest(ctx, e.room); err != nil || last == nil {
			return 0, nil, err
		}
	}
	first = last.Spec.Number
	last, err = e.search(ctx, last)
	return first, last, err
}

// search finds the last batch from one that exists: the numbers have no gap, so it doubles its step until a number is free,
// and halves the rest. The room's status is a first guess, as no batch holds less than one message.
func (e *ending) search(ctx context.Context, there *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error) {
	step, free := max(1, e.room.Status.LastSeq-there.Spec.Number), int64(0)
	for tries := 0; free == 0 || free-there.Spec.Number > 1; tries++ {
		batch, err := e.get(ctx, there.Spec.Number+step)
		switch {
		case err != nil:
			return nil, err
		case batch == nil:
			free = there.Spec.Number + step
		case tries == 0:
			there, step = batch, 1
		default:
			there, step = batch, step*2
		}
		if free > 0 {
			step = (free - there.Spec.Number) / 2
		}
	}
	return there, nil
}

// Find gives a message by its seq from the API server, false when it is not there. It halves its way through the log, and
// believes what the batches say of where they stand.
func Find(ctx context.Context, r Reader, room *v1alpha1.Room, seq int64) (*v1alpha1.Message, bool, error) {
	e := &ending{reader: r, room: room}
	first, last, err := e.find(ctx)
	if err != nil || last == nil {
		return nil, false, err
	}
	for low, high := first, last.Spec.Number; low <= high; {
		middle := (low + high) / 2
		batch, err := e.get(ctx, middle)
		if err != nil || batch == nil {
			return nil, false, err
		}
		switch i := seq - batch.Spec.FirstSeq; {
		case i < 0:
			high = middle - 1
		case i >= int64(len(batch.Spec.Messages)):
			low = middle + 1
		default:
			return &batch.Spec.Messages[i], true, nil
		}
	}
	return nil, false, nil
}

// back gives the batches from the last one to one that is old enough and can be believed, newest first.
func (e *ending) back(
	ctx context.Context, first int64, last *v1alpha1.MessageBatch, enough func(*v1alpha1.MessageBatch) bool,
) ([]*v1alpha1.MessageBatch, error) {
	batches := []*v1alpha1.MessageBatch{last}
	doubt, done := 0, enough(last)
	for at := last; ; {
		if at.Spec.Number <= first || (done && (sure(at) || doubt >= maxDoubt)) {
			return batches, nil
		}
		piece, err := e.piece(ctx, at.Spec.Number, first)
		if err != nil || len(piece) == 0 {
			return batches, err
		}
		for _, at = range piece {
			batches = append(batches, at)
			if done {
				doubt++
			}
			if done = done || enough(at); done && sure(at) {
				return batches, nil
			}
		}
	}
}

// piece reads some batches before a number, newest first. It ends where one is gone.
func (e *ending) piece(ctx context.Context, before, first int64) ([]*v1alpha1.MessageBatch, error) {
	n := min(readAhead, before-first)
	found := make([]*v1alpha1.MessageBatch, n)
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		group.Go(func() (err error) {
			found[i], err = e.get(ctx, before-1-i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err //nolint:wrapcheck // says which batch
	}
	if gone := slices.Index(found, nil); gone >= 0 {
		found = found[:gone]
	}
	return found, nil
}

// sure says whether a batch tells the truth about where it stands. The API server holds people to their name and to nothing
// else; what bridge and manager write can be believed.
func sure(batch *v1alpha1.MessageBatch) bool {
	return batch.Spec.Number == 1 || slices.ContainsFunc(batch.Spec.Messages, func(m v1alpha1.Message) bool {
		return m.Sender.Type != v1alpha1.SenderHuman
	})
}
