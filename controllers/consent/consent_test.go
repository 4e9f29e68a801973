package consent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/testmgr"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestStatus(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := testenv.Consent("ns", "lab", "bob", v1alpha1.ConsentApproveAll)
	c.UID, c.Generation = "this", 3
	older := testenv.Consent("ns", "lab", "bob", v1alpha1.ConsentTaskByTask)
	older.UID, older.Name = "older", "older"
	task := func(plate string, state v1alpha1.ConsentState, standing, archived bool, at v1alpha1.TaskState) v1alpha1.Task {
		return v1alpha1.Task{
			Spec:   v1alpha1.TaskSpec{Archived: archived},
			Status: v1alpha1.TaskStatus{State: at, Consent: &v1alpha1.TaskConsent{State: state, Assignee: plate, Standing: standing}},
		}
	}
	all := facts{room: true, inForce: c, plates: map[string]bool{"P": true}, tasks: []v1alpha1.Task{
		task("P", v1alpha1.ConsentPending, false, false, v1alpha1.TaskTodo),
		task("P", v1alpha1.ConsentPending, false, false, v1alpha1.TaskBlocked),
		task("P", v1alpha1.ConsentPending, false, false, v1alpha1.TaskCancelled),
		task("Q", v1alpha1.ConsentPending, false, false, v1alpha1.TaskTodo),
		task("P", v1alpha1.ConsentAccepted, true, false, v1alpha1.TaskDone),
		task("P", v1alpha1.ConsentAccepted, true, true, v1alpha1.TaskDone),
		task("P", v1alpha1.ConsentAccepted, false, false, v1alpha1.TaskTodo),
		task("P", v1alpha1.ConsentAuto, false, false, v1alpha1.TaskTodo),
		{},
	}}
	second := all
	second.inForce = older
	for name, x := range map[string]struct {
		facts         facts
		ready         string
		pending, auto int32
	}{
		"in force":     {facts: all, ready: "True Ready", pending: 2, auto: 1},
		"not in force": {facts: second, ready: "False Duplicate"},
		"no room":      {facts: facts{}, ready: "False RoomNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			s := status(c, x.facts, now)
			if got := string(s.Conditions[0].Status) + " " + s.Conditions[0].Reason; got != x.ready || s.Pending != x.pending || s.AutoAccepted != x.auto {
				t.Errorf("%s, %d pending, %d accepted; want %s, %d, %d", got, s.Pending, s.AutoAccepted, x.ready, x.pending, x.auto)
			}
			again := c.DeepCopy()
			again.Status = s
			if diff := cmp.Diff(s, status(again, x.facts, now.Add(time.Hour))); diff != "" {
				t.Errorf("an hour later (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConsent(t *testing.T) {
	env := testenv.Get(t)
	ns, g := env.Namespace(t), NewWithT(t)
	run := testmgr.Start(t, env, func(mgr ctrl.Manager) error {
		r := &Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}, Every: 50 * time.Millisecond}
		return r.SetupWithManager(mgr)
	})
	first, second := testenv.Consent(ns, "lab", "bob", v1alpha1.ConsentTaskByTask), testenv.Consent(ns, "lab", "bob", v1alpha1.ConsentApproveAll)
	first.Name, second.Name = "a", "b"
	want := func(c *v1alpha1.Consent, ready string, pending int32) {
		t.Helper()
		g.Eventually(func(g Gomega) {
			g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c)).To(Succeed())
			g.Expect(c.Status.Conditions).To(HaveLen(1))
			g.Expect(string(c.Status.Conditions[0].Status) + " " + c.Status.Conditions[0].Reason).To(Equal(ready))
			g.Expect(c.Status.Pending).To(Equal(pending))
			g.Expect(testenv.StatusProblems(c.Generation, c.Status.ObservedGeneration, c.Status.Conditions)).To(BeEmpty())
		}, testmgr.Soon, testmgr.Tick).Should(Succeed())
	}
	env.Create(t, first, second)
	want(first, "False RoomNotFound", 0)
	env.Create(t, testenv.Room(ns, "lab"))
	want(first, "True Ready", 0)
	want(second, "False Duplicate", 0)

	// A task waits for bob, and his agent comes to be known after it.
	task := testenv.Task(ns, "lab", "work", "said")
	env.Create(t, task)
	helper := testenv.Agent(ns, "helper", "bob")
	env.Create(t, helper)
	task.Status.Consent = &v1alpha1.TaskConsent{State: v1alpha1.ConsentPending, Assignee: ids.Plate(helper), At: metav1.Now()}
	g.Expect(env.Client.Status().Update(t.Context(), task)).To(Succeed())
	want(first, "True Ready", 1)
	g.Expect(env.Client.Delete(t.Context(), first)).To(Succeed())
	want(second, "True Ready", 1)
	g.Expect(env.Client.Delete(t.Context(), helper)).To(Succeed())
	want(second, "True Ready", 0)
	run.ExpectIdle(t, ns)
}
