package tasks_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/test/schema"
)

// step takes one random operation by a random actor and gives the status that it wants written, nil for none.
func step(r *rand.Rand, t *v1alpha1.Task, at time.Time) (string, *v1alpha1.TaskStatus) {
	agents := []string{"alice", "bob", "carol"}
	plate := agents[r.IntN(len(agents))]
	a := tasks.Actor{Plate: plate, Session: fmt.Sprintf("s%d", r.IntN(2)), Creator: plate == "carol", Admin: r.IntN(8) == 0, Assignee: r.IntN(3) == 0}
	var fence *int64
	if r.IntN(3) == 0 {
		fence = new(max(0, t.Status.Epoch-r.Int64N(3)))
	}
	switch r.IntN(6) {
	case 0, 1:
		consents := []v1alpha1.ConsentState{v1alpha1.ConsentAuto, v1alpha1.ConsentAccepted, v1alpha1.ConsentPending}
		res, _ := tasks.Claim(t, tasks.ClaimRequest{Actor: a, Consent: v1alpha1.TaskConsent{State: consents[r.IntN(3)]}}, at)
		if res.Write {
			return a.Plate + " claims", &res.Status
		}
		return a.Plate + " does not claim", nil
	case 2:
		s, _ := tasks.Release(t, a, fence, at)
		return a.Plate + " releases", s
	case 3:
		if s, ok := tasks.End(t, t.Status.Epoch-r.Int64N(2), v1alpha1.ClaimExpired, "task-controller", "lease expired", at); ok {
			return "the lease expires", &s
		}
		return "no lease expires", nil
	default:
		c := tasks.Change{To: states[r.IntN(len(states))], Fence: fence, Reason: "why", Summary: fmt.Sprint(r.IntN(3))}
		out, _ := tasks.SetStatus(t, a, c, at)
		return fmt.Sprintf("%s sets %s", a.Plate, c.To), out.Status
	}
}

// Whatever anybody does in whatever order, what the rules want written is what the API server accepts, and the schema's
// invariants stand: they hold the schema and the rules against each other.
func TestRandomLivesOfATaskKeepTheSchema(t *testing.T) {
	checker := schema.For(t, "tasks")
	seen := map[v1alpha1.TaskState]int{}
	var late, contested int
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a seed makes the run repeatable
		task := &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: "draft", Namespace: "demo"},
			Spec:       v1alpha1.TaskSpec{RoomRef: v1alpha1.RoomReference{Name: "launch"}, Title: "x", DefinitionOfDone: "x"},
			Status:     v1alpha1.TaskStatus{State: todo},
		}
		for i := range 60 {
			what, s := step(r, task, now.Add(time.Duration(i)*time.Second))
			if s == nil {
				continue
			}
			next := task.DeepCopy()
			next.Status = *s
			if err := checker.Update(task, next); err != nil {
				t.Fatalf("seed %d, step %d, %s from %+v to %+v:\n%v", seed, i, what, task.Status, s, err)
			}
			holds(t, fmt.Sprintf("seed %d, step %d, %s", seed, i, what), task.Status, *s)
			task = next
			seen[s.State]++
			if s.Record != nil && s.Record.Late {
				late++
			}
			contested += len(s.Contested)
		}
	}
	for _, s := range states {
		if seen[s] == 0 {
			t.Errorf("no life led to %s: the test proves less than it says", s)
		}
	}
	if late == 0 || contested == 0 {
		t.Errorf("%d late and %d contested results: the test proves less than it says", late, contested)
	}
}

// holds says the invariants once more, apart from the schema.
func holds(t *testing.T, when string, old, next v1alpha1.TaskStatus) {
	t.Helper()
	if next.Epoch < old.Epoch || next.Epoch > old.Epoch+1 {
		t.Fatalf("%s: epoch went from %d to %d", when, old.Epoch, next.Epoch)
	}
	if (next.Claim != nil) != (next.State == doing) {
		t.Fatalf("%s: %s with the claim %v", when, next.State, next.Claim)
	}
	if len(next.History) > 20 || len(next.Contested) > 2 {
		t.Fatalf("%s: %d events and %d contested records", when, len(next.History), len(next.Contested))
	}
	if old.Claim != nil && next.Claim != nil && *old.Claim != *next.Claim {
		t.Fatalf("%s: the claim went from %v to %v", when, old.Claim, next.Claim)
	}
}

// Nobody but the holder can finish a task that somebody holds, whatever they are and whatever fence they show.
func TestOnlyTheHolderFinishesWhatIsHeld(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a seed makes the run repeatable
		a := tasks.Actor{Plate: "bob", Session: "s1", Creator: r.IntN(2) == 0, Admin: r.IntN(2) == 0, Assignee: r.IntN(2) == 0}
		if r.IntN(3) == 0 {
			a.Plate, a.Session = "alice", "s2"
		}
		c := tasks.Change{To: []v1alpha1.TaskState{done, failed, blocked}[r.IntN(3)], Reason: "why"}
		if r.IntN(2) == 0 {
			c.Fence = new(r.Int64N(4))
		}
		got, p := tasks.SetStatus(claimed(alice), a, c, now)
		if got.Status != nil || code(p) != problem.LeaseLost {
			t.Fatalf("seed %d: %+v with %+v got %+v, %v", seed, a, c, got.Status, p)
		}
	}
}
