package acts

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// Accept takes a proposal to an agent that the person owns. terms is the digest of what they have read (consent.Terms), empty for
// whatever the task says now. Accept and Reject return when the controller has carried the decision out.
func (p *Person) Accept(ctx context.Context, key client.ObjectKey, terms, reason string) (*v1alpha1.Task, error) {
	return p.decide(ctx, key, v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictAccept, Reason: reason}, terms)
}

// Reject refuses a proposal to an agent that the person owns. See Accept.
func (p *Person) Reject(ctx context.Context, key client.ObjectKey, terms, reason string) (*v1alpha1.Task, error) {
	return p.decide(ctx, key, v1alpha1.TaskDecision{Verdict: v1alpha1.VerdictReject, Reason: reason}, terms)
}

func (p *Person) decide(
	ctx context.Context, key client.ObjectKey, d v1alpha1.TaskDecision, terms string,
) (*v1alpha1.Task, error) {
	if err := checkReason(d.Reason); err != nil {
		return nil, err
	}
	d.By = p.Name
	stands := false
	task, err := p.changeTask(ctx, key, "deciding on", func(t *v1alpha1.Task) error {
		proposal, err := p.proposal(ctx, t)
		if err != nil {
			return err
		}
		decider := consent.Decider{Owner: p.Name, Delegated: true, Terms: terms}
		next, changed, bad := consent.Decide(t, proposal, decider, d.Verdict, d.Reason, p.Clock.Now())
		if bad != nil {
			return bad
		}
		current, _ := consent.Settle(t, proposal, p.Clock.Now())
		if stands = !changed || current.State == next.State; stands {
			return nil // It stands already, also when a Consent of theirs has accepted it.
		}
		t.Spec.Decision = &d
		return nil
	})
	if err != nil || stands {
		return task, err
	}
	return p.await(ctx, task, func(t *v1alpha1.Task) bool {
		c := t.Status.Consent
		return (c != nil && c.By == p.Name && c.State != v1alpha1.ConsentPending) || t.Spec.Decision == nil
	})
}

// proposal is what an assignment looks like to the assignee's owner.
func (p *Person) proposal(ctx context.Context, task *v1alpha1.Task) (consent.Proposal, error) {
	room, err := p.roomOf(ctx, task)
	if err != nil {
		return consent.Proposal{}, err
	}
	members, err := p.Members(ctx, room)
	if err != nil {
		return consent.Proposal{}, err
	}
	parties := consent.Parties{InRoom: members.Person}
	if task.Spec.Assignee != "" {
		if parties.Assignee, err = p.agent(ctx, task.Namespace, members, task.Spec.Assignee); err != nil {
			return consent.Proposal{}, err
		}
		if parties.Assignee == nil {
			return consent.Proposal{}, problem.New(problem.NotFound, "no agent that you may see is called %s", quote(task.Spec.Assignee))
		}
	}
	if by := consent.AssignedBy(task); by != nil && by.Plate != "" {
		if parties.Assigner, err = p.agent(ctx, task.Namespace, members, by.Plate); err != nil {
			return consent.Proposal{}, err
		}
	}
	var unread error
	parties.InForce = func(owner string) (inForce *v1alpha1.Consent) {
		inForce, unread = p.Consent(ctx, room, owner)
		return inForce
	}
	proposal := consent.Propose(task, parties)
	return proposal, unread
}

// agent finds an agent by plate, or by its name in a namespace, nil when the person sees none.
func (p *Person) agent(ctx context.Context, namespace string, members Members, name string) (*v1alpha1.Agent, error) {
	if a, ok := members.Objects[name]; ok {
		return a, nil
	}
	ref := v1alpha1.AgentReference{Name: name}
	if ids.IsPlate(name) {
		ref = v1alpha1.AgentReference{Plate: name}
	}
	var list v1alpha1.AgentList
	if err := p.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, Explain(err, "reading the agents of namespace "+namespace)
	}
	known := agents(list.Items)
	if a := known.find(namespace, ref); a != nil || ref.Plate == "" {
		return a, nil
	}
	all, err := p.everywhere(ctx, known)
	if err != nil {
		return nil, err
	}
	return all.find(namespace, ref), nil
}

// Consent reads the Consent of an owner that is in force in a room, nil when there is none.
func (p *Person) Consent(ctx context.Context, room *v1alpha1.Room, owner string) (*v1alpha1.Consent, error) {
	if owner == "" {
		return nil, nil
	}
	var list v1alpha1.ConsentList
	err := p.Client.List(ctx, &list, client.InNamespace(room.Namespace), client.MatchingFields{"spec.roomRef.name": room.Name})
	if err != nil {
		return nil, Explain(err, "reading the consents of room "+room.Name)
	}
	var theirs []*v1alpha1.Consent
	for i := range list.Items {
		if list.Items[i].Spec.Owner == owner {
			theirs = append(theirs, &list.Items[i])
		}
	}
	return consent.InForce(theirs), nil
}

// SetConsent says which proposals the person's agents take unasked in a room. collaborators are kept when nil; the mode
// TrustCollaborator needs at least one.
func (p *Person) SetConsent(
	ctx context.Context, room *v1alpha1.Room, mode v1alpha1.ConsentMode, collaborators []string,
) (*v1alpha1.Consent, error) {
	var out *v1alpha1.Consent
	doing := "setting your consent for room " + room.Name
	err := retry.OnError(attempts, raced, func() error {
		c, err := p.Consent(ctx, room, p.Name)
		if err != nil {
			return err
		}
		if c == nil {
			out = p.newConsent(room, mode, collaborators)
			return p.Client.Create(ctx, out) //nolint:wrapcheck // explained below
		}
		out = c
		before := c.DeepCopy()
		c.Spec.Mode = mode
		if collaborators != nil {
			c.Spec.Collaborators = collaborators
		}
		if same(before, c) {
			return nil
		}
		return p.Client.Update(ctx, c) //nolint:wrapcheck // explained below
	})
	if err != nil {
		return nil, Explain(err, doing)
	}
	return out, nil
}

// raced says whether somebody else was faster.
func raced(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// newConsent has the name that the bridge would give it too, so that of two writers one makes it.
func (p *Person) newConsent(room *v1alpha1.Room, mode v1alpha1.ConsentMode, collaborators []string) *v1alpha1.Consent {
	return &v1alpha1.Consent{
		ObjectMeta: metav1.ObjectMeta{Namespace: room.Namespace, Name: ids.ConsentName(room.Name, p.Name)},
		Spec: v1alpha1.ConsentSpec{
			RoomRef: v1alpha1.RoomReference{Name: room.Name}, Owner: p.Name, Mode: mode, Collaborators: collaborators,
		},
	}
}
