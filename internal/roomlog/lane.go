package roomlog

import (
	"time"
	"unicode/utf8"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// lane is what waits to be appended to one room. A goroutine works on it while something waits, and none otherwise.
type lane struct {
	key     Key
	room    *v1alpha1.Room
	waiting []*sending
	// want is how many shall wait before enough is closed, 0 when nobody waits for that.
	want   int
	enough chan struct{}
}

type sending struct {
	message v1alpha1.Message
	// archived is the seq up to which the key was looked for in the blob store.
	archived int64
	done     chan struct{}
	receipt  Receipt
	err      error
}

func (s *sending) finish(r Receipt, err error) {
	s.receipt, s.err = r, err
	close(s.done)
}

// enqueue puts a message behind those that wait, and has a goroutine work on them.
func (c *Committer) enqueue(room *v1alpha1.Room, s *sending) error {
	k := KeyOf(room)
	c.mu.Lock()
	defer c.mu.Unlock()
	l, running := c.lanes[k]
	if !running {
		l = &lane{key: k, room: room}
		c.lanes[k] = l
	}
	if len(l.waiting) >= maxQueue {
		p := problem.New(problem.RateLimited, "too many messages wait to be written to this room: try again shortly")
		p.RetryAfterSeconds = 1
		return p
	}
	l.waiting = append(l.waiting, s)
	if l.want > 0 && len(l.waiting) >= l.want {
		l.want = 0
		close(l.enough)
	}
	if !running {
		go c.work(l)
	}
	return nil
}

// Waiting counts the messages that wait for the batch after the one under way, over all rooms.
func (c *Committer) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, l := range c.lanes {
		n += len(l.waiting)
	}
	return n
}

// maxGather bounds how long a group is held back for others.
const maxGather = 5 * time.Millisecond

// gather holds the next group back for a part of the time that the last one took to be written: whoever was just answered may
// have more to say, and a full group costs the API server hardly more than one that holds half of it. A lone sender never
// waits.
func (c *Committer) gather(l *lane, answered int, took time.Duration) {
	c.mu.Lock()
	want := min(answered+len(l.waiting), v1alpha1.MaxBatchMessages)
	if len(l.waiting) >= want {
		c.mu.Unlock()
		return
	}
	l.want, l.enough = want, make(chan struct{})
	c.mu.Unlock()
	timer := time.NewTimer(min(took/2, maxGather))
	defer timer.Stop()
	select {
	case <-l.enough:
	case <-timer.C:
		c.mu.Lock()
		l.want = 0
		c.mu.Unlock()
	}
}

// work writes until nothing waits.
func (c *Committer) work(l *lane) {
	answered, took := 0, time.Duration(0)
	for {
		if answered > 1 {
			c.gather(l, answered, took)
		}
		c.mu.Lock()
		if len(l.waiting) == 0 {
			delete(c.lanes, l.key)
			c.mu.Unlock()
			return
		}
		group, rest := cut(l.waiting)
		l.waiting = rest
		c.mu.Unlock()
		answered = len(group)
		began := time.Now()
		c.commit(l, group)
		took = time.Since(began)
	}
}

// cut takes as many messages from the front as one batch may hold.
func cut(waiting []*sending) (group, rest []*sending) {
	n := Fit(len(waiting), func(i int) *v1alpha1.Message { return &waiting[i].message })
	return waiting[:n:n], waiting[n:]
}

// Fit says how many of some messages, from the first on, one batch may hold: at least one, when there are any.
func Fit(count int, at func(i int) *v1alpha1.Message) int {
	characters, mentions, n := 0, 0, 0
	for n < count && n < v1alpha1.MaxBatchMessages {
		m := at(n)
		characters += utf8.RuneCountInString(m.Body)
		mentions += len(m.Mentions)
		if n > 0 && (characters > v1alpha1.MaxBatchCharacters || mentions > v1alpha1.MaxBatchMentions) {
			break
		}
		n++
	}
	return n
}
