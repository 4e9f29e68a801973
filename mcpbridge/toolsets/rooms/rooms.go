package rooms

import (
	"context"
	"slices"
	"strings"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

func (t *Toolset) whoami(_ context.Context, c *toolset.Caller, _ toolset.Args) (any, error) {
	spec := &c.Agent.Spec
	me := Identity{
		Plate: c.Plate, Name: spec.DisplayName, Alias: aliasOf(c.Agent), Owner: spec.Owner, SessionID: c.Session,
		Scopes: []string{}, Delegations: []string{}, PendingMentions: t.Pending(c.Plate),
	}
	for _, s := range spec.Scopes {
		me.Scopes = append(me.Scopes, strings.ToUpper(string(s)))
	}
	for _, d := range spec.Delegations {
		me.Delegations = append(me.Delegations, strings.ToUpper(string(d)))
	}
	return me, nil
}

func (t *Toolset) listRooms(_ context.Context, c *toolset.Caller, _ toolset.Args) (any, error) {
	list := RoomList{Rooms: []RoomInfo{}}
	for _, room := range t.view.RoomsOf(c.Plate) {
		a, ok := t.member(c, room)
		if !ok {
			continue
		}
		last := t.view.Log(room).LastSeq()
		list.Rooms = append(list.Rooms, RoomInfo{
			Room: a.id, Name: room.Spec.DisplayName, State: strings.ToLower(string(room.Spec.State)),
			Role: strings.ToLower(string(a.role)), Unread: last - min(last, t.lastRead(room, c.Plate)),
			MentionsUnread: t.pendingIn(room, c.Plate), LastSeq: last, Description: room.Spec.Description,
		})
	}
	return list, nil
}

// lastRead gives how far an agent has read: as its Inbox says, or further when this replica has shown it more since.
func (t *Toolset) lastRead(room *v1alpha1.Room, plate string) int64 {
	seq := t.reads.get(room.UID, plate)
	if box, ok := t.view.Inbox(room, plate); ok {
		seq = max(seq, box.Status.LastReadSeq)
	}
	return seq
}

func (t *Toolset) listMembers(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	list := MemberList{Members: []MemberInfo{}}
	users := make([]string, 0, len(a.members.Users))
	for user := range a.members.Users {
		users = append(users, user)
	}
	slices.Sort(users)
	for _, user := range users {
		list.Members = append(list.Members, MemberInfo{
			Type: "human", ID: user, Name: user, Role: strings.ToLower(string(a.members.Users[user])),
		})
	}
	for _, m := range a.members.Sorted {
		list.Members = append(list.Members, MemberInfo{
			Type: "agent", ID: ids.ID(m.Agent), Plate: m.Plate, Name: m.Agent.Spec.DisplayName, Alias: m.Alias(),
			Owner: m.Agent.Spec.Owner, Role: strings.ToLower(string(m.Role)), Online: len(t.view.Instances(m.Plate)) > 0,
		})
	}
	return list, nil
}
