package faults

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/agentrooms/agentrooms/internal/controlplane"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// TestAKilledPlaneCarriesOn kills `rooms up` itself: its children die with it, and one that is started on the same folder
// has everything that was acknowledged, under the same ids, addresses and tokens.
func TestAKilledPlaneCarriesOn(t *testing.T) {
	w, room, at := couple(t)
	sent := harness.Get[rooms.Sent](t, at[0], "send_message", harness.Args{
		"room": room, "body": "before", "mentions": []string{"@bob"}, "idempotency_key": "k",
	})
	task := harness.Get[rooms.Task](t, at[1], "create_task", taskArgs(room, "before", "k"))
	claim := harness.Get[rooms.Claim](t, at[0], "claim_task", harness.Args{"task_id": task.TaskID})
	mention := onlyMention(t, w.As("bob", "b"))
	token := plane.Agent(t, "cc").Token(t)
	before, children := *plane, plane.Children(t)

	plane.Kill(t)
	harness.Await(t, "the children to die", func() bool {
		return !slices.ContainsFunc(slices.Collect(maps.Values(children)), alive)
	})
	plane.Start(t)

	if !slices.Equal(plane.Replicas, before.Replicas) || plane.Room != before.Room {
		t.Errorf("started again it has %v and %s, had %v and %s", plane.Replicas, plane.Room, before.Replicas, before.Room)
	}
	for _, agent := range before.Agents {
		if !slices.Contains(plane.Agents, agent) {
			t.Errorf("%+v is not there any more: %+v", agent, plane.Agents)
		}
	}
	if me := harness.Get[rooms.Identity](t, harness.Connect(t, plane.MCP, token, "old"), "whoami", nil); me.Plate != plane.Agent(t, "cc").Plate {
		t.Errorf("the old token is %+v", me)
	}
	for i := range plane.Replicas {
		s := w.At(i, "ann", "a")
		again := harness.Get[rooms.Sent](t, s, "send_message", harness.Args{
			"room": room, "body": "before", "mentions": []string{"@bob"}, "idempotency_key": "k",
		})
		if again.ID != sent.ID || !again.Duplicate {
			t.Errorf("the message is %+v, was %+v", again, sent)
		}
		renewed := harness.Get[rooms.Renewal](t, s, "renew_lease", harness.Args{"task_id": task.TaskID, "fence": claim.Lease.Fence})
		if !renewed.OK || renewed.Lease.Holder != claim.Lease.Holder {
			t.Errorf("the claim is %+v, was %+v", renewed, claim)
		}
	}
	acks := harness.Get[rooms.Acks](t, w.As("bob", "b"), "ack_mentions", harness.Args{"mention_ids": []string{mention}})
	if len(acks.Acked) != 1 {
		t.Errorf("acknowledging what was given before gives %+v", acks)
	}
}

// alive says whether a process runs. One that is dead and not yet reaped does not.
func alive(pid int) bool {
	_, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil
}

// TestABridgeThatStartsWithoutAnAPIServerIsReadyWhenThatIsBack kills both, so that the bridge is up first.
func TestABridgeThatStartsWithoutAnAPIServerIsReadyWhenThatIsBack(t *testing.T) {
	w, room, _ := couple(t)
	for _, name := range []string{controlplane.Etcd, controlplane.APIServer, "bridge-0"} {
		if _, ok := plane.KillChild(t, name); !ok {
			t.Fatalf("%s does not run", name)
		}
	}
	awaitReady(t)
	for i := range plane.Replicas {
		harness.Get[rooms.Page](t, w.At(i, "ann", "a"), "read_room", harness.Args{"room": room})
	}
}
