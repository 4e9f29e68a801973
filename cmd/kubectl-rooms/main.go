// Command kubectl-rooms is the kubectl plugin: kubectl rooms. Under the name kubectl_complete-rooms it tells kubectl how to
// complete what is typed.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agentrooms/agentrooms/internal/plugin"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(run())
}

// run ends the command's context at the first Ctrl-C (or SIGTERM, SIGHUP) and lets the second one end the process.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)
	args := os.Args[1:]
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl_complete-rooms") {
		args = append([]string{"__complete"}, args...)
	}
	return plugin.Main(ctx, version, args, plugin.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
