// Package deps judges the dependencies of tasks. It looks at the present state of all blockers, never at events.
package deps

import (
	"slices"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// Lookup finds a task by name in the namespace of the task in question.
type Lookup func(name string) (*v1alpha1.Task, bool)

// Open gives the dependencies of a task that are not Done, in the order of the spec. A missing one counts as open: nobody
// can say that it was done.
func Open(t *v1alpha1.Task, find Lookup) []string {
	var open []string
	for _, name := range t.Spec.DependsOn {
		if b, ok := find(name); !ok || b.Status.State != v1alpha1.TaskDone {
			open = append(open, name)
		}
	}
	return open
}

// maxDepth of a chain of dependencies that is followed.
const maxDepth = 10000

// Cycle gives a chain of names from the task back to itself, nil when there is none, if the task had the given dependencies.
func Cycle(name string, dependsOn []string, find Lookup) []string {
	visited := map[string]bool{}
	var walk func(at string, next []string, path []string) []string
	walk = func(at string, next []string, path []string) []string {
		path = append(path, at)
		for _, n := range next {
			if n == name {
				return append(slices.Clone(path), name)
			}
			if visited[n] || len(visited) > maxDepth {
				continue
			}
			visited[n] = true
			if t, ok := find(n); ok {
				if c := walk(n, t.Spec.DependsOn, path); c != nil {
					return c
				}
			}
		}
		return nil
	}
	return walk(name, dependsOn, nil)
}

// State says what a task's dependencies come to, as a condition reason, and which of them matter.
func State(t *v1alpha1.Task, find Lookup) (reason string, names []string) {
	if len(t.Spec.DependsOn) == 0 {
		return v1alpha1.NoDependenciesReason, nil
	}
	if c := Cycle(t.Name, t.Spec.DependsOn, find); c != nil {
		return v1alpha1.DependencyCycleReason, c
	}
	open := Open(t, find)
	if len(open) == 0 {
		return v1alpha1.DependenciesDoneReason, nil
	}
	var missing, failed []string
	for _, n := range open {
		b, ok := find(n)
		switch {
		case !ok:
			missing = append(missing, n)
		case b.Status.State == v1alpha1.TaskFailed || b.Status.State == v1alpha1.TaskCancelled:
			failed = append(failed, n)
		}
	}
	switch {
	case len(missing) > 0:
		return v1alpha1.BlockerMissingReason, missing
	case len(failed) > 0:
		return v1alpha1.BlockerFailedReason, failed
	default:
		return v1alpha1.WaitingReason, open
	}
}
