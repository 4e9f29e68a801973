// Package inboxes holds the arithmetic of an Inbox: which mentions are pending, which may be given to whom, and what an
// acknowledgement does. There is one definition of pending, used by every surface: a mention that is not acknowledged.
package inboxes

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// DefaultVisibility is how long a delivered mention is kept from other instances.
const DefaultVisibility = 90 * time.Second

// Ref is a mention of one agent in a room's log.
type Ref struct {
	// Key of the mention.
	Key v1alpha1.MentionKey
	// Session that was named, if any.
	Session string
	// At is when the message was taken.
	At metav1.MicroTime
}

// holdsUp is how many mentions may be acknowledged beyond one for a live session before the others get it, too: a session
// that lives and looks at no mentions would else fill the list, and nobody could acknowledge anything any more.
const holdsUp = v1alpha1.MaxSparseAcks / 2

func less(a, b v1alpha1.MentionKey) bool {
	return a.Seq < b.Seq || (a.Seq == b.Seq && a.Index < b.Index)
}

func compare(a, b v1alpha1.MentionKey) int {
	switch {
	case less(a, b):
		return -1
	case less(b, a):
		return 1
	default:
		return 0
	}
}

// from gives the refs beyond a seq. Refs must be in their order.
func from(refs []Ref, seq int64) []Ref {
	i, _ := slices.BinarySearchFunc(refs, seq, func(r Ref, s int64) int {
		if r.Key.Seq <= s {
			return -1
		}
		return 1
	})
	return refs[i:]
}

// IsAcked says whether a mention is acknowledged.
func IsAcked(s *v1alpha1.InboxStatus, k v1alpha1.MentionKey) bool {
	if k.Seq <= s.AckedThrough {
		return true
	}
	_, found := slices.BinarySearchFunc(s.Acked, k, compare)
	return found
}

// Pending counts the mentions that are not acknowledged. Refs are all mentions of the agent, in their order (All). An
// acknowledgement of a mention that is not among them, which a replica may hear of before it sees the message, counts for
// nothing.
func Pending(s *v1alpha1.InboxStatus, refs []Ref) int {
	open := from(refs, s.AckedThrough)
	n := len(open)
	for _, k := range s.Acked {
		if _, found := find(open, k); found {
			n--
		}
	}
	return n
}

func find(refs []Ref, k v1alpha1.MentionKey) (int, bool) {
	return slices.BinarySearchFunc(refs, k, func(r Ref, k v1alpha1.MentionKey) int { return compare(r.Key, k) })
}

// Live says whether a session of the agent shows signs of life.
type Live func(session string) bool

// Request is what a check for mentions asks for.
type Request struct {
	// Session that asks.
	Session string
	// SinceSeq leaves out what is not beyond it.
	SinceSeq int64
	// Limit of the answer.
	Limit int
	// Visibility is how long the delivered mentions are kept from other instances.
	Visibility time.Duration
}

// Deliver picks the mentions to give to a session: those pending that nobody else is handling, oldest first, a mention
// that names a live session only to that one, unless it holds up much that was acknowledged behind it. No more are out than
// can be acknowledged, so when very many are acknowledged beyond one that another session still handles, the rest waits for
// it; the oldest is then given whatever SinceSeq says. It gives the status to write, nil when the session holds all of them
// already with most of their time left, and whether there was more than the limit.
func Deliver(
	s *v1alpha1.InboxStatus, refs []Ref, live Live, r Request, now time.Time,
) (given []Ref, next *v1alpha1.InboxStatus, more bool) {
	held := map[v1alpha1.MentionKey]v1alpha1.Delivery{}
	for _, d := range s.Deliveries {
		if !gone(d, refs) {
			held[d.MentionKey] = d
		}
	}
	if len(s.Acked) >= holdsUp {
		live = func(string) bool { return false }
	}
	fresh := false
	room, since := v1alpha1.MaxDeliveries-len(held), r.SinceSeq
	// Acknowledging the oldest makes the list shorter, so that one may always be out.
	beyond := v1alpha1.MaxSparseAcks - len(s.Acked) - len(held)
	if beyond <= 0 {
		since = 0
	}
	oldest := true
	for _, ref := range from(refs, max(s.AckedThrough, since)) {
		if IsAcked(s, ref.Key) {
			continue
		}
		if !oldest {
			room = min(room, beyond)
		}
		oldest = false
		if !deliverable(ref, held, live, r.Session, now) {
			continue
		}
		if len(given) >= r.Limit {
			more = true
			break
		}
		d, known := held[ref.Key]
		if !known && room <= 0 {
			more = true
			continue
		}
		if !known {
			room--
			beyond--
		}
		fresh = fresh || d.Session != r.Session || d.Until.Sub(now) < r.Visibility/2
		given = append(given, ref)
	}
	if !fresh {
		return given, nil, more
	}
	next = s.DeepCopy()
	next.Deliveries = slices.DeleteFunc(next.Deliveries, func(d v1alpha1.Delivery) bool { return gone(d, refs) })
	until := metav1.NewMicroTime(now.Add(r.Visibility))
	for _, ref := range given {
		next.Deliveries = slices.DeleteFunc(next.Deliveries, func(d v1alpha1.Delivery) bool { return d.MentionKey == ref.Key })
		next.Deliveries = append(next.Deliveries, v1alpha1.Delivery{MentionKey: ref.Key, Session: r.Session, Until: until})
		next.DeliveredThrough = max(next.DeliveredThrough, ref.Key.Seq)
	}
	return given, next, more
}

// gone says whether the message of a delivery has left the log, which it does from the front. Nobody will acknowledge it.
func gone(d v1alpha1.Delivery, refs []Ref) bool { return len(refs) > 0 && d.Seq < refs[0].Key.Seq }

func deliverable(
	ref Ref, held map[v1alpha1.MentionKey]v1alpha1.Delivery, live Live, session string, now time.Time,
) bool {
	d, out := held[ref.Key]
	if out && d.Session == session {
		return true
	}
	if out && now.Before(d.Until.Time) {
		return false
	}
	return ref.Session == "" || ref.Session == session || !live(ref.Session)
}

// Ack acknowledges mentions. It gives what was new, what was acknowledged before, and the status to write, nil when nothing
// is new. A mention that was never delivered is refused, since nobody can have handled it.
func Ack(s *v1alpha1.InboxStatus, refs []Ref, keys []v1alpha1.MentionKey) (
	acked, already []v1alpha1.MentionKey, next *v1alpha1.InboxStatus, p *problem.Problem,
) {
	for _, k := range keys {
		if _, found := find(refs, k); !found {
			return nil, nil, nil, problem.Invalid("mention_ids", "holds a mention that is not yours")
		}
		if IsAcked(s, k) || slices.Contains(acked, k) {
			already = append(already, k)
			continue
		}
		if !wasDelivered(s, k) {
			return nil, nil, nil, problem.Invalid("mention_ids",
				"holds a mention that was not delivered yet: call check_mentions first")
		}
		acked = append(acked, k)
	}
	if len(acked) == 0 {
		return nil, already, nil, nil
	}
	next, p = apply(s, refs, acked)
	return acked, already, next, p
}

// maxSeq is the largest seq there is: a message id holds 40 bits of it.
const maxSeq = 1<<40 - 1

// AckThrough acknowledges every mention up to a seq and takes the messages up to it as read.
func AckThrough(s *v1alpha1.InboxStatus, refs []Ref, seq int64) (
	acked []v1alpha1.MentionKey, next *v1alpha1.InboxStatus, p *problem.Problem,
) {
	if seq > maxSeq {
		return nil, nil, problem.Invalid("last_mention_seq", "is beyond any message")
	}
	for _, ref := range from(refs, s.AckedThrough) {
		if ref.Key.Seq > seq {
			break
		}
		if IsAcked(s, ref.Key) {
			continue
		}
		if !wasDelivered(s, ref.Key) {
			return nil, nil, problem.Invalid("last_mention_seq",
				"reaches beyond what was delivered: a mention at seq %d was not delivered yet, call check_mentions first",
				ref.Key.Seq)
		}
		acked = append(acked, ref.Key)
	}
	if len(acked) == 0 && seq <= s.LastReadSeq {
		return nil, nil, nil
	}
	next, p = apply(s, refs, acked)
	if p == nil {
		next.LastReadSeq = max(next.LastReadSeq, seq)
	}
	return acked, next, p
}

func wasDelivered(s *v1alpha1.InboxStatus, k v1alpha1.MentionKey) bool {
	return slices.ContainsFunc(s.Deliveries, func(d v1alpha1.Delivery) bool { return d.MentionKey == k })
}

// apply moves mentions to acknowledged and lets ackedThrough catch up to just before the oldest pending one.
func apply(s *v1alpha1.InboxStatus, refs []Ref, acked []v1alpha1.MentionKey) (*v1alpha1.InboxStatus, *problem.Problem) {
	next := s.DeepCopy()
	next.Deliveries = slices.DeleteFunc(next.Deliveries, func(d v1alpha1.Delivery) bool {
		return slices.Contains(acked, d.MentionKey)
	})
	next.Acked = append(next.Acked, acked...)
	slices.SortFunc(next.Acked, compare)
	open := from(refs, s.AckedThrough)
	i := 0
	for i < len(open) && IsAcked(next, open[i].Key) {
		i++
	}
	switch {
	case i == len(open) && i > 0:
		next.AckedThrough = open[i-1].Key.Seq
	case i < len(open):
		next.AckedThrough = max(s.AckedThrough, open[i].Key.Seq-1)
	}
	next.Carried = slices.DeleteFunc(next.Carried, func(c v1alpha1.CarriedMention) bool { return IsAcked(next, c.MentionKey) })
	next.Acked = slices.DeleteFunc(next.Acked, func(k v1alpha1.MentionKey) bool { return k.Seq <= next.AckedThrough })
	// What is out and older than that has left the log before anybody acknowledged it.
	next.Deliveries = slices.DeleteFunc(next.Deliveries, func(d v1alpha1.Delivery) bool { return d.Seq <= next.AckedThrough })
	if len(next.Acked) > v1alpha1.MaxSparseAcks {
		return nil, problem.New(problem.Conflict,
			"too many mentions are acknowledged beyond an older one at seq %d: acknowledge that one first", open[i].Key.Seq)
	}
	for _, k := range acked {
		next.LastReadSeq = max(next.LastReadSeq, k.Seq)
	}
	return next, nil
}
