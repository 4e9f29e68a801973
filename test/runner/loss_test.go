package runner

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/test/harness"
)

// shakyBridge gives the process id of the replica that may be hurt.
func shakyBridge(t *testing.T) int {
	t.Helper()
	var pid int
	harness.Await(t, "the shaky replica to run", func() bool {
		pid = plane.Children(t)["bridge-"+strconv.Itoa(shaky)]
		return pid != 0 && ready(plane.Replicas[shaky])
	})
	return pid
}

func ready(url string) bool {
	r, err := http.Get(strings.TrimSuffix(url, "/mcp") + "/readyz")
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}

func signalTo(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// TestTheBridgeMayGoAway is about one replica, in turns. The other tests go on at the other one.
func TestTheBridgeMayGoAway(t *testing.T) {
	t.Parallel()
	t.Run("and a listener loses nothing", listenerLosesNothing)
	t.Run("and what is done is not done again", doneIsNotDoneAgain)
	t.Run("and a worker stops before another can begin", workerStopsInTime)
}

func listenerLosesNothing(t *testing.T) {
	s := newScene(t)
	s.runner("listen", shaky).start()
	before := s.say(s.room, script{Takes: 500 * time.Millisecond})
	s.awaitRun(before, 1)
	signalTo(t, shakyBridge(t), syscall.SIGKILL)
	s.awaitNonePending(20 * time.Second)
	after := s.say(s.room, script{})
	s.awaitNonePending(20 * time.Second)
	for _, id := range []string{before, after} {
		if runs := s.journal(ended, id); len(runs) != 1 {
			t.Errorf("%s was handled %d times, want once", id, len(runs))
		}
	}
}

// doneIsNotDoneAgain lets the command finish while the board cannot be told, and kills the worker then.
func doneIsNotDoneAgain(t *testing.T) {
	s := newScene(t)
	p := s.runner("work", shaky, "--room", s.room).start()
	id := s.give(script{Takes: time.Second, Say: "once"})
	s.awaitRun(id, 1)
	bridge := shakyBridge(t)
	signalTo(t, bridge, syscall.SIGSTOP)
	t.Cleanup(func() { _ = syscall.Kill(bridge, syscall.SIGCONT) })
	harness.Await(t, "the command to end", func() bool { return len(s.journal(ended, id)) == 1 })
	harness.Await(t, "the worker to try to tell", func() bool { return strings.Contains(p.text(), "the command ended") })
	wait(t, 300*time.Millisecond)
	p.kill()
	signalTo(t, bridge, syscall.SIGCONT)
	p.start()
	task := s.awaitState(id, 20*time.Second, v1alpha1.TaskDone)
	if runs := s.journal(began, id); len(runs) != 1 || task.Status.Record.Summary != "once" || task.Status.Record.Late {
		t.Errorf("%d runs, record %+v; want one run, and its words", len(runs), task.Status.Record)
	}
}

// workerStopsInTime cuts a worker off from the bridge until its lease has run out, and lets another take over.
func workerStopsInTime(t *testing.T) {
	s := newScene(t)
	s.runner("work", shaky, "--room", s.room, "--instance-id", "cut-off").start()
	id := s.give(script{Hang: 1, Deaf: true})
	run := s.awaitRun(id, 1)
	bridge := shakyBridge(t)
	signalTo(t, bridge, syscall.SIGSTOP)
	t.Cleanup(func() { _ = syscall.Kill(bridge, syscall.SIGCONT) })
	s.runner("work", steady, "--room", s.room, "--instance-id", "other").start()
	s.awaitState(id, (leaseSeconds+10)*time.Second, v1alpha1.TaskDone)
	runs := s.journal(began, id)
	if len(runs) != 2 || runs[1].Holder != "other" || runs[1].Fence <= runs[0].Fence {
		t.Fatalf("the runs are %+v, want one of each worker, the second with a higher fence", runs)
	}
	dead(t, run)
	s.noOverlap()
	signalTo(t, bridge, syscall.SIGCONT)
	next := s.give(script{})
	s.awaitState(next, 20*time.Second, v1alpha1.TaskDone)
	if task := s.stored(id); times(task, v1alpha1.TaskDone) != 1 || len(task.Status.Contested) > 0 {
		t.Errorf("the task has the history %+v and contested records %+v", task.Status.History, task.Status.Contested)
	}
}

func TestARefusedTokenIsReplaced(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.writeToken("no.good.token")
	p := s.listen()
	w := s.work()
	harness.Await(t, "the refusal to be told", func() bool {
		return strings.Contains(p.text(), "IDENTITY_REQUIRED") && strings.Contains(w.text(), "IDENTITY_REQUIRED")
	})
	mention, task := s.say(s.room, script{}), s.give(script{})
	s.writeToken(s.Tokens["hand"])
	s.awaitNonePending(30 * time.Second)
	s.awaitState(task, 30*time.Second, v1alpha1.TaskDone)

	// Once more while a command runs: its acknowledgement waits for a good token.
	second := s.say(s.room, script{Takes: 500 * time.Millisecond})
	s.awaitRun(second, 1)
	s.writeToken("no.good.token.either")
	harness.Await(t, "the second command to end", func() bool { return len(s.journal(ended, second)) == 1 })
	third := s.say(s.room, script{})
	harness.Await(t, "the acknowledgement to be refused", func() bool { return strings.Contains(p.text(), "acknowledging a mention failed") })
	if s.pending() < 2 {
		t.Errorf("%d mentions are pending, want the second and the third: they cannot be acknowledged yet", s.pending())
	}
	s.writeToken(s.Tokens["hand"])
	s.awaitNonePending(30 * time.Second)
	for _, id := range []string{mention, second, third} {
		if runs := s.journal(ended, id); len(runs) != 1 {
			t.Errorf("%s was handled %d times, want once", id, len(runs))
		}
	}
}

// calls counts the calls of tools that a replica has answered.
func calls(t *testing.T, replica int) (total int) {
	t.Helper()
	r, err := http.Get(plane.MetricsReplicas[replica])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(raw)) {
		if strings.HasPrefix(l, "agentrooms_tool_calls_total{") {
			var n float64
			if _, err := fmt.Sscanf(l[strings.LastIndexByte(l, ' ')+1:], "%g", &n); err != nil {
				t.Fatal(err)
			}
			total += int(n)
		}
	}
	return total
}

// TestNobodyCallsWhenNothingHappens runs before those that run side by side.
func TestNobodyCallsWhenNothingHappens(t *testing.T) {
	s := newScene(t)
	s.listen()
	s.work()
	mention, task := s.say(s.room, script{}), s.give(script{})
	s.awaitNonePending(20 * time.Second)
	s.awaitState(task, 20*time.Second, v1alpha1.TaskDone)
	if len(s.journal(ended, mention)) != 1 {
		t.Errorf("the mention was handled %d times", len(s.journal(ended, mention)))
	}
	// Quiet is when nobody has called for two seconds.
	last, since := calls(t, steady), time.Now()
	harness.AwaitFor(t, 20*time.Second, "the runners to come to rest", func() bool {
		if n := calls(t, steady); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
	wait(t, 3*time.Second)
	if n := calls(t, steady); n != last {
		t.Errorf("%d calls were made while nothing happened", n-last)
	}
}
