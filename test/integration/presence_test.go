package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// TestAnAgentThatCallsItselfSomethingElseEachTimeFillsNothing has one agent show up as ever new instances.
func TestAnAgentThatCallsItselfSomethingElseEachTimeFillsNothing(t *testing.T) {
	const shown = 256
	w, _ := team(t)
	s := w.As("worker", "")
	for i := range shown + 100 {
		harness.Get[rooms.Identity](t, s, "whoami", harness.Args{"session_id": fmt.Sprint("another-", i)})
	}
	count := func() int {
		var list coordinationv1.LeaseList
		err := plane.Client.List(context.Background(), &list, client.InNamespace(w.Namespace), client.HasLabels{v1alpha1.InstanceLabel})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	harness.Await(t, "the instances to be shown", func() bool { return count() >= shown })
	harness.Get[rooms.Identity](t, s, "whoami", harness.Args{"session_id": "one-more"})
	// Two replicas and two workers may each write one more before they hear of the others'.
	if n := count(); n > shown+4 {
		t.Errorf("%d instances have Leases, want %d", n, shown)
	}
}

// Names of Leases follow from what everybody may know. A Lease that somebody else put there keeps no instance from showing
// that it lives.
func TestALeaseOfAnInstancesNameHidesNobody(t *testing.T) {
	w, room := team(t)
	squatter := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: ids.InstanceLeaseName(w.Plates["worker"], "hidden"),
	}}
	if err := plane.Client.Create(t.Context(), squatter); err != nil {
		t.Fatal(err)
	}
	harness.Get[rooms.Identity](t, w.As("worker", "hidden"), "whoami", nil)
	harness.Await(t, "the instance to be shown", func() bool {
		list := harness.Get[rooms.InstanceList](t, w.As("boss", "b"), "list_instances", harness.Args{"room": room}).Instances
		return slices.ContainsFunc(list, func(i rooms.InstanceInfo) bool { return i.SessionID == "hidden" })
	})
}

// So do the names of tasks that were created under a key: whoever may create tasks with kubectl answers for nobody's retry.
func TestATaskOfAKeysNameIsNobodysRetry(t *testing.T) {
	w, room := team(t)
	boss := w.As("boss", "b")
	args := harness.Args{"room": room, "title": "mine", "definition_of_done": "x", "assignee": "@worker", "idempotency_key": "42"}
	task := taskObject(t, w, harness.Get[rooms.Task](t, boss, "create_task", args).TaskID)
	if err := plane.Client.Delete(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	planted := task.DeepCopy()
	planted.ObjectMeta = metav1.ObjectMeta{Namespace: task.Namespace, Name: task.Name, Annotations: task.Annotations}
	planted.Spec.Title, planted.Spec.Creator, planted.Spec.AssignedBy = "planted", nil, nil
	if err := as(t, "mallory").Create(t.Context(), planted); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, "the planted task to be refused as an answer", func() bool {
		r := boss.Call(t, "create_task", args)
		return r.Err != nil && r.Err.Code == "IDEMPOTENCY_CONFLICT"
	})
}
