package faults

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// taskOp is what a client asks of a task. A look reads the task at the API server.
type taskOp struct {
	kind    string // claim, renew, release, done, look
	session string
	fence   int64
	summary string
}

// taskAnswer is what it was told.
type taskAnswer struct {
	outcome string // ok, lost, unknown; of a look the state: todo, doing, done
	fence   int64  // of a claim that is won; of a look the epoch
	holder  string // of a look
}

// taskState is a task as its model keeps it. The last claim decides whether a late finish is taken.
type taskState struct {
	state, holder, summary string
	epoch                  int64
	lastHolder, lastEnded  string
	lastEpoch              int64
	finishedBy             string
}

func (s taskState) held(by string, fence int64) bool {
	return s.state == "doing" && s.holder == by && s.epoch == fence
}

// late says whether the former holder may still finish: its lease ran out, and nobody has claimed since.
func (s taskState) late(by string, fence int64) bool {
	return s.state == "todo" && s.lastEnded == "expired" && s.lastHolder == by && s.lastEpoch == fence && s.epoch == fence+1
}

// ended gives the task after its claim ended.
func (s taskState) ended(how string) taskState {
	return taskState{
		state: "todo", epoch: s.epoch + 1, lastHolder: s.holder, lastEpoch: s.epoch, lastEnded: how,
	}
}

func (s taskState) claimed(by string) taskState {
	s.state, s.holder, s.epoch = "doing", by, s.epoch+1
	return s
}

func (s taskState) done(op taskOp) taskState {
	if s.state == "doing" {
		s = s.ended("finished")
	}
	s.state, s.finishedBy, s.summary, s.lastEnded = "done", op.session, op.summary, "finished"
	return s
}

// withExpiry gives the task as it is, and as it is when its lease has just run out: the server may decide so at any time.
func (s taskState) withExpiry() []taskState {
	if s.state != "doing" {
		return []taskState{s}
	}
	return []taskState{s, s.ended("expired")}
}

// taskModel says which answers a task may give. A lost claim may be the word of a cache and is always right; a won one is
// right only when the task was free, or held by the same instance under the same fence. Whatever is said to a holder is
// exact.
var taskModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{taskState{state: "todo"}} },
	Step: func(state, input, output any) []any {
		s, op, answer := state.(taskState), input.(taskOp), output.(taskAnswer)
		var next []any
		for _, from := range s.withExpiry() {
			for _, to := range stepTask(from, op, answer) {
				next = append(next, to)
			}
		}
		if answer.outcome == "unknown" {
			next = append(next, s)
		}
		return next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

func stepTask(s taskState, op taskOp, a taskAnswer) []taskState {
	switch op.kind {
	case "look":
		if s.state == a.outcome && s.epoch == a.fence && (s.state != "doing" || s.holder == a.holder) {
			return []taskState{s}
		}
		return nil
	case "claim":
		return stepClaim(s, op, a)
	case "renew":
		if (a.outcome == "ok") == s.held(op.session, op.fence) || a.outcome == "unknown" {
			return []taskState{s}
		}
		return nil
	case "release":
		return stepRelease(s, op, a)
	default:
		return stepDone(s, op, a)
	}
}

func stepClaim(s taskState, op taskOp, a taskAnswer) []taskState {
	if a.outcome == "lost" {
		return []taskState{s}
	}
	known := a.outcome == "ok"
	if s.state == "doing" && s.holder == op.session && (!known || s.epoch == a.fence) {
		return []taskState{s}
	}
	if s.state == "todo" && (!known || a.fence == s.epoch+1) {
		return []taskState{s.claimed(op.session)}
	}
	return nil
}

func stepRelease(s taskState, op taskOp, a taskAnswer) []taskState {
	again := s.state == "todo" && s.lastEnded == "released" && s.lastHolder == op.session && s.lastEpoch == op.fence
	switch {
	case a.outcome == "lost" && s.held(op.session, op.fence):
		return nil
	case a.outcome == "lost":
		return []taskState{s}
	case s.held(op.session, op.fence):
		return []taskState{s.ended("released")}
	case again:
		return []taskState{s}
	}
	return nil
}

func stepDone(s taskState, op taskOp, a taskAnswer) []taskState {
	may := s.held(op.session, op.fence) || s.late(op.session, op.fence)
	switch {
	case a.outcome == "lost" && may:
		return nil
	case a.outcome == "lost":
		return []taskState{s}
	case may:
		return []taskState{s.done(op)}
	case s.state == "done" && s.finishedBy == op.session && s.summary == op.summary:
		return []taskState{s}
	}
	return nil
}
