package rooms

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

// boardFixture is a toolset that sees a room with two agents, and no API server.
type boardFixture struct {
	*Toolset

	clock   *clocktesting.FakeClock
	room    *v1alpha1.Room
	ann     *v1alpha1.Agent
	bob     *v1alpha1.Agent
	version int
}

var boardTime = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

func newBoardFixture() *boardFixture {
	clk := clocktesting.NewFakeClock(boardTime)
	f := &boardFixture{Toolset: &Toolset{view: view.New(clk, nil), clock: clk, cards: newCards()}, clock: clk}
	f.ann = &v1alpha1.Agent{ObjectMeta: f.meta("ann"), Spec: v1alpha1.AgentSpec{DisplayName: "ann", Owner: "anna"}}
	f.bob = &v1alpha1.Agent{ObjectMeta: f.meta("bob"), Spec: v1alpha1.AgentSpec{DisplayName: "bob", Owner: "bert"}}
	f.room = &v1alpha1.Room{ObjectMeta: f.meta("shop"), Spec: v1alpha1.RoomSpec{DisplayName: "Shop", Members: []v1alpha1.RoomMember{
		{Agent: &v1alpha1.AgentReference{Name: "ann"}}, {Agent: &v1alpha1.AgentReference{Name: "bob"}},
	}}}
	for _, o := range []any{f.ann, f.bob, f.room} {
		f.view.Saw(o)
	}
	return f
}

// meta gives the metadata of an object that is as new as can be.
func (f *boardFixture) meta(name string) metav1.ObjectMeta {
	f.version++
	return metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(f.version), Generation: 1,
		CreationTimestamp: metav1.NewTime(boardTime.Add(time.Duration(f.version) * time.Second)),
	}
}

func (f *boardFixture) task(name string, edit func(*v1alpha1.Task)) *v1alpha1.Task {
	task := &v1alpha1.Task{ObjectMeta: f.meta(name), Spec: v1alpha1.TaskSpec{
		RoomRef: v1alpha1.RoomReference{Name: "shop"}, Title: name + ` "lease":null <&>`, DefinitionOfDone: "done", Detail: "long",
		Assignee: "bob", Creator: &v1alpha1.TaskCreator{Plate: ids.Plate(f.ann)},
	}, Status: v1alpha1.TaskStatus{State: v1alpha1.TaskTodo}}
	if edit != nil {
		edit(task)
	}
	f.view.Saw(task)
	return task
}

// change shows the view a newer state of an object.
func change[T interface {
	metav1.Object
	DeepCopy() T
}](f *boardFixture, o T, edit func(T)) T {
	next := o.DeepCopy()
	f.version++
	next.SetResourceVersion(strconv.Itoa(f.version))
	next.SetGeneration(next.GetGeneration() + 1)
	edit(next)
	f.view.Saw(next)
	return next
}

// want gives the board as it is when nothing is remembered.
func (f *boardFixture) want(a *access) Board {
	out := Board{Room: a.id, Lanes: []Lane{}, Records: []Record{}, Counts: map[string]int{}}
	list := f.view.Tasks(a.room)
	slices.SortFunc(list, tasks.ByOrder)
	for _, task := range list {
		shown := f.show(a, task)
		shown.Detail = ""
		out.Counts[tasks.ToolState(task.Status.State)]++
		i := slices.IndexFunc(out.Lanes, func(l Lane) bool { return l.Assignee == shown.Assignee })
		if i < 0 {
			i, out.Lanes = len(out.Lanes), append(out.Lanes, Lane{Assignee: shown.Assignee, Alias: shown.AssigneeAlias})
		}
		out.Lanes[i].Tasks = append(out.Lanes[i].Tasks, shown)
		if shown.Record != nil {
			out.Records = append(out.Records, *shown.Record)
		}
	}
	slices.SortFunc(out.Lanes, func(x, y Lane) int { return cmp.Compare(x.Alias, y.Alias) })
	return out
}

func (f *boardFixture) check(t *testing.T, what string) {
	t.Helper()
	room, _ := f.view.Room("ns", "shop")
	a, ok := f.member(&toolset.Caller{Agent: f.ann, Plate: ids.Plate(f.ann)}, room)
	if !ok {
		t.Fatal("ann is no member")
	}
	for _, again := range []string{"", ", read again"} {
		raw, err := f.board(a, "", "")
		if err != nil {
			t.Fatal(err)
		}
		var got Board
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%s%s: the board is %s: %v", what, again, raw, err)
		}
		if diff := gocmp.Diff(f.want(a), got); diff != "" {
			t.Errorf("%s%s: the board differs (-want +got):\n%s", what, again, diff)
		}
	}
}

// TestBoardFollowsEveryChange holds the board that is put together from remembered cards against one made from nothing.
func TestBoardFollowsEveryChange(t *testing.T) {
	f := newBoardFixture()
	f.check(t, "no tasks")
	one, two := f.task("one", nil), f.task("two", func(task *v1alpha1.Task) { task.Spec.DependsOn = []string{"one"} })
	f.task("three", func(task *v1alpha1.Task) { task.Spec.Assignee = "" })
	f.check(t, "three tasks")

	one = change(f, one, func(task *v1alpha1.Task) {
		task.Status.State, task.Status.Epoch = v1alpha1.TaskDoing, 1
		task.Status.Claim = &v1alpha1.TaskClaim{Holder: ids.Plate(f.bob), Session: "s", AcquiredAt: metav1.NewMicroTime(boardTime)}
	})
	f.check(t, "a claim")
	lease := leases.New(one, time.Minute, boardTime)
	lease.UID, lease.ResourceVersion = "uid-lease", "1000"
	f.view.Saw(lease)
	f.check(t, "a lease")
	f.clock.Step(7 * time.Second)
	f.check(t, "time passing")
	renewed := lease.DeepCopy()
	renewed.ResourceVersion = "1001"
	renewed.Spec.RenewTime = &metav1.MicroTime{Time: f.clock.Now()}
	f.view.Saw(renewed)
	f.check(t, "a renewal")
	one = change(f, one, func(task *v1alpha1.Task) {
		task.Status.State, task.Status.Epoch, task.Status.Claim = v1alpha1.TaskDone, 2, nil
		task.Status.Record = &v1alpha1.TaskRecord{Plate: ids.Plate(f.bob), State: v1alpha1.TaskDone, Summary: "did it", At: metav1.NewTime(boardTime)}
	})
	f.check(t, "a result")

	f.ann = change(f, f.ann, func(agent *v1alpha1.Agent) { agent.Spec.Owner = "bert" })
	f.check(t, "another owner, which settles consent")
	f.bob = change(f, f.bob, func(agent *v1alpha1.Agent) { agent.Spec.DisplayName = "robert" })
	f.check(t, "another name")
	f.ann = change(f, f.ann, func(agent *v1alpha1.Agent) { agent.Spec.Owner = "anna" })
	consent := &v1alpha1.Consent{ObjectMeta: f.meta("consent"), Spec: v1alpha1.ConsentSpec{
		RoomRef: v1alpha1.RoomReference{Name: "shop"}, Owner: "bert", Mode: v1alpha1.ConsentApproveAll,
	}}
	f.view.Saw(consent)
	f.check(t, "a consent")
	f.view.Gone(consent)
	f.check(t, "a consent withdrawn")
	f.view.Gone(two)
	f.view.Gone(one)
	f.check(t, "tasks deleted")
}

func BenchmarkBoard(b *testing.B) {
	for _, count := range []int{50, 2000} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			f := newBoardFixture()
			for i := range count {
				f.task(fmt.Sprint("task-", i), nil)
			}
			f.view.Saw(&coordinationv1.Lease{ObjectMeta: f.meta("lease")})
			a, _ := f.member(&toolset.Caller{Agent: f.ann, Plate: ids.Plate(f.ann)}, f.room)
			for b.Loop() {
				if _, err := f.board(a, "", ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
