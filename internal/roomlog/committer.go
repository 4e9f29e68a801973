package roomlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// Store reads and creates MessageBatches at the API server, without a cache.
type Store interface {
	// Create makes the batch and gives it as the API server answers it.
	Create(ctx context.Context, batch *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error)
	// Get reads a batch.
	Get(ctx context.Context, namespace, name string) (*v1alpha1.MessageBatch, error)
	// Room reads a room.
	Room(ctx context.Context, namespace, name string) (*v1alpha1.Room, error)
}

// Archive finds what was sent in the part of a room's log that has moved to the blob store.
type Archive interface {
	// Sent gives what was sent under a key within the last 24 hours, false when nothing was. through is how far that part
	// goes: further ones are not looked at.
	Sent(ctx context.Context, room *v1alpha1.Room, through int64, key string) (Entry, bool, error)
}

// Bounds of the committer.
const (
	// maxQueue is how many messages may wait in one room.
	maxQueue = 2048
	// commitTimeout is how long a commit is tried before its senders are told that the outcome is not known.
	commitTimeout = 20 * time.Second
	// attemptTimeout bounds one API call.
	attemptTimeout = 8 * time.Second
)

// Receipt says where a message stands in the log.
type Receipt struct {
	// Seq of the message.
	Seq int64
	// Message as it stands in the log.
	Message *v1alpha1.Message
	// Duplicate is true when the message had been sent before under the same key.
	Duplicate bool
}

// Committer appends to the logs of rooms. It is safe for concurrent use, and any number of committers in any number of
// processes may append to the same room.
type Committer struct {
	store  Store
	book   *Book
	clock  clock.PassiveClock
	writer string
	count  atomic.Int64
	final  func(error) bool
	// archive is nil when there is no blob store.
	archive Archive

	mu    sync.Mutex
	lanes map[Key]*lane
}

// NewCommitter makes a committer. writer names the process, uniquely among all that ever write; at most 40 characters.
// archive, which may be nil, is where keys are looked for beside the log.
func NewCommitter(store Store, book *Book, clk clock.PassiveClock, writer string, archive Archive) *Committer {
	return &Committer{
		store: store, book: book, clock: clk, writer: writer, archive: archive, final: finally, lanes: map[Key]*lane{},
	}
}

// AsPerson makes the committer take it as final that the API server does not let the writer write: a person is told so, and
// no policy that is late is waited for. It must be called before the first Send.
func (c *Committer) AsPerson() *Committer {
	c.final = func(err error) bool {
		return finally(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	}
	return c
}

// Send appends a message to a room's log and waits until it stands there. The message must keep the bounds of the schema.
// A *problem.Problem says IDEMPOTENCY_CONFLICT, or UNAVAILABLE when the outcome is not known: with a key the same call may
// be made again.
func (c *Committer) Send(ctx context.Context, room *v1alpha1.Room, m v1alpha1.Message) (Receipt, error) {
	for {
		seam := c.book.Log(KeyOf(room)).Seam()
		if r, known, err := c.Archived(ctx, room, seam, m.Key, m.Payload); known || err != nil {
			return r, err
		}
		s := &sending{message: m, archived: seam.Archived, done: make(chan struct{})}
		//nolint:contextcheck // what is written for many senders does not end with one of them
		if err := c.enqueue(room, s); err != nil {
			return Receipt{}, err
		}
		select {
		case <-s.done:
			if errors.Is(s.err, errSeamMoved) {
				continue
			}
			return s.receipt, s.err
		case <-ctx.Done():
			return Receipt{}, fmt.Errorf("waiting for the message to be written: %w", ctx.Err())
		}
	}
}

// commit writes a group and answers each of its senders.
func (c *Committer) commit(l *lane, group []*sending) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	a := &attempt{lane: l, log: c.book.Log(l.key), group: group, writer: fmt.Sprintf("%s.%d", c.writer, c.count.Add(1))}
	var err error
	unsure := false
	for n := 0; ctx.Err() == nil; n++ {
		// The watch may have shown that an attempt with a lost answer went through.
		if there, ok := a.log.batch(a.number); ok && there.Spec.Writer == a.writer {
			var v verdict
			if v, err = c.claim(ctx, a, there); v == written {
				return
			}
			if v == uncertain {
				wait(ctx, backoff(n))
				continue
			}
		}
		if unsure && a.log.Seam().Batch >= a.number {
			abandon(a.group)
			return
		}
		if a.group = c.answerKnown(a.log, a.group); len(a.group) == 0 {
			return
		}
		var next verdict
		switch next, err = c.try(ctx, a); next {
		case written:
			if c.rivals(a.log) {
				// Let the one that lost go first in the next race. What waits meanwhile goes out together.
				wait(ctx, 4*time.Millisecond)
			}
			return
		case refused:
			c.refuse(l, a.group, err)
			return
		case overtaken:
			wait(ctx, time.Millisecond)
		case uncertain:
			wait(ctx, backoff(n))
		}
		unsure = next == uncertain
	}
	for _, s := range a.group {
		s.finish(Receipt{}, fmt.Errorf("writing to the log of room %s: %w", l.room.Name, err))
	}
}

// backoff is how long to wait at most before the next attempt.
func backoff(n int) time.Duration { return time.Duration(min(2<<min(n, 8), 400)) * time.Millisecond }

// attempt is a group on its way into the log. Until its outcome is known it keeps its number, its messages and its writer.
type attempt struct {
	lane   *lane
	log    *Log
	group  []*sending
	writer string
	number int64
}

// verdict on an attempt.
type verdict int

const (
	// written: the group stands in the log and its senders are answered.
	written verdict = iota
	// overtaken: another writer took the number.
	overtaken
	// uncertain: the outcome is not known.
	uncertain
	// refused: the API server will not take the group.
	refused
)

// rivals says whether another committer wrote to the log a moment ago.
func (c *Committer) rivals(log *Log) bool {
	number, _ := log.tail()
	for n := number - 1; n >= number-8; n-- {
		b, ok := log.batch(n)
		if !ok || c.clock.Since(b.Spec.Messages[0].At.Time) > 250*time.Millisecond {
			return false
		}
		if !strings.HasPrefix(b.Spec.Writer, c.writer+".") {
			return true
		}
	}
	return false
}

// wait waits a random time up to a limit, to keep rival writers apart.
func wait(ctx context.Context, limit time.Duration) {
	t := time.NewTimer(rand.N(limit)) //nolint:gosec // spreads, and hides nothing
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// answerKnown answers the messages that stand in the log already, and those that repeat another of the group. It gives the
// rest. As it is asked again after every lost race, a create that succeeds has compared its keys with the whole log.
// One whose key was looked for in a part of the log that has moved to the blob store since is sent back.
func (c *Committer) answerKnown(log *Log, group []*sending) []*sending {
	var rest []*sending
	first := map[string]*sending{}
	for _, s := range group {
		key := s.message.Key
		if key == "" {
			rest = append(rest, s)
			continue
		}
		if r, known := log.lookup(key); known {
			answer(log, s, r)
			continue
		}
		// The seam is looked at after the log: what left the log before lies within it.
		if c.archive != nil && log.Seam().Archived > s.archived {
			s.finish(Receipt{}, errSeamMoved)
			continue
		}
		if twin, twice := first[key]; twice {
			go func() {
				<-twin.done
				repeat(s, twin)
			}()
			continue
		}
		first[key] = s
		rest = append(rest, s)
	}
	return rest
}

func answer(log *Log, s *sending, r receipt) {
	if r.payload != s.message.Payload {
		s.finish(Receipt{}, conflict())
		return
	}
	e, ok := log.At(r.seq)
	if !ok {
		s.finish(Receipt{}, errSeamMoved)
		return
	}
	s.finish(Receipt{Seq: r.seq, Message: e.Message, Duplicate: true}, nil)
}

func repeat(s, twin *sending) {
	switch {
	case twin.message.Payload != s.message.Payload:
		s.finish(Receipt{}, conflict())
	case twin.err != nil:
		s.finish(Receipt{}, twin.err)
	default:
		r := twin.receipt
		r.Duplicate = true
		s.finish(r, nil)
	}
}

func conflict() *problem.Problem {
	return problem.New(problem.IdempotencyConflict,
		"this idempotency_key was used for another message: use a new key for a new message")
}

// try makes one attempt to append the group behind the end of the log.
func (c *Committer) try(ctx context.Context, a *attempt) (verdict, error) {
	batch := c.batch(a)
	callCtx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	created, err := c.store.Create(callCtx, batch)
	switch {
	case err == nil:
		return c.claim(ctx, a, created)
	case apierrors.IsAlreadyExists(err):
		return c.catchUp(ctx, a, err)
	case c.final(err):
		return refused, err
	}
	// The outcome is not known: what stands under the name decides.
	there, getErr := c.read(ctx, a.lane.room, a.number)
	switch {
	case apierrors.IsNotFound(getErr):
		return uncertain, err
	case getErr != nil:
		return uncertain, fmt.Errorf("%w (and reading the batch: %w)", err, getErr)
	case there.Spec.Writer == a.writer:
		return c.claim(ctx, a, there)
	}
	if _, err := c.enter(ctx, a.lane.room, a.log, there); err != nil {
		return uncertain, err
	}
	return overtaken, err
}

// catchUp reads the batches that took the places since the log's end, up to the present one, so that a committer whose
// watch is behind does not lose race after race.
func (c *Committer) catchUp(ctx context.Context, a *attempt, cause error) (verdict, error) {
	for n := a.number; ctx.Err() == nil; n++ {
		there, seen := a.log.batch(n)
		if !seen {
			var err error
			if there, err = c.read(ctx, a.lane.room, n); apierrors.IsNotFound(err) {
				return overtaken, cause
			} else if err != nil {
				return uncertain, fmt.Errorf("%w (and reading the batch: %w)", cause, err)
			}
		}
		if there.Spec.Writer == a.writer {
			return c.claim(ctx, a, there)
		}
		if !seen {
			if ok, err := c.enter(ctx, a.lane.room, a.log, there); err != nil {
				return uncertain, fmt.Errorf("%w (and: %w)", cause, err)
			} else if !ok {
				return overtaken, cause
			}
		}
	}
	return overtaken, cause
}

// CatchUp reads into the Book what the log of a room has beyond it at the API server, for a caller who knows that there is
// more than the watch has shown.
func (c *Committer) CatchUp(ctx context.Context, room *v1alpha1.Room) error {
	log := c.book.Log(KeyOf(room))
	for {
		number, _ := log.tail()
		there, err := c.read(ctx, room, number)
		switch {
		case apierrors.IsNotFound(err):
			if moved, err := c.behindSeam(ctx, room, log); err != nil || !moved {
				return err
			}
			continue
		case err != nil:
			return err
		}
		if _, err := c.enter(ctx, room, log, there); err != nil {
			return err
		}
		if now, _ := log.tail(); now == number {
			return nil // What stands under the name is no batch of the chain.
		}
	}
}

func (c *Committer) read(ctx context.Context, room *v1alpha1.Room, number int64) (*v1alpha1.MessageBatch, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	there, err := c.store.Get(ctx, room.Namespace, ids.BatchName(room.Name, room.UID, number))
	if err != nil {
		return nil, fmt.Errorf("reading batch %d of room %s: %w", number, room.Name, err)
	}
	return there, nil
}

// finally says whether an error is the API server's last word on the batch. That the writer itself is not allowed to write is
// none: an API server that has just started does not know roles and policies yet.
func finally(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// refuse answers a group that the API server does not take. One bad message must not take others with it, so a group is
// tried again one by one.
func (c *Committer) refuse(l *lane, group []*sending, err error) {
	if len(group) == 1 {
		group[0].finish(Receipt{}, fmt.Errorf("writing to the log of room %s: %w", l.room.Name, err))
		return
	}
	for _, s := range group {
		c.commit(l, []*sending{s})
	}
}

// batch makes the object that would stand at the end of the log.
func (c *Committer) batch(a *attempt) *v1alpha1.MessageBatch {
	number, seq := a.log.tail()
	a.number = number
	at := metav1.NewMicroTime(c.clock.Now())
	if last, ok := a.log.At(seq - 1); ok && at.Time.Before(last.Message.At.Time) {
		at = last.Message.At
	}
	room := a.lane.room
	batch := &v1alpha1.MessageBatch{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: room.Namespace,
			Name:      ids.BatchName(room.Name, room.UID, number),
			Labels:    map[string]string{v1alpha1.RoomLabel: room.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Room", Name: room.Name, UID: room.UID,
			}},
		},
		Spec: v1alpha1.MessageBatchSpec{
			RoomRef: v1alpha1.RoomReference{Name: room.Name}, Number: number, FirstSeq: seq, Writer: a.writer,
			Messages: make([]v1alpha1.Message, len(a.group)),
		},
	}
	for i, s := range a.group {
		batch.Spec.Messages[i] = s.message
		batch.Spec.Messages[i].At = at
	}
	return batch
}

// took answers the senders of a batch of our own. Their order in the batch is their order in the
// group, also when the batch was found by reading it.
func (c *Committer) took(a *attempt, batch *v1alpha1.MessageBatch) {
	for i, s := range a.group {
		seq := batch.Spec.FirstSeq + int64(i)
		s.finish(Receipt{Seq: seq, Message: &batch.Spec.Messages[i]}, nil)
	}
}
