package supervise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// probeInterval is how often AwaitReady asks.
	probeInterval = 50 * time.Millisecond
	// maxStartDeaths is how often a process may die before it has been ready once.
	maxStartDeaths = 3
	// tailLines is how much of a log an error repeats.
	tailLines = 12
)

// Supervisor owns a set of child processes.
type Supervisor struct {
	say     func(format string, args ...any)
	spawner *spawner

	mu        sync.Mutex
	processes []*Process
	closed    bool
}

// New makes a supervisor. It tells say, if there is one, when it starts a process again.
func New(say func(format string, args ...any)) *Supervisor {
	if say == nil {
		say = func(string, ...any) {}
	}
	return &Supervisor{say: say, spawner: newSpawner()}
}

// Start starts a process and keeps it running until it or the supervisor is stopped.
func (s *Supervisor) Start(spec Spec) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("starting %s: the supervisor is closed", spec.Name)
	}
	if spec.Grace == 0 {
		spec.Grace = defaultGrace
	}
	log, err := openLog(spec.Log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	p := &Process{spec: spec, spawner: s.spawner, say: s.say, log: log, stop: make(chan struct{}), done: make(chan struct{})}
	if _, err := p.launch(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	s.processes = append(s.processes, p)
	go p.supervise()
	return p, nil
}

// Close stops every process, the last started first, and returns when all are gone.
func (s *Supervisor) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	for _, p := range slices.Backward(s.processes) {
		p.Stop()
	}
	s.spawner.stop()
}

// AwaitReady asks until the probe succeeds. It gives up when ctx ends, or earlier when the process keeps dying, with
// the end of the process's log in the error.
func AwaitReady(ctx context.Context, p *Process, probe func(context.Context) error) error {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	deaths := p.Restarts() + maxStartDeaths
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		if p.Restarts() >= deaths {
			return fmt.Errorf("%s keeps dying; the end of %s:\n%s", p.Name(), p.Log(), Tail(p.Log(), tailLines))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be ready: %w (last: %w); the end of %s:\n%s",
				p.Name(), context.Cause(ctx), err, p.Log(), Tail(p.Log(), tailLines))
		case <-ticker.C:
		}
	}
}
