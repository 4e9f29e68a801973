package tasks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

const (
	todo, doing, blocked    = v1alpha1.TaskTodo, v1alpha1.TaskDoing, v1alpha1.TaskBlocked
	done, failed, cancelled = v1alpha1.TaskDone, v1alpha1.TaskFailed, v1alpha1.TaskCancelled
)

var (
	now    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	states = []v1alpha1.TaskState{todo, doing, blocked, done, failed, cancelled}
	agreed = v1alpha1.TaskConsent{State: v1alpha1.ConsentAuto}

	alice    = tasks.Actor{Plate: "alice", Session: "s1"}
	bob      = tasks.Actor{Plate: "bob", Session: "s1"}
	creator  = tasks.Actor{Plate: "carol", Creator: true}
	admin    = tasks.Actor{Plate: "adam", Session: "s1", Admin: true}
	assignee = tasks.Actor{Plate: "asta", Session: "s1", Assignee: true}
	stranger = tasks.Actor{Plate: "sam", Session: "s1"}
)

// in gives a task in a state. A Doing one is held by alice's instance s1 under epoch 1.
func in(state v1alpha1.TaskState) *v1alpha1.Task {
	t := &v1alpha1.Task{Status: v1alpha1.TaskStatus{State: state}}
	switch state {
	case doing:
		return claimed(alice)
	case blocked, failed, cancelled:
		t.Status.Reason = "why"
	}
	return t
}

// claimed gives a task that somebody has claimed, one after the other; each but the last let go.
func claimed(by ...tasks.Actor) *v1alpha1.Task {
	t := &v1alpha1.Task{Status: v1alpha1.TaskStatus{State: todo}}
	for i, a := range by {
		if i > 0 {
			expire(t)
		}
		claim(t, a)
	}
	return t
}

func claim(t *v1alpha1.Task, a tasks.Actor) {
	r, p := tasks.Claim(t, tasks.ClaimRequest{Actor: a, Consent: agreed}, now)
	if p != nil || !r.Write {
		panic("the claim is not won")
	}
	t.Status = r.Status
}

// expire takes the task from its holder, as the controller does when a lease runs out.
func expire(t *v1alpha1.Task) {
	s, ok := tasks.End(t, t.Status.Epoch, v1alpha1.ClaimExpired, "task-controller", "lease expired", now)
	if !ok {
		panic("nobody holds the task")
	}
	t.Status = s
}

func code(p *problem.Problem) problem.Code {
	if p == nil {
		return ""
	}
	return p.Code
}

func TestClaim(t *testing.T) {
	pending := v1alpha1.TaskConsent{State: v1alpha1.ConsentPending}
	archived := in(done)
	archived.Spec.Archived = true
	tests := map[string]struct {
		task    *v1alpha1.Task
		request tasks.ClaimRequest
		won     bool
		held    bool
		lost    tasks.LostReason
		code    problem.Code
	}{
		"a free task is won":                          {in(todo), tasks.ClaimRequest{Actor: alice, Consent: agreed}, true, false, "", ""},
		"by its assignee too":                         {in(todo), tasks.ClaimRequest{Actor: assignee, Assigned: true, Consent: agreed}, true, false, "", ""},
		"a blocked task is won":                       {in(blocked), tasks.ClaimRequest{Actor: alice, Consent: agreed}, true, false, "", ""},
		"claiming twice is claiming once":             {in(doing), tasks.ClaimRequest{Actor: alice, Consent: agreed}, false, true, "", ""},
		"even with blockers and without consent":      {in(doing), tasks.ClaimRequest{Actor: alice, Consent: pending, Blockers: []string{"b1"}}, false, true, "", ""},
		"a task that somebody holds is lost":          {in(doing), tasks.ClaimRequest{Actor: bob, Consent: agreed}, false, false, tasks.LostAlreadyClaimed, ""},
		"to another session of the same agent too":    {in(doing), tasks.ClaimRequest{Actor: tasks.Actor{Plate: "alice", Session: "s2"}, Consent: agreed}, false, false, tasks.LostAlreadyClaimed, ""},
		"somebody else's task is forbidden":           {in(todo), tasks.ClaimRequest{Actor: bob, Assigned: true, Consent: agreed}, false, false, "", problem.Forbidden},
		"even to one who holds it from before":        {in(doing), tasks.ClaimRequest{Actor: alice, Assigned: true, Consent: agreed}, false, false, "", problem.Forbidden},
		"even to its creator and an admin":            {in(todo), tasks.ClaimRequest{Actor: tasks.Actor{Plate: "x", Creator: true, Admin: true}, Assigned: true, Consent: agreed}, false, false, "", problem.Forbidden},
		"a done task cannot be claimed":               {in(done), tasks.ClaimRequest{Actor: alice, Consent: agreed}, false, false, tasks.LostNotClaimable, ""},
		"nor a failed one":                            {in(failed), tasks.ClaimRequest{Actor: alice, Consent: agreed}, false, false, tasks.LostNotClaimable, ""},
		"nor a cancelled one, consented or not":       {in(cancelled), tasks.ClaimRequest{Actor: alice, Consent: pending}, false, false, tasks.LostNotClaimable, ""},
		"nor an archived one":                         {archived, tasks.ClaimRequest{Actor: alice, Consent: agreed}, false, false, tasks.LostNotClaimable, ""},
		"a pending proposal is left alone":            {in(todo), tasks.ClaimRequest{Actor: assignee, Assigned: true, Consent: pending}, false, false, "", problem.ConsentRequired},
		"a pending one with blockers is too":          {in(todo), tasks.ClaimRequest{Actor: assignee, Assigned: true, Consent: pending, Blockers: []string{"b1"}}, false, false, "", problem.ConsentRequired},
		"a task that waits for others is lost":        {in(todo), tasks.ClaimRequest{Actor: alice, Consent: agreed, Blockers: []string{"b1"}}, false, false, tasks.LostBlockedByDeps, ""},
		"one that is held and waits is already taken": {in(doing), tasks.ClaimRequest{Actor: bob, Consent: agreed, Blockers: []string{"b1"}}, false, false, tasks.LostAlreadyClaimed, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.task.DeepCopy()
			got, p := tasks.Claim(tc.task, tc.request, now)
			if diff := cmp.Diff(before, tc.task); diff != "" {
				t.Errorf("the task itself was changed (-before +after):\n%s", diff)
			}
			if got.Write != tc.won || got.Held != tc.held || got.Lost != tc.lost || code(p) != tc.code {
				t.Fatalf("got write %v, held %v, lost %q, %v; want %v, %v, %q, %s", got.Write, got.Held, got.Lost, p, tc.won, tc.held, tc.lost, tc.code)
			}
		})
	}
}

func TestAClaimWritesHolderEpochConsentAndHistory(t *testing.T) {
	task := in(blocked)
	task.Status.Epoch = 4
	r, p := tasks.Claim(task, tasks.ClaimRequest{Actor: alice, Consent: agreed}, now)
	if p != nil {
		t.Fatal(p)
	}
	want := v1alpha1.TaskStatus{
		State: doing, Epoch: 5, Consent: &agreed,
		Claim:   &v1alpha1.TaskClaim{Holder: "alice", Session: "s1", AcquiredAt: metav1.NewMicroTime(now)},
		History: []v1alpha1.TaskEvent{{At: metav1.NewTime(now), From: blocked, To: doing, By: "alice/s1", Epoch: 5, Note: "claimed"}},
	}
	if diff := cmp.Diff(want, r.Status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEndTakesTheTaskFromItsHolderUnderThatEpochOnly(t *testing.T) {
	task := claimed(alice)
	for name, tc := range map[string]struct {
		task  *v1alpha1.Task
		epoch int64
	}{
		"an epoch before": {task, 0}, "an epoch after": {task, 2}, "a task that nobody holds": {in(todo), 0},
	} {
		if s, ok := tasks.End(tc.task, tc.epoch, v1alpha1.ClaimExpired, "x", "y", now); ok {
			t.Errorf("%s: got %+v", name, s)
		}
	}
	got, ok := tasks.End(task, 1, v1alpha1.ClaimExpired, "task-controller", "lease expired", now)
	want := v1alpha1.TaskStatus{
		State: todo, Epoch: 2, Consent: &agreed,
		LastClaim: &v1alpha1.TaskLastClaim{Holder: "alice", Session: "s1", Epoch: 1, Ended: v1alpha1.ClaimExpired, At: metav1.NewTime(now)},
		History: append(task.Status.History, v1alpha1.TaskEvent{
			At: metav1.NewTime(now), From: doing, To: todo, By: "task-controller", Epoch: 2, Note: "lease expired",
		}),
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if task.Status.Claim == nil {
		t.Error("the task itself was changed")
	}
}

func TestRelease(t *testing.T) {
	released := claimed(alice)
	s, _ := tasks.Release(released, alice, nil, now)
	released.Status = *s
	expired := claimed(alice)
	expire(expired)
	tests := map[string]struct {
		task    *v1alpha1.Task
		actor   tasks.Actor
		fence   *int64
		written bool
		code    problem.Code
	}{
		"by its holder":                              {claimed(alice), alice, nil, true, ""},
		"by its holder with the fence":               {claimed(alice), alice, new(int64(1)), true, ""},
		"by its holder with another fence":           {claimed(alice), alice, new(int64(2)), false, problem.LeaseLost},
		"by another session of the holder":           {claimed(alice), tasks.Actor{Plate: "alice", Session: "s2"}, nil, false, problem.LeaseLost},
		"by another agent":                           {claimed(alice), bob, nil, false, problem.LeaseLost},
		"by an admin, who has set_status for it":     {claimed(alice), admin, nil, false, problem.LeaseLost},
		"again, after the answer was lost":           {released, alice, nil, false, ""},
		"again, with the fence it had":               {released, alice, new(int64(1)), false, ""},
		"by another after the holder gave it back":   {released, bob, nil, false, problem.LeaseLost},
		"of a task that nobody held":                 {in(todo), alice, nil, false, problem.LeaseLost},
		"after the lease ran out":                    {expired, alice, nil, false, problem.LeaseLost},
		"after the lease ran out and another came":   {claimed(alice, bob), alice, nil, false, problem.LeaseLost},
		"with a stale fence by one who claimed anew": {claimed(alice, alice), alice, new(int64(1)), false, problem.LeaseLost},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, p := tasks.Release(tc.task, tc.actor, tc.fence, now)
			if (got != nil) != tc.written || code(p) != tc.code {
				t.Fatalf("got %+v, %v; want written %v, %s", got, p, tc.written, tc.code)
			}
			if got == nil {
				return
			}
			if got.State != todo || got.Claim != nil || got.Epoch != tc.task.Status.Epoch+1 || got.LastClaim.Ended != v1alpha1.ClaimReleased {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestLostNamesTheHolderIfThereIsOne(t *testing.T) {
	p := tasks.Lost(claimed(alice))
	if p.Code != problem.LeaseLost || p.Holder != "alice/s1" || !strings.Contains(p.Message, "alice/s1") {
		t.Errorf("got %+v", p)
	}
	if p := tasks.Lost(in(todo)); p.Code != problem.LeaseLost || p.Holder != "" {
		t.Errorf("got %+v", p)
	}
}

func TestHistoryKeepsTheLastTwenty(t *testing.T) {
	task := in(todo)
	for range 30 {
		claim(task, alice)
		expire(task)
	}
	h := task.Status.History
	if len(h) != 20 || h[19].Epoch != 60 || h[0].Epoch != 41 {
		t.Errorf("%d events, from epoch %d to %d", len(h), h[0].Epoch, h[len(h)-1].Epoch)
	}
}

func TestHistoryFitsTheSchema(t *testing.T) {
	long := strings.Repeat("ü", 300)
	task := claimed(alice)
	s, _ := tasks.End(task, 1, v1alpha1.ClaimRevoked, long, long, now)
	last := s.History[len(s.History)-1]
	want := strings.Repeat("ü", 127) + "…"
	if last.By != want || last.Note != want {
		t.Errorf("got %q by %q", last.Note, last.By)
	}
}

func TestTruncate(t *testing.T) {
	for _, tc := range []struct {
		text string
		n    int
		want string
	}{{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"üüü", 3, "üüü"}, {"üüüü", 3, "üü…"}, {"abcd", 1, "…"}} {
		if got := tasks.Truncate(tc.text, tc.n); got != tc.want {
			t.Errorf("Truncate(%q, %d) is %q, want %q", tc.text, tc.n, got, tc.want)
		}
	}
}

func TestToolStatesReadBack(t *testing.T) {
	for _, s := range states {
		if got, ok := tasks.ParseToolState(tasks.ToolState(s)); !ok || got != s || tasks.ToolState(s) != strings.ToLower(string(s)) {
			t.Errorf("%s is %q, which reads as %s (%v)", s, tasks.ToolState(s), got, ok)
		}
	}
	for _, s := range []string{"", "Todo", "open"} {
		if got, ok := tasks.ParseToolState(s); ok {
			t.Errorf("%q is taken for %s", s, got)
		}
	}
}

func TestHolders(t *testing.T) {
	if got := tasks.ClaimHolder(claimed(alice)); got != "alice/s1" {
		t.Errorf("got %q", got)
	}
	if got := tasks.ClaimHolder(claimed(tasks.Actor{Plate: "said"})); got != "said" {
		t.Errorf("a holder without a session is %q", got)
	}
	if got := tasks.ClaimHolder(in(todo)); got != "" {
		t.Errorf("nobody is %q", got)
	}
	if tasks.Holds(claimed(alice), "alice", "s2") || tasks.Holds(in(todo), "alice", "s1") || !tasks.Holds(claimed(alice), "alice", "s1") {
		t.Error("somebody else is taken for the holder")
	}
}
