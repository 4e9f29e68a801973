package roomlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// keyLife is how long a key is known at least after its message was sent, and an hour more for clocks that differ.
const keyLife = 25 * time.Hour

// errSeamMoved sends a message back whose key must be looked for in what has moved to the blob store meanwhile.
var errSeamMoved = errors.New("messages have moved to the blob store meanwhile")

// Archived looks for what was sent under a key among the messages that have moved to the blob store, up to a seam of the
// log. Only what was sent in the last 24 hours is looked for. The error is a *problem.Problem when the content differs.
func (c *Committer) Archived(
	ctx context.Context, room *v1alpha1.Room, seam Seam, key, payload string,
) (Receipt, bool, error) {
	if key == "" || c.archive == nil || seam.Archived == 0 || c.clock.Since(seam.Time) > keyLife {
		return Receipt{}, false, nil
	}
	e, found, err := c.archive.Sent(ctx, room, seam.Archived, key)
	switch {
	case err != nil:
		return Receipt{}, false, fmt.Errorf("looking for a key in the archive of room %s: %w", room.Name, err)
	case !found:
		return Receipt{}, false, nil
	case e.Message.Payload != payload:
		return Receipt{}, true, conflict()
	}
	return Receipt{Seq: e.Seq, Message: e.Message, Duplicate: true}, true, nil
}

// claim takes a batch of our own that the API server has as written, once it is sure that its number was not free for having
// been archived and deleted.
func (c *Committer) claim(ctx context.Context, a *attempt, batch *v1alpha1.MessageBatch) (verdict, error) {
	ok, err := c.enter(ctx, a.lane.room, a.log, batch)
	switch {
	case err != nil:
		return uncertain, err
	case !ok:
		return overtaken, fmt.Errorf("batch %d of room %s had moved to the blob store", batch.Spec.Number, a.lane.room.Name)
	}
	c.took(a, batch)
	return written, nil
}

// enter takes a batch into the log, false when it is none: a writer whose view was far behind took a number that had been
// archived and was free again. The room's status tells, and it is read where the log alone leaves a doubt.
func (c *Committer) enter(ctx context.Context, room *v1alpha1.Room, log *Log, batch *v1alpha1.MessageBatch) (bool, error) {
	number := batch.Spec.Number
	if !log.surely(batch) {
		if err := c.readSeam(ctx, room); err != nil {
			return false, err
		}
		if log.Seam().Batch >= number {
			return false, nil
		}
		log.prove(number)
	}
	c.book.Apply(batch)
	return true, nil
}

func (c *Committer) readSeam(ctx context.Context, room *v1alpha1.Room) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	now, err := c.store.Room(ctx, room.Namespace, room.Name)
	if err != nil {
		return fmt.Errorf("reading where the log of room %s begins: %w", room.Name, err)
	}
	if now.UID == room.UID {
		c.book.Saw(now)
	}
	return nil
}

// behindSeam says whether the log ended before the seam, so that there is more behind it. The room is read when the log's
// last batch is so old that this may be.
func (c *Committer) behindSeam(ctx context.Context, room *v1alpha1.Room, log *Log) (bool, error) {
	number, _ := log.tail()
	if last, ok := log.batch(number - 1); ok && c.clock.Since(last.CreationTimestamp.Time) < near {
		return false, nil
	}
	if err := c.readSeam(ctx, room); err != nil {
		return false, err
	}
	now, _ := log.tail()
	return now != number, nil
}

// abandon answers a group whose attempt had no answer, and whose number has moved to the blob store meanwhile: whether it
// stands there is not known here. With a key it is looked for.
func abandon(group []*sending) {
	for _, s := range group {
		if s.message.Key != "" {
			s.finish(Receipt{}, errSeamMoved)
			continue
		}
		s.finish(Receipt{}, problem.New(problem.Unavailable, "the message may have been sent: read the room before you send it again").
			WithHint("with an idempotency_key the same call may be made again"))
	}
}
