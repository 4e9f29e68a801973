package view_test

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func uid(n int) types.UID { return types.UID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", n)) }

func meta(name string, n int, version string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "demo", Name: name, UID: uid(n), ResourceVersion: version, CreationTimestamp: metav1.NewTime(start), Generation: 1,
	}
}

func agent(name string, n int, account string) *v1alpha1.Agent {
	return &v1alpha1.Agent{ObjectMeta: meta(name, n, "1"), Spec: v1alpha1.AgentSpec{
		DisplayName: name, Owner: "ann", Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectServiceAccount, Name: account}},
	}}
}

func room(version string, generation int64, members ...v1alpha1.RoomMember) *v1alpha1.Room {
	r := &v1alpha1.Room{ObjectMeta: meta("r", 100, version), Spec: v1alpha1.RoomSpec{DisplayName: "R", Members: members}}
	r.Generation = generation
	return r
}

func member(name string) v1alpha1.RoomMember {
	return v1alpha1.RoomMember{Agent: &v1alpha1.AgentReference{Name: name}}
}

func task(version string, state v1alpha1.TaskState) *v1alpha1.Task {
	return &v1alpha1.Task{
		ObjectMeta: meta("t", 200, version), Spec: v1alpha1.TaskSpec{RoomRef: v1alpha1.RoomReference{Name: "r"}, Title: "t"},
		Status: v1alpha1.TaskStatus{State: state},
	}
}

func TestAnOlderEventNeverUndoesAnOwnWrite(t *testing.T) {
	v := view.New(clocktesting.NewFakePassiveClock(start), nil)
	v.Watched(task("5", v1alpha1.TaskTodo))
	v.Wrote(task("9", v1alpha1.TaskDone))
	v.Watched(task("7", v1alpha1.TaskBlocked))
	if got, _ := v.Task("demo", "t"); got.Status.State != v1alpha1.TaskDone {
		t.Errorf("the view shows %s after a late event", got.Status.State)
	}
	v.Gone(task("10", v1alpha1.TaskDone))
	v.Wrote(task("9", v1alpha1.TaskDone))
	if _, there := v.Task("demo", "t"); there {
		t.Error("an answer that came late brought back what was deleted")
	}
	if _, there := v.TaskByID(ids.ID(task("1", ""))); there {
		t.Error("a deleted task is still found by its id")
	}
}

func TestWhatHasAnIDByNatureKeepsItAgainstAnAnnotation(t *testing.T) {
	v := view.New(clocktesting.NewFakePassiveClock(start), nil)
	honest := task("1", v1alpha1.TaskTodo)
	thief := task("2", v1alpha1.TaskTodo)
	thief.Name, thief.UID, thief.Annotations = "thief", uid(201), map[string]string{v1alpha1.IDAnnotation: ids.ID(honest)}
	for _, order := range [][]*v1alpha1.Task{{honest, thief}, {thief, honest}} {
		v := v
		for _, o := range order {
			v.Watched(o)
		}
		if got, _ := v.TaskByID(ids.ID(honest)); got == nil || got.Name != "t" {
			t.Errorf("the id leads to %v", got)
		}
	}
}

func TestMembershipFollowsRoomsAndAgents(t *testing.T) {
	v := view.New(clocktesting.NewFakePassiveClock(start), nil)
	v.Watched(room("1", 1, member("a"), member("b")))
	a, b := agent("a", 1, "sa"), agent("b", 2, "sb")
	if n := len(v.Members(room("1", 1)).Agents); n != 0 {
		t.Errorf("%d members before the agents exist", n)
	}
	v.Watched(a)
	v.Watched(b)
	if n := len(v.Members(room("1", 1)).Agents); n != 2 || len(v.RoomsOf(ids.Plate(a))) != 1 {
		t.Errorf("%d members, %d rooms of a", n, len(v.RoomsOf(ids.Plate(a))))
	}
	if got := v.AgentsOf("system:serviceaccount:demo:sa"); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("the account leads to %v", got)
	}
	v.Watched(room("2", 2, member("b")))
	if len(v.RoomsOf(ids.Plate(a))) != 0 {
		t.Error("a former member still has the room")
	}
	v.Gone(b)
	if n := len(v.Members(room("2", 2)).Agents); n != 0 {
		t.Error("an agent that is gone is still a member")
	}
}

// TestAClockThatIsAnHourOffMakesNoDifference has the lease renewed by a replica with another clock.
func TestAClockThatIsAnHourOffMakesNoDifference(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, 0, time.Hour} {
		clock := clocktesting.NewFakePassiveClock(start)
		v := view.New(clock, nil)
		held := task("1", v1alpha1.TaskDoing)
		held.Status.Epoch, held.Status.Claim = 1, &v1alpha1.TaskClaim{Holder: "p", Session: "s"}
		lease := func(version string, at time.Time) *coordinationv1.Lease {
			l := leases.New(held, 100*time.Second, at.Add(skew))
			l.UID, l.ResourceVersion = uid(300), version
			return l
		}
		v.Watched(lease("1", start))
		clock.SetTime(start.Add(40 * time.Second))
		if got := v.LeaseRemaining(lease("1", start)); got != 60*time.Second {
			t.Errorf("with a clock %s off, %s remain after 40 of 100 s", skew, got)
		}
		v.Watched(lease("2", start.Add(40*time.Second)))
		if got := v.LeaseRemaining(lease("2", start.Add(40*time.Second))); got != 100*time.Second {
			t.Errorf("with a clock %s off, %s remain after a renewal of 100 s", skew, got)
		}
	}
}

func TestListenersHearOfWhatConcernsThem(t *testing.T) {
	v := view.New(clocktesting.NewFakePassiveClock(start), nil)
	r := room("1", 1, member("a"))
	v.Watched(r)
	board := v.Hub.Listen(t.Context(), view.BoardTopic(ids.ID(r)))
	other := v.Hub.Listen(t.Context(), view.BoardTopic("other"))
	v.Watched(task("1", v1alpha1.TaskTodo))
	v.Watched(task("2", v1alpha1.TaskDoing))
	select {
	case <-board:
	default:
		t.Error("the board's listener heard nothing")
	}
	select {
	case <-board:
		t.Error("two changes that nobody took yet came as two")
	case <-other:
		t.Error("another board's listener was told")
	default:
	}
}
