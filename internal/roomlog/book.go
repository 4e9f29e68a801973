package roomlog

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/inboxes"
)

// Key names a room's log: the namespace and the chain (ids.Chain).
type Key struct {
	Namespace, Chain string
}

// KeyOf gives the key of a room's log.
func KeyOf(room *v1alpha1.Room) Key {
	return Key{Namespace: room.Namespace, Chain: ids.Chain(room.Name, room.UID)}
}

// Book holds the logs that a process has seen. It is safe for concurrent use. The zero value is not ready: use NewBook.
type Book struct {
	mu       sync.RWMutex
	logs     map[Key]*Log
	onAppend func(Key, *v1alpha1.MessageBatch)
}

// NewBook makes an empty Book. onAppend, which may be nil, is called for each batch that is appended to a log, in order
// within a log; it must not block and must not call the Book.
func NewBook(onAppend func(Key, *v1alpha1.MessageBatch)) *Book {
	if onAppend == nil {
		onAppend = func(Key, *v1alpha1.MessageBatch) {}
	}
	return &Book{logs: map[Key]*Log{}, onAppend: onAppend}
}

// Log gives a room's log, an empty one when nothing was seen of it.
func (b *Book) Log(k Key) *Log {
	b.mu.RLock()
	l, ok := b.logs[k]
	b.mu.RUnlock()
	if ok {
		return l
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l, ok = b.logs[k]; !ok {
		l = newLog()
		b.logs[k] = l
	}
	return l
}

// Apply takes in a batch. It may come in any order and any number of times. One whose name is no batch name is ignored.
func (b *Book) Apply(batch *v1alpha1.MessageBatch) {
	chain, number, ok := ids.ParseBatchName(batch.Name)
	if !ok || number != batch.Spec.Number {
		return
	}
	k := Key{Namespace: batch.Namespace, Chain: chain}
	b.Log(k).apply(batch, func(appended *v1alpha1.MessageBatch) { b.onAppend(k, appended) })
}

// Saw takes in where the log of a room begins, as the room's status has it. Rooms and batches may come in any order.
func (b *Book) Saw(room *v1alpha1.Room) {
	k := KeyOf(room)
	b.Log(k).moveSeam(SeamOf(room), room.CreationTimestamp.Time, func(appended *v1alpha1.MessageBatch) { b.onAppend(k, appended) })
}

// Forget drops a batch that was deleted and waits for others. What stands in the log stays until the room's status says that
// it has moved to the blob store.
func (b *Book) Forget(batch *v1alpha1.MessageBatch) {
	chain, number, ok := ids.ParseBatchName(batch.Name)
	if !ok {
		return
	}
	b.mu.RLock()
	l, known := b.logs[Key{Namespace: batch.Namespace, Chain: chain}]
	b.mu.RUnlock()
	if known {
		l.forget(number)
	}
}

// Drop forgets the whole log of a room that is gone.
func (b *Book) Drop(k Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.logs, k)
}

// Entry is a message in its place.
type Entry struct {
	// Seq of the message.
	Seq int64
	// Message itself. It must not be changed.
	Message *v1alpha1.Message
}

// receipt is what the log knows of a message sent under a key.
type receipt struct {
	seq     int64
	payload string
}

// Log is the log of one room, as far as the process has seen it: from the seam on, which is where the part in the blob store
// ends. Its last seq never falls.
type Log struct {
	mu      sync.RWMutex
	seam    Seam
	made    time.Time
	first   int64
	batches []*v1alpha1.MessageBatch
	starts  []int64
	// left are the last ones that left the log, for a writer that has not heard of its own yet.
	left   []*v1alpha1.MessageBatch
	next   int64
	proven int64
	early  map[int64]*v1alpha1.MessageBatch
	keys   map[string]receipt
	refs   map[string][]inboxes.Ref
}

// maxLeft is how many batches are remembered that left the log.
const maxLeft = 8

func newLog() *Log {
	return &Log{
		next: 1, first: 1, early: map[int64]*v1alpha1.MessageBatch{},
		keys: map[string]receipt{}, refs: map[string][]inboxes.Ref{},
	}
}

// apply takes in a batch and everything that waited for it.
func (l *Log) apply(batch *v1alpha1.MessageBatch, appended func(*v1alpha1.MessageBatch)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := batch.Spec.Number
	if n < l.end() {
		return
	}
	l.early[n] = batch
	l.drain(appended)
}

// end gives the number of the next batch.
func (l *Log) end() int64 { return l.first + int64(len(l.batches)) }

func (l *Log) drain(appended func(*v1alpha1.MessageBatch)) {
	for {
		n := l.end()
		batch, ok := l.early[n]
		if !ok {
			return
		}
		delete(l.early, n)
		l.append(batch)
		appended(batch)
	}
}

// append counts the seqs itself: the chain says what they are, and a batch that lies about it changes nothing.
func (l *Log) append(batch *v1alpha1.MessageBatch) {
	start := l.next
	if l.follows(batch) {
		l.proven = batch.Spec.Number
	}
	l.batches, l.starts = append(l.batches, batch), append(l.starts, start)
	for i := range batch.Spec.Messages {
		m, seq := &batch.Spec.Messages[i], start+int64(i)
		if m.Key != "" {
			if _, known := l.keys[m.Key]; !known {
				l.keys[m.Key] = receipt{seq: seq, payload: m.Payload}
			}
		}
		for j, mention := range m.Mentions {
			l.refs[mention.Plate] = append(l.refs[mention.Plate], inboxes.Ref{
				Key: v1alpha1.MentionKey{Seq: seq, Index: int32(j)}, Session: mention.Session, At: m.At, //nolint:gosec // at most 49
			})
		}
	}
	l.next = start + int64(len(batch.Spec.Messages))
}

func (l *Log) forget(number int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.early, number)
}

func (l *Log) dropFirst() {
	batch, end := l.batches[0], l.next
	if len(l.starts) > 1 {
		end = l.starts[1]
	}
	for i := range batch.Spec.Messages {
		m := &batch.Spec.Messages[i]
		if l.keys[m.Key].seq < end {
			delete(l.keys, m.Key)
		}
		for _, mention := range m.Mentions {
			refs := l.refs[mention.Plate]
			cut, _ := slices.BinarySearchFunc(refs, end, func(r inboxes.Ref, s int64) int { return cmp.Compare(r.Key.Seq, s) })
			if l.refs[mention.Plate] = refs[cut:]; cut == len(refs) {
				delete(l.refs, mention.Plate)
			}
		}
	}
	if l.left = append(l.left, batch); len(l.left) > maxLeft {
		l.left = slices.Clone(l.left[1:])
	}
	l.batches[0] = nil
	l.batches, l.starts, l.first = l.batches[1:], l.starts[1:], l.first+1
}

// FirstSeq gives the seq of the first message that the log holds, that of the next one when it holds none.
func (l *Log) FirstSeq() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.starts) == 0 {
		return l.next
	}
	return l.starts[0]
}

// End gives the number of the last batch that was taken in, 0 when none was.
func (l *Log) End() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.end() - 1
}

// Trim drops all batches but the last ones, for who follows a log and has no use for what is behind.
func (l *Log) Trim(keep int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.batches) > keep {
		l.dropFirst()
	}
}

// LastSeq gives the seq of the last message, 0 when there is none.
func (l *Log) LastSeq() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.next - 1
}

// tail gives the number of the next batch and the seq of the next message.
func (l *Log) tail() (number, seq int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.end(), l.next
}

// batch gives a batch by its number, if the log holds it, or did a moment ago.
func (l *Log) batch(number int64) (*v1alpha1.MessageBatch, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if i := number - l.first; i >= 0 && i < int64(len(l.batches)) {
		return l.batches[i], true
	}
	i := slices.IndexFunc(l.left, func(b *v1alpha1.MessageBatch) bool { return b.Spec.Number == number })
	if i < 0 {
		return nil, false
	}
	return l.left[i], true
}

// lookup gives what was sent under a key.
func (l *Log) lookup(key string) (receipt, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	r, ok := l.keys[key]
	return r, ok
}

// At gives the message with a seq.
func (l *Log) At(seq int64) (Entry, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.at(seq)
}

func (l *Log) at(seq int64) (Entry, bool) {
	i, exact := slices.BinarySearch(l.starts, seq)
	if !exact {
		i--
	}
	if i < 0 || seq < 1 || seq >= l.next {
		return Entry{}, false
	}
	return Entry{Seq: seq, Message: &l.batches[i].Spec.Messages[seq-l.starts[i]]}, true
}

// Before gives up to limit messages before a seq, oldest first; before <= 0 stands for the end of the log.
func (l *Log) Before(before int64, limit int) []Entry {
	l.mu.RLock()
	defer l.mu.RUnlock()
	end := l.next
	if before > 0 && before < end {
		end = before
	}
	begin := l.next
	if len(l.starts) > 0 {
		begin = l.starts[0]
	}
	start := max(begin, end-int64(limit))
	entries := make([]Entry, 0, max(0, end-start))
	for seq := start; seq < end; seq++ {
		e, _ := l.at(seq)
		entries = append(entries, e)
	}
	return entries
}

// Refs gives all mentions of an agent, in their order. The slice must not be changed.
func (l *Log) Refs(plate string) []inboxes.Ref {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clip(l.refs[plate])
}

// Sent gives the seq and the payload digest of what was sent under a key.
func (l *Log) Sent(key string) (seq int64, payload string, ok bool) {
	r, ok := l.lookup(key)
	return r.seq, r.payload, ok
}
