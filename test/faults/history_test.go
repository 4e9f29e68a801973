package faults

import (
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// never is the return of an operation whose outcome its client was never told: it may take effect at any time, or not.
const never = math.MaxInt64

// history records operations of many clients by one monotonic clock, apart for each thing that they act on.
type history struct {
	began time.Time
	mu    sync.Mutex
	ops   map[string][]porcupine.Operation
}

func newHistory(began time.Time) *history {
	return &history{began: began, ops: map[string][]porcupine.Operation{}}
}

// now gives the time by the history's clock.
func (h *history) now() int64 { return int64(time.Since(h.began)) }

// wall gives a time of the history's clock as the wall clock showed it.
func (h *history) wall(at int64) time.Time { return h.began.Add(time.Duration(at)) }

// add records an operation on a subject.
func (h *history) add(subject string, client int, call, ret int64, input, output any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops[subject] = append(h.ops[subject], porcupine.Operation{
		ClientId: client, Input: input, Output: output, Call: call, Return: ret,
	})
}

// of gives the operations on a subject.
func (h *history) of(subject string) []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]porcupine.Operation(nil), h.ops[subject]...)
}

// subjects gives what was acted on, and how many operations there are in all.
func (h *history) subjects() (names []string, operations int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, ops := range h.ops {
		names = append(names, name)
		operations += len(ops)
	}
	return names, operations
}
