package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/drain"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// jsonType is the media type of everything that the bridge says outside of streams.
const jsonType = "application/json"

// toolHandler gives mcp-go the handler of a tool. mcp-go hands over arguments that it decoded; the bridge takes the raw
// ones from the request.
func (e *endpoint) toolHandler(t *toolset.Tool) server.ToolHandlerFunc {
	return func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		q, started, outcome := requestFrom(ctx), e.clock.Now(), "ok"
		ctx, wrote := toolset.WithRevision(ctx)
		raw, err := e.call(ctx, q, t)
		if err != nil {
			p := e.judge(ctx, q.log.With("tool", t.Name), err)
			outcome = string(p.Code)
			raw = encodeProblem(p)
		}
		took := e.clock.Since(started)
		e.metrics.calls.WithLabelValues(e.set.Name(), t.Name, outcome).Inc()
		e.metrics.duration.WithLabelValues(e.set.Name(), t.Name).Observe(took.Seconds())
		q.tool, q.outcome = t.Name, outcome
		return e.result(q, raw, err != nil, wrote.Marks()), nil
	}
}

// revisionKey is the member of _meta, in results and requests, by which a caller makes another replica wait for its writes.
const revisionKey = "agentrooms.dev/revision"

// awaitRevision waits for what the caller's last call wrote, if the request says so.
func (e *endpoint) awaitRevision(ctx context.Context, q *request) error {
	if !isObject(q.msg.meta) {
		return nil
	}
	var meta struct {
		Revision map[string]string `json:"agentrooms.dev/revision"`
	}
	if err := json.Unmarshal(q.msg.meta, &meta); err != nil || len(meta.Revision) > maxMarks {
		return problem.Invalid("_meta", "holds a revision that no call gave: leave it out, or give back what a result held")
	}
	if len(meta.Revision) == 0 {
		return nil
	}
	return e.set.Await(ctx, meta.Revision) //nolint:wrapcheck // a problem for the caller
}

// maxMarks bounds the revision of a request.
const maxMarks = 16

// result puts an answer into the form of the protocol: as text, as structured content, and with what waits for the agent.
func (e *endpoint) result(q *request, raw json.RawMessage, failed bool, wrote map[string]string) *mcp.CallToolResult {
	pending := 0
	if q.plate != "" {
		pending = e.set.Pending(q.plate)
	}
	text, structured := "", any(raw)
	if len(raw) >= spliceFrom {
		q.splice = newSplice(raw)
		text, structured = q.splice.text, q.splice.structured
	} else {
		text = string(raw)
	}
	r := &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.TextContent{Type: mcp.ContentTypeText, Text: text}},
		StructuredContent: structured,
		IsError:           failed,
	}
	r.Meta = &mcp.Meta{AdditionalFields: map[string]any{"pending_mentions": pending}}
	if len(wrote) > 0 {
		r.Meta.AdditionalFields[revisionKey] = wrote
	}
	return r
}

// call runs a tool: identity, scope, arguments, rate limit, handler.
func (e *endpoint) call(ctx context.Context, q *request, t *toolset.Tool) (raw json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			raw, err = nil, caught(p)
		}
	}()
	if q.nobody != nil {
		return nil, q.nobody
	}
	caller := q.caller("", "", "")
	if t.Scope != "" && !caller.Has(t.Scope) {
		return nil, problem.New(problem.ForbiddenScope, "%s needs the scope %s, which this agent does not have",
			t.Name, strings.ToUpper(string(t.Scope))).
			WithHint("the agent's owner can add %q to spec.scopes of the Agent", t.Scope)
	}
	if q.msg.refused != nil {
		return nil, q.msg.refused
	}
	args, p := t.ParseArgs(q.msg.inner)
	if p != nil {
		return nil, p
	}
	caller = q.caller(sessionOf(args), args.String("host"), args.String("workspace"))
	e.set.Touch(caller, e.listening.has(instanceKey(caller)))
	if p := e.admit(q, t.Bucket); p != nil {
		return nil, p
	}
	ctx, cancel := context.WithTimeout(drain.WithSignal(ctx, e.draining), e.timeout(t))
	defer cancel()
	if err := e.awaitRevision(ctx, q); err != nil {
		return nil, err
	}
	answer, err := t.Handle(ctx, caller, args)
	if err != nil {
		return nil, err
	}
	return encode(answer)
}

// sessionOf gives the name by which the calling instance calls itself, empty when it does not say.
func sessionOf(args toolset.Args) string {
	if instance := args.String("instance_id"); instance != "" {
		return instance
	}
	return args.String("session_id")
}

// admit counts a request against the agent's limits.
func (e *endpoint) admit(q *request, bucket toolset.Bucket) *problem.Problem {
	if q.crowded != nil {
		return q.crowded
	}
	if p := e.limiters.take(q.plate, bucket); p != nil {
		e.metrics.rateLimited.WithLabelValues(string(bucket)).Inc()
		return p
	}
	return nil
}

func (e *endpoint) timeout(t *toolset.Tool) time.Duration {
	if own, ok := e.opts.CallTimeouts[t.Name]; ok {
		return own
	}
	return e.opts.CallTimeout
}

// encode gives an answer as JSON, once for all the places where it stands. Characters that only HTML minds stay as they
// are: agents read the text.
func encode(answer any) (json.RawMessage, error) {
	raw, ready := answer.(json.RawMessage)
	if !ready {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(answer); err != nil {
			return nil, fmt.Errorf("encoding the answer: %w", err)
		}
		raw = bytes.TrimSpace(b.Bytes())
	}
	if !isObject(raw) {
		return nil, errors.New("encoding the answer: it is no JSON object")
	}
	return raw, nil
}

// encodeProblem gives the error envelope. A Problem holds nothing that could not be encoded.
func encodeProblem(p *problem.Problem) json.RawMessage {
	raw, err := encode(envelope{p})
	if err != nil {
		return json.RawMessage(`{"error":{"code":"INTERNAL","status":500,"message":"the error could not be encoded","retryable":false}}`)
	}
	return raw
}

// readResource serves resources/read. Its errors travel beside mcp-go, which knows no codes of ours.
func (e *endpoint) readResource(ctx context.Context, r mcp.ReadResourceRequest) (contents []mcp.ResourceContents, err error) {
	q := requestFrom(ctx)
	defer func() {
		if p := recover(); p != nil {
			q.failed = e.judge(ctx, q.log, caught(p))
		}
	}()
	ctx, cancel := context.WithTimeout(drain.WithSignal(ctx, e.draining), e.opts.CallTimeout)
	defer cancel()
	answer, err := e.set.ReadResource(ctx, q.instance, r.Params.URI)
	if err != nil {
		q.failed = e.judge(ctx, q.log, err)
		return nil, nil
	}
	raw, err := encode(answer)
	if err != nil {
		q.failed = e.judge(ctx, q.log, err)
		return nil, nil
	}
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, MIMEType: jsonType, Text: string(raw)}}, nil
}
