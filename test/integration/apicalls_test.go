package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// ledger counts what is asked of the API server in a test's namespace from when it was opened.
type ledger struct {
	t     *testing.T
	world *harness.World
	since time.Time
}

// openLedger begins to count once everything asked before has been written down.
func openLedger(t *testing.T, w *harness.World) *ledger {
	t.Helper()
	l := &ledger{t: t, world: w, since: time.Now().Add(-5 * time.Second)}
	l.calls(harness.BridgeUser)
	l.since = time.Now()
	return l
}

// calls gives what a user has asked, as "verb resource", once the log has been quiet for a moment. Watches and the signs of
// life of instances belong to no single call, nor do the counts that the controllers write from time to time.
func (l *ledger) calls(user string) []string {
	l.t.Helper()
	calls, quiet := l.read(user), 0
	harness.Await(l.t, "the audit log to be quiet", func() bool { // it looks twenty times a second
		found := l.read(user)
		if quiet++; !slices.Equal(found, calls) {
			quiet = 0
		}
		calls = found
		return quiet >= 12
	})
	return calls
}

func (l *ledger) read(user string) []string {
	l.t.Helper()
	var calls []string
	for _, e := range plane.Audit(l.t, l.since) {
		o := e.ObjectRef
		counts := user == harness.ManagerUser && (o.Resource == "rooms" || o.Resource == "agents")
		if e.User.Username != user || o.Namespace != l.world.Namespace || e.Verb == "watch" || counts ||
			strings.HasPrefix(o.Name, "instance.") {
			continue
		}
		calls = append(calls, e.Verb+" "+e.Resource())
	}
	return calls
}

// expect holds what one operation asks of the API server against what it may ask.
func (l *ledger) expect(what string, got, want []string) {
	l.t.Helper()
	if !slices.Equal(got, want) {
		l.t.Errorf("%s makes the calls %q, want %q", what, got, want)
	}
}

// TestEachOperationMakesAsFewAPICallsAsCanBe counts in the API server's audit log.
func TestEachOperationMakesAsFewAPICallsAsCanBe(t *testing.T) {
	w, room := team(t)
	boss, worker := w.As("boss", "calls-boss"), w.As("worker", "calls-worker")
	// What an instance says once, when it first calls, is said.
	for _, s := range []*harness.Session{boss, worker} {
		harness.Get[rooms.Identity](t, s, "whoami", nil)
	}

	var task rooms.Task
	t.Run("create_task", func(t *testing.T) {
		l := openLedger(t, w)
		task = newTask(t, worker, room, "counted", "@worker")
		l.expect("create_task", l.calls(harness.BridgeUser), []string{"create tasks"})
	})
	t.Run("create_task under a key, twice", func(t *testing.T) {
		l := openLedger(t, w)
		args := harness.Args{
			"room": room, "title": "keyed", "definition_of_done": "it is done", "assignee": "@worker", "idempotency_key": "calls-1",
		}
		for range 2 {
			harness.Get[rooms.Task](t, worker, "create_task", args)
		}
		l.expect("create_task under a key, twice", l.calls(harness.BridgeUser), []string{"create tasks"})
	})
	t.Run("claim_task", func(t *testing.T) {
		harness.Await(t, "the controller to have judged the task", func() bool {
			return taskObject(t, w, task.TaskID).Status.Consent != nil
		})
		l := openLedger(t, w)
		if claim := harness.Get[rooms.Claim](t, worker, "claim_task", harness.Args{"task_id": task.TaskID}); !claim.OK {
			t.Fatalf("claim_task gives %+v", claim)
		}
		l.expect("claim_task", l.calls(harness.BridgeUser), []string{"update tasks/status"})
		l.expect("the controller after a claim", l.calls(harness.ManagerUser), []string{"create leases"})
	})
	t.Run("claim_task, lost", func(t *testing.T) {
		l := openLedger(t, w)
		other := w.As("worker", "calls-worker-2")
		if claim := harness.Get[rooms.Claim](t, other, "claim_task", harness.Args{"task_id": task.TaskID}); claim.OK {
			t.Fatalf("claim_task gives %+v", claim)
		}
		l.expect("a claim that the cache can refuse", l.calls(harness.BridgeUser), nil)
	})
	t.Run("renew_lease", func(t *testing.T) {
		// The first one may be earlier than the view.
		harness.Get[rooms.Renewal](t, worker, "renew_lease", harness.Args{"task_id": task.TaskID})
		l := openLedger(t, w)
		harness.Get[rooms.Renewal](t, worker, "renew_lease", harness.Args{"task_id": task.TaskID})
		l.expect("renew_lease", l.calls(harness.BridgeUser), []string{"update leases"})
		l.expect("the controller after a renewal", l.calls(harness.ManagerUser), nil)
	})
	t.Run("send_message", func(t *testing.T) { countSends(t, w, worker, room) })
	t.Run("reads", func(t *testing.T) { countReads(t, w, room) })
}

func countSends(t *testing.T, w *harness.World, s *harness.Session, room string) {
	t.Helper()
	l := openLedger(t, w)
	harness.Get[rooms.Sent](t, s, "send_message", harness.Args{"room": room, "body": "plain"})
	l.expect("send_message", l.calls(harness.BridgeUser), []string{"create messagebatches"})

	l = openLedger(t, w)
	keyed := harness.Args{"room": room, "body": "keyed", "idempotency_key": "calls-1", "mentions": []string{"@boss(ann)"}}
	for range 2 {
		harness.Get[rooms.Sent](t, s, "send_message", keyed)
	}
	l.expect("send_message under a key, twice", l.calls(harness.BridgeUser), []string{"create messagebatches"})
}

// countReads has a new instance read everything there is to read.
func countReads(t *testing.T, w *harness.World, room string) {
	t.Helper()
	s := w.As("worker", "calls-reader")
	harness.Get[rooms.Identity](t, s, "whoami", nil)
	l := openLedger(t, w)
	for _, call := range []struct {
		tool string
		args harness.Args
	}{
		{"whoami", nil},
		{"list_rooms", nil},
		{"list_members", harness.Args{"room": room}},
		{"read_room", harness.Args{"room": room}},
		{"read_board", harness.Args{"room": room}},
		{"resolve_handle", harness.Args{"room": room, "handle": "@boss"}},
		{"list_instances", harness.Args{"room": room}},
		{"check_mentions", harness.Args{"room": room}}, // nothing is addressed to this agent
	} {
		if r := s.Call(t, call.tool, call.args); r.Err != nil {
			t.Errorf("%s: %v", call.tool, r.Err)
		}
	}
	l.expect("reading", l.calls(harness.BridgeUser), nil)
}
