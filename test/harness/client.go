package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// Session is an instance of an agent that talks to a bridge.
type Session struct {
	// Name of the session, sent as session_id.
	Name string
	// After is the revision that the next calls wait for: one that another call's result held.
	After map[string]any
	mcp   *mcpclient.Client
}

// Connect opens an MCP connection as an agent's token says. An empty session leaves the instance unnamed.
func Connect(tb testing.TB, url, token, session string) *Session {
	tb.Helper()
	c, err := mcpclient.NewStreamableHttpClient(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Start(ctx); err != nil {
		tb.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION,
		ClientInfo:      mcp.Implementation{Name: "harness", Version: "1"},
	}}); err != nil {
		tb.Fatalf("initializing: %v", err)
	}
	return &Session{Name: session, mcp: c}
}

// As opens a connection to the first replica as an agent of the demo.
func (p *Plane) As(tb testing.TB, agent, session string) *Session {
	tb.Helper()
	return Connect(tb, p.MCP, p.Agent(tb, agent).Token(tb), session)
}

// AsAt opens a connection to a replica as an agent of the demo.
func (p *Plane) AsAt(tb testing.TB, replica int, agent, session string) *Session {
	tb.Helper()
	return Connect(tb, p.Replicas[replica], p.Agent(tb, agent).Token(tb), session)
}

// Args of a call.
type Args map[string]any

// Error is a tool's error.
type Error struct {
	Code       string   `json:"code"`
	Status     int      `json:"status"`
	Message    string   `json:"message"`
	Retryable  bool     `json:"retryable"`
	Fields     []string `json:"fields"`
	Hint       string   `json:"hint"`
	Holder     string   `json:"holder"`
	Candidates []string `json:"candidates"`
	RetryAfter int      `json:"retry_after_seconds"`
}

// String gives code and message.
func (e *Error) String() string { return e.Code + ": " + e.Message }

// Result of a call.
type Result struct {
	// Raw is the structured content.
	Raw json.RawMessage
	// Err is the tool's error, nil when it succeeded.
	Err *Error
	// Pending is _meta.pending_mentions, -1 when it is absent.
	Pending int
	// Text is the text content.
	Text string
	// Revision is what the call wrote.
	Revision map[string]any
}

// Into reads the structured content.
func (r *Result) Into(tb testing.TB, v any) {
	tb.Helper()
	if r.Err != nil {
		tb.Fatalf("the tool answered %v (%s)", r.Err, r.Err.Hint)
	}
	if err := json.Unmarshal(r.Raw, v); err != nil {
		tb.Fatalf("reading %s: %v", r.Raw, err)
	}
}

// Do calls a tool. The error is of the connection; what the tool says is in the result.
func (s *Session) Do(ctx context.Context, tool string, args Args) (*Result, error) {
	full := map[string]any{}
	maps.Copy(full, args)
	if _, given := full["session_id"]; s.Name != "" && !given {
		full["session_id"] = s.Name
	}
	params := mcp.CallToolParams{Name: tool, Arguments: full}
	if s.After != nil {
		params.Meta = &mcp.Meta{AdditionalFields: map[string]any{"agentrooms.dev/revision": s.After}}
	}
	out, err := s.mcp.CallTool(ctx, mcp.CallToolRequest{Params: params})
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", tool, err)
	}
	r := &Result{Pending: -1}
	if r.Raw, err = json.Marshal(out.StructuredContent); err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", tool, err)
	}
	for _, c := range out.Content {
		if text, ok := c.(mcp.TextContent); ok {
			r.Text += text.Text
		}
	}
	if out.Meta != nil {
		if n, ok := out.Meta.AdditionalFields["pending_mentions"].(float64); ok {
			r.Pending = int(n)
		}
		r.Revision, _ = out.Meta.AdditionalFields["agentrooms.dev/revision"].(map[string]any)
	}
	if out.IsError {
		var envelope struct {
			Error *Error `json:"error"`
		}
		if err := json.Unmarshal(r.Raw, &envelope); err != nil || envelope.Error == nil {
			return nil, fmt.Errorf("calling %s: an error without an envelope: %s", tool, r.Raw)
		}
		r.Err = envelope.Error
	}
	return r, nil
}

// Call calls a tool and fails the test when the connection does.
func (s *Session) Call(tb testing.TB, tool string, args Args) *Result {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := s.Do(ctx, tool, args)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// Get calls a tool that must succeed and reads its result.
func Get[T any](tb testing.TB, s *Session, tool string, args Args) T {
	tb.Helper()
	var v T
	s.Call(tb, tool, args).Into(tb, &v)
	return v
}

// Refused calls a tool that must fail with a code, and gives the error.
func Refused(tb testing.TB, s *Session, code, tool string, args Args) *Error {
	tb.Helper()
	r := s.Call(tb, tool, args)
	if r.Err == nil {
		tb.Fatalf("%s %v succeeded with %s, want %s", tool, args, r.Raw, code)
	}
	if r.Err.Code != code {
		tb.Fatalf("%s %v: %v, want %s", tool, args, r.Err, code)
	}
	if strings.TrimSpace(r.Err.Message) == "" {
		tb.Errorf("%s: %s has no message", tool, code)
	}
	return r.Err
}
