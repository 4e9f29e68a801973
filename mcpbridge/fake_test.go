package mcpbridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge"
	"github.com/agentrooms/agentrooms/mcpbridge/drain"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// fakeSet is a toolset with a tool for everything that can happen to a call.
type fakeSet struct {
	mu       sync.Mutex
	touched  []string
	wakeable []bool
	inbox    chan struct{}
	entered  chan struct{}
	release  chan struct{}
	notReady error
	lost     bool
}

func newFakeSet() *fakeSet {
	return &fakeSet{inbox: make(chan struct{}, 16), entered: make(chan struct{}, 256), release: make(chan struct{})}
}

func (f *fakeSet) Name() string                                   { return "fake" }
func (f *fakeSet) Instructions() string                           { return "Try things." }
func (f *fakeSet) Await(context.Context, map[string]string) error { return nil }

func (f *fakeSet) Ready() error       { return f.notReady }
func (f *fakeSet) Pending(string) int { return 3 }

func (f *fakeSet) Identify(username string) (*v1alpha1.Agent, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, ok := strings.CutPrefix(username, "agent-")
	if name == "panic" {
		panic("hunter2")
	}
	if !ok || f.lost {
		return nil, "", problem.New(problem.IdentityRequired, "no Agent lists %s among its subjects", username)
	}
	a := &v1alpha1.Agent{}
	a.Name = name
	if name != "scopeless" {
		a.Spec.Scopes = []v1alpha1.Scope{v1alpha1.ScopeRead, v1alpha1.ScopeWrite}
	}
	return a, "BRNL-AGT-" + strings.ToUpper(name), nil
}

func (f *fakeSet) Touch(c *toolset.Caller, wakeable bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touched = append(f.touched, c.Session)
	f.wakeable = append(f.wakeable, wakeable)
}

func (f *fakeSet) touches() ([]string, []bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.touched...), append([]bool(nil), f.wakeable...)
}

func (f *fakeSet) Tools() []toolset.Tool {
	tool := func(name string, scope v1alpha1.Scope, bucket toolset.Bucket, params []toolset.Param,
		handle func(context.Context, *toolset.Caller, toolset.Args) (any, error)) toolset.Tool {
		return toolset.Tool{Name: name, Description: "A tool.", Scope: scope, Bucket: bucket, Params: params, Hints: true, Handle: handle}
	}
	echo := tool("echo", v1alpha1.ScopeRead, toolset.BucketRead, []toolset.Param{
		{Name: "text", Type: toolset.TypeString, Max: 100_000}, {Name: "list", Type: toolset.TypeStrings},
		{Name: "instance_id", Type: toolset.TypeString},
	}, func(_ context.Context, c *toolset.Caller, a toolset.Args) (any, error) {
		return map[string]any{"text": a.String("text"), "plate": c.Plate, "session": c.Session, "list": a.Strings("list")}, nil
	})
	echo.ReadOnly = true
	echo.Output = map[string]any{
		"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}, "required": []string{"text"},
	}
	fail := func(name string, err error) toolset.Tool {
		return tool(name, "", toolset.BucketRead, nil, func(context.Context, *toolset.Caller, toolset.Args) (any, error) { return nil, err })
	}
	return []toolset.Tool{
		tool("zero", "", toolset.BucketHeartbeat, nil, func(context.Context, *toolset.Caller, toolset.Args) (any, error) {
			return map[string]bool{"ok": true}, nil
		}),
		echo,
		tool("send", v1alpha1.ScopeWrite, toolset.BucketSend, nil, func(context.Context, *toolset.Caller, toolset.Args) (any, error) {
			return map[string]bool{"ok": true}, nil
		}),
		fail("conflict", fmt.Errorf("writing: %w", problem.New(problem.Conflict, "somebody was faster"))),
		fail("secret", errors.New("password=hunter2")),
		tool("list", "", toolset.BucketRead, nil, func(context.Context, *toolset.Caller, toolset.Args) (any, error) { return []int{1}, nil }),
		tool("panic", "", toolset.BucketRead, nil, func(context.Context, *toolset.Caller, toolset.Args) (any, error) { panic("hunter2") }),
		tool("block", "", toolset.BucketRead, nil, func(ctx context.Context, _ *toolset.Caller, _ toolset.Args) (any, error) {
			f.entered <- struct{}{}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-drain.Signal(ctx):
				return map[string]string{"why": "drain"}, nil
			case <-f.release:
				return map[string]string{"why": "released"}, nil
			}
		}),
	}
}

const inboxURI = "rooms://inbox/me"

func (f *fakeSet) Listen(ctx context.Context, c *toolset.Caller, uri string) (<-chan struct{}, error) {
	if uri != inboxURI {
		return nil, problem.New(problem.NotFound, "there is no resource %s", uri)
	}
	return f.inbox, nil
}

func (f *fakeSet) Resources(*toolset.Caller) []toolset.Resource {
	return []toolset.Resource{{URI: inboxURI, Name: "inbox", Description: "What waits."}}
}

func (f *fakeSet) Templates() []toolset.Resource {
	return []toolset.Resource{{URI: "rooms://inbox/{plate}", Name: "inbox", Description: "An inbox."}}
}

func (f *fakeSet) ReadResource(_ context.Context, _ *toolset.Caller, uri string) (any, error) {
	switch uri {
	case inboxURI:
		return map[string]int{"waiting": 3}, nil
	case "rooms://broken":
		return nil, errors.New("hunter2")
	case "rooms://panic":
		panic("hunter2")
	}
	return nil, problem.New(problem.NotFound, "there is no resource %s", uri)
}

// fakeTokens accepts tokens that begin with agent- or person-, and takes them for the username.
type fakeTokens struct {
	mu    sync.Mutex
	asked map[string]int
	down  bool
	bad   map[string]bool
	gate  chan struct{}
}

func newFakeTokens() *fakeTokens { return &fakeTokens{asked: map[string]int{}, bad: map[string]bool{}} }

func (f *fakeTokens) Authenticate(_ context.Context, token string) (string, error) {
	f.mu.Lock()
	f.asked[token]++
	down, bad, gate := f.down, f.bad[token], f.gate
	f.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if down {
		return "", errors.New("connection refused")
	}
	name, _, _ := strings.Cut(token, ".")
	if bad || (!strings.HasPrefix(name, "agent-") && !strings.HasPrefix(name, "person-")) {
		return "", mcpbridge.ErrUnauthenticated
	}
	return name, nil
}

func (f *fakeTokens) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeTokens) count(token string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[token]
}

// bench is a server under test.
type bench struct {
	t      testing.TB
	set    *fakeSet
	tokens *fakeTokens
	server *mcpbridge.Server
	url    string
	client *http.Client
	reg    *prometheus.Registry
	logs   *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// serve starts a server with a fake toolset and fake tokens.
func serve(tb testing.TB, change ...func(*mcpbridge.Options)) *bench {
	tb.Helper()
	b := &bench{t: tb, set: newFakeSet(), tokens: newFakeTokens(), reg: prometheus.NewRegistry(), logs: &syncBuffer{}}
	opts := mcpbridge.Options{
		Toolsets: []toolset.Toolset{b.set}, Authenticator: b.tokens, Registry: b.reg, Version: "1.2.3",
		RateLimits: mcpbridge.RateLimits{},
	}
	opts.Logger = slog.New(slog.NewJSONHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelInfo}))
	for _, c := range change {
		c(&opts)
	}
	var err error
	if b.server, err = mcpbridge.New(opts); err != nil {
		tb.Fatal(err)
	}
	ts := httptest.NewServer(b.server.Handler())
	b.url, b.client = ts.URL, ts.Client()
	tb.Cleanup(func() {
		b.server.Drain()
		ts.Close()
	})
	return b
}

// post sends a body as an agent and gives the answer.
func (b *bench) post(body string, headers ...string) (*http.Response, []byte) {
	b.t.Helper()
	return b.do(b.request(http.MethodPost, "/mcp", body, headers...))
}

func (b *bench) request(method, path, body string, headers ...string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer agent-ada")
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

func (b *bench) do(r *http.Request) (*http.Response, []byte) {
	b.t.Helper()
	resp, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp, body
}

// answer is a JSON-RPC answer.
type answer struct {
	ID     any `json:"id"`
	Result struct {
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
		IsError           bool
		Meta              map[string]any `json:"_meta"`
	}
	Error *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// toolError is the envelope in a tool's answer.
func (a *answer) toolError(tb testing.TB) problem.Problem {
	tb.Helper()
	var e struct{ Error problem.Problem }
	if !a.Result.IsError {
		tb.Fatalf("the call succeeded: %s", a.Result.StructuredContent)
	}
	if err := json.Unmarshal(a.Result.StructuredContent, &e); err != nil {
		tb.Fatalf("%v in %s", err, a.Result.StructuredContent)
	}
	if a.Result.Content[0].Text != string(a.Result.StructuredContent) {
		tb.Errorf("the text %s is not the structured content %s", a.Result.Content[0].Text, a.Result.StructuredContent)
	}
	return e.Error
}

func decode(tb testing.TB, body []byte) *answer {
	tb.Helper()
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		tb.Fatalf("%v in %q", err, body)
	}
	return &a
}

// call calls a tool in the older era.
func (b *bench) call(tool, arguments string, headers ...string) *answer {
	b.t.Helper()
	resp, body := b.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments),
		headers...)
	if resp.StatusCode != http.StatusOK {
		b.t.Fatalf("status %d: %s", resp.StatusCode, body)
	}
	return decode(b.t, body)
}

// modernBody makes a request of the modern era and the headers that go with it.
func modernBody(id int, method, name, params string) (body string, headers []string) {
	if params != "" {
		params = "," + params
	}
	body = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,`+
		`"io.modelcontextprotocol/clientCapabilities":{}}%s}}`, id, method, modern, params)
	return body, []string{"Mcp-Protocol-Version", modern, "Mcp-Method", method, "Mcp-Name", name}
}

// modernCall sends a request of the modern era.
func (b *bench) modernCall(method, name, params string, headers ...string) (*http.Response, []byte) {
	b.t.Helper()
	body, own := modernBody(1, method, name, params)
	return b.post(body, append(own, headers...)...)
}

// events reads a stream of server-sent events.
type events struct {
	lines  chan string
	header http.Header
	cancel context.CancelFunc
}

// listen opens a stream. It fails the test when the server refuses.
func (b *bench) listen(filter string, headers ...string) *events {
	b.t.Helper()
	body, own := modernBody(9, "subscriptions/listen", "", `"notifications":`+filter)
	return b.read(b.request(http.MethodPost, "/mcp", body, append(own, headers...)...))
}

// read sends a request whose answer is a stream.
func (b *bench) read(r *http.Request) *events {
	b.t.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	resp, err := b.client.Do(r.WithContext(ctx))
	if err != nil {
		b.t.Fatal(err)
	}
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		all, _ := io.ReadAll(resp.Body)
		b.t.Fatalf("no stream but %s: %s", ct, all)
	}
	e := &events{lines: make(chan string, 64), header: resp.Header, cancel: cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(e.lines)
		defer func() { _ = resp.Body.Close() }()
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			if line := s.Text(); line != "" && line != "event: message" {
				e.lines <- line
			}
		}
	}()
	b.t.Cleanup(func() {
		cancel()
		for range e.lines {
		}
		<-done
	})
	return e
}

// next gives the next line of the stream, or "" at its end.
func (e *events) next(tb testing.TB) string {
	tb.Helper()
	select {
	case line := <-e.lines:
		return line
	case <-time.After(10 * time.Second):
		tb.Fatal("nothing came on the stream")
		return ""
	}
}

func (e *events) silent(tb testing.TB, d time.Duration) {
	tb.Helper()
	select {
	case line := <-e.lines:
		tb.Fatalf("something came on the stream: %s", line)
	case <-time.After(d):
	}
}

// eventually waits for a condition.
func eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			tb.Fatalf("waited in vain for: %s", what)
		case <-tick.C:
		}
	}
}
