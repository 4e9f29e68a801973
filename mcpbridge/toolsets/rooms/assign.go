package rooms

import (
	"context"
	"encoding/json"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// maxAssignRequests that a task remembers for retries.
const maxAssignRequests = 8

// assignRequest is a keyed assign_task that was carried out.
type assignRequest struct {
	Key     string `json:"key"`
	Payload string `json:"payload"`
}

func requestsOf(task *v1alpha1.Task) []assignRequest {
	var list []assignRequest
	// What somebody else wrote into the annotation counts as nothing remembered.
	_ = json.Unmarshal([]byte(task.Annotations[v1alpha1.AssignRequestsAnnotation]), &list)
	return list
}

func remember(task *v1alpha1.Task, r assignRequest) {
	if r.Key == "" {
		return
	}
	list := append(requestsOf(task), r)
	if n := len(list); n > maxAssignRequests {
		list = list[n-maxAssignRequests:]
	}
	text, err := json.Marshal(list)
	if err != nil {
		return
	}
	if task.Annotations == nil {
		task.Annotations = map[string]string{}
	}
	task.Annotations[v1alpha1.AssignRequestsAnnotation] = string(text)
}

// known says whether a keyed request was carried out before, and gives a problem when it had other content.
func known(task *v1alpha1.Task, r assignRequest) (bool, *problem.Problem) {
	if r.Key == "" {
		return false, nil
	}
	for _, old := range requestsOf(task) {
		if old.Key != r.Key {
			continue
		}
		if old.Payload != r.Payload {
			return false, problem.New(problem.IdempotencyConflict,
				"this idempotency_key was used for another assignment: use a new key for a new one")
		}
		return true, nil
	}
	return false, nil
}

func (t *Toolset) assignTask(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, task, err := t.task(ctx, c, args.String("task_id"))
	if err != nil {
		return nil, err
	}
	handle := args.String("assignee")
	request := assignRequest{Payload: ids.Digest(handle)}
	if key := args.String("idempotency_key"); key != "" {
		request.Key = ids.Digest("assign_task", c.Plate, key)
	}
	done, err := t.changeSpec(ctx, task, func(task *v1alpha1.Task) (*v1alpha1.Task, error) {
		return t.reassigned(a, task, handle, request)
	})
	if err != nil {
		return nil, err
	}
	if done, err = t.changeStatus(ctx, done, func(task *v1alpha1.Task) (*v1alpha1.TaskStatus, error) {
		if status := t.afterAssign(a, task); status != nil {
			return status, nil
		}
		return nil, errViewSuffices
	}); err != nil {
		return nil, err
	}
	return t.show(a, done), nil
}

// reassigned gives the task with its new assignee, nil when the same request was carried out before.
func (t *Toolset) reassigned(a *access, task *v1alpha1.Task, handle string, r assignRequest) (*v1alpha1.Task, error) {
	if done, p := known(task, r); p != nil || done {
		if p != nil {
			return nil, p
		}
		return nil, nil
	}
	if err := a.writable(); err != nil {
		return nil, err
	}
	plate, err := assigneeOf(a, handle)
	if err != nil {
		return nil, err
	}
	if actor := t.actor(a, task); !actor.Creator && !actor.Admin {
		return nil, problem.New(problem.Forbidden, "only the creator of the task or an admin of the room may assign it")
	}
	if tasks.Terminal(task.Status.State) {
		return nil, problem.New(problem.Conflict, "the task is %s: reopen it with set_status todo before assigning it",
			tasks.ToolState(task.Status.State))
	}
	if err := mayAssign(a, plate); err != nil {
		return nil, err
	}
	next := task.DeepCopy()
	next.Spec.Assignee, next.Spec.Decision = plate, nil
	next.Spec.AssignedBy = &v1alpha1.TaskCreator{Plate: a.caller.Plate}
	remember(next, r)
	return next, nil
}

// assigneeOf gives the plate of the agent to assign a task to.
func assigneeOf(a *access, handle string) (string, error) {
	target, h, p := handles.Resolve("assignee", handle, a.members.Handles)
	switch {
	case p != nil:
		return "", p
	case h.Session != "":
		return "", problem.Invalid("assignee", "may not name a session: any instance of the agent may claim the task")
	}
	return target.Plate, nil
}

// afterAssign gives the status that follows from an assignment: a holder who is no longer the assignee loses the task, and
// what was rejected is proposed anew. The controller would do the same a moment later.
func (t *Toolset) afterAssign(a *access, task *v1alpha1.Task) *v1alpha1.TaskStatus {
	now := t.clock.Now()
	plate, _ := t.assignee(task)
	status, changed := task.Status.DeepCopy(), false
	if c := task.Status.Claim; c != nil && c.Holder != plate {
		if ended, ok := tasks.End(task, task.Status.Epoch, v1alpha1.ClaimRevoked, a.caller.Plate, "assigned to another agent", now); ok {
			status, changed = &ended, true
		}
	}
	reopened := task.DeepCopy()
	reopened.Status = *status
	if c := status.Consent; c != nil && c.State == v1alpha1.ConsentRejected {
		reopened.Status.Consent = nil
	}
	if settled, differs := consent.Settle(reopened, t.proposal(a, reopened), now); differs {
		status.Consent, changed = &settled, true
	}
	if !changed {
		return nil
	}
	return status
}
