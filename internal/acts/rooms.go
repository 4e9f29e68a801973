package acts

import (
	"context"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// SetRoomState makes a room Active, Paused (agents only read) or Archived (kept for reading).
func (p *Person) SetRoomState(ctx context.Context, key client.ObjectKey, state v1alpha1.RoomState) (*v1alpha1.Room, error) {
	switch state {
	case v1alpha1.RoomActive, v1alpha1.RoomPaused, v1alpha1.RoomArchived:
	default:
		return nil, problem.Invalid("state", "must be Active, Paused or Archived, not %s", quote(string(state)))
	}
	return change(ctx, p, key, "changing room "+key.Name, func(r *v1alpha1.Room) error {
		r.Spec.State = state
		return nil
	})
}

// Rights are what a person may do in a namespace, by the cluster's roles. Policies may still refuse a single write: another owner's
// Consent, another's decision.
type Rights struct {
	// ReadRooms, ReadAgents, ReadTasks, ReadConsents and ReadMessages are to list them, and to see changes as they happen.
	ReadRooms, ReadAgents, ReadTasks, ReadConsents, ReadMessages bool
	// Send is to say something in rooms.
	Send bool
	// CreateTasks is to create tasks, ChangeTasks to assign, reprioritise, decide, cancel, release, reopen and archive them.
	CreateTasks, ChangeTasks bool
	// SetConsent is to write one's own Consent.
	SetConsent bool
	// ChangeRooms is to pause and archive rooms.
	ChangeRooms bool
	// MintTokens is to make tokens of the namespace's service accounts.
	MintTokens bool
}

// Right is a verb on a resource, for Can.
type Right struct {
	// Group and Resource name the kind; Subresource may be empty.
	Group, Resource, Subresource string
	// Verb of RBAC.
	Verb string
}

// ours is a right on a kind of Agent Rooms.
func ours(verb, resource string) Right {
	return Right{Group: v1alpha1.GroupVersion.Group, Resource: resource, Verb: verb}
}

// Rights asks the API server what the person may do in a namespace; an empty one stands for all namespaces.
func (p *Person) Rights(ctx context.Context, namespace string) (Rights, error) {
	var r Rights
	wanted := []struct {
		to   *bool
		need []Right
	}{
		{&r.ReadRooms, reads("rooms")}, {&r.ReadAgents, reads("agents")}, {&r.ReadTasks, reads("tasks")},
		{&r.ReadConsents, reads("consents")}, {&r.ReadMessages, reads("messagebatches")},
		{&r.Send, []Right{ours("create", "messagebatches"), ours("list", "messagebatches"), ours("get", "messagebatches")}},
		{&r.CreateTasks, []Right{ours("create", "tasks")}}, {&r.ChangeTasks, []Right{ours("get", "tasks"), ours("update", "tasks")}},
		{&r.SetConsent, []Right{ours("list", "consents"), ours("create", "consents"), ours("update", "consents")}},
		{&r.ChangeRooms, []Right{ours("update", "rooms")}},
		{&r.MintTokens, []Right{{Resource: "serviceaccounts", Subresource: "token", Verb: "create"}}},
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, w := range wanted {
		group.Go(func() (err error) {
			*w.to, err = p.Can(ctx, namespace, w.need...)
			return err
		})
	}
	return r, group.Wait() //nolint:wrapcheck // Can explains it
}

func reads(resource string) []Right {
	return []Right{ours("list", resource), ours("watch", resource)}
}

// Can says whether the person has every one of some rights in a namespace; an empty one stands for all namespaces.
func (p *Person) Can(ctx context.Context, namespace string, need ...Right) (bool, error) {
	for _, n := range need {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: n.Verb, Group: n.Group, Resource: n.Resource, Subresource: n.Subresource,
			},
		}}
		if err := p.Client.Create(ctx, review); err != nil {
			return false, Explain(err, "asking what you may do")
		}
		if !review.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}
