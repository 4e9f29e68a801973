package task

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/test/testenv"
)

const soon = 10 * time.Second

// reconciles counts the runs of the task controller in this process.
func reconciles(g Gomega) float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	var n float64
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			n += m.GetCounter().GetValue()
		}
	}
	return n
}

// eventually waits until a task is as the test wants it.
func (s *stage) eventually(name string, want func(g Gomega, t *v1alpha1.Task)) {
	s.Helper()
	NewWithT(s.T).Eventually(func(g Gomega) { want(g, s.task(name)) }, soon, 20*time.Millisecond).Should(Succeed())
}

func (s *stage) eventuallyConsent(name string, want v1alpha1.ConsentState) {
	s.Helper()
	s.eventually(name, func(g Gomega, t *v1alpha1.Task) {
		g.Expect(t.Status.Consent).NotTo(BeNil())
		g.Expect(t.Status.Consent.State).To(Equal(want))
	})
}

func (s *stage) eventuallyCondition(name, kind, want string) {
	s.Helper()
	s.eventually(name, func(g Gomega, t *v1alpha1.Task) { g.Expect(conditionsOf(t)[kind]).To(Equal(want)) })
}

// patch changes an object, in spite of what the controller writes meanwhile.
func patch[T client.Object](s *stage, o T, change func()) {
	s.Helper()
	s.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.env.Client.Get(s.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change()
		return s.env.Client.Update(s.Context(), o)
	}))
}

// TestWakesUp changes, one after another, everything that a task depends on, and expects each to be noticed.
func TestWakesUp(t *testing.T) {
	s := newStage(t)
	s.start()
	work := testenv.Task(s.ns, "lab", "work", "said")
	work.Spec.Assignee, work.Spec.DependsOn = "late", []string{"first"}
	s.env.Create(t, work)
	s.eventuallyCondition("work", v1alpha1.ReadyCondition, "False UnknownAssignee")
	s.eventuallyCondition("work", v1alpha1.DependenciesMetCondition, "False BlockerMissing")

	t.Log("an agent of the name comes, which is no member yet")
	late := testenv.Agent(s.ns, "late", "bob")
	s.env.Create(t, late)
	s.eventuallyConsent("work", v1alpha1.ConsentPending)
	s.eventually("work", func(g Gomega, t *v1alpha1.Task) { g.Expect(t.Status.Consent.Assignee).NotTo(BeEmpty()) })
	s.eventuallyCondition("work", v1alpha1.ReadyCondition, "False UnknownAssignee")

	t.Log("it becomes a member")
	room := testenv.Room(s.ns, "lab")
	patch(s, room, func() {
		room.Spec.Members = append(room.Spec.Members, v1alpha1.RoomMember{Agent: &v1alpha1.AgentReference{Name: "late"}})
	})
	s.eventuallyCondition("work", v1alpha1.ReadyCondition, "True Ready")

	t.Log("its owner agrees, thinks again, and agrees to another kind")
	agreed := testenv.Consent(s.ns, "lab", "bob", v1alpha1.ConsentApproveAll)
	s.env.Create(t, agreed)
	s.eventuallyConsent("work", v1alpha1.ConsentAccepted)
	patch(s, agreed, func() { agreed.Spec.Mode = v1alpha1.ConsentTaskByTask })
	s.eventuallyConsent("work", v1alpha1.ConsentPending)
	patch(s, agreed, func() { agreed.Spec.Mode = v1alpha1.ConsentTrustRoom })
	s.eventuallyConsent("work", v1alpha1.ConsentAccepted)

	t.Log("the proposer leaves the room with its agents, and comes back by an agent")
	members := room.Spec.Members
	patch(s, room, func() {
		room.Spec.Members = nil
		for _, name := range []string{"helper", "deputy", "late"} {
			room.Spec.Members = append(room.Spec.Members, v1alpha1.RoomMember{Agent: &v1alpha1.AgentReference{Name: name}})
		}
	})
	s.eventuallyConsent("work", v1alpha1.ConsentPending)
	patch(s, room, func() { room.Spec.Members = members })
	s.eventuallyConsent("work", v1alpha1.ConsentAccepted)

	t.Log("the consent goes")
	s.must(s.env.Client.Delete(t.Context(), agreed))
	s.eventuallyConsent("work", v1alpha1.ConsentPending)

	t.Log("nobody is left to decide by proxy, and that is no news")
	deputy := s.agents["deputy"]
	patch(s, deputy, func() { deputy.Spec.Delegations = nil })

	t.Log("the blocker comes, and comes to an end")
	s.env.Create(t, testenv.Task(s.ns, "lab", "first", "said"))
	s.eventuallyCondition("work", v1alpha1.DependenciesMetCondition, "False Waiting")
	s.eventuallyConsent("first", v1alpha1.ConsentAuto)
	first := s.task("first")
	first.Status.State, first.Status.Reason = v1alpha1.TaskCancelled, "no need"
	s.must(s.env.Client.Status().Update(t.Context(), first))
	s.eventuallyCondition("work", v1alpha1.DependenciesMetCondition, "False BlockerFailed")
	s.must(s.env.Client.Delete(t.Context(), first))
	s.eventuallyCondition("work", v1alpha1.DependenciesMetCondition, "False BlockerMissing")

	t.Log("the room goes")
	s.must(s.env.Client.Delete(t.Context(), room))
	s.eventuallyCondition("work", v1alpha1.ReadyCondition, "False RoomNotFound")
}

// TestWakesUpByAgents changes agents that a task does not name, and one that it names by plate.
func TestWakesUpByAgents(t *testing.T) {
	s := newStage(t)
	deputy, helper := s.agents["deputy"], s.agents["helper"]
	patch(s, deputy, func() { deputy.Spec.Delegations = nil })
	s.start()
	s.env.Create(t, testenv.Proposal(s.ns, "lab", "work", s.agents["cc"], helper))
	s.eventuallyConsent("work", v1alpha1.ConsentPending)
	s.wantPosted()

	t.Log("somebody may decide for the owner at last")
	patch(s, deputy, func() { deputy.Spec.Delegations = []v1alpha1.Delegation{v1alpha1.DelegationConsent} })
	s.eventually("work", func(g Gomega, t *v1alpha1.Task) { g.Expect(t.Status.LastNotice).To(HavePrefix("1:proposed:")) })
	s.wantPosted("was proposed by → deputy/work")

	t.Log("the agent goes")
	s.must(s.env.Client.Delete(t.Context(), helper))
	s.eventuallyCondition("work", v1alpha1.ReadyCondition, "False UnknownAssignee")
}

// TestWakesUpByAssigner deletes the agent that assigned a task. It lives elsewhere and is no member, and nobody knows for
// whom the task was assigned any more.
func TestWakesUpByAssigner(t *testing.T) {
	s := newStage(t)
	outsider := testenv.Agent(s.env.Namespace(t), "outsider", "said")
	s.env.Create(t, outsider)
	s.start()
	s.env.Create(t, testenv.Proposal(s.ns, "lab", "work", outsider, s.agents["dd"]))
	s.eventuallyConsent("work", v1alpha1.ConsentAuto)
	s.must(s.env.Client.Delete(t.Context(), outsider))
	s.eventuallyConsent("work", v1alpha1.ConsentPending)
}

// TestWakesUpByADeletedLease deletes the Lease of a claim, as an admin may.
func TestWakesUpByADeletedLease(t *testing.T) {
	s := newStage(t)
	s.start()
	s.env.Create(t, testenv.Task(s.ns, "lab", "work", "said"))
	s.eventuallyConsent("work", v1alpha1.ConsentAuto)
	task, g := s.claim("work", "cc", "s1"), NewWithT(t)
	g.Eventually(func() any { return s.lease("work") }, soon).ShouldNot(BeNil())
	before := s.lease("work")
	s.must(s.env.Client.Delete(t.Context(), before))
	g.Eventually(func(g Gomega) {
		l := s.lease("work")
		g.Expect(l).NotTo(BeNil())
		g.Expect(l.UID).NotTo(Equal(before.UID))
		g.Expect(leases.Current(l, task)).To(BeTrue())
	}, soon).Should(Succeed())
}

// TestCycleWakesWholeChain closes a cycle at its end, and expects those far from the change to notice.
func TestCycleWakesWholeChain(t *testing.T) {
	s := newStage(t)
	s.start()
	for i := range 5 {
		task := testenv.Task(s.ns, "lab", fmt.Sprintf("t%d", i), "said")
		if i > 0 {
			task.Spec.DependsOn = []string{fmt.Sprintf("t%d", i-1)}
		}
		s.env.Create(t, task)
	}
	s.eventuallyCondition("t4", v1alpha1.DependenciesMetCondition, "False Waiting")
	end := s.task("t0")
	patch(s, end, func() { end.Spec.DependsOn = []string{"t4"} })
	for i := range 5 {
		s.eventuallyCondition(fmt.Sprintf("t%d", i), v1alpha1.DependenciesMetCondition, "False DependencyCycle")
	}
	patch(s, end, func() { end.Spec.DependsOn = nil })
	s.eventuallyCondition("t4", v1alpha1.DependenciesMetCondition, "False Waiting")
}

// TestHeartbeats renews a lease many times: no reconcile follows, and the task is reopened once the last one is old.
func TestHeartbeats(t *testing.T) {
	s := newStage(t)
	g := NewWithT(t)
	s.start()
	s.env.Create(t, testenv.Task(s.ns, "lab", "work", "said"))
	s.eventuallyConsent("work", v1alpha1.ConsentAuto)
	s.claim("work", "cc", "s1")
	var lease *coordinationv1.Lease
	g.Eventually(func() *coordinationv1.Lease { lease = s.lease("work"); return lease }, soon).ShouldNot(BeNil())
	// Shorter than the schema of tasks allows, so that the test is short.
	renew := func() {
		lease.Spec.LeaseDurationSeconds = new(int32(2))
		lease.Spec.RenewTime = new(metav1.NowMicro())
		s.must(s.env.Client.Update(t.Context(), lease))
	}
	renew()
	var settled float64
	g.Eventually(func() bool {
		before := settled
		settled = reconciles(g)
		return settled == before
	}, soon, 200*time.Millisecond).Should(BeTrue())
	began := time.Now()
	// A clock that is an hour off, in either direction, changes nothing.
	for i := 0; time.Since(began) < 3*time.Second; i++ {
		lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(time.Duration(i%2*2-1) * time.Hour)))
		s.must(s.env.Client.Update(t.Context(), lease))
	}
	last := time.Now()
	g.Expect(s.task("work").Status.State).To(Equal(v1alpha1.TaskDoing))
	// One for the deadline that a renewal had moved.
	g.Expect(reconciles(g)-settled).To(BeNumerically("<=", 2), "reconciles while the lease was renewed all the time")
	s.eventually("work", func(g Gomega, t *v1alpha1.Task) { g.Expect(t.Status.State).To(Equal(v1alpha1.TaskTodo)) })
	took := time.Since(last)
	t.Logf("reopened %s after the last renewal of a lease of 2 s", took)
	// Never early, and within the lease and five seconds, on a machine that has other things to do.
	g.Expect(took).To(BeNumerically(">=", 1500*time.Millisecond))
	g.Expect(took).To(BeNumerically("<=", 7*time.Second))
	g.Expect(leases.HolderOf(s.lease("work"))).To(BeEmpty())
}

// TestIdle lets many tasks come to rest, and expects neither writes nor reconciles then.
func TestIdle(t *testing.T) {
	s := newStage(t)
	g := NewWithT(t)
	s.start()
	for i := range 30 {
		task := testenv.Proposal(s.ns, "lab", fmt.Sprintf("work-%d", i), s.agents["cc"], s.agents["dd"])
		if i > 0 {
			task.Spec.DependsOn = []string{fmt.Sprintf("work-%d", i-1)}
		}
		s.env.Create(t, task)
	}
	g.Eventually(func() int { return len(s.poster.all()) }, soon).Should(Equal(30))
	// A notice goes out just before what was decided is written.
	s.eventually("work-0", func(g Gomega, t *v1alpha1.Task) { g.Expect(t.Status.Consent).NotTo(BeNil()) })
	s.claim("work-0", "dd", "s1")
	g.Eventually(func() *coordinationv1.Lease { return s.lease("work-0") }, soon).ShouldNot(BeNil())
	type rest struct {
		writes     int
		reconciles float64
	}
	look := func() rest { return rest{s.hooks.count(), reconciles(g)} }
	var before rest
	g.Eventually(func() bool {
		last := before
		before = look()
		return before == last
	}, soon, 500*time.Millisecond).Should(BeTrue())
	g.Consistently(look, 4*time.Second, 500*time.Millisecond).Should(Equal(before))
	// One write a task, for consent, conditions and notice together, and the Lease of the claim.
	g.Expect(before.writes).To(BeNumerically("<=", 36), "writes for 30 tasks and a claim")
	t.Logf("%d writes and %v reconciles for 30 tasks in a chain and a claim", before.writes, before.reconciles)
}
