package rooms

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// TestWritesOfOneMomentShareTheFreePlace lets more writers in at once than the room has place for.
func TestWritesOfOneMomentShareTheFreePlace(t *testing.T) {
	room := &v1alpha1.Room{Spec: v1alpha1.RoomSpec{Limits: &v1alpha1.RoomLimits{FileBytes: 1000, Files: 100}}}
	room.UID = "room"
	q, written := newQuota(), files.Usage{Files: 1, Bytes: 100}
	used := func() files.Usage { return written }
	var admitted atomic.Int64
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			switch p := q.take(room, string(rune('a'+i)), used, files.Usage{Files: 1, Bytes: 300}); {
			case p == nil:
				admitted.Add(1)
			case p.Code != problem.TooLarge:
				t.Errorf("refused with %v", p)
			}
		})
	}
	all.Wait()
	if n := admitted.Load(); n != 3 {
		t.Errorf("%d writers of 300 bytes were admitted to 900, want 3", n)
	}
	for i := range 50 {
		q.release(room.UID, string(rune('a'+i)))
	}
	if p := q.take(room, "z", used, files.Usage{Files: 1, Bytes: 900}); p != nil {
		t.Errorf("after all have ended: %v", p)
	}
	if p := q.take(room, "z", used, files.Usage{Files: 1, Bytes: 800}); p != nil {
		t.Errorf("a second look at the same write counts it twice: %v", p)
	}
	q.release(room.UID, "z")
	if len(q.rooms) != 0 {
		t.Errorf("what is over is kept: %v", q.rooms)
	}
}
