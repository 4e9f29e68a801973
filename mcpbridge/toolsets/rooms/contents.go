package rooms

import (
	"context"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
)

const (
	// maxKept is how many bytes content may have that is kept, maxContents how many all of it together.
	maxKept     = 64 << 10
	maxContents = 16 << 20
	// minKept stands for what the least content takes, so that many of nothing do not take all memory.
	minKept = 1 << 10
)

// contentKey names content. Who may see it was decided before.
type contentKey struct {
	room   types.UID
	sha256 string
}

// contents keeps small contents that were read last. What a hash stands for never changes, so nothing in it goes stale.
type contents struct {
	mu    sync.Mutex
	known *lru.LRU[contentKey, []byte]
	bytes int
}

func newContents() *contents {
	c := &contents{}
	c.known, _ = lru.NewLRU(maxContents/minKept, func(_ contentKey, content []byte) { c.bytes -= len(content) }) // no error: the size is positive
	return c
}

func (c *contents) get(k contentKey) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.Get(k)
}

func (c *contents) put(k contentKey, content []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known.Contains(k) {
		return
	}
	c.known.Add(k, content)
	for c.bytes += len(content); c.bytes > maxContents; {
		c.known.RemoveOldest()
	}
}

// bytes gives a part of a version's content. Nobody may change what it gives.
func (t *Toolset) bytes(ctx context.Context, a *access, v v1alpha1.FileVersion, part files.Span) ([]byte, error) {
	if part.Length <= 0 {
		return nil, nil
	}
	if v.Size > maxKept {
		return t.blobs.Read(ctx, a.room.UID, v.SHA256, part.Offset, part.Length)
	}
	key := contentKey{room: a.room.UID, sha256: v.SHA256}
	content, known := t.contents.get(key)
	if !known {
		var err error
		if content, err = t.blobs.Read(ctx, a.room.UID, v.SHA256, 0, v.Size); err != nil {
			return nil, err
		}
		if int64(len(content)) == v.Size {
			t.contents.put(key, content)
		}
	}
	from := min(part.Offset, int64(len(content)))
	return content[from:min(from+part.Length, int64(len(content)))], nil
}
