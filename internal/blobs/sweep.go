package blobs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"time"

	"gocloud.dev/blob"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxSweep bounds the objects that one sweep takes up. The next goes on.
const maxSweep = 10_000

// SweepOptions says how a sweep judges age.
type SweepOptions struct {
	// Grace is the age from which content without a reference is collected; zero means that of the store, and it cannot be
	// less, since Put relies on that.
	Grace time.Duration
	// Now is the time.
	Now time.Time
}

// SweepStats says what a sweep did.
type SweepStats struct {
	// Trashed objects of content went into the trash, Restored ones came back from there.
	Trashed, Restored int
	// Deleted objects are gone for good: content from the trash, uploads never completed, what a crash left.
	Deleted int
	// Bytes are those of the deleted ones.
	Bytes int64
	// Kept objects of content are what the sweep saw and left.
	Kept int
	// KeptBytes are theirs.
	KeptBytes int64
	// Young objects are too young to be judged: there is more to do once the grace time has passed.
	Young int
	// More is true when there was more to do than one sweep takes.
	More bool
}

// sweep is one sweep of a room.
type sweep struct {
	store  *Store
	prefix string
	grace  time.Duration
	now    time.Time
	most   int
	stats  SweepStats
}

// Sweep collects content of a room that nobody refers to, uploads that were never completed, and what crashes left.
// referenced gives the hashes that are referred to, read live from the API server; it is asked only when something is old
// enough. A sweep that fails or is killed at any point loses nothing; the next does the rest.
func (s *Store) Sweep(ctx context.Context, room types.UID, referenced func(context.Context) (sets.Set[string], error), o SweepOptions) (SweepStats, error) {
	prefix, err := roomPrefix(room)
	if err != nil {
		return SweepStats{}, err
	}
	if o.Grace == 0 {
		o.Grace = s.grace
	}
	if o.Grace < s.grace {
		return SweepStats{}, invalid("the sweep has a grace time of %s, the store was opened with %s: it cannot be less", o.Grace, s.grace)
	}
	if err := s.ready(); err != nil {
		return SweepStats{}, s.failed("sweeping", err)
	}
	w := &sweep{store: s, prefix: prefix, grace: o.Grace, now: o.Now, most: cmp.Or(s.sweepAtOnce, maxSweep)}
	err = w.run(ctx, referenced)
	return w.stats, s.failed("sweeping", err)
}

func (w *sweep) run(ctx context.Context, referenced func(context.Context) (sets.Set[string], error)) error {
	if err := w.leftovers(ctx); err != nil {
		return err
	}
	w.store.at("sweep: list")
	content, err := w.old(ctx, contentDir, nil)
	if err != nil {
		return err
	}
	crowded := w.stats.More
	trash, err := w.old(ctx, trashDir, nil)
	if err != nil || len(content)+len(trash) == 0 {
		return err
	}
	w.store.at("sweep: references")
	used, err := referenced(ctx)
	if err != nil {
		return err
	}
	if crowded {
		// Most of what is old may be in use: only what is not counts. What gets a reference meanwhile is found below.
		w.stats.Kept, w.stats.KeptBytes, w.stats.More = 0, 0, len(trash) == w.most
		if content, err = w.old(ctx, contentDir, used); err != nil {
			return err
		}
	}
	if err := w.empty(ctx, trash, used); err != nil {
		return err
	}
	moved, err := w.collect(ctx, content, used)
	if err != nil || len(moved) == 0 {
		return err
	}
	w.store.at("sweep: references again")
	used, err = referenced(ctx)
	if err != nil {
		return err // what is in the trash is found there
	}
	for _, trash := range moved {
		if used.Has(hashOf(trash)) {
			if err := w.restore(ctx, trash); err != nil {
				return err
			}
		}
	}
	return nil
}

// old lists the objects of a folder that are older than the grace time, but those that are in use. Objects that are not whole are
// deleted instead.
func (w *sweep) old(ctx context.Context, dir string, used sets.Set[string]) ([]*blob.ListObject, error) {
	var found []*blob.ListObject
	list := w.store.bucket.List(&blob.ListOptions{Prefix: w.prefix + dir})
	for {
		object, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		name := path.Base(object.Key)
		whole := hashPattern.MatchString(name) || trashPattern.MatchString(name)
		if whole && dir == contentDir {
			w.stats.Kept++
			w.stats.KeptBytes += object.Size
		}
		if w.now.Sub(object.ModTime) <= w.grace {
			w.stats.Young++
			continue
		}
		if used.Has(name) {
			continue
		}
		if len(found) == w.most {
			w.stats.More = true
			return found, nil
		}
		if whole {
			found = append(found, object)
		} else if leftPattern.MatchString(name) {
			if err := w.remove(ctx, object); err != nil {
				return nil, err
			}
		}
	}
}

// leftovers deletes what is old among uploads and what was being written.
func (w *sweep) leftovers(ctx context.Context) error {
	for _, dir := range []string{uploadDir, tempDir} {
		list := w.store.bucket.List(&blob.ListOptions{Prefix: w.prefix + dir})
		for {
			object, err := list.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if w.now.Sub(object.ModTime) <= w.grace {
				w.stats.Young++
				continue
			}
			if err := w.remove(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// empty deletes old trash that is still not referred to, and brings back what is.
func (w *sweep) empty(ctx context.Context, trash []*blob.ListObject, used sets.Set[string]) error {
	for _, object := range trash {
		var err error
		if used.Has(hashOf(object.Key)) {
			err = w.restore(ctx, object.Key)
		} else {
			w.store.at("sweep: delete trash")
			err = w.remove(ctx, object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// collect moves old content that is not referred to into the trash, and gives the keys there.
func (w *sweep) collect(ctx context.Context, content []*blob.ListObject, used sets.Set[string]) (moved []string, err error) {
	for _, object := range content {
		if used.Has(path.Base(object.Key)) {
			continue
		}
		trash, err := w.move(ctx, object)
		if err != nil {
			return nil, err
		}
		if trash != "" {
			moved = append(moved, trash)
		}
	}
	return moved, nil
}

// move takes one object of content into the trash, unless it has been written again meanwhile. The copy has a name of its own,
// so that no other sweep deletes it in the belief that it is an old one; and what is not deleted soon after the copy was
// made is not deleted at all, since the copy might be gone by then.
func (w *sweep) move(ctx context.Context, object *blob.ListObject) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, w.grace/4)
	defer cancel()
	w.store.at("sweep: look again")
	attrs, err := w.store.bucket.Attributes(ctx, object.Key)
	if missing(err) {
		return "", nil
	}
	if err != nil || w.now.Sub(attrs.ModTime) <= w.grace {
		return "", err
	}
	trash := trashPrefix(object.Key) + nonce()
	w.store.at("sweep: copy")
	if err := w.store.copy(ctx, trash, object.Key); err != nil {
		return "", ignoreMissing(err)
	}
	w.store.at("sweep: delete")
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := ignoreMissing(w.store.bucket.Delete(ctx, object.Key)); err != nil {
		return "", err
	}
	w.stats.Trashed++
	w.stats.Kept--
	w.stats.KeptBytes -= object.Size
	return trash, nil
}

// restore brings content back from the trash.
func (w *sweep) restore(ctx context.Context, trash string) error {
	w.store.at("sweep: copy back")
	if err := w.store.copy(ctx, contentOfTrash(trash), trash); err != nil {
		return ignoreMissing(err)
	}
	w.stats.Restored++
	w.store.at("sweep: delete trash")
	return ignoreMissing(w.store.bucket.Delete(ctx, trash))
}

func (w *sweep) remove(ctx context.Context, object *blob.ListObject) error {
	if err := w.store.bucket.Delete(ctx, object.Key); err != nil {
		return ignoreMissing(err)
	}
	w.stats.Deleted++
	w.stats.Bytes += object.Size
	return nil
}

// DropRoom deletes everything that the bucket has of a room, for good. It can be called again after it failed.
func (s *Store) DropRoom(ctx context.Context, room types.UID) (SweepStats, error) {
	prefix, err := roomPrefix(room)
	if err != nil {
		return SweepStats{}, err
	}
	if err := s.ready(); err != nil {
		return SweepStats{}, s.failed("deleting the room's content", err)
	}
	w := &sweep{store: s, prefix: prefix}
	list := s.bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		object, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.remove(ctx, object)
		}
		if err != nil {
			return w.stats, s.failed("deleting the room's content", err)
		}
	}
	if s.local != nil {
		s.local.prune(prefix)
	}
	return w.stats, nil
}

// trashPrefix gives what the keys in the trash begin with for a key of content.
func trashPrefix(content string) string {
	dir, hash := path.Split(content)
	return strings.TrimSuffix(dir, contentDir) + trashDir + hash + "."
}

// contentOfTrash gives the key of content for one in the trash.
func contentOfTrash(trash string) string {
	dir, _ := path.Split(trash)
	return strings.TrimSuffix(dir, trashDir) + contentDir + hashOf(trash)
}

// hashOf gives the hash that the name of a key begins with.
func hashOf(key string) string {
	hash, _, _ := strings.Cut(path.Base(key), ".")
	return hash
}

func ignoreMissing(err error) error {
	if err == nil || missing(err) {
		return nil
	}
	return err
}
