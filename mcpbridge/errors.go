package mcpbridge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/agentrooms/agentrooms/internal/problem"
)

// envelope is the form in which agents get to see a problem.
type envelope struct {
	Error *problem.Problem `json:"error"`
}

// panicError is a panic that was caught, with the stack on which it happened.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// caught turns what recover gives into an error.
func caught(value any) error { return &panicError{value: value, stack: debug.Stack()} }

// apiTrouble says whether an error means that the API server cannot serve just now, so that the same call may succeed
// later.
func apiTrouble(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return true
	}
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		// It is the bridge that is refused: an API server that has just started does not know its roles and policies yet.
		return !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	return false
}

// judge gives the problem that the caller gets to see for an error, and logs what the caller does not.
func (s *Server) judge(ctx context.Context, log *slog.Logger, err error) *problem.Problem {
	if p, ok := problem.As(err); ok {
		return p
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		s.metrics.panics.Inc()
		id := incident()
		log.ErrorContext(ctx, "panic", "incident", id, "panic", fmt.Sprint(p.value), "stack", string(p.stack))
		return internal(id)
	}
	if p := problem.Missing(err); p != nil {
		log.WarnContext(ctx, "the API server does not have what a call is about", "error", err.Error())
		return p
	}
	if apiTrouble(err) {
		if ctx.Err() == nil {
			log.WarnContext(ctx, "the API server did not answer as it should", "error", err.Error())
		}
		return unavailable()
	}
	id := incident()
	log.ErrorContext(ctx, "unexpected error", "incident", id, "error", err.Error())
	return internal(id)
}

func internal(id string) *problem.Problem {
	return problem.New(problem.Internal, "something went wrong inside the bridge (incident %s)", id).
		WithHint("tell whoever runs Agent Rooms the incident's number: it is in the bridge's log")
}

func unavailable() *problem.Problem {
	p := problem.New(problem.Unavailable, "the cluster's API server does not answer just now: try again")
	p.RetryAfterSeconds = 1
	return p
}

// incident gives a number by which an error is found in the log.
func incident() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// writeProblem answers with a status of HTTP and the error envelope. It is for what goes wrong before there is a message
// that could be answered.
func writeProblem(w http.ResponseWriter, p *problem.Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if p.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfterSeconds))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(envelope{p})
}

// writeRPCError answers with an error of the protocol. The modern era maps its codes onto the status of HTTP, the older
// ones answer 200 to a message that could be read.
func writeRPCError(w http.ResponseWriter, modern bool, e *rpcError) {
	status := e.status
	if status == 0 {
		status = http.StatusOK
		if modern {
			status = http.StatusBadRequest
		}
	}
	id := e.id
	if id == nil {
		id = json.RawMessage("null")
	}
	detail := map[string]any{"code": e.code, "message": e.message}
	if e.data != nil {
		detail["data"] = e.data
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": mcp.JSONRPC_VERSION, "id": id, "error": detail})
}

// rpcProblem puts a problem into an error of the protocol: for requests that are no tool call.
func rpcProblem(m *message, p *problem.Problem) *rpcError {
	e := &rpcError{id: m.id, code: mcp.INVALID_PARAMS, message: p.Message, data: envelope{p}}
	switch p.Code {
	case problem.NotFound:
		if !m.modern {
			e.code = mcp.RESOURCE_NOT_FOUND
		}
	case problem.Internal, problem.Unavailable, problem.RateLimited:
		e.code, e.status = mcp.INTERNAL_ERROR, p.Status
	case problem.IdentityRequired, problem.ForbiddenScope, problem.Forbidden, problem.NotAMember:
		e.code, e.status = mcp.INVALID_REQUEST, http.StatusForbidden
	}
	if !m.modern {
		e.status = http.StatusOK
	}
	return e
}
