package inboxes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/inboxes"
	"github.com/agentrooms/agentrooms/test/schema"
)

// life is an inbox, the log it follows, and what is known of both beside what stands in them.
type life struct {
	t       *testing.T
	checker *schema.Checker
	inbox   *v1alpha1.Inbox
	refs    []inboxes.Ref
	seq     int64
	now     time.Time
	// acked are the mentions that were ever acknowledged, given the last delivery of each.
	acked map[v1alpha1.MentionKey]bool
	given map[v1alpha1.MentionKey]v1alpha1.Delivery
	steps []string
}

func newLife(t *testing.T) *life {
	t.Helper()
	return &life{
		t: t, checker: schema.For(t, "inboxes"), now: now,
		acked: map[v1alpha1.MentionKey]bool{}, given: map[v1alpha1.MentionKey]v1alpha1.Delivery{},
		inbox: &v1alpha1.Inbox{
			ObjectMeta: metav1.ObjectMeta{Name: "launch-1", Namespace: "demo"},
			Spec:       v1alpha1.InboxSpec{RoomRef: v1alpha1.RoomReference{Name: "launch"}, Plate: "BRNL-AGT-00000000000000000000000004"},
		},
	}
}

func (l *life) fatalf(format string, args ...any) {
	l.t.Helper()
	l.t.Fatalf("after %v: "+format, append([]any{l.steps}, args...)...)
}

// trailing gives the log as a replica sees it that is some mentions behind. A message is seen whole or not at all.
func (l *life) trailing(by int) []inboxes.Ref { return l.refs[:l.boundary(max(0, len(l.refs)-by))] }

// boundary gives the place of the first mention of the message that the mention at a place is of.
func (l *life) boundary(i int) int {
	for i > 0 && i < len(l.refs) && l.refs[i-1].Key.Seq == l.refs[i].Key.Seq {
		i--
	}
	return i
}

// write puts a status in place as the API server would.
func (l *life) write(s *v1alpha1.InboxStatus) {
	l.t.Helper()
	next := l.inbox.DeepCopy()
	next.Status = *s
	if err := l.checker.Update(l.inbox, next); err != nil {
		l.fatalf("the API server refuses %+v after %+v:\n%v", s, l.inbox.Status, err)
	}
	if s.AckedThrough < l.inbox.Status.AckedThrough || s.LastReadSeq < l.inbox.Status.LastReadSeq {
		l.fatalf("the inbox went back from %+v to %+v", l.inbox.Status, s)
	}
	l.inbox = next
}

func (l *life) send(mentions int) {
	l.seq += 1 + int64(mentions)%3
	for i := range mentions {
		r := inboxes.Ref{Key: key(l.seq, int32(i))}
		if (l.seq+int64(i))%4 == 0 {
			r.Session = fmt.Sprintf("s%d", l.seq%3)
		}
		l.refs = append(l.refs, r)
	}
}

// forget drops the oldest mentions from the log, as retention does with what is acknowledged or too old.
func (l *life) forget(n int) { l.refs = l.refs[l.boundary(min(n, len(l.refs))):] }

func (l *life) check(session string, limit, behind int) {
	l.t.Helper()
	live := func(s string) bool { return s != "s2" }
	refs := l.trailing(behind)
	before := l.inbox.Status
	given, next, _ := inboxes.Deliver(&before, refs, live, inboxes.Request{Session: session, Limit: limit, Visibility: visibility}, l.now)
	if len(given) > limit {
		l.fatalf("%d mentions given, %d asked for", len(given), limit)
	}
	if !slices.IsSortedFunc(given, func(a, b inboxes.Ref) int { return int(a.Key.Seq - b.Key.Seq) }) {
		l.fatalf("given out of order: %v", given)
	}
	for _, r := range given {
		if l.acked[r.Key] {
			l.fatalf("%v is given to %s after it was acknowledged", r.Key, session)
		}
		if d, outAlready := l.given[r.Key]; outAlready && d.Session != session && l.now.Before(d.Until.Time) {
			l.fatalf("%v is given to %s while %s handles it until %v", r.Key, session, d.Session, d.Until)
		}
		if r.Session != "" && r.Session != session && live(r.Session) && l.given[r.Key].Session != session {
			l.fatalf("%v is for %s and is given to %s", r.Key, r.Session, session)
		}
	}
	if next != nil {
		l.write(next)
	}
	for _, r := range given {
		i := slices.IndexFunc(l.inbox.Status.Deliveries, func(d v1alpha1.Delivery) bool { return d.MentionKey == r.Key })
		if i < 0 || l.inbox.Status.Deliveries[i].Session != session {
			l.fatalf("%v was given to %s, and the inbox does not say so", r.Key, session)
		}
		l.given[r.Key] = l.inbox.Status.Deliveries[i]
	}
}

func (l *life) ack(pick []v1alpha1.MentionKey, behind int) {
	l.t.Helper()
	acked, already, next, p := inboxes.Ack(&l.inbox.Status, l.trailing(behind), pick)
	if p != nil {
		if next != nil {
			l.fatalf("refused, and still %+v is to be written", next)
		}
		return
	}
	for _, k := range already {
		if !l.acked[k] && !slices.Contains(acked, k) {
			l.fatalf("%v is said to be acknowledged, and nobody did", k)
		}
	}
	l.note(acked, next)
}

func (l *life) ackThrough(seq int64, behind int) {
	l.t.Helper()
	acked, next, p := inboxes.AckThrough(&l.inbox.Status, l.trailing(behind), seq)
	if p == nil {
		l.note(acked, next)
	}
}

func (l *life) note(acked []v1alpha1.MentionKey, next *v1alpha1.InboxStatus) {
	l.t.Helper()
	for _, k := range acked {
		if _, was := l.given[k]; !was || l.acked[k] {
			l.fatalf("%v is acknowledged, though it was never given out or is already", k)
		}
		l.acked[k] = true
	}
	if next != nil {
		l.write(next)
	}
}

// settle checks what must hold after every step.
func (l *life) settle() {
	l.t.Helper()
	open := 0
	for _, r := range l.refs {
		if l.acked[r.Key] != inboxes.IsAcked(&l.inbox.Status, r.Key) {
			l.fatalf("%v: acknowledged is %v, the inbox %+v says otherwise", r.Key, l.acked[r.Key], l.inbox.Status)
		}
		if !l.acked[r.Key] {
			open++
		}
	}
	if got := inboxes.Pending(&l.inbox.Status, l.refs); got != open {
		l.fatalf("%d are pending, want %d", got, open)
	}
	for behind := range len(l.refs) + 1 {
		if got := inboxes.Pending(&l.inbox.Status, l.trailing(behind)); got < 0 {
			l.fatalf("%d are pending for a replica that is %d behind", got, behind)
		}
	}
}

// live takes steps as bytes say: two each, what to do and with what.
func (l *life) live(script []byte) {
	l.t.Helper()
	for i := 0; i+1 < len(script); i += 2 {
		what, with := script[i]%8, int(script[i+1])
		session, behind := fmt.Sprintf("s%d", with%3), with/3%3
		l.steps = append(l.steps, fmt.Sprintf("%d:%d", what, with))
		switch what {
		case 0, 1:
			l.send(with % 4)
		case 2, 3:
			l.check(session, 1+with%5, behind)
		case 4:
			var pick []v1alpha1.MentionKey
			for j, d := range l.inbox.Status.Deliveries {
				if (with>>(j%8))&1 == 1 {
					pick = append(pick, d.MentionKey)
				}
			}
			l.ack(append(pick, key(int64(with%40+1), 0)), behind)
			l.ack(pick, 0)
		case 5:
			l.ackThrough(int64(with%64), behind)
		case 6:
			l.now = l.now.Add(time.Duration(with) * time.Second)
		case 7:
			if with%8 == 0 {
				l.forget(with % 3)
			}
		}
		l.settle()
	}
}

func TestRandomLivesOfAnInbox(t *testing.T) {
	acked, redelivered := 0, 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // a seed makes the run repeatable
		script := make([]byte, 160)
		for i := range script {
			script[i] = byte(r.IntN(256))
		}
		l := newLife(t)
		l.live(script)
		acked += len(l.acked)
		if l.inbox.Status.AckedThrough > 0 && len(l.inbox.Status.Deliveries) > 0 {
			redelivered++
		}
	}
	if acked < 500 || redelivered == 0 {
		t.Errorf("%d mentions were acknowledged and %d lives left some out: the test proves less than it says", acked, redelivered)
	}
}

func FuzzLifeOfAnInbox(f *testing.F) {
	f.Add([]byte{0, 3, 2, 9, 4, 255, 6, 100, 3, 1, 5, 40})
	f.Add([]byte{1, 2, 2, 4, 7, 0, 2, 8, 4, 3})
	f.Fuzz(func(t *testing.T, script []byte) {
		newLife(t).live(script[:min(len(script), 400)])
	})
}
