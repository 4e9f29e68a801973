package runner

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// The bounds of a record, as set_status has them, in characters.
const (
	maxSummary   = 1000
	maxReason    = 1000
	maxNext      = 500
	maxResultRef = 512
	maxArtifact  = 200
	maxArtifacts = 16
)

// ExitTempFail is the code by which a command says that the task is to be tried again later (EX_TEMPFAIL of sysexits.h).
const ExitTempFail = 75

// Action is what to do with a task after its command has ended.
type Action string

const (
	// Record sets the task's state, with a record.
	Record Action = "record"
	// Retry gives the task back, to be tried again after a while.
	Retry Action = "retry"
	// Release gives the task back because the runner stops.
	Release Action = "release"
	// Nothing leaves the task alone: it is not held any more, because it was lost or the command has finished it itself.
	Nothing Action = "nothing"
)

// Ending is how the command of a task ended.
type Ending struct {
	// Code as shells give it: 128 and more for a signal, 126 and 127 when it could not be run.
	Code int
	// TimedOut, Lost and Stopped say why it was killed: it took too long, the task is not held any more, the runner stops.
	TimedOut, Lost, Stopped bool
	// Finished is true when the command has recorded the end of the task itself.
	Finished bool
	// Trouble is why the command could not be looked after, empty when it could.
	Trouble string
	// Stdout and Stderr are the ends of what it wrote. Whole is true when Stdout is all of it.
	Stdout, Stderr string
	Whole          bool
	// File is the content of the file for results, empty when the command wrote none.
	File string
}

// Verdict is what the end of a command means for its task.
type Verdict struct {
	Action Action
	// Status to set, with Record: done, failed or blocked.
	Status string
	// Result is the record.
	Result Result
	// Dropped says what of the command's result had no place in the record, for the log.
	Dropped string
}

// Result is what a command may say of its work: in the file for results, as all of its output, or as the last line of it.
type Result struct {
	// Status may be done, failed or blocked; done if absent.
	Status string `json:"status,omitempty"`
	// Summary is one line that says what happened, Next what comes next, Reason why it failed or is blocked.
	Summary string `json:"summary,omitempty"`
	Next    string `json:"next,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Artifacts are what was made, as file:path or msg:id.
	Artifacts []string `json:"artifacts,omitempty"`
	// ResultRef is where the result is.
	ResultRef string `json:"result_ref,omitempty"`
}

// Judge says what the end of a command means. Attempt counts from 1; after most of them a task that cannot be done for the time
// being is given up as failed.
func Judge(e Ending, attempt, most int) Verdict {
	if e.Lost || e.Finished {
		return Verdict{Action: Nothing}
	}
	// One that was told to end may say 0 without having finished.
	if e.Stopped {
		return Verdict{Action: Release}
	}
	if e.Code == 0 && e.Trouble == "" && !e.TimedOut {
		return succeeded(e)
	}
	why := e.why()
	result, _, dropped := e.result()
	if result.Reason == "" {
		result.Reason = strings.TrimSpace(why + ". " + lastLines(e.Stderr, maxReason/2))
	}
	result.Reason = first(result.Reason, maxReason)
	switch {
	case !e.passing():
		return Verdict{Action: Record, Status: statusFailed, Result: result, Dropped: dropped}
	case attempt >= most:
		result.Reason = first(fmt.Sprintf("given up after %d attempts: %s", attempt, result.Reason), maxReason)
		return Verdict{Action: Record, Status: statusFailed, Result: result, Dropped: dropped}
	default:
		if result.Summary == "" {
			result.Summary = first(fmt.Sprintf("attempt %d: %s", attempt, result.Reason), maxSummary)
		}
		result.Reason = ""
		return Verdict{Action: Retry, Result: result, Dropped: dropped}
	}
}

// passing says whether what went wrong may pass: the command said so, took too long, was killed, or could not be run.
func (e Ending) passing() bool {
	return e.TimedOut || e.Trouble != "" || e.Code == ExitTempFail || e.Code == 126 || e.Code == 127 || e.Code > 128
}

func (e Ending) why() string {
	switch {
	case e.Trouble != "":
		return "the command could not be run: " + e.Trouble
	case e.TimedOut:
		return "the command took too long and was killed"
	case e.Code == 126 || e.Code == 127:
		return fmt.Sprintf("the command could not be run (exit status %d)", e.Code)
	case e.Code > 128:
		return fmt.Sprintf("the command was killed by signal %d", e.Code-128)
	default:
		return fmt.Sprintf("the command ended with exit status %d", e.Code)
	}
}

// succeeded makes the record of a command that ended with 0.
func succeeded(e Ending) Verdict {
	result, structured, dropped := e.result()
	v := Verdict{Action: Record, Status: statusDone, Result: result, Dropped: dropped}
	switch result.Status {
	case "", statusDone:
	case statusFailed, statusBlocked:
		v.Status = result.Status
	default:
		v.Dropped = strings.TrimSpace(v.Dropped + fmt.Sprintf(" status %q is none of done, failed and blocked", first(result.Status, 32)))
	}
	if v.Status != statusDone && result.Reason == "" {
		v.Result.Reason = first("the command gave no reason. "+result.Summary, maxReason)
	}
	if v.Result.Summary == "" && !structured {
		v.Result.Summary = lastLines(e.Stdout, maxSummary)
	}
	if v.Result.Summary == "" && v.Status == statusDone {
		v.Result.Summary = "done"
	}
	return v
}

// result reads what the command says of its work, cut to what a record holds, and gives what was left out.
func (e Ending) result() (r Result, structured bool, dropped string) {
	candidates := []string{e.File}
	if e.Whole {
		candidates = append(candidates, e.Stdout)
	}
	trimmed := strings.TrimSpace(e.Stdout)
	candidates = append(candidates, trimmed[strings.LastIndexByte(trimmed, '\n')+1:])
	for i, text := range candidates {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		var given Result
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			if i == 0 {
				dropped = "the file for results is not of the form of a result: " + err.Error()
			}
			continue
		}
		if r, left := bounded(given); !empty(r) {
			return r, true, strings.TrimSpace(dropped + left)
		}
	}
	return Result{}, false, dropped
}

func empty(r Result) bool {
	return r.Status == "" && r.Summary == "" && r.Next == "" && r.Reason == "" && r.ResultRef == "" && len(r.Artifacts) == 0
}

// bounded cuts a result to what a record holds. A reference that does not fit is left out: half of one leads nowhere.
func bounded(r Result) (out Result, dropped string) {
	out = Result{
		Status: clean(r.Status), Summary: first(r.Summary, maxSummary), Next: first(r.Next, maxNext), Reason: first(r.Reason, maxReason),
	}
	total := 0
	for _, a := range r.Artifacts {
		n := len([]rune(a))
		if a == "" {
			continue
		}
		if a != clean(a) || n > maxArtifact || len(out.Artifacts) == maxArtifacts || total+n > v1alpha1.MaxArtifactCharacters {
			dropped += fmt.Sprintf(" artifact %q", first(a, 64))
			continue
		}
		total += n
		out.Artifacts = append(out.Artifacts, a)
	}
	if ref := r.ResultRef; ref == clean(ref) && len([]rune(ref)) <= maxResultRef {
		out.ResultRef = ref
	} else {
		dropped += " result_ref"
	}
	return out, strings.TrimSpace(dropped)
}
