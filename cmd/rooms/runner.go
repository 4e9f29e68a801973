package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentrooms/agentrooms/internal/runner"
	"github.com/agentrooms/agentrooms/internal/runner/agent"
	"github.com/agentrooms/agentrooms/internal/runner/bridge"
	"github.com/agentrooms/agentrooms/internal/supervise"
)

// guardCommand is the hidden command under which this binary looks after the command of another process.
const guardCommand = "guard"

// runnerFlags are the flags that rooms listen and rooms work share.
type runnerFlags struct {
	mcp, tokenFile, instance, state string
	logLevel, logFormat             string
	rooms                           []string
	timeout, grace                  time.Duration
	backoff                         runner.Backoff
}

func (f *runnerFlags) add(cmd *cobra.Command, timeout time.Duration) {
	flags := cmd.Flags()
	flags.StringVar(&f.mcp, "mcp", envOr("ROOMS_MCP_URL", fmt.Sprintf("http://127.0.0.1:%d/mcp", defaultPort)), "URL of the bridge's MCP endpoint")
	flags.StringVar(&f.tokenFile, "token-file", os.Getenv("ROOMS_TOKEN_FILE"), "file that holds the agent's token; it is read anew for each call")
	flags.StringVar(&f.instance, "instance-id", "", "name of this instance of the agent; without it, one made of host and folder")
	flags.StringVar(&f.state, "state-dir", "", "folder that keeps what must outlive this process (default $XDG_STATE_HOME/agentrooms)")
	flags.DurationVar(&f.timeout, "timeout", timeout, "how long the command may take before it is killed; 0 for no limit")
	flags.DurationVar(&f.grace, "grace", 30*time.Second, "how long the command may go on after SIGTERM before it is killed")
	flags.DurationVar(&f.backoff.First, "backoff", 2*time.Second, "how long to wait after a first failure; each further one doubles it")
	flags.DurationVar(&f.backoff.Max, "max-backoff", 5*time.Minute, "how long to wait after a failure at most")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json, on standard error")
}

func envOr(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// options checks the flags.
func (f *runnerFlags) options(cmd *cobra.Command, command []string) (agent.Options, error) {
	var none agent.Options
	log, err := f.logger(cmd.ErrOrStderr())
	if err != nil {
		return none, err
	}
	if err := f.check(command); err != nil {
		return none, err
	}
	host, err := os.Hostname()
	if err != nil {
		return none, fmt.Errorf("finding out the host's name: %w", err)
	}
	folder, err := os.Getwd()
	if err != nil {
		return none, fmt.Errorf("finding out the folder: %w", err)
	}
	tokenFile, err := filepath.Abs(f.tokenFile)
	if err != nil {
		return none, fmt.Errorf("finding the token: %w", err)
	}
	if f.instance == "" {
		f.instance = runner.Instance(cmd.Name(), host, folder)
	}
	if f.state == "" {
		if f.state, err = stateDir(); err != nil {
			return none, err
		}
	}
	guard, err := guardProgram()
	return agent.Options{
		Bridge: bridge.Options{URL: f.mcp, TokenFile: tokenFile, Session: f.instance, Host: host, Workspace: folder, Version: buildVersion()},
		Rooms:  f.rooms, Command: command, Guard: guard, Timeout: f.timeout, Grace: f.grace, Backoff: f.backoff,
		StateDir: f.state, Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(), Log: log,
	}, err
}

func (f *runnerFlags) check(command []string) error {
	switch {
	case f.tokenFile == "":
		return errors.New("--token-file must name the file that holds the agent's token")
	case f.timeout < 0 || f.grace < 0:
		return errors.New("--timeout and --grace may not be negative")
	case f.backoff.First <= 0 || f.backoff.Max < f.backoff.First:
		return errors.New("--backoff must be more than 0, and --max-backoff no less than it")
	case len(f.rooms) > agent.MaxRooms:
		return fmt.Errorf("--room may be given %d times at most", agent.MaxRooms)
	}
	// What else is wrong with the URL is said by who calls it.
	if at, err := url.Parse(f.mcp); err == nil && at.Host != "" && strings.Trim(at.Path, "/") == "" {
		at.Path = "/mcp"
		f.mcp = at.String()
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return fmt.Errorf("the command cannot be run: %w", err)
	}
	return nil
}

// logger makes the log of the runner. What the command writes goes beside it.
func (f *runnerFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level must be debug, info, warn or error, not %q", f.logLevel)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	default:
		return nil, fmt.Errorf("--log-format must be text or json, not %q", f.logFormat)
	}
}

func stateDir() (string, error) {
	if top := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(top) {
		return filepath.Join(top, "agentrooms"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder for the state, which --state-dir can name: %w", err)
	}
	return filepath.Join(home, ".local", "state", "agentrooms"), nil
}

// guardProgram gives how this binary is started as a guard, also when the file that it was started from has been replaced.
func guardProgram() ([]string, error) {
	if runtime.GOOS == "linux" {
		return []string{"/proc/self/exe", guardCommand, "--"}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return []string{self, guardCommand, "--"}, nil
}

// newGuardCommand looks after a command for rooms listen and rooms work.
func newGuardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    guardCommand + " -- COMMAND [ARGUMENTS]",
		Short:  "Run a command for rooms listen or rooms work",
		Args:   cobra.MinimumNArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := supervise.Guard(args)
			if err != nil {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "error:", err)
			}
			os.Exit(code)
			return nil
		},
	}
}
