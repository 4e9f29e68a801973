package inbox

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/members"
	"github.com/agentrooms/agentrooms/controllers/internal/testmgr"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/membership"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestInboxes(t *testing.T) {
	room := testenv.Room("ns", "lab")
	room.UID = "room"
	cc, dd := testenv.Agent("ns", "cc", "said"), testenv.Agent("elsewhere", "dd", "bob")
	cc.UID, dd.UID = "cc", "dd"
	list := inboxes(room, members.Set{
		Agents: []membership.Member{{Agent: cc, Plate: ids.Plate(cc)}, {Agent: dd, Plate: ids.Plate(dd)}},
		Users:  map[string]v1alpha1.RoomRole{"said": v1alpha1.RoleMember},
	})
	if len(list) != 2 {
		t.Fatalf("%d inboxes, want 2", len(list))
	}
	for i, a := range []*v1alpha1.Agent{cc, dd} {
		box := list[i]
		if box.Namespace != "ns" || box.Name != ids.InboxName("lab", "room", ids.Plate(a)) || box.Spec.Plate != ids.Plate(a) ||
			box.Labels[v1alpha1.RoomLabel] != "lab" || !metav1.IsControlledBy(box, room) {
			t.Errorf("inbox %+v", box)
		}
	}
}

func TestInbox(t *testing.T) {
	env := testenv.Get(t)
	ns, g := env.Namespace(t), NewWithT(t)
	run := testmgr.Start(t, env, func(mgr ctrl.Manager) error {
		return (&Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}).SetupWithManager(mgr)
	})
	room := testenv.Room(ns, "lab", "cc", "late")
	cc, late := testenv.Agent(ns, "cc", "said"), testenv.Agent(ns, "late", "bob")
	env.Create(t, cc, room)
	boxes := func(want ...*v1alpha1.Agent) []v1alpha1.Inbox {
		t.Helper()
		var list v1alpha1.InboxList
		g.Eventually(func(g Gomega) {
			g.Expect(env.Client.List(t.Context(), &list, client.InNamespace(ns))).To(Succeed())
			var plates []string
			for _, b := range list.Items {
				plates = append(plates, b.Spec.Plate)
			}
			var wanted []string
			for _, a := range want {
				wanted = append(wanted, ids.Plate(a))
			}
			g.Expect(plates).To(ConsistOf(wanted))
		}, testmgr.Soon, testmgr.Tick).Should(Succeed())
		return list.Items
	}
	boxes(cc)
	env.Create(t, late)
	made := boxes(cc, late)
	// One that is deleted is made anew, and one whose agent leaves stays.
	g.Expect(env.Client.Delete(t.Context(), &made[0])).To(Succeed())
	again := boxes(cc, late)
	g.Expect(again[0].UID).NotTo(Equal(made[0].UID))
	g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(room), room)).To(Succeed())
	room.Spec.Members = room.Spec.Members[:1]
	g.Expect(env.Client.Update(t.Context(), room)).To(Succeed())
	run.ExpectIdle(t, ns)
	boxes(cc, late)
	if n := run.Writes(t, ns); n != 3 {
		t.Errorf("%d writes for three inboxes", n)
	}
}

// TestTheInboxOfAnAgentThatIsGoneGoes deletes an agent, and lets a day pass.
func TestTheInboxOfAnAgentThatIsGoneGoes(t *testing.T) {
	env := testenv.Get(t)
	ns, g := env.Namespace(t), NewWithT(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	run := testmgr.Start(t, env, func(mgr ctrl.Manager) error {
		return (&Reconciler{Client: mgr.GetClient(), Clock: now}).SetupWithManager(mgr)
	})
	room := testenv.Room(ns, "lab", "cc", "dd", "ee")
	cc, dd, ee := testenv.Agent(ns, "cc", "said"), testenv.Agent(ns, "dd", "said"), testenv.Agent(ns, "ee", "said")
	env.Create(t, cc, dd, ee, room)
	plates := func() []string {
		var list v1alpha1.InboxList
		g.Expect(env.Client.List(t.Context(), &list, client.InNamespace(ns))).To(Succeed())
		var plates []string
		for _, b := range list.Items {
			plates = append(plates, b.Spec.Plate)
		}
		return plates
	}
	all := []string{ids.Plate(cc), ids.Plate(dd), ids.Plate(ee)}
	g.Eventually(plates, testmgr.Soon, testmgr.Tick).Should(ConsistOf(all))
	// dd goes: for a day its Inbox stays, whatever happens to the room.
	g.Expect(env.Client.Delete(t.Context(), dd)).To(Succeed())
	run.ExpectIdle(t, ns)
	g.Expect(plates()).To(ConsistOf(all))
	now.SetTime(time.Now().Add(Keep + time.Minute))
	room.Spec.Members = room.Spec.Members[:1] // ee leaves the room, and exists
	g.Expect(env.Client.Update(t.Context(), room)).To(Succeed())
	g.Eventually(plates, testmgr.Soon, testmgr.Tick).Should(ConsistOf(ids.Plate(cc), ids.Plate(ee)))
	run.ExpectIdle(t, ns)
	g.Expect(plates()).To(ConsistOf(ids.Plate(cc), ids.Plate(ee)))
}
