package membership_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/membership"
)

func agent(name, owner string) *v1alpha1.Agent {
	return &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1alpha1.AgentSpec{DisplayName: name, Owner: owner},
	}
}

func TestOf(t *testing.T) {
	cc, dd := agent("cc", "said"), agent("dd", "maya")
	find := func(ref v1alpha1.AgentReference) *v1alpha1.Agent {
		for _, a := range []*v1alpha1.Agent{cc, dd} {
			if ref.Name == a.Name || ref.Plate == ids.Plate(a) {
				return a
			}
		}
		return nil
	}
	named := func(name string) *v1alpha1.AgentReference { return &v1alpha1.AgentReference{Name: name} }
	room := &v1alpha1.Room{Spec: v1alpha1.RoomSpec{Members: []v1alpha1.RoomMember{
		{Agent: named("dd"), Role: v1alpha1.RoleViewer},
		{User: "bob"},
		{Agent: named("cc"), Role: v1alpha1.RoleAdmin},
		{Agent: named("gone")},
		{Agent: &v1alpha1.AgentReference{Plate: ids.Plate(dd)}, Role: v1alpha1.RoleAdmin},
		{User: "bob", Role: v1alpha1.RoleAdmin},
	}}}
	got := membership.Of(room, find)
	want := membership.Set{
		Agents: []membership.Member{
			{Agent: dd, Plate: ids.Plate(dd), Role: v1alpha1.RoleViewer}, {Agent: cc, Plate: ids.Plate(cc), Role: v1alpha1.RoleAdmin},
		},
		Users:   map[string]v1alpha1.RoomRole{"bob": v1alpha1.RoleMember},
		Owners:  map[string]bool{"bob": true, "said": true, "maya": true},
		Unknown: []v1alpha1.AgentReference{{Name: "gone"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m, ok := got.Agent(ids.Plate(cc)); !ok || m.Agent != cc {
		t.Error("a member is not found by its plate")
	}
	if _, ok := got.Agent(""); ok {
		t.Error("nobody is a member")
	}
	for person, of := range map[string]bool{"said": true, "bob": true, "mallory": false, "": false} {
		if got.Person(person) != of {
			t.Errorf("%q is of the room %t, want %t", person, !of, of)
		}
	}
}

func TestOlder(t *testing.T) {
	first, second, twin := agent("b", "said"), agent("a", "said"), agent("c", "said")
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	first.CreationTimestamp = metav1.NewTime(at)
	second.CreationTimestamp = metav1.NewTime(at.Add(time.Second))
	twin.CreationTimestamp = second.CreationTimestamp
	list := []*v1alpha1.Agent{twin, second, first}
	slices.SortFunc(list, membership.Older)
	if list[0] != first || list[1] != second || list[2] != twin {
		t.Errorf("order %s %s %s", list[0].Name, list[1].Name, list[2].Name)
	}
}
