package faults

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// checkTime bounds the search for an order of one history.
const checkTime = 30 * time.Second

// objects of the load's tasks as they are at the API server now, by id.
func (l *load) objects() map[string]*v1alpha1.Task {
	l.t.Helper()
	var list v1alpha1.TaskList
	if err := l.api.List(context.Background(), &list, client.InNamespace(l.world.Namespace)); err != nil {
		l.t.Fatal(err)
	}
	found := map[string]*v1alpha1.Task{}
	for i := range list.Items {
		found[ids.ID(&list.Items[i])] = &list.Items[i]
	}
	return found
}

// lookAtTasks adds to each task's history how it ended.
func (l *load) lookAtTasks() {
	l.t.Helper()
	call := l.tasks.now()
	objects := l.objects()
	ret := l.tasks.now()
	for id, task := range objects {
		l.tasks.add(id, len(l.clients), call, ret, taskOp{kind: "look"}, seen(task))
	}
}

// seen gives what a look at a task tells.
func seen(task *v1alpha1.Task) taskAnswer {
	return taskAnswer{
		outcome: tasks.ToolState(task.Status.State), fence: task.Status.Epoch, holder: tasks.ClaimHolder(task),
	}
}

// checkTasks holds the history of each task against the model.
func (l *load) checkTasks() {
	l.t.Helper()
	names, _ := l.tasks.subjects()
	for _, id := range names {
		ops := l.tasks.of(id)
		if got := porcupine.CheckOperationsTimeout(taskModel.ToModel(), ops, checkTime); got != porcupine.Ok {
			l.t.Errorf("task %s: its history is %s:\n%s", id, got, describe(ops))
		}
	}
}

// describe writes a history for whoever has to understand it.
func describe(ops []porcupine.Operation) string {
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var out strings.Builder
	for _, op := range ops {
		end := "never"
		if op.Return != never {
			end = time.Duration(op.Return).Round(time.Millisecond).String()
		}
		fmt.Fprintf(&out, "  %s to %s by %d: %+v → %+v\n", time.Duration(op.Call).Round(time.Millisecond), end, op.ClientId,
			op.Input, op.Output)
	}
	return out.String()
}

// checkExpiries holds that no lease ran out sooner than its time after the last renewal that its holder was told of.
func (l *load) checkExpiries() {
	l.t.Helper()
	expired := 0
	for id, task := range l.objects() {
		for _, e := range task.Status.History {
			if e.Note != "the lease ran out" {
				continue
			}
			expired++
			earliest := l.lastSign(id, e.Epoch-1).Add(leaseTime)
			// The history keeps whole seconds.
			if e.At.Add(time.Second).Before(earliest) {
				l.t.Errorf("task %s was taken from its holder at %s, before its lease ran out at %s", id, e.At.Time, earliest)
			}
		}
	}
	l.t.Logf("%d leases ran out", expired)
}

// lastSign gives when the last claim or renewal under a fence was asked for that was answered well.
func (l *load) lastSign(task string, fence int64) time.Time {
	var last time.Time
	for _, op := range l.tasks.of(task) {
		in, out := op.Input.(taskOp), op.Output.(taskAnswer)
		claimed := in.kind == "claim" && out.fence == fence
		if renewed := in.kind == "renew" && in.fence == fence; out.outcome == "ok" && (claimed || renewed) {
			if at := l.tasks.wall(op.Call); at.After(last) {
				last = at
			}
		}
	}
	return last
}

// checkObjects holds the tasks at the API server against what clients were told, and the boards of all replicas against
// the tasks.
func (l *load) checkObjects() {
	l.t.Helper()
	objects := l.objects()
	titles := map[string]string{}
	for id, task := range objects {
		if other, twice := titles[task.Spec.Title]; twice {
			l.t.Errorf("%s was created twice: %s and %s", task.Spec.Title, other, id)
		}
		titles[task.Spec.Title] = id
	}
	for title, id := range l.created {
		if titles[title] != id {
			l.t.Errorf("%s was created as %s, and is %q at the API server", title, id, titles[title])
		}
	}
	for id, f := range l.finished {
		task := objects[id]
		if task == nil || task.Status.State != v1alpha1.TaskDone || task.Status.Record == nil ||
			task.Status.Record.Summary != f.summary || tasks.Holder(task.Status.Record.Plate, task.Status.Record.Session) != f.holder {
			l.t.Errorf("task %s was finished as %+v, and is %+v", id, f, task)
		}
	}
	for replica := range plane.Replicas {
		l.checkBoard(replica)
	}
}

// checkBoard compares a board with the tasks, of which some may run out meanwhile.
func (l *load) checkBoard(replica int) {
	l.t.Helper()
	s := l.world.At(replica, agents[0], "auditor")
	harness.Await(l.t, fmt.Sprintf("the board of replica %d to be that of the API server", replica), func() bool {
		board, objects := harness.Get[rooms.Board](l.t, s, "read_board", harness.Args{"room": l.room}), l.objects()
		shown := map[string]string{}
		for _, lane := range board.Lanes {
			for _, task := range lane.Tasks {
				shown[task.TaskID] = task.Status
			}
		}
		same := len(shown) == len(objects)
		for id, task := range objects {
			same = same && shown[id] == tasks.ToolState(task.Status.State)
		}
		return same
	})
}

// report tells what was measured.
func (l *load) report(k *killer) {
	_, taskOps := l.tasks.subjects()
	_, mentionOps := l.inboxes.subjects()
	l.t.Logf("%d kills: %v", len(k.kills), k.kills)
	l.t.Logf("%d calls answered, %d not delivered, %d of unknown outcome", l.calls.told.Load(), l.calls.unsent.Load(), l.calls.unknown.Load())
	l.t.Logf("%d tasks with %d operations, %d finished; %d messages; %d mentions with %d operations",
		len(l.created), taskOps, len(l.finished), len(l.messages), len(l.givens), mentionOps)
	for text, times := range l.notes {
		l.t.Logf("%d times while parts were down: %.300s", times, text)
	}
}
