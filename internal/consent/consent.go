// Package consent decides whether the owner of a task's assignee agreed to it. Bridge and controller call the same
// functions: the bridge to answer at once, the controller as the authority.
package consent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// Proposal is what is to be judged: who asks, whose agent is asked, and what that person has agreed to in the room.
type Proposal struct {
	// Proposer is the person for whom the task was assigned: the owner of the assigning agent, or the user.
	Proposer string
	// Assignee is the plate of the assigned agent, empty when nobody is assigned.
	Assignee string
	// AssigneeOwner is the person the assigned agent works for.
	AssigneeOwner string
	// ProposerInRoom is true when the proposer, or an agent of theirs, is a member of the room.
	ProposerInRoom bool
	// Consent is the one in force for the room and AssigneeOwner, if any (see InForce).
	Consent *v1alpha1.Consent
}

// Parties are those whom the assignment of a task concerns.
type Parties struct {
	// Assigner is the agent that assigned the task, nil when it was a person or the agent is gone.
	Assigner *v1alpha1.Agent
	// Assignee is the assigned agent, nil when nobody is assigned or the agent does not exist.
	Assignee *v1alpha1.Agent
	// InRoom says whether a person, or an agent of theirs, is a member of the room.
	InRoom func(person string) bool
	// InForce gives the Consent of an owner that is in force for the room, nil when there is none.
	InForce func(owner string) *v1alpha1.Consent
}

// AssignedBy gives who assigned a task, its creator when nobody did since, and nil when that is not known.
func AssignedBy(task *v1alpha1.Task) *v1alpha1.TaskCreator {
	if task.Spec.AssignedBy != nil {
		return task.Spec.AssignedBy
	}
	return task.Spec.Creator
}

// Proposer gives the person for whom a task was assigned, empty when that is not known. assigner is the agent that AssignedBy
// names, nil when there is none.
func Proposer(task *v1alpha1.Task, assigner *v1alpha1.Agent) string {
	by := AssignedBy(task)
	switch {
	case by == nil:
		return ""
	case by.User != "":
		return by.User
	case assigner != nil:
		return assigner.Spec.Owner
	}
	return ""
}

// Propose gives the proposal that a task is. An assignee that does not exist has no owner who could agree.
func Propose(task *v1alpha1.Task, parties Parties) Proposal {
	p := Proposal{Proposer: Proposer(task, parties.Assigner), Assignee: task.Spec.Assignee}
	p.ProposerInRoom = p.Proposer != "" && parties.InRoom(p.Proposer)
	if a := parties.Assignee; a != nil {
		p.Assignee, p.AssigneeOwner = ids.Plate(a), a.Spec.Owner
		p.Consent = parties.InForce(p.AssigneeOwner)
	}
	return p
}

// InForce picks the Consent that counts among those of one owner for one room: the oldest, by name where ages are equal.
// A second one cannot widen what the first one allows.
func InForce(consents []*v1alpha1.Consent) *v1alpha1.Consent {
	var best *v1alpha1.Consent
	for _, c := range consents {
		if c.DeletionTimestamp != nil {
			continue
		}
		if best == nil || cmp.Or(ids.Created(c).Compare(ids.Created(best).Time), cmp.Compare(c.Name, best.Name)) < 0 {
			best = c
		}
	}
	return best
}

// Judge says what a proposal comes to without asking anybody.
func Judge(p Proposal) v1alpha1.TaskConsent {
	c := v1alpha1.TaskConsent{Assignee: p.Assignee, State: v1alpha1.ConsentPending}
	if p.Assignee == "" || (p.Proposer != "" && p.Proposer == p.AssigneeOwner) {
		c.State = v1alpha1.ConsentAuto
		return c
	}
	if p.Consent == nil {
		return c
	}
	mode := p.Consent.Spec.Mode
	if accepts(mode, p) {
		c.State, c.Standing, c.By = v1alpha1.ConsentAccepted, true, string(mode)
	}
	return c
}

func accepts(mode v1alpha1.ConsentMode, p Proposal) bool {
	switch mode {
	case v1alpha1.ConsentApproveAll:
		return true
	case v1alpha1.ConsentTrustCollaborator:
		return p.Proposer != "" && slices.Contains(p.Consent.Spec.Collaborators, p.Proposer)
	case v1alpha1.ConsentTrustRoom:
		return p.Proposer != "" && p.ProposerInRoom
	default:
		return false
	}
}

// Terms gives a digest of what a task asks of its assignee.
func Terms(spec *v1alpha1.TaskSpec) string {
	return ids.Digest(spec.Title, spec.Detail, spec.DefinitionOfDone)
}

// Settle gives the consent that a task should have now: what was decided in person stays unless other words were put under
// it, what a Consent decided is judged anew until work starts, and a new assignee is a new proposal. It answers false when
// nothing changes.
func Settle(task *v1alpha1.Task, p Proposal, now time.Time) (v1alpha1.TaskConsent, bool) {
	old := task.Status.Consent
	judged := Judge(p)
	judged.At = metav1.NewTime(now)
	if judged.State == v1alpha1.ConsentPending {
		judged.Terms = Terms(&task.Spec)
	}
	if old == nil || old.Assignee != p.Assignee {
		return decided(judged, &task.Spec, p), true
	}
	if task.Status.State == v1alpha1.TaskDoing || terminal(task.Status.State) || (inPerson(old) && !reworded(old, &task.Spec)) {
		return *old, false
	}
	next := decided(judged, &task.Spec, p)
	if next.State == old.State && next.By == old.By && next.Standing == old.Standing && next.Terms == old.Terms {
		return *old, false
	}
	return next, true
}

// reworded says whether the owner accepted something else than what the task says now. A rejection stands whatever it says.
func reworded(c *v1alpha1.TaskConsent, spec *v1alpha1.TaskSpec) bool {
	return c.State == v1alpha1.ConsentAccepted && c.Terms != "" && c.Terms != Terms(spec)
}

// inPerson says whether a person decided, and no Consent and no rule.
func inPerson(c *v1alpha1.TaskConsent) bool {
	return c.State == v1alpha1.ConsentRejected || (c.State == v1alpha1.ConsentAccepted && !c.Standing)
}

func terminal(s v1alpha1.TaskState) bool {
	return s == v1alpha1.TaskDone || s == v1alpha1.TaskFailed || s == v1alpha1.TaskCancelled
}

// decided carries out a decision that the assignee's owner gave with kubectl.
func decided(c v1alpha1.TaskConsent, spec *v1alpha1.TaskSpec, p Proposal) v1alpha1.TaskConsent {
	d := spec.Decision
	if c.State != v1alpha1.ConsentPending || d == nil {
		return c
	}
	if reason, _ := noSay(spec, p); reason != "" {
		return c
	}
	c.State, c.By, c.Reason, c.Terms = outcome(d.Verdict), d.By, d.Reason, Terms(spec)
	return c
}

func outcome(v v1alpha1.Verdict) v1alpha1.ConsentState {
	if v == v1alpha1.VerdictReject {
		return v1alpha1.ConsentRejected
	}
	return v1alpha1.ConsentAccepted
}

// noSay says why a decision given with kubectl may not be carried out, whatever was decided before: the reason of a condition,
// and words for a person. Both are empty when it may.
func noSay(spec *v1alpha1.TaskSpec, p Proposal) (reason, message string) {
	d := spec.Decision
	switch {
	case p.Assignee == "":
		return v1alpha1.NoSayReason, "nobody is assigned, so that there is nothing to decide on"
	case p.AssigneeOwner == "":
		return v1alpha1.NoSayReason, "the assignee does not exist, so that nobody may decide in its owner's place"
	case d.By != p.AssigneeOwner:
		return v1alpha1.NoSayReason, fmt.Sprintf(
			"%s has no say in this proposal: only %s decides, the owner of the assignee", cmp.Or(d.By, "nobody known"), p.AssigneeOwner)
	case d.By == p.Proposer:
		return v1alpha1.OwnProposalReason, "nobody decides on their own proposal"
	case d.Terms != "" && d.Terms != Terms(spec):
		return v1alpha1.TermsChangedReason, "the task asks for something else now than what was decided on: " +
			"read it again, and decide with the terms in status.consent"
	}
	return "", ""
}

// Ineffective says why the decision that stands in a task's spec has no effect: the reason of a condition, and words for a person.
// Both are empty when it has one, or there is none. The task's consent must be settled.
func Ineffective(task *v1alpha1.Task, p Proposal) (reason, message string) {
	d, c := task.Spec.Decision, task.Status.Consent
	if d == nil || c == nil || (inPerson(c) && c.By == d.By && c.State == outcome(d.Verdict)) {
		return "", ""
	}
	if reason, message = noSay(&task.Spec, p); reason != "" {
		return reason, message
	}
	switch {
	case c.State == outcome(d.Verdict): // A Consent said the same. Should it be withdrawn, the decision takes its place.
		return "", ""
	case c.Standing:
		return v1alpha1.NotPendingReason, fmt.Sprintf(
			"the Consent of %s for the room (%s) accepted the proposal: change that to decide on each task", p.AssigneeOwner, c.By)
	}
	return v1alpha1.NotPendingReason, fmt.Sprintf(
		"the proposal is %s already: its creator can assign the task again to propose it anew", c.State)
}

// Decider is who wants to decide on a proposal.
type Decider struct {
	// Owner is the person, or the person the agent works for.
	Owner string
	// Delegated is true for a person, and for an agent that may decide in its owner's name.
	Delegated bool
	// Terms is the digest of what the decider has read (see Terms), empty for whatever the task says now.
	Terms string
}

// Decide carries out a verdict on a task whose consent is already settled. It answers false with no problem when the same
// verdict stands already. What a Consent accepted the owner may accept in person too: it then outlives the Consent.
func Decide(
	task *v1alpha1.Task, p Proposal, d Decider, verdict v1alpha1.Verdict, reason string, now time.Time,
) (v1alpha1.TaskConsent, bool, *problem.Problem) {
	if p.Assignee == "" || d.Owner != p.AssigneeOwner {
		return v1alpha1.TaskConsent{}, false, problem.New(problem.Forbidden,
			"only the owner of the assigned agent decides on this proposal")
	}
	if d.Owner == p.Proposer {
		return v1alpha1.TaskConsent{}, false, problem.New(problem.Forbidden,
			"nobody decides on their own proposal")
	}
	if !d.Delegated {
		return v1alpha1.TaskConsent{}, false, problem.New(problem.Forbidden,
			"this agent may not decide in its owner's name").
			WithHint("the owner decides in person, or adds Consent to the Agent's spec.delegations")
	}
	if d.Terms != "" && d.Terms != Terms(&task.Spec) {
		return v1alpha1.TaskConsent{}, false, problem.New(problem.Conflict,
			"the proposal says something else now than what you decided on").
			WithHint("read it again with list_pending_consents and decide with the terms given there")
	}
	current, _ := Settle(task, p, now)
	want := outcome(verdict)
	begun := task.Status.State == v1alpha1.TaskDoing || terminal(task.Status.State)
	if current.State == want && (!current.Standing || begun) {
		return current, false, nil
	}
	if (current.State != v1alpha1.ConsentPending && current.State != want) || terminal(task.Status.State) {
		return current, false, problem.New(problem.Conflict,
			"the proposal is not pending: its consent is %s and the task is %s", current.State, task.Status.State).
			WithHint("its creator can assign the task again to propose it anew")
	}
	return v1alpha1.TaskConsent{
		State: want, Assignee: p.Assignee, By: d.Owner, Terms: Terms(&task.Spec), Reason: reason, At: metav1.NewTime(now),
	}, true, nil
}

// Required gives the problem of acting on a task that its assignee's owner has not agreed to, and nil when there is none.
func Required(c v1alpha1.TaskConsent) *problem.Problem {
	switch c.State {
	case v1alpha1.ConsentAuto, v1alpha1.ConsentAccepted:
		return nil
	case v1alpha1.ConsentRejected:
		return problem.New(problem.ConsentRequired, "the assignee's owner rejected this task: %s", orNone(c.Reason))
	default:
		return problem.New(problem.ConsentRequired,
			"this task waits for the consent of the assignee's owner: leave it alone until then").
			WithHint("the owner decides with accept_task or reject_task, or by a Consent for the room")
	}
}

func orNone(s string) string {
	if s == "" {
		return "no reason given"
	}
	return s
}
