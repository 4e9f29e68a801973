package schema_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/test/schema"
)

// A checker that says yes to everything would prove nothing: it refuses what each part of the API server's validation
// refuses.
func TestTheCheckerRefusesWhatTheAPIServerRefuses(t *testing.T) {
	task := func(change func(*v1alpha1.Task)) *v1alpha1.Task {
		o := &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: "draft", Namespace: "demo"},
			Spec:       v1alpha1.TaskSpec{RoomRef: v1alpha1.RoomReference{Name: "launch"}, Title: "x", DefinitionOfDone: "x"},
			Status:     v1alpha1.TaskStatus{State: v1alpha1.TaskTodo},
		}
		change(o)
		return o
	}
	inbox := func(change func(*v1alpha1.InboxStatus)) *v1alpha1.Inbox {
		o := &v1alpha1.Inbox{
			ObjectMeta: metav1.ObjectMeta{Name: "launch-1", Namespace: "demo"},
			Spec:       v1alpha1.InboxSpec{RoomRef: v1alpha1.RoomReference{Name: "launch"}, Plate: "BRNL-AGT-00000000000000000000000004"},
		}
		change(&o.Status)
		return o
	}
	delivery := v1alpha1.Delivery{MentionKey: v1alpha1.MentionKey{Seq: 5}, Session: "s1", Until: metav1.NewMicroTime(time.Unix(1, 0))}
	tests := map[string]struct {
		err  error
		want string
	}{
		"nothing wrong":  {schema.For(t, "tasks").Update(task(func(*v1alpha1.Task) {}), task(func(*v1alpha1.Task) {})), ""},
		"a bound":        {schema.For(t, "tasks").Update(task(func(*v1alpha1.Task) {}), task(func(o *v1alpha1.Task) { o.Spec.Title = strings.Repeat("x", 257) })), "spec.title"},
		"an enum":        {schema.For(t, "tasks").Update(task(func(*v1alpha1.Task) {}), task(func(o *v1alpha1.Task) { o.Status.State = "Other" })), "Unsupported value"},
		"a rule":         {schema.For(t, "tasks").Update(task(func(*v1alpha1.Task) {}), task(func(o *v1alpha1.Task) { o.Status.State = v1alpha1.TaskDoing })), "must have a claim"},
		"a transition":   {schema.For(t, "tasks").Update(task(func(*v1alpha1.Task) {}), task(func(o *v1alpha1.Task) { o.Status.Epoch = 2 })), "epoch must rise by one"},
		"a list of keys": {schema.For(t, "inboxes").Update(inbox(func(*v1alpha1.InboxStatus) {}), inbox(func(s *v1alpha1.InboxStatus) { s.Deliveries = []v1alpha1.Delivery{delivery, delivery} })), "Duplicate value"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if (tc.err == nil) != (tc.want == "") || (tc.err != nil && !strings.Contains(tc.err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", tc.err, tc.want)
			}
		})
	}
}
