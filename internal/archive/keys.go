package archive

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// keyLife is how long a key is known at least, and an hour more for clocks that differ.
	keyLife = 25 * time.Hour
	// maxKeyTables bounds how many segments' keys are kept in memory, at 16 bytes a message: 16 MiB.
	maxKeyTables = 1024
	// maxKeySegments bounds how far back a key is looked for: 4 million messages.
	maxKeySegments = 4096
)

var seed = maphash.MakeSeed()

// keyTable holds what was sent under which key in a segment, by a hash of the key.
type keyTable struct {
	to   time.Time
	rows []keyRow
}

type keyRow struct {
	hash uint64
	seq  int64
}

func newKeyTable(h header, keys []keyed) *keyTable {
	t := &keyTable{to: h.To, rows: make([]keyRow, len(keys))}
	for i, k := range keys {
		t.rows[i] = keyRow{hash: maphash.String(seed, k.Key), seq: k.Seq}
	}
	slices.SortFunc(t.rows, func(a, b keyRow) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.seq, b.seq)) })
	return t
}

// find gives the seqs that may have been sent under a key.
func (t *keyTable) find(hash uint64) []int64 {
	i, _ := slices.BinarySearchFunc(t.rows, hash, func(r keyRow, h uint64) int { return cmp.Compare(r.hash, h) })
	var seqs []int64
	for ; i < len(t.rows) && t.rows[i].hash == hash; i++ {
		seqs = append(seqs, t.rows[i].seq)
	}
	return seqs
}

// candidates gives the seqs that may have been sent under a key within its life, oldest first: it goes back from the end of
// the archive, some segments at a time, until they are too old.
func (r *Reader) candidates(ctx context.Context, room types.UID, through int64, key string) ([]int64, error) {
	hash, oldest := maphash.String(seed, key), r.clock.Now().Add(-keyLife)
	var seqs []int64
	first := FirstOf(through)
	for n := 0; first >= 1 && n < maxKeySegments; n += readsAtOnce {
		tables := make([]*keyTable, min(readsAtOnce, int((first-1)/SegmentMessages)+1))
		group, ctx := errgroup.WithContext(ctx)
		for i := range tables {
			group.Go(func() (err error) {
				tables[i], err = r.table(ctx, place{room, first - int64(i)*SegmentMessages})
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err //nolint:wrapcheck // it says which segment
		}
		for _, t := range tables {
			if t.to.Before(oldest) {
				slices.Sort(seqs)
				return seqs, nil
			}
			seqs = append(seqs, t.find(hash)...)
		}
		first -= int64(len(tables)) * SegmentMessages
	}
	slices.Sort(seqs)
	return seqs, nil
}

// table gives the keys of a segment from the cache or the blob store.
func (r *Reader) table(ctx context.Context, p place) (*keyTable, error) {
	r.mu.Lock()
	t, ok := r.keys.Get(p)
	r.mu.Unlock()
	if ok {
		return t, nil
	}
	v, err := r.shared(ctx, "k/"+p.String(), func(ctx context.Context) (any, error) {
		name := Key(p.room, p.first)
		packed, err := read(ctx, r.bucket, name)
		if err != nil {
			return nil, err
		}
		h, keys, err := decodeKeys(packed, p.room, p.first)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		t := newKeyTable(h, keys)
		r.mu.Lock()
		r.keys.Add(p, t)
		r.mu.Unlock()
		return t, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*keyTable), nil //nolint:forcetypeassert // made above
}
