package rooms

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// maxCards that are kept.
const maxCards = 50000

// card is a task as a board shows it, encoded. Its lease is left out: the time that is left of it changes by itself.
type card struct {
	// task and standing are what the card was made of. It is good as long as both are the same.
	task     *v1alpha1.Task
	standing int64
	// assignee and alias of the task.
	assignee, alias string
	// head and tail are the task before and behind its lease.
	head, tail []byte
	// record of the task, nil when there is none, and when it was made.
	record []byte
	at     string
}

// cards keeps a card for each task that was shown, so that a board that is read again costs little more than copying it.
type cards struct {
	mu    sync.RWMutex
	byUID map[types.UID]*card
}

func newCards() *cards { return &cards{byUID: map[types.UID]*card{}} }

func (c *cards) get(task *v1alpha1.Task, standing int64) (*card, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	known, ok := c.byUID[task.UID]
	return known, ok && known.task == task && known.standing == standing
}

func (c *cards) put(made *card) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byUID) >= maxCards {
		clear(c.byUID)
	}
	c.byUID[made.task.UID] = made
}

// noLease stands in an encoded task that nobody holds. Inside a string its quotes would be escaped.
var noLease = []byte(`"lease":null`)

// card gives a task as a board shows it. What waits for other tasks is made anew each time.
func (t *Toolset) card(a *access, task *v1alpha1.Task) (*card, error) {
	standing := t.view.Standing()
	if known, ok := t.cards.get(task, standing); ok {
		return known, nil
	}
	// Who is in the room is asked anew: the caller may have come in before the last change.
	now := *a
	now.members = t.view.Members(a.room)
	shown := t.show(&now, task)
	shown.Detail, shown.Lease = "", nil
	encoded, err := encode(shown)
	if err != nil {
		return nil, fmt.Errorf("encoding task %s/%s: %w", task.Namespace, task.Name, err)
	}
	made := &card{task: task, standing: standing, assignee: shown.Assignee, alias: shown.AssigneeAlias}
	i := bytes.Index(encoded, noLease) + len(noLease)
	made.head, made.tail = encoded[:i-len("null")], encoded[i:]
	if shown.Record != nil {
		made.at = shown.Record.At
		if made.record, err = encode(shown.Record); err != nil {
			return nil, fmt.Errorf("encoding the record of task %s/%s: %w", task.Namespace, task.Name, err)
		}
	}
	if len(task.Spec.DependsOn) == 0 {
		t.cards.put(made)
	}
	return made, nil
}

// encode gives JSON in which characters that only HTML minds stay as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// boardLane is a lane of a board on its way: the tasks of an assignee, encoded.
type boardLane struct {
	assignee, alias string
	cards           []*card
}

// board gives a room's tasks in lanes by assignee, all or those of one assignee or in one state: a Board, encoded.
func (t *Toolset) board(a *access, assignee, state string) (json.RawMessage, error) {
	list := t.view.Tasks(a.room)
	slices.SortFunc(list, tasks.ByOrder)
	counts, index := map[string]int{}, map[string]int{}
	var lanes []boardLane
	var records []*card
	for _, task := range list {
		if task.Spec.Archived {
			continue
		}
		status := tasks.ToolState(task.Status.State)
		counts[status]++
		plate, _ := t.assignee(task)
		if (assignee != "" && plate != assignee) || (state != "" && status != state) {
			continue
		}
		shown, err := t.card(a, task)
		if err != nil {
			return nil, err
		}
		i, ok := index[shown.assignee]
		if !ok {
			i = len(lanes)
			index[shown.assignee] = i
			lanes = append(lanes, boardLane{assignee: shown.assignee, alias: shown.alias})
		}
		lanes[i].cards = append(lanes[i].cards, shown)
		if shown.record != nil {
			records = append(records, shown)
		}
	}
	slices.SortFunc(lanes, func(x, y boardLane) int {
		return cmp.Or(cmp.Compare(x.alias, y.alias), cmp.Compare(x.assignee, y.assignee))
	})
	slices.SortStableFunc(records, func(x, y *card) int { return cmp.Compare(y.at, x.at) })
	return t.writeBoard(a, lanes, records, counts)
}

// writeBoard puts a Board together from what is encoded already.
func (t *Toolset) writeBoard(a *access, lanes []boardLane, records []*card, counts map[string]int) (json.RawMessage, error) {
	size := 1024
	for _, lane := range lanes {
		for _, c := range lane.cards {
			size += len(c.head) + len(c.tail) + len(c.record) + len(`null,`)
		}
	}
	w := &boardWriter{now: t.clock.Now(), out: make([]byte, 0, size)}
	w.text(`{"room":`)
	w.value(a.id)
	w.text(`,"lanes":[`)
	for i, lane := range lanes {
		w.separate(i)
		w.text(`{"assignee":`)
		w.value(lane.assignee)
		w.text(`,"alias":`)
		w.value(lane.alias)
		w.text(`,"tasks":[`)
		for k, c := range lane.cards {
			w.separate(k)
			w.out = append(w.out, c.head...)
			if lease := t.lease(a, c.task, w.now); lease != nil {
				w.value(lease)
			} else {
				w.text("null")
			}
			w.out = append(w.out, c.tail...)
		}
		w.text("]}")
	}
	w.text(`],"records":[`)
	for i, c := range records {
		w.separate(i)
		w.out = append(w.out, c.record...)
	}
	w.text(`],"counts":`)
	w.value(counts)
	w.text("}")
	return w.out, w.err
}

// boardWriter appends JSON, and remembers the first error.
type boardWriter struct {
	out []byte
	now time.Time
	err error
}

func (w *boardWriter) text(s string) { w.out = append(w.out, s...) }

func (w *boardWriter) separate(i int) {
	if i > 0 {
		w.text(",")
	}
}

func (w *boardWriter) value(v any) {
	encoded, err := encode(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.out = append(w.out, encoded...)
}
