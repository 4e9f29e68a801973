package instance

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/testmgr"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func instance(ns, name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: name,
			Labels: map[string]string{v1alpha1.InstanceLabel: "BRNL-AGT-00000000000000000000000000"},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("s"), RenewTime: new(metav1.NowMicro()), LeaseDurationSeconds: new(int32(180))},
	}
}

// TestCollect lets instances die and live, with clocks that are an hour off.
func TestCollect(t *testing.T) {
	env := testenv.Get(t)
	ns, g := env.Namespace(t), NewWithT(t)
	const deadAfter = 2 * time.Second
	run := testmgr.Start(t, env, func(mgr ctrl.Manager) error {
		r := &Reconciler{Client: mgr.GetClient(), Instances: testmgr.Instances(t, mgr), Clock: clock.RealClock{}, DeadAfter: deadAfter}
		return r.SetupWithManager(mgr)
	})
	var leases []*coordinationv1.Lease
	for i := range 3 {
		l := instance(ns, fmt.Sprintf("instance-%d", i))
		l.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(time.Duration(i-1) * time.Hour)))
		leases = append(leases, l)
	}
	foreign := instance(ns, "somebody-elses")
	foreign.Labels = nil
	env.Create(t, leases[0], leases[1], leases[2], foreign)
	left := func(g Gomega) []string {
		var list coordinationv1.LeaseList
		g.Expect(env.Client.List(t.Context(), &list, client.InNamespace(ns))).To(Succeed())
		var names []string
		for _, l := range list.Items {
			names = append(names, l.Name)
		}
		return names
	}
	created := time.Now()
	g.Eventually(func(g Gomega) {
		leases[1].Spec.RenewTime = new(metav1.NewMicroTime(leases[1].Spec.RenewTime.Add(time.Millisecond)))
		g.Expect(env.Client.Update(t.Context(), leases[1])).To(Succeed())
		g.Expect(left(g)).To(ConsistOf("instance-1", "somebody-elses"))
	}, testmgr.Soon, testmgr.Tick).Should(Succeed())
	g.Expect(time.Since(created)).To(BeNumerically(">", deadAfter), "instances were collected before their time")
	g.Eventually(left, testmgr.Soon, testmgr.Tick).Should(ConsistOf("somebody-elses"))
	run.ExpectIdle(t, ns)
	if n := run.Writes(t, ns); n > 4 {
		t.Errorf("%d writes to collect three", n)
	}
}
