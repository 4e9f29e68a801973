package faults

import (
	"fmt"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// step does one thing that an agent does.
func (c *instance) step() {
	switch n := c.random.IntN(100); {
	case n < 35:
		c.send()
	case n < 55:
		c.mentions()
	case n < 60:
		c.read()
	case c.holding != nil:
		c.work()
	case c.load.short():
		c.create()
	default:
		c.claim()
	}
}

// send writes a message, half of them to somebody. One with a key is sent until it is told to stand in the log; one without
// is sent once.
func (c *instance) send() {
	body := c.next("message")
	args := harness.Args{"room": c.load.room, "body": body}
	m := &sentMessage{client: c.id, keyed: c.random.IntN(2) == 0, call: c.load.log.now(), ret: never}
	if other := agents[c.random.IntN(len(agents))]; other != c.agent {
		m.mentions = c.load.world.Plates[other]
		args["mentions"] = []string{"@" + other}
	}
	c.load.mu.Lock()
	c.load.messages[body] = m
	c.load.mu.Unlock()
	var answer wasTold
	outcome := told
	if m.keyed {
		args["idempotency_key"] = body
		if answer, _ = c.until("send_message", args); answer.result == nil {
			outcome = unknown
		}
	} else {
		answer, outcome = c.once("send_message", args)
	}
	if outcome != told {
		return
	}
	if answer.err != nil {
		c.load.complain("send_message: %v", answer.err)
		return
	}
	c.load.mu.Lock()
	defer c.load.mu.Unlock()
	m.seq, m.ret, m.replica = into[rooms.Sent](answer.result).Seq, c.load.log.now(), answer.by
}

// read looks at the end of the room. What was read once stays as it is, which the log shows in the end.
func (c *instance) read() {
	answer, outcome := c.once("read_room", harness.Args{"room": c.load.room, "limit": 20})
	if outcome != told {
		return
	}
	if answer.err != nil {
		c.load.complain("read_room: %v", answer.err)
		return
	}
	page := into[rooms.Page](answer.result)
	for i, m := range page.Messages {
		if m.Seq != page.Messages[0].Seq+int64(i) {
			c.load.complain("read_room shows seq %d after %d", m.Seq, page.Messages[i-1].Seq)
		}
	}
}

// mentions asks for mentions and acknowledges most of what comes.
func (c *instance) mentions() {
	tool, args := "check_mentions", harness.Args{"limit": 1 + c.random.IntN(10)}
	if c.random.IntN(8) == 0 {
		tool, args["timeout_seconds"] = "wait_for_mentions", 1
	}
	list, ok := c.check(tool, args)
	if !ok || c.random.IntN(5) == 0 {
		return
	}
	var ids []string
	for _, m := range list.Mentions {
		ids = append(ids, m.MentionID)
	}
	c.ack(ids)
}

func (c *instance) check(tool string, args harness.Args) (rooms.MentionList, bool) {
	session, call := c.session, c.load.inboxes.now()
	if given, ok := args["session_id"].(string); ok {
		session = given
	}
	answer, outcome := c.once(tool, args)
	if outcome != told {
		return rooms.MentionList{}, false
	}
	if answer.err != nil {
		c.load.complain("%s: %v", tool, answer.err)
		return rooms.MentionList{}, false
	}
	list, ret := into[rooms.MentionList](answer.result), c.load.inboxes.now()
	c.load.mu.Lock()
	defer c.load.mu.Unlock()
	for _, m := range list.Mentions {
		c.load.inboxes.add(m.MentionID, c.id, call, ret, mentionOp{"given", session}, true)
		c.load.givens[m.MentionID] = append(c.load.givens[m.MentionID], given{c.agent, session, call, ret, m.Seq})
	}
	return list, true
}

// ack acknowledges until it is told.
func (c *instance) ack(ids []string) {
	if len(ids) == 0 {
		return
	}
	call := c.load.inboxes.now()
	answer, ok := c.until("ack_mentions", harness.Args{"mention_ids": ids})
	ret := c.load.inboxes.now()
	if ok && answer.err != nil {
		c.load.complain("ack_mentions of what check_mentions gave: %v", answer.err)
		ok = false
	}
	if !ok {
		ret = never
	}
	c.load.mu.Lock()
	defer c.load.mu.Unlock()
	for _, id := range ids {
		c.load.inboxes.add(id, c.id, call, ret, mentionOp{"ack", c.session}, ok)
		c.load.acked[id] = c.load.acked[id] || ok
	}
}

// create makes a task for an agent, with a key, until it is told its id.
func (c *instance) create() {
	title := c.next("task")
	answer, ok := c.until("create_task", harness.Args{
		"room": c.load.room, "title": title, "definition_of_done": "it is done", "idempotency_key": title,
		"assignee": "@" + agents[c.random.IntN(len(agents))],
	})
	if !ok {
		return
	}
	if answer.err != nil {
		c.load.complain("create_task: %v", answer.err)
		return
	}
	id := into[rooms.Task](answer.result).TaskID
	c.load.mu.Lock()
	defer c.load.mu.Unlock()
	c.load.created[title] = id
	c.load.open = append(c.load.open, id)
}

// taskCall makes a call on a task, again and again until it is told. Each call is an operation of its own: one whose
// answer is lost may take effect at any time.
func (c *instance) taskCall(tool, task string, op taskOp, args harness.Args, read func(wasTold) taskAnswer) (taskAnswer, bool) {
	args["task_id"] = task
	for range 200 {
		call := c.load.tasks.now()
		answer, outcome := c.once(tool, args)
		switch outcome {
		case told:
			a := read(answer)
			if a.outcome != "" {
				c.load.tasks.add(task, c.id, call, c.load.tasks.now(), op, a)
			}
			return a, a.outcome != ""
		case unknown:
			c.load.tasks.add(task, c.id, call, never, op, taskAnswer{outcome: "unknown"})
		}
		c.pause()
	}
	c.load.complain("%s was not answered in many tries", tool)
	return taskAnswer{}, false
}

// holderAnswer reads what is told to a holder: that it went well, or that the task is lost.
func (c *instance) holderAnswer(tool string) func(wasTold) taskAnswer {
	return func(answer wasTold) taskAnswer {
		switch {
		case answer.err == nil:
			return taskAnswer{outcome: "ok"}
		case answer.err.Code == "LEASE_LOST":
			return taskAnswer{outcome: "lost"}
		}
		c.load.complain("%s: %v", tool, answer.err)
		return taskAnswer{}
	}
}

func (c *instance) claim() {
	task, ok := c.load.pick(c.random)
	if !ok {
		return
	}
	var state string
	op := taskOp{kind: "claim", session: c.holder()}
	a, ok := c.taskCall("claim_task", task, op, harness.Args{}, func(answer wasTold) taskAnswer {
		if answer.err != nil {
			if answer.err.Code != "FORBIDDEN" { // another agent's
				c.load.complain("claim_task: %v", answer.err)
			}
			return taskAnswer{}
		}
		claim := into[rooms.Claim](answer.result)
		state = claim.State
		if !claim.OK {
			return taskAnswer{outcome: "lost"}
		}
		return taskAnswer{outcome: "ok", fence: claim.Lease.Fence}
	})
	switch {
	case ok && a.outcome == "ok":
		c.holding = &holding{task, a.fence}
	case state == "done":
		c.load.closed(task)
	}
}

// work goes on with the task that the client holds.
func (c *instance) work() {
	h := *c.holding
	op := taskOp{session: c.holder(), fence: h.fence}
	args := harness.Args{"fence": h.fence}
	switch n := c.random.IntN(100); {
	case n < 60:
		op.kind = "renew"
		if a, ok := c.taskCall("renew_lease", h.task, op, args, c.holderAnswer("renew_lease")); !ok || a.outcome != "ok" {
			c.holding = nil
		}
		return
	case n < 75:
		op.kind = "release"
		c.taskCall("release_task", h.task, op, args, c.holderAnswer("release_task"))
	case n < 80:
		c.die()
		return
	default:
		op.kind, op.summary = "done", c.next("summary")
		args["status"], args["summary"] = "done", op.summary
		if a, ok := c.taskCall("set_status", h.task, op, args, c.holderAnswer("set_status")); ok && a.outcome == "ok" {
			c.load.finish(h.task, op)
		}
	}
	c.holding = nil
}

func (l *load) finish(task string, op taskOp) {
	l.closed(task)
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, twice := l.finished[task]; twice {
		l.complaints[fmt.Sprintf("task %s was finished by %s and by %s", task, old.holder, op.session)]++
	}
	l.finished[task] = finish{op.session, op.summary}
}
