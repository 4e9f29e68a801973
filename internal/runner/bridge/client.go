// Package bridge talks to the MCP bridge for `rooms listen` and `rooms work`: calls of tools, resources, and the stream that
// tells of changes. It uses the protocol of 2026-07-28, which knows no sessions: nothing has to be built up again after the
// bridge was away, and any replica takes any call.
package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agentrooms/agentrooms/internal/problem"
)

// callTimeout bounds a call. The bridge answers within 30 s.
const callTimeout = 40 * time.Second

// maxIdentity bounds what an instance says of itself, as the bridge does: characters of host and workspace, and of its name.
const (
	maxIdentity = 256
	maxSession  = 64
)

// Options of a client.
type Options struct {
	// URL of the MCP endpoint, such as http://127.0.0.1:7600/mcp.
	URL string
	// TokenFile holds the agent's token. It is read for each request.
	TokenFile string
	// Session names the instance: 1 to 64 characters. Host and Workspace say where it runs.
	Session, Host, Workspace string
	// Version of the program, for the bridge's log.
	Version string
}

// Client is one instance of an agent. It is safe for concurrent use.
type Client struct {
	opts      Options
	transport *transport.StreamableHTTP
	ids       atomic.Int64
	changed   chan struct{}
}

// New makes a client. It connects to nothing yet, but the token must be there.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("the bridge's URL %q must be of the form http://127.0.0.1:7600/mcp", o.URL)
	}
	if n := len([]rune(o.Session)); n == 0 || n > maxSession {
		return nil, fmt.Errorf("the name of the instance has %d characters: 1 to %d are allowed", n, maxSession)
	}
	if _, err := readToken(o.TokenFile); err != nil {
		return nil, err
	}
	o.Host, o.Workspace = cut(o.Host), cut(o.Workspace)
	t, err := transport.NewStreamableHTTP(o.URL,
		transport.WithHTTPBasicClient(newHTTPClient(o.TokenFile)), transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("making the client for %s: %w", o.URL, err)
	}
	t.SetProtocolVersion(mcp.ProtocolVersion20260728)
	c := &Client{opts: o, transport: t, changed: make(chan struct{}, 1)}
	// Whatever comes on the stream, its beginning too, is a reason to look.
	t.SetNotificationHandler(func(mcp.JSONRPCNotification) { c.signal() })
	return c, nil
}

func cut(s string) string {
	r := []rune(s)
	return string(r[:min(len(r), maxIdentity)])
}

// Session is the name of the instance.
func (c *Client) Session() string { return c.opts.Session }

// Changed has a value when something may have changed since it was last read from.
func (c *Client) Changed() <-chan struct{} { return c.changed }

func (c *Client) signal() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Close ends what is under way.
func (c *Client) Close() { _ = c.transport.Close() }

// Call calls a tool and reads its result into a value, nil for none. What the tool refuses comes back as a *problem.Problem; any
// other error means that it is not known whether the call was carried out.
func (c *Client) Call(ctx context.Context, tool string, args map[string]any, into any) error {
	full := map[string]any{"session_id": c.opts.Session, "host": c.opts.Host, "workspace": c.opts.Workspace}
	maps.Copy(full, args)
	var result struct {
		StructuredContent json.RawMessage `json:"structuredContent"`
		IsError           bool            `json:"isError"`
	}
	params := map[string]any{"name": tool, "arguments": full}
	if err := c.request(ctx, mcp.MethodToolsCall, params, &result); err != nil {
		return fmt.Errorf("calling %s: %w", tool, err)
	}
	if result.IsError {
		return fmt.Errorf("calling %s: %w", tool, refusal(result.StructuredContent))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(result.StructuredContent, into); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", tool, err)
	}
	return nil
}

// Read reads a resource into a value.
func (c *Client) Read(ctx context.Context, uri string, into any) error {
	var result struct {
		Contents []struct {
			Text string `json:"text"`
		} `json:"contents"`
	}
	if err := c.request(ctx, mcp.MethodResourcesRead, map[string]any{"uri": uri}, &result); err != nil {
		return fmt.Errorf("reading %s: %w", uri, err)
	}
	if len(result.Contents) != 1 {
		return fmt.Errorf("reading %s: the answer has %d parts", uri, len(result.Contents))
	}
	if err := json.Unmarshal([]byte(result.Contents[0].Text), into); err != nil {
		return fmt.Errorf("reading %s: %w", uri, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method mcp.MCPMethod, params map[string]any, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := c.send(ctx, method, params)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}

// send sends one request, with all that the protocol wants to have said in each.
func (c *Client) send(ctx context.Context, method mcp.MCPMethod, params map[string]any) (json.RawMessage, error) {
	params["_meta"] = map[string]any{
		mcp.MetaKeyProtocolVersion:    mcp.ProtocolVersion20260728,
		mcp.MetaKeyClientCapabilities: map[string]any{},
		mcp.MetaKeyClientInfo:         mcp.Implementation{Name: "rooms", Version: c.opts.Version},
		"agentrooms.dev/session_id":   c.opts.Session,
		"agentrooms.dev/host":         c.opts.Host,
		"agentrooms.dev/workspace":    c.opts.Workspace,
	}
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	header := http.Header{}
	for name, value := range mcp.StandardHeaders(mcp.ProtocolVersion20260728, method, encoded) {
		header.Set(name, value)
	}
	answer, err := c.transport.SendRequest(ctx, transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(c.ids.Add(1)), Method: string(method),
		Params: json.RawMessage(encoded), Header: header,
	})
	switch {
	case errors.Is(err, transport.ErrAuthorizationRequired):
		return nil, problem.New(problem.IdentityRequired, "the bridge does not accept the token in %s", c.opts.TokenFile).
			WithHint("it may have ended, or been made without the audience that the bridge asks for: put a new one there")
	case errors.Is(err, transport.ErrSessionTerminated):
		return nil, fmt.Errorf("nothing is served at %s: the URL of the MCP endpoint ends with /mcp", c.opts.URL)
	case err != nil:
		return nil, err //nolint:wrapcheck // callers say what was asked for
	case answer.Error != nil:
		return nil, rpcError(answer.Error)
	}
	return answer.Result, nil
}

// rpcError gives the problem inside an error of the protocol, where there is one.
func rpcError(e *mcp.JSONRPCErrorDetails) error {
	if raw, err := json.Marshal(e.Data); err == nil && e.Data != nil {
		if p, ok := problem.As(refusal(raw)); ok {
			return p
		}
	}
	return fmt.Errorf("the bridge answered with the error %d: %s", e.Code, e.Message)
}

// refusal reads the envelope of a problem.
func refusal(raw json.RawMessage) error {
	var envelope struct {
		Error *problem.Problem `json:"error"`
	}
	if err := json.Unmarshal(raw, &envelope); err != nil || envelope.Error == nil || envelope.Error.Code == "" {
		return fmt.Errorf("an error of no known form: %.200s", raw)
	}
	return envelope.Error
}
