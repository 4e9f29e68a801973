package mcpbridge

import (
	"context"
	"log/slog"
	"net/http"

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
