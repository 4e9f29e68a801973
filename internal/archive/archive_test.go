package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
)

const uid = types.UID("6f2b6f0e-0f4f-4b7c-9a52-0d1c5f6a7b8c")

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func segment(first int64, taken time.Time) *Segment {
	s := &Segment{Room: uid, First: first, From: taken, To: taken.Add(time.Minute)}
	for i := range int64(SegmentMessages) {
		m := v1alpha1.Message{
			Sender: v1alpha1.MessageSender{Type: v1alpha1.SenderAgent, ID: "a", Name: "é <b>"},
			Body:   fmt.Sprintf("message %d\nwith two lines 😀", first+i), At: metav1.NewMicroTime(taken.Add(time.Duration(i) * time.Microsecond)),
			Mentions: []v1alpha1.Mention{{Plate: "p", Session: "s", TaskRef: "t"}},
		}
		if i%2 == 0 {
			m.Key, m.Payload = fmt.Sprint("key", first+i), "payload"
		}
		s.Messages = append(s.Messages, m)
	}
	return s
}

func write(t *testing.T, b *blob.Bucket, s *Segment) {
	t.Helper()
	if _, err := Write(t.Context(), b, s); err != nil {
		t.Fatal(err)
	}
}

func folder(t *testing.T) (*blob.Bucket, string) {
	t.Helper()
	dir := t.TempDir()
	b, err := fileblob.OpenBucket(dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b, dir
}

func TestTheSegmentOfASeqIsComputed(t *testing.T) {
	for seq, first := range map[int64]int64{1: 1, 1000: 1, 1001: 1001, 200000: 199001} {
		if got := FirstOf(seq); got != first {
			t.Errorf("seq %d lies in the segment from %d, want %d", seq, got, first)
		}
	}
	if got, want := Key("u", 199001), "rooms/u/messages/0000000199001-0000000200000.jsonl.gz"; got != want {
		t.Errorf("the key is %s, want %s", got, want)
	}
}

func TestASegmentComesBackAsItWasWritten(t *testing.T) {
	b, _ := folder(t)
	want := segment(1001, start)
	write(t, b, want)
	got, err := Read(t.Context(), b, uid, 1001)
	if err != nil {
		t.Fatal(err)
	}
	got.Size = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Again is no change, also for another compressor's bytes, and another content is refused.
	write(t, b, segment(1001, start))
	other := segment(1001, start)
	other.Messages[500].Body = "forged"
	if _, err := Write(t.Context(), b, other); !errors.Is(err, ErrDiffers) {
		t.Errorf("writing over a segment gives %v, want ErrDiffers", err)
	}
	if again, err := Read(t.Context(), b, uid, 1001); err != nil || again.Messages[500].Body != want.Messages[500].Body {
		t.Errorf("the segment was changed: %v", err)
	}
}

func TestADamagedSegmentIsNotBelievedAndWrittenAnew(t *testing.T) {
	b, dir := folder(t)
	write(t, b, segment(1, start))
	file := filepath.Join(dir, filepath.FromSlash(Key(uid, 1)))
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	stranger, err := Encode(segment(1001, start))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"empty": {}, "half": whole[:len(whole)/2], "with a bit flipped": flipped, "of other seqs": stranger, "no gzip": []byte("hello"),
	} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(t.Context(), b, uid, 1); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a segment that is %s gives %v, want ErrCorrupt", name, err)
		}
		if name == "of other seqs" {
			continue
		}
		write(t, b, segment(1, start))
		if _, err := Read(t.Context(), b, uid, 1); err != nil {
			t.Errorf("a segment that was %s was not written anew: %v", name, err)
		}
	}
	if _, err := Encode(&Segment{Room: uid, First: 2}); err == nil {
		t.Error("a segment at no boundary was written")
	}
}

func TestNext(t *testing.T) {
	hour := func(int64) (time.Time, bool) { return start, true }
	unknown := func(int64) (time.Time, bool) { return time.Time{}, false }
	for name, c := range map[string]struct {
		policy         Policy
		archived, last int64
		taken          func(int64) (time.Time, bool)
		after          time.Duration
		due            bool
		wake           time.Duration
	}{
		"nothing said":              {policy: Policy{MaxCount: 10000}, taken: hour},
		"as many as may be":         {policy: Policy{MaxCount: 10000}, last: 10000, taken: hour},
		"one more":                  {policy: Policy{MaxCount: 10000}, last: 10001, taken: hour, due: true},
		"no whole segment":          {policy: Policy{MaxCount: 100}, last: 999, taken: hour},
		"a whole segment":           {policy: Policy{MaxCount: 100}, last: 1000, taken: hour, due: true},
		"the rest after a segment":  {policy: Policy{MaxCount: 100}, archived: 1000, last: 1999, taken: hour},
		"not old yet":               {policy: Policy{MaxCount: 10000, MaxAge: time.Hour}, last: 1500, taken: hour, after: time.Minute, wake: 59 * time.Minute},
		"old":                       {policy: Policy{MaxCount: 10000, MaxAge: time.Hour}, last: 1500, taken: hour, after: time.Hour, due: true},
		"old, and no whole segment": {policy: Policy{MaxCount: 10000, MaxAge: time.Hour}, last: 999, taken: hour, after: time.Hour},
		"of an age nobody knows":    {policy: Policy{MaxCount: 10000, MaxAge: time.Hour}, last: 1500, taken: unknown, after: time.Hour},
	} {
		due, wake := Next(c.policy, c.archived, c.last, c.taken, start.Add(c.after))
		if due != c.due || wake != c.wake {
			t.Errorf("%s: due %t, wake %s; want %t, %s", name, due, wake, c.due, c.wake)
		}
	}
	room := &v1alpha1.Room{}
	if p := PolicyOf(room); p != (Policy{MaxCount: 10000}) {
		t.Errorf("without retention the policy is %+v", p)
	}
	room.Spec.Retention = &v1alpha1.RoomRetention{Messages: &v1alpha1.MessageRetention{MaxCount: 500, MaxAgeSeconds: 7200}}
	if p := PolicyOf(room); p != (Policy{MaxCount: 500, MaxAge: 2 * time.Hour}) {
		t.Errorf("the policy is %+v", p)
	}
}

// counted gives how many segments a reader has read.
func counted(r *Reader, result string) float64 {
	return testutil.ToFloat64(r.reads.WithLabelValues(result))
}

func TestReadsAreFewAndBounded(t *testing.T) {
	b, _ := folder(t)
	const segments = 12
	for i := range int64(segments) {
		write(t, b, segment(i*SegmentMessages+1, start))
	}
	one, err := Read(t.Context(), b, uid, 1)
	if err != nil {
		t.Fatal(err)
	}
	limit := 3*one.Size + one.Size/2
	r := NewReader(Options{Bucket: b, CacheBytes: limit, Registry: prometheus.NewRegistry()})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			list, err := r.Range(t.Context(), uid, 1, 50)
			if err != nil || len(list) != 50 || list[49].Seq != 50 || !strings.HasPrefix(list[49].Message.Body, "message 50\n") {
				t.Errorf("the oldest page: %d messages, %v", len(list), err)
			}
		})
	}
	wg.Wait()
	if n := counted(r, "read"); n != 1 {
		t.Errorf("fifty equal reads at once read the store %v times", n)
	}
	list, err := r.Range(t.Context(), uid, 951, 1050)
	if err != nil || len(list) != 100 || list[0].Seq != 951 || list[99].Seq != 1050 || counted(r, "read") != 2 {
		t.Errorf("a page over a boundary: %d messages, %v, %v reads", len(list), err, counted(r, "read"))
	}
	for seq := int64(1); seq < segments*SegmentMessages; seq += 97 {
		if e, err := r.At(t.Context(), uid, seq); err != nil || e.Seq != seq {
			t.Fatalf("seq %d: %v", seq, err)
		}
		if n := r.CachedBytes(); n > limit {
			t.Fatalf("the cache holds %d bytes, and may hold %d", n, limit)
		}
	}
	if r.CachedBytes() < 2*one.Size {
		t.Errorf("the cache holds only %d bytes", r.CachedBytes())
	}
	small := NewReader(Options{Bucket: b, CacheBytes: 10})
	if _, err := small.At(t.Context(), uid, 5); err != nil || small.CachedBytes() != 0 {
		t.Errorf("a segment larger than the cache: %v, %d bytes", err, small.CachedBytes())
	}
}

func TestAStoreThatIsDownIsUnavailable(t *testing.T) {
	b := memblob.OpenBucket(nil)
	write(t, b, segment(1, start))
	r := NewReader(Options{Bucket: b})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*Reader{"one that is closed": r, "none": NewReader(Options{})} {
		_, err := r.At(t.Context(), uid, 5)
		if p, ok := problem.As(err); !ok || p.Code != problem.Unavailable || !p.Retryable {
			t.Errorf("%s: %v, want UNAVAILABLE", name, err)
		}
		room := &v1alpha1.Room{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		_, _, err = r.Sent(t.Context(), room, 1000, "key1")
		if p, ok := problem.As(err); !ok || p.Code != problem.Unavailable {
			t.Errorf("%s: looking for a key gives %v, want UNAVAILABLE", name, err)
		}
	}
}

func TestKeysAreKnownForADayAndReadOnce(t *testing.T) {
	b, _ := folder(t)
	clock := clocktesting.NewFakePassiveClock(start)
	const segments = 40
	for i := range int64(segments) {
		// A segment an hour, the last one just now.
		write(t, b, segment(i*SegmentMessages+1, start.Add(-time.Duration(segments-1-i)*time.Hour)))
	}
	r := NewReader(Options{Bucket: b, Clock: clock})
	room := &v1alpha1.Room{ObjectMeta: metav1.ObjectMeta{UID: uid}}
	sent := func(seq int64) bool {
		t.Helper()
		e, found, err := r.Sent(t.Context(), room, segments*SegmentMessages, fmt.Sprint("key", seq))
		if err != nil || (found && e.Seq != seq) {
			t.Fatalf("key %d: %+v, %v", seq, e, err)
		}
		return found
	}
	last := int64(segments * SegmentMessages)
	if !sent(last-1) || !sent(last-24*SegmentMessages+1) {
		t.Error("a key of the last day is not known")
	}
	if sent(1) {
		t.Error("a key of two days ago was looked for: that costs more with every day")
	}
	reads := counted(r, "read")
	if reads > 32 {
		t.Errorf("%v reads for a day of 24 segments", reads)
	}
	for range 100 {
		if sent(last + 5) {
			t.Error("an unknown key is known")
		}
	}
	if n := counted(r, "read"); n != reads {
		t.Errorf("%v reads for keys that were read already", n-reads)
	}
	// A replica whose log begins earlier looks no further than it must.
	if _, found, err := r.Sent(t.Context(), room, last-SegmentMessages, fmt.Sprint("key", last-1)); found || err != nil {
		t.Errorf("a key beyond the seam: %t, %v", found, err)
	}
}

func TestAReadGoesOnWhenOneOfThoseWhoWaitGivesUp(t *testing.T) {
	b, _ := folder(t)
	write(t, b, segment(1, start))
	r := NewReader(Options{Bucket: b})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var failed atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			ctx := ctx
			if i%2 == 0 {
				ctx = t.Context()
			}
			if _, err := r.At(ctx, uid, 7); err != nil {
				failed.Add(1)
				if i%2 == 0 {
					t.Errorf("a read failed because another one gave up: %v", err)
				}
			}
		})
	}
	wg.Wait()
}
