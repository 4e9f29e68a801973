package rooms

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/roomlog"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// batchStore is the committer's way to the API server.
type batchStore struct{ api client.Client }

func (s *batchStore) Create(ctx context.Context, batch *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error) {
	created := batch.DeepCopy()
	if err := s.api.Create(ctx, created); err != nil {
		return nil, err //nolint:wrapcheck // the committer judges the API server's own error
	}
	created.ManagedFields = nil
	return created, nil
}

func (s *batchStore) Get(ctx context.Context, namespace, name string) (*v1alpha1.MessageBatch, error) {
	batch := &v1alpha1.MessageBatch{}
	if err := s.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, batch); err != nil {
		return nil, err //nolint:wrapcheck // the committer judges the API server's own error
	}
	batch.ManagedFields = nil
	return batch, nil
}

func (s *batchStore) Room(ctx context.Context, namespace, name string) (*v1alpha1.Room, error) {
	room := &v1alpha1.Room{}
	if err := s.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, room); err != nil {
		return nil, err //nolint:wrapcheck // the committer judges the API server's own error
	}
	room.ManagedFields = nil
	return room, nil
}

func (t *Toolset) sendMessage(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	receipt, err := t.replayOrSend(ctx, a, args)
	if err != nil {
		return nil, err
	}
	return t.sent(ctx, c, a, receipt, args)
}

// replayOrSend looks for what was sent under the same key before it looks at anything else: a retry gets its answer also when
// the room was paused or the agents mentioned left since. What this replica would refuse another one may have sent, so that
// is looked for at the API server.
func (t *Toolset) replayOrSend(ctx context.Context, a *access, args toolset.Args) (roomlog.Receipt, error) {
	key, payload := keyOf(a, args)
	if r, known, err := t.replay(ctx, a, key, payload); known || err != nil {
		return r, err
	}
	m, err := t.compose(ctx, a, args)
	if err == nil {
		err = a.writable()
	}
	if _, refused := problem.As(err); refused && key != "" {
		if err := t.committer.CatchUp(ctx, a.room); err != nil {
			return roomlog.Receipt{}, err //nolint:wrapcheck // it says which room
		}
		if r, known, err := t.replay(ctx, a, key, payload); known || err != nil {
			return r, err
		}
	}
	if err != nil {
		return roomlog.Receipt{}, err
	}
	m.Key, m.Payload = key, payload
	r, err := t.committer.Send(ctx, a.room, m)
	if err != nil {
		return r, fmt.Errorf("sending a message to room %s/%s: %w", a.room.Namespace, a.room.Name, err)
	}
	return r, nil
}

// replay finds what was sent under the same key with the same content.
func (t *Toolset) replay(ctx context.Context, a *access, key, payload string) (roomlog.Receipt, bool, error) {
	if key == "" {
		return roomlog.Receipt{}, false, nil
	}
	log := t.view.Log(a.room)
	if seq, sent, known := log.Sent(key); known && sent == payload {
		if e, ok := log.At(seq); ok {
			return roomlog.Receipt{Seq: seq, Message: e.Message, Duplicate: true}, true, nil
		}
	}
	r, known, err := t.committer.Archived(ctx, a.room, log.Seam(), key, payload)
	return r, known, t.noted(err) //nolint:wrapcheck // it says which room
}

// keyOf gives the key under which a message is sent, empty for none, and what its content comes to. The content is taken as
// the caller gave it: what a handle means may change between a call and its retry.
func keyOf(a *access, args toolset.Args) (key, payload string) {
	if key = args.String("idempotency_key"); key == "" {
		return "", ""
	}
	content := append([]string{args.String("body"), args.String("parent_id")}, args.Strings("mentions")...)
	return ids.Digest("send_message", a.caller.Plate, key), ids.Digest(content...)
}

// compose makes the message of the arguments.
func (t *Toolset) compose(ctx context.Context, a *access, args toolset.Args) (v1alpha1.Message, error) {
	c := a.caller
	body := args.String("body")
	if strings.TrimFunc(body, unicode.IsSpace) == "" {
		return v1alpha1.Message{}, problem.Invalid("body", "may not be blank")
	}
	m := v1alpha1.Message{
		Sender: v1alpha1.MessageSender{Type: v1alpha1.SenderAgent, ID: c.Plate, Name: c.Agent.Spec.DisplayName},
		Body:   body, ParentID: args.String("parent_id"),
	}
	if m.ParentID != "" {
		if err := t.knownMessage(ctx, a, "parent_id", m.ParentID); err != nil {
			return m, err
		}
	}
	for _, handle := range args.Strings("mentions") {
		mention, p := t.mention(a, handle)
		if p != nil {
			return m, p
		}
		m.Mentions = appendMention(m.Mentions, mention)
	}
	return m, nil
}

func appendMention(list []v1alpha1.Mention, m v1alpha1.Mention) []v1alpha1.Mention {
	if slices.Contains(list, m) {
		return list
	}
	return append(list, m)
}

// mention finds whom a handle means among the room's agents.
func (t *Toolset) mention(a *access, handle string) (v1alpha1.Mention, *problem.Problem) {
	target, h, p := handles.Resolve("mentions", handle, a.members.Handles)
	if p != nil {
		return v1alpha1.Mention{}, p
	}
	if target.Plate == a.caller.Plate {
		return v1alpha1.Mention{}, problem.Invalid("mentions", "may not name yourself: it would wake you in a loop")
	}
	if h.Session != "" && !t.view.Live(target.Plate, h.Session) {
		var live []string
		for _, i := range t.view.Instances(target.Plate) {
			live = append(live, target.Alias()+"#"+i.Session)
		}
		return v1alpha1.Mention{}, problem.Invalid("mentions", "names no live instance of %s: %q", target.Alias(), h.Session).
			WithCandidates(append(live, target.Alias())).
			WithHint("mention the agent without a session: one of its instances will get it")
	}
	return v1alpha1.Mention{Plate: target.Plate, Session: h.Session}, nil
}

// knownMessage refuses an id that names no message of the room. One beyond what the view shows of the log is looked for at
// the API server: another replica may just have written it.
func (t *Toolset) knownMessage(ctx context.Context, a *access, field, id string) error {
	seq, ok := ids.MessageSeq(a.id, id)
	if ok {
		if err := t.catchUp(ctx, a, seq); err != nil {
			return err
		}
		e, found, err := t.entry(ctx, a.room, seq)
		if err != nil {
			return err
		}
		if found && ids.MessageID(a.id, e.Message.At.Time, seq) == id {
			return nil
		}
	}
	return problem.Invalid(field, "names no message of this room: %q", tasks.Truncate(id, 64))
}

// catchUp brings the view of a room's log up to a seq, if there is one.
func (t *Toolset) catchUp(ctx context.Context, a *access, seq int64) error {
	if seq <= t.view.Log(a.room).LastSeq() {
		return nil
	}
	return t.committer.CatchUp(ctx, a.room) //nolint:wrapcheck // it says which room
}

func (t *Toolset) sent(
	ctx context.Context, c *toolset.Caller, a *access, r roomlog.Receipt, args toolset.Args,
) (any, error) {
	result := "new"
	if r.Duplicate {
		result = "duplicate"
	}
	t.metrics.sends.WithLabelValues(result).Inc()
	noteMessage(ctx, a.room, r)
	if t.lastRead(a.room, c.Plate) >= r.Seq-1 {
		t.reads.set(a.room.UID, c.Plate, r.Seq)
	}
	out := Sent{
		ID: ids.MessageID(a.id, r.Message.At.Time, r.Seq), Seq: r.Seq, Room: a.id, CreatedAt: stamp(r.Message.At.Time),
		Mentions: t.targets(r.Message.Mentions), Duplicate: r.Duplicate,
	}
	if acks := args.Strings("ack_mention_ids"); len(acks) > 0 {
		done, err := t.ack(ctx, c, acks)
		if err != nil {
			return nil, ackFailed(err, out)
		}
		out.Acked = slices.Concat(done.Acked, done.AlreadyAcked)
	}
	return out, nil
}

// ackFailed says that the message was sent, so that nobody sends it again for an acknowledgement that failed.
func ackFailed(err error, out Sent) error {
	p, ok := problem.As(err)
	if !ok {
		p = problem.New(problem.Unavailable, "the mentions could not be acknowledged")
	}
	told := *p
	told.Message = "the message was sent as seq " + strconv.FormatInt(out.Seq, 10) + ", but: " + p.Message
	if len(told.Fields) > 0 {
		told.Fields = []string{"ack_mention_ids"}
	}
	told.Hint = "call ack_mentions; do not send the message again"
	return &told
}

func (t *Toolset) targets(mentions []v1alpha1.Mention) []MentionTarget {
	list := make([]MentionTarget, 0, len(mentions))
	for _, m := range mentions {
		target := MentionTarget{Plate: m.Plate, SessionID: m.Session}
		if agent, ok := t.view.AgentByPlate(m.Plate); ok {
			target.Alias = aliasOf(agent)
		}
		list = append(list, target)
	}
	return list
}

// defaultPage is how many messages read_room gives when no limit is given.
const defaultPage = 50

func (t *Toolset) readRoom(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	before := args.Int("before_seq", 0)
	entries, err := t.page(ctx, a.room, before, int(args.Int("limit", defaultPage)))
	if err != nil {
		return nil, err
	}
	page := Page{Messages: make([]Message, 0, len(entries))}
	trust := t.trust(a)
	for _, e := range entries {
		page.Messages = append(page.Messages, t.message(a, e, trust))
	}
	if len(entries) > 0 {
		if first := entries[0].Seq; first > 1 {
			page.NextBeforeSeq = &first
		}
		if before == 0 {
			t.reads.set(a.room.UID, c.Plate, entries[len(entries)-1].Seq)
		}
	}
	return page, nil
}

func (t *Toolset) message(a *access, e roomlog.Entry, trust func(v1alpha1.MessageSender) string) Message {
	m := e.Message
	out := Message{
		ID: ids.MessageID(a.id, m.At.Time, e.Seq), Seq: e.Seq, Sender: t.sender(m.Sender), Body: m.Body,
		Mentions: t.targets(m.Mentions), TrustLevel: trust(m.Sender), CreatedAt: stamp(m.At.Time),
	}
	if m.ParentID != "" {
		out.ParentID = &m.ParentID
	}
	if m.FileRef != "" {
		out.FileRef = &m.FileRef
	}
	return out
}

func (t *Toolset) sender(s v1alpha1.MessageSender) Sender {
	out := Sender{Type: strings.ToLower(string(s.Type)), ID: s.ID, Name: s.Name, Verified: true}
	if s.Type == v1alpha1.SenderAgent {
		out.Plate = s.ID
	}
	return out
}

// trust gives how far the reader's owner trusts a sender: owner for the owner's own agents and the owner, trusted for
// those whose proposals the owner takes unasked in this room and for the system, member for the rest.
func (t *Toolset) trust(a *access) func(v1alpha1.MessageSender) string {
	me := a.caller.Agent.Spec.Owner
	standing := t.view.Consent(a.room, me)
	known := map[v1alpha1.MessageSender]string{}
	return func(s v1alpha1.MessageSender) string {
		if level, ok := known[s]; ok {
			return level
		}
		level := "member"
		owner := s.ID
		if s.Type == v1alpha1.SenderAgent {
			owner = ""
			if agent, ok := t.view.AgentByPlate(s.ID); ok {
				owner = agent.Spec.Owner
			}
		}
		judged := consent.Judge(consent.Proposal{
			Proposer: owner, Assignee: a.caller.Plate, AssigneeOwner: me, ProposerInRoom: a.members.Owners[owner], Consent: standing,
		})
		switch {
		case s.Type == v1alpha1.SenderSystem:
			// Its notices quote what members wrote, and are no more to be trusted than they.
		case owner != "" && judged.State == v1alpha1.ConsentAuto:
			level = "owner"
		case owner != "" && judged.State == v1alpha1.ConsentAccepted:
			level = "trusted"
		}
		known[s] = level
		return level
	}
}
