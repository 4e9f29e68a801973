package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

const (
	// writeTimeout bounds how long a client may take to read what a stream sends.
	writeTimeout = 10 * time.Second
	// maxMisses is how many checks of a stream's token may fail in a row because the API server is away.
	maxMisses = 3
)

// changes collects which resources changed since they were announced last. However fast they change, it holds one mark
// for each.
type changes struct {
	mu     sync.Mutex
	marked []int
	ended  bool
	// signal has a value while there is something to collect.
	signal chan struct{}
}

func newChanges() *changes { return &changes{signal: make(chan struct{}, 1)} }

// note marks a resource as changed, or the caller's right to one as ended.
func (c *changes) note(i int, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !open {
		c.ended = true
	} else if !slices.Contains(c.marked, i) {
		c.marked = append(c.marked, i)
	}
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// collect gives the marks and takes them away.
func (c *changes) collect() (marked []int, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	marked, c.marked = c.marked, nil
	return marked, c.ended
}

// stream is one answer to subscriptions/listen.
type stream struct {
	*endpoint

	request *request
	caller  *toolset.Caller
	uris    []string
	changed *changes
	misses  int
}

func (s *stream) close() {
	s.streams.leave(s.request.plate)
	s.listening.leave(instanceKey(s.caller))
	s.metrics.streams.Dec()
}

// run sends the acknowledgement, then what changes, until the client leaves, the stream is too old, the caller loses its
// rights, or the server drains. A stream that the server ends ends with the request's result, so that the client knows
// that nothing broke and listens again.
func (s *stream) run(ctx context.Context, w http.ResponseWriter) {
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	if out.open(s.acknowledgement()) != nil {
		return
	}
	reason := "empty"
	if len(s.uris) > 0 {
		reason = s.watch(ctx, out)
	}
	s.request.log.DebugContext(ctx, "stream ended", "plate", s.request.plate, "reason", reason)
	if ctx.Err() == nil {
		_ = out.send(s.result())
	}
}

// watch sends what changes and gives the reason why the stream ended.
func (s *stream) watch(ctx context.Context, out *eventWriter) string {
	age := s.clock.NewTimer(s.opts.MaxStreamAge)
	defer age.Stop()
	alive := s.clock.NewTicker(s.opts.KeepAlive)
	defer alive.Stop()
	recheck := s.clock.NewTicker(s.opts.Recheck)
	defer recheck.Stop()
	var settled <-chan time.Time
	pending := s.changed.signal
	s.set.Touch(s.caller, true)
	for {
		select {
		case <-ctx.Done():
			return "client left"
		case <-s.draining:
			return "draining"
		case <-age.C():
			return "age"
		case <-settled:
			pending, settled = s.changed.signal, nil
		case <-pending:
			ended, err := s.announce(out)
			if err != nil {
				return "client does not read"
			}
			if ended {
				return "right lost"
			}
			pending, settled = nil, s.clock.After(s.opts.Settle)
		case <-alive.C():
			s.set.Touch(s.caller, true)
			if out.comment("keep-alive") != nil {
				return "client does not read"
			}
		case <-recheck.C():
			if !s.stillAllowed(ctx) {
				return "token"
			}
		}
	}
}

// announce sends a notification for each resource that changed.
func (s *stream) announce(out *eventWriter) (ended bool, err error) {
	marked, ended := s.changed.collect()
	for _, i := range marked {
		if err := out.send(s.notification(mcp.MethodNotificationResourceUpdated, map[string]any{"uri": s.uris[i]})); err != nil {
			return false, err
		}
	}
	return ended, nil
}

// stillAllowed checks the token again, and that it still stands for the same agent. While the API server is away the
// stream goes on for a few checks: it only gives hints, and reading asks for a token anew.
func (s *stream) stillAllowed(ctx context.Context) bool {
	username, err := s.tokens.authenticate(ctx, s.request.token, s.opts.Recheck/2)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return false
	case err != nil:
		s.misses++
		return s.misses < maxMisses
	}
	s.misses = 0
	_, plate, err := s.set.Identify(username)
	return err == nil && plate == s.request.plate
}

// notification is a message of the stream. Each carries the id of the request that opened it.
func (s *stream) notification(method string, params map[string]any) any {
	params["_meta"] = map[string]any{mcp.MetaKeySubscriptionID: s.request.msg.id}
	return map[string]any{"jsonrpc": mcp.JSONRPC_VERSION, "method": method, "params": params}
}

func (s *stream) acknowledgement() any {
	established := mcp.SubscriptionFilter{ResourceSubscriptions: s.uris}
	return s.notification(mcp.MethodNotificationSubscriptionsAcknowledged, map[string]any{"notifications": established})
}

func (s *stream) result() any {
	return map[string]any{"jsonrpc": mcp.JSONRPC_VERSION, "id": s.request.msg.id, "result": map[string]any{
		"resultType": mcp.ResultTypeComplete,
		"_meta": map[string]any{
			mcp.MetaKeySubscriptionID: s.request.msg.id,
			mcp.MetaKeyServerInfo:     map[string]any{"name": "agentrooms-" + s.set.Name(), "version": s.opts.Version},
		},
	}}
}

// eventWriter writes server-sent events. Nothing that it sends waits in a buffer, and no client holds it up for long.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (o *eventWriter) open(first any) error {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	o.w.WriteHeader(http.StatusOK)
	return o.send(first)
}

func (o *eventWriter) send(message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	return o.write(slices.Concat([]byte("event: message\ndata: "), bytes.TrimSpace(data), []byte("\n\n")))
}

func (o *eventWriter) comment(text string) error { return o.write([]byte(": " + text + "\n\n")) }

func (o *eventWriter) write(event []byte) error {
	// The deadline of a server that has one is put off with each event. A server without deadlines refuses, which is fine.
	_ = o.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := o.w.Write(event); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	if err := o.control.Flush(); err != nil {
		return fmt.Errorf("flushing an event: %w", err)
	}
	// Between events the client owes nothing.
	_ = o.control.SetWriteDeadline(time.Time{})
	return nil
}
