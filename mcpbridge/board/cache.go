package board

import (
	"time"

	"k8s.io/utils/lru"
)

// cache remembers values for a while. It is bounded and safe for concurrent use.
type cache[T any] struct{ known *lru.Cache }

type cached[T any] struct {
	value T
	until time.Time
}

func newCache[T any](size int) *cache[T] { return &cache[T]{known: lru.New(size)} }

func (c *cache[T]) get(key string, now time.Time) (T, bool) {
	if found, ok := c.known.Get(key); ok {
		if v, ok := found.(cached[T]); ok && now.Before(v.until) {
			return v.value, true
		}
	}
	var none T
	return none, false
}

func (c *cache[T]) put(key string, value T, until time.Time) {
	c.known.Add(key, cached[T]{value, until})
}
