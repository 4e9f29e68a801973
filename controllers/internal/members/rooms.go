package members

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// RoomsOf finds the Rooms that list an Agent, by plate or by name.
func RoomsOf(ctx context.Context, c client.Reader, agent *v1alpha1.Agent) ([]v1alpha1.Room, error) {
	var all []v1alpha1.Room
	for _, opts := range [][]client.ListOption{
		{client.MatchingFields{index.RoomMember: ids.Plate(agent)}},
		{client.MatchingFields{index.RoomMember: agent.Name}, client.InNamespace(agent.Namespace)},
	} {
		var rooms v1alpha1.RoomList
		if err := c.List(ctx, &rooms, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
			return nil, fmt.Errorf("finding the rooms of agent %s: %w", agent.Name, err)
		}
		all = append(all, rooms.Items...)
	}
	return all, nil
}

// MapToRooms maps an Agent to the Rooms that list it.
func MapToRooms(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		rooms, err := RoomsOf(ctx, c, o.(*v1alpha1.Agent))
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Finding the rooms of an agent")
		}
		requests := make([]reconcile.Request, 0, len(rooms))
		for i := range rooms {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&rooms[i])})
		}
		return requests
	}
}
