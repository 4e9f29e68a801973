package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// maxListened bounds the resources that one stream is about.
const maxListened = 32

// listen answers subscriptions/listen. mcp-go judges the request, with an empty filter, as it does any other; the stream
// is ours, because mcp-go announces no changes of resources over HTTP.
func (e *endpoint) listen(w *response, r *http.Request, q *request) {
	judged := newCapture()
	e.handle(judged, r, q.msg.body)
	if refused(judged) {
		judged.replay(w)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s, p := e.openStream(ctx, q)
	if p != nil {
		writeRPCError(w, q.msg.modern, rpcProblem(q.msg, p))
		return
	}
	defer s.close()
	q.leave() // a stream is counted among the streams, not among the requests
	w.status = http.StatusOK
	s.run(ctx, w.ResponseWriter)
}

// refused says whether mcp-go's answer is an error.
func refused(answer *capture) bool {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	return answer.status != http.StatusOK || json.Unmarshal(answer.body, &body) != nil || body.Error != nil
}

// openStream takes a place among the streams and subscribes to everything that the filter lists. All of it is allowed, or
// nothing is.
func (e *endpoint) openStream(ctx context.Context, q *request) (*stream, *problem.Problem) {
	if q.nobody != nil {
		return nil, e.judge(ctx, q.log, q.nobody)
	}
	uris, p := listened(q.msg)
	if p != nil {
		return nil, p
	}
	caller, p := q.hinted()
	if p == nil {
		p = e.admit(q, toolset.BucketRead)
	}
	if p != nil {
		return nil, p
	}
	if !e.streams.enter(q.plate) {
		e.metrics.rateLimited.WithLabelValues("streams").Inc()
		p := problem.New(problem.RateLimited, "this agent has too many streams open (at most %d, and %d on the server): "+
			"close one or put its resources into one filter", e.opts.MaxStreamsPerAgent, e.opts.MaxStreams)
		p.RetryAfterSeconds = 30
		return nil, p
	}
	s := &stream{endpoint: e, request: q, caller: caller, uris: uris, changed: newChanges()}
	for i, uri := range uris {
		if err := s.follow(ctx, i, uri); err != nil {
			e.streams.leave(q.plate)
			return nil, e.judge(ctx, q.log, err)
		}
	}
	e.listening.enter(instanceKey(caller))
	e.metrics.streams.Inc()
	return s, nil
}

// follow subscribes to a resource.
func (s *stream) follow(ctx context.Context, i int, uri string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = caught(p)
		}
	}()
	updates, err := s.set.Listen(ctx, s.caller, uri)
	if err != nil {
		return err
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case _, open := <-updates:
				s.changed.note(i, open)
				if !open {
					return
				}
			}
		}
	}()
	return nil
}

// listened gives the resources that a filter lists, each once. The flags for lists have no effect: the lists of this
// server do not change while it runs, and the acknowledgement says so by leaving them out.
func listened(m *message) ([]string, *problem.Problem) {
	const field = "notifications.resourceSubscriptions"
	if m.refused != nil {
		return nil, m.refused
	}
	var filter mcp.SubscriptionFilter
	if m.inner != nil {
		if err := json.Unmarshal(m.inner, &filter); err != nil {
			wrong := "notifications"
			if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && typed.Field != "" {
				wrong += "." + short(typed.Field)
			}
			return nil, problem.Invalid(wrong, "is not of the form of a subscription filter")
		}
	}
	uris := slices.Compact(slices.Sorted(slices.Values(filter.ResourceSubscriptions)))
	if len(uris) > maxListened {
		return nil, problem.Invalid(field, "may list at most %d resources", maxListened)
	}
	for _, uri := range uris {
		if uri == "" || len(uri) > maxURILength {
			return nil, problem.Invalid(field, "must list URIs of 1 to %d bytes", maxURILength)
		}
	}
	return uris, nil
}
