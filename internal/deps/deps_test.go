package deps_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/deps"
)

// board is a set of tasks by name: their state and what they depend on.
type board map[string]*v1alpha1.Task

func (b board) find(name string) (*v1alpha1.Task, bool) {
	t, ok := b[name]
	return t, ok
}

func (b board) add(name string, state v1alpha1.TaskState, dependsOn ...string) board {
	b[name] = &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.TaskSpec{DependsOn: dependsOn},
		Status:     v1alpha1.TaskStatus{State: state},
	}
	return b
}

func TestOpenDependenciesAreThoseNotDone(t *testing.T) {
	b := board{}.add("todo", v1alpha1.TaskTodo).add("doing", v1alpha1.TaskDoing).add("blocked", v1alpha1.TaskBlocked).
		add("done", v1alpha1.TaskDone).add("failed", v1alpha1.TaskFailed).add("cancelled", v1alpha1.TaskCancelled)
	b.add("it", v1alpha1.TaskTodo, "failed", "done", "todo", "nowhere", "doing", "blocked", "cancelled")
	want := []string{"failed", "todo", "nowhere", "doing", "blocked", "cancelled"}
	if diff := cmp.Diff(want, deps.Open(b["it"], b.find)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := deps.Open(b["done"], b.find); len(got) != 0 {
		t.Errorf("a task without dependencies waits for %v", got)
	}
}

func TestState(t *testing.T) {
	const todo, done = v1alpha1.TaskTodo, v1alpha1.TaskDone
	tests := map[string]struct {
		board  board
		reason string
		names  []string
	}{
		"nothing to wait for":                 {board{}.add("it", todo), v1alpha1.NoDependenciesReason, nil},
		"all done":                            {board{}.add("it", todo, "a1", "a2").add("a1", done).add("a2", done), v1alpha1.DependenciesDoneReason, nil},
		"one open":                            {board{}.add("it", todo, "a1", "a2").add("a1", done).add("a2", v1alpha1.TaskDoing), v1alpha1.WaitingReason, []string{"a2"}},
		"a blocker that failed":               {board{}.add("it", todo, "a1", "a2").add("a1", todo).add("a2", v1alpha1.TaskFailed), v1alpha1.BlockerFailedReason, []string{"a2"}},
		"a blocker that was cancelled":        {board{}.add("it", todo, "a1").add("a1", v1alpha1.TaskCancelled), v1alpha1.BlockerFailedReason, []string{"a1"}},
		"a blocker that is not there":         {board{}.add("it", todo, "a1", "a2").add("a2", v1alpha1.TaskFailed), v1alpha1.BlockerMissingReason, []string{"a1"}},
		"a circle":                            {board{}.add("it", todo, "a1").add("a1", todo, "it"), v1alpha1.DependencyCycleReason, []string{"it", "a1", "it"}},
		"a circle elsewhere holds up no more": {board{}.add("it", todo, "a1").add("a1", todo, "a2").add("a2", todo, "a1"), v1alpha1.WaitingReason, []string{"a1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reason, names := deps.State(tc.board["it"], tc.board.find)
			if reason != tc.reason {
				t.Errorf("got %s, want %s", reason, tc.reason)
			}
			if diff := cmp.Diff(tc.names, names, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCycle(t *testing.T) {
	const todo = v1alpha1.TaskTodo
	diamond := board{}.add("top", todo, "left", "right").add("left", todo, "bottom").add("right", todo, "bottom").add("bottom", todo)
	tests := map[string]struct {
		board     board
		name      string
		dependsOn []string
		want      []string
	}{
		"on itself":                             {board{}, "it", []string{"it"}, []string{"it", "it"}},
		"on one that depends on it":             {board{}.add("a1", todo, "it"), "it", []string{"a1"}, []string{"it", "a1", "it"}},
		"through several":                       {board{}.add("a1", todo, "a2").add("a2", todo, "a3").add("a3", todo, "it"), "it", []string{"a1"}, []string{"it", "a1", "a2", "a3", "it"}},
		"behind a branch that leads nowhere":    {board{}.add("a1", todo, "nowhere").add("a2", todo, "it"), "it", []string{"a1", "a2"}, []string{"it", "a2", "it"}},
		"not in a diamond":                      {diamond, "it", []string{"top", "bottom"}, nil},
		"but through one":                       {diamond, "bottom", []string{"top"}, []string{"bottom", "top", "left", "bottom"}},
		"not through a circle of others":        {board{}.add("a1", todo, "a2").add("a2", todo, "a1"), "it", []string{"a1"}, nil},
		"by what is wished, not by what stands": {board{}.add("it", todo, "a1").add("a1", todo, "it"), "it", nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, deps.Cycle(tc.name, tc.dependsOn, tc.board.find)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestALongChainIsFollowedToItsEnd(t *testing.T) {
	b := board{}
	const length = 5000
	for i := range length {
		next := fmt.Sprintf("a%d", i+1)
		if i == length-1 {
			next = "it"
		}
		b.add(fmt.Sprintf("a%d", i), v1alpha1.TaskTodo, next)
	}
	if got := deps.Cycle("it", []string{"a0"}, b.find); len(got) != length+2 {
		t.Errorf("the circle has %d tasks, want %d", len(got), length+2)
	}
}

// On random boards, the answer is a real circle, and there is one exactly when the task can be reached from what it depends
// on.
func TestCycleOnRandomBoards(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a seed makes the run repeatable
		b, n := board{}, 2+r.IntN(8)
		for i := range n {
			var on []string
			for range r.IntN(3) {
				on = append(on, fmt.Sprintf("t%d", r.IntN(n)))
			}
			b.add(fmt.Sprintf("t%d", i), v1alpha1.TaskTodo, on...)
		}
		got := deps.Cycle("t0", b["t0"].Spec.DependsOn, b.find)
		if want := reaches(b, b["t0"].Spec.DependsOn, "t0"); (got != nil) != want {
			t.Fatalf("seed %d: got %v, and a circle exists: %v", seed, got, want)
		}
		for i := range len(got) - 1 {
			if !slices.Contains(b[got[i]].Spec.DependsOn, got[i+1]) {
				t.Fatalf("seed %d: in %v, %s does not depend on %s", seed, got, got[i], got[i+1])
			}
		}
	}
}

// reaches says whether a task is among some tasks and what they depend on, by growing that set until it stands.
func reaches(b board, from []string, to string) bool {
	set := map[string]bool{}
	for grown := from; len(grown) > 0; {
		var next []string
		for _, n := range grown {
			if !set[n] {
				set[n] = true
				next = append(next, b[n].Spec.DependsOn...)
			}
		}
		grown = next
	}
	return set[to]
}
