package history_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

// TestArchivedTasksLeaveTheClusterAndCanBeRead archives six tasks of which the room keeps two, and kills the manager while
// they move.
func TestArchivedTasksLeaveTheClusterAndCanBeRead(t *testing.T) {
	w := newWorld(t, 100)
	w.rest = 2 * time.Second
	w.room.Spec.Retention.ArchivedTasks = 2
	w.Expect(w.env.Client.Update(t.Context(), w.room)).To(Succeed())
	w.start(time.Second)
	b := w.bridge(w.bucket(), 1<<20)
	var made []string
	for range 6 {
		task := must[rooms.Task](b, "cc", "create_task", map[string]any{
			"room": w.id(), "title": "Look", "definition_of_done": "Looked", "detail": "in every corner", "assignee": "@cc",
		})
		must[rooms.Claim](b, "cc", "claim_task", map[string]any{"task_id": task.TaskID})
		must[rooms.Task](b, "cc", "set_status", map[string]any{"task_id": task.TaskID, "status": "done", "summary": "Looked."})
		must[rooms.Archived](b, "cc", "archive_task", map[string]any{"task_id": task.TaskID})
		made = append(made, task.TaskID)
	}
	held := func() []string {
		var list v1alpha1.TaskList
		w.Expect(w.env.Client.List(t.Context(), &list, client.InNamespace(w.ns))).To(Succeed())
		var names []string
		for i := range list.Items {
			names = append(names, ids.ID(&list.Items[i]))
		}
		return names
	}
	w.Eventually(func() int { return len(held()) }, time.Minute, 5*time.Millisecond).Should(BeNumerically("<", 6))
	w.kill()
	w.start(time.Second)
	w.Eventually(held, time.Minute, 50*time.Millisecond).Should(ConsistOf(made[4], made[5]))
	for _, id := range made {
		caller := &toolset.Caller{Agent: w.agents["dd"], Plate: ids.Plate(w.agents["dd"]), Session: "s1"}
		read := func() (rooms.Task, error) {
			out, err := b.set.ReadResource(t.Context(), caller, "rooms://task/"+id)
			if err != nil {
				return rooms.Task{}, err
			}
			return out.(rooms.Task), nil
		}
		task, err := read()
		if err != nil || task.TaskID != id || task.Detail != "in every corner" || task.Status != "done" || !task.Archived {
			t.Errorf("rooms://task/%s gives %+v, %v", id, task, err)
		}
	}
	w.outsiderSeesNoTask(b, made[0])
}

// outsiderSeesNoTask holds that who is not in the room cannot tell a task that moved from one that never was.
func (w *world) outsiderSeesNoTask(b *bridge, id string) {
	w.Helper()
	stranger := &v1alpha1.Agent{ObjectMeta: w.agents["cc"].ObjectMeta}
	stranger.UID = "00000000-0000-4000-8000-000000000000"
	_, err := b.set.ReadResource(w.Context(), &toolset.Caller{Agent: stranger, Plate: ids.Plate(stranger)}, "rooms://task/"+id)
	if p, ok := problem.As(err); !ok || p.Code != problem.NotFound {
		w.Errorf("who is not in the room gets %v", err)
	}
}
