package agent

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/runner"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

const (
	// claimsAtOnce is how many tasks of one look at the boards are tried before the boards are read again.
	claimsAtOnce = 4
	// MaxRooms is how many boards one stream can tell of.
	MaxRooms = 32
)

// WorkOptions are the options of Work.
type WorkOptions struct {
	Options

	// Unassigned tasks are taken, too.
	Unassigned bool
	// Attempts at a task that cannot be done for the time being, before it is given up as failed.
	Attempts int
}

// Worker runs a command for each task of an agent.
type Worker struct {
	*member

	opts  WorkOptions
	tries *runner.Tries
	// later is when to try again to record what could not be recorded in a room that is paused.
	later map[string]time.Time
	// tidy is true once nothing is held in rooms that are not worked in.
	tidy bool
}

// pendingRecord is what the command has done and the board does not say yet.
type pendingRecord struct {
	TaskID string        `json:"task_id"`
	Fence  int64         `json:"fence"`
	Status string        `json:"status"`
	Result runner.Result `json:"result"`
}

// held is a task that this instance holds, and since when it is known.
type held struct {
	task  rooms.Task
	room  rooms.RoomInfo
	fence int64
	claim runner.Claim
	// finished is set when the command has recorded the end of the task itself.
	finished atomic.Bool
}

// Work claims tasks and runs the command for each, one at a time, until ctx ends. The error says that it could not begin.
func Work(ctx context.Context, o WorkOptions) error { //nolint:contextcheck // the phases derive from ctx
	m, err := open(ctx, o.Options)
	if err != nil && ctx.Err() != nil {
		return nil // It was told to stop before it had begun.
	}
	if err != nil {
		return err
	}
	defer m.close()
	w := &Worker{member: m, opts: o, tries: runner.NewTries(o.Backoff), later: map[string]time.Time{}}
	p, done := newPhases(ctx, o.Grace)
	defer done()
	boards := make([]string, 0, len(m.ids))
	for _, id := range m.ids {
		boards = append(boards, "rooms://room/"+id+"/board")
	}
	watching, stop := context.WithCancel(p.taking)
	var stream sync.WaitGroup
	stream.Go(func() { m.watch(watching, boards) })
	w.loop(p, w.look)
	stop()
	stream.Wait()
	return nil
}

// look does the next piece of work, if there is one: first what an earlier life of this instance left behind, then what it
// holds, then what it can claim.
func (w *Worker) look(p phases) (time.Duration, bool, error) {
	if err := w.settle(p); err != nil {
		return 0, false, err
	}
	if err := w.tidyUp(p); err != nil {
		return 0, false, err
	}
	list, err := w.mine(p.taking)
	if err != nil {
		return 0, false, err
	}
	if busy, err := w.resume(p, list); busy || err != nil {
		return 0, true, err
	}
	ready, err := w.ready(p.taking, list)
	if err != nil {
		return 0, false, err
	}
	for _, task := range ready[:min(len(ready), claimsAtOnce)] {
		h, err := w.claim(p.running, roomOf(list, task.Room), task)
		if err != nil {
			return 0, false, err
		}
		if h != nil {
			return 0, true, w.work(p, h)
		}
	}
	if len(ready) > claimsAtOnce {
		return 0, true, nil
	}
	pause, waits := w.pause(time.Now())
	return pause, waits, nil
}

// pause gives how long it is until something is due, and false when only news matters.
func (w *Worker) pause(now time.Time) (time.Duration, bool) {
	due, waits := w.tries.Due(now)
	for _, at := range w.later {
		if !waits || at.Before(due) {
			due, waits = at, true
		}
	}
	return max(0, due.Sub(now)), waits
}

func roomOf(list []rooms.RoomInfo, id string) rooms.RoomInfo {
	if i := slices.IndexFunc(list, func(r rooms.RoomInfo) bool { return r.Room == id }); i >= 0 {
		return list[i]
	}
	return rooms.RoomInfo{Room: id}
}

// board reads the tasks of a room in one state, without their details.
func (w *Worker) board(ctx context.Context, room, status, assignee string) ([]rooms.Task, error) {
	args := map[string]any{"room": room, "status": status}
	if assignee != "" {
		args["assignee"] = assignee
	}
	var board rooms.Board
	if err := w.client.Call(ctx, "read_board", args, &board); err != nil {
		return nil, err //nolint:wrapcheck // it says which tool
	}
	var list []rooms.Task
	for _, lane := range board.Lanes {
		list = append(list, lane.Tasks...)
	}
	return list, nil
}

// ready gives the tasks of all boards that may be claimed, the next one in front.
func (w *Worker) ready(ctx context.Context, list []rooms.RoomInfo) ([]rooms.Task, error) {
	assignee := w.me.Plate
	if w.opts.Unassigned {
		assignee = ""
	}
	var open []rooms.Task
	for _, room := range list {
		tasks, err := w.board(ctx, room.Room, "todo", assignee)
		if err != nil {
			return nil, err
		}
		open = append(open, tasks...)
	}
	return w.tries.Pick(open, w.me.Plate, w.opts.Unassigned, time.Now()), nil
}

// heldIn gives what this instance holds in a room. A call whose answer was lost may have claimed it, or an earlier life.
func (w *Worker) heldIn(ctx context.Context, room string) ([]rooms.Task, error) {
	doing, err := w.board(ctx, room, "doing", "")
	return runner.HeldBy(doing, w.me.Plate, w.me.SessionID), err
}

// resume takes up again what this instance holds already, and says whether there was anything.
func (w *Worker) resume(p phases, list []rooms.RoomInfo) (bool, error) {
	for _, room := range list {
		tasks, err := w.heldIn(p.taking, room.Room)
		if err != nil {
			return false, err
		}
		for _, task := range tasks {
			h, err := w.claim(p.running, room, task)
			if err != nil {
				return false, err
			}
			if h == nil {
				continue
			}
			w.Log.Info("taking up again a task that this instance holds", "task", task.TaskID)
			return true, w.work(p, h)
		}
	}
	return false, nil
}

// tidyUp gives back what this instance holds in rooms that it does not work in now: as long as it lives, each of its calls
// would renew those leases.
func (w *Worker) tidyUp(p phases) error {
	if w.tidy {
		return nil
	}
	var all rooms.RoomList
	if err := w.client.Call(p.taking, "list_rooms", nil, &all); err != nil {
		return err //nolint:wrapcheck // it says which tool
	}
	for _, room := range all.Rooms {
		if slices.Contains(w.ids, room.Room) {
			continue
		}
		tasks, err := w.heldIn(p.taking, room.Room)
		if err != nil {
			return err
		}
		for _, task := range tasks {
			w.Log.Info("giving back a task in a room that is not worked in", "task", task.TaskID, "room", room.Room)
			w.release(p, task.TaskID, task.Lease.Fence)
		}
	}
	w.tidy = true
	return nil
}

// claim tries to take a task, and gives nil when that is not to be. What is held already is claimed again with the same fence.
func (w *Worker) claim(ctx context.Context, room rooms.RoomInfo, task rooms.Task) (*held, error) {
	var claimed rooms.Claim
	asked := time.Now()
	err := w.client.Call(ctx, "claim_task", map[string]any{"task_id": task.TaskID}, &claimed)
	if p, refused := problem.As(err); refused && !runner.Passes(p) {
		pause := w.tries.Passed(task.TaskID, asked, chance())
		w.Log.Info("a task cannot be claimed", "task", task.TaskID, "error", p.Error(), "again_in", pause.String())
		return nil, nil
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // it says which tool
	}
	if !claimed.OK || claimed.Lease == nil {
		w.tries.Passed(task.TaskID, asked, chance())
		w.Log.Debug("another instance was faster", "task", task.TaskID, "reason", claimed.Reason, "holder", claimed.Holder)
		return nil, nil
	}
	h := &held{task: task, room: room, fence: claimed.Lease.Fence}
	h.claim = runner.Held(asked, seconds(claimed.Lease.ExpiresInSeconds), chance())
	return h, nil
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// pausedPause is how long a result waits before a room is asked again that is paused.
const pausedPause = 30 * time.Second

// settle tells what the command did and the board could not be told yet, also in an earlier life.
func (w *Worker) settle(p phases) error {
	for _, r := range kept[pendingRecord](w.state) {
		if r.TaskID == "" || time.Now().Before(w.later[r.TaskID]) {
			continue
		}
		w.Log.Info("recording what was done before", "task", r.TaskID, "status", r.Status)
		if err := w.record(p, r); err != nil {
			return err
		}
	}
	return nil
}

// record tells the board what the command has done, and does not give up before the bridge has heard it. The same words a
// second time change nothing, so an answer that got lost does no harm. In a room that is paused it waits, and holds nothing up.
func (w *Worker) record(p phases, r pendingRecord) error {
	set := func(ctx context.Context) error { return w.client.Call(ctx, "set_status", statusArgs(r), nil) }
	err := w.persist(p.last, "recording a result", set)
	if refused, ok := problem.As(err); ok && refused.Code == problem.Validation {
		// What it said does not fit. That it is done must not get lost for that.
		w.Log.Error("the result of a command was refused: only its status is recorded", "task", r.TaskID, "error", refused.Error())
		r.Result = runner.Result{Summary: "the result could not be recorded", Reason: "the result could not be recorded"}
		err = w.persist(p.last, "recording a result", set)
	}
	refused, isProblem := problem.As(err)
	switch {
	case isProblem && refused.Code == problem.RoomNotActive:
		w.later[r.TaskID] = time.Now().Add(runner.Every(pausedPause, chance()))
		w.Log.Warn("a result waits for its room to be active again", "task", r.TaskID, "error", refused.Error())
		return nil
	case isProblem && w.finished(p.last, r.TaskID):
		w.Log.Info("the command has recorded its end itself", "task", r.TaskID)
	case isProblem:
		w.Log.Warn("a result came too late", "task", r.TaskID, "status", r.Status, "error", refused.Error())
	case err != nil:
		return err
	default:
		w.Log.Info("recorded", "task", r.TaskID, "status", r.Status)
	}
	delete(w.later, r.TaskID)
	return w.state.settled(r.TaskID)
}

// finished says whether the agent itself has brought a task to its end.
func (w *Worker) finished(ctx context.Context, id string) bool {
	task, err := w.task(ctx, id)
	return err == nil && task != nil && runner.Finished(task, w.me.Plate)
}

func statusArgs(r pendingRecord) map[string]any {
	args := map[string]any{"task_id": r.TaskID, "status": r.Status, "fence": r.Fence}
	for name, value := range map[string]string{
		"summary": r.Result.Summary, "next": r.Result.Next, "reason": r.Result.Reason, "result_ref": r.Result.ResultRef,
	} {
		if value != "" {
			args[name] = value
		}
	}
	if len(r.Result.Artifacts) > 0 {
		args["artifacts"] = r.Result.Artifacts
	}
	return args
}

// release gives a task back. One that is not held any more is what was wished for.
func (w *Worker) release(p phases, id string, fence int64) {
	err := w.persist(p.last, "giving back a task", func(ctx context.Context) error {
		return w.client.Call(ctx, "release_task", map[string]any{"task_id": id, "fence": fence}, nil)
	})
	if err != nil {
		w.Log.Warn("a task could not be given back: its lease runs out by itself", "task", id, "error", err.Error())
	}
}
