package task

import (
	"testing"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/test/testenv"
)

// finish moves a task to an end as its creator or holder would.
func (s *stage) finish(name string, to v1alpha1.TaskState) {
	s.Helper()
	t := s.task(name)
	if to == v1alpha1.TaskDone || to == v1alpha1.TaskFailed {
		t = s.claim(name, "cc", "s1")
	}
	out, p := tasks.SetStatus(t, tasks.Actor{Plate: s.plate("cc"), Session: "s1", Creator: true},
		tasks.Change{To: to, Summary: "x", Reason: "because"}, s.clock.Now())
	if p != nil {
		s.Fatal(p)
	}
	t.Status = *out.Status
	s.must(s.client.Status().Update(s.Context(), t))
}

func (s *stage) wantDependencies(name, want string) {
	s.Helper()
	if got := conditionsOf(s.settle(name))[v1alpha1.DependenciesMetCondition]; got != want {
		s.Errorf("%s: DependenciesMet is %s, want %s", name, got, want)
	}
}

func TestDependencies(t *testing.T) {
	s := newStage(t)
	s.create(testenv.Task(s.ns, "lab", "first", "said"), testenv.Task(s.ns, "lab", "second", "said"))
	s.settle("first")
	s.settle("second")
	work := testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], s.agents["dd"])
	work.Spec.DependsOn = []string{"first", "second", "third"}
	s.create(work)

	s.wantDependencies("first", "True NoDependencies")
	s.wantDependencies("work", "False BlockerMissing")
	s.create(testenv.Task(s.ns, "lab", "third", "said"))
	s.settle("third")
	s.wantDependencies("work", "False Waiting")
	s.finish("first", v1alpha1.TaskDone)
	s.wantDependencies("work", "False Waiting")
	s.finish("second", v1alpha1.TaskFailed)
	s.wantDependencies("work", "False BlockerFailed")
	s.update("work", func(t *v1alpha1.Task) { t.Spec.DependsOn = []string{"first", "third"} })
	s.wantDependencies("work", "False Waiting")
	s.finish("third", v1alpha1.TaskCancelled)
	s.wantDependencies("work", "False BlockerFailed")
	s.wantPosted("is assigned to → dd/work")

	// The one that was cancelled is opened again and done.
	s.finish("third", v1alpha1.TaskTodo)
	s.wantDependencies("work", "False Waiting")
	s.finish("third", v1alpha1.TaskDone)
	s.wantDependencies("work", "True DependenciesDone")
	s.wantPosted("is assigned to → dd/work", "waits for nothing any more → dd/work")
}

func TestDependencyCycle(t *testing.T) {
	s := newStage(t)
	for name, on := range map[string]string{"a": "b", "b": "c", "c": ""} {
		task := testenv.Task(s.ns, "lab", name, "said")
		if on != "" {
			task.Spec.DependsOn = []string{on}
		}
		s.create(task)
	}
	s.wantDependencies("a", "False Waiting")
	s.update("c", func(t *v1alpha1.Task) { t.Spec.DependsOn = []string{"a"} })
	for _, name := range []string{"a", "b", "c"} {
		s.wantDependencies(name, "False DependencyCycle")
	}
	s.update("c", func(t *v1alpha1.Task) { t.Spec.DependsOn = nil })
	for _, name := range []string{"a", "b"} {
		s.wantDependencies(name, "False Waiting")
	}
}
