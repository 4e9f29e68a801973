package tasks

import (
	"slices"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// Change is a wish to set a task's state, with what the caller has to say of it.
type Change struct {
	// To is the state wished for. Doing is a claim and goes through Claim.
	To v1alpha1.TaskState
	// Fence must be the task's epoch when given.
	Fence *int64
	// Summary, Artifacts, Next, Reason and ResultRef make the record.
	Summary   string
	Artifacts []string
	Next      string
	Reason    string
	ResultRef string
}

// Outcome of SetStatus.
type Outcome struct {
	// Status to write, nil when there is nothing to write.
	Status *v1alpha1.TaskStatus
	// Then is the problem to answer after Status is written: the record of one who came too late is kept, and the
	// caller is told so.
	Then *problem.Problem
}

// SetStatus decides on a change of state.
func SetStatus(t *v1alpha1.Task, a Actor, c Change, now time.Time) (Outcome, *problem.Problem) {
	if needsReason(c.To) && c.Reason == "" {
		return Outcome{}, problem.Invalid("reason", "must be given with status %s: say why", toolState(c.To))
	}
	if p := valid(c); p != nil {
		return Outcome{}, p
	}
	if replayed(t, a, c) {
		return Outcome{}, nil
	}
	if t.Spec.Archived {
		return Outcome{}, problem.New(problem.Conflict, "the task is %s and archived: its state may not change", toolState(t.Status.State)).
			WithHint("%s", AfterTheEnd(t))
	}
	if Holds(t, a.Plate, a.Session) {
		if p := checkFence(t, c.Fence); p != nil {
			return Outcome{}, p
		}
		return byHolder(t, a, c, now), nil
	}
	if result(c.To) && !bystander(t, a, c) {
		return byFormerHolder(t, a, c, now)
	}
	return byOthers(t, a, c, now)
}

// valid says whether the change can be written at all.
func valid(c Change) *problem.Problem {
	if _, known := toolStates[c.To]; !known || c.To == v1alpha1.TaskDoing {
		return problem.Invalid("status", "may not be set to %q this way: claim the task to work on it", c.To)
	}
	n := 0
	for _, artifact := range c.Artifacts {
		n += utf8.RuneCountInString(artifact)
	}
	if n > v1alpha1.MaxArtifactCharacters {
		return problem.Invalid("artifacts", "have %d characters together, at most %d are allowed",
			n, v1alpha1.MaxArtifactCharacters)
	}
	return nil
}

// bystander says whether the caller may make the change without ever having held the task. A fence of another epoch than
// the present one is the word of one who did hold it.
func bystander(t *v1alpha1.Task, a Actor, c Change) bool {
	return c.To == v1alpha1.TaskFailed && t.Status.State == v1alpha1.TaskBlocked && (a.Assignee || a.Creator || a.Admin) &&
		(c.Fence == nil || *c.Fence == t.Status.Epoch)
}

func needsReason(s v1alpha1.TaskState) bool {
	return s == v1alpha1.TaskBlocked || s == v1alpha1.TaskFailed || s == v1alpha1.TaskCancelled
}

// result says whether a state is the result of work.
func result(s v1alpha1.TaskState) bool { return s == v1alpha1.TaskDone || s == v1alpha1.TaskFailed }

// replayed says whether the task is already where the same caller moved it with the same words.
func replayed(t *v1alpha1.Task, a Actor, c Change) bool {
	if t.Status.State != c.To || c.To == v1alpha1.TaskDoing {
		return false
	}
	if c.To == v1alpha1.TaskTodo {
		return true
	}
	r := t.Status.Record
	return r != nil && r.State == c.To && r.Plate == a.Plate && r.Session == a.Session && r.Summary == c.Summary &&
		r.Next == c.Next && r.Reason == c.Reason && r.ResultRef == c.ResultRef && slices.Equal(r.Artifacts, c.Artifacts)
}

func byHolder(t *v1alpha1.Task, a Actor, c Change, now time.Time) Outcome {
	s := *t.Status.DeepCopy()
	epoch := s.Epoch
	how := v1alpha1.ClaimFinished
	if c.To == v1alpha1.TaskTodo {
		how = v1alpha1.ClaimReleased
	}
	endClaim(&s, how, now)
	move(&s, c.To, a.name(), note(c), now)
	write(&s, a, c, epoch, false, now)
	return Outcome{Status: &s}
}

func note(c Change) string {
	if c.Reason != "" {
		return c.Reason
	}
	return c.Summary
}

// write puts the reason and the record of a change into the status.
func write(s *v1alpha1.TaskStatus, a Actor, c Change, epoch int64, late bool, now time.Time) {
	s.Reason = ""
	if needsReason(c.To) {
		s.Reason = c.Reason
	}
	if c.To == v1alpha1.TaskTodo && c.Summary == "" && c.Next == "" && len(c.Artifacts) == 0 {
		return
	}
	r := record(a, c, epoch, now)
	r.Late = late
	s.Record = &r
}

func record(a Actor, c Change, epoch int64, now time.Time) v1alpha1.TaskRecord {
	return v1alpha1.TaskRecord{
		Plate: a.Plate, Session: a.Session, Epoch: epoch, State: c.To, Summary: c.Summary,
		Artifacts: slices.Clone(c.Artifacts), Next: c.Next, Reason: c.Reason, ResultRef: c.ResultRef,
		At: metav1.NewTime(now),
	}
}

// byFormerHolder deals with a result from somebody who does not hold the task. One whose lease ran out may still finish
// while nobody has claimed since. One who came after another claim is told so, and its record is kept as contested.
func byFormerHolder(t *v1alpha1.Task, a Actor, c Change, now time.Time) (Outcome, *problem.Problem) {
	last := t.Status.LastClaim
	mine := last != nil && last.Holder == a.Plate && last.Session == a.Session
	fenced := mine && (c.Fence == nil || *c.Fence == last.Epoch)
	unclaimed := mine && t.Status.Epoch == last.Epoch+1
	if t.Status.State == v1alpha1.TaskTodo && fenced && unclaimed && last.Ended == v1alpha1.ClaimExpired {
		s := *t.Status.DeepCopy()
		// Only once: whoever reopens the task wants it done anew.
		s.LastClaim.Ended = v1alpha1.ClaimFinished
		move(&s, c.To, a.name(), "late: "+note(c), now)
		write(&s, a, c, last.Epoch, true, now)
		return Outcome{Status: &s}, nil
	}
	if !overtaken(t, a) {
		return Outcome{}, Lost(t)
	}
	lost := Lost(t)
	epoch := heldEpoch(t, a)
	if slices.ContainsFunc(t.Status.Contested, func(r v1alpha1.TaskRecord) bool {
		return r.Plate == a.Plate && r.Session == a.Session && r.Epoch == epoch
	}) {
		return Outcome{}, lost
	}
	s := *t.Status.DeepCopy()
	s.Contested = append(s.Contested, record(a, c, epoch, now))
	if n := len(s.Contested); n > 2 {
		s.Contested = s.Contested[n-2:]
	}
	lost.Message += ". Your record was kept as contested"
	return Outcome{Status: &s, Then: lost}, nil
}

// overtaken says whether the caller held the task once, lost it by expiry, and somebody else came since.
func overtaken(t *v1alpha1.Task, a Actor) bool {
	last := t.Status.LastClaim
	if last != nil && last.Holder == a.Plate && last.Session == a.Session {
		return last.Ended == v1alpha1.ClaimExpired && t.Status.State == v1alpha1.TaskDoing
	}
	return heldEpoch(t, a) > 0 && (t.Status.Claim != nil || t.Status.State != v1alpha1.TaskTodo)
}

// heldEpoch gives the last epoch under which the caller held the task, as far as the history goes back.
func heldEpoch(t *v1alpha1.Task, a Actor) int64 {
	for _, e := range slices.Backward(t.Status.History) {
		if e.To == v1alpha1.TaskDoing && e.By == a.name() {
			return e.Epoch
		}
	}
	return 0
}

// byOthers deals with the changes that need no claim.
func byOthers(t *v1alpha1.Task, a Actor, c Change, now time.Time) (Outcome, *problem.Problem) {
	from := t.Status.State
	if p := checkFence(t, c.Fence); p != nil {
		return Outcome{}, p
	}
	leads, concerned := a.Creator || a.Admin, a.Creator || a.Admin || a.Assignee
	allowed := false
	switch {
	case from == v1alpha1.TaskDoing:
		if !leads || (c.To != v1alpha1.TaskCancelled && c.To != v1alpha1.TaskTodo) {
			return Outcome{}, Lost(t)
		}
		allowed = true
	case Terminal(from) && c.To == v1alpha1.TaskTodo:
		allowed = leads
	case from == v1alpha1.TaskTodo && (c.To == v1alpha1.TaskBlocked || c.To == v1alpha1.TaskCancelled),
		from == v1alpha1.TaskBlocked && c.To != v1alpha1.TaskDone && c.To != v1alpha1.TaskBlocked:
		allowed = concerned
	default:
		hint := "read_board shows where it stands; claim_task comes before working on it"
		if Terminal(from) {
			hint = AfterTheEnd(t)
		}
		return Outcome{}, problem.New(problem.Conflict, "a task that is %s cannot become %s", toolState(from), toolState(c.To)).
			WithHint("%s", hint)
	}
	if !allowed {
		return Outcome{}, problem.New(problem.Forbidden, "only %s may do that", who(from))
	}
	s := *t.Status.DeepCopy()
	epoch := s.Epoch
	endClaim(&s, v1alpha1.ClaimRevoked, now)
	move(&s, c.To, a.name(), note(c), now)
	write(&s, a, c, epoch, false, now)
	return Outcome{Status: &s}, nil
}

func who(from v1alpha1.TaskState) string {
	if Terminal(from) {
		return "the creator of the task or an admin of the room"
	}
	return "the assignee, the creator of the task or an admin of the room"
}

// toolStates are the states as tools call them.
var toolStates = map[v1alpha1.TaskState]string{
	v1alpha1.TaskTodo: "todo", v1alpha1.TaskDoing: "doing", v1alpha1.TaskBlocked: "blocked",
	v1alpha1.TaskDone: "done", v1alpha1.TaskFailed: "failed", v1alpha1.TaskCancelled: "cancelled",
}

func toolState(s v1alpha1.TaskState) string { return toolStates[s] }

// ToolState gives a state as the tools call it: todo, doing, blocked, done, failed, cancelled.
func ToolState(s v1alpha1.TaskState) string { return toolState(s) }

// ParseToolState reads a state as the tools call it.
func ParseToolState(s string) (v1alpha1.TaskState, bool) {
	for state, name := range toolStates {
		if name == s {
			return state, true
		}
	}
	return "", false
}
