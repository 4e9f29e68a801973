package acts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// Draft is a message to be sent.
type Draft struct {
	// Text of the message, 1 to 8,000 characters. It is never scanned for mentions.
	Text string
	// Mentions are handles or plates of the room's agents, up to 50, each with an optional #session.
	Mentions []string
	// ParentID is the id of the message that this one answers, or empty.
	ParentID string
}

// Sent says where a message stands.
type Sent struct {
	// ID of the message.
	ID string
	// Seq of the message in the room's log.
	Seq int64
	// Message as it stands there.
	Message *v1alpha1.Message
}

// Send says something in a room in the person's own name, and returns when it stands in the room's log. The person needs list, get
// and create on messagebatches. When the outcome is not known the problem is UNAVAILABLE, and the message may stand there.
func (p *Person) Send(ctx context.Context, room *v1alpha1.Room, d Draft) (Sent, error) {
	m, err := p.compose(ctx, room, d)
	if err != nil {
		return Sent{}, err
	}
	doing := "sending a message to room " + room.Name
	book := p.Book
	if book == nil {
		book = roomlog.NewBook(nil)
		enough := func(*v1alpha1.MessageBatch) bool { return true }
		if err := book.Open(ctx, p.Batches(), room, enough); err != nil {
			return Sent{}, Explain(err, doing)
		}
	}
	receipt, err := roomlog.NewCommitter(p.Batches(), book, p.Clock, p.writer, nil).AsPerson().Send(ctx, room, m)
	if err != nil {
		return Sent{}, Explain(err, doing)
	}
	return Sent{
		ID: ids.MessageID(ids.ID(room), receipt.Message.At.Time, receipt.Seq), Seq: receipt.Seq, Message: receipt.Message,
	}, nil
}

// compose makes the message of a draft.
func (p *Person) compose(ctx context.Context, room *v1alpha1.Room, d Draft) (v1alpha1.Message, error) {
	m := v1alpha1.Message{Sender: Sender(p.Name), Body: d.Text, ParentID: d.ParentID}
	if err := open(room); err != nil {
		return m, err
	}
	n := utf8.RuneCountInString(d.Text)
	switch {
	case blank(d.Text):
		return m, problem.Invalid("text", "may not be blank")
	case n > v1alpha1.MaxBodyCharacters:
		return m, problem.New(problem.TooLarge, "the text has %d characters, at most %d are allowed: send it in parts",
			n, v1alpha1.MaxBodyCharacters)
	case len(d.Mentions) > v1alpha1.MaxMessageMentions:
		return m, problem.Invalid("mentions", "may name at most %d agents, not %d", v1alpha1.MaxMessageMentions, len(d.Mentions))
	}
	if bad := problem.CheckText("text", d.Text); bad != nil {
		return m, bad
	}
	if err := p.knownMessage(ctx, room, d.ParentID); err != nil {
		return m, err
	}
	var err error
	m.Mentions, err = p.mentions(ctx, room, d.Mentions)
	return m, err
}

// maxName is how many characters the name of a sender may have.
const maxName = 64

// Sender is how a person stands in a room's log. The API server takes no other from them.
func Sender(username string) v1alpha1.MessageSender {
	s := v1alpha1.MessageSender{Type: v1alpha1.SenderHuman, ID: username}
	if utf8.RuneCountInString(username) <= maxName {
		s.Name = username
	}
	return s
}

// mentions finds whom handles mean.
func (p *Person) mentions(ctx context.Context, room *v1alpha1.Room, refs []string) ([]v1alpha1.Mention, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	members, err := p.Members(ctx, room)
	if err != nil {
		return nil, err
	}
	var list []v1alpha1.Mention
	for _, ref := range refs {
		target, h, bad := handles.Resolve("mentions", ref, members.Agents)
		if bad != nil {
			return nil, bad
		}
		if m := (v1alpha1.Mention{Plate: target.Plate, Session: h.Session}); !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list, nil
}

// knownMessage refuses an id that names no message of the room.
func (p *Person) knownMessage(ctx context.Context, room *v1alpha1.Room, id string) error {
	if id == "" {
		return nil
	}
	seq, ok := ids.MessageSeq(ids.ID(room), id)
	if ok {
		m, found, err := roomlog.Find(ctx, p.Batches(), room, seq)
		if err != nil {
			return Explain(err, "looking for the message that this one answers")
		}
		if found && ids.MessageID(ids.ID(room), m.At.Time, seq) == id {
			return nil
		}
	}
	return problem.Invalid("parent", "names no message of this room: %s", quote(id))
}

// Batches is a person's way to the logs of rooms.
func (p *Person) Batches() *Batches { return &Batches{api: p.Client} }

// Batches reads and writes MessageBatches with a person's rights.
type Batches struct{ api client.Client }

// Create makes a batch.
func (b *Batches) Create(ctx context.Context, batch *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error) {
	created := batch.DeepCopy()
	if err := b.api.Create(ctx, created); err != nil {
		return nil, err //nolint:wrapcheck // the committer judges the API server's own error
	}
	created.ManagedFields = nil
	return created, nil
}

// Get reads a batch.
func (b *Batches) Get(ctx context.Context, namespace, name string) (*v1alpha1.MessageBatch, error) {
	batch := &v1alpha1.MessageBatch{}
	if err := b.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, batch); err != nil {
		return nil, err //nolint:wrapcheck // the committer judges the API server's own error
	}
	batch.ManagedFields = nil
	return batch, nil
}

// Room reads a room.
func (b *Batches) Room(ctx context.Context, namespace, name string) (*v1alpha1.Room, error) {
	room := &v1alpha1.Room{}
	if err := b.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, room); err != nil {
		return nil, err //nolint:wrapcheck // the committer judges the API server's own error
	}
	return room, nil
}

// maxPages bounds how far the oldest batch is looked for behind those of an earlier room of the name.
const maxPages = 200

// Oldest gives the oldest batch of a room's log, nil when there is none. Batches of an earlier room of the same name, which the
// cluster has not collected yet, are passed over.
func (b *Batches) Oldest(ctx context.Context, room *v1alpha1.Room) (*v1alpha1.MessageBatch, error) {
	chain, list, limit := ids.Chain(room.Name, room.UID)+"-b", v1alpha1.MessageBatchList{}, int64(1)
	for range maxPages {
		err := b.api.List(ctx, &list, client.InNamespace(room.Namespace), client.MatchingFields{"spec.roomRef.name": room.Name},
			client.Limit(limit), client.Continue(list.Continue))
		if err != nil {
			return nil, fmt.Errorf("listing the messages of room %s: %w", room.Name, err)
		}
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, chain) {
				list.Items[i].ManagedFields = nil
				return &list.Items[i], nil
			}
		}
		if list.Continue == "" {
			return nil, nil
		}
		limit = min(limit*2, 100)
	}
	return nil, problem.New(problem.Unavailable,
		"the log of an earlier room of the name %s is still being removed: try again shortly", room.Name)
}
