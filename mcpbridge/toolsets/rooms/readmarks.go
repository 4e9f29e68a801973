package rooms

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxReadMarks that are kept. They are a convenience: what is dropped is written by the next acknowledgement.
const maxReadMarks = 100000

type readKey struct {
	room  types.UID
	plate string
}

// readMarks remembers how far agents have read since their Inbox last said so. Reading writes nothing: the mark goes out
// with the next renewal of the instance.
type readMarks struct {
	mu    sync.Mutex
	marks map[readKey]int64
}

func newReadMarks() *readMarks { return &readMarks{marks: map[readKey]int64{}} }

func (r *readMarks) get(room types.UID, plate string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.marks[readKey{room, plate}]
}

func (r *readMarks) set(room types.UID, plate string, seq int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := readKey{room, plate}
	if old, ok := r.marks[k]; (ok && old >= seq) || (!ok && len(r.marks) >= maxReadMarks) {
		return
	}
	r.marks[k] = seq
}

// written drops a mark that the Inbox holds now.
func (r *readMarks) written(room types.UID, plate string, seq int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := readKey{room, plate}
	if old, ok := r.marks[k]; ok && old <= seq {
		delete(r.marks, k)
	}
}
