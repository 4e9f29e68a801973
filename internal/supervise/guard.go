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
	"syscall"
	"time"
)

const (
	// exitNotFound and exitNotExecutable are what shells give for a command that cannot be started.
	exitNotFound      = 127
	exitNotExecutable = 126
	// exitSignal is added to the number of the signal that ended a command.
	exitSignal = 128
	// lifeline is the descriptor on which a guard sees that its parent is gone.
	lifeline = 3
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

// Run runs a command to its end, or until ctx ends. Then, and also when this process dies by whatever cause, the whole
// process group of the command is killed; only what left the group by itself gets away. The error says that the command
// could not be looked after, and not that it failed.
func (c Command) Run(ctx context.Context) (Exit, error) {
	held, hold, err := os.Pipe()
	if err != nil {
		return Exit{}, fmt.Errorf("making a pipe: %w", err)
	}
	defer func() { _ = hold.Close() }()
	cmd := exec.Command(c.Guard[0], append(slices.Clone(c.Guard[1:]), c.Args...)...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.ExtraFiles = []*os.File{held}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputDelay
	err = cmd.Start()
	_ = held.Close()
	if err != nil {
		return Exit{}, fmt.Errorf("starting %s: %w", c.Args[0], err)
	}
	ended := make(chan struct{})
	watching := make(chan error, 1)
	go func() { watching <- c.watch(ctx, cmd.Process.Pid, ended) }()
	err = cmd.Wait()
	close(ended)
	exit := Exit{Cause: <-watching}
	signalGroup(cmd.Process.Pid, syscall.SIGKILL)
	if cmd.ProcessState == nil {
		return exit, fmt.Errorf("waiting for %s: %w", c.Args[0], err)
	}
	exit.Code = exitCode(cmd.ProcessState)
	return exit, nil
}

// watch ends the group when ctx ends, and gives the cause. It gives nil when the command ends first.
func (c Command) watch(ctx context.Context, group int, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if patience := c.patience(cause); patience > 0 {
		signalGroup(group, syscall.SIGTERM)
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-ended:
			return cause
		case <-timer.C:
		}
	}
	signalGroup(group, syscall.SIGKILL)
	return cause
}

func (c Command) patience(cause error) time.Duration {
	if c.Patience == nil {
		return 0
	}
	return c.Patience(cause)
}

// signalGroup sends a signal to a process group. One that is gone is what was wished for.
func signalGroup(group int, s syscall.Signal) { _ = syscall.Kill(-group, s) }

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
	if syscall.Getpgrp() != os.Getpid() {
		return exitNotExecutable, errors.New("this is started by rooms listen and rooms work, and not by hand")
	}
	// The group is told to end as a whole. The guard stays until the command has ended.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	syscall.CloseOnExec(lifeline)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(lifeline, "lifeline"))
		_ = syscall.Kill(0, syscall.SIGKILL)
	}()
	// The command dies with the thread that started it.
	runtime.LockOSThread()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = guardedAttr()
	if err := cmd.Start(); err != nil {
		return codeOf(err), fmt.Errorf("starting %s: %w", args[0], err)
	}
	if err := cmd.Wait(); cmd.ProcessState == nil {
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
