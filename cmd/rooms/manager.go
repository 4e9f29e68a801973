package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/gctune"
	"github.com/agentrooms/agentrooms/internal/manager"
)

// managerFlags are the flags of rooms manager.
type managerFlags struct {
	manager.Options

	kubeconfig string
	logLevel   string
	blobs      blobFlags
}

func newManagerCommand() *cobra.Command {
	f := &managerFlags{}
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Run the controllers",
		Long: `Run the controllers of rooms, agents, tasks, consents, files and inboxes. With --leader-elect any number of replicas may run: one of
them acts, the others are warm.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.ErrOrStderr()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach the cluster; without it, as the pod's service account")
	flags.StringVar(&f.MetricsAddress, "metrics-bind-address", ":9090", "address that /metrics is served on; 0 turns it off")
	flags.StringVar(&f.ProbeAddress, "health-probe-bind-address", ":8081", "address that /healthz and /readyz are served on; 0 turns it off")
	flags.BoolVar(&f.LeaderElection, "leader-elect", false, "act only while leading: for several replicas")
	flags.StringVar(&f.LeaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the Lease of the leader election; without it, the pod's own")
	flags.DurationVar(&f.LeaseDuration, "leader-election-lease-duration", 15*time.Second,
		"how long the others wait before they take over from a leader that does not renew")
	flags.DurationVar(&f.RenewDeadline, "leader-election-renew-deadline", 10*time.Second,
		"how long a leader tries to renew before it gives up and ends")
	flags.DurationVar(&f.RetryPeriod, "leader-election-retry-period", 2*time.Second, "time between two tries")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.DurationVar(&f.Controllers.FileGrace, "file-grace", files.DefaultGrace, "how long deleted files can be brought back")
	f.blobs.add(flags)
	return cmd
}

// run acts until the context ends.
func (f *managerFlags) run(ctx context.Context, logs io.Writer) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return fmt.Errorf("--log-level must be debug, info, warn or error, not %q", f.logLevel)
	}
	log := slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: level}))
	klog.SetSlogLogger(log)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	cfg, err := f.config()
	if err != nil {
		return err
	}
	if f.Controllers.Blobs, err = f.blobs.open(ctx); err != nil {
		return err
	}
	if f.Controllers.Blobs != nil {
		f.Bucket = f.Controllers.Blobs.Bucket()
	}
	gctune.Headroom(heapHeadroom)
	mgr, err := manager.New(ctx, cfg, f.Options)
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

func (f *managerFlags) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding out how to reach the cluster: %w", err)
	}
	// The API server's priority and fairness is what holds back, not the client.
	cfg.QPS = -1
	cfg.UserAgent = manager.Name + "/" + buildVersion()
	return cfg, nil
}
