package inboxes

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

func refsAt(seqs ...int64) []Ref {
	var list []Ref
	for _, seq := range seqs {
		list = append(list, Ref{Key: v1alpha1.MentionKey{Seq: seq}, At: metav1.NewMicroTime(time.Unix(seq, 0))})
	}
	return list
}

func TestCarry(t *testing.T) {
	s := &v1alpha1.InboxStatus{AckedThrough: 2, Acked: []v1alpha1.MentionKey{{Seq: 4}}}
	refs := refsAt(1, 3, 4, 5)
	refs[1].Session, refs[3].Session = "laptop", "with a space"
	next, fits := Carry(s, refs)
	if !fits || next == nil || len(next.Carried) != 2 {
		t.Fatalf("carried %+v (fits %t), want seq 3 and 5", next, fits)
	}
	if a, b := next.Carried[0], next.Carried[1]; a.Seq != 3 || a.Session != "laptop" || b.Seq != 5 || b.Session != "" || b.At.Unix() != 5 {
		t.Errorf("carried %+v", next.Carried)
	}
	if again, fits := Carry(next, refs); again != nil || !fits {
		t.Errorf("carrying the same again writes %+v", again)
	}
	if n := Pending(next, All(next, refsAt(5, 9))); n != 3 {
		t.Errorf("%d are pending, want 3, 5 and 9", n)
	}
	full := &v1alpha1.InboxStatus{}
	for seq := range int64(v1alpha1.MaxCarried) {
		full.Carried = append(full.Carried, v1alpha1.CarriedMention{MentionKey: v1alpha1.MentionKey{Seq: seq + 1}})
	}
	if _, fits := Carry(full, refsAt(5000)); fits {
		t.Error("an Inbox that is full takes another mention")
	}
}

func TestSettled(t *testing.T) {
	s := &v1alpha1.InboxStatus{Carried: []v1alpha1.CarriedMention{{MentionKey: v1alpha1.MentionKey{Seq: 3}}}}
	keys := []v1alpha1.MentionKey{{Seq: 2}, {Seq: 3}, {Seq: 12}, {Seq: 13}}
	settled, rest := Settled(s, All(s, refsAt(12)), 10, keys)
	if diff := cmp.Diff(keys[:1], settled); diff != "" {
		t.Errorf("settled (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(keys[1:], rest); diff != "" {
		t.Errorf("to be acknowledged (-want +got):\n%s", diff)
	}
}

// TestMovingMessagesChangesNothingForTheirReader plays an Inbox twice, once with all messages in the log, and once with a log
// whose front moves away again and again: what is given, pending and acknowledged must be the same.
func TestMovingMessagesChangesNothingForTheirReader(t *testing.T) {
	for round := range 300 {
		whole, moved := &v1alpha1.InboxStatus{}, &v1alpha1.InboxStatus{}
		var refs []Ref
		var given []v1alpha1.MentionKey
		front, seq, now := 0, int64(0), time.Unix(1_800_000_000, 0)
		for step := range 60 {
			now = now.Add(time.Minute)
			switch rand.IntN(4) {
			case 0:
				seq += 1 + rand.Int64N(3)
				refs = append(refs, refsAt(seq)...)
			case 1:
				to := front + rand.IntN(len(refs)-front+1)
				next, fits := Carry(moved, refs[front:to])
				if !fits {
					t.Fatal("it does not fit")
				}
				if next != nil {
					moved = next
				}
				front = to
			case 2:
				r := Request{Session: []string{"a", "b"}[rand.IntN(2)], Limit: 1 + rand.IntN(5), Visibility: 90 * time.Second}
				live := func(string) bool { return true }
				a, nextA, moreA := Deliver(whole, refs, live, r, now)
				b, nextB, moreB := Deliver(moved, All(moved, refs[front:]), live, r, now)
				if diff := cmp.Diff(a, b); diff != "" || moreA != moreB {
					t.Fatalf("round %d, step %d: given (-whole +moved):\n%s", round, step, diff)
				}
				for _, ref := range a {
					given = append(given, ref.Key)
				}
				whole, moved = orElse(nextA, whole), orElse(nextB, moved)
			case 3:
				if len(given) == 0 {
					continue
				}
				keys := []v1alpha1.MentionKey{given[rand.IntN(len(given))]}
				archived := int64(0)
				if front > 0 {
					archived = refs[front-1].Key.Seq
				}
				ackedA, _, nextA, pA := Ack(whole, refs, keys)
				all := All(moved, refs[front:])
				_, rest := Settled(moved, all, archived, keys)
				ackedB, _, nextB, pB := Ack(moved, all, rest)
				if diff := cmp.Diff(ackedA, ackedB); diff != "" || (pA == nil) != (pB == nil) {
					t.Fatalf("round %d, step %d: acknowledged (-whole +moved), %v, %v:\n%s", round, step, pA, pB, diff)
				}
				whole, moved = orElse(nextA, whole), orElse(nextB, moved)
			}
			if a, b := Pending(whole, refs), Pending(moved, All(moved, refs[front:])); a != b {
				t.Fatalf("round %d, step %d: %d are pending with the whole log, %d with one that moves", round, step, a, b)
			}
			if whole.LastReadSeq != moved.LastReadSeq {
				t.Fatalf("round %d: read up to %d and %d", round, whole.LastReadSeq, moved.LastReadSeq)
			}
			for _, c := range moved.Carried {
				if IsAcked(moved, c.MentionKey) {
					t.Fatalf("round %d: %v is acknowledged and still carried", round, c.MentionKey)
				}
			}
		}
	}
}

func orElse(next, old *v1alpha1.InboxStatus) *v1alpha1.InboxStatus {
	if next == nil {
		return old
	}
	return next
}
