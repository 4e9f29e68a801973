// Package tasks holds the life of a task as pure functions: who may move it where, what a move writes, and what a caller
// who came too late is told. The edges themselves are CEL rules in the schema; here stand the rules on who may take them.
package tasks

import (
	"slices"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// Actor is who wants to do something, and what they are to the task.
type Actor struct {
	// Plate of an agent, or the username of a person.
	Plate string
	// Session is the instance of the agent.
	Session string
	// Creator is true for the one who created the task.
	Creator bool
	// Admin is true for an admin of the room.
	Admin bool
	// Assignee is true for the assigned agent.
	Assignee bool
}

// name gives how history calls the actor.
func (a Actor) name() string { return Truncate(Holder(a.Plate, a.Session), maxBy) }

// Holder gives how a claim's holder is called in Leases and answers: plate/session.
func Holder(plate, session string) string {
	if session == "" {
		return plate
	}
	return plate + "/" + session
}

// ClaimHolder gives how the holder of a task is called, empty when nobody holds it.
func ClaimHolder(t *v1alpha1.Task) string {
	if c := t.Status.Claim; c != nil {
		return Holder(c.Holder, c.Session)
	}
	return ""
}

// Terminal says whether work on a task has ended.
func Terminal(s v1alpha1.TaskState) bool {
	return s == v1alpha1.TaskDone || s == v1alpha1.TaskFailed || s == v1alpha1.TaskCancelled
}

// Holds says whether an instance holds the task.
func Holds(t *v1alpha1.Task, plate, session string) bool {
	c := t.Status.Claim
	return c != nil && c.Holder == plate && c.Session == session
}

// LostReason says why a claim did not succeed. Losing is a result and no error.
type LostReason string

const (
	// LostAlreadyClaimed says that another instance holds the task.
	LostAlreadyClaimed LostReason = "already_claimed"
	// LostBlockedByDeps says that the task waits for other tasks.
	LostBlockedByDeps LostReason = "blocked_by_deps"
	// LostNotClaimable says that the task's state allows no claim.
	LostNotClaimable LostReason = "not_claimable"
)

// ClaimRequest is what a claim needs to know beside the task.
type ClaimRequest struct {
	// Actor who claims.
	Actor Actor
	// Assigned is true when somebody is assigned.
	Assigned bool
	// Consent as it is settled now.
	Consent v1alpha1.TaskConsent
	// Blockers are the dependencies that are not Done.
	Blockers []string
}

// ClaimResult is what a claim comes to.
type ClaimResult struct {
	// Status to write when Write is true.
	Status v1alpha1.TaskStatus
	// Write is true when the claim is won as soon as Status is written with the task's resourceVersion.
	Write bool
	// Held is true when the caller holds the task already.
	Held bool
	// Lost says why the claim is lost.
	Lost LostReason
}

// Claim decides on a claim. With a problem nothing may be written.
func Claim(t *v1alpha1.Task, r ClaimRequest, now time.Time) (ClaimResult, *problem.Problem) {
	if r.Assigned && !r.Actor.Assignee {
		return ClaimResult{}, problem.New(problem.Forbidden, "this task is assigned to another agent: leave it alone")
	}
	if Holds(t, r.Actor.Plate, r.Actor.Session) {
		return ClaimResult{Held: true}, nil
	}
	if t.Status.State == v1alpha1.TaskDoing {
		return ClaimResult{Lost: LostAlreadyClaimed}, nil
	}
	if t.Spec.Archived || (t.Status.State != v1alpha1.TaskTodo && t.Status.State != v1alpha1.TaskBlocked) {
		return ClaimResult{Lost: LostNotClaimable}, nil
	}
	if p := consent.Required(r.Consent); p != nil {
		return ClaimResult{}, p
	}
	if len(r.Blockers) > 0 {
		return ClaimResult{Lost: LostBlockedByDeps}, nil
	}
	s := *t.Status.DeepCopy()
	s.Consent = &r.Consent
	s.Claim = &v1alpha1.TaskClaim{
		Holder: r.Actor.Plate, Session: r.Actor.Session, AcquiredAt: metav1.NewMicroTime(now),
	}
	move(&s, v1alpha1.TaskDoing, r.Actor.name(), "claimed", now)
	s.Reason = ""
	return ClaimResult{Status: s, Write: true}, nil
}

// maxHistory, maxBy and maxNote are the bounds of the schema.
const (
	maxHistory = 20
	maxBy      = 128
	maxNote    = 128
)

// move changes the state, and the epoch when a claim is made or ended by it. The claim itself must be set before when one
// is made; it is cleared here when the state is no longer Doing.
func move(s *v1alpha1.TaskStatus, to v1alpha1.TaskState, by, note string, now time.Time) {
	from := s.State
	if (from == v1alpha1.TaskDoing) != (to == v1alpha1.TaskDoing) {
		s.Epoch++
	}
	if to != v1alpha1.TaskDoing {
		s.Claim = nil
	}
	s.State = to
	s.History = append(s.History, v1alpha1.TaskEvent{
		At: metav1.NewTime(now), From: from, To: to, By: Truncate(by, maxBy), Epoch: s.Epoch, Note: Truncate(note, maxNote),
	})
	if n := len(s.History); n > maxHistory {
		s.History = slices.Clone(s.History[n-maxHistory:])
	}
}

// Truncate cuts a string to a number of characters, with an ellipsis where something was cut.
func Truncate(s string, characters int) string {
	if utf8.RuneCountInString(s) <= characters {
		return s
	}
	return string([]rune(s)[:characters-1]) + "…"
}

// endClaim notes how the present claim ended. It must be called before the move.
func endClaim(s *v1alpha1.TaskStatus, how v1alpha1.ClaimEnd, now time.Time) {
	if s.Claim == nil {
		return
	}
	s.LastClaim = &v1alpha1.TaskLastClaim{
		Holder: s.Claim.Holder, Session: s.Claim.Session, Epoch: s.Epoch, Ended: how, At: metav1.NewTime(now),
	}
}

// End gives the status of a task that is taken from its holder: by expiry, release or revocation. It answers false when
// nobody holds it, or not under that epoch.
func End(
	t *v1alpha1.Task, epoch int64, how v1alpha1.ClaimEnd, by, note string, now time.Time,
) (v1alpha1.TaskStatus, bool) {
	if t.Status.Claim == nil || t.Status.Epoch != epoch {
		return v1alpha1.TaskStatus{}, false
	}
	s := *t.Status.DeepCopy()
	endClaim(&s, how, now)
	move(&s, v1alpha1.TaskTodo, by, note, now)
	return s, true
}

// Release gives a task back. It answers a zero status with no problem when the caller had given it back already.
func Release(t *v1alpha1.Task, a Actor, fence *int64, now time.Time) (*v1alpha1.TaskStatus, *problem.Problem) {
	if p := checkFence(t, fence); p != nil && t.Status.Claim != nil {
		return nil, p
	}
	if Holds(t, a.Plate, a.Session) {
		s, _ := End(t, t.Status.Epoch, v1alpha1.ClaimReleased, a.name(), "released", now)
		return &s, nil
	}
	last := t.Status.LastClaim
	if t.Status.State == v1alpha1.TaskTodo && last != nil && last.Holder == a.Plate && last.Session == a.Session &&
		last.Ended == v1alpha1.ClaimReleased {
		return nil, nil
	}
	return nil, Lost(t)
}

func checkFence(t *v1alpha1.Task, fence *int64) *problem.Problem {
	if fence == nil || *fence == t.Status.Epoch {
		return nil
	}
	return Lost(t)
}

// Lost gives the problem of acting as the holder of a task without being it.
func Lost(t *v1alpha1.Task) *problem.Problem {
	if holder := ClaimHolder(t); holder != "" {
		return problem.New(problem.LeaseLost, "you do not hold this task: %s does. Stop working on it", holder).
			WithHolder(holder)
	}
	state := toolState(t.Status.State)
	if Terminal(t.Status.State) {
		return problem.New(problem.LeaseLost, "nobody holds this task any more: it is %s. Stop working on it", state).
			WithHint("%s", AfterTheEnd(t))
	}
	return problem.New(problem.LeaseLost, "you do not hold this task: it is %s. Claim it before working on it", state)
}

// AfterTheEnd says what an agent can do about a task that is done, failed or cancelled.
func AfterTheEnd(t *v1alpha1.Task) string {
	if t.Spec.Archived {
		return "it is archived: create a new task if there is more to do"
	}
	return "its creator or an admin of the room may reopen it with set_status todo; others may create a new task"
}
