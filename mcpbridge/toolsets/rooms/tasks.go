package rooms

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/deps"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// defaultOpenTasks of a room that states no limit.
const defaultOpenTasks = 10000

func (t *Toolset) createTask(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	name, digest := nameOf(a, args)
	if known, ok := t.view.Task(a.room.Namespace, name); ok {
		return t.replayed(a, digest, known)
	}
	task, err := t.newTask(ctx, a, args)
	if err == nil {
		err = t.mayCreate(a, task)
	}
	if err == nil {
		task.Name = name
		if digest != "" {
			task.Annotations = map[string]string{v1alpha1.RequestAnnotation: digest}
		}
		if err = t.api.Create(ctx, task); err == nil {
			t.wrote(ctx, "task", task)
			return t.show(a, task), nil
		}
	}
	// What this replica would refuse another one may have made, and the answer to this one's own write may be lost.
	_, refused := problem.As(err)
	if digest != "" && (refused || apierrors.IsAlreadyExists(err) || unknown(err)) {
		return t.createdBefore(ctx, a, name, digest, err)
	}
	return nil, creating(a, name, err)
}

func creating(a *access, name string, err error) error {
	if _, refused := problem.As(err); refused {
		return err
	}
	return fmt.Errorf("creating task %s/%s: %w", a.room.Namespace, name, err)
}

// nameOf gives the name that a task gets, and what its content comes to, empty without a key. The content is taken as the
// caller gave it: what a handle means may change between a call and its retry.
func nameOf(a *access, args toolset.Args) (name, digest string) {
	key := args.String("idempotency_key")
	if key == "" {
		return "task-" + strings.ToLower(ulid.Make().String()), ""
	}
	content := append([]string{
		args.String("title"), args.String("detail"), args.String("definition_of_done"), args.String("assignee"), args.String("type"),
		strconv.FormatInt(args.Int("order", 0), 10), strconv.FormatInt(args.Int("priority", 0), 10),
	}, args.Strings("depends_on")...)
	return ids.TaskName(a.caller.Plate, a.id, key), ids.Digest(content...)
}

// createdBefore gives the answer of a keyed create that was carried out before, or whose own answer was lost.
func (t *Toolset) createdBefore(ctx context.Context, a *access, name, digest string, cause error) (any, error) {
	known := &v1alpha1.Task{}
	if err := t.api.Get(ctx, client.ObjectKey{Namespace: a.room.Namespace, Name: name}, known); err != nil {
		return nil, creating(a, name, cause)
	}
	known.ManagedFields = nil
	t.view.Saw(known)
	return t.replayed(a, digest, known)
}

// replayed answers with the task that was made before. Names follow from keys, so somebody who writes tasks with kubectl may have
// put one of theirs there.
func (t *Toolset) replayed(a *access, digest string, known *v1alpha1.Task) (any, error) {
	mine := known.Spec.Creator != nil && known.Spec.Creator.Plate == a.caller.Plate
	if !mine || known.Annotations[v1alpha1.RequestAnnotation] != digest {
		return nil, problem.New(problem.IdempotencyConflict,
			"this idempotency_key was used for another task: use a new key for a new task")
	}
	out := t.show(a, known)
	out.Duplicate = true
	return out, nil
}

// newTask makes the task of the arguments.
func (t *Toolset) newTask(ctx context.Context, a *access, args toolset.Args) (*v1alpha1.Task, error) {
	plate, err := assigneeOf(a, args.String("assignee"))
	if err != nil {
		return nil, err
	}
	for _, field := range []string{"title", "definition_of_done"} {
		if strings.TrimSpace(args.String(field)) == "" {
			return nil, problem.Invalid(field, "may not be blank")
		}
	}
	dependsOn, err := t.dependencies(ctx, a, args.Strings("depends_on"))
	if err != nil {
		return nil, err
	}
	task := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.room.Namespace},
		Spec: v1alpha1.TaskSpec{
			RoomRef: v1alpha1.RoomReference{Name: a.room.Name}, Title: args.String("title"), Detail: args.String("detail"),
			DefinitionOfDone: args.String("definition_of_done"), Assignee: plate, Order: args.Int("order", 0),
			Priority: int32(args.Int("priority", 0)), DependsOn: dependsOn, //nolint:gosec // 0 to 100
			Type:    args.String("type"),
			Creator: &v1alpha1.TaskCreator{Plate: a.caller.Plate},
		},
	}
	return task, nil
}

// dependencies gives the names of the tasks that a task shall wait for. They must be of the same room.
func (t *Toolset) dependencies(ctx context.Context, a *access, taskIDs []string) ([]string, error) {
	var names []string
	for _, id := range taskIDs {
		_, task, err := t.task(ctx, a.caller, id)
		if err != nil || task.Namespace != a.room.Namespace || task.Spec.RoomRef.Name != a.room.Name {
			return nil, problem.Invalid("depends_on", "names no task of this room: %q", tasks.Truncate(id, 64))
		}
		if !slices.Contains(names, task.Name) {
			names = append(names, task.Name)
		}
	}
	return names, nil
}

func (t *Toolset) mayCreate(a *access, task *v1alpha1.Task) error {
	if err := a.writable(); err != nil {
		return err
	}
	if err := mayAssign(a, task.Spec.Assignee); err != nil {
		return err
	}
	limit, open := int32(defaultOpenTasks), int32(0)
	if a.room.Spec.Limits != nil && a.room.Spec.Limits.OpenTasks > 0 {
		limit = a.room.Spec.Limits.OpenTasks
	}
	if n := t.view.TaskCount(a.room); int64(n) >= int64(limit) {
		for _, other := range t.view.Tasks(a.room) {
			if !other.Spec.Archived {
				open++
			}
		}
	}
	if open >= limit {
		return problem.New(problem.TooLarge, "the room holds %d tasks and may hold %d: archive finished ones first", open, limit)
	}
	return nil
}

// mayAssign says whether the caller may assign a task to an agent: to those of other owners only with the scope Invoke.
func mayAssign(a *access, plate string) error {
	target := a.members.Agents[plate]
	if target.Role == v1alpha1.RoleViewer {
		return problem.Invalid("assignee", "names a viewer of this room, who cannot work on tasks")
	}
	if target.Agent.Spec.Owner != a.caller.Agent.Spec.Owner && !a.caller.Has(v1alpha1.ScopeInvoke) {
		return problem.New(problem.ForbiddenScope, "assigning a task to another owner's agent needs the scope INVOKE")
	}
	return nil
}

func (t *Toolset) updateTask(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, task, err := t.writableTask(ctx, c, args.String("task_id"))
	if err != nil {
		return nil, err
	}
	for _, field := range []string{"title", "definition_of_done"} {
		if args.Has(field) && strings.TrimSpace(args.String(field)) == "" {
			return nil, problem.Invalid(field, "may not be blank")
		}
	}
	var dependsOn []string
	if args.Has("depends_on") {
		if dependsOn, err = t.dependencies(ctx, a, args.Strings("depends_on")); err != nil {
			return nil, err
		}
	}
	done, err := t.changeSpec(ctx, task, func(task *v1alpha1.Task) (*v1alpha1.Task, error) {
		if actor := t.actor(a, task); !actor.Creator && !actor.Admin {
			return nil, problem.New(problem.Forbidden, "only the creator of the task or an admin of the room may edit it")
		}
		next := task.DeepCopy()
		if err := t.edit(next, args, dependsOn); err != nil {
			return nil, err
		}
		if specEqual(&task.Spec, &next.Spec) {
			return nil, nil
		}
		return next, t.repropose(a, task, next)
	})
	if err != nil {
		return nil, err
	}
	return t.show(a, done), nil
}

func (t *Toolset) edit(next *v1alpha1.Task, args toolset.Args, dependsOn []string) error {
	if args.Has("title") {
		next.Spec.Title = args.String("title")
	}
	if args.Has("detail") {
		next.Spec.Detail = args.String("detail")
	}
	if args.Has("definition_of_done") {
		next.Spec.DefinitionOfDone = args.String("definition_of_done")
	}
	next.Spec.Order = args.Int("order", next.Spec.Order)
	next.Spec.Priority = int32(args.Int("priority", int64(next.Spec.Priority))) //nolint:gosec // 0 to 100
	if args.Has("depends_on") {
		if cycle := deps.Cycle(next.Name, dependsOn, t.lookup(next.Namespace)); cycle != nil {
			return problem.Invalid("depends_on", "would make a cycle: %s", strings.Join(t.taskIDs(next.Namespace, cycle), " → "))
		}
		next.Spec.DependsOn = dependsOn
	}
	return nil
}

// repropose makes an edit of what an assignee is asked to do a proposal of whoever made it: nobody puts other words under what
// was agreed to, or under the trust that another has earned.
func (t *Toolset) repropose(a *access, before, next *v1alpha1.Task) error {
	if consent.Terms(&before.Spec) == consent.Terms(&next.Spec) {
		return nil
	}
	next.Spec.Decision = nil
	plate, assigned := t.assignee(next)
	if !assigned {
		return nil
	}
	next.Spec.AssignedBy = &v1alpha1.TaskCreator{Plate: a.caller.Plate}
	if _, member := a.members.Agents[plate]; !member {
		return nil // Whoever assigns it to somebody who is here is judged then.
	}
	return mayAssign(a, plate)
}

func specEqual(x, y *v1alpha1.TaskSpec) bool {
	return x.Title == y.Title && x.Detail == y.Detail && x.DefinitionOfDone == y.DefinitionOfDone && x.Order == y.Order &&
		x.Priority == y.Priority && slices.Equal(x.DependsOn, y.DependsOn)
}

func (t *Toolset) setStatus(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, task, err := t.writableTask(ctx, c, args.String("task_id"))
	if err != nil {
		return nil, err
	}
	to, _ := tasks.ParseToolState(args.String("status"))
	if to == v1alpha1.TaskDoing {
		return t.startDoing(ctx, a, task, args)
	}
	change := tasks.Change{
		To: to, Fence: args.IntPtr("fence"), Summary: args.String("summary"), Artifacts: args.Strings("artifacts"),
		Next: args.String("next"), Reason: args.String("reason"), ResultRef: args.String("result_ref"),
	}
	var then *problem.Problem
	done, err := t.changeStatus(ctx, task, func(task *v1alpha1.Task) (*v1alpha1.TaskStatus, error) {
		out, p := tasks.SetStatus(task, t.actor(a, task), change, t.clock.Now())
		if p != nil {
			return nil, p
		}
		then = out.Then
		return out.Status, nil
	})
	switch {
	case err != nil:
		return nil, err
	case then != nil:
		return nil, then
	}
	return t.show(a, done), nil
}

// startDoing is a claim that gives a task instead of a lease. Losing it is an error here, as the contract has no other place
// for it.
func (t *Toolset) startDoing(ctx context.Context, a *access, task *v1alpha1.Task, args toolset.Args) (any, error) {
	if fence := args.IntPtr("fence"); fence != nil && *fence != task.Status.Epoch {
		return nil, tasks.Lost(task)
	}
	done, result, err := t.claim(ctx, a, task)
	if err != nil {
		return nil, err
	}
	switch result.Lost {
	case "":
		return t.show(a, done), nil
	case tasks.LostAlreadyClaimed:
		return nil, problem.New(problem.Conflict, "the task is already claimed: leave it alone").
			WithHolder(tasks.ClaimHolder(done))
	case tasks.LostBlockedByDeps:
		return nil, problem.New(problem.Conflict, "the task waits for other tasks: %s",
			strings.Join(t.taskIDs(done.Namespace, deps.Open(done, t.lookup(done.Namespace))), ", "))
	default:
		return nil, problem.New(problem.Conflict, "a task that is %s cannot be claimed", tasks.ToolState(done.Status.State)).
			WithHint("%s", tasks.AfterTheEnd(done))
	}
}

func (t *Toolset) releaseTask(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, task, err := t.writableTask(ctx, c, args.String("task_id"))
	if err != nil {
		return nil, err
	}
	done, err := t.changeStatus(ctx, task, func(task *v1alpha1.Task) (*v1alpha1.TaskStatus, error) {
		status, p := tasks.Release(task, t.actor(a, task), args.IntPtr("fence"), t.clock.Now())
		if p != nil {
			return nil, p
		}
		return status, nil
	})
	if err != nil {
		return nil, err
	}
	return t.show(a, done), nil
}

// decide carries out accept_task and reject_task.
func (t *Toolset) decide(verdict v1alpha1.Verdict) func(context.Context, *toolset.Caller, toolset.Args) (any, error) {
	return func(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
		a, task, err := t.writableTask(ctx, c, args.String("task_id"))
		if err != nil {
			return nil, err
		}
		decider := consent.Decider{
			Owner: c.Agent.Spec.Owner, Delegated: slices.Contains(c.Agent.Spec.Delegations, v1alpha1.DelegationConsent),
			Terms: args.String("terms"),
		}
		done, err := t.changeStatus(ctx, task, func(task *v1alpha1.Task) (*v1alpha1.TaskStatus, error) {
			decided, changed, p := consent.Decide(task, t.proposal(a, task), decider, verdict, args.String("reason"), t.clock.Now())
			if p != nil {
				return nil, p
			}
			if !changed {
				return nil, nil
			}
			status := task.Status.DeepCopy()
			status.Consent = &decided
			return status, nil
		})
		if err != nil {
			return nil, err
		}
		return t.show(a, done), nil
	}
}
