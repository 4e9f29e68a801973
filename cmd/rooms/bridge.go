package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/agentrooms/agentrooms/internal/gctune"
	"github.com/agentrooms/agentrooms/mcpbridge"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// heapHeadroom is by how much the heap of bridge and manager may grow between two cycles of the garbage collector.
const heapHeadroom = 64 << 20

// bridgeFlags are the flags of rooms bridge.
type bridgeFlags struct {
	kubeconfig           string
	listen               string
	metrics              string
	rateLimits           string
	logLevel             string
	audience             string
	publicURL            string
	allowedOrigins       []string
	authorizationServers []string
	drainTimeout         time.Duration
	blobs                blobFlags
	board                boardFlags
}

func newBridgeCommand() *cobra.Command {
	f := &bridgeFlags{}
	cmd := &cobra.Command{
		Use:   "bridge",
		Short: "Serve the rooms to agents over MCP, and to people as web pages",
		Long: `Serve the rooms to agents over MCP, at /mcp, and to people as web pages, at /. Agents call with a Kubernetes token of the
audience agentrooms, people sign in with one of the cluster's own. Any number of replicas may run: each can serve any request.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.ErrOrStderr()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach the cluster; without it, as the pod's service account")
	flags.StringVar(&f.listen, "listen", ":8080", "address that MCP is served on")
	flags.StringVar(&f.metrics, "metrics-bind-address", ":9090", "address that /metrics is served on; 0 turns it off")
	flags.StringVar(&f.rateLimits, "rate-limits", "on", "limit how often an agent may call, a replica: on, off, or calls a minute where they shall differ, as in send=120,read=600")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug (a line for each call), info, warn or error")
	flags.StringVar(&f.audience, "audience", mcpbridge.DefaultAudience, "audience that tokens must be made for")
	flags.StringVar(&f.publicURL, "public-url", "",
		"where clients reach the bridge, such as https://rooms.example.com; without it, whatever host they call")
	flags.StringSliceVar(&f.allowedOrigins, "allowed-origins", nil, "web pages that may call, such as https://board.example.com")
	flags.StringSliceVar(&f.authorizationServers, "authorization-servers", nil, "OAuth issuers that clients can get tokens from")
	flags.DurationVar(&f.drainTimeout, "drain-timeout", 0, "how long requests may take to finish after SIGTERM (default 50s)")
	f.blobs.add(flags)
	f.board.register(flags)
	return cmd
}

// run serves until the context ends, and then until the requests under way are answered.
func (f *bridgeFlags) run(ctx context.Context, logs io.Writer) error {
	log, err := f.logger(logs)
	if err != nil {
		return err
	}
	cfg, err := f.config()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", f.listen, err)
	}
	defer func() { _ = listener.Close() }()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gctune.Headroom(heapHeadroom)
	// What the tools rest on lives until the last request is answered.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server, err := f.server(running, cfg, log, registry)
	if err != nil {
		return err
	}
	closeMetrics, err := f.serveMetrics(ctx, server, log)
	if err != nil {
		return err
	}
	defer closeMetrics()
	return server.Run(ctx, listener)
}

func (f *bridgeFlags) server(ctx context.Context, cfg *rest.Config, log *slog.Logger, registry *prometheus.Registry) (*mcpbridge.Server, error) {
	reviews := rest.CopyConfig(cfg)
	reviews.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(reviews)
	if err != nil {
		return nil, fmt.Errorf("making the client for token reviews: %w", err)
	}
	if f.blobs.publicURL == "" && f.publicURL != "" && strings.HasPrefix(f.blobs.url, "file:") {
		f.blobs.publicURL = strings.TrimSuffix(f.publicURL, "/") + "/transfer"
	}
	store, err := f.blobs.open(ctx)
	if err != nil {
		return nil, err
	}
	set, err := newRoomsToolset(ctx, cfg, log, registry, store)
	if err != nil {
		return nil, fmt.Errorf("making the rooms toolset: %w", err)
	}
	pages, err := f.board.serve(cfg, set.View(), store, f.publicURL, log, registry)
	if err != nil {
		return nil, err
	}
	opts := mcpbridge.Options{
		Board:         pages,
		Toolsets:      []toolset.Toolset{set},
		Authenticator: &mcpbridge.TokenReviewer{Reviews: client.AuthenticationV1().TokenReviews(), Audience: f.audience},
		Audience:      f.audience,
		Logger:        log, Registry: registry, Version: buildVersion(),
		PublicURL: f.publicURL, AllowedOrigins: f.allowedOrigins, AuthorizationServers: f.authorizationServers,
		// A long poll answers after 45 s at most.
		// What was uploaded is read once before it counts.
		CallTimeouts: map[string]time.Duration{"wait_for_mentions": 50 * time.Second, "complete_file_upload": 50 * time.Second},
		DrainTimeout: f.drainTimeout,
	}
	if store != nil {
		opts.Transfers = store.Handler()
	}
	if opts.RateLimits, err = mcpbridge.ParseRateLimits(f.rateLimits); err != nil {
		return nil, fmt.Errorf("--rate-limits: %w", err)
	}
	server, err := mcpbridge.New(opts)
	if err != nil {
		return nil, fmt.Errorf("making the bridge: %w", err)
	}
	return server, nil
}

// logger makes the log that everything in the process writes to: JSON, a line for each event.
func (f *bridgeFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level must be debug, info, warn or error, not %q", f.logLevel)
	}
	log := slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	klog.SetSlogLogger(log)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	return log, nil
}

func (f *bridgeFlags) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding out how to reach the cluster: %w", err)
	}
	// The API server's priority and fairness is what holds back, not the client.
	cfg.QPS = -1
	cfg.UserAgent = "agentrooms-bridge/" + buildVersion()
	return cfg, nil
}

// serveMetrics serves /metrics beside MCP, on an address of its own.
func (f *bridgeFlags) serveMetrics(ctx context.Context, server *mcpbridge.Server, log *slog.Logger) (closeIt func(), err error) {
	if f.metrics == "" || f.metrics == "0" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.metrics)
	if err != nil {
		return nil, fmt.Errorf("listening on %s for metrics: %w", f.metrics, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", server.MetricsHandler())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	go func() {
		if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving metrics ended", "error", err.Error())
		}
	}()
	log.Info("serving metrics", "address", listener.Addr().String())
	return func() { _ = srv.Close() }, nil
}
