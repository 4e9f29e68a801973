package runner

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/test/harness"
)

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

// process is a runner that can be killed and started again.
type process struct {
	t    *testing.T
	args []string
	env  []string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// runner prepares `rooms listen` or `rooms work` for the agent hand, at a replica.
func (s *scene) runner(command string, replica int, flags ...string) *process {
	s.t.Helper()
	token := filepath.Join(s.dir, "token")
	if _, err := os.Stat(token); err != nil {
		s.writeToken(s.Tokens["hand"])
	}
	args := append([]string{
		command, "--mcp", plane.Replicas[replica], "--token-file", token, "--state-dir", filepath.Join(s.dir, "state"),
		"--backoff", "100ms", "--max-backoff", "1s", "--log-level", "debug",
	}, flags...)
	p := &process{
		t: s.t, args: append(args, "--", os.Args[0]), env: append(os.Environ(), commandDir+"="+s.dir),
		log: filepath.Join(s.dir, command+strconv.Itoa(len(flags))+".log"),
	}
	s.t.Cleanup(func() {
		p.kill()
		if s.t.Failed() {
			raw, _ := os.ReadFile(p.log)
			s.t.Logf("the log of rooms %s:\n%s", command, raw[max(0, len(raw)-6000):])
		}
	})
	return p
}

// listen starts `rooms listen`, work starts `rooms work`, both at the steady replica.
func (s *scene) listen(flags ...string) *process {
	s.t.Helper()
	return s.runner("listen", steady, flags...).start()
}

func (s *scene) work(flags ...string) *process {
	s.t.Helper()
	return s.runner("work", steady, append([]string{"--room", s.room}, flags...)...).start()
}

// writeToken puts a token where the runner reads it, whole or not at all.
func (s *scene) writeToken(token string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "token")
	if err := os.WriteFile(path+".new", []byte(token+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		s.t.Fatal(err)
	}
}

func (p *process) start() *process {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.Command(harness.Binary(p.t), p.args...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = p.env, log, log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.done = make(chan struct{})
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

// kill kills the runner as the kernel does, and waits until it is gone.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop tells the runner to stop and gives its exit status.
func (p *process) stop(limit time.Duration) int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.wait(limit)
}

func (p *process) wait(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		p.t.Fatalf("the runner did not end in %s", limit)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) text() string {
	raw, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(raw)
}
