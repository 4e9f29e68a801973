package board

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// actor gives the person as one who acts: every write is made with their own rights.
func (b *Board) actor(p *person) (*acts.Person, error) {
	c, err := b.client(p)
	if err != nil {
		return nil, err
	}
	actor := acts.New(c, p.name)
	actor.Clock, actor.Book = b.clock, b.view.Book
	return actor, nil
}

// did counts what a person did, and gives the error on.
func (b *Board) did(act string, err error) error {
	outcome := "ok"
	if err != nil {
		outcome = "error"
		if p, ok := problem.As(err); ok {
			outcome = strings.ToLower(string(p.Code))
		}
	}
	b.metrics.acts.WithLabelValues(act, outcome).Inc()
	return err
}

// inRoom does something in the room that the path names, and says so.
func (b *Board) inRoom(
	w http.ResponseWriter, r *http.Request, p *person, act, said string, do func(*acts.Person, *access) error,
) error {
	a, err := b.findRoom(r, p)
	if err != nil {
		return err
	}
	actor, err := b.actor(p)
	if err != nil {
		return err
	}
	if err := b.did(act, do(actor, a)); err != nil {
		return err
	}
	return b.done(w, r, "/rooms/"+a.id, said)
}

// onTask does something to the task that the path names, and says so.
func (b *Board) onTask(
	w http.ResponseWriter, r *http.Request, p *person, act, said string,
	do func(*acts.Person, types.NamespacedName) error,
) error {
	_, task, err := b.findTask(r, p)
	if err != nil {
		return err
	}
	actor, err := b.actor(p)
	if err != nil {
		return err
	}
	if err := b.did(act, do(actor, client.ObjectKeyFromObject(task))); err != nil {
		return err
	}
	return b.done(w, r, "/tasks/"+ids.ID(task), said)
}

// newlines makes of a form's line ends what others write.
func newlines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func (b *Board) send(w http.ResponseWriter, r *http.Request, p *person) error {
	return b.inRoom(w, r, p, "send", "Sent", func(actor *acts.Person, a *access) error {
		_, err := actor.Send(r.Context(), a.room, acts.Draft{
			Text: newlines(r.PostForm.Get("text")), Mentions: r.PostForm["mention"], ParentID: r.PostForm.Get("parent"),
		})
		return err
	})
}

func (b *Board) createTask(w http.ResponseWriter, r *http.Request, p *person) error {
	priority, err := number(r, "priority", 0, 100)
	if err != nil {
		return err
	}
	return b.inRoom(w, r, p, "create", "Created", func(actor *acts.Person, a *access) error {
		_, err := actor.CreateTask(r.Context(), a.room, acts.NewTask{
			Title: strings.TrimSpace(r.PostForm.Get("title")), Detail: newlines(r.PostForm.Get("detail")),
			DefinitionOfDone: newlines(r.PostForm.Get("done")), Assignee: r.PostForm.Get("assignee"),
			Priority: int32(priority), Type: strings.TrimSpace(r.PostForm.Get("type")),
		})
		return err
	})
}

func (b *Board) setRoomState(w http.ResponseWriter, r *http.Request, p *person) error {
	state := v1alpha1.RoomState(r.PostForm.Get("state"))
	said := map[v1alpha1.RoomState]string{
		v1alpha1.RoomActive: "The room is active", v1alpha1.RoomPaused: "The room is paused: agents only read",
		v1alpha1.RoomArchived: "The room is archived",
	}[state]
	return b.inRoom(w, r, p, "room-state", said, func(actor *acts.Person, a *access) error {
		_, err := actor.SetRoomState(r.Context(), client.ObjectKeyFromObject(a.room), state)
		return err
	})
}

func (b *Board) setConsent(w http.ResponseWriter, r *http.Request, p *person) error {
	mode, people := v1alpha1.ConsentMode(r.PostForm.Get("mode")), r.PostForm["person"]
	if more := strings.TrimSpace(r.PostForm.Get("more")); more != "" {
		people = append(people, more)
	}
	if people == nil {
		people = []string{}
	}
	return b.inRoom(w, r, p, "consent", "Saved. What waits is judged anew by it", func(actor *acts.Person, a *access) error {
		_, err := actor.SetConsent(r.Context(), a.room, mode, people)
		return err
	})
}

func (b *Board) assign(w http.ResponseWriter, r *http.Request, p *person) error {
	return b.onTask(w, r, p, "assign", "Assigned", func(actor *acts.Person, key types.NamespacedName) error {
		_, err := actor.Assign(r.Context(), key, r.PostForm.Get("assignee"))
		return err
	})
}

// number reads a whole number of a form, zero when it is empty.
func number(r *http.Request, field string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(cmp.Or(strings.TrimSpace(r.PostForm.Get(field)), "0"), 10, 64)
	if err != nil || n < low || n > high {
		return 0, problem.Invalid(field, "must be a whole number from %d to %d", low, high)
	}
	return n, nil
}

func (b *Board) reprioritise(w http.ResponseWriter, r *http.Request, p *person) error {
	var order *int64
	var priority *int32
	if r.PostForm.Has("order") {
		n, err := number(r, "order", -1e9, 1e9)
		if err != nil {
			return err
		}
		order = &n
	}
	if r.PostForm.Has("priority") {
		n, err := number(r, "priority", 0, 100)
		if err != nil {
			return err
		}
		small := int32(n)
		priority = &small
	}
	return b.onTask(w, r, p, "reprioritise", "Changed", func(actor *acts.Person, key types.NamespacedName) error {
		_, err := actor.Reprioritise(r.Context(), key, order, priority)
		return err
	})
}

func (b *Board) accept(w http.ResponseWriter, r *http.Request, p *person) error {
	return b.onTask(w, r, p, "accept", "Accepted: the agent may begin", func(actor *acts.Person, key types.NamespacedName) error {
		_, err := actor.Accept(r.Context(), key, r.PostForm.Get("terms"), strings.TrimSpace(r.PostForm.Get("reason")))
		return err
	})
}

func (b *Board) reject(w http.ResponseWriter, r *http.Request, p *person) error {
	return b.onTask(w, r, p, "reject", "Rejected", func(actor *acts.Person, key types.NamespacedName) error {
		_, err := actor.Reject(r.Context(), key, r.PostForm.Get("terms"), strings.TrimSpace(r.PostForm.Get("reason")))
		return err
	})
}

func (b *Board) cancel(w http.ResponseWriter, r *http.Request, p *person) error {
	return b.onTask(w, r, p, "cancel", "Cancelled", func(actor *acts.Person, key types.NamespacedName) error {
		_, err := actor.Cancel(r.Context(), key, strings.TrimSpace(r.PostForm.Get("reason")))
		return err
	})
}

func (b *Board) release(w http.ResponseWriter, r *http.Request, p *person) error {
	epoch, err := strconv.ParseInt(r.PostForm.Get("epoch"), 10, 64)
	if err != nil {
		return problem.Invalid("epoch", "must say which claim is meant: load the page again")
	}
	return b.onTask(w, r, p, "release", "Taken from its holder", func(actor *acts.Person, key types.NamespacedName) error {
		_, err := actor.Release(r.Context(), key, strings.TrimSpace(r.PostForm.Get("reason")), &epoch)
		return err
	})
}

func (b *Board) reopen(w http.ResponseWriter, r *http.Request, p *person) error {
	return b.onTask(w, r, p, "reopen", "Back in Todo", func(actor *acts.Person, key types.NamespacedName) error {
		_, err := actor.Reopen(r.Context(), key, strings.TrimSpace(r.PostForm.Get("reason")))
		return err
	})
}

func (b *Board) archive(w http.ResponseWriter, r *http.Request, p *person) error {
	archived := r.PostForm.Get("archived") != "false"
	said := "Archived: it is off the board"
	if !archived {
		said = "Back on the board"
	}
	return b.onTask(w, r, p, "archive", said, func(actor *acts.Person, key types.NamespacedName) error {
		_, err := actor.ArchiveTask(r.Context(), key, archived)
		return err
	})
}
