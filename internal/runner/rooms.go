package runner

import (
	"slices"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

// FindRooms gives the ids of the rooms that are named by id, or by a name that only one of them has.
func FindRooms(list []rooms.RoomInfo, names []string) ([]string, error) {
	var found []string
	for _, name := range names {
		id, matches := "", 0
		for _, r := range list {
			if r.Room == name {
				id, matches = r.Room, 1
				break
			}
			if r.Name == name {
				id = r.Room
				matches++
			}
		}
		switch {
		case matches == 0:
			return nil, problem.New(problem.NotFound, "the agent is in no room %q: give the id or the name of one that it is a member of", name)
		case matches > 1:
			return nil, problem.Invalid("room", "%q is the name of %d rooms: give the id of the one that is meant", name, matches)
		}
		if !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	return found, nil
}
