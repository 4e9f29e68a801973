package board

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

const (
	// maxForm bounds the body of a form: two long texts, each character of which may take twelve bytes.
	maxForm     = 256 << 10
	formTimeout = 30 * time.Second
	csrfHeader  = "X-Csrf-Token"
	csrfField   = "csrf"
)

// policy lets the page load its own files and talk to its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// handler answers a request of a person. What it returns as an error is shown to them.
type handler func(w http.ResponseWriter, r *http.Request, p *person) error

// page serves a handler to people who are signed in. Reading takes from the bucket of reads.
func (b *Board) page(h handler) http.HandlerFunc { return b.guarded(toolset.BucketRead, h) }

// act serves a handler that changes something.
func (b *Board) act(bucket toolset.Bucket, h handler) http.HandlerFunc {
	return b.guarded(bucket, func(w http.ResponseWriter, r *http.Request, p *person) error {
		if err := b.readForm(w, r); err != nil {
			return err
		}
		given := r.Header.Get(csrfHeader)
		if given == "" {
			given = r.PostForm.Get(csrfField)
		}
		if subtle.ConstantTimeCompare([]byte(given), []byte(b.csrf(p))) != 1 {
			return problem.New(problem.Forbidden, "this form is not from this session: load the page again")
		}
		return h(w, r, p)
	})
}

func (b *Board) guarded(bucket toolset.Bucket, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := b.identify(r)
		if err == nil {
			if limit := b.opts.Bounds.Take(p.name, bucket); limit != nil {
				err = limit
			} else if err = b.ready(); err == nil {
				err = h(w, r, p)
			}
		}
		if err != nil {
			b.fail(w, r, p, err)
		}
	}
}

func (b *Board) ready() error {
	if err := b.opts.Bounds.Ready(); err != nil {
		return problem.New(problem.Unavailable, "the bridge is starting: try again shortly")
	}
	return nil
}

// readForm takes in a form, bounded in size and time.
func (b *Board) readForm(w http.ResponseWriter, r *http.Request) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(formTimeout)) // not every server under test has deadlines
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return problem.New(problem.TooLarge, "the form has more than %d bytes: shorten the text", maxForm)
		}
		return problem.New(problem.Validation, "the form could not be read: load the page again")
	}
	return nil
}

// protect keeps pages of other origins from acting for the person, and hardens every answer.
func (b *Board) protect(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		if b.secure(r) { // browsers complain where there is no https
			w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		}
		if err := origins.Check(r); err != nil {
			http.Error(w, "a page of another origin may not act here", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// remote gives the address of the peer without its port, to bound those who are nobody yet.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// judge makes of an error what a person gets to see. What it does not know is logged under an id.
func (b *Board) judge(ctx context.Context, err error) *problem.Problem {
	if p, ok := problem.As(err); ok {
		return p
	}
	status := apierrors.APIStatus(nil)
	switch {
	case errors.As(err, &status) && apierrors.IsForbidden(err):
		return problem.New(problem.Forbidden, "you may not do this: %s", status.Status().Message)
	case errors.As(err, &status) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		return problem.New(problem.Validation, "%s", status.Status().Message)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return problem.New(problem.Conflict, "somebody else was faster: look again and repeat it")
	case apierrors.IsNotFound(err):
		return problem.New(problem.NotFound, "it is gone")
	}
	id := ulid.Make().String()
	if ctx.Err() == nil {
		b.log.ErrorContext(ctx, "a page could not be served", "id", id, "error", err.Error())
	}
	return problem.New(problem.Unavailable, "the cluster did not answer as it should: try again shortly. The log has more under %s", id)
}

// fail answers with an error: as a notice to htmx, as a page to a browser.
func (b *Board) fail(w http.ResponseWriter, r *http.Request, p *person, err error) {
	if errors.Is(err, errSignedOut) || apierrors.IsUnauthorized(err) {
		b.signedOut(w, r)
		return
	}
	seen := b.judge(r.Context(), err)
	if seen.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seen.RetryAfterSeconds))
	}
	if isHTMX(r) {
		b.render(w, r, seen.Status, "notice", notice{Text: sentence(seen), Bad: true})
		return
	}
	b.renderPage(w, r, p, seen.Status, "error", "Not possible", sentence(seen))
}

func sentence(p *problem.Problem) string {
	if p.Hint != "" {
		return p.Message + ". " + p.Hint
	}
	return p.Message
}

func isHTMX(r *http.Request) bool { return r.Header.Get("Hx-Request") == "true" }

// signedOut leads to the page to sign in at.
func (b *Board) signedOut(w http.ResponseWriter, r *http.Request) {
	b.end(w, r)
	switch {
	case isHTMX(r):
		w.Header().Set("Hx-Redirect", "/signin")
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodGet && r.Header.Get("Accept") != "text/event-stream":
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
	default:
		http.Error(w, "nobody is signed in", http.StatusUnauthorized)
	}
}
