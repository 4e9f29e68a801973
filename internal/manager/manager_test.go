package manager_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/manager"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	account = "agentrooms-manager"
	soon    = 20 * time.Second
	tick    = 20 * time.Millisecond
)

// run starts a manager as the service account that it has in a cluster. What it gives stops it, as the end of the test does.
func run(t *testing.T, env *testenv.Env, o manager.Options) (stop func()) {
	t.Helper()
	o.MetricsAddress, o.ProbeAddress, o.SkipNameValidation = "0", "0", true
	o.LeaderElection, o.LeaderElectionNamespace = true, testenv.Namespace
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = 3*time.Second, 2*time.Second, 200*time.Millisecond
	o.Controllers.CountsEvery = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := manager.New(ctx, env.AsServiceAccount(account), o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-done; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// house is a room with two agents of two owners, and short leases.
type house struct {
	*testing.T
	Gomega
	env        *testenv.Env
	ns         string
	cc, helper *v1alpha1.Agent
}

func newHouse(t *testing.T) *house {
	t.Helper()
	env := testenv.Get(t)
	h := &house{T: t, Gomega: NewWithT(t), env: env, ns: env.Namespace(t)}
	h.cc, h.helper = testenv.Agent(h.ns, "cc", "said"), testenv.Agent(h.ns, "helper", "bob", v1alpha1.DelegationConsent)
	room := testenv.Room(h.ns, "lab", "cc", "helper")
	room.Spec.LeasePolicy = &v1alpha1.LeasePolicy{DurationSeconds: 10}
	env.Create(t, h.cc, h.helper, room, testenv.Consent(h.ns, "lab", "bob", v1alpha1.ConsentTaskByTask))
	return h
}

func (h *house) get(name string, o client.Object) {
	h.Helper()
	h.Expect(h.env.Client.Get(h.Context(), client.ObjectKey{Namespace: h.ns, Name: name}, o)).To(Succeed())
}

// eventually waits until an object is as the test wants it.
func eventually[T client.Object](h *house, name string, o T, want func(g Gomega, o T)) {
	h.Helper()
	h.Eventually(func(g Gomega) {
		g.Expect(h.env.Client.Get(h.Context(), client.ObjectKey{Namespace: h.ns, Name: name}, o)).To(Succeed())
		want(g, o)
	}, soon, tick).Should(Succeed())
}

// write changes a task, status or spec, in spite of what the controller writes meanwhile.
func (h *house) write(name string, status bool, change func(*v1alpha1.Task)) *v1alpha1.Task {
	h.Helper()
	task := &v1alpha1.Task{}
	h.Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		h.get(name, task)
		change(task)
		if status {
			return h.env.Client.Status().Update(h.Context(), task)
		}
		return h.env.Client.Update(h.Context(), task)
	})).To(Succeed())
	return task
}

func (h *house) claim(name string, by *v1alpha1.Agent) {
	h.Helper()
	h.write(name, true, func(t *v1alpha1.Task) {
		t.Status.State, t.Status.Epoch = v1alpha1.TaskDoing, t.Status.Epoch+1
		t.Status.Claim = &v1alpha1.TaskClaim{Holder: ids.Plate(by), Session: "s1", AcquiredAt: metav1.NowMicro()}
	})
}

// messages counts what stands in the room's log.
func (h *house) messages(g Gomega) int {
	var batches v1alpha1.MessageBatchList
	g.Expect(h.env.Client.List(h.Context(), &batches, client.InNamespace(h.ns))).To(Succeed())
	n := 0
	for _, b := range batches.Items {
		n += len(b.Spec.Messages)
	}
	return n
}

// TestLifeOfARoom goes through the life of a room with everything running as the service account of the manager.
func TestLifeOfARoom(t *testing.T) {
	h := newHouse(t)
	run(t, h.env, manager.Options{})

	t.Log("the room and its agents come into order, and agents get their inboxes")
	room := &v1alpha1.Room{}
	eventually(h, "lab", room, func(g Gomega, r *v1alpha1.Room) {
		g.Expect(r.Status.ID).To(Equal(ids.ID(r)))
		g.Expect(r.Status.Conditions).To(HaveLen(1))
		g.Expect(r.Status.Conditions[0].Status).To(Equal(metav1.ConditionTrue))
		var boxes v1alpha1.InboxList
		g.Expect(h.env.Client.List(t.Context(), &boxes, client.InNamespace(h.ns))).To(Succeed())
		g.Expect(boxes.Items).To(HaveLen(2))
	})
	eventually(h, "cc", &v1alpha1.Agent{}, func(g Gomega, a *v1alpha1.Agent) { g.Expect(a.Status.Plate).To(Equal(ids.Plate(h.cc))) })

	t.Log("a proposal waits for the owner, whose agent is told")
	h.env.Create(t, testenv.Proposal(h.ns, "lab", "work", h.cc, h.helper))
	task := &v1alpha1.Task{}
	eventually(h, "work", task, func(g Gomega, t *v1alpha1.Task) {
		g.Expect(t.Status.Consent).NotTo(BeNil())
		g.Expect(t.Status.Consent.State).To(Equal(v1alpha1.ConsentPending))
		g.Expect(h.messages(g)).To(Equal(1))
	})
	eventually(h, "lab-bob", &v1alpha1.Consent{}, func(g Gomega, c *v1alpha1.Consent) { g.Expect(c.Status.Pending).To(BeEquivalentTo(1)) })

	t.Log("the owner accepts, and the agent is told")
	h.write("work", false, func(t *v1alpha1.Task) {
		t.Spec.Decision = &v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictAccept, By: "bob"}
	})
	eventually(h, "work", task, func(g Gomega, t *v1alpha1.Task) {
		g.Expect(t.Status.Consent.State).To(Equal(v1alpha1.ConsentAccepted))
		g.Expect(h.messages(g)).To(Equal(2))
	})

	t.Log("the agent claims and dies: within lease and five seconds the task is open again")
	h.claim("work", h.helper)
	claimed := time.Now()
	eventually(h, ids.LeaseName("work"), &coordinationv1.Lease{}, func(Gomega, *coordinationv1.Lease) {})
	eventually(h, "work", task, func(g Gomega, t *v1alpha1.Task) { g.Expect(t.Status.State).To(Equal(v1alpha1.TaskTodo)) })
	took := time.Since(claimed)
	t.Logf("a lease of 10 s was over after %s", took)
	h.Expect(took).To(And(BeNumerically(">", 9*time.Second), BeNumerically("<", 15*time.Second)))
	h.Expect(task.Status.LastClaim.Ended).To(Equal(v1alpha1.ClaimExpired))

	t.Log("it claims again and finishes, and the lease goes")
	h.claim("work", h.helper)
	eventually(h, ids.LeaseName("work"), &coordinationv1.Lease{}, func(g Gomega, l *coordinationv1.Lease) {
		g.Expect(*l.Spec.HolderIdentity).NotTo(BeEmpty())
	})
	h.write("work", true, func(t *v1alpha1.Task) {
		t.Status.LastClaim = &v1alpha1.TaskLastClaim{
			Holder: t.Status.Claim.Holder, Session: t.Status.Claim.Session, Epoch: t.Status.Epoch, Ended: v1alpha1.ClaimFinished,
		}
		t.Status.State, t.Status.Epoch, t.Status.Claim = v1alpha1.TaskDone, t.Status.Epoch+1, nil
	})
	h.Eventually(func() error {
		return h.env.Client.Get(t.Context(), client.ObjectKey{Namespace: h.ns, Name: ids.LeaseName("work")}, &coordinationv1.Lease{})
	}, soon, tick).ShouldNot(Succeed())

	t.Log("the counts follow, and the events are there")
	eventually(h, "lab", room, func(g Gomega, r *v1alpha1.Room) {
		g.Expect(r.Status.Tasks).To(Equal(v1alpha1.TaskCounts{Done: 1}))
		g.Expect(r.Status.LastSeq).To(BeEquivalentTo(2))
	})
	h.Eventually(func(g Gomega) {
		var list eventsv1.EventList
		g.Expect(h.env.Client.List(t.Context(), &list, client.InNamespace(h.ns))).To(Succeed())
		var reasons []string
		for _, e := range list.Items {
			reasons = append(reasons, e.Reason)
		}
		g.Expect(reasons).To(ConsistOf("ConsentAccepted", "LeaseExpired"))
	}, soon, tick).Should(Succeed())

	h.expectIdle()
	h.expectRole()
}

// expectIdle expects that nothing is written but the Lease of the leader election.
func (h *house) expectIdle() {
	h.Helper()
	writes := func() []string {
		var list []string
		for _, r := range h.env.Requests(h.T, testenv.ServiceAccountUser(account)) {
			if r.Write() && r.Name != account {
				list = append(list, r.Rule()+" "+r.Namespace+"/"+r.Name)
			}
		}
		return list
	}
	var last int
	h.Eventually(func() bool {
		before := last
		last = len(writes())
		return before == last
	}, soon, time.Second).Should(BeTrue())
	h.Consistently(func() []string { return writes()[last:] }, 10*time.Second, time.Second).Should(BeEmpty())
}

// seldom are verbs that the role grants for what this test does not bring about. A cache lists where the server does not
// stream lists by watch.
var seldom = []string{
	"get agentrooms.dev tasks", "get agentrooms.dev messagebatches", "get agentrooms.dev rooms", "get agentrooms.dev inboxes",
	"delete agentrooms.dev messagebatches", "delete agentrooms.dev tasks", "delete agentrooms.dev inboxes",
	"get agentrooms.dev files", "update agentrooms.dev files", "delete agentrooms.dev files", "update agentrooms.dev inboxes/status", "get coordination.k8s.io leases",
	"update agentrooms.dev rooms/finalizers", "update agentrooms.dev tasks/finalizers", "patch events.k8s.io events",
}

// expectRole holds what was asked of the API server against the role: nothing was refused, and nothing is granted that is
// not used.
func (h *house) expectRole() {
	h.Helper()
	used := map[string]bool{}
	for _, r := range h.env.Requests(h.T, testenv.ServiceAccountUser(account)) {
		if r.Code == 401 || r.Code == 403 {
			h.Errorf("refused: %s in %q", r.Rule(), r.Namespace)
		}
		used[r.Rule()] = true
	}
	role := &rbacv1.ClusterRole{}
	h.Expect(h.env.Client.Get(h.Context(), client.ObjectKey{Name: account}, role)).To(Succeed())
	for _, rule := range granted(role.Rules) {
		kind, lists := strings.CutPrefix(rule, "list ")
		if lists && used["watch "+kind] {
			continue
		}
		if !used[rule] && !slices.Contains(seldom, rule) {
			h.Errorf("granted and not used: %s", rule)
		}
	}
	h.Logf("used: %s", strings.Join(slices.Sorted(maps.Keys(used)), ", "))
}

func granted(rules []rbacv1.PolicyRule) []string {
	var list []string
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					list = append(list, fmt.Sprintf("%s %s %s", verb, group, resource))
				}
			}
		}
	}
	return list
}

// TestTakeover stops the leader while an agent holds a task: the other process takes over, and the claim ends in time.
func TestTakeover(t *testing.T) {
	h := newHouse(t)
	stop := run(t, h.env, manager.Options{})
	h.env.Create(t, testenv.Task(h.ns, "lab", "work", "said"))
	eventually(h, "work", &v1alpha1.Task{}, func(g Gomega, t *v1alpha1.Task) { g.Expect(t.Status.Consent).NotTo(BeNil()) })
	run(t, h.env, manager.Options{})
	h.claim("work", h.cc)
	eventually(h, ids.LeaseName("work"), &coordinationv1.Lease{}, func(Gomega, *coordinationv1.Lease) {})
	claimed := time.Now()
	stop()
	h.env.Create(t, testenv.Task(h.ns, "lab", "more", "said"))
	eventually(h, "more", &v1alpha1.Task{}, func(g Gomega, t *v1alpha1.Task) { g.Expect(t.Status.Consent).NotTo(BeNil()) })
	t.Logf("the other process acted %s after the first was told to stop", time.Since(claimed))
	eventually(h, "work", &v1alpha1.Task{}, func(g Gomega, t *v1alpha1.Task) { g.Expect(t.Status.State).To(Equal(v1alpha1.TaskTodo)) })
	h.Expect(time.Since(claimed)).To(BeNumerically("<", 15*time.Second), "a warm process has watched the lease all along")
}

// TestNoticesOfTwoProcesses lets notices be posted by one process after another: the log has each once, without a gap.
func TestNoticesOfTwoProcesses(t *testing.T) {
	h := newHouse(t)
	const each = 5
	for round := range 3 {
		stop := run(t, h.env, manager.Options{})
		for i := range each {
			h.env.Create(t, testenv.Proposal(h.ns, "lab", fmt.Sprintf("work-%d-%d", round, i), h.cc, h.helper))
		}
		h.Eventually(func(g Gomega) int { return h.messages(g) }, soon, tick).Should(Equal((round + 1) * each))
		stop()
	}
	var batches v1alpha1.MessageBatchList
	h.Expect(h.env.Client.List(t.Context(), &batches, client.InNamespace(h.ns))).To(Succeed())
	slices.SortFunc(batches.Items, func(a, b v1alpha1.MessageBatch) int { return strings.Compare(a.Name, b.Name) })
	next, keys := int64(1), map[string]bool{}
	for i, b := range batches.Items {
		if b.Spec.Number != int64(i)+1 || b.Spec.FirstSeq != next {
			t.Errorf("batch %d begins with %d, want %d with %d", b.Spec.Number, b.Spec.FirstSeq, i+1, next)
		}
		for _, m := range b.Spec.Messages {
			if keys[m.Key] {
				t.Errorf("said twice: %s", m.Body)
			}
			keys[m.Key] = true
			if m.Body == "" || len(m.Mentions) != 1 {
				t.Errorf("message %+v", m)
			}
		}
		next += int64(len(b.Spec.Messages))
	}
}
