package blobs_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/test/s3"
)

func TestUploadBecomesContent(t *testing.T) {
	each(t, func(t *testing.T, s *blobs.Store) {
		t.Helper()
		for name, content := range map[string][]byte{"some": random(70_000), "none": {}} {
			e := expect(content)
			before := must(s.Complete(t.Context(), room, "up-"+name, e))(t)
			if !before.Missing || before.OK {
				t.Errorf("%s: completing before the bytes: %+v, want missing", name, before)
			}
			to := must(s.UploadURL(t.Context(), room, "up-"+name, e, 0))(t)
			if left := time.Until(to.ExpiresAt); left > 15*time.Minute || left < 14*time.Minute {
				t.Errorf("%s: the URL lasts %s, want 15m", name, left)
			}
			for range 2 { // upload twice
				if code, text := send(t, to, content); code != http.StatusOK {
					t.Fatalf("%s: uploading: %d %s", name, code, text)
				}
			}
			want := blobs.Verdict{OK: true, Size: e.Size, SHA256: e.SHA256}
			for range 2 { // complete twice
				if diff := cmp.Diff(want, must(s.Complete(t.Context(), room, "up-"+name, e))(t)); diff != "" {
					t.Errorf("%s: verdict (-want +got):\n%s", name, diff)
				}
			}
			for range 2 {
				if err := s.DropUpload(t.Context(), room, "up-"+name); err != nil {
					t.Errorf("%s: dropping: %v", name, err)
				}
			}
			if again := must(s.Complete(t.Context(), room, "up-"+name, e))(t); !again.Missing {
				t.Errorf("%s: completing after the upload was dropped: %+v, want missing", name, again)
			}
			if got := must(s.Read(t.Context(), room, e.SHA256, 0, 1<<20))(t); !bytes.Equal(got, content) {
				t.Errorf("%s: content has %d bytes, want %d", name, len(got), len(content))
			}
		}
	})
}

func TestUploadIsHeldToWhatWasDeclared(t *testing.T) {
	content := random(5000)
	other := random(5000)
	each(t, func(t *testing.T, s *blobs.Store) {
		t.Helper()
		to := must(s.UploadURL(t.Context(), room, "held", expect(content), time.Minute))(t)
		for name, try := range map[string]struct {
			bytes  []byte
			change func(*http.Request)
		}{
			"fewer":      {content[:4999], func(*http.Request) {}},
			"more":       {append(bytes.Clone(content), 1), func(*http.Request) {}},
			"type":       {content, func(r *http.Request) { r.Header.Set("Content-Type", "text/html") }},
			"no type":    {content, func(r *http.Request) { r.Header.Del("Content-Type") }},
			"method":     {nil, func(r *http.Request) { r.Method = http.MethodGet }},
			"delete":     {nil, func(r *http.Request) { r.Method = http.MethodDelete }},
			"chunks":     {content, func(r *http.Request) { r.ContentLength = -1 }},
			"cut":        {content, func(r *http.Request) { r.URL.Path = r.URL.Path[:len(r.URL.Path)-1] }},
			"checksum":   {other, func(*http.Request) {}},
			"other room": {content, func(r *http.Request) { r.URL.Path = strings.Replace(r.URL.Path, string(room), "another", 1) }},
		} {
			if s.Handler() != nil && (name == "checksum" || name == "other room") {
				continue // The folder takes any bytes of that length, and Complete judges them; the room stands in the token.
			}
			code, text := send(t, to, try.bytes, try.change)
			if code < 400 || code >= 500 || text == "" {
				t.Errorf("%s: %d %q, want it refused", name, code, text)
			}
			if got := must(s.Complete(t.Context(), room, "held", expect(content)))(t); !got.Missing {
				t.Fatalf("%s: something was stored: %+v", name, got)
			}
		}
	})
}

// Whoever can write to the bucket otherwise, or a store that signs less, must not get past Complete.
func TestCompletionJudgesTheBytes(t *testing.T) {
	content := random(5000)
	each(t, func(t *testing.T, s *blobs.Store) {
		t.Helper()
		for name, wrong := range map[string]struct {
			bytes  []byte
			reason string
		}{
			"other bytes": {random(5000), "the sha256 of the bytes is"},
			"fewer":       {content[:100], "there are 100 bytes, declared were 5000"},
			"more":        {append(bytes.Clone(content), 0), "there are 5001 bytes, declared were 5000"},
		} {
			key := "rooms/" + string(room) + "/uploads/judged"
			if err := s.Bucket().WriteAll(t.Context(), key, wrong.bytes, nil); err != nil {
				t.Fatalf("writing: %v", err)
			}
			e := expect(content)
			e.ContentType = "application/octet-stream"
			got := must(s.Complete(t.Context(), room, "judged", e))(t)
			if got.OK || got.Missing || !strings.Contains(got.Reason, wrong.reason) {
				t.Errorf("%s: %+v, want it refused since %s", name, got, wrong.reason)
			}
		}
		if _, err := s.Read(t.Context(), room, hashOf(content), 0, 1); !blobs.IsNotFound(err) {
			t.Errorf("a refused upload became content: %v", err)
		}
	})
}

// A URL is still good after its upload was completed. It must not reach what became content.
func TestReplayedUploadChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *blobs.Store) {
		t.Helper()
		content := random(1000)
		to := must(s.UploadURL(t.Context(), room, "replay", expect(content), time.Minute))(t)
		if code, text := send(t, to, content); code != http.StatusOK {
			t.Fatalf("uploading: %d %s", code, text)
		}
		if got := must(s.Complete(t.Context(), room, "replay", expect(content)))(t); !got.OK {
			t.Fatalf("completing: %+v", got)
		}
		send(t, to, random(1000))
		if got := must(s.Read(t.Context(), room, hashOf(content), 0, 1000))(t); !bytes.Equal(got, content) {
			t.Errorf("the content has changed")
		}
	})
}

func TestDownloadIsAFileToKeep(t *testing.T) {
	each(t, func(t *testing.T, s *blobs.Store) {
		t.Helper()
		content := random(100_000)
		hash := must(s.Put(t.Context(), room, content))(t)
		from := must(s.DownloadURL(t.Context(), room, hash, "a/../b\r\n\"größe\".html", "text/html", time.Minute))(t)
		response, body := get(t, from.URL)
		if response.StatusCode != http.StatusOK || !bytes.Equal(body, content) {
			t.Fatalf("%d and %d bytes, want 200 and %d", response.StatusCode, len(body), len(content))
		}
		if got := response.Header.Get("Content-Type"); got != "text/html" {
			t.Errorf("content type = %q", got)
		}
		if got, want := response.Header.Get("Content-Disposition"), "attachment; filename*=utf-8''b___gr%C3%B6%C3%9Fe_.html"; got != want {
			t.Errorf("disposition = %q, want %q", got, want)
		}
		response, body = get(t, from.URL, func(r *http.Request) { r.Header.Set("Range", "bytes=10-19") })
		if response.StatusCode != http.StatusPartialContent || !bytes.Equal(body, content[10:20]) {
			t.Errorf("range: %d and %d bytes", response.StatusCode, len(body))
		}
		if _, err := s.DownloadURL(t.Context(), room, hashOf(nil), "x", "", 0); !blobs.IsNotFound(err) {
			t.Errorf("content that is not there: %v", err)
		}
		if code, text := send(t, from, content); code < 400 {
			t.Errorf("PUT to a download URL: %d %s", code, text)
		}
	})
}

func TestFolderServesSafely(t *testing.T) {
	s := openFolder(t)
	hash := must(s.Put(t.Context(), room, []byte("<script>")))(t)
	from := must(s.DownloadURL(t.Context(), room, hash, "x.html", "text/html", time.Minute))(t)
	response, _ := get(t, from.URL)
	want := map[string]string{
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
		"Etag": `"` + hash + `"`, "Content-Disposition": "attachment; filename=x.html", "Referrer-Policy": "no-referrer",
	}
	for name, value := range want {
		if got := response.Header.Get(name); got != value {
			t.Errorf("%s = %q, want %q", name, got, value)
		}
	}
	if got := response.Header.Get("Cache-Control"); !strings.HasPrefix(got, "private, max-age=") {
		t.Errorf("Cache-Control = %q", got)
	}
	if response, _ := get(t, from.URL, func(r *http.Request) { r.Header.Set("If-None-Match", `"`+hash+`"`) }); response.StatusCode != http.StatusNotModified {
		t.Errorf("with its ETag: %d, want 304", response.StatusCode)
	}
	for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodOptions} {
		if response, _ := get(t, from.URL, func(r *http.Request) { r.Method = method }); response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d, want 405", method, response.StatusCode)
		}
	}
	parent := from.URL[:strings.LastIndex(from.URL, "/")+1]
	for _, u := range []string{parent, parent + "rooms", parent + "..%2f..%2fsystem%2fsigning-key", parent + strings.Repeat("a", 9000)} {
		if response, _ := get(t, u); response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusNotFound {
			t.Errorf("%.60s: %d", u, response.StatusCode)
		}
	}
}

// Any change to any part of a URL ends it.
func TestTamperedURLs(t *testing.T) {
	s := openFolder(t)
	hash := must(s.Put(t.Context(), room, []byte("secret")))(t)
	from := must(s.DownloadURL(t.Context(), room, hash, "x", "text/plain", time.Minute))(t)
	u := must(url.Parse(from.URL))(t)
	at := strings.LastIndex(u.Path, "/") + 1
	text := u.Path[at:]
	check := func(name, path string) {
		t.Helper()
		response, body := get(t, "http://"+u.Host+path)
		if response.StatusCode != http.StatusForbidden || !strings.Contains(string(body), "ask for a new one") {
			t.Errorf("%s: %d %s", name, response.StatusCode, body)
		}
	}
	for i := range text {
		changed := []byte(text)
		changed[i] = 'A' + (changed[i]+1)%26
		if string(changed) != text {
			check("one letter", u.Path[:at]+string(changed))
		}
	}
	payload, mac, _ := strings.Cut(text, ".")
	decoded := must(base64.RawURLEncoding.DecodeString(payload))(t)
	for _, change := range [][2]string{{hash, hashOf(nil)}, {string(room), "another"}, {`"m":"GET"`, `"m":"PUT"`}, {"text/plain", "text/html"}} {
		forged := strings.ReplaceAll(string(decoded), change[0], change[1])
		if forged == string(decoded) {
			t.Fatalf("%q is not in the token %s", change[0], decoded)
		}
		check("forged", u.Path[:at]+base64.RawURLEncoding.EncodeToString([]byte(forged))+"."+mac)
	}
	check("query", u.Path+"?x=1")
	check("no signature", u.Path[:at]+payload)
	check("empty signature", u.Path[:at]+payload+".")
}

func TestURLsExpire(t *testing.T) {
	each(t, func(t *testing.T, s *blobs.Store) {
		t.Helper()
		content := []byte("for a second")
		hash := must(s.Put(t.Context(), room, content))(t)
		from := must(s.DownloadURL(t.Context(), room, hash, "x", "", time.Second))(t)
		to := must(s.UploadURL(t.Context(), room, "late", expect(content), time.Second))(t)
		// What is awaited is a point in time.
		timer := time.NewTimer(time.Until(from.ExpiresAt) + 1100*time.Millisecond)
		defer timer.Stop()
		<-timer.C
		if response, body := get(t, from.URL); response.StatusCode != http.StatusForbidden || !strings.Contains(strings.ToLower(string(body)), "expired") {
			t.Errorf("download: %d %s", response.StatusCode, body)
		}
		if code, text := send(t, to, content); code != http.StatusForbidden || !strings.Contains(strings.ToLower(text), "expired") {
			t.Errorf("upload: %d %s", code, text)
		}
	})
}

// A URL made by one replica works at another: both have the key from the folder, however they raced to make it.
func TestReplicasShareTheSigningKey(t *testing.T) {
	dir := t.TempDir()
	stores := make([]*blobs.Store, 8)
	errs := make(chan error, len(stores))
	for i := range stores {
		go func() {
			var err error
			stores[i], err = blobs.Open(t.Context(), blobs.Options{URL: "file://" + dir, PublicURL: "http://127.0.0.1/t"})
			errs <- err
		}()
	}
	for range stores {
		if err := <-errs; err != nil {
			t.Fatalf("opening: %v", err)
		}
	}
	hash := must(stores[0].Put(t.Context(), room, []byte("x")))(t)
	for i, s := range stores {
		from := must(s.DownloadURL(t.Context(), room, hash, "x", "", time.Minute))(t)
		for j, other := range stores {
			if code := serve(t, other.Handler(), from.URL); code != http.StatusOK {
				t.Errorf("made by %d, served by %d: %d", i, j, code)
			}
		}
	}
	info, err := os.Stat(filepath.Join(dir, "system", "signing-key"))
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
		t.Errorf("the signing key: %v, %v, want 32 bytes for the owner only", info, err)
	}
	if entries := must(os.ReadDir(filepath.Join(dir, "system")))(t); len(entries) != 1 {
		t.Errorf("beside the signing key lies something: %v", entries)
	}
}

// The host is part of what S3 signs, so it must be the one that clients use.
func TestPublicEndpointIsSigned(t *testing.T) {
	server := s3.New(t)
	public := strings.Replace(server.Endpoint, "127.0.0.1", "localhost", 1)
	s := open(t, blobs.Options{URL: server.URL, PublicURL: public})
	content := random(100)
	to := must(s.UploadURL(t.Context(), room, "public", expect(content), 0))(t)
	if !strings.HasPrefix(to.URL, public+"/") {
		t.Errorf("URL = %s, want one at %s", to.URL, public)
	}
	if code, text := send(t, to, content); code != http.StatusOK {
		t.Errorf("uploading: %d %s", code, text)
	}
	if got := must(s.Complete(t.Context(), room, "public", expect(content)))(t); !got.OK {
		t.Errorf("completing: %+v", got)
	}
	from := must(s.DownloadURL(t.Context(), room, hashOf(content), "x", "", 0))(t)
	if response, body := get(t, from.URL); response.StatusCode != http.StatusOK || !bytes.Equal(body, content) {
		t.Errorf("downloading: %d", response.StatusCode)
	}
	query := must(url.Parse(to.URL))(t).Query()
	for _, signed := range []string{"content-length", "content-type", "host", "x-amz-checksum-sha256"} {
		if !strings.Contains(query.Get("X-Amz-SignedHeaders"), signed) {
			t.Errorf("signed are %s, not %s", query.Get("X-Amz-SignedHeaders"), signed)
		}
	}
}
