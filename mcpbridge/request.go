package mcpbridge

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// request is what the bridge knows of a request beyond what mcp-go does.
type request struct {
	// id to find the request in the log.
	id  string
	log *slog.Logger
	// token and username of the caller.
	token, username string
	// agent and plate of the caller, empty when nobody is set.
	agent *v1alpha1.Agent
	plate string
	// nobody says why the username acts as no agent.
	nobody error
	// leave gives back the place among the agent's requests that are under way.
	leave func()
	// crowded says that the agent has too many requests under way.
	crowded *problem.Problem
	msg     *message
	// tool that was called, and how that ended, for the log.
	tool, outcome string
	// instance that reads or lists resources.
	instance *toolset.Caller
	// splice is the answer when it passes by mcp-go.
	splice *splice
	// failed is why a resource could not be read.
	failed *problem.Problem
}

type requestKey struct{}

func withRequest(ctx context.Context, q *request) context.Context {
	return context.WithValue(ctx, requestKey{}, q)
}

// requestFrom gives the request behind a context. Every context that reaches mcp-go has one.
func requestFrom(ctx context.Context) *request {
	q, _ := ctx.Value(requestKey{}).(*request)
	return q
}

// caller gives the instance that calls. One that did not name itself is known by where it runs.
func (q *request) caller(session, host, workspace string) *toolset.Caller {
	if session == "" {
		session = ids.Session(q.plate, host, workspace)
	}
	return &toolset.Caller{Agent: q.agent, Plate: q.plate, Session: session, Host: host, Workspace: workspace}
}

// hintPrefix begins the keys of _meta by which an instance says which one it is, in requests that have no arguments.
const hintPrefix = "agentrooms.dev/"

// hinted gives the instance that calls, by the hints in the request's _meta.
func (q *request) hinted() (*toolset.Caller, *problem.Problem) {
	hints := map[string]json.RawMessage{}
	if isObject(q.msg.meta) {
		_ = members(q.msg.meta, func(f member) error { // the message was judged as a whole already
			if name, ours := strings.CutPrefix(f.name, hintPrefix); ours {
				hints[name] = f.value
			}
			return nil
		})
	}
	raw, err := json.Marshal(hints)
	if err != nil {
		return nil, problem.Invalid("_meta", "is not well-formed")
	}
	args, p := (&toolset.Tool{Hints: true}).ParseArgs(raw)
	if p != nil {
		return nil, p
	}
	return q.caller(sessionOf(args), args.String("host"), args.String("workspace")), nil
}

// identify finds the agent that the username acts as.
func (q *request) identify(set toolset.Toolset) {
	q.agent, q.plate, q.nobody = set.Identify(q.username)
	if q.nobody == nil && (q.agent == nil || q.plate == "") {
		q.nobody = problem.New(problem.IdentityRequired, "no agent acts as %s", q.username)
	}
	if q.nobody != nil {
		q.agent, q.plate = nil, ""
	}
}

// share is the name under which the caller's part of the bridge is counted.
func (q *request) share() string {
	if q.plate != "" {
		return q.plate
	}
	return "user:" + q.username
}

// requestID takes over the id that a proxy gave the request if it is fit to be logged, and makes one otherwise.
func requestID(h http.Header) string {
	id := h.Get("X-Request-Id")
	if id == "" || len(id) > 64 {
		return incident()
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return incident()
		}
	}
	return id
}
