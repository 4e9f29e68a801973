// Package agent makes a command a member of rooms: Listener runs it for each wake, Worker for each task. What is to be done is
// decided in package runner; here it is carried out.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/runner"
	"github.com/agentrooms/agentrooms/internal/runner/bridge"
	"github.com/agentrooms/agentrooms/internal/supervise"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

const (
	// patience is how long a command may take to end after SIGTERM.
	patience = 5 * time.Second
	// lastWords is how long the last calls may take after the command has ended.
	lastWords = 10 * time.Second
	// roomPatience is how long a room that was named may take to appear at the start.
	roomPatience = 10 * time.Second
)

// Why a command was killed.
var (
	errTimedOut = errors.New("it took too long")
	errStopping = errors.New("the runner stops")
	errLost     = errors.New("the task is not held any more")
)

// trouble is the pause between calls that fail.
var trouble = runner.Backoff{First: 500 * time.Millisecond, Max: 20 * time.Second}

// Options of both.
type Options struct {
	// Bridge is how to reach the rooms.
	Bridge bridge.Options
	// Rooms by id or name.
	Rooms []string
	// Command and its arguments.
	Command []string
	// Guard is the program, with arguments, that runs a command under supervise.Guard.
	Guard []string
	// Timeout of the command, 0 for none.
	Timeout time.Duration
	// Grace is how long a command may go on after the runner was told to stop.
	Grace time.Duration
	// Backoff after failures of the command.
	Backoff runner.Backoff
	// StateDir keeps what must outlive the process.
	StateDir string
	// Stdout and Stderr get what the command writes.
	Stdout, Stderr io.Writer
	// Log of the runner itself.
	Log *slog.Logger
}

// member is what both have in common.
type member struct {
	Options

	client *bridge.Client
	me     runner.Self
	// ids of the rooms that were named; none for all.
	ids   []string
	state *state
	// failing is true while the stream is away, so that it is said once.
	failing bool
}

// phases of a runner: it takes new work until taking ends, what runs is killed when running ends, and everything is over when
// last ends.
type phases struct {
	taking, running, last context.Context
}

// newPhases derives the phases from the context that ends when the runner is told to stop.
func newPhases(ctx context.Context, grace time.Duration) (phases, context.CancelFunc) {
	running, kill := context.WithCancelCause(context.WithoutCancel(ctx))
	last, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { kill(errStopping) })
		time.AfterFunc(grace+patience+lastWords, end)
	})
	return phases{taking: ctx, running: running, last: last}, func() {
		stop()
		kill(nil)
		end()
	}
}

// open connects, finds out who the agent is and takes the state folder. It waits as long as it takes for the bridge and for a
// token that it accepts.
func open(ctx context.Context, o Options) (*member, error) {
	client, err := bridge.New(o.Bridge)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong with the options
	}
	m := &member{Options: o, client: client}
	var who rooms.Identity
	err = m.persist(ctx, "finding out who the agent is", func(ctx context.Context) error { return client.Call(ctx, "whoami", nil, &who) })
	if err == nil {
		m.me = runner.Self{Plate: who.Plate, Alias: who.Alias, SessionID: client.Session()}
		err = m.resolve(ctx)
	}
	if err == nil {
		m.state, err = openState(o.StateDir, who.Plate, client.Session())
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	m.Log.Info("ready", "agent", who.Alias, "plate", who.Plate, "instance", client.Session(), "rooms", len(m.ids))
	return m, nil
}

func (m *member) close() {
	m.client.Close()
	if err := m.state.close(); err != nil {
		m.Log.Warn("giving back the state folder failed", "error", err.Error())
	}
}

// resolve finds the rooms that were named, by id or by a name that only one of the agent's rooms has.
func (m *member) resolve(ctx context.Context) error {
	if len(m.Rooms) == 0 {
		return nil
	}
	deadline := time.Now().Add(roomPatience)
	for failures := 1; ; failures++ {
		var list rooms.RoomList
		err := m.persist(ctx, "listing the rooms", func(ctx context.Context) error { return m.client.Call(ctx, "list_rooms", nil, &list) })
		if err != nil {
			return err
		}
		// A room that was just made may not be known to every replica.
		if m.ids, err = runner.FindRooms(list.Rooms, m.Rooms); err == nil || time.Now().After(deadline) {
			return err //nolint:wrapcheck // it says which room
		}
		if !wait(ctx, min(trouble.Delay(failures, chance()), time.Second)) {
			return ctx.Err() //nolint:wrapcheck // the runner was told to stop
		}
	}
}

// mine gives the rooms that are asked about, of those that the agent is in now.
func (m *member) mine(ctx context.Context) ([]rooms.RoomInfo, error) {
	var list rooms.RoomList
	if err := m.client.Call(ctx, "list_rooms", nil, &list); err != nil {
		return nil, err //nolint:wrapcheck // it says which tool
	}
	if len(m.ids) == 0 {
		return list.Rooms, nil
	}
	return slices.DeleteFunc(list.Rooms, func(r rooms.RoomInfo) bool { return !slices.Contains(m.ids, r.Room) }), nil
}

// loop looks for something to do whenever there may be something: at once after something was done, after a pause that look
// gives (none when it says false), and when the stream says so. It returns when nothing more is to be taken.
func (m *member) loop(p phases, look func(phases) (time.Duration, bool, error)) {
	failures := 0
	for p.taking.Err() == nil {
		pause, timed, err := look(p)
		news := m.client.Changed()
		switch {
		case err != nil && p.taking.Err() != nil:
			return
		case err != nil:
			failures++
			pause, timed, news = m.delay(err, failures), true, nil
			m.Log.Warn("the bridge did not answer as it should", "error", err.Error(), "again_in", pause.String())
		default:
			failures = 0
		}
		await(p.taking, news, pause, timed)
	}
}

// await waits for news, for the end of a pause if there is one, or for the end of ctx.
func await(ctx context.Context, news <-chan struct{}, pause time.Duration, timed bool) {
	var over <-chan time.Time
	if timed {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
	case <-news:
	case <-over:
	}
}

// watch opens the stream and says when it is away.
func (m *member) watch(ctx context.Context, uris []string) {
	m.client.Watch(ctx, uris, func(err error) {
		switch {
		case err != nil && !m.failing:
			m.Log.Warn("the stream that tells of changes is away", "error", err.Error())
		case err != nil:
			m.Log.Debug("the stream that tells of changes is still away", "error", err.Error())
		case m.failing:
			m.Log.Info("the stream that tells of changes is back")
		}
		m.failing = err != nil
	})
}

// persist makes a call until it succeeds or is refused for good, or ctx ends. What it refused with is a *problem.Problem.
func (m *member) persist(ctx context.Context, what string, call func(context.Context) error) error {
	for failures := 1; ; failures++ {
		err := call(ctx)
		p, refused := problem.As(err)
		if err == nil || (refused && !runner.Passes(p)) {
			return err
		}
		pause := m.delay(err, failures)
		if ctx.Err() == nil {
			m.Log.Warn(what+" failed", "error", err.Error(), "again_in", pause.String())
		}
		if !wait(ctx, pause) {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// delay gives the pause after an error: at least what the bridge asks for.
func (m *member) delay(err error, failures int) time.Duration {
	pause := trouble.Delay(failures, chance())
	if p, ok := problem.As(err); ok {
		pause = max(pause, time.Duration(min(p.RetryAfterSeconds, 60))*time.Second)
	}
	return pause
}

// wait waits and says false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func chance() float64 { return rand.Float64() } //nolint:gosec // spreads, and hides nothing

// command gives the command with what both runners tell it.
func (m *member) command(room string, attempt int, env ...string) supervise.Command {
	return supervise.Command{
		Guard: m.Guard, Args: m.Command, Stdout: m.Stdout, Stderr: m.Stderr,
		Env: append([]string{
			"ROOMS_MCP_URL=" + m.Bridge.URL, "ROOMS_TOKEN_FILE=" + m.Bridge.TokenFile, "ROOMS_PLATE=" + m.me.Plate,
			"ROOMS_ALIAS=" + m.me.Alias, "ROOMS_SESSION_ID=" + m.me.SessionID, "ROOMS_ROOM=" + room,
			"ROOMS_ATTEMPT=" + strconv.Itoa(attempt),
		}, env...),
		Patience: func(cause error) time.Duration {
			if errors.Is(cause, errLost) {
				return 0
			}
			return patience
		},
	}
}

// limited bounds a context by the timeout of the command.
func (m *member) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if m.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, m.Timeout, errTimedOut)
}
