package tasks_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// move makes a change that must be allowed.
func move(t *testing.T, task *v1alpha1.Task, a tasks.Actor, c tasks.Change) {
	t.Helper()
	got, p := tasks.SetStatus(task, a, c, now)
	if p != nil || got.Status == nil {
		t.Fatalf("%s to %s: got %+v, %v", a.Plate, c.To, got, p)
	}
	task.Status = *got.Status
}

// lapsed gives a task that alice's lease ran out on.
func lapsed() *v1alpha1.Task {
	t := claimed(alice)
	expire(t)
	return t
}

func TestOneWhoseLeaseRanOutMayStillFinishWhileNobodyHasClaimed(t *testing.T) {
	for _, to := range []v1alpha1.TaskState{done, failed} {
		for name, fence := range map[string]*int64{"without a fence": nil, "with the fence of the claim": new(int64(1))} {
			t.Run(string(to)+" "+name, func(t *testing.T) {
				task := lapsed()
				c := change(to)
				c.Fence = fence
				got, p := tasks.SetStatus(task, alice, c, now)
				if p != nil || got.Status == nil || got.Then != nil {
					t.Fatalf("got %+v, %v", got, p)
				}
				s := got.Status
				if s.State != to || s.Epoch != 2 || s.Claim != nil || s.LastClaim.Ended != v1alpha1.ClaimFinished {
					t.Errorf("got %+v", s)
				}
				want := &v1alpha1.TaskRecord{
					Plate: "alice", Session: "s1", Epoch: 1, State: to, Summary: "what", Reason: "why", Late: true, At: metav1.NewTime(now),
				}
				if diff := cmp.Diff(want, s.Record); diff != "" {
					t.Errorf("record (-want +got):\n%s", diff)
				}
				if note := s.History[len(s.History)-1].Note; !strings.HasPrefix(note, "late: ") {
					t.Errorf("history says %q", note)
				}
				task.Status = *s
				if again, p := tasks.SetStatus(task, alice, c, now); p != nil || again.Status != nil {
					t.Errorf("again, after the answer was lost: %+v, %v", again, p)
				}
			})
		}
	}
}

func TestWhatIsNoLateResult(t *testing.T) {
	reopened := lapsed()
	move(t, reopened, alice, change(done))
	move(t, reopened, creator, tasks.Change{To: todo})
	// Somebody claimed and let go with kubectl, and wrote nothing about it but what the schema demands.
	byHand := lapsed()
	claim(byHand, bob)
	byHand.Status.State, byHand.Status.Claim, byHand.Status.Epoch = todo, nil, byHand.Status.Epoch+1
	revoked := claimed(alice)
	move(t, revoked, creator, tasks.Change{To: todo})
	stopped := lapsed()
	move(t, stopped, creator, tasks.Change{To: cancelled, Reason: "why"})
	tests := map[string]struct {
		task   *v1alpha1.Task
		actor  tasks.Actor
		change tasks.Change
	}{
		"a result of another instance of the agent":     {lapsed(), tasks.Actor{Plate: "alice", Session: "s2"}, change(done)},
		"a result of somebody else":                     {lapsed(), bob, change(done)},
		"a result under another fence":                  {lapsed(), alice, tasks.Change{To: done, Fence: new(int64(2))}},
		"a second result after the task was reopened":   {reopened, alice, change(done)},
		"a result after another claim that was let go":  {byHand, alice, change(done)},
		"a result of one the task was taken from":       {revoked, alice, change(done)},
		"a result after it was given back":              {given(), alice, change(done)},
		"a result of a task that was cancelled since":   {stopped, alice, change(done)},
		"a wish to block it, which needs no late claim": {lapsed(), stranger, change(failed)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, p := tasks.SetStatus(tc.task, tc.actor, tc.change, now)
			if code(p) != problem.LeaseLost || got.Status != nil {
				t.Errorf("got %+v, %v; want LEASE_LOST and nothing written", got.Status, p)
			}
		})
	}
}

func TestOneWhoWasOvertakenIsToldSoAndTheRecordIsKept(t *testing.T) {
	overtaken := func() *v1alpha1.Task { return claimed(alice, bob) }
	finished := overtaken()
	move(t, finished, bob, change(done))
	tests := map[string]struct {
		task *v1alpha1.Task
		// holder that is named.
		holder string
	}{
		"while the other works":  {overtaken(), "bob/s1"},
		"when the other is done": {finished, ""},
		"when a third works":     {claimed(alice, bob, stranger), "sam/s1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, p := tasks.SetStatus(tc.task, alice, change(done), now)
			if p != nil || got.Status == nil || code(got.Then) != problem.LeaseLost || got.Then.Holder != tc.holder {
				t.Fatalf("got %+v, %v", got, p)
			}
			want := tc.task.Status.DeepCopy()
			want.Contested = []v1alpha1.TaskRecord{{
				Plate: "alice", Session: "s1", Epoch: 1, State: done, Summary: "what", Reason: "why", At: metav1.NewTime(now),
			}}
			if diff := cmp.Diff(want, got.Status); diff != "" {
				t.Errorf("the record is all that changes (-want +got):\n%s", diff)
			}
			tc.task.Status = *got.Status
			again, p := tasks.SetStatus(tc.task, alice, change(done), now)
			if again.Status != nil || code(p) != problem.LeaseLost {
				t.Errorf("again: %+v, %v; want LEASE_LOST and nothing written", again, p)
			}
		})
	}
	t.Run("with the fence it had", func(t *testing.T) {
		c := change(failed)
		c.Fence = new(int64(1))
		if got, p := tasks.SetStatus(overtaken(), alice, c, now); p != nil || code(got.Then) != problem.LeaseLost || len(got.Status.Contested) != 1 {
			t.Errorf("got %+v, %v", got, p)
		}
	})
	t.Run("the last two are kept", func(t *testing.T) {
		task := claimed(alice, bob, stranger, creator)
		for _, a := range []tasks.Actor{alice, bob, stranger} {
			got, p := tasks.SetStatus(task, a, change(done), now)
			if p != nil || got.Status == nil {
				t.Fatalf("%s: %+v, %v", a.Plate, got, p)
			}
			task.Status = *got.Status
		}
		var kept []string
		for _, r := range task.Status.Contested {
			kept = append(kept, r.Plate)
		}
		if diff := cmp.Diff([]string{"bob", "sam"}, kept); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("one who never held it is not overtaken", func(t *testing.T) {
		got, p := tasks.SetStatus(overtaken(), stranger, change(done), now)
		if got.Status != nil || code(p) != problem.LeaseLost || p.Holder != "bob/s1" {
			t.Errorf("got %+v, %v", got, p)
		}
	})
}

// Whoever still works on a task that has ended is not told to claim it, which nobody can, but what there is to do.
func TestWhatHasEndedIsNotToBeClaimed(t *testing.T) {
	ended := map[v1alpha1.TaskState]string{done: "it is done", failed: "it is failed", cancelled: "it is cancelled"}
	acts := map[string]func(*v1alpha1.Task) *problem.Problem{
		"renew":   tasks.Lost,
		"release": func(t *v1alpha1.Task) *problem.Problem { _, p := tasks.Release(t, alice, nil, now); return p },
		"finish": func(t *v1alpha1.Task) *problem.Problem {
			_, p := tasks.SetStatus(t, alice, tasks.Change{To: done, Summary: "mine"}, now)
			return p
		},
		"finish with the fence of a claim": func(t *v1alpha1.Task) *problem.Problem {
			_, p := tasks.SetStatus(t, alice, tasks.Change{To: done, Fence: new(int64(7))}, now)
			return p
		},
	}
	for state, says := range ended {
		for name, act := range acts {
			p := act(in(state))
			if code(p) != problem.LeaseLost || !strings.Contains(p.Message, says) || strings.Contains(p.Message, "Claim") ||
				!strings.Contains(p.Hint, "reopen") {
				t.Errorf("%s on a task that is %s: %+v", name, state, p)
			}
		}
		if _, p := tasks.SetStatus(in(state), creator, tasks.Change{To: blocked, Reason: "x"}, now); code(p) != problem.Conflict || !strings.Contains(p.Hint, "reopen") {
			t.Errorf("blocking a task that is %s: %+v", state, p)
		}
		archived := in(state)
		archived.Spec.Archived = true
		if p := tasks.Lost(archived); strings.Contains(p.Hint, "reopen") || !strings.Contains(p.Hint, "archived") {
			t.Errorf("renewing an archived task: %+v", p)
		}
	}
	for _, state := range []v1alpha1.TaskState{todo, blocked} {
		if p := tasks.Lost(in(state)); !strings.Contains(p.Message, "Claim it") {
			t.Errorf("renewing a task that is %s: %+v", state, p)
		}
	}
}
