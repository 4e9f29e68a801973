// Package membership says who belongs to a Room. Controllers and bridge call it with what their caches hold.
package membership

import (
	"cmp"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// Member is an agent of a room.
type Member struct {
	// Agent as it stands. It must not be changed.
	Agent *v1alpha1.Agent
	// Plate of the agent.
	Plate string
	// Role in the room.
	Role v1alpha1.RoomRole
}

// Alias of the member.
func (m Member) Alias() string { return handles.Alias(m.Agent.Spec.DisplayName, m.Agent.Spec.Owner) }

// Set is who belongs to a room. It must not be changed. The zero value is nobody.
type Set struct {
	// Agents that are members, each once, in the order of the spec. One that is listed twice has its first role.
	Agents []Member
	// Users that are members in person, by username, with their first role.
	Users map[string]v1alpha1.RoomRole
	// Owners are the people who are in the room themselves or through an agent.
	Owners map[string]bool
	// Unknown are the references that no Agent answers to.
	Unknown []v1alpha1.AgentReference
}

// Of gives who belongs to a room. find gives the Agent that a reference of the room means, nil when there is none.
func Of(room *v1alpha1.Room, find func(v1alpha1.AgentReference) *v1alpha1.Agent) Set {
	s := Set{Users: map[string]v1alpha1.RoomRole{}, Owners: map[string]bool{}}
	seen := map[string]bool{}
	for _, m := range room.Spec.Members {
		role := cmp.Or(m.Role, v1alpha1.RoleMember)
		if m.Agent == nil {
			if _, twice := s.Users[m.User]; !twice {
				s.Users[m.User], s.Owners[m.User] = role, true
			}
			continue
		}
		agent := find(*m.Agent)
		if agent == nil {
			s.Unknown = append(s.Unknown, *m.Agent)
			continue
		}
		if plate := ids.Plate(agent); !seen[plate] {
			seen[plate], s.Owners[agent.Spec.Owner] = true, true
			s.Agents = append(s.Agents, Member{Agent: agent, Plate: plate, Role: role})
		}
	}
	return s
}

// Agent finds a member by plate.
func (s Set) Agent(plate string) (Member, bool) {
	for _, m := range s.Agents {
		if m.Plate == plate {
			return m, true
		}
	}
	return Member{}, false
}

// Person says whether a person is a member, or an agent of theirs is.
func (s Set) Person(user string) bool { return user != "" && s.Owners[user] }

// Older orders agents by age. Should an import have made two with one plate, the older one keeps it.
func Older(a, b *v1alpha1.Agent) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
}
