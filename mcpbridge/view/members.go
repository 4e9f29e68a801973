package view

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/inboxes"
	"github.com/agentrooms/agentrooms/internal/membership"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// Member is an agent of a room.
type Member = membership.Member

// Members is who belongs to a room. It must not be changed.
type Members struct {
	// Agents by plate.
	Agents map[string]Member
	// Sorted are the agents in the order of their aliases.
	Sorted []Member
	// Users by username.
	Users map[string]v1alpha1.RoomRole
	// Owners are the people who are in the room themselves or through an agent.
	Owners map[string]bool
	// Handles are the agents as handles are matched against.
	Handles []handles.Agent
}

// roster is who belongs where, made anew when a room's or an agent's spec changes.
type roster struct {
	version   int64
	byPlate   map[string]*v1alpha1.Agent
	bySubject map[string][]*v1alpha1.Agent
	byRoom    map[types.NamespacedName]*Members
	seats     map[string][]seat
}

// seat is the place of an agent in a room, with the names that are looked up for it in every call: making them anew takes
// longer than looking them up.
type seat struct {
	room, inbox types.NamespacedName
	log         roomlog.Key
}

func newSeat(room *v1alpha1.Room, plate string) seat {
	return seat{
		room: keyOf(room), log: roomlog.KeyOf(room),
		inbox: types.NamespacedName{Namespace: room.Namespace, Name: ids.InboxName(room.Name, room.UID, plate)},
	}
}

// dropMembership says that the membership must be made anew. It takes no lock, as it is called under others.
func (v *View) dropMembership() { v.membersVersion.Add(1) }

// membership gives who belongs where, as of the last change that was seen before the call.
func (v *View) membership() *roster {
	if m := v.members.Load(); m != nil && m.version == v.membersVersion.Load() {
		return m
	}
	v.membersMu.Lock()
	defer v.membersMu.Unlock()
	version := v.membersVersion.Load()
	if m := v.members.Load(); m != nil && m.version == version {
		return m
	}
	m := v.buildMembership()
	m.version = version
	v.members.Store(m)
	return m
}

func (v *View) buildMembership() *roster {
	m := &roster{
		byPlate: map[string]*v1alpha1.Agent{}, bySubject: map[string][]*v1alpha1.Agent{},
		byRoom: map[types.NamespacedName]*Members{}, seats: map[string][]seat{},
	}
	agents := v.agents.all()
	slices.SortFunc(agents, membership.Older)
	byName := map[types.NamespacedName]*v1alpha1.Agent{}
	for _, a := range agents {
		byName[keyOf(a)] = a
		if plate := ids.Plate(a); m.byPlate[plate] == nil {
			m.byPlate[plate] = a
		}
		for _, user := range ids.Usernames(a) {
			m.bySubject[user] = append(m.bySubject[user], a)
		}
	}
	rooms := v.rooms.all()
	slices.SortFunc(rooms, func(a, b *v1alpha1.Room) int { return cmp.Compare(ids.ID(a), ids.ID(b)) })
	for _, room := range rooms {
		members := m.membersOf(room, byName)
		m.byRoom[keyOf(room)] = members
		for plate := range members.Agents {
			m.seats[plate] = append(m.seats[plate], newSeat(room, plate))
		}
	}
	return m
}

func (m *roster) membersOf(room *v1alpha1.Room, byName map[types.NamespacedName]*v1alpha1.Agent) *Members {
	set := membership.Of(room, func(ref v1alpha1.AgentReference) *v1alpha1.Agent {
		if ref.Plate != "" {
			return m.byPlate[ref.Plate]
		}
		return byName[types.NamespacedName{Namespace: room.Namespace, Name: ref.Name}]
	})
	out := &Members{Agents: map[string]Member{}, Sorted: set.Agents, Users: set.Users, Owners: set.Owners}
	for _, member := range set.Agents {
		out.Agents[member.Plate] = member
	}
	slices.SortFunc(out.Sorted, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Alias(), b.Alias()), cmp.Compare(a.Plate, b.Plate))
	})
	for _, member := range out.Sorted {
		out.Handles = append(out.Handles, handles.Agent{
			Plate: member.Plate, Name: member.Agent.Spec.DisplayName, Owner: member.Agent.Spec.Owner,
		})
	}
	return out
}

// AgentsOf gives the agents that list a username among their subjects.
func (v *View) AgentsOf(username string) []*v1alpha1.Agent { return v.membership().bySubject[username] }

// AgentByPlate finds an agent by its plate.
func (v *View) AgentByPlate(plate string) (*v1alpha1.Agent, bool) {
	a, ok := v.membership().byPlate[plate]
	return a, ok
}

// Agent finds an agent by namespace and name.
func (v *View) Agent(namespace, name string) (*v1alpha1.Agent, bool) {
	return v.agents.get(namespace, name)
}

// Members gives who belongs to a room.
func (v *View) Members(room *v1alpha1.Room) *Members {
	if m, ok := v.membership().byRoom[keyOf(room)]; ok {
		return m
	}
	return &Members{}
}

// RoomsOf gives the rooms that an agent is a member of, by id.
func (v *View) RoomsOf(plate string) []*v1alpha1.Room {
	seats := v.membership().seats[plate]
	rooms := make([]*v1alpha1.Room, 0, len(seats))
	for _, s := range seats {
		if room, ok := v.rooms.get(s.room.Namespace, s.room.Name); ok {
			rooms = append(rooms, room)
		}
	}
	return rooms
}

// Pending counts the mentions of an agent that are not acknowledged, over all its rooms.
func (v *View) Pending(plate string) int {
	n := 0
	for _, s := range v.membership().seats[plate] {
		var status v1alpha1.InboxStatus
		if box, ok := v.inboxes.get(s.inbox.Namespace, s.inbox.Name); ok {
			status = box.Status
		}
		n += inboxes.Pending(&status, inboxes.All(&status, v.Book.Log(s.log).Refs(plate)))
	}
	return n
}
