package runner

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// say sends a message to the agent and gives the id of its mention.
func (s *scene) say(room string, do script) string {
	s.t.Helper()
	sent := harness.Get[rooms.Sent](s.t, s.boss, "send_message", harness.Args{
		"room": room, "body": do.String(), "mentions": []string{s.Plates["hand"]},
	})
	return sent.ID + "-0"
}

// pending is how many mentions wait for the agent.
func (s *scene) pending() int {
	s.t.Helper()
	return harness.Get[rooms.Identity](s.t, s.hand, "whoami", nil).PendingMentions
}

func (s *scene) awaitNonePending(limit time.Duration) {
	s.t.Helper()
	harness.AwaitFor(s.t, limit, "every mention to be acknowledged", func() bool { return s.pending() == 0 })
}

func TestNoWakeIsLostWhenTheListenerIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.listen()
	var want []string
	for range 15 {
		want = append(want, s.say(s.room, script{Takes: time.Duration(rand.IntN(200)) * time.Millisecond}))
	}
	task := s.give(script{})
	kills := 0
	for ; s.pending() > 0 && kills < 30; kills++ {
		// It gets more time from kill to kill, so that it comes to an end on a slow machine, too.
		wait(t, time.Duration(150+100*kills+rand.IntN(700))*time.Millisecond)
		p.kill()
		for _, l := range s.journal(began, "") {
			harness.AwaitFor(t, 2*time.Second, "what a killed listener ran to be dead", func() bool { return !running(l.PID) && !running(l.Child) })
		}
		p.start()
	}
	if kills < 2 {
		t.Errorf("everything was over after %d kills: nothing was put to the test", kills)
	}
	s.awaitNonePending(20 * time.Second)
	s.noOverlap()
	for _, id := range want {
		if len(s.journal(ended, id)) == 0 {
			t.Errorf("the mention %s was acknowledged and never handled to its end", id)
		}
	}
	assignments := 0
	for _, l := range s.journal(ended, "") {
		if l.Kind == "assignment" {
			assignments++
		}
	}
	if assignments == 0 {
		t.Errorf("nothing was heard of the task %s", task)
	}
	t.Logf("%d kills, %d runs for %d wakes", kills, len(s.journal(began, "")), len(want)+1)
}

func wait(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

func TestACommandThatHangsOrFailsComesAgainAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	other := s.addRoom("attic")
	hung := s.say(s.room, script{Hang: 1, Deaf: true})
	failing := s.say(s.room, script{Fail: 3, Code: 9})
	behind := s.say(s.room, script{})
	elsewhere := s.say(other, script{})
	// The timeout is what a slow machine takes to start a command, and then some; a bad one comes again when the others had
	// the time that they take there.
	p := s.listen("--timeout", "4s", "--backoff", "16s", "--max-backoff", "16s")
	harness.AwaitFor(t, 45*time.Second, "the wakes behind the bad ones to be handled", func() bool {
		return len(s.journal(ended, behind)) == 1 && len(s.journal(ended, elsewhere)) == 1
	})
	if n := len(s.journal(ended, hung)) + len(s.journal(ended, failing)); n > 0 {
		t.Errorf("%d of the bad ones were over before those behind them: nobody was held up", n)
	}
	s.awaitNonePending(150 * time.Second)
	s.noOverlap()
	for id, runs := range map[string]int{hung: 2, failing: 4, behind: 1, elsewhere: 1} {
		got := s.journal(began, id)
		if len(got) != runs {
			t.Errorf("%s was run %d times, want %d", id, len(got), runs)
		}
		// On a slow machine one may be killed before it has begun to count.
		if last := got[len(got)-1].Attempt; last < runs {
			t.Errorf("the last run of %s was attempt %d, want %d", id, last, runs)
		}
	}
	for _, l := range s.journal(began, "") {
		dead(t, l)
	}
	if code := p.stop(5 * time.Second); code != 0 {
		t.Errorf("the listener ended with %d", code)
	}
}

func TestAListenerThatIsToldToStopLetsItsCommandFinish(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.listen("--grace", "20s")
	id := s.say(s.room, script{Takes: time.Second})
	harness.Await(t, "the command to begin", func() bool { return len(s.journal(began, id)) == 1 })
	later := s.say(s.room, script{})
	if code := p.stop(10 * time.Second); code != 0 {
		t.Errorf("the listener ended with %d", code)
	}
	if len(s.journal(ended, id)) != 1 || len(s.journal(began, later)) != 0 || s.pending() != 1 {
		t.Errorf("%v, %d pending; want the first finished and the second left", journalOf(s.dir), s.pending())
	}

	q := s.listen("--grace", "300ms")
	slow := s.say(s.room, script{Takes: time.Minute})
	harness.Await(t, "the slow command to begin", func() bool { return len(s.journal(began, slow)) == 1 })
	if code := q.stop(10 * time.Second); code != 0 {
		t.Errorf("the listener ended with %d", code)
	}
	dead(t, s.journal(began, slow)[0])
	if s.pending() != 1 || len(s.journal(ended, later)) != 1 {
		t.Errorf("%d pending, want the slow one to stay", s.pending())
	}
}

func TestAnInstanceRunsOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.listen("--instance-id", "one")
	harness.Await(t, "the first to live", func() bool { return s.lives("one") })
	q := s.listen("--instance-id", "one", "--room", s.room)
	if code := q.wait(20 * time.Second); code != 1 || !strings.Contains(q.text(), "give this one another --instance-id") {
		t.Errorf("the second ended with %d: %s", code, q.text())
	}
	s.listen("--instance-id", "two", "--room", "DEN", "--room", s.room)
	harness.Await(t, "another instance to live", func() bool { return s.lives("two") })
}

// lives says whether an instance of the agent is seen to listen.
func (s *scene) lives(session string) bool {
	s.t.Helper()
	for _, i := range harness.Get[rooms.InstanceList](s.t, s.hand, "list_instances", harness.Args{"room": s.room}).Instances {
		if i.SessionID == session && i.Wakeable {
			return true
		}
	}
	return false
}

func TestWhatCannotWorkIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"no-such-program", []string{"listen", "--token-file", "T", "--", "no-such-program"}},
		{"--token-file", []string{"listen", "--token-file", "", "--", "true"}},
		{"no such file", []string{"listen", "--token-file", "/no/such/token", "--", "true"}},
		{"--room", []string{"work", "--token-file", "T", "--", "true"}},
		{"--max-attempts", []string{"work", "--token-file", "T", "--room", "x", "--max-attempts", "0", "--", "true"}},
		{"the agent is in no room \"nowhere\"", []string{"work", "--token-file", "T", "--room", "nowhere", "--", "true"}},
		{"must be of the form", []string{"listen", "--token-file", "T", "--mcp", "ftp://x", "--", "true"}},
		{"requires at least 1 arg", []string{"listen", "--token-file", "T"}},
	} {
		p := s.runner("listen", steady)
		for i, a := range tc.args {
			if a == "T" {
				tc.args[i] = s.dir + "/token"
			}
		}
		p.args = slices.Concat(tc.args[:1], []string{"--mcp", plane.Replicas[steady], "--state-dir", s.dir + "/state"}, tc.args[1:])
		p.log += "." + strings.ReplaceAll(tc.want, "/", "") + strings.Join(tc.args[:1], "")
		if code := p.start().wait(40 * time.Second); code != 1 || !strings.Contains(p.text(), tc.want) {
			t.Errorf("%v ended with %d and %q, want %q", tc.args, code, p.text(), tc.want)
		}
	}
}
