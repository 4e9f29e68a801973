package supervise

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner starts commands from one thread that lives as long as they do. See the package comment for why.
type spawner struct {
	requests chan request
	close    sync.Once
}

type request struct {
	cmd  *exec.Cmd
	done chan<- error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan request)}
	go s.run()
	return s
}

// run never unlocks its thread: the thread ends with the goroutine, and that is the moment the kernel looks at.
func (s *spawner) run() {
	runtime.LockOSThread()
	for req := range s.requests {
		req.done <- req.cmd.Start()
	}
}

// start starts the command; it must not be called after stop.
func (s *spawner) start(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	s.requests <- request{cmd: cmd, done: done}
	return <-done
}

// stop ends the thread. What still runs of its children gets the parent-death signal.
func (s *spawner) stop() {
	s.close.Do(func() { close(s.requests) })
}
