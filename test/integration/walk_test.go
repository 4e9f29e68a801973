package integration

import (
	"strings"
	"testing"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// TestTheWalk is the five-minute walk of the README: two agents of two owners, in the demo as it is applied with kubectl.
func TestTheWalk(t *testing.T) {
	cc, dd := plane.As(t, "cc", "cc-1"), plane.As(t, "dd", "dd-1")

	me := harness.Get[rooms.Identity](t, cc, "whoami", nil)
	if me.Alias != "@cc(said)" || me.Plate != plane.Agent(t, "cc").Plate || me.SessionID != "cc-1" {
		t.Errorf("whoami says %+v", me)
	}
	list := harness.Get[rooms.RoomList](t, cc, "list_rooms", nil)
	if len(list.Rooms) != 1 || list.Rooms[0].Room != plane.Room || list.Rooms[0].Name != "Launch week" {
		t.Fatalf("list_rooms says %+v", list)
	}
	room := list.Rooms[0].Room
	members := harness.Get[rooms.MemberList](t, cc, "list_members", harness.Args{"room": room})
	if len(members.Members) != 3 {
		t.Errorf("list_members says %+v", members)
	}

	task := harness.Get[rooms.Task](t, cc, "create_task", harness.Args{
		"room": room, "title": "Write the post", "definition_of_done": "file:post.md exists", "assignee": "@cc(said)",
	})
	if task.Consent != "auto" || task.Status != "todo" {
		t.Fatalf("create_task gives %+v", task)
	}
	claim := harness.Get[rooms.Claim](t, cc, "claim_task", harness.Args{"task_id": task.TaskID})
	if !claim.OK || claim.Lease.SessionID != "cc-1" || claim.Lease.Fence != 1 {
		t.Fatalf("claim_task gives %+v", claim)
	}
	renewal := harness.Get[rooms.Renewal](t, cc, "renew_lease", harness.Args{"task_id": task.TaskID, "fence": 1})
	if !renewal.OK || renewal.Lease.ExpiresInSeconds < 590 {
		t.Errorf("renew_lease gives %+v", renewal)
	}
	done := harness.Get[rooms.Task](t, cc, "set_status", harness.Args{
		"task_id": task.TaskID, "status": "done", "summary": "written", "result_ref": "file:post.md", "artifacts": []string{"file:post.md"},
	})
	if done.Status != "done" || done.Record == nil || done.Record.Summary != "written" || done.Lease != nil {
		t.Errorf("set_status gives %+v", done)
	}
	board := harness.Get[rooms.Board](t, dd, "read_board", harness.Args{"room": room})
	if board.Counts["done"] != 1 || len(board.Records) != 1 {
		t.Errorf("read_board gives %+v", board)
	}

	sent := harness.Get[rooms.Sent](t, cc, "send_message", harness.Args{
		"room": room, "body": "The post is written. Please read it.", "mentions": []string{"@dd(maya)"},
	})
	check := dd.Call(t, "check_mentions", harness.Args{"room": room})
	var mentions rooms.MentionList
	check.Into(t, &mentions)
	if len(mentions.Mentions) != 1 || mentions.Mentions[0].MessageID != sent.ID || mentions.Mentions[0].From != "@cc(said)" {
		t.Fatalf("check_mentions gives %+v", mentions)
	}
	if check.Pending != 1 {
		t.Errorf("_meta.pending_mentions is %d, want 1", check.Pending)
	}
	acks := harness.Get[rooms.Acks](t, dd, "ack_mentions", harness.Args{"mention_ids": []string{mentions.Mentions[0].MentionID}})
	if len(acks.Acked) != 1 || acks.Pending != 0 {
		t.Errorf("ack_mentions gives %+v", acks)
	}
	reply := harness.Get[rooms.Sent](t, dd, "send_message", harness.Args{
		"room": room, "body": "Reads well.", "parent_id": sent.ID, "mentions": []string{"@cc(said)"},
	})
	page := harness.Get[rooms.Page](t, cc, "read_room", harness.Args{"room": room})
	last := page.Messages[len(page.Messages)-1]
	if last.ID != reply.ID || last.ParentID == nil || *last.ParentID != sent.ID {
		t.Errorf("read_room ends with %+v", last)
	}
	for i, m := range page.Messages {
		if m.Seq != page.Messages[0].Seq+int64(i) {
			t.Errorf("message %d has seq %d: the order has a gap", i, m.Seq)
		}
	}
}

func TestKubectlShowsWhatAgentsDo(t *testing.T) {
	cc := plane.As(t, "cc", "cc-kubectl")
	task := harness.Get[rooms.Task](t, cc, "create_task", harness.Args{
		"room": plane.Room, "title": "Seen by kubectl", "definition_of_done": "kubectl shows it", "assignee": "@cc(said)",
	})
	harness.Get[rooms.Claim](t, cc, "claim_task", harness.Args{"task_id": task.TaskID})
	harness.Await(t, "kubectl to show the holder", func() bool {
		out, err := plane.Kubectl(t, "", "get", "tasks", "-n", "demo")
		return err == nil && strings.Contains(out, "Doing") && strings.Contains(out, plane.Agent(t, "cc").Plate) &&
			strings.Contains(out, "launch")
	})
	for _, kind := range []string{"rooms", "room", "ag", "task", "consent", "mb", "inbox"} {
		if out, err := plane.Kubectl(t, "", "get", kind, "-n", "demo"); err != nil {
			t.Errorf("kubectl get %s: %v\n%s", kind, err, out)
		}
	}
	harness.Get[rooms.Task](t, cc, "release_task", harness.Args{"task_id": task.TaskID})
}
