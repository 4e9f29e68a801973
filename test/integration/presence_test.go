package integration

import (
	"context"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
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
