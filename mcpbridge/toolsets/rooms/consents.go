package rooms

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// modes are the consent modes as the tools call them.
var modes = map[string]v1alpha1.ConsentMode{
	"task_by_task": v1alpha1.ConsentTaskByTask, "approve_all": v1alpha1.ConsentApproveAll,
	"trust_collaborator": v1alpha1.ConsentTrustCollaborator, "trust_room": v1alpha1.ConsentTrustRoom,
}

func (t *Toolset) setRoomConsent(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	if err := a.writable(); err != nil {
		return nil, err
	}
	if !slices.Contains(c.Agent.Spec.Delegations, v1alpha1.DelegationConsent) {
		return nil, problem.New(problem.Forbidden, "this agent may not decide in its owner's name").
			WithHint("the owner sets a Consent with kubectl, or adds Consent to the Agent's spec.delegations")
	}
	mode := args.String("mode")
	collaborator, err := collaboratorOf(a, modes[mode], args.String("collaborator"))
	if err != nil {
		return nil, err
	}
	done, err := t.writeConsent(ctx, a, modes[mode], collaborator)
	if err != nil {
		return nil, err
	}
	out := RoomConsent{Room: a.id, Owner: done.Spec.Owner, Mode: mode, Collaborators: done.Spec.Collaborators}
	if out.Collaborators == nil {
		out.Collaborators = []string{}
	}
	return out, nil
}

// collaboratorOf gives the owner that is to be trusted: named as a person, or through one of their agents.
func collaboratorOf(a *access, mode v1alpha1.ConsentMode, name string) (string, error) {
	if mode != v1alpha1.ConsentTrustCollaborator {
		if name != "" {
			return "", problem.Invalid("collaborator", "goes with mode trust_collaborator only")
		}
		return "", nil
	}
	if name == "" {
		return "", problem.Invalid("collaborator", "must be given with mode trust_collaborator: the owner to trust")
	}
	if a.members.Owners[name] {
		return name, nil
	}
	if one, _, p := handles.Resolve("collaborator", name, a.members.Handles); p == nil {
		return one.Owner, nil
	}
	owners := make([]string, 0, len(a.members.Owners))
	for owner := range a.members.Owners {
		owners = append(owners, owner)
	}
	slices.Sort(owners)
	return "", problem.Invalid("collaborator", "names no owner in this room: %q", name).
		WithCandidates(owners[:min(len(owners), 20)])
}

// writeConsent sets the Consent that is in force for the caller's owner, or makes one.
func (t *Toolset) writeConsent(
	ctx context.Context, a *access, mode v1alpha1.ConsentMode, collaborator string,
) (*v1alpha1.Consent, error) {
	owner := a.caller.Agent.Spec.Owner
	key := "consent/" + string(a.room.UID) + "/" + owner
	t.boxLocks.LockKey(key)
	defer func() { _ = t.boxLocks.UnlockKey(key) }()
	var last error
	for attempt := range maxAttempts {
		current := t.view.Consent(a.room, owner)
		next := wanted(current, a, mode, collaborator)
		switch {
		case current == nil:
			last = t.api.Create(ctx, next)
		case current.Spec.Mode == next.Spec.Mode && slices.Equal(current.Spec.Collaborators, next.Spec.Collaborators):
			return current, nil
		default:
			last = t.api.Update(ctx, next)
		}
		if last == nil {
			t.wrote(ctx, "consent", next)
			return next, nil
		}
		if !contended(last) {
			break
		}
		pause(ctx, attempt)
		t.refreshConsent(ctx, next)
	}
	return nil, fmt.Errorf("writing the consent of %s in room %s/%s: %w", owner, a.room.Namespace, a.room.Name, last)
}

// refreshConsent reads a Consent from the API server into the view. What cannot be read now is looked at in the next attempt.
func (t *Toolset) refreshConsent(ctx context.Context, c *v1alpha1.Consent) {
	fresh := &v1alpha1.Consent{}
	switch err := t.api.Get(ctx, client.ObjectKeyFromObject(c), fresh); {
	case err == nil:
		fresh.ManagedFields = nil
		t.view.Saw(fresh)
	case gone(err) && c.UID != "":
		t.view.Gone(c)
	}
}

func wanted(current *v1alpha1.Consent, a *access, mode v1alpha1.ConsentMode, collaborator string) *v1alpha1.Consent {
	owner := a.caller.Agent.Spec.Owner
	next := &v1alpha1.Consent{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.room.Namespace, Name: ids.ConsentName(a.room.Name, owner)},
		Spec:       v1alpha1.ConsentSpec{RoomRef: v1alpha1.RoomReference{Name: a.room.Name}, Owner: owner},
	}
	if current != nil {
		next = current.DeepCopy()
	}
	if mode != v1alpha1.ConsentTrustCollaborator || next.Spec.Mode != mode {
		next.Spec.Collaborators = nil
	}
	next.Spec.Mode = mode
	if collaborator != "" && !slices.Contains(next.Spec.Collaborators, collaborator) {
		next.Spec.Collaborators = append(slices.Clone(next.Spec.Collaborators), collaborator)
	}
	return next
}

// maxDetails is how many bytes of details a list of proposals holds. Those further down come when those before are decided.
const maxDetails = 128 << 10

func (t *Toolset) listPendingConsents(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	out := ProposalList{Proposals: []ProposalInfo{}}
	list := t.view.Tasks(a.room)
	slices.SortFunc(list, tasks.ByOrder)
	left := maxDetails
	for _, task := range list {
		p := t.proposal(a, task)
		settled, _ := consent.Settle(task, p, t.clock.Now())
		if settled.State != v1alpha1.ConsentPending || p.AssigneeOwner != c.Agent.Spec.Owner {
			continue
		}
		info := ProposalInfo{
			TaskID: ids.ID(task), Title: task.Spec.Title, DefinitionOfDone: task.Spec.DefinitionOfDone,
			From: t.party(task), Assignee: p.Assignee, Terms: consent.Terms(&task.Spec), CreatedAt: stamp(ids.Created(task).Time),
		}
		// Nobody agrees to what they cannot read.
		if left -= len(task.Spec.Detail); left >= 0 {
			info.Detail = task.Spec.Detail
		} else {
			info.DetailLeftOut = task.Spec.Detail != ""
		}
		out.Proposals = append(out.Proposals, info)
	}
	return out, nil
}

func (t *Toolset) party(task *v1alpha1.Task) Party {
	by := consent.AssignedBy(task)
	switch {
	case by == nil:
		return Party{}
	case by.User != "":
		return Party{Alias: by.User, Owner: by.User}
	}
	return Party{Plate: by.Plate, Alias: t.aliasOfPlate(by.Plate), Owner: t.view.Proposer(task)}
}
