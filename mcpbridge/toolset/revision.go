package toolset

import (
	"context"
	"maps"
	"sync"
)

// Revision is what a call wrote, in words that any replica understands: given back with the next call, it makes a replica
// that has not seen the writes yet wait for them. The zero value is ready; it is safe for concurrent use.
type Revision struct {
	mu    sync.Mutex
	marks map[string]string
}

type revisionKey struct{}

// WithRevision returns a context in which handlers note what they write.
func WithRevision(ctx context.Context) (context.Context, *Revision) {
	r := &Revision{}
	return context.WithValue(ctx, revisionKey{}, r), r
}

// Wrote notes that something of a sort was written, up to a mark. A later mark of the same sort replaces an earlier one.
// Outside of a call it does nothing.
func Wrote(ctx context.Context, sort, mark string) {
	r, ok := ctx.Value(revisionKey{}).(*Revision)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.marks == nil {
		r.marks = map[string]string{}
	}
	r.marks[sort] = mark
}

// Marks gives what was noted, by sort.
func (r *Revision) Marks() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.marks)
}
