// Package members finds out who belongs to a Room.
package members

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/internal/membership"
)

// Set is who belongs to a Room.
type Set = membership.Set

// Of reads who belongs to a Room. Its objects come from a cache and must not be changed.
func Of(ctx context.Context, c client.Reader, room *v1alpha1.Room) (Set, error) {
	var failed []error
	set := membership.Of(room, func(ref v1alpha1.AgentReference) *v1alpha1.Agent {
		a, err := Resolve(ctx, c, room.Namespace, ref)
		failed = append(failed, err)
		return a
	})
	if err := errors.Join(failed...); err != nil {
		return Set{}, err
	}
	return set, nil
}

// Resolve finds the Agent that a reference means, nil when there is none.
func Resolve(ctx context.Context, c client.Reader, namespace string, ref v1alpha1.AgentReference) (*v1alpha1.Agent, error) {
	if ref.Plate != "" {
		return ByPlate(ctx, c, ref.Plate)
	}
	a := &v1alpha1.Agent{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, a, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading agent %s: %w", ref.Name, err)
	}
	return a, nil
}

// ByPlate finds the Agent with a plate in any namespace, nil when there is none. Should an import have made two, the older
// one keeps its plate.
func ByPlate(ctx context.Context, c client.Reader, plate string) (*v1alpha1.Agent, error) {
	var list v1alpha1.AgentList
	if err := c.List(ctx, &list, client.MatchingFields{index.AgentPlate: plate}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("finding agent %s: %w", plate, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	oldest := slices.MinFunc(list.Items, func(a, b v1alpha1.Agent) int { return membership.Older(&a, &b) })
	return &oldest, nil
}
