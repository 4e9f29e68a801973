// Package up runs all of Agent Rooms on this machine: a control plane (or a cluster that is there already), the manifests,
// the manager, the bridge, a demo and tokens for its agents. It is what `rooms up` does.
package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/agentrooms/agentrooms/internal/datadir"
	"github.com/agentrooms/agentrooms/internal/install"
	"github.com/agentrooms/agentrooms/internal/localplane"
	"github.com/agentrooms/agentrooms/internal/supervise"
)

const (
	// startTimeout bounds everything from a ready API to a ready system.
	startTimeout = 2 * time.Minute
	// maxBridges bounds how many replicas of the bridge may be asked for.
	maxBridges = 16
)

// Options says what to run.
type Options struct {
	// DataDir is the folder that keeps everything; empty means datadir.Default.
	DataDir string
	// Port is where the bridge serves MCP; 0 chooses a free port, and the same one the next time.
	Port int
	// Kubeconfig names a cluster to use; empty starts a control plane.
	Kubeconfig string
	// NoDemo leaves the demo out.
	NoDemo bool
	// RateLimitsOff lets agents call as often as they like.
	RateLimitsOff bool
	// Bridges is how many replicas of the bridge run; further ones get ports of their own.
	Bridges int
	// BlobURL is where the contents of files are; empty means a folder in DataDir. BlobPublicURL is where clients reach it,
	// where that is another place.
	BlobURL, BlobPublicURL string
	// BlobGrace is how long content that nothing refers to is kept, FileGrace how long deleted files can be brought back. Zero
	// stands for the usual.
	BlobGrace, FileGrace time.Duration
	// AuditLog is the file for the API server's audit log; empty means none.
	AuditLog string
	// Executable is the rooms binary that runs the manager and the bridge; empty means this process's own.
	Executable string
	// Progress is told what happens, in lines for a person.
	Progress io.Writer
	// Ready is called once, when everything is ready.
	Ready func(Report) error
}

func (o *Options) complete() (err error) {
	switch {
	case o.Bridges < 1 || o.Bridges > maxBridges:
		return fmt.Errorf("--bridges must be between 1 and %d", maxBridges)
	case o.Port < 0 || o.Port > 65535:
		return errors.New("--port must be between 0 and 65535")
	case o.AuditLog != "" && o.Kubeconfig != "":
		return errors.New("--audit-log cannot be used with --kubeconfig: it is the log of the control plane that this command starts")
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.DataDir == "" {
		o.DataDir = datadir.Default
	}
	if o.Kubeconfig != "" {
		if o.Kubeconfig, err = filepath.Abs(o.Kubeconfig); err != nil {
			return fmt.Errorf("finding the kubeconfig: %w", err)
		}
	}
	if o.Executable == "" {
		if o.Executable, err = os.Executable(); err != nil {
			return fmt.Errorf("finding the rooms binary: %w", err)
		}
	}
	return nil
}

// system is what runs.
type system struct {
	opts       Options
	dir        *datadir.Dir
	plane      *localplane.Plane // nil on a cluster that was there already
	cluster    *rest.Config
	kubeconfig string
	installer  *install.Installer
	supervisor *supervise.Supervisor
	tokens     *tokenKeeper

	manager managerProcess
	bridges []bridgeProcess
	// firstPort is that of the first bridge.
	firstPort int
}

// Run starts everything and keeps it running until ctx ends; then it stops all that it started, in order. A ctx that
// ends is no error.
func Run(ctx context.Context, opts Options) error {
	if err := opts.complete(); err != nil {
		return err
	}
	if err := datadir.CheckSpace(opts.DataDir, opts.space()); err != nil {
		return err
	}
	dir, err := datadir.Open(opts.DataDir)
	if err != nil {
		return err
	}
	s := &system{opts: opts, dir: dir}
	s.supervisor = supervise.New(s.say)
	err = s.runHeld(ctx)
	s.stop() //nolint:contextcheck // it is the end of ctx that leads here
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// runHeld runs for as long as the data folder is ours.
func (s *system) runHeld(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	guarded := make(chan struct{})
	go func() {
		defer close(guarded)
		if err := s.dir.AwaitLoss(ctx); err != nil {
			cancel(err)
		}
	}()
	err := s.run(ctx)
	cancel(nil)
	<-guarded
	if lost := context.Cause(ctx); !errors.Is(lost, context.Canceled) {
		return lost
	}
	return err
}

func (s *system) run(ctx context.Context) error {
	began := time.Now()
	if err := s.checkPort(ctx); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	report, err := s.start(ctx)
	if err != nil {
		return err
	}
	s.say("ready after %s", time.Since(began).Round(100*time.Millisecond))
	if s.opts.Ready != nil {
		if err := s.opts.Ready(report); err != nil {
			return fmt.Errorf("reporting that everything is ready: %w", err)
		}
	}
	s.keepTokens(ctx)
	return nil
}

// start goes from a ready API to a ready system.
func (s *system) start(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	s.say("applying the kinds, roles and policies")
	if err := s.installer.System(ctx); err != nil {
		return Report{}, err
	}
	if err := s.startProcesses(ctx); err != nil {
		return Report{}, err
	}
	// The demo needs the policies, and does not need the manager and the bridge before it is there.
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.awaitProcesses(groupCtx) })
	group.Go(func() error {
		if err := s.installer.AwaitPolicies(groupCtx); err != nil || s.opts.NoDemo {
			return err
		}
		return s.installer.Demo(groupCtx)
	})
	if err := group.Wait(); err != nil {
		return Report{}, err
	}
	agents, err := s.awaitPlates(ctx)
	if err != nil {
		return Report{}, err
	}
	s.tokens.sync(ctx, agents)
	return s.report(ctx, agents)
}

// stop ends the bridges, then the manager, then the control plane, and gives the folder back.
func (s *system) stop() {
	s.say("stopping")
	s.supervisor.Close()
	if s.plane != nil {
		s.plane.Stop()
	}
	kept := "everything is kept in " + s.dir.Path()
	if s.dir.Held() != nil {
		kept = "nothing is kept"
	}
	_ = s.dir.Close()
	s.say("stopped; %s", kept)
}

func (s *system) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.opts.Progress, format+"\n", args...)
}
