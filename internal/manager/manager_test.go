package manager_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/manager"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const timeout = 20 * time.Second

// run starts a manager as the service account that it has in a cluster, and stops it when the test ends.
func run(t *testing.T, env *testenv.Env, o manager.Options) {
	t.Helper()
	o.MetricsAddress, o.ProbeAddress, o.SkipNameValidation = "0", "0", true
	ctx, cancel := context.WithCancel(t.Context())
	cfg := env.AsServiceAccount("agentrooms-manager")
	mgr, err := manager.New(ctx, cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
}

func agent(namespace, name, owner string, delegations ...v1alpha1.Delegation) *v1alpha1.Agent {
	return &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.AgentSpec{
			DisplayName: name, Owner: owner, Delegations: delegations,
			Scopes:   []v1alpha1.Scope{v1alpha1.ScopeRead, v1alpha1.ScopeWrite, v1alpha1.ScopeInvoke},
			Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectServiceAccount, Name: name}},
		},
	}
}

func room(namespace, name string, members ...string) *v1alpha1.Room {
	r := &v1alpha1.Room{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.RoomSpec{DisplayName: name, LeasePolicy: &v1alpha1.LeasePolicy{DurationSeconds: 10}},
	}
	for _, m := range members {
		r.Spec.Members = append(r.Spec.Members, v1alpha1.RoomMember{Agent: &v1alpha1.AgentReference{Name: m}})
	}
	return r
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// messages gives the log of a room.
func messages(g Gomega, c client.Client, namespace string) []v1alpha1.Message {
	var batches v1alpha1.MessageBatchList
	g.Expect(c.List(context.Background(), &batches, client.InNamespace(namespace))).To(Succeed())
	var all []v1alpha1.Message
	for _, b := range batches.Items {
		all = append(all, b.Spec.Messages...)
	}
	return all
}

// TestWalk goes through the life of a room with everything running, as the service account of the manager, and then holds
// what was asked of the API server against the role.
func TestWalk(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	g := NewWithT(t)
	ctx := t.Context()
	cc, helper := agent(ns, "cc", "said"), agent(ns, "helper", "bob", v1alpha1.DelegationConsent)
	create(t, env.Client, room(ns, "lab", "cc", "helper"), cc, helper)
	run(t, env, manager.Options{
		LeaderElection: true, LeaderElectionNamespace: testenv.Namespace,
		Controllers: controllers.Options{CountsEvery: 200 * time.Millisecond},
	})

	// Rooms and agents come into order, and agents get their inboxes.
	r := &v1alpha1.Room{}
	g.Eventually(func(g Gomega) {
		g.Expect(env.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "lab"}, r)).To(Succeed())
		g.Expect(r.Status.ID).To(Equal(ids.ID(r)))
		g.Expect(r.Status.Conditions).To(HaveLen(1))
		g.Expect(r.Status.Conditions[0].Status).To(Equal(metav1.ConditionTrue))
		var boxes v1alpha1.InboxList
		g.Expect(env.Client.List(ctx, &boxes, client.InNamespace(ns))).To(Succeed())
		g.Expect(boxes.Items).To(HaveLen(2))
	}, timeout).Should(Succeed())

	// A proposal waits for the owner, whose agent is told.
	task := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "work"},
		Spec: v1alpha1.TaskSpec{
			RoomRef: v1alpha1.RoomReference{Name: "lab"}, Title: "Work", DefinitionOfDone: "it is done", Assignee: "helper",
			Creator: &v1alpha1.TaskCreator{Plate: ids.Plate(cc)},
		},
	}
	create(t, env.Client, task)
	key := client.ObjectKeyFromObject(task)
	g.Eventually(func(g Gomega) {
		g.Expect(env.Client.Get(ctx, key, task)).To(Succeed())
		g.Expect(task.Status.Consent).NotTo(BeNil())
		g.Expect(task.Status.Consent.State).To(Equal(v1alpha1.ConsentPending))
		g.Expect(messages(g, env.Client, ns)).To(HaveLen(1))
	}, timeout).Should(Succeed())

	// The owner accepts, the agent claims, the holder dies, and the task is open again.
	g.Eventually(func() error {
		if err := env.Client.Get(ctx, key, task); err != nil {
			return err
		}
		task.Spec.Decision = &v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictAccept, By: "bob"}
		return env.Client.Update(ctx, task)
	}, timeout).Should(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(env.Client.Get(ctx, key, task)).To(Succeed())
		g.Expect(task.Status.Consent.State).To(Equal(v1alpha1.ConsentAccepted))
		g.Expect(messages(g, env.Client, ns)).To(HaveLen(2))
	}, timeout).Should(Succeed())
	g.Eventually(func() error {
		if err := env.Client.Get(ctx, key, task); err != nil {
			return err
		}
		task.Status.State, task.Status.Epoch = v1alpha1.TaskDoing, task.Status.Epoch+1
		task.Status.Claim = &v1alpha1.TaskClaim{Holder: ids.Plate(helper), Session: "s1", AcquiredAt: metav1.NowMicro()}
		return env.Client.Status().Update(ctx, task)
	}, timeout).Should(Succeed())
	claimed := time.Now()
	lease := &coordinationv1.Lease{}
	g.Eventually(func() error {
		return env.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: ids.LeaseName("work")}, lease)
	}, timeout).Should(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(env.Client.Get(ctx, key, task)).To(Succeed())
		g.Expect(task.Status.State).To(Equal(v1alpha1.TaskTodo))
	}, timeout, 20*time.Millisecond).Should(Succeed())
	took := time.Since(claimed)
	t.Logf("reopened after %s", took)
	g.Expect(took).To(And(BeNumerically(">", 9*time.Second), BeNumerically("<", 15*time.Second)))
	g.Expect(task.Status.LastClaim.Ended).To(Equal(v1alpha1.ClaimExpired))

	// The counts follow.
	g.Eventually(func(g Gomega) {
		g.Expect(env.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "lab"}, r)).To(Succeed())
		g.Expect(r.Status.Tasks).To(Equal(v1alpha1.TaskCounts{Todo: 1}))
		g.Expect(r.Status.LastSeq).To(BeEquivalentTo(2))
	}, timeout).Should(Succeed())

	for _, req := range env.Requests(t, testenv.ServiceAccountUser("agentrooms-manager")) {
		if req.Code == 403 || (req.Write() && req.Resource != "leases") {
			t.Log(req.Rule(), req.Namespace, req.Name, req.Code)
		}
	}
	fmt.Println()
}
