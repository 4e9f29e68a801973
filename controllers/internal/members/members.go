// Package members finds out who belongs to a Room.
package members

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// Set is who belongs to a Room. Its objects come from a cache and must not be changed. The zero value is nobody.
type Set struct {
	// Agents that are members, in the order of the spec.
	Agents []*v1alpha1.Agent
	// Users that are members in person.
	Users []string
	// Unknown are the references that no Agent answers to.
	Unknown []v1alpha1.AgentReference
}

// Agent finds a member by plate.
func (s Set) Agent(plate string) (*v1alpha1.Agent, bool) {
	for _, a := range s.Agents {
		if ids.Plate(a) == plate {
			return a, true
		}
	}
	return nil, false
}

// Person says whether a person is a member, or an agent of theirs is.
func (s Set) Person(user string) bool {
	return user != "" && (slices.Contains(s.Users, user) ||
		slices.ContainsFunc(s.Agents, func(a *v1alpha1.Agent) bool { return a.Spec.Owner == user }))
}

// Of reads who belongs to a Room.
func Of(ctx context.Context, c client.Reader, room *v1alpha1.Room) (Set, error) {
	var s Set
	for _, m := range room.Spec.Members {
		if m.Agent == nil {
			s.Users = append(s.Users, m.User)
			continue
		}
		a, err := Resolve(ctx, c, room.Namespace, *m.Agent)
		switch {
		case err != nil:
			return Set{}, err
		case a == nil:
			s.Unknown = append(s.Unknown, *m.Agent)
		default:
			s.Agents = append(s.Agents, a)
		}
	}
	return s, nil
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
	oldest := slices.MinFunc(list.Items, func(a, b v1alpha1.Agent) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return &oldest, nil
}
