package rooms

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/deps"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

func (t *Toolset) readBoard(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	assignee := args.String("assignee")
	if assignee != "" {
		one, _, p := handles.Resolve("assignee", assignee, a.members.Handles)
		if p != nil {
			return nil, p
		}
		assignee = one.Plate
	}
	return t.board(a, assignee, args.String("status"))
}

// show gives a task as the tools do.
func (t *Toolset) show(a *access, task *v1alpha1.Task) Task {
	now := t.clock.Now()
	plate, assigned := t.assignee(task)
	out := Task{
		TaskID: ids.ID(task), Room: a.id, Title: task.Spec.Title, Detail: task.Spec.Detail,
		DefinitionOfDone: task.Spec.DefinitionOfDone, Assignee: plate, AssigneeAlias: t.aliasOfPlate(plate),
		Creator: creatorOf(task), Order: task.Spec.Order, Priority: task.Spec.Priority,
		Status: tasks.ToolState(task.Status.State), Reason: task.Status.Reason, Archived: task.Spec.Archived,
		DependsOn: []string{}, BlockedBy: []string{}, Lease: t.lease(a, task, now),
		CreatedAt: stamp(ids.Created(task).Time), UpdatedAt: stamp(tasks.UpdatedAt(task)),
	}
	if assigned && plate == "" {
		out.Assignee = task.Spec.Assignee
	}
	settled, _ := consent.Settle(task, t.proposal(a, task), now)
	out.Consent, out.ConsentReason = strings.ToLower(string(settled.State)), settled.Reason
	if len(task.Spec.DependsOn) > 0 {
		out.DependsOn = t.taskIDs(task.Namespace, task.Spec.DependsOn)
		out.BlockedBy = t.taskIDs(task.Namespace, deps.Open(task, t.lookup(task.Namespace)))
	}
	if r := task.Status.Record; r != nil {
		out.Record, out.ResultRef = showRecord(out.TaskID, r), r.ResultRef
	}
	return out
}

func (t *Toolset) lookup(namespace string) deps.Lookup {
	return func(name string) (*v1alpha1.Task, bool) { return t.view.Task(namespace, name) }
}

// taskIDs gives the ids of tasks by name; one that does not exist is given by its name.
func (t *Toolset) taskIDs(namespace string, names []string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		if task, ok := t.view.Task(namespace, name); ok {
			name = ids.ID(task)
		}
		out = append(out, name)
	}
	return out
}

func (t *Toolset) aliasOfPlate(plate string) string {
	if agent, ok := t.view.AgentByPlate(plate); ok {
		return aliasOf(agent)
	}
	return ""
}

func creatorOf(task *v1alpha1.Task) string {
	c := task.Spec.Creator
	switch {
	case c == nil:
		return ""
	case c.Plate != "":
		return c.Plate
	default:
		return c.User
	}
}

func showRecord(taskID string, r *v1alpha1.TaskRecord) *Record {
	out := &Record{
		TaskID: taskID, Plate: r.Plate, Status: tasks.ToolState(r.State), Summary: r.Summary, Artifacts: r.Artifacts,
		Next: r.Next, Reason: r.Reason, ResultRef: r.ResultRef, At: stamp(r.At.Time), Late: r.Late,
	}
	if out.Artifacts == nil {
		out.Artifacts = []string{}
	}
	return out
}

// lease gives who holds a task and for how long, nil when nobody does. Until the controller has made the Lease it counts
// from the claim.
func (t *Toolset) lease(a *access, task *v1alpha1.Task, now time.Time) *Lease {
	claim := task.Status.Claim
	if claim == nil {
		return nil
	}
	expires := claim.AcquiredAt.Add(leases.Duration(task, a.room))
	if l, ok := t.view.TaskLease(task); ok && leases.Current(l, task) {
		expires = now.Add(t.view.LeaseRemaining(l))
	}
	return &Lease{
		Holder: claim.Holder, SessionID: claim.Session, Fence: task.Status.Epoch, ExpiresAt: stamp(expires),
		ExpiresInSeconds: max(0, int64(expires.Sub(now)/time.Second)),
		Stale:            meta.IsStatusConditionPresentAndEqual(task.Status.Conditions, v1alpha1.LeaseLiveCondition, metav1.ConditionFalse),
	}
}

func (t *Toolset) archiveTask(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, task, err := t.writableTask(ctx, c, args.String("task_id"))
	if err != nil {
		return nil, err
	}
	done, err := t.changeSpec(ctx, task, func(task *v1alpha1.Task) (*v1alpha1.Task, error) {
		if task.Spec.Archived {
			return nil, nil
		}
		if actor := t.actor(a, task); !actor.Creator && !actor.Admin && !actor.Assignee {
			return nil, problem.New(problem.Forbidden,
				"only the assignee, the creator of the task or an admin of the room may archive it")
		}
		if !tasks.Terminal(task.Status.State) {
			return nil, problem.New(problem.Conflict, "only a done, failed or cancelled task may be archived: this one is %s",
				tasks.ToolState(task.Status.State))
		}
		next := task.DeepCopy()
		next.Spec.Archived = true
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	return Archived{TaskID: ids.ID(done), Archived: true}, nil
}
