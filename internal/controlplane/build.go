package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agentrooms/agentrooms/internal/filelock"
)

const (
	// tempPrefix marks what a builder that died may leave behind; the next builder removes it.
	tempPrefix = "tmp-"
	// buildTimeout bounds one program's build: a cold one takes minutes on two cores.
	buildTimeout = time.Hour
	// progressInterval is how often a running build says that it is still running.
	progressInterval = 15 * time.Second
	// maxBuildOutput bounds how much of a failed build's output an error repeats.
	maxBuildOutput = 4 << 10
)

// buildFunc builds one program from the module in dir to the path output.
type buildFunc func(ctx context.Context, dir, name, output string) error

// buildMissing fills the cache with the programs named and returns the folder. Of several builders one builds, the
// others wait for it.
func buildMissing(ctx context.Context, opts Options, names []string) (string, error) {
	built := opts.builtDir()
	if err := os.MkdirAll(built, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	lock, err := filelock.Acquire(ctx, filepath.Join(opts.CacheDir, "build.lock"), func(held *filelock.HeldError) {
		_, _ = fmt.Fprintf(opts.Progress, "waiting for process %d, which builds the control plane\n", held.PID)
	})
	if err != nil {
		return "", fmt.Errorf("locking the control plane's cache: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return isExecutable(filepath.Join(built, name))
	})
	if len(names) == 0 {
		return built, nil
	}
	return built, buildLocked(ctx, opts, names)
}

// buildLocked builds the programs one after another; each is put in place as soon as it is whole.
func buildLocked(ctx context.Context, opts Options, names []string) error {
	removeStale(opts.CacheDir)
	temp, err := makeTemp(opts.CacheDir)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if err := writeModule(temp); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(opts.Progress, "building the control plane (Kubernetes %s, etcd %s) once, about 10 minutes on two cores\n",
		KubernetesVersion(), EtcdVersion())
	for _, name := range names {
		place := slices.Index(Names, name) + 1
		done := reportProgress(opts.Progress, fmt.Sprintf("building %s (%d of %d)", name, place, len(Names)))
		output := filepath.Join(temp, name)
		err := opts.build(ctx, temp, name, output)
		done(err)
		if err != nil {
			return fmt.Errorf("building %s: %w", name, err)
		}
		if err := os.Rename(output, filepath.Join(opts.builtDir(), name)); err != nil {
			return fmt.Errorf("putting %s in place: %w", name, err)
		}
	}
	return nil
}

// removeStale removes what a builder that was killed left. Only the holder of the lock may call it.
func removeStale(cacheDir string) {
	stale, _ := filepath.Glob(filepath.Join(cacheDir, tempPrefix+"*"))
	for _, dir := range stale {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > buildTimeout {
			_ = os.RemoveAll(dir)
		}
	}
}

// goBuild builds with the Go toolchain. The flags are the same everywhere, so that the toolchain's own cache serves all.
func goBuild(ctx context.Context, dir, name, output string) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return errNoGo
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, goTool, "build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags", linkerFlags(name), "-o", output, packages[name])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=", "GOARCH=")
	// The compilers that go starts belong to its group: ending the group leaves none of them running.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, tail(out))
	}
	return nil
}

func tail(out []byte) string {
	return strings.TrimSpace(string(out[max(0, len(out)-maxBuildOutput):]))
}

// reportProgress says that something began, every so often that it goes on, and when the returned function is called
// how it ended.
func reportProgress(w io.Writer, what string) func(error) {
	start := time.Now()
	_, _ = fmt.Fprintf(w, "%s\n", what)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				_, _ = fmt.Fprintf(w, "%s: %s so far\n", what, time.Since(start).Round(time.Second))
			}
		}
	}()
	return func(err error) {
		close(stop)
		<-stopped
		outcome := "done"
		if err != nil {
			outcome = "failed"
		}
		_, _ = fmt.Fprintf(w, "%s: %s after %s\n", what, outcome, time.Since(start).Round(time.Second))
	}
}
