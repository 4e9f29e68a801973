package roomlog_test

import (
	"context"
	"fmt"
	"math/bits"
	"testing"

	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// reader counts what it is asked.
type reader struct {
	*server
	first int64
	asked int
}

func (r *reader) Get(ctx context.Context, namespace, name string) (*v1alpha1.MessageBatch, error) {
	r.mu.Lock()
	r.asked++
	r.mu.Unlock()
	return r.server.Get(ctx, namespace, name)
}

func (r *reader) Oldest(_ context.Context, room *v1alpha1.Room) (*v1alpha1.MessageBatch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return r.batches[ids.BatchName(room.Name, room.UID, r.first)], nil
}

// filled gives a log of batches of two messages, from a first one on. liar is the number of a batch by a person who lies about
// where it stands, 0 for none; all after it are by people too.
func filled(room *v1alpha1.Room, first, last, liar int64) *reader {
	r := &reader{server: newServer(), first: first}
	for n := first; n <= last; n++ {
		b := &v1alpha1.MessageBatch{}
		b.Namespace, b.Name = room.Namespace, ids.BatchName(room.Name, room.UID, n)
		b.Spec = v1alpha1.MessageBatchSpec{
			Number: n, FirstSeq: 2*n - 1,
			Messages: []v1alpha1.Message{message(fmt.Sprint(2*n-1), ""), message(fmt.Sprint(2*n), "")},
		}
		if liar > 0 && n >= liar {
			b.Spec.FirstSeq += 1000
			for i := range b.Spec.Messages {
				b.Spec.Messages[i].Sender.Type = v1alpha1.SenderHuman
			}
		}
		r.batches[b.Name] = b
	}
	return r
}

func TestTheEndOfALogIsFoundByFewQuestions(t *testing.T) {
	for _, tc := range []struct {
		name               string
		first, last, guess int64
	}{
		{"an empty log", 1, 0, 0},
		{"an empty log of a room that says otherwise", 1, 0, 7},
		{"one batch", 1, 1, 2},
		{"a status that lags", 1, 300, 10},
		{"a status that knows nothing", 1, 5000, 0},
		{"a status that counts messages", 1, 5000, 10000},
		{"a log whose beginning is gone", 900, 5000, 10000},
		{"one batch left", 5000, 5000, 10000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			room := room()
			room.Status.LastSeq = tc.guess
			r, book := filled(room, tc.first, tc.last, 0), roomlog.NewBook(nil)
			if err := book.Open(t.Context(), r, room, func(*v1alpha1.MessageBatch) bool { return true }); err != nil {
				t.Fatal(err)
			}
			if got := book.Log(roomlog.KeyOf(room)).LastSeq(); got != 2*tc.last {
				t.Errorf("the log ends with %d, want %d", got, 2*tc.last)
			}
			if limit := 4 + 2*bits.Len64(uint64(tc.last+1)); r.asked > limit {
				t.Errorf("%d questions, at most %d are allowed", r.asked, limit)
			}
			for _, seq := range []int64{2*tc.first - 1, tc.first + tc.last, 2 * tc.last} {
				if tc.last == 0 {
					break
				}
				if m, ok, err := roomlog.Find(t.Context(), r, room, seq); err != nil || !ok || m.Body != fmt.Sprint(seq) {
					t.Errorf("seq %d is found to be %+v: %v", seq, m, err)
				}
			}
			for _, seq := range []int64{0, 2*tc.first - 2, 2*tc.last + 1} {
				if _, ok, err := roomlog.Find(t.Context(), r, room, seq); ok || err != nil {
					t.Errorf("seq %d is found: %v", seq, err)
				}
			}
		})
	}
}

func TestHowFarBackIsRead(t *testing.T) {
	room := room()
	r, book := filled(room, 1, 400, 0), roomlog.NewBook(nil)
	messages := 0
	err := book.Open(t.Context(), r, room, func(b *v1alpha1.MessageBatch) bool {
		messages += len(b.Spec.Messages)
		return messages >= 50
	})
	if err != nil {
		t.Fatal(err)
	}
	entries := book.Log(roomlog.KeyOf(room)).Before(0, 1000)
	if len(entries) != 50 || entries[0].Seq != 751 || entries[0].Message.Body != "751" {
		t.Errorf("%d messages, the first is %d", len(entries), entries[0].Seq)
	}
}

// A person's batch may say that it stands elsewhere. Who comes after it counts from one that can be believed.
func TestNobodyIsLedAstrayByALiar(t *testing.T) {
	room := room()
	r, book := filled(room, 1, 40, 30), roomlog.NewBook(nil)
	if err := book.Open(t.Context(), r, room, func(*v1alpha1.MessageBatch) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if got := book.Log(roomlog.KeyOf(room)).LastSeq(); got != 80 {
		t.Errorf("the log ends with %d, want 80", got)
	}
	c := roomlog.NewCommitter(r, book, clock.RealClock{}, "w", nil)
	if receipt, err := c.Send(t.Context(), room, message("next", "")); err != nil || receipt.Seq != 81 {
		t.Errorf("sent as %d: %v", receipt.Seq, err)
	}
}
