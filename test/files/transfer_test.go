package files

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

func uploads(t *testing.T, s *setup) {
	p := s.place(t, nil)
	latest := p.write(t, "pic.png", "a draft").Version
	for name, content := range map[string][]byte{"nothing": {}, "some": random(300 << 10)} {
		t.Run(name, func(t *testing.T) {
			shared := p.share(t, "pic.png", content)
			until, err := time.Parse(time.RFC3339, shared.ExpiresAt)
			if shared.Status != "pending" || err != nil || time.Until(until) <= 0 || time.Until(until) > 20*time.Minute {
				t.Errorf("share_file gives %+v", shared)
			}
			if got := p.read(t, "path", "pic.png"); got.Version != latest {
				t.Errorf("pending content is the latest already: %+v", got)
			}
			latest++
			for _, session := range []*harness.Session{p.writer, p.reader} {
				for _, tool := range []string{"fetch_file", "read_file"} {
					args := harness.Args{"file_id": shared.FileID}
					if tool == "read_file" {
						args["room"] = p.room
					}
					harness.Refused(t, session, "UPLOAD_NOT_COMPLETE", tool, args)
				}
			}
			harness.Refused(t, p.writer, "UPLOAD_NOT_COMPLETE", "complete_file_upload", harness.Args{"file_id": shared.FileID})
			if status, text := put(t, shared.UploadURL, shared.Headers, content); status != http.StatusOK {
				t.Fatalf("the upload is answered %d: %s", status, text)
			}
			done := p.complete(t, shared.FileID)
			if done.Status != "available" || done.SHA256 != sum(content) || done.Size != int64(len(content)) || done.Path != "pic.png" {
				t.Errorf("complete_file_upload gives %+v", done)
			}
			fetched := harness.Get[rooms.FileFetched](t, p.reader, "fetch_file", harness.Args{"file_id": shared.FileID})
			if fetched.ContentType != "image/png" || fetched.Size != int64(len(content)) || fetched.SHA256 != sum(content) {
				t.Errorf("fetch_file gives %+v", fetched)
			}
			if status, body := get(t, fetched.DownloadURL); status != http.StatusOK || body != string(content) {
				t.Errorf("the download gives %d and %d bytes", status, len(body))
			}
			if n := s.objects(t, p.uid, "uploads"); n != 0 {
				t.Errorf("%d uploads are left in the store", n)
			}
		})
	}
	if got := p.read(t, "path", "pic.png", "version", 1); got.Content != "a draft" {
		t.Errorf("version 1 is %+v", got)
	}
}

// settledOnce completes an upload by several at once, again, at the other replica, and by somebody else.
func settledOnce(t *testing.T, s *setup) {
	p := s.place(t, nil)
	content := random(1000)
	shared := p.share(t, "pic.png", content)
	id := harness.Args{"file_id": shared.FileID}
	if status, text := put(t, shared.UploadURL, shared.Headers, content); status != http.StatusOK {
		t.Fatalf("the upload is answered %d: %s", status, text)
	}
	if status, text := put(t, shared.UploadURL, shared.Headers, content); status != http.StatusOK {
		t.Errorf("the same upload again is answered %d: %s", status, text)
	}
	harness.Refused(t, p.reader, "FORBIDDEN", "complete_file_upload", id)
	var wg sync.WaitGroup
	for i := range 6 {
		session := p.At(i%2, "ada", "")
		wg.Go(func() {
			for range 2 {
				if got := harness.Get[rooms.FileCompleted](t, session, "complete_file_upload", id); got.Status != "available" || got.Version != 1 {
					t.Errorf("completing at once gives %+v", got)
				}
			}
		})
	}
	wg.Wait()
	if got := p.complete(t, shared.FileID); got.Version != 1 {
		t.Errorf("completing again gives %+v", got)
	}
	if got := harness.Get[rooms.FileCompleted](t, p.reader, "complete_file_upload", id); got.Version != 1 {
		t.Errorf("somebody else, after it is complete, gets %+v", got)
	}
	if file := p.objects(t); len(file) != 1 || len(file[0].Spec.Versions) != 1 || len(file[0].Spec.Uploads) != 0 {
		t.Errorf("the file is %+v", file)
	}
	other := random(1000)
	if status, _ := put(t, shared.UploadURL, shared.Headers, other); status == http.StatusOK && s.folder == "" {
		t.Error("S3 takes other bytes than were signed")
	}
	fetched := harness.Get[rooms.FileFetched](t, p.reader, "fetch_file", id)
	if status, body := get(t, fetched.DownloadURL); status != http.StatusOK || body != string(content) {
		t.Errorf("a replayed upload changed the content: %d, %d bytes", status, len(body))
	}
	refused(t, p.writer, "file_id", "complete_file_upload", harness.Args{"file_id": ids.ID(&p.objects(t)[0])})
	harness.Refused(t, p.writer, "NOT_FOUND", "complete_file_upload", harness.Args{"file_id": p.room})
}

// quarantine sends what was not announced. A store that holds an upload against what was signed does not take it at all.
func quarantine(t *testing.T, s *setup) {
	p := s.place(t, nil)
	content := random(1000)
	wrong := append([]byte{content[0] ^ 1}, content[1:]...)
	shared := p.share(t, "pic.png", content)
	for name, bytes := range map[string][]byte{"fewer bytes": content[1:], "more bytes": append([]byte("x"), content...)} {
		if status, _ := put(t, shared.UploadURL, shared.Headers, bytes); status < 400 || status >= 500 {
			t.Errorf("%s are answered %d", name, status)
		}
	}
	headers := maps.Clone(shared.Headers)
	headers["Content-Type"] = "text/html"
	if status, _ := put(t, shared.UploadURL, headers, content); status < 400 || status >= 500 {
		t.Errorf("another type is answered %d", status)
	}
	harness.Refused(t, p.writer, "UPLOAD_NOT_COMPLETE", "complete_file_upload", harness.Args{"file_id": shared.FileID})
	if status, _ := put(t, shared.UploadURL, shared.Headers, wrong); status != http.StatusOK {
		if s.folder != "" || status < 400 || status >= 500 {
			t.Fatalf("other bytes are answered %d", status)
		}
		harness.Refused(t, p.writer, "UPLOAD_NOT_COMPLETE", "complete_file_upload", harness.Args{"file_id": shared.FileID})
		return
	}
	done := p.complete(t, shared.FileID)
	if done.Status != "quarantined" || !strings.Contains(done.Reason, sum(wrong)) || done.Version != 0 {
		t.Errorf("other bytes are settled as %+v", done)
	}
	if status, _ := put(t, shared.UploadURL, shared.Headers, content); status >= 500 {
		t.Errorf("the right bytes, too late, are answered %d", status)
	}
	if again := p.complete(t, shared.FileID); again != done {
		t.Errorf("completing again gives %+v", again)
	}
	for _, session := range []*harness.Session{p.writer, p.reader} {
		e := harness.Refused(t, session, "UPLOAD_NOT_COMPLETE", "fetch_file", harness.Args{"file_id": shared.FileID})
		if !strings.Contains(e.Message, "quarantine") {
			t.Errorf("fetching from quarantine is refused with %v", e)
		}
		harness.Refused(t, session, "UPLOAD_NOT_COMPLETE", "read_file", p.args("file_id", shared.FileID))
		harness.Refused(t, session, "NOT_FOUND", "read_file", p.args("path", "pic.png"))
	}
	if got := p.list(t, p.reader); len(got) > 0 {
		t.Errorf("the list shows %q", got)
	}
	if got := p.upload(t, "pic.png", content); got.Status != "available" || got.Version != 1 {
		t.Errorf("sharing the right bytes then gives %+v", got)
	}
}

func withdrawn(t *testing.T, s *setup) {
	p := s.place(t, func(r *v1alpha1.RoomSpec) { r.Limits = &v1alpha1.RoomLimits{FileBytes: 1000} })
	content := random(900)
	shared := p.share(t, "pic.png", content)
	harness.Refused(t, p.writer, "TOO_LARGE", "share_file", p.announce("other.png", content))
	harness.Get[rooms.FileDeleted](t, p.writer, "delete_file", p.args("path", "pic.png"))
	harness.Refused(t, p.writer, "NOT_FOUND", "complete_file_upload", harness.Args{"file_id": shared.FileID})
	harness.Await(t, "the announcement to be collected", func() bool { return len(p.objects(t)) == 0 })
	if got := p.upload(t, "other.png", content); got.Status != "available" {
		t.Errorf("the room's bytes are not free again: %+v", got)
	}
	next := p.share(t, "other.png", []byte("x"))
	harness.Get[rooms.FileDeleted](t, p.writer, "delete_file", p.args("file_id", next.FileID))
	harness.Refused(t, p.writer, "NOT_FOUND", "complete_file_upload", harness.Args{"file_id": next.FileID})
	if got := p.read(t, "path", "other.png"); got.Version != 1 || got.Size != int64(len(content)) {
		t.Errorf("with the announcement, versions went: %+v", got)
	}
}

// transferURLs uses each URL at both replicas, more than once, and for what it is not good for.
func transferURLs(t *testing.T, s *setup) {
	p := s.place(t, nil)
	content := random(2000)
	shared := p.share(t, "notes/über ☃.png", content)
	for _, u := range s.everywhere(t, shared.UploadURL) {
		if status, text := put(t, u, shared.Headers, content); status != http.StatusOK {
			t.Errorf("the upload is answered %d: %s", status, text)
		}
		if status, _ := get(t, u); status < 400 || status >= 500 {
			t.Errorf("a GET of the upload's URL is answered %d", status)
		}
		if status, _ := send(t, http.MethodDelete, u, shared.Headers, nil); status < 400 || status >= 500 {
			t.Errorf("a DELETE of the upload's URL is answered %d", status)
		}
	}
	p.complete(t, shared.FileID)
	fetched := harness.Get[rooms.FileFetched](t, p.reader, "fetch_file", harness.Args{"file_id": shared.FileID})
	for _, u := range s.everywhere(t, fetched.DownloadURL) {
		for range 2 {
			if status, body := get(t, u); status != http.StatusOK || body != string(content) {
				t.Errorf("the download is answered %d with %d bytes", status, len(body))
			}
		}
		if status, _ := put(t, u, shared.Headers, content); status < 400 || status >= 500 {
			t.Errorf("a PUT to the download's URL is answered %d", status)
		}
	}
	for _, u := range []string{shared.UploadURL, fetched.DownloadURL} {
		if strings.Contains(u, "snow") || strings.Contains(u, s.DataDir) {
			t.Errorf("the URL tells where things lie: %s", u)
		}
	}
}

// everywhere gives a URL at every replica that serves it; S3 serves its own.
func (s *setup) everywhere(t *testing.T, transfer string) []string {
	t.Helper()
	if s.folder == "" {
		return []string{transfer}
	}
	var all []string
	for _, replica := range s.Replicas {
		u, err := url.Parse(transfer)
		if err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(replica)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = at.Host
		all = append(all, u.String())
	}
	return all
}

func tamperedURLs(t *testing.T, s *setup) {
	p := s.place(t, nil)
	content := random(100)
	mine, other := p.share(t, "mine.png", content), p.share(t, "other.png", content)
	if status, text := put(t, other.UploadURL, other.Headers, content); status != http.StatusOK {
		t.Fatalf("the upload is answered %d: %s", status, text)
	}
	p.complete(t, other.FileID)
	fetched := harness.Get[rooms.FileFetched](t, p.writer, "fetch_file", harness.Args{"file_id": other.FileID})
	for name, u := range tampered(t, mine.UploadURL) {
		if status, _ := put(t, u, mine.Headers, content); status < 400 || status >= 500 {
			t.Errorf("an upload to a URL with %s is answered %d", name, status)
		}
	}
	for name, u := range tampered(t, fetched.DownloadURL) {
		if status, body := get(t, u); status < 400 || status >= 500 || strings.Contains(body, string(content)) {
			t.Errorf("a download from a URL with %s is answered %d", name, status)
		}
	}
	harness.Refused(t, p.writer, "UPLOAD_NOT_COMPLETE", "complete_file_upload", harness.Args{"file_id": mine.FileID})
}

// tampered changes each part of a URL.
func tampered(t *testing.T, text string) map[string]string {
	t.Helper()
	changed := map[string]string{}
	edit := func(name string, change func(u *url.URL)) {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if change(u); u.String() == text {
			t.Fatalf("%s: nothing was changed of %s", name, text)
		}
		changed[name] = u.String()
	}
	edit("a changed path", func(u *url.URL) { u.Path = flip(u.Path, len(u.Path)/2) })
	edit("a parameter more", func(u *url.URL) { u.RawQuery += "&x=y" })
	edit("something behind it", func(u *url.URL) { u.Path += "/signing-key" })
	u, _ := url.Parse(text)
	for name := range u.Query() {
		edit("a changed "+name, func(u *url.URL) {
			q := u.Query()
			q.Set(name, flip(q.Get(name), len(q.Get(name))-1))
			u.RawQuery = q.Encode()
		})
	}
	if len(u.Query()) == 0 {
		edit("a changed signature", func(u *url.URL) { u.Path = flip(u.Path, len(u.Path)-2) })
		edit("no signature", func(u *url.URL) { u.Path, _, _ = strings.Cut(u.Path, ".") })
	}
	return changed
}

// flip changes one character of a text.
func flip(s string, at int) string {
	c := byte('1')
	if s[at] == c {
		c = '2'
	}
	return s[:at] + string(c) + s[at+1:]
}

func badAnnouncements(t *testing.T, s *setup) {
	p := s.place(t, nil)
	with := func(name string, value any) harness.Args {
		args := p.announce("pic.png", []byte("x"))
		args[name] = value
		return args
	}
	for name, tc := range map[string]struct {
		field string
		value any
	}{
		"a short sha256":        {"sha256", "abc"},
		"a sha256 in base64":    {"sha256", strings.Repeat("+", 64)},
		"a size below nothing":  {"size_bytes", -1},
		"a size beyond a PUT":   {"size_bytes", 5<<30 + 1},
		"no media type":         {"content_type", "png"},
		"a type with a line":    {"content_type", "image/png\r\nX: y"},
		"a type that is empty":  {"content_type", ""},
		"a size in quotes":      {"size_bytes", "1"},
		"a path to the outside": {"filename", "../x"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, p.writer, tc.field, "share_file", with(tc.field, tc.value)) })
	}
	upper := harness.Get[rooms.FileShared](t, p.writer, "share_file", with("sha256", strings.ToUpper(sum([]byte("x")))))
	if status, _ := put(t, upper.UploadURL, upper.Headers, []byte("x")); status != http.StatusOK || p.complete(t, upper.FileID).Status != "available" {
		t.Errorf("a sha256 in capitals does not do")
	}
	for range v1alpha1.MaxFileUploads {
		p.share(t, "many.png", []byte("x"))
	}
	harness.Refused(t, p.writer, "CONFLICT", "share_file", p.announce("many.png", []byte("x")))
}

// expired brings the end of an upload near, as an admin can, and waits for it.
func expired(t *testing.T, s *setup) {
	p := s.place(t, nil)
	content := random(100)
	shared := p.share(t, "pic.png", content, "idempotency_key", "k")
	file := p.object(t, ids.ID(&p.objects(t)[0]))
	file.Spec.Uploads[0].ExpiresAt = metav1.NewMicroTime(time.Now().Add(3 * time.Second))
	if err := s.Client.Update(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	var last rooms.FileShared
	harness.Await(t, "a URL that ends with the upload", func() bool {
		last = harness.Get[rooms.FileShared](t, p.writer, "share_file", p.announce("pic.png", content, "idempotency_key", "k"))
		until, err := time.Parse(time.RFC3339, last.ExpiresAt)
		return err == nil && time.Until(until) < time.Minute
	})
	if status, text := put(t, last.UploadURL, last.Headers, content); status != http.StatusOK {
		t.Errorf("before the end the upload is answered %d: %s", status, text)
	}
	harness.Await(t, "the URL to end", func() bool {
		status, _ := put(t, last.UploadURL, last.Headers, content)
		return status == http.StatusForbidden
	})
	harness.Await(t, "the announcement to be collected", func() bool { return len(p.objects(t)) == 0 })
	harness.Refused(t, p.writer, "NOT_FOUND", "complete_file_upload", harness.Args{"file_id": shared.FileID})
	harness.Await(t, "its bytes to be collected", func() bool { return s.objects(t, p.uid, "uploads") == 0 })
	if again := p.upload(t, "pic.png", content); again.Version != 1 {
		t.Errorf("sharing it again gives %+v", again)
	}
}
