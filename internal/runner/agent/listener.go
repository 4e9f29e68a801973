package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/runner"
	"github.com/agentrooms/agentrooms/internal/supervise"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

// keepInterval is how often a delivery is asked for again while its command runs. It lasts 90 s and is extended when less than
// half of that is left.
const keepInterval = 30 * time.Second

// Listener runs a command for each wake of an agent.
type Listener struct {
	*member

	queue *runner.Queue
	// last is the room of the last wake: the next look begins behind it.
	last string
}

// pendingAck is a wake that the command has handled and that is not acknowledged yet.
type pendingAck struct {
	MentionID string `json:"mention_id"`
	Room      string `json:"room"`
}

// Listen runs the command for each wake, one at a time, until ctx ends. A wake is acknowledged when the command ends with 0,
// and handled again after a while when it does not. The error says that it could not begin.
func Listen(ctx context.Context, o Options) error { //nolint:contextcheck // the phases derive from ctx
	m, err := open(ctx, o)
	if err != nil && ctx.Err() != nil {
		return nil // It was told to stop before it had begun.
	}
	if err != nil {
		return err
	}
	defer m.close()
	l := &Listener{member: m, queue: runner.NewQueue(o.Backoff)}
	for _, a := range kept[pendingAck](m.state) {
		l.queue.Unacknowledged(a.Room, a.MentionID, time.Time{}, 0)
	}
	p, done := newPhases(ctx, o.Grace)
	defer done()
	watching, stop := context.WithCancel(p.taking)
	var stream sync.WaitGroup
	stream.Go(func() { m.watch(watching, []string{"rooms://inbox/" + m.me.Plate}) })
	l.loop(p, l.look)
	stop()
	stream.Wait()
	return nil
}

// look handles the next wake, if there is one. It goes round the rooms, so that none starves the others.
func (l *Listener) look(p phases) (time.Duration, bool, error) {
	list, err := l.mine(p.taking)
	if err != nil {
		return 0, false, err
	}
	if i := slices.IndexFunc(list, func(r rooms.RoomInfo) bool { return r.Room == l.last }); i >= 0 {
		list = slices.Concat(list[i+1:], list[:i+1])
	}
	unread := 0
	for _, room := range list {
		if room.MentionsUnread == 0 {
			continue
		}
		unread += room.MentionsUnread
		var offered rooms.MentionList
		now := time.Now()
		args := map[string]any{"room": room.Room, "limit": l.queue.Ask(room.Room, now)}
		err := l.client.Call(p.taking, "check_mentions", args, &offered)
		if problem, refused := problem.As(err); refused && !runner.Passes(problem) {
			l.Log.Warn("a room cannot be looked into", "room", room.Room, "error", err.Error())
			continue
		}
		if err != nil {
			return 0, false, err //nolint:wrapcheck // it says which tool
		}
		if chosen, ok := l.queue.Next(offered.Mentions, now); ok {
			l.last = room.Room
			return 0, true, l.handle(p, room, chosen)
		}
	}
	pause, timed := l.queue.Pause(unread, time.Now(), chance())
	return pause, timed, nil
}

// handle runs the command for a wake and acknowledges it. The error is of the bridge; what the command does wrong is noted.
func (l *Listener) handle(p phases, room rooms.RoomInfo, c runner.Chosen) error {
	if !c.Handled {
		event, err := l.event(p.taking, room, c)
		if err != nil {
			return err
		}
		if !l.run(p, event) {
			return nil
		}
		if err := l.state.keep(c.MentionID, pendingAck{MentionID: c.MentionID, Room: c.Room}); err != nil {
			l.Log.Warn("what was handled could not be noted: should this process die now, it is handled again", "error", err.Error())
		}
	}
	return l.acknowledge(p, c)
}

// event gathers what the command is told.
func (l *Listener) event(ctx context.Context, room rooms.RoomInfo, c runner.Chosen) (runner.Event, error) {
	e := runner.Event{
		Room: c.Room, RoomName: room.Name, MentionID: c.MentionID, MessageID: c.MessageID, Seq: c.Seq, From: c.From,
		TrustLevel: c.TrustLevel, Text: c.Excerpt, TaskID: c.TaskID, Attempt: c.Attempt, Me: l.me,
	}
	var page rooms.Page
	err := l.client.Call(ctx, "read_room", map[string]any{"room": c.Room, "before_seq": c.Seq + 1, "limit": 1}, &page)
	if err != nil {
		return e, err //nolint:wrapcheck // it says which tool
	}
	if n := len(page.Messages); n > 0 && page.Messages[n-1].Seq == c.Seq {
		e.Message = &page.Messages[n-1]
		e.Text = e.Message.Body
	}
	if c.TaskID != "" {
		if e.Task, err = l.task(ctx, c.TaskID); err != nil {
			return e, err
		}
	}
	e.Kind = runner.Classify(e.Message, e.Task, c.TaskID, l.me.Plate)
	return e, nil
}

// task reads a task with its details, nil when it is gone.
func (m *member) task(ctx context.Context, id string) (*rooms.Task, error) {
	var task rooms.Task
	err := m.client.Read(ctx, "rooms://task/"+id, &task)
	if p, refused := problem.As(err); refused && p.Code == problem.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // it says which task
	}
	return &task, nil
}

// run runs the command for a wake and says whether it handled it. While it runs the mention stays with this instance.
func (l *Listener) run(p phases, e runner.Event) bool {
	input, err := json.Marshal(e)
	if err != nil {
		l.Log.Error("a wake cannot be told to the command", "mention", e.MentionID, "error", err.Error())
		l.queue.Failed(e.Room, e.MentionID, time.Now(), chance())
		return false
	}
	ctx, cancel := l.limited(p.running)
	defer cancel()
	var keeping sync.WaitGroup
	keeping.Go(func() { l.keepDelivery(ctx, e) })
	log := l.Log.With("mention", e.MentionID, "kind", string(e.Kind), "room", e.Room, "attempt", e.Attempt)
	log.Info("running the command")
	began := time.Now()
	command := l.command(e.Room, e.Attempt, "ROOMS_EVENT_KIND="+string(e.Kind), "ROOMS_MENTION_ID="+e.MentionID, "ROOMS_TASK_ID="+e.TaskID)
	command.Stdin = bytes.NewReader(append(input, '\n'))
	exit, err := command.Run(ctx)
	cancel()
	keeping.Wait()
	took := time.Since(began).Round(time.Millisecond).String()
	switch {
	case errors.Is(exit.Cause, errStopping):
		log.Warn("the command was killed because the listener stops: the wake stays", "took", took)
		return false
	case err == nil && exit.Cause == nil && exit.Code == 0:
		log.Info("the command has handled it", "took", took)
		return true
	}
	pause := l.queue.Failed(e.Room, e.MentionID, time.Now(), chance())
	log.Warn("the command failed", "why", describe(exit, err), "took", took, "again_in", pause.String())
	return false
}

func describe(exit supervise.Exit, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case exit.Cause != nil:
		return exit.Cause.Error()
	default:
		return fmt.Sprintf("exit status %d", exit.Code)
	}
}

// keepDelivery keeps a mention from other instances by asking for it again and again. One that got lost all the same is
// handled to its end: acknowledging it twice does no harm.
func (l *Listener) keepDelivery(ctx context.Context, e runner.Event) {
	for wait(ctx, runner.Every(keepInterval, chance())) {
		if kept, err := l.redeliver(ctx, e.Room, e.MentionID, e.Seq); ctx.Err() == nil && (err != nil || !kept) {
			l.Log.Warn("the mention could not be kept from other instances", "mention", e.MentionID, "error", fmt.Sprint(err))
		}
	}
}

// redeliver asks for one mention, and as few others as can be, and says whether it came.
func (l *Listener) redeliver(ctx context.Context, room, id string, seq int64) (bool, error) {
	_, index, _ := ids.ParseMentionID(id)
	var offered rooms.MentionList
	err := l.client.Call(ctx, "check_mentions", map[string]any{"room": room, "since_seq": seq - 1, "limit": index + 1}, &offered)
	if err != nil {
		return false, err //nolint:wrapcheck // it says which tool
	}
	return slices.ContainsFunc(offered.Mentions, func(m rooms.MentionInfo) bool { return m.MentionID == id }), nil
}

// acknowledge says that a wake was handled, and does not give up before the bridge has heard it.
func (l *Listener) acknowledge(p phases, c runner.Chosen) error {
	ack := func(ctx context.Context) error {
		return l.client.Call(ctx, "ack_mentions", map[string]any{"mention_ids": []string{c.MentionID}}, nil)
	}
	err := l.persist(p.last, "acknowledging a mention", ack)
	if problem, refused := problem.As(err); refused {
		// It may count as not delivered when another instance was given it in between.
		if _, again := l.redeliver(p.last, c.Room, c.MentionID, c.Seq); again == nil {
			err = l.persist(p.last, "acknowledging a mention", ack)
		}
		if err != nil {
			l.Log.Warn("a mention that was handled cannot be acknowledged", "mention", c.MentionID, "error", problem.Error())
		}
	}
	if err != nil {
		l.queue.Unacknowledged(c.Room, c.MentionID, time.Now(), chance())
		return err
	}
	l.queue.Done(c.MentionID)
	if err := l.state.settled(c.MentionID); err != nil {
		l.Log.Warn("what was acknowledged could not be forgotten", "error", err.Error())
	}
	return nil
}
