package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// team is a world with one agent of many instances and a room.
func team(t *testing.T) (*harness.World, string) {
	t.Helper()
	w := plane.World(t)
	w.Agent("worker", "ann")
	w.Agent("boss", "ann")
	room := w.Room("shop", nil, harness.Member("worker"), harness.Admin("boss"))
	return w, room
}

func newTask(t *testing.T, s *harness.Session, room, title, assignee string) rooms.Task {
	t.Helper()
	return harness.Get[rooms.Task](t, s, "create_task", harness.Args{
		"room": room, "title": title, "definition_of_done": "it is done", "assignee": assignee,
	})
}

func TestOfThirtyTwoRacersThroughTwoReplicasExactlyOneWins(t *testing.T) {
	const racers, count = 32, 50
	w, room := team(t)
	boss := w.As("boss", "boss")
	sessions := make([]*harness.Session, racers)
	for i := range sessions {
		sessions[i] = w.At(i%2, "worker", fmt.Sprint("racer-", i))
	}
	for n := range count {
		task := newTask(t, boss, room, fmt.Sprint("task ", n), "@worker")
		var mu sync.Mutex
		var winners []string
		told := map[string]int{}
		var wg sync.WaitGroup
		start := make(chan struct{})
		for _, s := range sessions {
			wg.Go(func() {
				<-start
				r, err := s.Do(context.Background(), "claim_task", harness.Args{"task_id": task.TaskID})
				if err != nil {
					t.Errorf("claiming: %v", err)
					return
				}
				var claim rooms.Claim
				if r.Err != nil || json.Unmarshal(r.Raw, &claim) != nil {
					t.Errorf("claiming: %v %s", r.Err, r.Raw)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case claim.OK:
					winners = append(winners, s.Name)
				case claim.Reason == "already_claimed":
					told[claim.Holder]++
				default:
					t.Errorf("a loser was told %+v", claim)
				}
			})
		}
		close(start)
		wg.Wait()
		if len(winners) != 1 {
			t.Fatalf("task %d has the winners %v, want exactly one", n, winners)
		}
		if holder := w.Plates["worker"] + "/" + winners[0]; told[holder] != racers-1 {
			t.Errorf("losers were told %v, want %s by all %d", told, holder, racers-1)
		}
	}
}

// TestCarelessPatchesHaveOneWinner claims as `kubectl patch --subresource=status --type=merge` does: without looking at
// the resourceVersion.
func TestCarelessPatchesHaveOneWinner(t *testing.T) {
	w, room := team(t)
	task := newTask(t, w.As("boss", ""), room, "careless", "@worker")
	obj := taskObject(t, w, task.TaskID)
	const racers = 32
	var mu sync.Mutex
	var winners []string
	var wg sync.WaitGroup
	harness.Await(t, "the controller to have judged the consent", func() bool {
		return taskObject(t, w, task.TaskID).Status.Consent != nil
	})
	for i := range racers {
		wg.Go(func() {
			session := fmt.Sprint("patch-", i)
			patch := fmt.Sprintf(`{"status":{"state":"Doing","epoch":1,"claim":{"holder":%q,"session":%q}}}`, w.Plates["worker"], session)
			target := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name}}
			err := plane.Client.Status().Patch(context.Background(), target, client.RawPatch(types.MergePatchType, []byte(patch)))
			if err == nil {
				mu.Lock()
				winners = append(winners, session)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(winners) != 1 {
		t.Fatalf("the winners are %v, want exactly one", winners)
	}
	if c := taskObject(t, w, task.TaskID).Status.Claim; c == nil || c.Session != winners[0] {
		t.Errorf("the claim is %+v, the winner %v", c, winners)
	}
}

// taskObject gives the object of a task id.
func taskObject(t *testing.T, w *harness.World, id string) *v1alpha1.Task {
	t.Helper()
	var list v1alpha1.TaskList
	if err := plane.Client.List(context.Background(), &list, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if ids.ID(&list.Items[i]) == id {
			return &list.Items[i]
		}
	}
	t.Fatalf("there is no task %s", id)
	return nil
}

func TestAHolderThatDiesLosesTheTaskWithinTheLeaseAndFiveSeconds(t *testing.T) {
	w := plane.World(t)
	w.Agent("worker", "ann")
	room := w.Room("quick", func(s *v1alpha1.RoomSpec) { s.LeasePolicy = &v1alpha1.LeasePolicy{DurationSeconds: 10} }, harness.Admin("worker"))
	dying, heir := w.As("worker", "dying"), w.At(1, "worker", "heir")
	task := newTask(t, dying, room, "abandoned", "@worker")
	claim := harness.Get[rooms.Claim](t, dying, "claim_task", harness.Args{"task_id": task.TaskID})
	if !claim.OK || claim.Lease.ExpiresInSeconds < 9 {
		t.Fatalf("claiming: %+v", claim)
	}
	began := time.Now()
	harness.Await(t, "the lease to be made by the controller", func() bool {
		out, err := plane.Kubectl(t, "", "get", "lease", "-n", w.Namespace, "-l", "agentrooms.dev/task")
		return err == nil && len(out) > 0
	})
	harness.AwaitFor(t, 30*time.Second, "the task to be open again", func() bool {
		return taskObject(t, w, task.TaskID).Status.State == v1alpha1.TaskTodo
	})
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the task was reopened after %s, want within 15 s", took)
	}
	second := harness.Get[rooms.Claim](t, heir, "claim_task", harness.Args{"task_id": task.TaskID})
	if !second.OK || second.Lease.Fence <= claim.Lease.Fence {
		t.Fatalf("the heir's claim: %+v", second)
	}
	lost := harness.Refused(t, dying, "LEASE_LOST", "renew_lease", harness.Args{"task_id": task.TaskID})
	if lost.Holder != w.Plates["worker"]+"/heir" {
		t.Errorf("the former holder was told %+v, want the new holder's name", lost)
	}
	lost = harness.Refused(t, dying, "LEASE_LOST", "set_status", harness.Args{"task_id": task.TaskID, "status": "done", "summary": "too late"})
	if lost.Holder != w.Plates["worker"]+"/heir" {
		t.Errorf("the former holder was told %+v", lost)
	}
	obj := taskObject(t, w, task.TaskID)
	if len(obj.Status.Contested) != 1 || obj.Status.Contested[0].Summary != "too late" || obj.Status.State != v1alpha1.TaskDoing {
		t.Errorf("the late record was not kept as contested: %+v", obj.Status)
	}
}

func TestALateFinishIsKeptWhenNobodyHasClaimedSince(t *testing.T) {
	w := plane.World(t)
	w.Agent("worker", "ann")
	room := w.Room("quick", func(s *v1alpha1.RoomSpec) { s.LeasePolicy = &v1alpha1.LeasePolicy{DurationSeconds: 10} }, harness.Admin("worker"))
	slow := w.As("worker", "slow")
	task := newTask(t, slow, room, "slow", "@worker")
	claim := harness.Get[rooms.Claim](t, slow, "claim_task", harness.Args{"task_id": task.TaskID})
	harness.AwaitFor(t, 30*time.Second, "the task to be open again", func() bool {
		return taskObject(t, w, task.TaskID).Status.State == v1alpha1.TaskTodo
	})
	done := harness.Get[rooms.Task](t, slow, "set_status", harness.Args{
		"task_id": task.TaskID, "status": "done", "summary": "late, but done", "fence": claim.Lease.Fence,
	})
	if done.Status != "done" || done.Record == nil || !done.Record.Late {
		t.Errorf("the late finish gives %+v", done)
	}
	again := harness.Get[rooms.Task](t, slow, "set_status", harness.Args{
		"task_id": task.TaskID, "status": "done", "summary": "late, but done", "fence": claim.Lease.Fence,
	})
	if again.Status != "done" {
		t.Errorf("the repeated finish gives %+v", again)
	}
}

func TestAnyCallOfTheHolderKeepsItsLease(t *testing.T) {
	w := plane.World(t)
	w.Agent("worker", "ann")
	room := w.Room("quick", func(s *v1alpha1.RoomSpec) { s.LeasePolicy = &v1alpha1.LeasePolicy{DurationSeconds: 10} }, harness.Admin("worker"))
	busy := w.As("worker", "busy")
	task := newTask(t, busy, room, "busy", "@worker")
	harness.Get[rooms.Claim](t, busy, "claim_task", harness.Args{"task_id": task.TaskID})
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range 16 {
		<-tick.C
		harness.Get[rooms.Identity](t, busy, "whoami", nil)
	}
	if s := taskObject(t, w, task.TaskID).Status; s.State != v1alpha1.TaskDoing || s.Epoch != 1 {
		t.Errorf("after 16 s of calls under a lease of 10 s the task is %+v", s)
	}
}

func TestTheLifeOfATask(t *testing.T) {
	w, room := team(t)
	w.Agent("other", "ann")
	addMember(t, w, "shop", "other")
	boss, worker, second := w.As("boss", "b"), w.As("worker", "one"), w.As("worker", "two")
	harness.Await(t, "the new member to see the room", func() bool {
		return w.As("other", "o").Call(t, "read_board", harness.Args{"room": room}).Err == nil
	})
	task := newTask(t, boss, room, "life", "@worker")
	id := harness.Args{"task_id": task.TaskID}
	with := func(more harness.Args) harness.Args {
		args := harness.Args{"task_id": task.TaskID}
		maps.Copy(args, more)
		return args
	}
	harness.Refused(t, w.As("other", "o"), "FORBIDDEN", "claim_task", id)
	harness.Refused(t, worker, "LEASE_LOST", "renew_lease", id)
	harness.Refused(t, worker, "LEASE_LOST", "set_status", with(harness.Args{"status": "done"}))
	if e := harness.Refused(t, worker, "VALIDATION", "set_status", with(harness.Args{"status": "blocked"})); e.Fields[0] != "reason" {
		t.Errorf("blocked without a reason: %+v", e)
	}
	first := harness.Get[rooms.Claim](t, worker, "claim_task", id)
	again := harness.Get[rooms.Claim](t, worker, "claim_task", id)
	if !first.OK || !again.OK || again.Lease.Fence != first.Lease.Fence {
		t.Errorf("claiming twice gives %+v and %+v", first, again)
	}
	if lost := harness.Get[rooms.Claim](t, second, "claim_task", id); lost.OK || lost.Reason != "already_claimed" {
		t.Errorf("another instance of the same agent got %+v", lost)
	}
	harness.Refused(t, second, "LEASE_LOST", "release_task", id)
	harness.Refused(t, worker, "LEASE_LOST", "renew_lease", with(harness.Args{"fence": 99}))
	if s := harness.Get[rooms.Task](t, worker, "release_task", id); s.Status != "todo" || s.Lease != nil {
		t.Errorf("releasing gives %+v", s)
	}
	harness.Get[rooms.Task](t, worker, "release_task", id)
	if s := harness.Get[rooms.Task](t, second, "set_status", with(harness.Args{"status": "doing"})); s.Status != "doing" || s.Lease.SessionID != "two" {
		t.Errorf("set_status doing gives %+v", s)
	}
	if s := harness.Get[rooms.Task](t, second, "set_status", with(harness.Args{"status": "blocked", "reason": "no key"})); s.Status != "blocked" || s.Reason != "no key" {
		t.Errorf("blocking gives %+v", s)
	}
	harness.Get[rooms.Claim](t, worker, "claim_task", id)
	if s := harness.Get[rooms.Task](t, worker, "set_status", with(harness.Args{"status": "failed", "reason": "broken"})); s.Status != "failed" {
		t.Errorf("failing gives %+v", s)
	}
	if lost := harness.Get[rooms.Claim](t, second, "claim_task", id); lost.OK || lost.Reason != "not_claimable" {
		t.Errorf("claiming a failed task gives %+v", lost)
	}
	harness.Refused(t, worker, "FORBIDDEN", "set_status", with(harness.Args{"status": "todo"}))
	if s := harness.Get[rooms.Task](t, boss, "set_status", with(harness.Args{"status": "todo"})); s.Status != "todo" {
		t.Errorf("reopening gives %+v", s)
	}
	harness.Refused(t, boss, "CONFLICT", "archive_task", id)
	if s := harness.Get[rooms.Task](t, boss, "set_status", with(harness.Args{"status": "cancelled", "reason": "not wanted"})); s.Status != "cancelled" {
		t.Errorf("cancelling gives %+v", s)
	}
	harness.Get[rooms.Archived](t, boss, "archive_task", id)
	harness.Get[rooms.Archived](t, boss, "archive_task", id)
	if board := harness.Get[rooms.Board](t, worker, "read_board", harness.Args{"room": room}); len(board.Lanes) != 0 {
		t.Errorf("the board still shows %+v", board)
	}
}

func addMember(t *testing.T, w *harness.World, room, agent string) {
	t.Helper()
	editRoom(t, w, room, func(r *v1alpha1.Room) { r.Spec.Members = append(r.Spec.Members, harness.Member(agent)) })
}

func TestReassignmentTakesTheTaskFromItsHolder(t *testing.T) {
	w, room := team(t)
	w.Agent("other", "ann")
	addMember(t, w, "shop", "other")
	boss, worker, other := w.As("boss", "b"), w.As("worker", "w"), w.As("other", "o")
	harness.Await(t, "the new member to see the room", func() bool {
		return other.Call(t, "read_board", harness.Args{"room": room}).Err == nil
	})
	task := newTask(t, boss, room, "handed over", "@worker")
	harness.Get[rooms.Claim](t, worker, "claim_task", harness.Args{"task_id": task.TaskID})
	harness.Refused(t, worker, "FORBIDDEN", "assign_task", harness.Args{"task_id": task.TaskID, "assignee": "@other"})
	args := harness.Args{"task_id": task.TaskID, "assignee": "@other", "idempotency_key": "k"}
	moved := harness.Get[rooms.Task](t, boss, "assign_task", args)
	if moved.Status != "todo" || moved.Assignee != w.Plates["other"] || moved.Lease != nil {
		t.Errorf("assign_task gives %+v", moved)
	}
	harness.Refused(t, worker, "LEASE_LOST", "renew_lease", harness.Args{"task_id": task.TaskID})
	if c := harness.Get[rooms.Claim](t, other, "claim_task", harness.Args{"task_id": task.TaskID}); !c.OK {
		t.Errorf("the new assignee's claim: %+v", c)
	}
	if s := harness.Get[rooms.Task](t, boss, "assign_task", args); s.Status != "doing" {
		t.Errorf("the repeated assignment took the task away again: %+v", s)
	}
	harness.Refused(t, boss, "IDEMPOTENCY_CONFLICT", "assign_task",
		harness.Args{"task_id": task.TaskID, "assignee": "@worker", "idempotency_key": "k"})
}

func TestATaskWaitsForItsDependencies(t *testing.T) {
	w, room := team(t)
	boss, worker := w.As("boss", "b"), w.As("worker", "w")
	first := newTask(t, boss, room, "first", "@worker")
	second := harness.Get[rooms.Task](t, boss, "create_task", harness.Args{
		"room": room, "title": "second", "definition_of_done": "x", "assignee": "@worker", "depends_on": []string{first.TaskID},
	})
	if len(second.BlockedBy) != 1 || second.BlockedBy[0] != first.TaskID {
		t.Errorf("create_task gives %+v", second)
	}
	claim := harness.Get[rooms.Claim](t, worker, "claim_task", harness.Args{"task_id": second.TaskID})
	if claim.OK || claim.Reason != "blocked_by_deps" || len(claim.BlockedBy) != 1 || claim.BlockedBy[0] != first.TaskID {
		t.Errorf("claiming a waiting task gives %+v", claim)
	}
	e := harness.Refused(t, boss, "VALIDATION", "update_task", harness.Args{"task_id": first.TaskID, "depends_on": []string{second.TaskID}})
	if e.Fields[0] != "depends_on" {
		t.Errorf("a cycle gives %+v", e)
	}
	harness.Get[rooms.Claim](t, worker, "claim_task", harness.Args{"task_id": first.TaskID})
	harness.Get[rooms.Task](t, worker, "set_status", harness.Args{"task_id": first.TaskID, "status": "done"})
	if c := harness.Get[rooms.Claim](t, worker, "claim_task", harness.Args{"task_id": second.TaskID}); !c.OK {
		t.Errorf("claiming after the blocker is done gives %+v", c)
	}
	harness.Await(t, "the worker to be told of its task", func() bool {
		list := harness.Get[rooms.MentionList](t, worker, "check_mentions", harness.Args{"limit": 100})
		for _, m := range list.Mentions {
			if m.TaskID == second.TaskID {
				return true
			}
		}
		return false
	})
}
