package roomlog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

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

	mu    sync.Mutex
	lanes map[Key]*lane
}

// NewCommitter makes a committer. writer names the process, uniquely among all that ever write; at most 40 characters.
func NewCommitter(store Store, book *Book, clk clock.PassiveClock, writer string) *Committer {
	return &Committer{store: store, book: book, clock: clk, writer: writer, lanes: map[Key]*lane{}}
}

// lane is what waits to be appended to one room. A goroutine works on it while something waits, and none otherwise.
type lane struct {
	key     Key
	room    *v1alpha1.Room
	waiting []*sending
}

type sending struct {
	message v1alpha1.Message
	done    chan struct{}
	receipt Receipt
	err     error
}

func (s *sending) finish(r Receipt, err error) {
	s.receipt, s.err = r, err
	close(s.done)
}

// Send appends a message to a room's log and waits until it stands there. The message must keep the bounds of the schema.
// A *problem.Problem says IDEMPOTENCY_CONFLICT, or UNAVAILABLE when the outcome is not known: with a key the same call may
// be made again.
func (c *Committer) Send(ctx context.Context, room *v1alpha1.Room, m v1alpha1.Message) (Receipt, error) {
	s := &sending{message: m, done: make(chan struct{})}
	if err := c.enqueue(room, s); err != nil {
		return Receipt{}, err
	}
	select {
	case <-s.done:
		return s.receipt, s.err
	case <-ctx.Done():
		return Receipt{}, fmt.Errorf("waiting for the message to be written: %w", ctx.Err())
	}
}

func (c *Committer) enqueue(room *v1alpha1.Room, s *sending) error {
	k := KeyOf(room)
	c.mu.Lock()
	defer c.mu.Unlock()
	l, running := c.lanes[k]
	if !running {
		l = &lane{key: k, room: room}
		c.lanes[k] = l
	}
	if len(l.waiting) >= maxQueue {
		p := problem.New(problem.RateLimited, "too many messages wait to be written to this room: try again shortly")
		p.RetryAfterSeconds = 1
		return p
	}
	l.waiting = append(l.waiting, s)
	if !running {
		go c.work(l)
	}
	return nil
}

// work writes until nothing waits.
func (c *Committer) work(l *lane) {
	for {
		c.mu.Lock()
		if len(l.waiting) == 0 {
			delete(c.lanes, l.key)
			c.mu.Unlock()
			return
		}
		group, rest := cut(l.waiting)
		l.waiting = rest
		c.mu.Unlock()
		c.commit(l, group)
	}
}

// cut takes as many messages from the front as one batch may hold.
func cut(waiting []*sending) (group, rest []*sending) {
	characters, mentions, n := 0, 0, 0
	for n < len(waiting) && n < v1alpha1.MaxBatchMessages {
		m := &waiting[n].message
		characters += utf8.RuneCountInString(m.Body)
		mentions += len(m.Mentions)
		if n > 0 && (characters > v1alpha1.MaxBatchCharacters || mentions > v1alpha1.MaxBatchMentions) {
			break
		}
		n++
	}
	return waiting[:n:n], waiting[n:]
}

// commit writes a group and answers each of its senders.
func (c *Committer) commit(l *lane, group []*sending) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	log := c.book.Log(l.key)
	writer := fmt.Sprintf("%s.%d", c.writer, c.count.Add(1))
	var err error
	for attempt := 0; ctx.Err() == nil; attempt++ {
		if group = answerKnown(log, group); len(group) == 0 {
			return
		}
		var retry bool
		if retry, err = c.try(ctx, l, log, group, writer); err == nil {
			return
		}
		if !retry {
			c.refuse(l, group, err)
			return
		}
		backOff(ctx, attempt)
	}
	for _, s := range group {
		s.finish(Receipt{}, fmt.Errorf("writing to the log of room %s: %w", l.room.Name, err))
	}
}

// backOff waits a random time that grows with the attempts, to keep rival writers apart.
func backOff(ctx context.Context, attempt int) {
	limit := min(2<<min(attempt, 8), 400)
	t := time.NewTimer(time.Duration(rand.IntN(limit*1000)) * time.Microsecond) //nolint:gosec // spreads, and hides nothing
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// answerKnown answers the messages that stand in the log already, and those that repeat another of the group. It gives the
// rest. As it is asked again after every lost race, a create that succeeds has compared its keys with the whole log.
func answerKnown(log *Log, group []*sending) []*sending {
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
	e, _ := log.At(r.seq)
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

// try makes one attempt to append the group behind the end of the log. With an error it says whether to try again.
func (c *Committer) try(ctx context.Context, l *lane, log *Log, group []*sending, writer string) (bool, error) {
	batch := c.batch(l, log, group, writer)
	callCtx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	created, err := c.store.Create(callCtx, batch)
	switch {
	case err == nil:
		c.took(log, group, created)
		return false, nil
	case apierrors.IsAlreadyExists(err):
	case refused(err):
		return false, err
	}
	// Either the name is taken, or the outcome is not known. In both cases what stands under the name decides.
	getCtx, cancelGet := context.WithTimeout(ctx, attemptTimeout)
	defer cancelGet()
	there, getErr := c.store.Get(getCtx, batch.Namespace, batch.Name)
	if getErr != nil {
		return true, fmt.Errorf("%w (and reading the batch: %w)", err, getErr)
	}
	if there.Spec.Writer == writer {
		c.took(log, group, there)
		return false, nil
	}
	c.book.Apply(there)
	return true, err
}

// refused says whether an error is the API server's last word on the batch.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsMethodNotSupported(err)
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

func (c *Committer) batch(l *lane, log *Log, group []*sending, writer string) *v1alpha1.MessageBatch {
	number, seq := log.tail()
	at := metav1.NewMicroTime(c.clock.Now())
	if last, ok := log.At(seq - 1); ok && at.Time.Before(last.Message.At.Time) {
		at = last.Message.At
	}
	room := l.room
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
			RoomRef: v1alpha1.RoomReference{Name: room.Name}, Number: number, FirstSeq: seq, Writer: writer,
			Messages: make([]v1alpha1.Message, len(group)),
		},
	}
	for i, s := range group {
		batch.Spec.Messages[i] = s.message
		batch.Spec.Messages[i].At = at
	}
	return batch
}

// took enters a batch of our own into the log and answers its senders. Their order in the batch is their order in the
// group, also when the batch was found by reading it.
func (c *Committer) took(log *Log, group []*sending, batch *v1alpha1.MessageBatch) {
	c.book.Apply(batch)
	for i, s := range group {
		seq := batch.Spec.FirstSeq + int64(i)
		s.finish(Receipt{Seq: seq, Message: &batch.Spec.Messages[i]}, nil)
	}
}
