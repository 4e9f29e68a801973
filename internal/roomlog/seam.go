package roomlog

import (
	"slices"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/inboxes"
)

// Grace is how long a batch stays in the cluster after its messages have moved to the blob store. The name of a batch that
// is deleted is free again, and a writer who has not heard of that would take it: by this time a writer can tell.
const Grace = 2 * time.Minute

// near is how soon after the batch before it a batch was made, by the API server's clock, when it cannot have taken a name
// that was free again. The rest of Grace is for clocks of API servers that differ.
const near = Grace / 2

// Seam is where the part of a room's log that the cluster holds begins. The zero value says that it holds all of it.
type Seam struct {
	// Batch is the last one that the cluster needs no more.
	Batch int64
	// BatchSeq is the seq of its last message.
	BatchSeq int64
	// Archived is the seq up to which the messages stand in the blob store, at least BatchSeq.
	Archived int64
	// Time of the last of them, by the API server's clock.
	Time time.Time
}

// SeamOf gives the seam as the status of a room has it.
func SeamOf(room *v1alpha1.Room) Seam {
	a := room.Status.Archive
	if a == nil {
		return Seam{}
	}
	return Seam{Batch: a.ThroughBatch, BatchSeq: a.ThroughBatchSeq, Archived: a.ThroughSeq, Time: a.ThroughTime.Time}
}

// Seam gives where the log begins.
func (l *Log) Seam() Seam {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.seam
}

// moveSeam takes in a seam. What lies before it leaves the log; when the log ends before it, it goes on behind it.
func (l *Log) moveSeam(s Seam, made time.Time, appended func(*v1alpha1.MessageBatch)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = made
	if s.Archived <= l.seam.Archived {
		return
	}
	l.seam = s
	for len(l.batches) > 0 && l.first <= s.Batch {
		l.dropFirst()
	}
	if l.first <= s.Batch {
		l.first, l.next = s.Batch+1, s.BatchSeq+1
	}
	if len(l.starts) > 0 && l.first == s.Batch+1 && l.starts[0] != s.BatchSeq+1 {
		l.recount(s.BatchSeq + 1)
	}
	l.proven = max(l.proven, s.Batch)
	for n := range l.early {
		if n < l.first {
			delete(l.early, n)
		}
	}
	l.drain(appended)
}

// recount enters the batches again, from another seq on: one that was none had been taken for the first.
func (l *Log) recount(first int64) {
	batches := l.batches
	l.batches, l.starts, l.next = nil, nil, first
	l.keys, l.refs = map[string]receipt{}, map[string][]inboxes.Ref{}
	for _, b := range batches {
		l.append(b)
	}
}

// follows says whether a batch surely is the one of its number: the one before it is, and was made a moment ago, so that the
// number cannot have been taken, archived and set free again.
func (l *Log) follows(batch *v1alpha1.MessageBatch) bool {
	n := batch.Spec.Number
	if n <= l.proven {
		return true
	}
	before := l.made
	switch i := n - 1 - l.first; {
	case n == 1:
	case n-1 > l.proven || i < 0 || i >= int64(len(l.batches)):
		return false
	default:
		before = l.batches[i].CreationTimestamp.Time
	}
	return !before.IsZero() && batch.CreationTimestamp.Sub(before) < near
}

// surely says whether a batch that the API server showed is the one of its number.
func (l *Log) surely(batch *v1alpha1.MessageBatch) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.follows(batch)
}

// prove notes that the batch of a number, and those before it, are what they seem.
func (l *Log) prove(number int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proven = max(l.proven, number)
}

// Place is a batch in its log.
type Place struct {
	// Batch itself. It must not be changed.
	Batch *v1alpha1.MessageBatch
	// Start is the seq of its first message.
	Start int64
}

// End gives the seq of the last message.
func (p Place) End() int64 { return p.Start + int64(len(p.Batch.Spec.Messages)) - 1 }

// Holding gives the batches that hold the messages of a range of seqs, in their order, false when the log does not hold all.
func (l *Log) Holding(first, last int64) ([]Place, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.starts) == 0 || first < l.starts[0] || last >= l.next || last < first {
		return nil, false
	}
	i, exact := slices.BinarySearch(l.starts, first)
	if !exact {
		i--
	}
	var list []Place
	for ; i < len(l.starts) && l.starts[i] <= last; i++ {
		list = append(list, Place{Batch: l.batches[i], Start: l.starts[i]})
	}
	return list, true
}

// Needless gives the last batch all of whose messages have a seq up to a given one: its number and its last seq, as a seam
// has them. The last batch of a log is always needed, as its name keeps others from taking it.
func (l *Log) Needless(through int64) (number, seq int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	number, seq = l.seam.Batch, l.seam.BatchSeq
	for i := 0; i+1 < len(l.starts) && l.starts[i+1]-1 <= through; i++ {
		number, seq = l.first+int64(i), l.starts[i+1]-1
	}
	return number, seq
}
