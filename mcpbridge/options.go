package mcpbridge

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// Options configure a Server. What is zero takes the default that the field states.
type Options struct {
	// Toolsets to serve, at least one. The first is served at /mcp too, each at /mcp/<name>.
	Toolsets []toolset.Toolset
	// Board makes the pages for people, which are served at / and below. None when nil.
	Board func(Bounds) (http.Handler, error)
	// MaxPageStreams bounds the streams of pages that are open at once. 2048.
	MaxPageStreams int
	// MaxPageStreamsPerPerson bounds those of a person. 64.
	MaxPageStreamsPerPerson int
	// Authenticator says whose a bearer token is. Required. The server caches its answers.
	Authenticator Authenticator
	// Audience of the tokens, for messages to callers. "agentrooms".
	Audience string
	// RateLimits bound the calls of an agent. Nil stands for DefaultRateLimits, an empty map for no limits.
	RateLimits RateLimits
	// Clock that decisions are made by. The real one.
	Clock clock.WithTicker
	// Logger for all that happens. Nothing is logged.
	Logger *slog.Logger
	// Registry for the metrics. One of its own.
	Registry *prometheus.Registry
	// Version of the server, as clients get to see it.
	Version string

	// PublicURL is where clients reach the server, without the path: https://rooms.example.com. It goes into the metadata
	// by which clients discover how to authenticate. What the request says.
	PublicURL string
	// AuthorizationServers are the OAuth issuers of tokens for this server. None.
	AuthorizationServers []string
	// AllowedOrigins are the origins of web pages that may call, beside the server's own: https://board.example.com.
	AllowedOrigins []string

	// Transfers serves the bytes of files at /transfer/, by URLs that are signed. Nil when they go elsewhere.
	Transfers http.Handler
	// MaxBodyBytes bounds the body of a request. 2 MiB: the largest file that a call takes may be written with six bytes for one.
	MaxBodyBytes int64
	// CallTimeout bounds a tool call. 30 s.
	CallTimeout time.Duration
	// CallTimeouts bound the calls of single tools, such as long polls.
	CallTimeouts map[string]time.Duration
	// MaxConcurrent bounds the requests of an agent that are under way at once. 64.
	MaxConcurrent int
	// MaxStreams bounds the streams that are open at once. 4096.
	MaxStreams int
	// MaxStreamsPerAgent bounds those of an agent. 16.
	MaxStreamsPerAgent int
	// KeepAlive is how often a comment is sent on a stream that is silent. 20 s.
	KeepAlive time.Duration
	// Recheck is how often a stream's token is checked again. 1 minute.
	Recheck time.Duration
	// MaxStreamAge is how old a stream gets before it ends, so that load spreads over replicas. 30 minutes.
	MaxStreamAge time.Duration
	// Settle is the shortest time between two announcements on a stream: what changes in between goes out as one. 100 ms.
	Settle time.Duration
	// DrainTimeout bounds how long requests under way may take to finish once the server is told to stop. 50 s.
	DrainTimeout time.Duration
}

func orDefault[T comparable](value *T, def T) {
	var zero T
	if *value == zero {
		*value = def
	}
}

// complete checks the options and puts the defaults in.
func (o *Options) complete() error {
	switch {
	case len(o.Toolsets) == 0:
		return errors.New("the bridge needs a toolset")
	case o.Authenticator == nil:
		return errors.New("the bridge needs an authenticator")
	}
	if o.RateLimits == nil {
		o.RateLimits = DefaultRateLimits()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	orDefault(&o.Version, "dev")
	orDefault(&o.Audience, DefaultAudience)
	orDefault(&o.MaxBodyBytes, 2<<20)
	orDefault(&o.CallTimeout, 30*time.Second)
	orDefault(&o.MaxConcurrent, 64)
	orDefault(&o.MaxStreams, 4096)
	orDefault(&o.MaxStreamsPerAgent, 16)
	orDefault(&o.MaxPageStreams, 2048)
	orDefault(&o.MaxPageStreamsPerPerson, 64)
	orDefault(&o.KeepAlive, 20*time.Second)
	orDefault(&o.Recheck, time.Minute)
	orDefault(&o.MaxStreamAge, 30*time.Minute)
	orDefault(&o.Settle, 100*time.Millisecond)
	orDefault(&o.DrainTimeout, 50*time.Second)
	return o.completeURLs()
}

func (o *Options) completeURLs() error {
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("public URL %q: it must be of the form https://rooms.example.com", o.PublicURL)
		}
		o.PublicURL = strings.TrimSuffix(strings.TrimRight(o.PublicURL, "/"), "/mcp")
	}
	for i, origin := range o.AllowedOrigins {
		canonical, ok := canonicalOrigin(origin)
		if !ok {
			return fmt.Errorf("allowed origin %q: it must be of the form https://board.example.com", origin)
		}
		o.AllowedOrigins[i] = canonical
	}
	return nil
}
