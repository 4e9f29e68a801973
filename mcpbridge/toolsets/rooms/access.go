package rooms

import (
	"context"
	"strings"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

// access is a room as its member sees it.
type access struct {
	caller  *toolset.Caller
	room    *v1alpha1.Room
	id      string
	members *view.Members
	role    v1alpha1.RoomRole
}

func plateOf(a *v1alpha1.Agent) string { return ids.Plate(a) }

// appearance is how long a tool waits for an object with a young id to appear, as another replica may just have made it.
const appearance = 2 * time.Second

// await looks for something by its id, and looks again while it may be on its way. Absent and hidden things take the same
// path and the same time. While the view may be behind, it does not say that something is not there.
func await[T any](ctx context.Context, t *Toolset, id, topic string, absent *problem.Problem, find func() (T, bool)) (T, error) {
	v, ok := seek(ctx, t, id, topic, find)
	switch {
	case ok:
		return v, nil
	case t.view.Behind():
		return v, problem.New(problem.Unavailable, "this replica is catching up with the cluster: try again")
	}
	return v, absent
}

func seek[T any](ctx context.Context, t *Toolset, id, topic string, find func() (T, bool)) (T, bool) {
	v, ok := find()
	if ok {
		return v, true
	}
	created, valid := ids.CreatedAt(id)
	if age := t.clock.Since(created); !valid || age > view.RecentID || age < -view.RecentID {
		return v, false
	}
	ctx, cancel := context.WithTimeout(ctx, appearance)
	defer cancel()
	changed := t.view.Hub.Listen(ctx, topic)
	for {
		if v, ok = find(); ok {
			return v, true
		}
		select {
		case <-ctx.Done():
			return v, false
		case <-changed:
		}
	}
}

// room gives a room to a member of it. Everybody else is told what they would be told if there were none.
func (t *Toolset) room(ctx context.Context, c *toolset.Caller, id string) (*access, error) {
	if !ids.Valid(id) {
		return nil, problem.Invalid("room", "must be a room id (01K…) and not a name").WithHint("list_rooms gives the ids")
	}
	absent := problem.New(problem.NotFound, "there is no room %s that you are a member of", id).
		WithHint("list_rooms gives the rooms you are in")
	return await(ctx, t, id, view.MembersTopic, absent, func() (*access, bool) { return t.visible(c, id) })
}

func (t *Toolset) visible(c *toolset.Caller, id string) (*access, bool) {
	room, ok := t.view.RoomByID(id)
	if !ok {
		return nil, false
	}
	return t.member(c, room)
}

func (t *Toolset) member(c *toolset.Caller, room *v1alpha1.Room) (*access, bool) {
	members := t.view.Members(room)
	me, ok := members.Agents[c.Plate]
	if !ok {
		return nil, false
	}
	return &access{caller: c, room: room, id: ids.ID(room), members: members, role: me.Role}, true
}

// writable refuses what a viewer, or anybody in a room that is not active, may not do.
func (a *access) writable() error {
	if a.role == v1alpha1.RoleViewer {
		return problem.New(problem.Forbidden, "you are a viewer of this room: you may read and not write")
	}
	if a.room.Spec.State != v1alpha1.RoomActive && a.room.Spec.State != "" {
		return problem.New(problem.RoomNotActive, "the room is %s: nothing may be written to it",
			strings.ToLower(string(a.room.Spec.State)))
	}
	return nil
}

// task gives a task to a member of its room.
func (t *Toolset) task(ctx context.Context, c *toolset.Caller, id string) (*access, *v1alpha1.Task, error) {
	if !ids.Valid(id) {
		return nil, nil, problem.Invalid("task_id", "must be a task id (01K…)").WithHint("read_board gives the ids")
	}
	type found struct {
		access *access
		task   *v1alpha1.Task
	}
	absent := problem.New(problem.NotFound, "there is no task %s in a room that you are a member of", id).
		WithHint("read_board gives the tasks of a room")
	f, err := await(ctx, t, id, view.TasksTopic, absent, func() (found, bool) {
		task, ok := t.view.TaskByID(id)
		if !ok {
			return found{}, false
		}
		room, ok := t.view.Room(task.Namespace, task.Spec.RoomRef.Name)
		if !ok {
			return found{}, false
		}
		a, ok := t.member(c, room)
		return found{a, task}, ok
	})
	if err != nil {
		return nil, nil, err
	}
	return f.access, f.task, nil
}

// writableTask gives a task to a member who may write.
func (t *Toolset) writableTask(ctx context.Context, c *toolset.Caller, id string) (*access, *v1alpha1.Task, error) {
	a, task, err := t.task(ctx, c, id)
	if err != nil {
		return nil, nil, err
	}
	if err := a.writable(); err != nil {
		return nil, nil, err
	}
	return a, task, nil
}

// actor says what the caller is to a task.
func (t *Toolset) actor(a *access, task *v1alpha1.Task) tasks.Actor {
	plate, assigned := t.assignee(task)
	return tasks.Actor{
		Plate: a.caller.Plate, Session: a.caller.Session, Admin: a.role == v1alpha1.RoleAdmin,
		Creator:  task.Spec.Creator != nil && task.Spec.Creator.Plate == a.caller.Plate,
		Assignee: assigned && plate == a.caller.Plate,
	}
}

// assignee gives the plate of a task's assignee, empty when the agent does not exist, and whether anybody is assigned.
func (t *Toolset) assignee(task *v1alpha1.Task) (plate string, assigned bool) {
	return t.view.Assignee(task)
}

// proposal gives what consent is judged by.
func (t *Toolset) proposal(a *access, task *v1alpha1.Task) consent.Proposal {
	return t.view.Proposal(a.room, task)
}
