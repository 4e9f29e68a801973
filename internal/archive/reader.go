package archive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

const (
	// readTimeout bounds one read of the blob store.
	readTimeout = 15 * time.Second
	// readsAtOnce bounds how many segments are decoded at the same time.
	readsAtOnce = 4
	// DefaultCacheBytes is what the cache of segments may take.
	DefaultCacheBytes = 32 << 20
)

// Options of a Reader.
type Options struct {
	// Bucket holds the segments. Without one nothing can be read.
	Bucket Bucket
	// CacheBytes bounds the memory for segments that were read: 32 MiB when zero. A segment that is larger is read each time.
	CacheBytes int64
	// Registry for metrics. They are not registered anywhere when nil.
	Registry prometheus.Registerer
	// Clock is the real one when nil.
	Clock clock.PassiveClock
}

// place names a segment.
type place struct {
	room  types.UID
	first int64
}

func (p place) String() string { return fmt.Sprintf("%s/%d", p.room, p.first) }

// Reader reads segments, and keeps those it read last as far as its memory goes. It is safe for concurrent use.
type Reader struct {
	bucket Bucket
	limit  int64
	clock  clock.PassiveClock
	reads  *prometheus.CounterVec
	flight singleflight.Group
	slots  *semaphore.Weighted

	mu       sync.Mutex
	segments *lru.LRU[place, *Segment]
	bytes    int64
	keys     *lru.LRU[place, *keyTable]
}

// NewReader makes a Reader.
func NewReader(o Options) *Reader {
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &Reader{bucket: o.Bucket, limit: o.CacheBytes, clock: o.Clock, slots: semaphore.NewWeighted(readsAtOnce)}
	r.reads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentrooms_archive_reads_total",
		Help: "Segments of old messages that were asked for, by result: cached, read or failed.",
	}, []string{"result"})
	if o.Registry != nil {
		o.Registry.MustRegister(r.reads)
	}
	// The sizes are positive, which is all that could be wrong.
	r.segments, _ = lru.NewLRU(maxSegments, func(_ place, s *Segment) { r.bytes -= s.Size })
	r.keys, _ = lru.NewLRU[place, *keyTable](maxKeyTables, nil)
	return r
}

// maxSegments bounds the cache beside its bytes.
const maxSegments = 4096

// At gives the message with a seq. The error is a *problem.Problem: UNAVAILABLE.
func (r *Reader) At(ctx context.Context, room types.UID, seq int64) (roomlog.Entry, error) {
	list, err := r.Range(ctx, room, seq, seq)
	if err != nil {
		return roomlog.Entry{}, err
	}
	return list[0], nil
}

// Range gives the messages of a range of seqs, both ends included, oldest first. They must be in the archive. The error is a
// *problem.Problem: UNAVAILABLE.
func (r *Reader) Range(ctx context.Context, room types.UID, from, to int64) ([]roomlog.Entry, error) {
	list := make([]roomlog.Entry, 0, max(0, to-from+1))
	for first := FirstOf(from); first <= to; first += SegmentMessages {
		s, err := r.segment(ctx, place{room, first})
		if err != nil {
			return nil, unavailable(err)
		}
		for seq := max(from, first); seq <= min(to, first+SegmentMessages-1); seq++ {
			list = append(list, roomlog.Entry{Seq: seq, Message: &s.Messages[seq-first]})
		}
	}
	return list, nil
}

// Stored says whether there is a blob store at all.
func (r *Reader) Stored() bool { return r.bucket != nil }

// Task gives an archived task that moved to the blob store, false when it did not. The error is a *problem.Problem: UNAVAILABLE.
func (r *Reader) Task(ctx context.Context, room types.UID, id string) (*v1alpha1.Task, bool, error) {
	v, err := r.shared(ctx, "t/"+TaskKey(room, id), func(ctx context.Context) (any, error) {
		task, err := ReadTask(ctx, r.bucket, room, id)
		if errors.Is(err, ErrNoTask) {
			return (*v1alpha1.Task)(nil), nil
		}
		return task, err
	})
	if err != nil {
		return nil, false, unavailable(err)
	}
	task := v.(*v1alpha1.Task) //nolint:forcetypeassert // made above
	return task, task != nil, nil
}

// Trouble is an error of the blob store as the caller of a tool gets to see it. The cause is for the log.
type Trouble struct {
	*problem.Problem
	cause error
}

// Error gives the cause as well.
func (t *Trouble) Error() string { return t.Problem.Error() + ": " + t.cause.Error() }

// Unwrap gives the problem and the cause.
func (t *Trouble) Unwrap() []error { return []error{t.Problem, t.cause} }

func unavailable(cause error) error {
	p := problem.New(problem.Unavailable, "the store of old messages does not answer as it should: try again").
		WithHint("newer messages can be read and sent; if it lasts, tell whoever runs Agent Rooms")
	p.RetryAfterSeconds = 5
	return &Trouble{Problem: p, cause: cause}
}

// segment gives a segment from the cache or the blob store. Equal reads at the same time are one.
func (r *Reader) segment(ctx context.Context, p place) (*Segment, error) {
	r.mu.Lock()
	s, ok := r.segments.Get(p)
	r.mu.Unlock()
	if ok {
		r.reads.WithLabelValues("cached").Inc()
		return s, nil
	}
	v, err := r.shared(ctx, "s/"+p.String(), func(ctx context.Context) (any, error) {
		s, err := Read(ctx, r.bucket, p.room, p.first)
		if err == nil {
			r.keep(p, s)
		}
		return s, err
	})
	if err != nil {
		return nil, err
	}
	return v.(*Segment), nil //nolint:forcetypeassert // made above
}

// shared makes a read for all who ask for it now. It goes on when one of them gives up.
func (r *Reader) shared(ctx context.Context, name string, load func(context.Context) (any, error)) (any, error) {
	if r.bucket == nil {
		return nil, fmt.Errorf("no blob store is set up here")
	}
	done := r.flight.DoChan(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		if err := r.slots.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("waiting for other reads: %w", err)
		}
		defer r.slots.Release(1)
		v, err := load(ctx)
		if err != nil {
			r.reads.WithLabelValues("failed").Inc()
			return nil, err
		}
		r.reads.WithLabelValues("read").Inc()
		return v, nil
	})
	select {
	case result := <-done:
		return result.Val, result.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the blob store: %w", ctx.Err())
	}
}

func (r *Reader) keep(p place, s *Segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Size > r.limit || r.segments.Contains(p) {
		return
	}
	r.segments.Add(p, s)
	for r.bytes += s.Size; r.bytes > r.limit; {
		r.segments.RemoveOldest()
	}
}

// CachedBytes is what the cache of segments takes now.
func (r *Reader) CachedBytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

var _ roomlog.Archive = (*Reader)(nil)

// Sent finds what was sent under a key within the last 24 hours, in the segments up to a seq.
func (r *Reader) Sent(ctx context.Context, room *v1alpha1.Room, through int64, key string) (roomlog.Entry, bool, error) {
	seqs, err := r.candidates(ctx, room.UID, through, key)
	if err != nil {
		return roomlog.Entry{}, false, unavailable(err)
	}
	for _, seq := range seqs {
		e, err := r.At(ctx, room.UID, seq)
		if err != nil {
			return roomlog.Entry{}, false, err
		}
		if e.Message.Key == key {
			return e, true, nil
		}
	}
	return roomlog.Entry{}, false, nil
}
