package rooms

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// quota holds what the writes that are under way in this replica will take, so that those of one moment cannot all fit into the
// same free place. Each File has one write at a time.
type quota struct {
	mu    sync.Mutex
	rooms map[types.UID]map[string]files.Usage
}

func newQuota() *quota { return &quota{rooms: map[types.UID]map[string]files.Usage{}} }

// take reserves what a File will take more, in place of what was reserved for it before. used tells what the room has written.
func (q *quota) take(room *v1alpha1.Room, file string, used func() files.Usage, more files.Usage) *problem.Problem {
	q.mu.Lock()
	defer q.mu.Unlock()
	sum := used()
	for name, pending := range q.rooms[room.UID] {
		if name != file {
			sum.Files, sum.Bytes = sum.Files+max(0, pending.Files), sum.Bytes+max(0, pending.Bytes)
		}
	}
	if p := files.Fits(room.Spec.Limits, sum, more); p != nil {
		return p
	}
	if q.rooms[room.UID] == nil {
		q.rooms[room.UID] = map[string]files.Usage{}
	}
	q.rooms[room.UID][file] = more
	return nil
}

// release ends a reservation: what was written is in the view by now.
func (q *quota) release(room types.UID, file string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.rooms[room], file)
	if len(q.rooms[room]) == 0 {
		delete(q.rooms, room)
	}
}
