package runner

import (
	"context"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// give makes a task for the agent and gives its id.
func (s *scene) give(do script, more ...harness.Args) string {
	s.t.Helper()
	args := harness.Args{
		"room": s.room, "title": "task", "definition_of_done": "it is done", "assignee": s.Plates["hand"], "detail": do.String(),
	}
	for _, m := range more {
		maps.Copy(args, m)
	}
	return harness.Get[rooms.Task](s.t, s.boss, "create_task", args).TaskID
}

// stored gives a task as the API server has it.
func (s *scene) stored(id string) *v1alpha1.Task {
	s.t.Helper()
	var list v1alpha1.TaskList
	if err := plane.Client.List(context.Background(), &list, client.InNamespace(s.Namespace)); err != nil {
		s.t.Fatal(err)
	}
	for i := range list.Items {
		if ids.ID(&list.Items[i]) == id {
			return &list.Items[i]
		}
	}
	s.t.Fatalf("there is no task %s", id)
	return nil
}

func (s *scene) state(id string) v1alpha1.TaskState {
	s.t.Helper()
	return s.stored(id).Status.State
}

func (s *scene) awaitState(id string, limit time.Duration, want v1alpha1.TaskState) *v1alpha1.Task {
	s.t.Helper()
	harness.AwaitFor(s.t, limit, "task "+id+" to be "+string(want), func() bool { return s.state(id) == want })
	return s.stored(id)
}

func (s *scene) awaitRun(id string, n int) line {
	s.t.Helper()
	harness.AwaitFor(s.t, 30*time.Second, "the command to begin", func() bool { return len(s.journal(began, id)) >= n })
	return s.journal(began, id)[n-1]
}

// times counts how often a task came to a state.
func times(task *v1alpha1.Task, to v1alpha1.TaskState) int {
	n := 0
	for _, e := range task.Status.History {
		if e.To == to {
			n++
		}
	}
	return n
}

func TestNoTaskIsDoneTwiceWhenTheWorkerIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var tasks []string
	for range 6 {
		tasks = append(tasks, s.give(script{Takes: time.Duration(100+rand.IntN(300)) * time.Millisecond}))
	}
	p := s.work()
	over := func() bool {
		for _, id := range tasks {
			if s.state(id) != v1alpha1.TaskDone {
				return false
			}
		}
		return true
	}
	kills := 0
	for ; !over() && kills < 30; kills++ {
		// It gets more time from kill to kill, so that it comes to an end on a slow machine, too.
		wait(t, time.Duration(200+100*kills+rand.IntN(700))*time.Millisecond)
		p.kill()
		p.start()
	}
	if kills < 2 {
		t.Errorf("everything was over after %d kills: nothing was put to the test", kills)
	}
	for _, id := range tasks {
		task := s.awaitState(id, 20*time.Second, v1alpha1.TaskDone)
		if n := times(task, v1alpha1.TaskDone); n != 1 {
			t.Errorf("task %s was done %d times: %+v", id, n, task.Status.History)
		}
		s.notRepeated(id, p.text())
	}
	s.noOverlap()
	t.Logf("%d kills, %d runs for %d tasks", kills, len(s.journal(began, "")), len(tasks))
}

// notRepeated fails the test if a task was run again after the worker had noted its result: from then on no death may make it
// forget.
func (s *scene) notRepeated(id string, log string) {
	s.t.Helper()
	for l := range strings.Lines(log) {
		if !strings.Contains(l, "the result is noted") || !strings.Contains(l, id) {
			continue
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(l, "time="), " ")
		noted, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, run := range s.journal(began, id) {
			if run.At.After(noted.Add(time.Millisecond)) {
				s.t.Errorf("task %s was run again at %s although its result was noted at %s", id, run.At, noted)
			}
		}
		return
	}
	s.t.Errorf("the result of task %s was never noted", id)
}

func TestAKilledWorkerTakesItsTaskUpAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.work()
	id := s.give(script{Hang: 1})
	first := s.awaitRun(id, 1)
	p.kill()
	p.start()
	task := s.awaitState(id, leaseSeconds*time.Second, v1alpha1.TaskDone)
	if second := s.awaitRun(id, 2); second.Fence != first.Fence || times(task, v1alpha1.TaskDoing) != 1 {
		t.Errorf("the second run has fence %d after %d, and the task was claimed %d times: want one claim",
			second.Fence, first.Fence, times(task, v1alpha1.TaskDoing))
	}
	dead(t, first)
	s.noOverlap()
}

func TestNoLeaseIsKeptForTheDead(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.work("--instance-id", "first")
	id := s.give(script{Hang: 1})
	run := s.awaitRun(id, 1)
	// It lives on beyond its first lease, because the worker renews.
	wait(t, (leaseSeconds+1)*time.Second)
	if state := s.state(id); state != v1alpha1.TaskDoing {
		t.Fatalf("the task is %s while its command runs", state)
	}
	p.kill()
	dying := time.Now()
	// The listener of the same agent in the same folder lives, and must not keep the dead worker's lease.
	s.listen()
	s.awaitState(id, (leaseSeconds+5)*time.Second, v1alpha1.TaskTodo)
	t.Logf("the task was open again %s after the worker's death", time.Since(dying).Round(100*time.Millisecond))
	dead(t, run)
	s.work("--instance-id", "second")
	task := s.awaitState(id, 20*time.Second, v1alpha1.TaskDone)
	if task.Status.Record == nil || task.Status.Record.Session != "second" {
		t.Errorf("the record is %+v, want one of the second worker", task.Status.Record)
	}
	s.noOverlap()
}

func TestATaskThatIsLostIsLeftAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.work("--instance-id", "worker")
	id := s.give(script{Hang: 1, Deaf: true})
	run := s.awaitRun(id, 1)
	harness.Get[rooms.Task](t, s.boss, "set_status", harness.Args{"task_id": id, "status": "cancelled", "reason": "not needed"})
	harness.AwaitFor(t, leaseSeconds*time.Second/2, "the command to be killed", func() bool { return !running(run.PID) && !running(run.Child) })
	next := s.give(script{})
	s.awaitState(next, 20*time.Second, v1alpha1.TaskDone)
	task := s.stored(id)
	if task.Status.State != v1alpha1.TaskCancelled || len(task.Status.Contested) > 0 || task.Status.Record.Session != "desk" {
		t.Errorf("something was recorded for a task that was lost: %+v", task.Status)
	}
}

func TestAWorkerThatIsToldToStopGivesItsTaskBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.work("--grace", "300ms")
	id := s.give(script{Takes: time.Minute})
	run := s.awaitRun(id, 1)
	if code := p.stop(10 * time.Second); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
	if task := s.stored(id); task.Status.State != v1alpha1.TaskTodo || task.Status.LastClaim.Ended != v1alpha1.ClaimReleased {
		t.Errorf("the task is %s: %+v", task.Status.State, task.Status.LastClaim)
	}
	dead(t, run)

	quick := s.give(script{Takes: 500 * time.Millisecond}, harness.Args{"priority": 50})
	q := s.work("--grace", "20s")
	s.awaitRun(quick, 1)
	if code := q.stop(10 * time.Second); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
	if state := s.state(quick); state != v1alpha1.TaskDone {
		t.Errorf("the task that could finish is %s", state)
	}
}

func TestWhatACommandSaysOfItsEndIsOnTheBoard(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	last := s.give(script{Say: "later"}, harness.Args{"order": 9})
	urgent := s.give(script{Say: "chatter\n" + `{"summary":"made it","artifacts":["file:a.md"],"result_ref":"file:a.md","next":"read it"}`},
		harness.Args{"priority": 90})
	failed := s.give(script{Fail: 1, Code: 3})
	again := s.give(script{Fail: 2, Code: 75, Say: "third time"})
	never := s.give(script{Fail: 100, Code: 75})
	blocked := s.give(script{Say: `{"status":"blocked","reason":"no access"}`})
	s.work("--max-attempts", "3")
	for id, want := range map[string]v1alpha1.TaskState{
		last: v1alpha1.TaskDone, urgent: v1alpha1.TaskDone, failed: v1alpha1.TaskFailed, again: v1alpha1.TaskDone,
		never: v1alpha1.TaskFailed, blocked: v1alpha1.TaskBlocked,
	} {
		s.awaitState(id, 40*time.Second, want)
	}
	if r := s.stored(urgent).Status.Record; r.Summary != "made it" || len(r.Artifacts) != 1 || r.ResultRef != "file:a.md" || r.Next != "read it" {
		t.Errorf("the record of what was said as JSON is %+v", r)
	}
	if r := s.stored(last).Status.Record; r.Summary != "later" {
		t.Errorf("the record of what was said as text is %+v", r)
	}
	if r := s.stored(failed).Status.Record; !strings.Contains(r.Reason, "exit status 3") || !strings.Contains(r.Reason, "complaint of "+failed) {
		t.Errorf("the record of a failure is %+v", r)
	}
	if task := s.stored(again); task.Status.Record.Summary != "third time" || times(task, v1alpha1.TaskDoing) != 3 {
		t.Errorf("the task that passed was done as %+v after %d claims", task.Status.Record, times(task, v1alpha1.TaskDoing))
	}
	if task := s.stored(never); !strings.Contains(task.Status.Record.Reason, "given up after 3 attempts") || times(task, v1alpha1.TaskDoing) != 3 {
		t.Errorf("the task that never passes was given up as %+v after %d claims", task.Status.Record, times(task, v1alpha1.TaskDoing))
	}
	if r := s.stored(blocked).Status.Record; r.Reason != "no access" {
		t.Errorf("the record of a blocked task is %+v", r)
	}
	if runs := s.journal(began, ""); runs[0].ID != urgent || s.journal(began, last)[0].At.Before(s.journal(began, failed)[0].At) {
		t.Error("the most urgent task was not the first, or the last one in the lane not the last")
	}
	s.noOverlap()
}

func TestAWorkerTakesOnlyWhatItIsTo(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	nobody := &v1alpha1.Task{}
	nobody.Name = "nobodys"
	nobody.Spec = v1alpha1.TaskSpec{RoomRef: v1alpha1.RoomReference{Name: "den"}, Title: "anybody", DefinitionOfDone: "x", Detail: script{}.String()}
	s.Create(nobody)
	first := s.give(script{})
	after := s.give(script{}, harness.Args{"depends_on": []string{first}})
	p := s.work()
	s.awaitState(after, 30*time.Second, v1alpha1.TaskDone)
	if state := s.state(ids.ID(nobody)); state != v1alpha1.TaskTodo {
		t.Errorf("a task that nobody is assigned is %s", state)
	}
	if !s.journal(began, after)[0].At.After(s.journal(ended, first)[0].At) {
		t.Error("a task was begun before the one that it waits for")
	}
	p.kill()
	s.work("--any")
	s.awaitState(ids.ID(nobody), 30*time.Second, v1alpha1.TaskDone)
}

func TestACommandMayFinishItsTaskItself(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.work("--instance-id", "worker")
	id := s.give(script{Takes: (leaseSeconds/2 + 1) * time.Second, Say: "not this"})
	s.awaitRun(id, 1)
	itself := s.At(steady, "hand", "worker")
	harness.Get[rooms.Task](t, itself, "set_status", harness.Args{"task_id": id, "status": "done", "summary": "this"})
	harness.Await(t, "the command to come to its end", func() bool { return strings.Contains(p.text(), "has recorded its end itself") })
	if len(s.journal(ended, id)) != 1 {
		t.Error("the command was killed after it had finished its task")
	}
	next := s.give(script{})
	s.awaitState(next, 20*time.Second, v1alpha1.TaskDone)
	if task := s.stored(id); task.Status.Record.Summary != "this" || len(task.Status.Contested) > 0 {
		t.Errorf("the record is %+v, contested %+v", task.Status.Record, task.Status.Contested)
	}
}

func TestAResultWaitsForAPausedRoomAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	other := s.addRoom("attic")
	p := s.work("--room", other)
	id := s.give(script{Takes: time.Second, Say: "kept"})
	s.awaitRun(id, 1)
	s.setRoom("den", v1alpha1.RoomPaused)
	harness.Await(t, "the result to wait", func() bool { return strings.Contains(p.text(), "waits for its room") })
	elsewhere := s.give(script{}, harness.Args{"room": other})
	s.awaitState(elsewhere, 20*time.Second, v1alpha1.TaskDone)
	s.setRoom("den", v1alpha1.RoomActive)
	p.kill() // What waits outlives the worker.
	harness.Await(t, "the room to be active for all", func() bool {
		r := s.boss.Call(t, "send_message", harness.Args{"room": s.room, "body": "back"})
		return r.Err == nil
	})
	p.start()
	task := s.awaitState(id, 20*time.Second, v1alpha1.TaskDone)
	if runs := s.journal(began, id); len(runs) != 1 || task.Status.Record.Summary != "kept" {
		t.Errorf("%d runs, record %+v; want one run, and its words", len(runs), task.Status.Record)
	}
}

func (s *scene) setRoom(name string, state v1alpha1.RoomState) {
	s.t.Helper()
	room := &v1alpha1.Room{}
	room.Namespace, room.Name = s.Namespace, name
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"state":"`+string(state)+`"}}`))
	if err := plane.Client.Patch(context.Background(), room, patch); err != nil {
		s.t.Fatal(err)
	}
}
