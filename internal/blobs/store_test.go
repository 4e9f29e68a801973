package blobs_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/test/s3"
)

const room types.UID = "0f0e0d0c-0b0a-4988-8765-432100ffeedd"

// each runs a test against every kind of store that runs on this machine.
func each(t *testing.T, test func(t *testing.T, s *blobs.Store)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) { test(t, openFolder(t)) })
	t.Run("S3", func(t *testing.T) { test(t, open(t, blobs.Options{URL: s3.Start(t)})) })
}

// openFolder opens a local folder whose transfers are served.
func openFolder(t *testing.T) *blobs.Store {
	t.Helper()
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	s := open(t, blobs.Options{URL: "file://" + t.TempDir(), PublicURL: server.URL + "/transfer"})
	handler = s.Handler()
	return s
}

func open(t *testing.T, o blobs.Options) *blobs.Store {
	t.Helper()
	s, err := blobs.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("opening: %v", blobs.Detail(err))
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %s", blobs.Detail(err))
		}
		return value
	}
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func random(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.Read(content)
	return content
}

func expect(content []byte) blobs.Expect {
	return blobs.Expect{SHA256: hashOf(content), Size: int64(len(content)), ContentType: "image/png"}
}

// send does what an upload URL is for, with changes to the request.
func send(t *testing.T, to blobs.Transfer, content []byte, change ...func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, to.URL, bytes.NewReader(content))
	if err != nil {
		t.Fatalf("making a request: %v", err)
	}
	for name, value := range to.Headers {
		r.Header.Set(name, value)
	}
	// A server that refuses an upload may close the connection with the bytes unread: the next request takes its own.
	r.Close = true
	for _, c := range change {
		c(r)
	}
	return do(t, r)
}

func get(t *testing.T, url string, change ...func(*http.Request)) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatalf("making a request: %v", err)
	}
	for _, c := range change {
		c(r)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", r.Method, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return response, body
}

func do(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", r.Method, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return response.StatusCode, string(body)
}

func TestContentComesBackAsItWas(t *testing.T) {
	each(t, func(t *testing.T, s *blobs.Store) {
		t.Helper()
		for name, content := range map[string][]byte{
			"empty": {}, "text": []byte("grüße, 世界"), "binary": random(300 << 10), "not utf-8": {0xff, 0xfe, 0, '\n'},
		} {
			t.Run(name, func(t *testing.T) {
				hash := must(s.Put(t.Context(), room, content))(t)
				if hash != hashOf(content) {
					t.Errorf("hash = %s, want %s", hash, hashOf(content))
				}
				if again := must(s.Put(t.Context(), room, content))(t); again != hash {
					t.Errorf("the second time the hash is %s", again)
				}
				if got := must(s.Read(t.Context(), room, hash, 0, 1<<20))(t); !bytes.Equal(got, content) {
					t.Errorf("read %d bytes, want the %d that were written", len(got), len(content))
				}
				for _, at := range []struct{ offset, length int64 }{{0, 0}, {1, 3}, {int64(len(content)), 5}, {int64(len(content)) + 9, 5}, {2, 1 << 20}} {
					from := min(at.offset, int64(len(content)))
					want := content[from:min(from+at.length, int64(len(content)))]
					if got := must(s.Read(t.Context(), room, hash, at.offset, at.length))(t); !bytes.Equal(got, want) {
						t.Errorf("range %+v = %d bytes, want %d", at, len(got), len(want))
					}
				}
				reader, size, err := s.NewReader(t.Context(), room, hash)
				if err != nil {
					t.Fatalf("streaming: %v", err)
				}
				defer func() { _ = reader.Close() }()
				if got := must(io.ReadAll(reader))(t); !bytes.Equal(got, content) || size != int64(len(content)) {
					t.Errorf("streamed %d bytes of %d, want %d", len(got), size, len(content))
				}
			})
		}
		if _, err := s.Read(t.Context(), "another-room", hashOf(nil), 0, 1); !blobs.IsNotFound(err) {
			t.Errorf("another room reads it: %v", err)
		}
	})
}

func TestWhatCanNeverBeIsRefused(t *testing.T) {
	s := openFolder(t)
	good := hashOf(nil)
	ctx := t.Context()
	for name, err := range map[string]error{
		"length -1":   second(s.Read(ctx, room, good, 0, -1)),
		"length":      second(s.Read(ctx, room, good, 0, 1<<40)),
		"offset":      second(s.Read(ctx, room, good, -1, 1)),
		"hash":        second(s.Read(ctx, room, "../../../etc/passwd", 0, 1)),
		"upper case":  second(s.Read(ctx, room, strings.ToUpper(good), 0, 1)),
		"room":        second(s.Put(ctx, "../x", nil)),
		"no room":     second(s.Put(ctx, "", nil)),
		"room, drop":  second(s.DropRoom(ctx, "")),
		"room, sweep": second(s.Sweep(ctx, "a/b", nil, blobs.SweepOptions{Now: time.Now()})),
		"grace":       second(s.Sweep(ctx, room, nil, blobs.SweepOptions{Now: time.Now(), Grace: time.Minute})),
		"upload id":   s.DropUpload(ctx, room, "../content/"+good),
		"upload tmp":  s.DropUpload(ctx, room, "a.1f.tmp"),
		"upload dots": s.DropUpload(ctx, room, "a..b"),
		"upload __":   s.DropUpload(ctx, room, "a__0x2f__b"),
		"size":        second(s.UploadURL(ctx, room, "u", blobs.Expect{SHA256: good, Size: -1}, 0)),
		"type":        second(s.UploadURL(ctx, room, "u", blobs.Expect{SHA256: good, ContentType: "text/plain\r\nX: y"}, 0)),
		"sha256":      second(s.UploadURL(ctx, room, "u", blobs.Expect{SHA256: "abc"}, 0)),
		"ttl":         second(s.UploadURL(ctx, room, "u", blobs.Expect{SHA256: good}, 2*time.Hour)),
		"ttl below 0": second(s.DownloadURL(ctx, room, good, "f", "", -time.Second)),
		"scheme":      second(blobs.Open(ctx, blobs.Options{URL: "mem://"})),
		"path":        second(blobs.Open(ctx, blobs.Options{URL: "file://relative/path"})),
		"public URL":  second(blobs.Open(ctx, blobs.Options{URL: "file://" + t.TempDir(), PublicURL: "/transfer"})),
	} {
		if !errors.Is(err, blobs.ErrInvalid) {
			t.Errorf("%s: error = %v, want one that says what is invalid", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestSweepTakesOnlyWhatNobodyRefersTo(t *testing.T) {
	each(t, func(t *testing.T, s *blobs.Store) {
		t.Helper()
		kept, gone := must(s.Put(t.Context(), room, []byte("kept")))(t), must(s.Put(t.Context(), room, []byte("gone")))(t)
		asked := 0
		referenced := func(context.Context) (sets.Set[string], error) {
			asked++
			return sets.New(kept), nil
		}
		at := func(later time.Duration) blobs.SweepStats {
			t.Helper()
			return must(s.Sweep(t.Context(), room, referenced, blobs.SweepOptions{Now: time.Now().Add(later)}))(t)
		}
		if stats := at(time.Minute); stats.Trashed != 0 || stats.Kept != 2 || asked != 0 {
			t.Errorf("young: %+v and %d questions, want nothing done and none asked", stats, asked)
		}
		if stats := at(2 * time.Hour); stats.Trashed != 1 || stats.Kept != 1 {
			t.Errorf("old: %+v, want one in the trash", stats)
		}
		if _, err := s.Bucket().Attributes(t.Context(), "rooms/"+string(room)+"/content/"+gone); err == nil {
			t.Errorf("the content is still in its place")
		}
		if got := must(s.Read(t.Context(), room, gone, 0, 10))(t); string(got) != "gone" {
			t.Errorf("from the trash: %q", got)
		}
		if _, err := s.Bucket().Attributes(t.Context(), "rooms/"+string(room)+"/content/"+gone); err != nil {
			t.Errorf("reading has not put it back: %v", err)
		}
		if stats := at(4 * time.Hour); stats.Deleted != 1 || stats.Trashed != 1 {
			t.Errorf("older: %+v, want the trash deleted and the copy in it", stats)
		}
		if stats := at(8 * time.Hour); stats.Deleted != 1 {
			t.Errorf("oldest: %+v, want the trash deleted", stats)
		}
		if _, err := s.Read(t.Context(), room, gone, 0, 10); !blobs.IsNotFound(err) {
			t.Errorf("reading what is gone: %v", err)
		}
		if got := must(s.Read(t.Context(), room, kept, 0, 10))(t); string(got) != "kept" {
			t.Errorf("what is referred to: %q", got)
		}
		if stats := must(s.DropRoom(t.Context(), room))(t); stats.Deleted != 1 || stats.Bytes != 4 {
			t.Errorf("dropping: %+v", stats)
		}
	})
}

// serve has a handler answer a GET, without a server.
func serve(t *testing.T, handler http.Handler, url string) int {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
	return recorder.Code
}
