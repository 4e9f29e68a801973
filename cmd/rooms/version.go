package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/agentrooms/agentrooms/internal/controlplane"
)

// version is set by the linker for a release.
var version = ""

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, and those of the control plane that this binary builds",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "rooms %s (%s %s/%s), control plane: Kubernetes %s, etcd %s\n",
				buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
				controlplane.KubernetesVersion(), controlplane.EtcdVersion())
			return err
		},
	}
}

// buildVersion is the release's version, else what the toolchain knows, else "dev".
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
