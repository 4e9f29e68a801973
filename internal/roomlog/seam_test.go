package roomlog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// archive moves the first batches out of the log and deletes them, as the manager does.
func (s *server) archive(through int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seq := int64(0)
	for _, b := range s.order[:through] {
		seq += int64(len(b.Spec.Messages))
		delete(s.batches, b.Name)
	}
	s.seam = v1alpha1.RoomArchive{
		ThroughSeq: seq, ThroughBatch: int64(through), ThroughBatchSeq: seq, ThroughTime: metav1.NewTime(s.now), Segments: 1,
	}
}

// say sends messages one by one, a batch each.
func say(t *testing.T, c *roomlog.Committer, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if r, err := c.Send(t.Context(), room(), message(fmt.Sprint(i), fmt.Sprint("key", i))); err != nil || r.Seq != int64(i) || r.Duplicate {
			t.Fatalf("message %d got seq %d (duplicate %t), %v", i, r.Seq, r.Duplicate, err)
		}
	}
}

// kept is an archive in memory.
type kept struct {
	*server
	down bool
}

func (k *kept) Sent(_ context.Context, _ *v1alpha1.Room, through int64, key string) (roomlog.Entry, bool, error) {
	if k.down {
		return roomlog.Entry{}, false, errors.New("the store is down")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	seq := int64(0)
	for _, b := range k.order {
		for i := range b.Spec.Messages {
			if seq++; seq <= through && b.Spec.Messages[i].Key == key {
				return roomlog.Entry{Seq: seq, Message: &b.Spec.Messages[i]}, true, nil
			}
		}
	}
	return roomlog.Entry{}, false, nil
}

// TestAWriterThatSleptTakesNoNumberThatIsFreeAgain has a writer sleep while others write, and while what they wrote is
// archived and deleted. Its create succeeds, and it must not believe it.
func TestAWriterThatSleptTakesNoNumberThatIsFreeAgain(t *testing.T) {
	s := newServer()
	sleeper, view := committer(s, "sleeper")
	say(t, sleeper, 1, 3)
	other, _ := committer(s, "other")
	if err := other.CatchUp(t.Context(), room()); err != nil {
		t.Fatal(err)
	}
	say(t, other, 4, 20)
	s.archive(15)
	s.now = s.now.Add(roomlog.Grace)
	r, err := sleeper.Send(t.Context(), room(), message("late", ""))
	if err != nil || r.Seq != 21 {
		t.Fatalf("the sleeper's message got seq %d, %v; want 21", r.Seq, err)
	}
	if e, ok := view.Log(roomlog.KeyOf(room())).At(21); !ok || e.Message.Body != "late" {
		t.Errorf("seq 21 holds %+v", e)
	}
	// Another one that slept finds what the first left under the freed number, and is not taken in either.
	second, _ := committer(s, "second sleeper")
	r, err = second.Send(t.Context(), room(), message("later", ""))
	if err != nil || r.Seq != 22 {
		t.Errorf("the second sleeper's message got seq %d, %v; want 22", r.Seq, err)
	}
}

// TestABusyWriterReadsTheRoomNoMoreOftenThanNeeded holds that the proof costs nothing where the log itself is one.
func TestABusyWriterReadsTheRoomNoMoreOftenThanNeeded(t *testing.T) {
	s := newServer()
	c, _ := committer(s, "a")
	say(t, c, 1, 50)
	if s.reads != 0 {
		t.Errorf("the room was read %d times for messages that followed each other", s.reads)
	}
	s.now = s.now.Add(time.Hour)
	say(t, c, 51, 60)
	if s.reads != 1 {
		t.Errorf("the room was read %d times after a quiet hour, want once", s.reads)
	}
}

// TestWhateverComesFirstTheLogHasNoHoleAndNoDouble shuffles what the watches of rooms and batches show.
func TestWhateverComesFirstTheLogHasNoHoleAndNoDouble(t *testing.T) {
	s := newServer()
	c, _ := committer(s, "a")
	say(t, c, 1, 40)
	for round := range 200 {
		book := roomlog.NewBook(nil)
		log := book.Log(roomlog.KeyOf(room()))
		seams := []int{0, 7, 19, 32}
		shown, next, last, archived := 0, 0, int64(0), int64(0)
		lost := rand.IntN(8) // how many batches a process that has just started never gets to see
		for shown < 40 || next < len(seams) {
			if next < len(seams) && (shown == 40 || rand.IntN(10) == 0) {
				r := room()
				if n := seams[next]; n > 0 {
					archived = int64(n) + 3
					r.Status.Archive = &v1alpha1.RoomArchive{ThroughSeq: archived, ThroughBatch: int64(n), ThroughBatchSeq: int64(n)}
				}
				book.Saw(r)
				next++
			} else if shown < 40 {
				if shown >= lost {
					book.Apply(s.order[shown])
					if rand.IntN(3) == 0 {
						book.Forget(s.order[rand.IntN(min(shown, 31)+1)])
					}
				}
				shown++
			}
			if now := log.LastSeq(); now < last {
				t.Fatalf("round %d: the last seq fell from %d to %d", round, last, now)
			} else {
				last = now
			}
			for _, e := range log.Before(0, 100) {
				if e.Message.Body != fmt.Sprint(e.Seq) {
					t.Fatalf("round %d: seq %d holds message %s", round, e.Seq, e.Message.Body)
				}
			}
			first := last + 1
			if page := log.Before(0, 100); len(page) > 0 {
				first = page[0].Seq
			}
			if a := log.Seam().Archived; first > a+1 && first > 1 && a > 0 {
				t.Fatalf("round %d: the log begins at %d and the archive ends at %d", round, first, a)
			}
		}
		if last != 40 {
			t.Fatalf("round %d: the log ends at %d", round, last)
		}
	}
}

func TestABatchThatLiesAboutItsSeqIsNotBelievedByOneThatStarts(t *testing.T) {
	s := newServer()
	c, _ := committer(s, "a")
	say(t, c, 1, 9)
	s.archive(5)
	liar := s.order[5].DeepCopy()
	liar.Spec.FirstSeq = 5000
	book := roomlog.NewBook(nil)
	for _, b := range append([]*v1alpha1.MessageBatch{liar}, s.order[6:]...) {
		book.Apply(b)
	}
	log := book.Log(roomlog.KeyOf(room()))
	if log.LastSeq() != 0 {
		t.Errorf("the log ends at %d before the room says where it begins", log.LastSeq())
	}
	now, _ := s.Room(t.Context(), "", "")
	book.Saw(now)
	if e, ok := log.At(6); log.LastSeq() != 9 || !ok || e.Message.Body != "6" {
		t.Errorf("the log ends at %d, and seq 6 holds %+v", log.LastSeq(), e)
	}
}

func TestAKeyIsKnownWhenItsMessageHasMoved(t *testing.T) {
	s := newServer()
	store := &kept{server: s}
	book := roomlog.NewBook(nil)
	book.Saw(room())
	s.now = time.Now()
	c := roomlog.NewCommitter(s, book, clock.RealClock{}, "a", store)
	say(t, c, 1, 12)
	s.archive(10)
	now, _ := s.Room(t.Context(), "", "")
	book.Saw(now)
	r, err := c.Send(t.Context(), room(), message("3", "key3"))
	if err != nil || r.Seq != 3 || !r.Duplicate {
		t.Errorf("sending again gives seq %d (duplicate %t), %v", r.Seq, r.Duplicate, err)
	}
	if _, err := c.Send(t.Context(), room(), message("other", "key3")); err == nil {
		t.Error("another message under a key that was used was taken")
	}
	// A replica whose view does not know of the archive yet learns of it before it writes anything.
	late := roomlog.NewBook(nil)
	late.Saw(room())
	other := roomlog.NewCommitter(s, late, clock.RealClock{}, "late", store)
	if r, err = other.Send(t.Context(), room(), message("4", "key4")); err != nil || r.Seq != 4 || !r.Duplicate {
		t.Errorf("sending again through a replica that is behind gives seq %d (duplicate %t), %v", r.Seq, r.Duplicate, err)
	}
	store.down = true
	if _, err := c.Send(t.Context(), room(), message("new", "new")); err == nil {
		t.Error("a key that could not be looked for was taken for new")
	}
	if r, err := c.Send(t.Context(), room(), message("no key", "")); err != nil || r.Seq != 13 {
		t.Errorf("a message without a key got seq %d, %v", r.Seq, err)
	}
}

// moving loses the answer to a create, and shows by the watch that all of the log has moved before the writer asks.
type moving struct {
	*server
	book *roomlog.Book
}

func (m *moving) Create(ctx context.Context, b *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error) {
	created, err := m.server.Create(ctx, b)
	if err != nil || b.Spec.Messages[0].Body != "lost" {
		return created, err
	}
	m.book.Apply(created)
	other, _ := committer(m.server, "other")
	if _, err := other.Send(ctx, room(), message("next", "")); err != nil {
		return nil, err
	}
	for i := range m.order {
		m.book.Apply(m.order[i])
	}
	m.archive(len(m.order) - 1)
	now, _ := m.Room(ctx, "", "")
	m.book.Saw(now)
	return nil, apierrors.NewTimeoutError("the answer was lost", 1)
}

func TestAMessageThatMovesBeforeItsWriterKnowsOfItIsNotWrittenTwice(t *testing.T) {
	s := newServer()
	book := roomlog.NewBook(nil)
	book.Saw(room())
	c := roomlog.NewCommitter(&moving{server: s, book: book}, book, clock.RealClock{}, "a", nil)
	if r, err := c.Send(t.Context(), room(), message("lost", "")); err != nil || r.Seq != 1 {
		t.Errorf("got seq %d, %v; want 1", r.Seq, err)
	}
	if n := len(s.order); n != 2 {
		t.Errorf("%d batches were written, want 2", n)
	}
}
