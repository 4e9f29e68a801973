package members

import (
	"testing"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
)

func TestSet(t *testing.T) {
	cc := &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{Owner: "said"}}
	cc.UID = "cc"
	s := Set{Agents: []*v1alpha1.Agent{cc}, Users: []string{"bob"}}
	if a, ok := s.Agent(ids.Plate(cc)); !ok || a != cc {
		t.Error("a member is not found by its plate")
	}
	if _, ok := s.Agent(""); ok {
		t.Error("nobody is a member")
	}
	for person, want := range map[string]bool{"said": true, "bob": true, "mallory": false, "": false} {
		if got := s.Person(person); got != want {
			t.Errorf("%q is of the room %t, want %t", person, got, want)
		}
	}
}
