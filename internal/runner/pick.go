package runner

import (
	"cmp"
	"slices"
	"time"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

// The states of a task as tools name them.
const (
	statusTodo    = "todo"
	statusDoing   = "doing"
	statusDone    = "done"
	statusFailed  = "failed"
	statusBlocked = "blocked"
)

// Tries remembers the tasks that were tried without success. It is not safe for concurrent use.
type Tries struct {
	backoff Backoff
	waiting map[string]*attempts
}

// NewTries makes an empty memory.
func NewTries(b Backoff) *Tries { return &Tries{backoff: b, waiting: map[string]*attempts{}} }

// Attempt gives the number of the next try of a task, from 1.
func (t *Tries) Attempt(id string) int {
	if a := t.waiting[id]; a != nil {
		return a.failed + 1
	}
	return 1
}

// Failed notes a try without success and gives how long the task waits.
func (t *Tries) Failed(id string, now time.Time, chance float64) time.Duration {
	a := t.of(id, now)
	a.failed++
	return t.putOff(a, a.failed, now, chance)
}

// Passed puts off a task that could not be had, without counting it as a try, and gives for how long.
func (t *Tries) Passed(id string, now time.Time, chance float64) time.Duration {
	a := t.of(id, now)
	a.passed++
	return t.putOff(a, a.passed, now, chance)
}

func (t *Tries) of(id string, now time.Time) *attempts {
	a := t.waiting[id]
	if a == nil {
		makeRoom(t.waiting, now)
		a = &attempts{}
		t.waiting[id] = a
	}
	return a
}

func (t *Tries) putOff(a *attempts, times int, now time.Time, chance float64) time.Duration {
	delay := t.backoff.Delay(times, chance)
	a.due, a.touched = now.Add(delay), now
	return delay
}

// Done forgets a task.
func (t *Tries) Done(id string) { delete(t.waiting, id) }

// Due gives when the next task is due, and false when none waits.
func (t *Tries) Due(now time.Time) (time.Time, bool) { return nextDue(t.waiting, now) }

// Pick gives the tasks that may be claimed now, the one to claim first in front: the most urgent, then by their place in the
// lane, then the oldest. With unassigned, those that nobody is assigned are among them.
func (t *Tries) Pick(list []rooms.Task, plate string, unassigned bool, now time.Time) []rooms.Task {
	var ready []rooms.Task
	for i := range list {
		task := &list[i]
		mine := task.Assignee == plate || (unassigned && task.Assignee == "")
		a := t.waiting[task.TaskID]
		if mine && claimable(task) && (a == nil || !now.Before(a.due)) {
			ready = append(ready, *task)
		}
	}
	slices.SortStableFunc(ready, func(x, y rooms.Task) int {
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(x.Order, y.Order),
			cmp.Compare(x.CreatedAt, y.CreatedAt), cmp.Compare(x.TaskID, y.TaskID))
	})
	return ready
}

func claimable(t *rooms.Task) bool {
	return t.Status == statusTodo && !t.Archived && len(t.BlockedBy) == 0 &&
		(t.Consent == consentAuto || t.Consent == consentAccepted)
}

// HeldBy gives the tasks of a list that an instance holds.
func HeldBy(list []rooms.Task, plate, session string) []rooms.Task {
	var held []rooms.Task
	for i := range list {
		l := list[i].Lease
		if list[i].Status == statusDoing && l != nil && l.Holder == plate && l.SessionID == session {
			held = append(held, list[i])
		}
	}
	return held
}

// Finished says whether a task that is not held any more was brought to its end by the command itself, as an agent does that
// talks to the rooms on its own. It is for a holder whose lease cannot have run out: nobody but the holder can do that then.
func Finished(task *rooms.Task, plate string) bool {
	r := task.Record
	return r != nil && r.Plate == plate && r.Status == task.Status &&
		(task.Status == statusDone || task.Status == statusFailed || task.Status == statusBlocked)
}

// Work is what a command of `rooms work` reads, as one JSON document: the task, and what belongs to this try. Fields
// may be added, never dropped or renamed.
type Work struct {
	rooms.Task

	// RoomName is the name of the room that people see.
	RoomName string `json:"room_name"`
	// Fence is the fencing token of the claim: systems that are told of it can refuse what an earlier holder still does.
	Fence int64 `json:"fence"`
	// Attempt counts how often this process has run the command for the task, from 1.
	Attempt int `json:"attempt"`
	// Me is the agent that works.
	Me Self `json:"me"`
}
