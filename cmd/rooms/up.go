package main

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/agentrooms/agentrooms/internal/datadir"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/up"
)

// defaultPort is where the bridge serves MCP unless another port is asked for.
const defaultPort = 7600

func newUpCommand() *cobra.Command {
	opts := up.Options{}
	limits, asJSON := "on", false
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all of Agent Rooms on this machine until Ctrl-C",
		Long: `Run all of Agent Rooms on this machine until Ctrl-C: a Kubernetes API (unless --kubeconfig names a cluster), the manager,
the bridge that agents reach over MCP, and a demo to try it with. What it keeps is in one folder; the next start carries on.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limits != "on" && limits != "off" {
				return fmt.Errorf("--rate-limits must be on or off, not %q", limits)
			}
			// What the libraries have to say about requests to the cluster is nothing for a person at a terminal.
			log.SetLogger(logr.Discard())
			opts.RateLimitsOff = limits == "off"
			opts.Progress = cmd.ErrOrStderr()
			opts.Ready = func(report up.Report) error {
				if asJSON {
					return report.WriteJSON(cmd.OutOrStdout())
				}
				return report.WriteText(cmd.OutOrStdout())
			}
			return up.Run(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.DataDir, "data-dir", datadir.Default, "folder that keeps everything")
	flags.IntVar(&opts.Port, "port", defaultPort, "port of the MCP endpoint; 0 chooses a free one")
	flags.StringVar(&opts.Kubeconfig, "kubeconfig", "", "use this cluster instead of starting a control plane")
	flags.BoolVar(&opts.NoDemo, "no-demo", false, "leave the demo out")
	flags.BoolVar(&asJSON, "json", false, "print one line of JSON when everything is ready")
	flags.StringVar(&limits, "rate-limits", limits, "limit how often an agent may call: on or off")
	flags.IntVar(&opts.Bridges, "bridges", 1, "how many replicas of the bridge to run")
	flags.StringVar(&opts.AuditLog, "audit-log", "", "write the API server's audit log to this file")
	blob := blobFlags{}
	blob.add(flags)
	flags.DurationVar(&opts.FileGrace, "file-grace", files.DefaultGrace, "how long deleted files can be brought back")
	cmd.PreRun = func(*cobra.Command, []string) {
		opts.BlobURL, opts.BlobPublicURL, opts.BlobGrace = blob.url, blob.publicURL, blob.grace
	}
	return cmd
}
