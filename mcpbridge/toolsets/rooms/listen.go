package rooms

import (
	"context"
	"strings"

	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

const scheme = "rooms://"

func inboxURI(plate string) string { return scheme + "inbox/" + plate }

func boardURI(room string) string { return scheme + "room/" + room + "/board" }

// taskPrefix begins the URI of a task with all its details, which boards leave out.
const taskPrefix = scheme + "task/"

// InboxState is the content of rooms://inbox/<plate>.
type InboxState struct {
	Plate           string `json:"plate"`
	PendingMentions int    `json:"pending_mentions"`
}

// Resources lists the caller's inbox and the boards of its rooms.
func (t *Toolset) Resources(c *toolset.Caller) []toolset.Resource {
	list := []toolset.Resource{{
		URI: inboxURI(c.Plate), Name: "inbox", Description: "How many mentions wait for you. Listen to be told of new ones.",
	}}
	for _, room := range t.view.RoomsOf(c.Plate) {
		list = append(list, toolset.Resource{
			URI: boardURI(ids.ID(room)), Name: room.Spec.DisplayName, Description: "The task board of the room.",
		})
	}
	return list
}

// Templates gives the forms of the URIs.
func (t *Toolset) Templates() []toolset.Resource {
	return []toolset.Resource{
		{URI: scheme + "inbox/{plate}", Name: "inbox", Description: "How many mentions wait for you. Your own plate only."},
		{URI: scheme + "room/{room}/board", Name: "board", Description: "The task board of a room you are in."},
		{URI: taskPrefix + "{task}", Name: "task", Description: "A task with all its details. To be read, not listened to."},
	}
}

// target finds what a URI names, for a caller who may see it. What may not be seen is not found.
func (t *Toolset) target(ctx context.Context, c *toolset.Caller, uri string) (topic string, a *access, err error) {
	absent := problem.New(problem.NotFound, "there is no resource %q that you may see", clipURI(uri)).
		WithHint("resources/list gives those you may see: your own inbox and the boards of your rooms")
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return "", nil, absent
	}
	if plate, isInbox := strings.CutPrefix(rest, "inbox/"); isInbox {
		if plate != c.Plate {
			return "", nil, absent
		}
		return view.InboxTopic(plate), nil, nil
	}
	id, isRoom := strings.CutPrefix(rest, "room/")
	id, isBoard := strings.CutSuffix(id, "/board")
	if !isRoom || !isBoard {
		return "", nil, absent
	}
	if a, err = t.room(ctx, c, id); err != nil {
		return "", nil, absent
	}
	return view.BoardTopic(a.id), a, nil
}

func clipURI(s string) string { return s[:min(len(s), 200)] }

// ReadResource gives the content of the caller's inbox, of a board or of a task.
func (t *Toolset) ReadResource(ctx context.Context, c *toolset.Caller, uri string) (any, error) {
	if id, isTask := strings.CutPrefix(uri, taskPrefix); isTask {
		a, task, err := t.task(ctx, c, id)
		if p, ok := problem.As(err); ok && p.Code == problem.NotFound {
			a, task, err = t.movedTask(ctx, c, id, err)
		}
		if err != nil {
			return nil, err
		}
		return t.show(a, task), nil
	}
	_, a, err := t.target(ctx, c, uri)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return InboxState{Plate: c.Plate, PendingMentions: t.Pending(c.Plate)}, nil
	}
	return t.board(a, "", "")
}

// Listen tells of changes of a resource for as long as the caller may see it.
func (t *Toolset) Listen(ctx context.Context, c *toolset.Caller, uri string) (<-chan struct{}, error) {
	topic, a, err := t.target(ctx, c, uri)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	changed := t.view.Hub.Listen(ctx, topic)
	members := t.view.Hub.Listen(ctx, view.MembersTopic)
	out := make(chan struct{}, 1)
	go func() {
		defer cancel()
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case <-members:
				if !t.maySee(c, a) {
					return
				}
				continue
			case <-changed:
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out, nil
}

func (t *Toolset) maySee(c *toolset.Caller, a *access) bool {
	if agent, ok := t.view.AgentByPlate(c.Plate); !ok || agent.UID != c.Agent.UID {
		return false
	}
	if a == nil {
		return true
	}
	_, ok := t.visible(c, a.id)
	return ok
}
