package retention

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/members"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/inboxes"
)

// carry takes the pending mentions of a segment over into the Inboxes of the room's agents. It gives the name of an agent
// whose Inbox is full: then nothing may be deleted.
func (r *Reconciler) carry(ctx context.Context, room *v1alpha1.Room, s *archive.Segment) (full string, err error) {
	set, err := members.Of(ctx, r.Client, room)
	if err != nil {
		return "", fmt.Errorf("reading the members of room %s: %w", room.Name, err)
	}
	refs := mentions(s)
	for _, agent := range set.Agents {
		plate := agent.Plate
		mine := refs[plate]
		if len(mine) == 0 {
			continue
		}
		delete(refs, plate)
		fits, err := r.carryTo(ctx, room, plate, mine)
		if err != nil {
			return "", err
		}
		if !fits {
			return agent.Agent.Name, nil
		}
	}
	return "", nil
}

// mentions gives the mentions of a segment by the agents that they are for.
func mentions(s *archive.Segment) map[string][]inboxes.Ref {
	refs := map[string][]inboxes.Ref{}
	for i := range s.Messages {
		m := &s.Messages[i]
		for j, mention := range m.Mentions {
			key := v1alpha1.MentionKey{Seq: s.First + int64(i), Index: int32(j)} //nolint:gosec // at most 49
			refs[mention.Plate] = append(refs[mention.Plate], inboxes.Ref{Key: key, Session: mention.Session, At: m.At})
		}
	}
	return refs
}

// carryTo takes pending mentions over into one Inbox, false when it cannot hold them.
func (r *Reconciler) carryTo(ctx context.Context, room *v1alpha1.Room, plate string, refs []inboxes.Ref) (bool, error) {
	box := &v1alpha1.Inbox{}
	name := ids.InboxName(room.Name, room.UID, plate)
	// The inbox controller makes one for each member: until it has, this is tried again.
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: room.Namespace, Name: name}, box); err != nil {
		return false, fmt.Errorf("reading inbox %s: %w", name, err)
	}
	next, fits := inboxes.Carry(&box.Status, refs)
	if next == nil || !fits {
		return fits, nil
	}
	box.Status = *next
	if err := r.Client.Status().Update(ctx, box); err != nil {
		return false, fmt.Errorf("writing inbox %s: %w", name, err)
	}
	return true, nil
}
