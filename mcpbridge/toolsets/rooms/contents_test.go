package rooms

import (
	"bytes"
	"fmt"
	"testing"
)

func TestContentsAreKeptARoomAndWithinTheirBound(t *testing.T) {
	c := newContents()
	key := func(n int) contentKey { return contentKey{room: "a", sha256: fmt.Sprint(n)} }
	const many = 3 * maxContents / maxKept
	for n := range many {
		c.put(key(n), bytes.Repeat([]byte{byte(n)}, maxKept))
		c.put(key(n), bytes.Repeat([]byte{byte(n)}, maxKept))
	}
	if got, ok := c.get(key(many - 1)); !ok || !bytes.Equal(got, bytes.Repeat([]byte{(many - 1) % 256}, maxKept)) {
		t.Errorf("the last one is kept: %t, with %d bytes", ok, len(got))
	}
	if _, ok := c.get(key(0)); ok {
		t.Error("the first one is still kept")
	}
	if c.bytes > maxContents || c.bytes != c.known.Len()*maxKept {
		t.Errorf("%d contents are said to have %d bytes, at most %d are allowed", c.known.Len(), c.bytes, maxContents)
	}
	if _, ok := c.get(contentKey{room: "b", sha256: fmt.Sprint(many - 1)}); ok {
		t.Error("another room has it, too")
	}
	for n := range 2 * maxContents / minKept {
		c.put(contentKey{room: "c", sha256: fmt.Sprint(n)}, nil)
	}
	if got := c.known.Len(); got > maxContents/minKept {
		t.Errorf("%d contents of nothing are kept", got)
	}
}
