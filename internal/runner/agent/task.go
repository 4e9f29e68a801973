package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/runner"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

const (
	// keptOutput is how much of the end of a command's output is looked at for its result.
	keptOutput = 64 << 10
	// keptErrors is how much of the end of its error output may go into a reason.
	keptErrors = 4 << 10
	// minRenewCall is the least that a renewal is given to be answered.
	minRenewCall = 2 * time.Second
)

// work runs the command for a task that is held, and tells the board how it ended.
func (w *Worker) work(p phases, h *held) error {
	full, err := w.task(p.taking, h.task.TaskID)
	refused, isProblem := problem.As(err)
	switch {
	case p.taking.Err() != nil:
		w.release(p, h.task.TaskID, h.fence)
		return nil
	case isProblem && !runner.Passes(refused):
		w.Log.Warn("the details of a task cannot be read", "task", h.task.TaskID, "error", refused.Error())
	case err != nil:
		return err // It stays held: the next look takes it up again.
	case full != nil:
		h.task = *full
	}
	attempt := w.tries.Attempt(h.task.TaskID)
	log := w.Log.With("task", h.task.TaskID, "room", h.room.Room, "fence", h.fence, "attempt", attempt)
	log.Info("running the command", "title", h.task.Title)
	began := time.Now()
	ending := w.run(p, h, attempt)
	verdict := runner.Judge(ending, attempt, w.opts.Attempts)
	log.Info("the command ended", "code", ending.Code, "took", time.Since(began).Round(time.Millisecond).String(),
		"then", string(verdict.Action), "status", verdict.Status)
	if verdict.Dropped != "" {
		log.Warn("part of the result has no place in the record", "what", verdict.Dropped)
	}
	return w.conclude(p, h, verdict)
}

// conclude carries out what the end of a command means.
func (w *Worker) conclude(p phases, h *held, v runner.Verdict) error {
	id, now := h.task.TaskID, time.Now()
	switch v.Action {
	case runner.Record:
		r := pendingRecord{TaskID: id, Fence: h.fence, Status: v.Status, Result: v.Result}
		if err := w.state.keep(id, r); err != nil {
			w.Log.Warn("the result could not be noted: should this process die now, the task is done again", "task", id, "error", err.Error())
		} else {
			w.Log.Debug("the result is noted", "task", id)
		}
		if v.Status == "done" {
			w.tries.Done(id)
		} else {
			w.tries.Failed(id, now, chance())
		}
		return w.record(p, r)
	case runner.Retry:
		pause := w.tries.Failed(id, now, chance())
		w.Log.Info("the task is tried again", "task", id, "again_in", pause.String(), "why", v.Result.Summary)
		return w.giveBack(p, pendingRecord{TaskID: id, Fence: h.fence, Status: "todo", Result: v.Result})
	case runner.Release:
		w.release(p, id, h.fence)
	case runner.Nothing:
		if h.finished.Load() {
			w.tries.Done(id)
			w.Log.Info("the command has recorded its end itself", "task", id)
			return nil
		}
		pause := w.tries.Passed(id, now, chance())
		w.Log.Warn("the task is not held any more: its command was killed, and nothing is recorded", "task", id, "again_in", pause.String())
	}
	return nil
}

// giveBack gives a task back with a word on what happened. One that is not held any more is what was wished for.
func (w *Worker) giveBack(p phases, r pendingRecord) error {
	err := w.persist(p.last, "giving back a task", func(ctx context.Context) error {
		return w.client.Call(ctx, "set_status", statusArgs(r), nil)
	})
	if problem, refused := problem.As(err); refused {
		w.Log.Warn("a task could not be given back: its lease runs out by itself", "task", r.TaskID, "error", problem.Error())
		return nil
	}
	return err
}

// run runs the command for a task while it is held.
func (w *Worker) run(p phases, h *held, attempt int) runner.Ending {
	input, err := json.Marshal(runner.Work{Task: h.task, RoomName: h.room.Name, Fence: h.fence, Attempt: attempt, Me: w.me})
	if err != nil {
		return runner.Ending{Trouble: err.Error()}
	}
	resultPath, err := w.state.freshResult()
	if err != nil {
		return runner.Ending{Trouble: err.Error()}
	}
	holding, lose := context.WithCancelCause(p.running)
	defer lose(nil)
	ctx, cancel := w.limited(holding)
	defer cancel()
	var keeping sync.WaitGroup
	keeping.Go(func() { w.keepLease(ctx, h, lose) })
	stdout, stderr := runner.NewTail(keptOutput), runner.NewTail(keptErrors)
	command := w.command(h.room.Room, attempt, "ROOMS_TASK_ID="+h.task.TaskID, "ROOMS_FENCE="+strconv.FormatInt(h.fence, 10),
		"ROOMS_RESULT_FILE="+resultPath)
	command.Stdin = bytes.NewReader(append(input, '\n'))
	command.Stdout, command.Stderr = io.MultiWriter(stdout, passed{w.Stdout}), io.MultiWriter(stderr, passed{w.Stderr})
	exit, err := command.Run(ctx)
	cancel()
	keeping.Wait()
	ending := runner.Ending{
		Code: exit.Code, TimedOut: errors.Is(exit.Cause, errTimedOut), Lost: errors.Is(exit.Cause, errLost),
		Stopped: errors.Is(exit.Cause, errStopping), Finished: h.finished.Load(), Stdout: stdout.String(), Stderr: stderr.String(), Whole: stdout.Whole(),
		File: w.state.result(),
	}
	if err != nil {
		ending.Trouble = err.Error()
	}
	return ending
}

// keepLease renews the lease of a task until ctx ends. It loses the task when the bridge says so, and when the lease may have
// run out because no renewal was answered.
func (w *Worker) keepLease(ctx context.Context, h *held, lose context.CancelCauseFunc) {
	claim := h.claim
	for wait(ctx, claim.Wait(time.Now())) {
		asked := time.Now()
		if claim.Over(asked) {
			w.Log.Warn("the lease could not be renewed in time", "task", h.task.TaskID)
			lose(errLost)
			return
		}
		left, err := w.renew(ctx, h, claim)
		p, refused := problem.As(err)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			claim = runner.Held(asked, left, chance())
		case refused && runner.Lost(p) && !claim.Over(time.Now()) && w.finished(ctx, h.task.TaskID):
			h.finished.Store(true)
			return
		case refused && runner.Lost(p):
			w.Log.Warn("the lease is lost", "task", h.task.TaskID, "error", p.Error())
			lose(errLost)
			return
		default:
			claim = claim.Failed(time.Now(), chance())
			w.Log.Warn("renewing the lease failed", "task", h.task.TaskID, "error", err.Error(), "left", time.Until(claim.Until).String())
		}
	}
}

// passed hands on what a command writes. That nobody takes it must not end the command.
type passed struct{ to io.Writer }

// Write implements io.Writer. It never fails.
func (o passed) Write(p []byte) (int, error) {
	_, _ = o.to.Write(p)
	return len(p), nil
}

// renew makes one renewal, and leaves time for others.
func (w *Worker) renew(ctx context.Context, h *held, c runner.Claim) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, max(c.Lease/6, minRenewCall))
	defer cancel()
	ctx, stop := context.WithDeadline(ctx, c.Until)
	defer stop()
	var renewed rooms.Renewal
	err := w.client.Call(ctx, "renew_lease", map[string]any{"task_id": h.task.TaskID, "fence": h.fence}, &renewed)
	return seconds(renewed.Lease.ExpiresInSeconds), err //nolint:wrapcheck // it says which tool
}
