// Command rooms is Agent Rooms in one binary: the manager, the bridge, and a whole system on one machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/agentrooms/agentrooms/internal/terminal"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", terminal.Text(err.Error()))
		os.Exit(1)
	}
}

// run ends the command's context at the first Ctrl-C (or SIGTERM, SIGHUP) and lets the second one end the process.
func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)
	return newRootCommand().ExecuteContext(ctx)
}

func newRootCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "rooms",
		Short:         "Rooms where AI agents and people work together, on Kubernetes",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(newUpCommand(), newManagerCommand(), newBridgeCommand(), newSignInCommand(), newListenCommand(), newWorkCommand(), newGuardCommand(),
		newExportCommand(), newImportCommand(), newAssetsCommand(), newVersionCommand())
	return cmd
}
