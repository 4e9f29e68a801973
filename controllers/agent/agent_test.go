package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
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
	a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{UID: "uid", Generation: 2}}
	fine := status(a, nil, 3, now)
	if fine.LiveInstances != 3 || fine.Plate != ids.Plate(a) || fine.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("%+v", fine)
	}
	a.Status = fine
	rivals := map[string][]string{"user-b": {"ns/z", "ns/c"}, "user-a": {"ns/d"}}
	twice := status(a, rivals, 3, now.Add(time.Hour))
	c := twice.Conditions[0]
	want := "neither agent is let in: user-a is a subject of ns/d as well; user-b is a subject of ns/c, ns/z as well"
	if c.Reason != v1alpha1.AmbiguousSubjectReason || c.Message != want {
		t.Errorf("%s: %s, want %s", c.Reason, c.Message, want)
	}
	a.Status = twice
	if diff := cmp.Diff(twice, status(a, rivals, 3, now.Add(2*time.Hour))); diff != "" {
		t.Errorf("an hour later (-want +got):\n%s", diff)
	}
	many := map[string][]string{"user": {strings.Repeat("x", 5000)}}
	if n := len([]rune(status(a, many, 3, now).Conditions[0].Message)); n > 1024 {
		t.Errorf("a message of %d characters", n)
	}
}

func start(t *testing.T, env *testenv.Env, ttl time.Duration) *testmgr.Run {
	t.Helper()
	return testmgr.Start(t, env, func(mgr ctrl.Manager) error {
		r := &Reconciler{
			Client: mgr.GetClient(), Instances: testmgr.Instances(t, mgr), Clock: clock.RealClock{},
			Every: 50 * time.Millisecond, TTL: ttl,
		}
		return r.SetupWithManager(mgr)
	})
}

type want struct {
	ready string
	live  int32
}

func eventually(t *testing.T, env *testenv.Env, a *v1alpha1.Agent, w want) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(a), a)).To(Succeed())
		g.Expect(a.Status.Conditions).To(HaveLen(1))
		c := a.Status.Conditions[0]
		g.Expect(want{string(c.Status) + " " + c.Reason, a.Status.LiveInstances}).To(Equal(w))
		g.Expect(a.Status.Plate).To(Equal(ids.Plate(a)))
		g.Expect(testenv.StatusProblems(a.Generation, a.Status.ObservedGeneration, a.Status.Conditions)).To(BeEmpty())
	}, testmgr.Soon, testmgr.Tick).Should(Succeed())
}

// instance is the Lease by which an instance shows that it lives.
func instance(a *v1alpha1.Agent, session string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace, Name: ids.InstanceLeaseName(ids.Plate(a), session),
			Labels: map[string]string{v1alpha1.InstanceLabel: ids.Plate(a)},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &session, RenewTime: new(metav1.NowMicro()), LeaseDurationSeconds: new(int32(180))},
	}
}

func TestAmbiguousSubject(t *testing.T) {
	env := testenv.Get(t)
	here, there := env.Namespace(t), env.Namespace(t)
	run := start(t, env, time.Minute)
	a, b := testenv.Agent(here, "cc", "said"), testenv.Agent(there, "impostor", "mallory")
	b.Spec.Subjects = []v1alpha1.Subject{{Kind: v1alpha1.SubjectServiceAccount, Namespace: here, Name: "cc"}}
	env.Create(t, a)
	eventually(t, env, a, want{ready: "True Ready"})
	env.Create(t, b)
	eventually(t, env, a, want{ready: "False AmbiguousSubject"})
	eventually(t, env, b, want{ready: "False AmbiguousSubject"})
	b.Spec.Subjects = nil
	if err := env.Client.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	eventually(t, env, a, want{ready: "True Ready"})
	eventually(t, env, b, want{ready: "True Ready"})
	b.Spec.Subjects = []v1alpha1.Subject{{Kind: v1alpha1.SubjectServiceAccount, Namespace: here, Name: "cc"}}
	if err := env.Client.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	eventually(t, env, a, want{ready: "False AmbiguousSubject"})
	if err := env.Client.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	eventually(t, env, a, want{ready: "True Ready"})
	run.ExpectIdle(t, here)
}

// TestLiveInstances counts those that renew, by the time at which the renewals are seen: what the Leases say of the time is
// an hour off, one way or the other.
func TestLiveInstances(t *testing.T) {
	env := testenv.Get(t)
	ns, g := env.Namespace(t), NewWithT(t)
	run := start(t, env, 2*time.Second)
	a := testenv.Agent(ns, "cc", "said")
	env.Create(t, a)
	eventually(t, env, a, want{ready: "True Ready"})
	var leases []*coordinationv1.Lease
	for i := range 3 {
		l := instance(a, fmt.Sprintf("s%d", i))
		l.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(time.Duration(i-1) * time.Hour)))
		env.Create(t, l)
		leases = append(leases, l)
	}
	eventually(t, env, a, want{ready: "True Ready", live: 3})
	writes := run.Writes(t, ns)

	// One goes on, and the others die.
	began := time.Now()
	for time.Since(began) < 3*time.Second {
		leases[0].Spec.RenewTime = new(metav1.NewMicroTime(leases[0].Spec.RenewTime.Add(time.Millisecond)))
		g.Expect(env.Client.Update(t.Context(), leases[0])).To(Succeed())
	}
	eventually(t, env, a, want{ready: "True Ready", live: 1})
	g.Expect(run.Writes(t, ns)-writes).To(BeNumerically("<=", 2), "two deaths were written more than twice")

	// One comes back, and one is deleted.
	leases[1].Spec.RenewTime = new(metav1.NowMicro())
	g.Expect(env.Client.Update(t.Context(), leases[1])).To(Succeed())
	g.Expect(env.Client.Delete(t.Context(), leases[0])).To(Succeed())
	eventually(t, env, a, want{ready: "True Ready", live: 1})
	eventually(t, env, a, want{ready: "True Ready", live: 0})
	run.ExpectIdle(t, ns)
}
