package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// couple is a room with an agent that has a session at each replica, and another one to talk to.
func couple(t *testing.T) (w *harness.World, room string, at []*harness.Session) {
	t.Helper()
	w = plane.World(t)
	w.Agent("ann", "olga")
	w.Agent("bob", "olga")
	room = w.Room("keys", nil, harness.Admin("ann"), harness.Member("bob"))
	for i := range plane.Replicas {
		at = append(at, w.At(i, "ann", "a"))
	}
	return w, room, at
}

// abandon calls a tool and leaves before the answer comes, some time into the call.
func abandon(s *harness.Session, tool string, args harness.Args) {
	ctx, cancel := context.WithTimeout(context.Background(), rand.N(12*time.Millisecond)) //nolint:gosec // a test
	defer cancel()
	_, _ = s.Do(ctx, tool, args)
}

func TestTheSameKeyWritesOneMessageHoweverOftenAnswersAreLost(t *testing.T) {
	_, room, at := couple(t)
	const messages = 40
	var running sync.WaitGroup
	for i := range messages {
		running.Go(func() {
			args := harness.Args{"room": room, "body": fmt.Sprint("m", i), "mentions": []string{"@bob"}, "idempotency_key": fmt.Sprint("k", i)}
			for n := range 4 {
				abandon(at[(i+n)%2], "send_message", args)
			}
			first := harness.Get[rooms.Sent](t, at[i%2], "send_message", args)
			second := harness.Get[rooms.Sent](t, at[(i+1)%2], "send_message", args)
			if first.ID != second.ID || first.Seq != second.Seq || !second.Duplicate {
				t.Errorf("message %d is %+v at one replica and %+v at the other", i, first, second)
			}
		})
	}
	running.Wait()
	page := harness.Get[rooms.Page](t, at[0], "read_room", harness.Args{"room": room, "limit": 100})
	if len(page.Messages) != messages {
		t.Errorf("the room has %d messages, want %d", len(page.Messages), messages)
	}
}

func TestTheSameKeyMakesOneTaskHoweverOftenAnswersAreLost(t *testing.T) {
	_, room, at := couple(t)
	const tasks = 20
	var running sync.WaitGroup
	for i := range tasks {
		running.Go(func() {
			args := taskArgs(room, fmt.Sprint("task ", i), fmt.Sprint("k", i))
			for n := range 4 {
				abandon(at[(i+n)%2], "create_task", args)
			}
			first := harness.Get[rooms.Task](t, at[i%2], "create_task", args)
			second := harness.Get[rooms.Task](t, at[(i+1)%2], "create_task", args)
			if first.TaskID != second.TaskID || !second.Duplicate {
				t.Errorf("task %d is %s at one replica and %s at the other", i, first.TaskID, second.TaskID)
			}
		})
	}
	running.Wait()
	harness.Await(t, "the board to show each task once", func() bool {
		return harness.Get[rooms.Board](t, at[0], "read_board", harness.Args{"room": room}).Counts["todo"] == tasks
	})
}

func taskArgs(room, title, key string) harness.Args {
	return harness.Args{
		"room": room, "title": title, "definition_of_done": "it is done", "assignee": "@ann", "idempotency_key": key,
	}
}

func TestTheSameKeyGivesTheSameTaskAlsoWhenItHasEnded(t *testing.T) {
	w, room, at := couple(t)
	args := taskArgs(room, "ends", "once")
	made := harness.Get[rooms.Task](t, at[0], "create_task", args)
	id := harness.Args{"task_id": made.TaskID}
	harness.Get[rooms.Claim](t, at[0], "claim_task", id)
	done := harness.Args{"task_id": made.TaskID, "status": "done", "summary": "all of it"}
	harness.Get[rooms.Task](t, at[0], "set_status", done)
	for _, s := range at {
		if again := harness.Get[rooms.Task](t, s, "create_task", args); again.TaskID != made.TaskID || !again.Duplicate {
			t.Errorf("after the end the same key gives %+v", again)
		}
		if again := harness.Get[rooms.Task](t, s, "set_status", done); again.Status != "done" || again.Record.Summary != "all of it" {
			t.Errorf("finishing again gives %+v", again)
		}
	}
	harness.Get[rooms.Archived](t, at[0], "archive_task", id)
	pause(t, w, v1alpha1.RoomPaused)
	for _, s := range at {
		if again := harness.Get[rooms.Task](t, s, "create_task", args); again.TaskID != made.TaskID || !again.Duplicate {
			t.Errorf("in a room that was paused the same key gives %+v", again)
		}
	}
}

func TestTheSameKeyGivesTheSameMessageWhateverHappenedSince(t *testing.T) {
	w, room, at := couple(t)
	args := harness.Args{"room": room, "body": "hello", "mentions": []string{"@bob"}, "idempotency_key": "once"}
	first := harness.Get[rooms.Sent](t, at[0], "send_message", args)
	change(t, w, func(s *v1alpha1.RoomSpec) { s.Members = s.Members[:1] })
	for i, s := range at {
		harness.Await(t, fmt.Sprintf("replica %d to know that bob left", i), func() bool {
			return len(harness.Get[rooms.MemberList](t, s, "list_members", harness.Args{"room": room}).Members) == 1
		})
		if again := harness.Get[rooms.Sent](t, s, "send_message", args); again.ID != first.ID || !again.Duplicate {
			t.Errorf("replica %d gives %+v after the one mentioned left, want %+v", i, again, first)
		}
	}
	pause(t, w, v1alpha1.RoomPaused)
	for i, s := range at {
		if again := harness.Get[rooms.Sent](t, s, "send_message", args); again.ID != first.ID || !again.Duplicate {
			t.Errorf("replica %d gives %+v in a paused room, want %+v", i, again, first)
		}
	}
}

func TestTheSameKeyGivesTheSameTaskWhenItsAssigneeLeft(t *testing.T) {
	w, room, at := couple(t)
	args := taskArgs(room, "for bob", "once")
	args["assignee"] = "@bob"
	made := harness.Get[rooms.Task](t, at[0], "create_task", args)
	assign := harness.Args{"task_id": made.TaskID, "assignee": "@bob(olga)", "idempotency_key": "again"}
	harness.Get[rooms.Task](t, at[0], "assign_task", assign)
	change(t, w, func(s *v1alpha1.RoomSpec) { s.Members = s.Members[:1] })
	for i, s := range at {
		harness.Await(t, fmt.Sprintf("replica %d to know that bob left", i), func() bool {
			return len(harness.Get[rooms.MemberList](t, s, "list_members", harness.Args{"room": room}).Members) == 1
		})
		if again := harness.Get[rooms.Task](t, s, "create_task", args); again.TaskID != made.TaskID || !again.Duplicate {
			t.Errorf("replica %d gives %+v after the assignee left", i, again)
		}
		if again := harness.Get[rooms.Task](t, s, "assign_task", assign); again.TaskID != made.TaskID {
			t.Errorf("replica %d gives %+v for the assignment after the assignee left", i, again)
		}
	}
}

// TestAReplicaThatHasNotSeenTheFirstCallGivesItsAnswer asks a replica that is behind, in a state in which it would refuse.
func TestAReplicaThatHasNotSeenTheFirstCallGivesItsAnswer(t *testing.T) {
	r := startReplica(t)
	w, room, ann, _ := staleWorld(t, r)
	letGo := r.net.hold(t)
	message := harness.Args{"room": room, "body": "once", "idempotency_key": "k", "mentions": []string{"@new"}}
	task := taskArgs(room, "once", "k")
	task["assignee"] = "@new"
	w.Agent("new", "olga")
	changeRoom(t, w, "stale", func(s *v1alpha1.RoomSpec) { s.Members = append(s.Members, harness.Member("new")) })
	var sent rooms.Sent
	harness.Await(t, "the new member to be known", func() bool {
		result := ann.Call(t, "send_message", message)
		if result.Err == nil {
			result.Into(t, &sent)
		}
		return result.Err == nil
	})
	made := harness.Get[rooms.Task](t, ann, "create_task", task)
	again, err := call[rooms.Sent](t, r, w, "ann", "a", "send_message", message)
	if err != nil || again.ID != sent.ID || !again.Duplicate {
		t.Errorf("a replica that does not know the new member gives %+v, %v, want %+v", again, err, sent)
	}
	same, err := call[rooms.Task](t, r, w, "ann", "a", "create_task", task)
	if err != nil || same.TaskID != made.TaskID || !same.Duplicate {
		t.Errorf("a replica that does not know the new member gives %+v, %v, want %s", same, err, made.TaskID)
	}
	letGo()
}

func TestTheSameKeyWithOtherContentIsAConflictAtEveryReplica(t *testing.T) {
	_, room, at := couple(t)
	message := harness.Args{"room": room, "body": "one", "idempotency_key": "k"}
	harness.Get[rooms.Sent](t, at[0], "send_message", message)
	task := harness.Get[rooms.Task](t, at[0], "create_task", taskArgs(room, "one", "k"))
	assign := harness.Args{"task_id": task.TaskID, "assignee": "@bob", "idempotency_key": "k"}
	harness.Get[rooms.Task](t, at[0], "assign_task", assign)
	for _, s := range at {
		for _, other := range []harness.Args{
			{"room": room, "body": "two", "idempotency_key": "k"},
			{"room": room, "body": "one", "mentions": []string{"@bob"}, "idempotency_key": "k"},
		} {
			harness.Refused(t, s, "IDEMPOTENCY_CONFLICT", "send_message", other)
		}
		harness.Refused(t, s, "IDEMPOTENCY_CONFLICT", "create_task", taskArgs(room, "two", "k"))
		harness.Refused(t, s, "IDEMPOTENCY_CONFLICT", "assign_task",
			harness.Args{"task_id": task.TaskID, "assignee": "@ann", "idempotency_key": "k"})
		if again := harness.Get[rooms.Task](t, s, "assign_task", assign); again.AssigneeAlias != "@bob(olga)" {
			t.Errorf("assigning again gives %+v", again)
		}
	}
}

// pause changes the state of the room, as every replica sees it.
func pause(t *testing.T, w *harness.World, state v1alpha1.RoomState) {
	t.Helper()
	change(t, w, func(s *v1alpha1.RoomSpec) { s.State = state })
	for i := range plane.Replicas {
		s := w.At(i, "ann", "a")
		harness.Await(t, "the room to be paused everywhere", func() bool {
			list := harness.Get[rooms.RoomList](t, s, "list_rooms", nil)
			return len(list.Rooms) == 1 && list.Rooms[0].State == "paused"
		})
	}
}

// change edits the couple's room.
func change(t *testing.T, w *harness.World, edit func(*v1alpha1.RoomSpec)) {
	t.Helper()
	changeRoom(t, w, "keys", edit)
}

func changeRoom(t *testing.T, w *harness.World, name string, edit func(*v1alpha1.RoomSpec)) {
	t.Helper()
	harness.Await(t, "the room to be changed", func() bool {
		var room v1alpha1.Room
		if err := plane.Client.Get(context.Background(), client.ObjectKey{Namespace: w.Namespace, Name: name}, &room); err != nil {
			t.Fatal(err)
		}
		edit(&room.Spec)
		return plane.Client.Update(context.Background(), &room) == nil
	})
}
