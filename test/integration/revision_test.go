package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// TestWhatOneReplicaWroteAnotherShowsWhenItIsToldOfIt alternates between the replicas without ever waiting.
func TestWhatOneReplicaWroteAnotherShowsWhenItIsToldOfIt(t *testing.T) {
	w, room := team(t)
	replicas := []*harness.Session{w.At(0, "boss", "one"), w.At(1, "boss", "two")}
	for i := range 40 {
		here, there := replicas[i%2], replicas[(i+1)%2]
		title := fmt.Sprint("number ", i)
		made := here.Call(t, "create_task", harness.Args{"room": room, "title": title, "definition_of_done": "x", "assignee": "@worker"})
		if len(made.Revision) == 0 {
			t.Fatalf("create_task gives no revision: %+v", made)
		}
		there.After = made.Revision
		if board := there.Call(t, "read_board", harness.Args{"room": room}); !strings.Contains(string(board.Raw), title) {
			t.Errorf("the other replica does not show %s", title)
		}
		sent := here.Call(t, "send_message", harness.Args{"room": room, "body": title})
		there.After = sent.Revision
		if page := there.Call(t, "read_room", harness.Args{"room": room, "limit": 1}); !strings.Contains(string(page.Raw), title) {
			t.Errorf("the other replica does not show message %s: %s", title, page.Raw)
		}
	}
	if r := replicas[0].Call(t, "read_board", harness.Args{"room": room}); r.Revision != nil {
		t.Errorf("a read gives the revision %v", r.Revision)
	}
	harness.Get[rooms.Identity](t, replicas[0], "whoami", nil)
	for _, bad := range []map[string]any{{"task": "x"}, {"nothing": "1"}, {"log." + room: "-1"}, {"log.x": "1"}, {"task": 7}} {
		replicas[0].After = bad
		harness.Refused(t, replicas[0], "VALIDATION", "whoami", nil)
	}
}
