package faults

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// racers is how many tasks are about to run out at once, and races is how often.
const racers, races = 24, 3

// TestARenewalThatRacesExpiryIsNeverRightTogetherWithIt lets holders renew at the very moment at which their leases run out,
// while rivals wait to claim and somebody looks. Either the renewal is answered and the task stays, or it is told
// LEASE_LOST: the model takes nothing else.
func TestARenewalThatRacesExpiryIsNeverRightTogetherWithIt(t *testing.T) {
	w, room := shop(t)
	h := newHistory(time.Now())
	var running sync.WaitGroup
	for i := range racers {
		r := &race{t: t, h: h, w: w, id: i}
		r.holder, r.rival = w.At(i%2, "ann", fmt.Sprint("holder-", i)), w.At((i+1)%2, "ann", fmt.Sprint("rival-", i))
		r.task = ids.ID(claimed(t, w, room, r.holder, fmt.Sprint("race ", i)))
		h.add(r.task, i, 0, h.now(), taskOp{kind: "claim", session: w.Plates["ann"] + "/" + r.holder.Name}, taskAnswer{outcome: "ok", fence: 1})
		running.Go(r.run)
	}
	running.Wait()
	kept, lost := 0, 0
	names, _ := h.subjects()
	for _, task := range names {
		ops := h.of(task)
		for _, op := range ops {
			if op.Input.(taskOp).kind == "renew" && op.Output.(taskAnswer).outcome == "ok" {
				kept++
			} else if op.Input.(taskOp).kind == "renew" {
				lost++
			}
		}
		if got := porcupine.CheckOperationsTimeout(taskModel.ToModel(), ops, checkTime); got != porcupine.Ok {
			t.Errorf("task %s: its history is %s:\n%s", task, got, describe(ops))
		}
	}
	t.Logf("%d renewals at the last moment were answered well, %d were told that the lease is lost", kept, lost)
	if kept == 0 || lost == 0 {
		t.Error("the renewals were all on one side of the moment: nothing raced")
	}
}

// race is a task that is about to run out, its holder and one who waits for it.
type race struct {
	t             *testing.T
	h             *history
	w             *harness.World
	id            int
	task          string
	holder, rival *harness.Session
}

// run renews at the moment of expiry, one way or the other of it, until the lease is lost or the races are over.
func (r *race) run() {
	fence := int64(1)
	renewed := time.Now()
	for n := range races {
		// The moments spread over the window in which the manager takes the lease away.
		offset := time.Duration((r.id*7+n*13)%48-8) * 5 * time.Millisecond
		moment := time.NewTimer(time.Until(renewed.Add(leaseTime + offset)))
		<-moment.C
		var both sync.WaitGroup
		both.Go(r.tryClaim)
		renewed = time.Now()
		ok := r.renew(fence)
		both.Wait()
		r.look()
		if !ok {
			return
		}
	}
}

func (r *race) do(s *harness.Session, tool string, op taskOp, args harness.Args, read func(*harness.Result) taskAnswer) taskAnswer {
	args["task_id"] = r.task
	op.session = r.w.Plates["ann"] + "/" + s.Name
	call := r.h.now()
	a := read(s.Call(r.t, tool, args))
	r.h.add(r.task, r.id, call, r.h.now(), op, a)
	return a
}

func (r *race) renew(fence int64) bool {
	op := taskOp{kind: "renew", fence: fence}
	return r.do(r.holder, "renew_lease", op, harness.Args{"fence": fence}, func(result *harness.Result) taskAnswer {
		if result.Err == nil {
			return taskAnswer{outcome: "ok"}
		}
		if result.Err.Code != "LEASE_LOST" {
			r.t.Errorf("renewing gives %v", result.Err)
		}
		return taskAnswer{outcome: "lost"}
	}).outcome == "ok"
}

func (r *race) tryClaim() {
	r.do(r.rival, "claim_task", taskOp{kind: "claim"}, harness.Args{}, func(result *harness.Result) taskAnswer {
		var c rooms.Claim
		result.Into(r.t, &c)
		if !c.OK {
			return taskAnswer{outcome: "lost"}
		}
		return taskAnswer{outcome: "ok", fence: c.Lease.Fence}
	})
}

// look reads the task at the API server, so that the model knows how it stands.
func (r *race) look() {
	call := r.h.now()
	task := taskByTitle(r.t, r.w, fmt.Sprint("race ", r.id))
	r.h.add(r.task, r.id, call, r.h.now(), taskOp{kind: "look"}, seen(task))
}
