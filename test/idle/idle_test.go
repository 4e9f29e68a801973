// Package idle shows that a system in which nothing happens does nothing: read off the API server's own audit log.
package idle

import (
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

const window = 30 * time.Second

// ours gives the writes that are neither the control plane's nor the leader's sign of life.
func ours(t *testing.T, plane *harness.Plane, since time.Time) []harness.AuditEvent {
	t.Helper()
	var list []harness.AuditEvent
	for _, e := range plane.Audit(t, since) {
		leader := e.ObjectRef.Resource == "leases" && e.ObjectRef.Namespace == "agentrooms-system" && e.ObjectRef.Name == "agentrooms-manager"
		if e.Writes() && !e.OfTheControlPlane() && !leader {
			list = append(list, e)
		}
	}
	return list
}

func TestNothingIsWrittenWhenNothingHappens(t *testing.T) {
	plane := harness.Up(t, harness.Options{Bridges: 2})
	cc, dd := plane.As(t, "cc", "c"), plane.AsAt(t, 1, "dd", "d")
	task := harness.Get[rooms.Task](t, cc, "create_task", harness.Args{
		"room": plane.Room, "title": "held while idle", "definition_of_done": "x", "assignee": "@cc",
	})
	harness.Get[rooms.Claim](t, cc, "claim_task", harness.Args{"task_id": task.TaskID})
	harness.Get[rooms.Sent](t, cc, "send_message", harness.Args{"room": plane.Room, "body": "x", "mentions": []string{"@dd"}})
	harness.Get[rooms.Page](t, dd, "read_room", harness.Args{"room": plane.Room})
	harness.Get[rooms.MentionList](t, dd, "check_mentions", nil)

	// Counts in statuses follow within seconds. Quiet is when nothing was written for a third of the window.
	harness.AwaitFor(t, 2*time.Minute, "the system to come to rest", func() bool {
		return len(ours(t, plane, time.Now().Add(-window/3))) == 0
	})
	began := time.Now()
	timer := time.NewTimer(window)
	defer timer.Stop()
	<-timer.C
	for _, e := range ours(t, plane, began) {
		t.Errorf("%s by %s on %s %s/%s", e.Verb, e.User.Username, e.Resource(), e.ObjectRef.Namespace, e.ObjectRef.Name)
	}
	if len(plane.Audit(t, began)) == 0 {
		t.Error("the audit log is empty: the test would see nothing")
	}
}
