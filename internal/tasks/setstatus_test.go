package tasks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// change gives a wish with everything it needs.
func change(to v1alpha1.TaskState) tasks.Change {
	return tasks.Change{To: to, Reason: "why", Summary: "what"}
}

// TestWhoMayMoveATaskWhere is the table of the task's life. The rows are the states it is in; in each stand, for the wish to
// make it todo, blocked, done, failed or cancelled:
//
//   - written   = there already   L LEASE_LOST   F FORBIDDEN   C CONFLICT
func TestWhoMayMoveATaskWhere(t *testing.T) {
	marks := map[string]problem.Code{"L": problem.LeaseLost, "F": problem.Forbidden, "C": problem.Conflict}
	tables := map[string]struct {
		actor tasks.Actor
		rows  map[v1alpha1.TaskState]string
	}{
		"the holder": {alice, map[v1alpha1.TaskState]string{
			doing: "+++++",
		}},
		"another instance of the holder": {tasks.Actor{Plate: "alice", Session: "s2"}, map[v1alpha1.TaskState]string{
			doing: "LLLLL",
		}},
		"the assignee": {assignee, map[v1alpha1.TaskState]string{
			todo: "=+LL+", doing: "LLLLL", blocked: "+CL++", done: "FCLLC", failed: "FCLLC", cancelled: "FCLLC",
		}},
		"the creator": {creator, map[v1alpha1.TaskState]string{
			todo: "=+LL+", doing: "+LLL+", blocked: "+CL++", done: "+CLLC", failed: "+CLLC", cancelled: "+CLLC",
		}},
		"an admin": {admin, map[v1alpha1.TaskState]string{
			todo: "=+LL+", doing: "+LLL+", blocked: "+CL++", done: "+CLLC", failed: "+CLLC", cancelled: "+CLLC",
		}},
		"a stranger": {stranger, map[v1alpha1.TaskState]string{
			todo: "=FLLF", doing: "LLLLL", blocked: "FCLLF", done: "FCLLC", failed: "FCLLC", cancelled: "FCLLC",
		}},
	}
	for who, table := range tables {
		for from, row := range table.rows {
			for i, to := range []v1alpha1.TaskState{todo, blocked, done, failed, cancelled} {
				want := row[i : i+1]
				t.Run(fmt.Sprintf("%s from %s to %s", who, from, to), func(t *testing.T) {
					task := in(from)
					before := task.DeepCopy()
					got, p := tasks.SetStatus(task, table.actor, change(to), now)
					if diff := cmp.Diff(before, task); diff != "" {
						t.Errorf("the task itself was changed (-before +after):\n%s", diff)
					}
					if code(p) != marks[want] {
						t.Fatalf("got %v, want %s", p, want)
					}
					if (got.Status != nil) != (want == "+") || got.Then != nil {
						t.Fatalf("got %+v, want %s", got, want)
					}
					if got.Status != nil && (got.Status.State != to || got.Status.Claim != nil) {
						t.Errorf("got %+v", got.Status)
					}
				})
			}
		}
	}
}

func TestWhatSetStatusWrites(t *testing.T) {
	c := tasks.Change{
		To: failed, Summary: "tried", Artifacts: []string{"file:log"}, Next: "ask legal", Reason: "no licence", ResultRef: "file:log",
	}
	got, p := tasks.SetStatus(claimed(alice), alice, c, now)
	if p != nil {
		t.Fatal(p)
	}
	at := metav1.NewTime(now)
	want := &v1alpha1.TaskStatus{
		State: failed, Epoch: 2, Consent: &agreed, Reason: "no licence",
		LastClaim: &v1alpha1.TaskLastClaim{Holder: "alice", Session: "s1", Epoch: 1, Ended: v1alpha1.ClaimFinished, At: at},
		Record: &v1alpha1.TaskRecord{
			Plate: "alice", Session: "s1", Epoch: 1, State: failed, Summary: "tried", Artifacts: []string{"file:log"},
			Next: "ask legal", Reason: "no licence", ResultRef: "file:log", At: at,
		},
		History: []v1alpha1.TaskEvent{
			{At: at, From: todo, To: doing, By: "alice/s1", Epoch: 1, Note: "claimed"},
			{At: at, From: doing, To: failed, By: "alice/s1", Epoch: 2, Note: "no licence"},
		},
	}
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHowAClaimEndsIsRemembered(t *testing.T) {
	for name, tc := range map[string]struct {
		actor tasks.Actor
		to    v1alpha1.TaskState
		want  v1alpha1.ClaimEnd
	}{
		"the holder finishes":       {alice, done, v1alpha1.ClaimFinished},
		"the holder gets stuck":     {alice, blocked, v1alpha1.ClaimFinished},
		"the holder gives it back":  {alice, todo, v1alpha1.ClaimReleased},
		"the creator takes it back": {creator, todo, v1alpha1.ClaimRevoked},
		"an admin cancels it":       {admin, cancelled, v1alpha1.ClaimRevoked},
	} {
		t.Run(name, func(t *testing.T) {
			got, p := tasks.SetStatus(claimed(alice), tc.actor, change(tc.to), now)
			if p != nil {
				t.Fatal(p)
			}
			if got.Status.LastClaim.Ended != tc.want || got.Status.LastClaim.Holder != "alice" || got.Status.Epoch != 2 {
				t.Errorf("got %+v at epoch %d, want %s", got.Status.LastClaim, got.Status.Epoch, tc.want)
			}
		})
	}
}

func TestWhatSetStatusRefusesWhoeverAsks(t *testing.T) {
	archived := in(done)
	archived.Spec.Archived = true
	many := make([]string, 11)
	for i := range many {
		many[i] = strings.Repeat("ü", 182)
	}
	tests := map[string]struct {
		task   *v1alpha1.Task
		actor  tasks.Actor
		change tasks.Change
		code   problem.Code
		field  string
	}{
		"blocked without a reason":               {claimed(alice), alice, tasks.Change{To: blocked}, problem.Validation, "reason"},
		"failed without a reason":                {claimed(alice), alice, tasks.Change{To: failed, Summary: "x"}, problem.Validation, "reason"},
		"cancelled without a reason":             {in(todo), creator, tasks.Change{To: cancelled}, problem.Validation, "reason"},
		"doing, which is a claim":                {in(blocked), creator, tasks.Change{To: doing}, problem.Validation, "status"},
		"doing by the holder":                    {claimed(alice), alice, tasks.Change{To: doing}, problem.Validation, "status"},
		"a state that there is not":              {claimed(alice), alice, tasks.Change{To: "Backlog"}, problem.Validation, "status"},
		"more artifacts than a record may hold":  {claimed(alice), alice, tasks.Change{To: done, Artifacts: many}, problem.Validation, "artifacts"},
		"to reopen an archived task":             {archived, creator, tasks.Change{To: todo}, problem.Conflict, ""},
		"a fence of an earlier claim":            {claimed(alice, alice), alice, tasks.Change{To: done, Fence: new(int64(1))}, problem.LeaseLost, ""},
		"a fence of no claim yet":                {claimed(alice), alice, tasks.Change{To: done, Fence: new(int64(2))}, problem.LeaseLost, ""},
		"a stale fence by the creator":           {claimed(alice), creator, tasks.Change{To: todo, Fence: new(int64(0))}, problem.LeaseLost, ""},
		"a stale fence on a blocked task":        {in(blocked), creator, tasks.Change{To: failed, Reason: "x", Fence: new(int64(9))}, problem.LeaseLost, ""},
		"a result of a task that was not begun":  {in(todo), assignee, tasks.Change{To: done}, problem.LeaseLost, ""},
		"a result after the task was given back": {given(), alice, tasks.Change{To: done}, problem.LeaseLost, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, p := tasks.SetStatus(tc.task, tc.actor, tc.change, now)
			if code(p) != tc.code || got.Status != nil {
				t.Fatalf("got %+v, %v; want %s", got.Status, p, tc.code)
			}
			if tc.field != "" && !cmp.Equal(p.Fields, []string{tc.field}) {
				t.Errorf("names %v, want %s", p.Fields, tc.field)
			}
		})
	}
}

// given gives a task that alice claimed and gave back.
func given() *v1alpha1.Task {
	t := claimed(alice)
	s, _ := tasks.Release(t, alice, nil, now)
	t.Status = *s
	return t
}

func TestAMatchingFenceIsNoHindrance(t *testing.T) {
	for name, tc := range map[string]struct {
		task  *v1alpha1.Task
		actor tasks.Actor
		to    v1alpha1.TaskState
		fence int64
	}{
		"by the holder":                  {claimed(alice), alice, done, 1},
		"by the creator who takes back":  {claimed(alice), creator, todo, 1},
		"by the creator who gives it up": {in(blocked), creator, failed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := change(tc.to)
			c.Fence = &tc.fence
			if got, p := tasks.SetStatus(tc.task, tc.actor, c, now); p != nil || got.Status == nil || got.Status.State != tc.to {
				t.Errorf("got %+v, %v", got, p)
			}
		})
	}
}

// A repeated call after a lost answer finds its own work and writes nothing; other words, or another caller, are no repeat.
func TestTheSameWishAgainWritesNothing(t *testing.T) {
	for _, to := range []v1alpha1.TaskState{todo, blocked, done, failed, cancelled} {
		t.Run(string(to), func(t *testing.T) {
			task := claimed(alice)
			c := change(to)
			c.Artifacts, c.Fence = []string{"file:a"}, new(int64(1))
			first, p := tasks.SetStatus(task, alice, c, now)
			if p != nil {
				t.Fatal(p)
			}
			task.Status = *first.Status
			if again, p := tasks.SetStatus(task, alice, c, now); p != nil || again.Status != nil || again.Then != nil {
				t.Errorf("again: %+v, %v", again, p)
			}
			task.Spec.Archived = tasks.Terminal(to)
			if again, p := tasks.SetStatus(task, alice, c, now); p != nil || again.Status != nil {
				t.Errorf("again, after it was archived: %+v, %v", again, p)
			}
			task.Spec.Archived = false
			if to == todo {
				return
			}
			other := c
			other.Summary = "something else"
			if _, p := tasks.SetStatus(task, alice, other, now); p == nil {
				t.Error("other words are taken for a repeat")
			}
			if _, p := tasks.SetStatus(task, bob, c, now); p == nil {
				t.Error("another caller is taken for the same")
			}
		})
	}
}

func TestReasonAndRecordFollowTheState(t *testing.T) {
	task := in(blocked)
	task.Status.Record = &v1alpha1.TaskRecord{Plate: "alice", State: blocked}
	got, p := tasks.SetStatus(task, creator, tasks.Change{To: todo, Reason: "legal answered"}, now)
	if p != nil {
		t.Fatal(p)
	}
	if got.Status.Reason != "" {
		t.Errorf("a todo task has the reason %q", got.Status.Reason)
	}
	if got.Status.Record == nil || got.Status.Record.Plate != "alice" {
		t.Errorf("the record of work is lost: %+v", got.Status.Record)
	}
	if note := got.Status.History[0].Note; note != "legal answered" {
		t.Errorf("history says %q", note)
	}
	got, _ = tasks.SetStatus(task, creator, tasks.Change{To: todo, Summary: "try the other way"}, now)
	if r := got.Status.Record; r == nil || r.Plate != "carol" || r.Summary != "try the other way" {
		t.Errorf("what the creator has to say is not kept: %+v", r)
	}
}
