package blobs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/test/s3"
)

// While the store is down every call says so, without telling where it is; afterwards the same call succeeds.
func TestStoreComesBack(t *testing.T) {
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir() + "/store"
		s := open(t, blobs.Options{URL: "file://" + dir, PublicURL: "http://127.0.0.1:1/t"})
		testStoreComesBack(t, s, dir,
			func() { rename(t, dir, dir+".gone") },
			func() { rename(t, dir+".gone", dir) })
	})
	t.Run("S3", func(t *testing.T) {
		server := s3.New(t)
		s := open(t, blobs.Options{URL: server.URL})
		testStoreComesBack(t, s, strings.TrimPrefix(server.Endpoint, "http://"),
			func() { server.Stop(t) }, func() { server.Restart(t) })
	})
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatalf("renaming: %v", err)
	}
}

func testStoreComesBack(t *testing.T, s *blobs.Store, secret string, down, up func()) {
	t.Helper()
	content := random(100)
	hash := must(s.Put(t.Context(), room, content))(t)
	calls := map[string]func() error{
		"Put":         func() error { return second(s.Put(t.Context(), room, []byte("new"))) },
		"Put again":   func() error { return second(s.Put(t.Context(), room, content)) },
		"Read":        func() error { return second(s.Read(t.Context(), room, hash, 0, 10)) },
		"PutStream":   func() error { return second(s.PutStream(t.Context(), room, bytes.NewReader(content), expect(content))) },
		"Complete":    func() error { return second(s.Complete(t.Context(), room, "u", expect(content))) },
		"DownloadURL": func() error { return second(s.DownloadURL(t.Context(), room, hash, "x", "", 0)) },
		"DropUpload":  func() error { return s.DropUpload(t.Context(), room, "u") },
		"Sweep":       func() error { return second(s.Sweep(t.Context(), room, nil, blobs.SweepOptions{Now: time.Now()})) },
	}
	down()
	for name, call := range calls {
		err := call()
		unavailable, ok := errors.AsType[*blobs.UnavailableError](err)
		if !ok || blobs.IsNotFound(err) {
			t.Errorf("%s while the store is down: %v, want unavailable", name, err)
			continue
		}
		if strings.Contains(unavailable.Error(), secret) {
			t.Errorf("%s tells where the store is: %v", name, err)
		}
	}
	up()
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s after the store came back: %s", name, blobs.Detail(err))
		}
	}
	if got := must(s.Read(t.Context(), room, hash, 0, 100))(t); !bytes.Equal(got, content) {
		t.Errorf("the content has changed")
	}
}

// pattern gives n bytes that cost no memory.
type pattern struct{ left int64 }

// Read implements io.Reader.
func (p *pattern) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.left))
	for i := range b[:n] {
		b[i] = byte((p.left - int64(i)) % 251)
	}
	p.left -= int64(n)
	return n, nil
}

// heapPeak measures how far the heap of this process rises above what it is now, until the returned function is called. Garbage is
// collected early meanwhile, so that what is measured is mostly what is held.
func heapPeak() func() uint64 {
	before := debug.SetGCPercent(20)
	runtime.GC()
	var start, now runtime.MemStats
	runtime.ReadMemStats(&start)
	var peak atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				runtime.ReadMemStats(&now)
				peak.Store(max(peak.Load(), now.HeapInuse-min(start.HeapInuse, now.HeapInuse)))
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		debug.SetGCPercent(before)
		return peak.Load()
	}
}

func TestHundredMegabytesStream(t *testing.T) {
	const size, most = 100 << 20, 64 << 20
	sum := sha256.New()
	if _, err := io.Copy(sum, &pattern{left: size}); err != nil {
		t.Fatalf("hashing: %v", err)
	}
	e := blobs.Expect{SHA256: hex.EncodeToString(sum.Sum(nil)), Size: size, ContentType: "video/mp4"}
	each(t, func(t *testing.T, s *blobs.Store) {
		t.Helper()
		to := must(s.UploadURL(t.Context(), room, "big", e, 0))(t)
		peak, start := heapPeak(), time.Now()
		r := must(http.NewRequestWithContext(t.Context(), http.MethodPut, to.URL, &pattern{left: size}))(t)
		r.ContentLength = size
		for name, value := range to.Headers {
			r.Header.Set(name, value)
		}
		if code, text := do(t, r); code != http.StatusOK {
			t.Fatalf("uploading: %d %s", code, text)
		}
		up := time.Since(start)
		if got := must(s.Complete(t.Context(), room, "big", e))(t); !got.OK {
			t.Fatalf("completing: %+v", got)
		}
		completed := time.Since(start) - up
		from := must(s.DownloadURL(t.Context(), room, e.SHA256, "big.mp4", e.ContentType, 0))(t)
		response := must(http.Get(from.URL))(t)
		defer func() { _ = response.Body.Close() }()
		sum := sha256.New()
		if n, err := io.Copy(sum, response.Body); err != nil || n != size || fmt.Sprintf("%x", sum.Sum(nil)) != e.SHA256 {
			t.Errorf("downloading: %d bytes, %v, or another hash", n, err)
		}
		down := time.Since(start) - up - completed
		streamed := must(s.PutStream(t.Context(), "another", &pattern{left: size}, e))(t)
		if !streamed.OK || streamed.SHA256 != e.SHA256 {
			t.Errorf("streaming: %+v", streamed)
		}
		rise := peak()
		t.Logf("up %s, complete %s, down %s, heap +%d MiB", up, completed, down, rise>>20)
		if rise > most {
			t.Errorf("the heap rose by %d MiB, want at most %d", rise>>20, most>>20)
		}
	})
}

func TestStreamsAreCheckedOnTheWay(t *testing.T) {
	each(t, func(t *testing.T, s *blobs.Store) {
		t.Helper()
		content := random(10_000)
		for name, e := range map[string]blobs.Expect{
			"hash": {SHA256: hashOf(nil), Size: -1}, "fewer": {Size: 10_001}, "more": {SHA256: hashOf(content), Size: 9_999},
		} {
			if got := must(s.PutStream(t.Context(), room, bytes.NewReader(content), e))(t); got.OK || got.Reason == "" {
				t.Errorf("%s: %+v, want it refused", name, got)
			}
		}
		broken := io.MultiReader(bytes.NewReader(content), brokenReader{})
		if _, err := s.PutStream(t.Context(), room, broken, blobs.Expect{Size: -1}); !errors.Is(err, errBroken) {
			t.Errorf("a broken reader: %v", err)
		}
		if _, err := s.Read(t.Context(), room, hashOf(content), 0, 1); !blobs.IsNotFound(err) {
			t.Errorf("something was stored: %v", err)
		}
		got := must(s.PutStream(t.Context(), room, bytes.NewReader(content), blobs.Expect{Size: -1}))(t)
		if !got.OK || got.SHA256 != hashOf(content) || got.Size != 10_000 {
			t.Errorf("without expectations: %+v", got)
		}
		if back := must(s.Read(t.Context(), room, hashOf(content), 0, 1<<20))(t); !bytes.Equal(back, content) {
			t.Errorf("read %d bytes", len(back))
		}
		if list, err := s.Bucket().List(nil).Next(t.Context()); err != nil || strings.Contains(list.Key, "/temp/") {
			t.Errorf("first object: %+v, %v", list, err)
		}
	})
}

var errBroken = errors.New("the line broke")

type brokenReader struct{}

// Read implements io.Reader.
func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }
