package inbox

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// Keep is how long an Inbox stays at least when its agent is gone: so long that one who restores a room may write Inboxes before
// Agents.
const Keep = 24 * time.Hour

// collect deletes the Inboxes of a Room whose agents are gone. A plate is made of an Agent's UID and never comes again. It
// gives how long until there is another, 0 for never. The Inbox of an agent that left the room stays, for when it comes back.
func (r *Reconciler) collect(ctx context.Context, room *v1alpha1.Room) (time.Duration, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("InboxList"))
	err := r.Client.List(ctx, list, client.InNamespace(room.Namespace), client.MatchingLabels{v1alpha1.RoomLabel: room.Name})
	if err != nil {
		return 0, fmt.Errorf("listing the inboxes of room %s: %w", room.Name, err)
	}
	known, err := r.known(ctx, room)
	if err != nil {
		return 0, err
	}
	var wait time.Duration
	for i := range list.Items {
		inbox := &list.Items[i]
		if !metav1.IsControlledBy(inbox, room) || known.Has(inbox.Name) {
			continue
		}
		if left := Keep - r.Clock.Since(inbox.CreationTimestamp.Time); left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		err := r.Client.Delete(ctx, inbox, client.Preconditions{UID: &inbox.UID})
		if err := client.IgnoreNotFound(err); err != nil {
			return 0, fmt.Errorf("deleting inbox %s: %w", inbox.Name, err)
		}
	}
	return wait, nil
}

// known gives the names of the Inboxes that agents which exist have or could have in a Room.
func (r *Reconciler) known(ctx context.Context, room *v1alpha1.Room) (sets.Set[string], error) {
	var agents v1alpha1.AgentList
	if err := r.Client.List(ctx, &agents, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing agents: %w", err)
	}
	names := sets.New[string]()
	for i := range agents.Items {
		names.Insert(ids.InboxName(room.Name, room.UID, ids.Plate(&agents.Items[i])))
	}
	return names, nil
}
