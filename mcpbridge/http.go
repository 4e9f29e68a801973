package mcpbridge

import (
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// bodyTimeout bounds how long a client may take to send a body.
const bodyTimeout = 30 * time.Second

// ServeHTTP answers a request to the toolset.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{id: requestID(r.Header)}
	q.log = e.log.With("request", q.id)
	w.Header().Set("X-Request-Id", q.id)
	out := &response{ResponseWriter: w}
	started := e.clock.Now()
	defer e.finish(out, r, q, started)
	if e.admitHTTP(out, r, q) {
		e.serve(out, r.WithContext(withRequest(r.Context(), q)), q)
	}
}

// finish logs the request, and answers it if it ended in a panic.
func (e *endpoint) finish(out *response, r *http.Request, q *request, started time.Time) {
	if p := recover(); p != nil {
		if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so, too
			panic(p)
		}
		seen := e.judge(r.Context(), q.log, caught(p))
		if out.status == 0 {
			writeProblem(out, seen)
		}
	}
	if !q.log.Enabled(r.Context(), slog.LevelDebug) {
		return
	}
	method := ""
	if q.msg != nil {
		method = q.msg.method
	}
	attrs := []any{"toolset", e.set.Name(), "http", r.Method, "method", method, "status", out.status, "plate", q.plate,
		"took", e.clock.Since(started).String()}
	if q.tool != "" {
		attrs = append(attrs, "tool", q.tool, "outcome", q.outcome)
	}
	q.log.DebugContext(r.Context(), "request", attrs...)
}

// admitHTTP judges the request by its headers, and answers it when it goes no further.
func (e *endpoint) admitHTTP(w *response, r *http.Request, q *request) bool {
	if p := e.origins.check(r); p != nil {
		writeProblem(w, p)
		return false
	}
	if e.origins.cors(w, r) || !e.authenticate(w, r, q) {
		return false
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		p := problem.New(problem.Validation, "only POST is served here: there are no sessions to open with GET or to end with "+
			"DELETE; subscriptions/listen announces changes")
		p.Status = http.StatusMethodNotAllowed
		writeProblem(w, p)
		return false
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if encoding := r.Header.Get("Content-Encoding"); err != nil || media != jsonType || (encoding != "" && encoding != "identity") {
		p := problem.New(problem.Validation, "the body must be plain %s", jsonType)
		p.Status = http.StatusUnsupportedMediaType
		writeProblem(w, p)
		return false
	}
	return true
}

// authenticate finds out who calls. Whoever has no valid token gets 401; while that cannot be found out, 503.
func (e *endpoint) authenticate(w *response, r *http.Request, q *request) bool {
	token, presented := bearer(r.Header)
	if presented {
		username, err := e.tokens.authenticate(r.Context(), token, acceptedFor)
		switch {
		case err == nil:
			q.token, q.username = token, username
			q.identify(e.set)
			return true
		case !errors.Is(err, ErrUnauthenticated):
			if r.Context().Err() == nil {
				q.log.ErrorContext(r.Context(), "token could not be reviewed", "error", err.Error())
			}
			writeProblem(w, unavailable())
			return false
		}
	}
	w.Header().Set("WWW-Authenticate", e.challenge(r, presented || r.Header.Get("Authorization") != ""))
	writeProblem(w, problem.New(problem.IdentityRequired, "a valid bearer token is needed").
		WithHint("send Authorization: Bearer <token> with a Kubernetes token of the audience %q, "+
			"such as kubectl create token --audience %s makes", e.opts.Audience, e.opts.Audience))
	return false
}

// serve reads the message and has it answered.
func (e *endpoint) serve(w *response, r *http.Request, q *request) {
	if !e.concurrent.enter(q.share()) {
		e.metrics.rateLimited.WithLabelValues("concurrent").Inc()
		q.crowded = problem.New(problem.RateLimited, "this agent has %d requests under way already: wait for answers",
			e.opts.MaxConcurrent)
		q.crowded.RetryAfterSeconds = 1
	} else {
		left := false
		leave := func() {
			if !left {
				left = true
				e.concurrent.leave(q.share())
			}
		}
		defer leave()
		q.leave = leave
	}
	body, p := e.read(w, r)
	if p != nil {
		writeProblem(w, p)
		return
	}
	if versions := r.Header.Values(mcp.HeaderProtocolVersion); len(versions) > 1 {
		// What stands in front of the bridge might go by another one of them.
		writeRPCError(w, true, invalidRequest(&message{}, "the protocol version may be stated only once"))
		return
	}
	msg, err := parseMessage(body, r.Header.Get(mcp.HeaderProtocolVersion))
	if err != nil {
		writeRPCError(w, true, err)
		return
	}
	q.msg = msg
	version := r.Header.Get(mcp.HeaderProtocolVersion)
	if version != "" && !msg.modern && msg.method != "initialize" && !mcp.IsValidProtocolVersion(version) {
		writeRPCError(w, true, invalidRequest(msg, "the protocol version "+strconv.Quote(short(version))+" is not known here: use one of "+
			strings.Join(mcp.ValidProtocolVersions, ", ")))
		return
	}
	e.dispatch(w, r, q)
}

// read takes in the body, whole and bounded, so that no character is ever cut in two.
func (e *endpoint) read(w *response, r *http.Request) ([]byte, *problem.Problem) {
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every server under test has deadlines
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	body, err := io.ReadAll(http.MaxBytesReader(w.ResponseWriter, r.Body, e.opts.MaxBodyBytes))
	if err == nil {
		return body, nil
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, problem.New(problem.TooLarge, "the body may have at most %d bytes", e.opts.MaxBodyBytes)
	}
	p := problem.New(problem.Validation, "the body could not be read to its end: send the request again")
	p.Retryable = true
	return nil, p
}

// dispatch answers by method.
func (e *endpoint) dispatch(w *response, r *http.Request, q *request) {
	m := q.msg
	switch {
	case m.method == "" || m.notification():
		// An answer to a question that the server never asked, or a word that changes nothing here: a client that cancels
		// closes its request, and across connections the ids of requests are not unique.
		w.WriteHeader(http.StatusAccepted)
	case m.method == "tools/call":
		if e.tools[m.name] == nil {
			e.metrics.calls.WithLabelValues(e.set.Name(), unknownTool, string(problem.NotFound)).Inc()
		}
		e.handleCall(w, r, q)
	case !m.modern && (m.method == "resources/subscribe" || m.method == "resources/unsubscribe"):
		// mcp-go would say yes and never announce anything, as there is no session to announce it in.
		writeRPCError(w, false, &rpcError{id: m.id, code: mcp.METHOD_NOT_FOUND, message: "subscriptions need the protocol version " +
			mcp.ProtocolVersion20260728 + " (subscriptions/listen): poll instead"})
	case q.crowded != nil:
		writeRPCError(w, m.modern, rpcProblem(m, q.crowded))
	case m.method == "subscriptions/listen":
		e.listen(w, r, q)
	case m.method == "resources/list", m.method == "resources/read":
		e.serveResources(w, r, q)
	default:
		e.handle(w, r, m.body)
	}
}

// handle has mcp-go answer.
func (e *endpoint) handle(w server.HTTPResponseWriter, r *http.Request, body []byte) {
	e.mcp.Handle(w, &server.HTTPRequest{Method: r.Method, URL: r.URL, Header: r.Header, Body: body, Context: r.Context()})
}

// serveResources answers what mcp-go has no say in: who may read what.
func (e *endpoint) serveResources(w *response, r *http.Request, q *request) {
	if q.nobody != nil {
		writeRPCError(w, q.msg.modern, rpcProblem(q.msg, e.judge(r.Context(), q.log, q.nobody)))
		return
	}
	instance, p := q.hinted()
	if p == nil {
		p = e.admit(q, toolset.BucketRead)
	}
	if p != nil {
		writeRPCError(w, q.msg.modern, rpcProblem(q.msg, p))
		return
	}
	q.instance = instance
	e.set.Touch(instance, e.listening.has(instanceKey(instance)))
	answer := newCapture()
	e.handle(answer, r, q.msg.body)
	if q.failed != nil {
		failed := rpcProblem(q.msg, q.failed)
		failed.data = struct {
			envelope

			URI string `json:"uri"`
		}{envelope{q.failed}, q.msg.uri}
		writeRPCError(w, q.msg.modern, failed)
		return
	}
	answer.replay(w)
}

// response is the answer on its way to the client. It is not for streaming: only subscriptions/listen streams, past it.
type response struct {
	http.ResponseWriter

	status int
}

// WriteHeader sends the status.
func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write sends bytes of the body.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Flush does nothing: the answer goes out as a whole.
func (w *response) Flush() {}

// CanStream tells mcp-go not to turn the answer into a stream.
func (w *response) CanStream() bool { return false }

// Unwrap gives the writer beneath to http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

var _ server.HTTPResponseWriter = (*response)(nil)

// capture holds an answer of mcp-go back until it is decided on.
type capture struct {
	header http.Header
	status int
	body   []byte
}

func newCapture() *capture { return &capture{header: http.Header{}, status: http.StatusOK} }

// Header gives the headers held back.
func (c *capture) Header() http.Header { return c.header }

// WriteHeader holds the status back.
func (c *capture) WriteHeader(status int) { c.status = status }

// Write holds bytes back.
func (c *capture) Write(p []byte) (int, error) {
	c.body = append(c.body, p...)
	return len(p), nil
}

// Flush does nothing.
func (c *capture) Flush() {}

// CanStream gives false.
func (c *capture) CanStream() bool { return false }

func (c *capture) replay(w http.ResponseWriter) {
	maps.Copy(w.Header(), c.header)
	w.WriteHeader(c.status)
	_, _ = w.Write(c.body)
}
