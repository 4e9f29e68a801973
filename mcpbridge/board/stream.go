package board

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

const (
	// writeTimeout bounds how long a browser may take to read an event.
	writeTimeout = 10 * time.Second
	// catchUp bounds how long a stream waits for its replica to see what the page has seen.
	catchUp = 3 * time.Second
	// maxMisses is how often in a row a stream may fail to find out what the person may see.
	maxMisses = 3
)

// cursor says what a page shows: the digest of its snapshot, the last message, and the last write that it has seen to a task, or
// to a file on the pages of files.
// It goes with each event, and comes back when the page connects anew, to whichever replica.
type cursor struct {
	Digest string
	Seq    int64
	Write  string
}

// String writes the cursor as it goes into URLs and event ids.
func (c cursor) String() string { return fmt.Sprintf("%s.%d.%s", c.Digest, c.Seq, c.Write) }

// parseCursor reads a cursor. What is none stands for a page that shows nothing.
func parseCursor(s string) cursor {
	parts := strings.Split(s, ".")
	if len(parts) != 3 || len(s) > 128 {
		return cursor{}
	}
	seq, err := strconv.ParseInt(parts[1], 10, 64)
	if _, bad := strconv.ParseUint("0"+parts[2], 10, 64); err != nil || seq < 0 || bad != nil {
		return cursor{}
	}
	return cursor{Digest: parts[0], Seq: seq, Write: parts[2]}
}

// written is what a page shows the writes to: a kind, and the last write that this replica has seen. Nil stands for nothing.
type written struct {
	kind client.Object
	last func() string
}

// tasksOf stands for the tasks of a room.
func (b *Board) tasksOf(room *v1alpha1.Room) *written {
	return &written{&v1alpha1.Task{}, func() string { return lastWrite(b.view.Tasks(room)) }}
}

// filesOf stands for the files of a room.
func (b *Board) filesOf(room *v1alpha1.Room) *written {
	return &written{&v1alpha1.File{}, func() string { return lastWrite(b.view.Files(room)) }}
}

// lastWrite gives the resourceVersion of the object that was written last, empty when there is none.
func lastWrite[T client.Object](list []T) string {
	last := ""
	for _, object := range list {
		if v := object.GetResourceVersion(); len(v) > len(last) || (len(v) == len(last) && v > last) {
			last = v
		}
	}
	return last
}

func cursorOf(shows *written, s *snapshot, seq int64) cursor {
	c := cursor{Digest: s.digest(), Seq: seq}
	if shows != nil {
		c.Write = shows.last()
	}
	return c
}

// stream says what keeps a page live.
type stream struct {
	// topics of the view by which the page may change.
	topics []string
	// look gives what the page shows now, and the access to its room, if it is of one.
	look func(ctx context.Context) (*snapshot, *access, error)
	// shows is what the page shows the writes to, nil for a page of no room.
	shows *written
	// log is the room whose messages the page shows, nil for none.
	log *v1alpha1.Room
}

// live serves a stream of what changes on a page.
func (b *Board) live(w http.ResponseWriter, r *http.Request, p *person, s stream) error {
	leave, ok := b.opts.Bounds.OpenStream(p.name)
	if !ok {
		return problem.New(problem.RateLimited, "you have too many pages open: close some")
	}
	defer leave()
	b.metrics.streams.Inc()
	defer b.metrics.streams.Dec()
	at := parseCursor(r.FormValue("at"))
	if last := r.Header.Get("Last-Event-Id"); last != "" {
		at = parseCursor(last)
	}
	f := &follower{board: b, stream: s, person: p, at: at, out: &events{w: w, control: http.NewResponseController(w), board: b}}
	if err := f.out.open(); err != nil {
		return nil //nolint:nilerr // the browser has left
	}
	if reason := f.run(r.Context()); reason != "" {
		_ = f.out.send("bye", "", reason)
	}
	return nil
}

// follower is a page that is kept live.
type follower struct {
	stream

	board  *Board
	person *person
	out    *events
	at     cursor
	shown  *snapshot
	misses int
}

// run sends what changes until the browser leaves, the server drains, or the stream is too old; the page then connects anew. It
// gives a reason when the page must not: when the person may not see it any more.
func (f *follower) run(ctx context.Context) string {
	b := f.board
	changed := b.view.Hub.Listen(ctx, f.topics...)
	f.catchUp(ctx)
	alive, recheck := b.clock.NewTicker(b.opts.KeepAlive), b.clock.NewTicker(b.opts.Recheck)
	defer alive.Stop()
	defer recheck.Stop()
	age := b.clock.NewTimer(b.opts.MaxStreamAge)
	defer age.Stop()
	pending, settled := changed, (<-chan time.Time)(nil)
	if reason, going := f.update(ctx); !going {
		return reason
	}
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-b.opts.Bounds.Draining:
			return ""
		case <-age.C():
			return ""
		case <-pending:
			// What else changes within a moment goes out together.
			pending, settled = nil, b.clock.After(b.opts.Settle)
		case <-settled:
			pending, settled = changed, nil
			if reason, going := f.update(ctx); !going {
				return reason
			}
		case <-alive.C():
			if reason, going := f.keepAlive(); !going {
				return reason
			}
		case <-recheck.C():
			if reason, going := f.recheck(ctx); !going {
				return reason
			}
		}
	}
}

// catchUp waits until this replica has seen what the page has: else it would show it the past.
func (f *follower) catchUp(ctx context.Context) {
	if f.shows == nil {
		return
	}
	v := f.board.view
	behind := func() bool {
		return (f.at.Write != "" && !v.Reached(f.shows.kind, f.at.Write)) || (f.log != nil && v.Log(f.log).LastSeq() < f.at.Seq)
	}
	if !behind() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	for progressed := v.Hub.Listen(ctx, view.ProgressTopic); behind(); {
		select {
		case <-ctx.Done():
			return
		case <-progressed:
		}
	}
}

// update sends what differs from what the page shows.
func (f *follower) update(ctx context.Context) (reason string, going bool) {
	now, a, err := f.look(ctx)
	if err != nil {
		return f.judge(err)
	}
	f.misses = 0
	html := ""
	if f.shown != nil || now.digest() != f.at.Digest {
		if html, err = diff(f.shown, now); err != nil {
			return f.judge(err)
		}
	}
	seq := f.at.Seq
	if f.log != nil {
		messages, last, err := f.board.follow(a, seq)
		if err != nil {
			return f.judge(err)
		}
		html, seq = html+messages, last
	}
	first := f.shown == nil
	f.shown, f.at = now, cursorOf(f.shows, now, seq)
	if html == "" && !first {
		return "", true
	}
	if err := f.out.send("u", f.at.String(), html); err != nil {
		return "", false
	}
	return "", true
}

// judge says whether the stream goes on after an error: while the API server is away, for a few times.
func (f *follower) judge(err error) (reason string, going bool) {
	if errors.Is(err, errSignedOut) {
		return "signed out", false
	}
	if p, ok := problem.As(err); ok && p.Code == problem.NotFound {
		return "gone", false
	}
	f.misses++
	f.board.log.Debug("a page could not be kept live", "person", f.person.name, "error", err.Error())
	return "", f.misses < maxMisses
}

// keepAlive shows the browser that the stream lives.
func (f *follower) keepAlive() (reason string, going bool) {
	if !f.board.clock.Now().Before(f.person.until) {
		return "signed out", false
	}
	if err := f.out.comment("keep-alive"); err != nil {
		return "", false
	}
	return "", true
}

// recheck looks whether the person is still who they were and may see what they see, and at what changes with time only.
func (f *follower) recheck(ctx context.Context) (reason string, going bool) {
	if f.person.token != "" {
		if _, err := f.board.whoIs(ctx, f.person.token); err != nil {
			return f.judge(err)
		}
	}
	return f.update(ctx)
}

// events writes server-sent events. Nothing waits in a buffer, and no browser holds it up for long.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	board   *Board
}

// open begins the stream. Browsers that lose it come back within a second or two, not all at once.
func (e *events) open() error {
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
	return e.write(fmt.Sprintf("retry: %d\n\n", 300+rand.IntN(900))) //nolint:gosec // spreads, and hides nothing
}

func (e *events) comment(text string) error { return e.write(": " + text + "\n\n") }

// send sends an event. Without an id the browser keeps the last one.
func (e *events) send(name, id, data string) error {
	var out strings.Builder
	fmt.Fprintf(&out, "event: %s\n", name)
	if id != "" {
		fmt.Fprintf(&out, "id: %s\n", id)
	}
	for line := range strings.SplitSeq(data, "\n") {
		fmt.Fprintf(&out, "data: %s\n", strings.TrimSuffix(line, "\r"))
	}
	out.WriteString("\n")
	e.board.metrics.events.Inc()
	e.board.metrics.bytes.Add(float64(out.Len()))
	return e.write(out.String())
}

func (e *events) write(text string) error {
	// The deadline of a server that has one is put off with each event.
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := e.w.Write([]byte(text)); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	if err := e.control.Flush(); err != nil {
		return fmt.Errorf("flushing an event: %w", err)
	}
	_ = e.control.SetWriteDeadline(time.Time{})
	return nil
}
