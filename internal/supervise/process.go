package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// firstDelay is the wait before the first restart; each further one doubles it up to maxDelay.
	firstDelay = 100 * time.Millisecond
	maxDelay   = 5 * time.Second
	// steadyAfter is how long a process must have run for its next death to count as a first one.
	steadyAfter = 10 * time.Second
	// defaultGrace is how long a process may take to end after SIGTERM.
	defaultGrace = 10 * time.Second
)

// Spec describes one child process.
type Spec struct {
	// Name is how the process is called in messages and by its caller.
	Name string
	// Path is the program and Args are its arguments, without the program itself.
	Path string
	Args []string
	// Log is the file that gets what the process writes.
	Log string
	// Grace is how long it may take to end after SIGTERM before it gets SIGKILL; zero means 10 s.
	Grace time.Duration
}

// Process is a child process that is started again when it dies.
type Process struct {
	spec    Spec
	spawner *spawner
	say     func(format string, args ...any)
	log     *logFile
	stop    chan struct{}
	done    chan struct{}

	mu       sync.Mutex
	cmd      *exec.Cmd
	stopping bool
	restarts int
}

// Name is the process's name.
func (p *Process) Name() string { return p.spec.Name }

// Log is the path of the process's log file.
func (p *Process) Log() string { return p.spec.Log }

// PID is the process's present id.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Restarts says how often the process has been started again.
func (p *Process) Restarts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// Kill sends SIGKILL. The process is started again like after any other death.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.spec.Name, err)
	}
	return nil
}

// Stop ends the process for good: SIGTERM, and SIGKILL if that takes too long. It returns when the process is gone.
func (p *Process) Stop() {
	p.mu.Lock()
	if !p.stopping {
		p.stopping = true
		close(p.stop)
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	p.mu.Unlock()
	grace := time.NewTimer(p.spec.Grace)
	defer grace.Stop()
	select {
	case <-p.done:
	case <-grace.C:
		_ = p.Kill()
		<-p.done
	}
}

// launch starts the program once; after Stop it does nothing and returns false.
func (p *Process) launch() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return false, nil
	}
	cmd := exec.Command(p.spec.Path, p.spec.Args...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.SysProcAttr = childAttr()
	cmd.WaitDelay = time.Second
	if err := p.spawner.start(cmd); err != nil {
		return true, fmt.Errorf("starting %s: %w", p.spec.Name, err)
	}
	p.cmd = cmd
	return true, nil
}

// supervise waits for the process to die and starts it again, until Stop.
func (p *Process) supervise() {
	defer close(p.done)
	defer func() { _ = p.log.Close() }()
	delay := firstDelay
	for {
		started := time.Now()
		err := p.cmd.Wait()
		if time.Since(started) > steadyAfter {
			delay = firstDelay
		}
		if !p.relaunch(err, &delay) {
			return
		}
	}
}

// relaunch waits out the back-off and starts the process again; it says false when the process is to stay down.
func (p *Process) relaunch(cause error, delay *time.Duration) bool {
	for {
		select {
		case <-p.stop:
			return false
		default:
		}
		p.say("%s ended (%v), starting it again in %s; its log is %s", p.spec.Name, cause, *delay, p.spec.Log)
		timer := time.NewTimer(*delay)
		select {
		case <-p.stop:
			timer.Stop()
			return false
		case <-timer.C:
		}
		*delay = min(2**delay, maxDelay)
		running, err := p.launch()
		if !running {
			return false
		}
		if err == nil {
			p.mu.Lock()
			p.restarts++
			p.mu.Unlock()
			return true
		}
		cause = err
	}
}
