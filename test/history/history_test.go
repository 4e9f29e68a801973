package history_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

const long = 4 * time.Minute

// TestARoomOf200000Messages goes through what a room with a long history promises.
func TestARoomOf200000Messages(t *testing.T) {
	const total, maxCount = 200_000, 10_000
	w := newWorld(t, maxCount)
	began := time.Now()
	w.write(total)
	t.Logf("%d messages written in %s", total, time.Since(began))
	began = time.Now()
	w.start(2 * time.Second)
	w.Eventually(func(g Gomega) {
		g.Expect(w.archived(g)).To(BeEquivalentTo(total - maxCount))
		messages, _ := w.held(g)
		g.Expect(messages).To(BeNumerically("<=", maxCount+v1alpha1.MaxBatchMessages))
	}, long, 500*time.Millisecond).Should(Succeed())
	messages, batches := w.held(w)
	t.Logf("after %s the cluster holds %d messages in %d batches, and the store %d segments with %d bytes",
		time.Since(began), messages, batches, w.segments(), w.room.Status.Archive.Bytes)

	const cache = 4 << 20
	b := w.bridge(w.bucket(), cache)
	room := w.id()
	w.Eventually(func() int64 { return must[rooms.RoomList](b, "cc", "list_rooms", nil).Rooms[0].LastSeq }, long, 50*time.Millisecond).
		Should(BeEquivalentTo(total))

	t.Log("the oldest page costs at most two reads of the store")
	page := must[rooms.Page](b, "cc", "read_room", map[string]any{"room": room, "before_seq": 51, "limit": 50})
	if n := b.reads(); n < 1 || n > 2 || len(page.Messages) != 50 || page.Messages[0].Seq != 1 || page.NextBeforeSeq != nil {
		t.Errorf("%d messages from seq %d in %v reads", len(page.Messages), page.Messages[0].Seq, n)
	}

	t.Log("what is unread and unacknowledged is counted, across the seam")
	info := must[rooms.RoomList](b, "cc", "list_rooms", nil).Rooms[0]
	if info.MentionsUnread != total/1000 || info.Unread != total {
		t.Errorf("%d mentions and %d messages are unread", info.MentionsUnread, info.Unread)
	}
	mentions := must[rooms.MentionList](b, "cc", "check_mentions", map[string]any{"room": room, "limit": 3})
	if len(mentions.Mentions) != 3 || mentions.Mentions[0].Seq != 10 || mentions.Mentions[0].Excerpt != body(10) {
		t.Fatalf("check_mentions gives %+v", mentions)
	}
	first, second := mentions.Mentions[0], mentions.Mentions[1]
	sent := must[rooms.Sent](b, "cc", "send_message", map[string]any{
		"room": room, "body": "an answer", "parent_id": first.MessageID, "ack_mention_ids": []string{first.MentionID},
	})
	if sent.Seq != total+1 || len(sent.Acked) != 1 {
		t.Errorf("answering an old message gives %+v", sent)
	}
	acks := must[rooms.Acks](b, "cc", "ack_mentions", map[string]any{"mention_ids": []string{first.MentionID, second.MentionID}})
	if len(acks.Acked) != 1 || len(acks.AlreadyAcked) != 1 || acks.Pending != total/1000-2 {
		t.Errorf("acknowledging gives %+v", acks)
	}
	through := must[rooms.Acks](b, "cc", "ack_mentions", map[string]any{"room": room, "last_mention_seq": 2010})
	if len(through.Acked) != 1 || through.Acked[0] != mentions.Mentions[2].MentionID {
		t.Errorf("acknowledging up to a seq gives %+v", through)
	}
	if _, err := call[rooms.Sent](b, "cc", "send_message", map[string]any{
		"room": room, "body": "x", "parent_id": ids.MessageID(room, time.Now(), 77),
	}); err == nil {
		t.Error("an id that names no message was taken for an old one")
	}

	t.Log("reading all of it, the memory stays bounded")
	before := heap()
	next, want := int64(0), int64(total+1)
	for {
		page := must[rooms.Page](b, "cc", "read_room", map[string]any{"room": room, "before_seq": next, "limit": 100})
		for _, m := range slices.Backward(page.Messages) {
			if m.Seq != want || (m.Seq <= total && m.Body != body(m.Seq)) {
				t.Fatalf("seq %d stands where %d should", m.Seq, want)
			}
			want--
		}
		if page.NextBeforeSeq == nil {
			break
		}
		next = *page.NextBeforeSeq
	}
	grown := heap() - before
	t.Logf("%v reads for the whole history, the heap grew by %d KiB", b.reads(), grown>>10)
	if want != 0 || grown > cache+(8<<20) || b.reads() > 200+10 {
		t.Errorf("ended before seq %d, the heap grew by %d bytes, %v reads", want, grown, b.reads())
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestAKeyIsAReceiptForADayWhereverItsMessageIs sends, lets the message move, and sends again: also through a replica that
// has just started, and not at all without the store.
func TestAKeyIsAReceiptForADayWhereverItsMessageIs(t *testing.T) {
	w := newWorld(t, 100)
	w.start(time.Second)
	a := w.bridge(w.bucket(), 0)
	args := map[string]any{"room": w.id(), "body": "once", "idempotency_key": "k1", "mentions": []string{"@cc"}}
	first := must[rooms.Sent](a, "dd", "send_message", args)
	w.last, w.number = first.Seq, 1
	w.write(1500)
	w.Eventually(func(g Gomega) {
		g.Expect(w.archived(g)).To(BeEquivalentTo(1000))
		messages, _ := w.held(g)
		g.Expect(messages).To(BeNumerically("<", 600))
	}, long, 100*time.Millisecond).Should(Succeed())
	for name, b := range map[string]*bridge{"the same replica": a, "a new one": w.bridge(w.bucket(), 0)} {
		w.Eventually(func() int64 { return must[rooms.RoomList](b, "dd", "list_rooms", nil).Rooms[0].LastSeq }, long, 20*time.Millisecond).
			Should(BeEquivalentTo(1501))
		again := must[rooms.Sent](b, "dd", "send_message", args)
		if again.ID != first.ID || again.Seq != first.Seq || !again.Duplicate {
			t.Errorf("%s answers %+v, the first answer was %+v", name, again, first)
		}
		other := map[string]any{"room": w.id(), "body": "other", "idempotency_key": "k1"}
		if _, err := call[rooms.Sent](b, "dd", "send_message", other); err == nil {
			t.Errorf("%s took another message under the same key", name)
		}
	}
	down := w.bridge(nil, 0)
	w.Eventually(func() int64 { return must[rooms.RoomList](down, "dd", "list_rooms", nil).Rooms[0].LastSeq }, long, 20*time.Millisecond).
		Should(BeEquivalentTo(1501))
	if _, err := call[rooms.Page](down, "cc", "read_room", map[string]any{"room": w.id(), "before_seq": 50}); !unavailable(err) {
		t.Errorf("reading old messages without the store gives %v", err)
	}
	if _, err := call[rooms.Sent](down, "dd", "send_message", args); !unavailable(err) {
		t.Errorf("a key that cannot be looked for gives %v", err)
	}
	if page := must[rooms.Page](down, "cc", "read_room", map[string]any{"room": w.id()}); len(page.Messages) != 50 {
		t.Errorf("%d new messages can be read without the store", len(page.Messages))
	}
	if sent := must[rooms.Sent](down, "dd", "send_message", map[string]any{"room": w.id(), "body": "no key"}); sent.Seq != 1502 {
		t.Errorf("sending without a key and without the store gives %+v", sent)
	}
	list := must[rooms.MentionList](down, "cc", "check_mentions", map[string]any{"room": w.id()})
	if len(list.Mentions) != 1 || list.Mentions[0].Seq != 1010 || !list.More {
		t.Errorf("mentions that can be read without the store: %+v", list)
	}
}

// TestTheManagerIsKilledAgainAndAgainWhileARoomIsBusy kills it at any moment, between segment and deletion too, while others
// write and read.
func TestTheManagerIsKilledAgainAndAgainWhileARoomIsBusy(t *testing.T) {
	w := newWorld(t, 1000)
	b := w.bridge(w.bucket(), 0)
	const rounds, each = 8, 3000
	for round := range rounds {
		_, batches := w.held(w)
		gone := w.number - batches
		w.start(200 * time.Millisecond)
		w.write(each)
		segments, archived := w.segments(), w.archived(w)
		// It dies when a segment was just written, when the room's status has just moved, or when a batch was just deleted.
		w.Eventually(func(g Gomega) {
			switch round % 3 {
			case 0:
				g.Expect(w.segments()).To(BeNumerically(">", segments))
			case 1:
				g.Expect(w.archived(g)).To(BeNumerically(">", archived))
			default:
				_, batches := w.held(g)
				g.Expect(batches).To(BeNumerically("<", w.number-gone))
			}
		}, long, time.Millisecond).Should(Succeed())
		w.kill()
		w.intact(b, round)
	}
	w.start(200 * time.Millisecond)
	w.Eventually(func(g Gomega) {
		g.Expect(w.archived(g)).To(BeEquivalentTo(rounds*each - 1000))
		messages, _ := w.held(g)
		g.Expect(messages).To(BeNumerically("<=", 1000+v1alpha1.MaxBatchMessages))
	}, long, 100*time.Millisecond).Should(Succeed())
	w.intact(b, rounds)
	if n := must[rooms.RoomList](b, "cc", "list_rooms", nil).Rooms[0].MentionsUnread; n != rounds*each/1000 {
		t.Errorf("%d mentions are pending, want %d", n, rounds*each/1000)
	}
}

// intact reads the whole room through a replica that has run all along, and one that has just started.
func (w *world) intact(running *bridge, round int) {
	w.Helper()
	fresh := w.bridge(w.bucket(), 0)
	defer fresh.stop()
	for name, b := range map[string]*bridge{"running": running, "fresh": fresh} {
		w.Eventually(func() int64 { return must[rooms.RoomList](b, "cc", "list_rooms", nil).Rooms[0].LastSeq }, long, 20*time.Millisecond).
			Should(Equal(w.last), fmt.Sprintf("round %d, the %s replica", round, name))
		next, want := int64(0), w.last
		for want > 0 {
			page := must[rooms.Page](b, "cc", "read_room", map[string]any{"room": w.id(), "before_seq": next, "limit": 100})
			for _, m := range slices.Backward(page.Messages) {
				if m.Seq != want || m.Body != body(m.Seq) {
					w.Fatalf("round %d, the %s replica: seq %d stands where %d should", round, name, m.Seq, want)
				}
				want--
			}
			if page.NextBeforeSeq == nil {
				break
			}
			next = *page.NextBeforeSeq
		}
		if want != 0 {
			w.Fatalf("round %d, the %s replica: the room ends before seq %d", round, name, want)
		}
	}
}
