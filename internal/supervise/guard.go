package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	// exitNotFound and exitNotExecutable are what shells give for a command that cannot be started.
	exitNotFound      = 127
	exitNotExecutable = 126
	// exitSignal is added to the number of the signal that ended a command.
	exitSignal = 128
	// lifeline is the descriptor on which a guard sees that its parent is gone, report the one on which it says which process
	// group the command has.
	lifeline = 3
	report   = 4
	// guardDelay is how long a guard may take to kill its command.
	guardDelay = 2 * time.Second
	// outputDelay is how long the output of a command is read on after its end, when what it left behind holds it open.
	outputDelay = time.Second
)

// Command is a command to be run once, in a process group of its own that ends with it.
type Command struct {
	// Guard is the program that runs the command, with its first arguments: it must hand what follows them to Guard.
	Guard []string
	// Args are the command and its arguments.
	Args []string
	// Env is added to the environment of this process.
	Env []string
	// Stdin is what the command can read.
	Stdin io.Reader
	// Stdout and Stderr get what it writes. Files are handed to it as they are.
	Stdout, Stderr io.Writer
	// Patience is how long the group may take to end after SIGTERM once the context has ended, by the context's cause. With
	// zero it gets SIGKILL at once.
	Patience func(cause error) time.Duration
}

// Exit is how a command ended.
type Exit struct {
	// Code as shells give it: 128 and more for a signal, 127 or 126 when it could not be started.
	Code int
	// Cause is why its context had ended before it did, nil when it ended by itself.
	Cause error
}

// Run runs a command to its end, or until ctx ends. When it has ended, by itself or not, and also when this process dies by
// whatever cause, what is left of its process group is killed; only what left the group by itself gets away. The error says
// that the command could not be looked after, and not that it failed.
func (c Command) Run(ctx context.Context) (Exit, error) {
	g, err := c.start()
	if err != nil {
		return Exit{}, fmt.Errorf("starting %s: %w", c.Args[0], err)
	}
	ended := make(chan struct{})
	watching := make(chan error, 1)
	go func() { watching <- c.watch(ctx, g, ended) }()
	err = g.cmd.Wait()
	close(ended)
	exit := Exit{Cause: <-watching}
	g.bury()
	if g.cmd.ProcessState == nil {
		return exit, fmt.Errorf("waiting for %s: %w", c.Args[0], err)
	}
	exit.Code = exitCode(g.cmd.ProcessState)
	return exit, nil
}

// guarded is a guard that runs, with its command.
type guarded struct {
	cmd *exec.Cmd
	// hold is closed to let the guard kill the command.
	hold *os.File
	// group of the command, when the guard has told it.
	group chan int
}

func (c Command) start() (*guarded, error) {
	held, hold, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	told, tell, err := os.Pipe()
	if err != nil {
		_, _ = held.Close(), hold.Close()
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	cmd := exec.Command(c.Guard[0], append(slices.Clone(c.Guard[1:]), c.Args...)...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.ExtraFiles = []*os.File{held, tell}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputDelay
	err = cmd.Start()
	_, _ = held.Close(), tell.Close()
	if err != nil {
		_, _ = hold.Close(), told.Close()
		return nil, err //nolint:wrapcheck // the caller says what was to be started
	}
	g := &guarded{cmd: cmd, hold: hold, group: make(chan int, 1)}
	go func() {
		defer func() { _ = told.Close() }()
		raw, _ := io.ReadAll(io.LimitReader(told, 16))
		if pid, err := strconv.Atoi(string(raw)); err == nil && pid > 1 {
			g.group <- pid
		}
		close(g.group)
	}()
	return g, nil
}

// watch ends the command when ctx ends, and gives the cause. It gives nil when the command ends first.
func (c Command) watch(ctx context.Context, g *guarded, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if patience := c.patience(cause); patience > 0 {
		_ = g.cmd.Process.Signal(syscall.SIGTERM)
		if endsWithin(patience, ended) {
			return cause
		}
	}
	_ = g.hold.Close()
	if !endsWithin(guardDelay, ended) {
		_ = g.cmd.Process.Kill()
	}
	return cause
}

func endsWithin(d time.Duration, ended <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

func (c Command) patience(cause error) time.Duration {
	if c.Patience == nil {
		return 0
	}
	return c.Patience(cause)
}

// bury kills what a guard left behind that was killed itself.
func (g *guarded) bury() {
	_ = g.hold.Close()
	if group, ok := <-g.group; ok && g.cmd.ProcessState != nil && !g.cmd.ProcessState.Exited() {
		killGroup(group)
	}
}

// killGroup kills a process group. One that is gone is what was wished for.
func killGroup(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return state.ExitCode()
}

// Guard runs a command for the process that started this one through Command.Run, and gives the code to exit with. It stands
// between the two so that the command's whole process group is killed when that process dies, which the parent-death signal
// alone does not do: it reaches no grandchildren.
func Guard(args []string) (int, error) {
	if len(args) == 0 {
		return exitNotFound, errors.New("there is no command to run")
	}
	parent, tell := os.NewFile(lifeline, "lifeline"), os.NewFile(report, "report")
	if info, err := parent.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 || syscall.Getpgrp() != os.Getpid() {
		return exitNotExecutable, errors.New("this is started by rooms listen and rooms work, and not by hand")
	}
	syscall.CloseOnExec(lifeline)
	syscall.CloseOnExec(report)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	// The command dies with the thread that started it.
	runtime.LockOSThread()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = childAttr()
	if err := cmd.Start(); err != nil {
		return codeOf(err), fmt.Errorf("starting %s: %w", args[0], err)
	}
	group := cmd.Process.Pid
	_, _ = tell.WriteString(strconv.Itoa(group))
	_ = tell.Close()
	go func() {
		_, _ = io.Copy(io.Discard, parent)
		killGroup(group)
	}()
	go func() {
		for s := range signals {
			_ = syscall.Kill(-group, s.(syscall.Signal))
		}
	}()
	err := cmd.Wait()
	killGroup(group)
	if cmd.ProcessState == nil {
		return exitNotExecutable, fmt.Errorf("waiting for %s: %w", args[0], err)
	}
	return exitCode(cmd.ProcessState), nil
}

func codeOf(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return exitNotFound
	}
	return exitNotExecutable
}
