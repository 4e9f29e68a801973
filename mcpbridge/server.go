package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"
)

const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	// answerSlack is what an answer may take to be read, beyond the longest call.
	answerSlack = time.Minute
)

// Server serves toolsets over MCP.
type Server struct {
	opts       Options
	clock      clock.WithTicker
	log        *slog.Logger
	metrics    *metrics
	tokens     *tokenCache
	limiters   *limiters
	concurrent *gate
	// streams bounds the streams by agent; listening knows which instances have one.
	streams, listening *gate
	origins            *origins
	handler            http.Handler
	// draining is closed when the server begins to drain.
	draining  chan struct{}
	drainOnce sync.Once
}

// New makes a server.
func New(opts Options) (*Server, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	m, err := newMetrics(opts.Registry)
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts: opts, clock: opts.Clock, log: opts.Logger, metrics: m,
		tokens:     newTokenCache(opts.Authenticator, opts.Clock, m),
		limiters:   newLimiters(opts.RateLimits, opts.Clock),
		concurrent: newGate(opts.MaxConcurrent, 1<<20),
		streams:    newGate(opts.MaxStreamsPerAgent, opts.MaxStreams),
		listening:  newGate(opts.MaxStreams, opts.MaxStreams),
		origins:    newOrigins(opts.PublicURL, opts.AllowedOrigins),
		draining:   make(chan struct{}),
	}
	if s.handler, err = s.routes(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) routes() (http.Handler, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", s.readyz)
	if s.opts.Transfers != nil {
		mux.Handle("/transfer/", http.StripPrefix("/transfer", s.opts.Transfers))
	}
	names := map[string]bool{}
	for i, set := range s.opts.Toolsets {
		if names[set.Name()] {
			return nil, fmt.Errorf("the toolset %s is there twice", set.Name())
		}
		names[set.Name()] = true
		e, err := newEndpoint(s, set)
		if err != nil {
			return nil, err
		}
		paths := []string{"/mcp/" + set.Name()}
		if i == 0 {
			paths = append(paths, "/mcp")
			mux.Handle(server.WellKnownProtectedResourcePath, s.metadata("/mcp"))
		}
		for _, path := range paths {
			mux.Handle(path, e)
			mux.Handle(server.WellKnownProtectedResourcePath+path, s.metadata(path))
		}
	}
	if s.opts.Board != nil {
		pages, err := s.pages()
		if err != nil {
			return nil, fmt.Errorf("making the pages for people: %w", err)
		}
		mux.Handle("/", pages)
	}
	return mux, nil
}

// Handler gives everything that the server serves, but for the metrics.
func (s *Server) Handler() http.Handler { return s.handler }

// MetricsHandler serves the metrics of the registry.
func (s *Server) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(s.opts.Registry, promhttp.HandlerOpts{})
}

// readyz says whether the server can answer: not while a toolset's view is incomplete, and not while it drains.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	select {
	case <-s.draining:
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	default:
	}
	if err := s.toolsetsReady(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

func (s *Server) toolsetsReady() error {
	for _, set := range s.opts.Toolsets {
		if err := set.Ready(); err != nil {
			return fmt.Errorf("toolset %s: %w", set.Name(), err)
		}
	}
	return nil
}

// Drain ends all streams, so that their clients listen elsewhere, tells long polls to answer, and turns readyz off. Run
// does it by itself.
func (s *Server) Drain() { s.drainOnce.Do(func() { close(s.draining) }) }

// Run serves on the listener until the context ends. Then it accepts no more, ends the streams, and waits for the requests
// under way, up to the drain timeout.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      s.longestCall() + answerSlack,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	s.log.InfoContext(ctx, "serving", "address", listener.Addr().String())
	select {
	case err := <-served:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	s.Drain()
	s.log.InfoContext(ctx, "draining", "timeout", s.opts.DrainTimeout.String())
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.DrainTimeout)
	defer cancel()
	err := srv.Shutdown(bounded)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.WarnContext(ctx, "requests were cut off: they did not finish within the drain timeout")
		err = srv.Close()
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return fmt.Errorf("shutting down: %w", err)
	}
	return nil
}

func (s *Server) longestCall() time.Duration {
	longest := s.opts.CallTimeout
	for _, timeout := range s.opts.CallTimeouts {
		longest = max(longest, timeout)
	}
	return longest
}
