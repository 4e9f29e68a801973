package blobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxUploads and maxDownloads bound the transfers that one process serves at once.
	maxUploads   = 32
	maxDownloads = 64
	// idleTimeout is how long a transfer may stand still.
	idleTimeout = 30 * time.Second
	// slowest is the rate, in bytes a second, below which a transfer is not worth its place; patience is what it gets on top.
	slowest  = 64 << 10
	patience = time.Minute
	// retryAfter is what who finds no place is told, in seconds.
	retryAfter = "5"
)

// ServeHTTP serves one transfer. It takes PUT and GET with a signed URL, and nothing else.
func (l *localSigner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodPut {
		w.Header().Set("Allow", "GET, PUT")
		http.Error(w, "only GET and PUT are served here", http.StatusMethodNotAllowed)
		return
	}
	t, err := l.verify(path.Base(r.URL.Path), l.store.now())
	if err == nil && (r.URL.RawQuery != "" || t.Method != r.Method) {
		err = errTampered
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	places, serve := l.downloads, l.serveDownload
	if r.Method == http.MethodPut {
		places, serve = l.uploads, l.serveUpload
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		serve(w, r, t)
	default:
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, "too many transfers at the moment: try again in "+retryAfter+" seconds", http.StatusServiceUnavailable)
	}
}

// serveUpload takes the bytes of an upload. They are seen by nobody before they are there as a whole.
func (l *localSigner) serveUpload(w http.ResponseWriter, r *http.Request, t token) {
	if code, text := refuseUpload(r, t); code != 0 {
		http.Error(w, text, code)
		return
	}
	ctx, abort := context.WithCancel(r.Context())
	defer abort()
	file, to, err := l.store.writer(ctx, t.Key)
	if err != nil {
		unavailable(w)
		return
	}
	body := &source{r: &pacedReader{r: r.Body, pace: newPace(http.NewResponseController(w).SetReadDeadline, t.Length)}}
	size, err := io.Copy(to, io.LimitReader(body, t.Length+1))
	if err != nil || size != t.Length {
		abort()
		_ = to.Close()
		if err != nil && body.err == nil {
			unavailable(w)
			return
		}
		http.Error(w, fmt.Sprintf("the upload broke off or was too slow after %d of %d bytes: send it again", size, t.Length), http.StatusBadRequest)
		return
	}
	if err := l.store.finish(t.Key, file, to); err != nil {
		unavailable(w)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// refuseUpload holds a PUT to what was signed.
func refuseUpload(r *http.Request, t token) (code int, text string) {
	switch {
	case r.ContentLength < 0:
		return http.StatusLengthRequired, fmt.Sprintf("send Content-Length: %d, and not in chunks", t.Length)
	case r.ContentLength > t.Length:
		return http.StatusRequestEntityTooLarge, wrongSize(r.ContentLength, t.Length)
	case r.ContentLength < t.Length:
		return http.StatusBadRequest, wrongSize(r.ContentLength, t.Length)
	case r.Header.Get("Content-Encoding") != "":
		return http.StatusUnsupportedMediaType, "send the bytes as they are, without Content-Encoding"
	case r.Header.Get("Content-Type") != t.Type:
		return http.StatusUnsupportedMediaType, fmt.Sprintf("send Content-Type: %s, as was declared", t.Type)
	default:
		return 0, ""
	}
}

// serveDownload gives content as a file to keep, never as a page to show.
func (l *localSigner) serveDownload(w http.ResponseWriter, r *http.Request, t token) {
	room, hash, err := contentOf(t.Key)
	if err != nil {
		http.Error(w, errTampered.Error(), http.StatusForbidden)
		return
	}
	content, size, err := l.store.NewReader(r.Context(), room, hash)
	if IsNotFound(err) {
		http.Error(w, "this content has been deleted", http.StatusNotFound)
		return
	}
	if err != nil {
		unavailable(w)
		return
	}
	defer func() { _ = content.Close() }()
	h := w.Header()
	h.Set("Content-Type", t.Type)
	h.Set("Content-Disposition", disposition(t.Filename))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("ETag", `"`+t.SHA256+`"`)
	h.Set("Cache-Control", fmt.Sprintf("private, max-age=%d, must-revalidate", max(0, t.Expires-l.store.now().Unix())))
	paced := &pacedWriter{ResponseWriter: w, pace: newPace(http.NewResponseController(w).SetWriteDeadline, size)}
	http.ServeContent(paced, r, "", time.Time{}, content)
}

// contentOf reads room and hash from the key of content.
func contentOf(key string) (room types.UID, hash string, err error) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 {
		return "", "", errTampered
	}
	room, hash = types.UID(parts[1]), parts[3]
	if again, err := contentKey(room, hash); err != nil || again != key {
		return "", "", errTampered
	}
	return room, hash, nil
}

func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", retryAfter)
	http.Error(w, "the blob store is unavailable: try again later", http.StatusServiceUnavailable)
}

// pace sets the deadlines of a transfer: it must go on, and it must end.
type pace struct {
	set func(time.Time) error
	end time.Time
}

func newPace(set func(time.Time) error, size int64) pace {
	return pace{set: set, end: time.Now().Add(patience + time.Duration(size/slowest)*time.Second)}
}

// next gives the transfer time for one more step.
func (p pace) next() error {
	now := time.Now()
	if now.After(p.end) {
		return errTooSlow
	}
	until := now.Add(idleTimeout)
	if until.After(p.end) {
		until = p.end
	}
	// What serves us may not know deadlines, as in a test with a recorder: then it has none.
	if err := p.set(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

var errTooSlow = errors.New("the transfer is too slow")

type pacedReader struct {
	r    io.Reader
	pace pace
}

// Read implements io.Reader.
func (p *pacedReader) Read(b []byte) (int, error) {
	if err := p.pace.next(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}

type pacedWriter struct {
	http.ResponseWriter
	pace pace
}

// Write implements io.Writer.
func (p *pacedWriter) Write(b []byte) (int, error) {
	if err := p.pace.next(); err != nil {
		return 0, err
	}
	return p.ResponseWriter.Write(b)
}
