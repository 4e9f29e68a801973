package runner

import (
	"time"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

const (
	// maxWaiting bounds the wakes whose failures are remembered. What is forgotten is only run sooner.
	maxWaiting = 1024
	// forgetAfter is how long a wake may not have been offered before its failures are forgotten: others have handled it.
	forgetAfter = time.Hour
	// MaxOffered is how many mentions a check can give.
	MaxOffered = 100
)

// Queue remembers the wakes that failed: since when, how often, and when each is due again. The others need no memory; the
// inbox has them. It is not safe for concurrent use.
type Queue struct {
	backoff Backoff
	waiting map[string]*attempts
}

// attempts at one wake or task.
type attempts struct {
	room   string
	failed int
	// passed counts how often it could not be had.
	passed  int
	due     time.Time
	touched time.Time
	// handled is set when the command succeeded and only the acknowledgement failed.
	handled bool
}

// NewQueue makes an empty queue.
func NewQueue(b Backoff) *Queue { return &Queue{backoff: b, waiting: map[string]*attempts{}} }

// Chosen is the wake to handle next.
type Chosen struct {
	rooms.MentionInfo

	// Attempt counts from 1.
	Attempt int
	// Handled is true when the command succeeded before: only the acknowledgement is missing.
	Handled bool
}

// Next chooses among what a room offers: the oldest that is due. So one that fails again and again holds up neither those
// behind it nor other rooms.
func (q *Queue) Next(offered []rooms.MentionInfo, now time.Time) (Chosen, bool) {
	var chosen Chosen
	found := false
	for _, m := range offered {
		a := q.waiting[m.MentionID]
		if a != nil {
			a.touched = now
		}
		if found || (a != nil && now.Before(a.due)) {
			continue
		}
		found, chosen = true, Chosen{MentionInfo: m, Attempt: 1}
		if a != nil {
			chosen.Attempt, chosen.Handled = a.failed+1, a.handled
		}
	}
	return chosen, found
}

// Ask gives how many mentions of a room to ask for: those that wait, which are offered first, and one more.
func (q *Queue) Ask(room string, now time.Time) int {
	n := 1
	for _, a := range q.waiting {
		if a.room == room && now.Before(a.due) {
			n++
		}
	}
	return min(n, MaxOffered)
}

// Failed notes a failure and gives how long the wake waits.
func (q *Queue) Failed(room, id string, now time.Time, chance float64) time.Duration {
	return q.put(room, id, now, chance, false)
}

// Unacknowledged notes that the command succeeded and the acknowledgement did not.
func (q *Queue) Unacknowledged(room, id string, now time.Time, chance float64) {
	q.put(room, id, now, chance, true)
}

func (q *Queue) put(room, id string, now time.Time, chance float64, handled bool) time.Duration {
	a := q.waiting[id]
	if a == nil {
		q.makeRoom(now)
		a = &attempts{room: room}
		q.waiting[id] = a
	}
	a.failed++
	a.handled = a.handled || handled
	delay := q.backoff.Delay(a.failed, chance)
	a.due, a.touched = now.Add(delay), now
	return delay
}

// Done forgets a wake.
func (q *Queue) Done(id string) { delete(q.waiting, id) }

// Waiting counts the wakes that wait to be due again.
func (q *Queue) Waiting(now time.Time) int {
	n := 0
	for _, a := range q.waiting {
		if now.Before(a.due) {
			n++
		}
	}
	return n
}

// Due gives when the next one is due, and false when none waits.
func (q *Queue) Due(now time.Time) (time.Time, bool) { return nextDue(q.waiting, now) }

func nextDue(waiting map[string]*attempts, now time.Time) (next time.Time, ok bool) {
	for _, a := range waiting {
		if a.due.After(now) && (!ok || a.due.Before(next)) {
			next, ok = a.due, true
		}
	}
	return next, ok
}

func (q *Queue) makeRoom(now time.Time) { makeRoom(q.waiting, now) }

// makeRoom forgets what has not been seen for long and, when that is not enough, the one seen longest ago.
func makeRoom(waiting map[string]*attempts, now time.Time) {
	oldest := ""
	for id, a := range waiting {
		if now.Sub(a.touched) > forgetAfter && now.After(a.due) {
			delete(waiting, id)
			continue
		}
		if oldest == "" || a.touched.Before(waiting[oldest].touched) {
			oldest = id
		}
	}
	if len(waiting) >= maxWaiting {
		delete(waiting, oldest)
	}
}

// lookAgain is how long a mention that another instance has is left before it is asked for again: the delivery to an instance
// that died is over after 90 s, which nobody announces.
const lookAgain = time.Minute

// Pause gives how long to wait for news, and false when only news matters. Unread is how many mentions wait in the rooms that
// are listened to.
func (q *Queue) Pause(unread int, now time.Time, chance float64) (time.Duration, bool) {
	pause, ok := time.Duration(0), false
	if due, waits := q.Due(now); waits {
		pause, ok = due.Sub(now), true
	}
	if again := jitter(lookAgain, chance); unread > q.Waiting(now) && (!ok || again < pause) {
		pause, ok = again, true
	}
	return pause, ok
}
