package room

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/members"
	"github.com/agentrooms/agentrooms/controllers/internal/testmgr"
	"github.com/agentrooms/agentrooms/controllers/logs"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestCount(t *testing.T) {
	var list []v1alpha1.Task
	for i, state := range []v1alpha1.TaskState{
		v1alpha1.TaskTodo, v1alpha1.TaskTodo, v1alpha1.TaskDoing, v1alpha1.TaskBlocked, v1alpha1.TaskDone, v1alpha1.TaskFailed,
		v1alpha1.TaskCancelled, v1alpha1.TaskDone, "Unheard-of",
	} {
		list = append(list, v1alpha1.Task{Spec: v1alpha1.TaskSpec{Archived: i == 7}, Status: v1alpha1.TaskStatus{State: state}})
	}
	want := v1alpha1.TaskCounts{Todo: 2, Doing: 1, Blocked: 1, Done: 1, Failed: 1, Cancelled: 1}
	if diff := cmp.Diff(want, count(list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatus(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	unknown := func(n int) members.Set {
		var s members.Set
		for i := range n {
			s.Unknown = append(s.Unknown, v1alpha1.AgentReference{Name: fmt.Sprintf("a%d", i)})
		}
		return s
	}
	for name, c := range map[string]struct {
		state   v1alpha1.RoomState
		set     members.Set
		want    string
		message string
	}{
		"in use":                      {want: "True Ready", message: "in use"},
		"paused":                      {state: v1alpha1.RoomPaused, set: unknown(1), want: "False Paused"},
		"archived":                    {state: v1alpha1.RoomArchived, set: unknown(1), want: "False Archived"},
		"with a member nobody knows":  {state: v1alpha1.RoomActive, set: unknown(1), want: "False UnknownMember", message: ": a0"},
		"with many that nobody knows": {state: v1alpha1.RoomActive, set: unknown(250), want: "False UnknownMember", message: "a9, and 240 more"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.Room{Spec: v1alpha1.RoomSpec{State: c.state}}
			r.Generation, r.UID, r.Status.LastSeq = 4, "uid", 9
			s := status(r, c.set, v1alpha1.TaskCounts{Todo: 1}, 7, now)
			ready := s.Conditions[0]
			if got := string(ready.Status) + " " + ready.Reason; got != c.want || !strings.Contains(ready.Message, c.message) {
				t.Errorf("%s (%s), want %s (…%s…)", got, ready.Message, c.want, c.message)
			}
			if s.LastSeq != 9 {
				t.Errorf("lastSeq %d, want 9: it does not go back when old messages leave", s.LastSeq)
			}
			if p := testenv.StatusProblems(4, s.ObservedGeneration, s.Conditions); len(p) > 0 {
				t.Error(p)
			}
			// The same again is the same.
			r.Status = s
			if diff := cmp.Diff(s, status(r, c.set, v1alpha1.TaskCounts{Todo: 1}, 7, now.Add(time.Hour)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("an hour later (-want +got):\n%s", diff)
			}
		})
	}
}

func start(t *testing.T, env *testenv.Env, every time.Duration) *testmgr.Run {
	t.Helper()
	return testmgr.Start(t, env, func(mgr ctrl.Manager) error {
		l, err := logs.New(mgr)
		if err != nil {
			return err
		}
		r := &Reconciler{Client: mgr.GetClient(), Logs: l, Clock: clock.RealClock{}, Events: mgr.GetEventRecorder("test"), Every: every}
		return r.SetupWithManager(mgr)
	})
}

func TestRoom(t *testing.T) {
	env := testenv.Get(t)
	ns, g := env.Namespace(t), NewWithT(t)
	run := start(t, env, 100*time.Millisecond)
	room := testenv.Room(ns, "lab", "cc")
	elsewhere := testenv.Agent(env.Namespace(t), "far", "said")
	env.Create(t, elsewhere)
	room.Spec.Members = append(room.Spec.Members,
		v1alpha1.RoomMember{Agent: &v1alpha1.AgentReference{Plate: ids.Plate(elsewhere)}}, v1alpha1.RoomMember{User: "said"})
	env.Create(t, room)
	want := func(status metav1.ConditionStatus, reason string, more ...func(Gomega)) {
		t.Helper()
		g.Eventually(func(g Gomega) {
			g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(room), room)).To(Succeed())
			g.Expect(room.Status.Conditions).To(HaveLen(1))
			g.Expect(room.Status.Conditions[0].Status).To(Equal(status))
			g.Expect(room.Status.Conditions[0].Reason).To(Equal(reason))
			g.Expect(testenv.StatusProblems(room.Generation, room.Status.ObservedGeneration, room.Status.Conditions)).To(BeEmpty())
			for _, m := range more {
				m(g)
			}
		}, testmgr.Soon, testmgr.Tick).Should(Succeed())
	}
	want(metav1.ConditionFalse, v1alpha1.UnknownMemberReason)
	env.Create(t, testenv.Agent(ns, "cc", "said"))
	want(metav1.ConditionTrue, v1alpha1.ReadyReason)
	if room.Status.ID != ids.ID(room) || room.Status.Members != 3 {
		t.Errorf("id %s and %d members, want %s and 3", room.Status.ID, room.Status.Members, ids.ID(room))
	}

	env.Create(t, testenv.Task(ns, "lab", "one", "said"), testenv.Task(ns, "lab", "two", "said"), testenv.Task(ns, "other", "three", "said"))
	// The count goes along the chain: what a batch says of itself is not believed.
	env.Create(t, batch(room, 1, 1, 2), batch(room, 2, 5000, 1), batch(room, 7, 900, 1))
	counted := func(todo int32, seq int64) func(Gomega) {
		return func(g Gomega) {
			g.Expect(room.Status.Tasks).To(Equal(v1alpha1.TaskCounts{Todo: todo}))
			g.Expect(room.Status.LastSeq).To(Equal(seq))
		}
	}
	want(metav1.ConditionTrue, v1alpha1.ReadyReason, counted(2, 3))
	if err := env.Client.Delete(t.Context(), testenv.Task(ns, "lab", "one", "said")); err != nil {
		t.Fatal(err)
	}
	want(metav1.ConditionTrue, v1alpha1.ReadyReason, counted(1, 3))
	run.ExpectIdle(t, ns)

	for _, state := range []v1alpha1.RoomState{v1alpha1.RoomPaused, v1alpha1.RoomArchived} {
		room.Spec.State = state
		if err := env.Client.Update(t.Context(), room); err != nil {
			t.Fatal(err)
		}
		want(metav1.ConditionFalse, string(state))
	}
	g.Eventually(func(g Gomega) {
		var list eventsv1.EventList
		g.Expect(env.Client.List(t.Context(), &list, client.InNamespace(ns))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Reason).To(Equal("Archived"))
		g.Expect(list.Items[0].Regarding.Name).To(Equal("lab"))
	}, testmgr.Soon, testmgr.Tick).Should(Succeed())
}

// batch is a piece of a room's log.
func batch(room *v1alpha1.Room, number, first int64, n int) *v1alpha1.MessageBatch {
	b := &v1alpha1.MessageBatch{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: room.Namespace, Name: ids.BatchName(room.Name, room.UID, number),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Room", Name: room.Name, UID: room.UID,
			}},
		},
		Spec: v1alpha1.MessageBatchSpec{
			RoomRef: v1alpha1.RoomReference{Name: room.Name}, Number: number, FirstSeq: first, Writer: "test",
		},
	}
	for range n {
		b.Spec.Messages = append(b.Spec.Messages, v1alpha1.Message{
			Sender: v1alpha1.MessageSender{Type: v1alpha1.SenderHuman, ID: "said"}, Body: "hello", At: metav1.NowMicro(),
		})
	}
	return b
}

// TestBusyRoom lets much happen in a room, and counts the writes of its status.
func TestBusyRoom(t *testing.T) {
	env := testenv.Get(t)
	ns, g := env.Namespace(t), NewWithT(t)
	const every = time.Second
	run := start(t, env, every)
	room := testenv.Room(ns, "lab")
	env.Create(t, room)
	began := time.Now()
	n := int64(0)
	for time.Since(began) < 3*every {
		n++
		env.Create(t, testenv.Task(ns, "lab", fmt.Sprintf("t%d", n), "said"), batch(room, n, n, 1))
	}
	took := time.Since(began)
	g.Eventually(func(g Gomega) {
		g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(room), room)).To(Succeed())
		g.Expect(room.Status.LastSeq).To(Equal(n))
		g.Expect(room.Status.Tasks.Todo).To(BeEquivalentTo(n))
	}, testmgr.Soon, testmgr.Tick).Should(Succeed())
	writes := run.Writes(t, ns)
	t.Logf("%d tasks and messages in %s made %d status writes", n, took, writes)
	// The first, one a period, and one after the end.
	g.Expect(writes).To(BeNumerically("<=", int(took/every)+3))
}
