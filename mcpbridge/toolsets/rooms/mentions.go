package rooms

import (
	"context"
	"slices"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/inboxes"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/roomlog"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/drain"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

const (
	// defaultMentions is how many mentions a check gives when no limit is given.
	defaultMentions = 20
	// excerptCharacters of a message that a mention shows.
	excerptCharacters = 280
)

func (t *Toolset) checkMentions(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	scope, err := t.mentionScope(ctx, c, args)
	if err != nil {
		return nil, err
	}
	return t.deliver(ctx, c, scope, args)
}

// mentionScope gives the rooms that a check looks into: those named, or all.
func (t *Toolset) mentionScope(ctx context.Context, c *toolset.Caller, args toolset.Args) ([]*access, error) {
	names := args.Strings("rooms")
	if one := args.String("room"); one != "" && !slices.Contains(names, one) {
		names = append(slices.Clone(names), one)
	}
	var scope []*access
	for _, id := range names {
		a, err := t.room(ctx, c, id)
		if err != nil {
			return nil, err
		}
		scope = append(scope, a)
	}
	if len(names) > 0 {
		return scope, nil
	}
	for _, room := range t.view.RoomsOf(c.Plate) {
		if a, ok := t.member(c, room); ok {
			scope = append(scope, a)
		}
	}
	return scope, nil
}

// deliver gives the caller's instance what it may handle, room by room.
func (t *Toolset) deliver(ctx context.Context, c *toolset.Caller, scope []*access, args toolset.Args) (MentionList, error) {
	out := MentionList{Mentions: []MentionInfo{}}
	limit := int(args.Int("limit", defaultMentions))
	var unread error
	for _, a := range scope {
		if len(out.Mentions) >= limit {
			out.More = out.More || t.pendingIn(a.room, c.Plate) > 0
			continue
		}
		request := inboxes.Request{
			Session: c.Session, SinceSeq: args.Int("since_seq", 0), Limit: limit - len(out.Mentions), Visibility: t.visibility,
		}
		given, more, err := t.deliverRoom(ctx, a, request)
		if err != nil {
			return out, err
		}
		out.More = out.More || more
		trust := t.trust(a)
		for _, ref := range given {
			e, ok, err := t.entry(ctx, a.room, ref.Key.Seq)
			if err != nil {
				// It stays with this instance, and comes with the next check. What can be read comes now.
				unread, out.More = err, true
			} else if ok {
				out.Mentions = append(out.Mentions, t.mentionInfo(a, e, ref, trust))
			}
		}
	}
	if len(out.Mentions) == 0 {
		return out, unread
	}
	return out, nil
}

func (t *Toolset) deliverRoom(ctx context.Context, a *access, r inboxes.Request) ([]inboxes.Ref, bool, error) {
	plate := a.caller.Plate
	live := func(session string) bool { return t.view.Live(plate, session) }
	var given []inboxes.Ref
	var more bool
	err := t.changeInbox(ctx, a, func(s *v1alpha1.InboxStatus, refs []inboxes.Ref) (*v1alpha1.InboxStatus, error) {
		var next *v1alpha1.InboxStatus
		given, next, more = inboxes.Deliver(s, refs, live, r, t.clock.Now())
		if next == nil && len(given) > 0 {
			// What the instance was given before it may have acknowledged since, through another replica.
			return nil, errLookAgain
		}
		return next, nil
	})
	return given, more, err
}

func (t *Toolset) mentionInfo(
	a *access, e roomlog.Entry, ref inboxes.Ref, trust func(v1alpha1.MessageSender) string,
) MentionInfo {
	id := ids.MessageID(a.id, e.Message.At.Time, e.Seq)
	info := MentionInfo{
		MentionID: ids.MentionID(id, ref.Key.Index), Room: a.id, MessageID: id, Seq: e.Seq, From: t.from(e.Message.Sender),
		TrustLevel: trust(e.Message.Sender), Excerpt: tasks.Truncate(e.Message.Body, excerptCharacters),
	}
	if name := e.Message.Mentions[ref.Key.Index].TaskRef; name != "" {
		if task, ok := t.view.Task(a.room.Namespace, name); ok {
			info.TaskID = ids.ID(task)
		}
	}
	return info
}

// from names a sender the way others can mention it.
func (t *Toolset) from(s v1alpha1.MessageSender) string {
	if agent, ok := t.view.AgentByPlate(s.ID); ok && s.Type == v1alpha1.SenderAgent {
		return aliasOf(agent)
	}
	if s.Type == v1alpha1.SenderAgent {
		return handles.Alias(s.Name, "?")
	}
	return s.ID
}

// waitForMentions checks, and waits for something to come when there is nothing.
func (t *Toolset) waitForMentions(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(args.Int("timeout_seconds", 30))*time.Second)
	defer cancel()
	t.Touch(c, true)
	changed := t.view.Hub.Listen(ctx, view.InboxTopic(c.Plate), view.MembersTopic)
	for {
		scope, err := t.mentionScope(ctx, c, args)
		if err != nil {
			return nil, err
		}
		list, err := t.deliver(ctx, c, scope, args)
		if len(list.Mentions) > 0 || (err != nil && ctx.Err() == nil) {
			return list, err
		}
		timer := t.clock.NewTimer(t.nextOffer(scope))
		select {
		case <-ctx.Done():
			timer.Stop()
			return MentionList{Mentions: []MentionInfo{}}, nil
		case <-drain.Signal(ctx):
			timer.Stop()
			return MentionList{Mentions: []MentionInfo{}}, nil
		case <-changed:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// nextOffer is how long it takes until a mention that another instance was given may be offered again.
func (t *Toolset) nextOffer(scope []*access) time.Duration {
	next := time.Hour
	for _, a := range scope {
		if box, ok := t.view.Inbox(a.room, a.caller.Plate); ok {
			for _, d := range box.Status.Deliveries {
				if d.Session != a.caller.Session {
					next = min(next, max(d.Until.Sub(t.clock.Now()), time.Second))
				}
			}
		}
	}
	return next
}

func (t *Toolset) ackMentions(ctx context.Context, c *toolset.Caller, args toolset.Args) (any, error) {
	byID, through := args.Strings("mention_ids"), args.Has("last_mention_seq")
	switch {
	case len(byID) > 0 && !through:
		return t.ack(ctx, c, byID)
	case len(byID) > 0:
		return nil, problem.Invalid("last_mention_seq", "may not be given together with mention_ids")
	case !through:
		return nil, problem.Invalid("mention_ids", "must be given, or room together with last_mention_seq")
	case !args.Has("room"):
		return nil, problem.Invalid("room", "must be given with last_mention_seq")
	}
	a, err := t.room(ctx, c, args.String("room"))
	if err != nil {
		return nil, err
	}
	return t.ackThrough(ctx, a, args.Int("last_mention_seq", 0))
}

func (t *Toolset) ackThrough(ctx context.Context, a *access, seq int64) (any, error) {
	if err := t.catchUp(ctx, a, seq); err != nil {
		return nil, err
	}
	if last := t.view.Log(a.room).LastSeq(); seq > last {
		return nil, problem.Invalid("last_mention_seq", "lies beyond the room's last message, %d", last)
	}
	out := Acks{Acked: []string{}, AlreadyAcked: []string{}}
	var acked []v1alpha1.MentionKey
	at := map[v1alpha1.MentionKey]time.Time{}
	err := t.changeInbox(ctx, a, func(s *v1alpha1.InboxStatus, refs []inboxes.Ref) (*v1alpha1.InboxStatus, error) {
		for _, ref := range refs {
			at[ref.Key] = ref.At.Time
		}
		var next *v1alpha1.InboxStatus
		var p *problem.Problem
		if acked, next, p = inboxes.AckThrough(s, refs, seq); p != nil {
			return nil, p
		}
		if next == nil && t.view.Log(a.room).Seam().Archived > 0 {
			// The Inbox may carry mentions that have left the log, and the view not show it yet.
			return nil, errLookAgain
		}
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	for _, k := range acked {
		out.Acked = append(out.Acked, ids.MentionID(ids.MessageID(a.id, at[k], k.Seq), k.Index))
	}
	out.Pending = t.Pending(a.caller.Plate)
	return out, nil
}

// located is mentions of one room by their ids.
type located struct {
	access *access
	keys   []v1alpha1.MentionKey
	ids    map[v1alpha1.MentionKey]string
}

// ack acknowledges mentions by id, in any of the caller's rooms. All ids are looked up before anything is written.
func (t *Toolset) ack(ctx context.Context, c *toolset.Caller, mentionIDs []string) (Acks, error) {
	rooms, err := t.locate(ctx, c, mentionIDs)
	if err != nil {
		return Acks{}, err
	}
	for _, l := range rooms[:max(0, len(rooms)-1)] {
		err := t.changeInbox(ctx, l.access, func(s *v1alpha1.InboxStatus, refs []inboxes.Ref) (*v1alpha1.InboxStatus, error) {
			_, _, _, err := t.tryAck(l, s, refs)
			return nil, err
		})
		if err != nil {
			return Acks{}, err
		}
	}
	out := Acks{Acked: []string{}, AlreadyAcked: []string{}}
	for _, l := range rooms {
		var acked, already []v1alpha1.MentionKey
		err := t.changeInbox(ctx, l.access, func(s *v1alpha1.InboxStatus, refs []inboxes.Ref) (*v1alpha1.InboxStatus, error) {
			var next *v1alpha1.InboxStatus
			var err error
			acked, already, next, err = t.tryAck(l, s, refs)
			return next, err
		})
		if err != nil {
			return Acks{}, err
		}
		for _, k := range acked {
			out.Acked = append(out.Acked, l.ids[k])
		}
		for _, k := range already {
			out.AlreadyAcked = append(out.AlreadyAcked, l.ids[k])
		}
	}
	out.Pending = t.Pending(c.Plate)
	return out, nil
}

// tryAck says what acknowledging the mentions of a room comes to. Those whose messages have moved to the blob store, and that
// the Inbox does not carry, count as acknowledged before, once the API server's Inbox says so.
func (t *Toolset) tryAck(l *located, s *v1alpha1.InboxStatus, refs []inboxes.Ref) (
	acked, already []v1alpha1.MentionKey, next *v1alpha1.InboxStatus, err error,
) {
	settled, keys := inboxes.Settled(s, refs, t.view.Log(l.access.room).Seam().Archived, l.keys)
	acked, already, next, p := inboxes.Ack(s, refs, keys)
	if p != nil {
		return nil, nil, nil, p
	}
	if next == nil && len(settled) > 0 {
		err = errLookAgain
	}
	return acked, append(already, settled...), next, err
}

func (t *Toolset) locate(ctx context.Context, c *toolset.Caller, mentionIDs []string) ([]*located, error) {
	var out []*located
	rooms := t.view.RoomsOf(c.Plate)
	for _, id := range mentionIDs {
		message, index, ok := ids.ParseMentionID(id)
		if !ok {
			return nil, problem.Invalid("mention_ids", "holds %q, which is no mention id", tasks.Truncate(id, 64))
		}
		found := false
		for _, room := range rooms {
			seq, ok := ids.MessageSeq(ids.ID(room), message)
			if !ok {
				continue
			}
			a, member := t.member(c, room)
			if !member {
				continue
			}
			if found, err := t.isMention(ctx, a, message, v1alpha1.MentionKey{Seq: seq, Index: index}); err != nil {
				return nil, err
			} else if !found {
				continue
			}
			found = true
			out = add(out, a, v1alpha1.MentionKey{Seq: seq, Index: index}, id)
			break
		}
		if !found {
			return nil, problem.Invalid("mention_ids", "holds %q, which is no mention of yours", id)
		}
	}
	return out, nil
}

// isMention says whether an id names a mention in a message of a room. Of a message that has moved to the blob store it must be
// the caller's; of others that is judged with the Inbox. What the Inbox carries is known without the blob store.
func (t *Toolset) isMention(ctx context.Context, a *access, message string, k v1alpha1.MentionKey) (bool, error) {
	if err := t.catchUp(ctx, a, k.Seq); err != nil {
		return false, err
	}
	if box, ok := t.view.Inbox(a.room, a.caller.Plate); ok {
		for _, c := range box.Status.Carried {
			if c.MentionKey == k {
				return ids.MessageID(a.id, c.At.Time, k.Seq) == message, nil
			}
		}
	}
	_, inLog := t.view.Log(a.room).At(k.Seq)
	e, found, err := t.entry(ctx, a.room, k.Seq)
	if err != nil || !found || ids.MessageID(a.id, e.Message.At.Time, k.Seq) != message {
		return false, err
	}
	mine := int(k.Index) < len(e.Message.Mentions) && e.Message.Mentions[k.Index].Plate == a.caller.Plate
	return inLog || mine, nil
}

func add(list []*located, a *access, k v1alpha1.MentionKey, id string) []*located {
	i := slices.IndexFunc(list, func(l *located) bool { return l.access.id == a.id })
	if i < 0 {
		list = append(list, &located{access: a, ids: map[v1alpha1.MentionKey]string{}})
		i = len(list) - 1
	}
	list[i].keys = append(list[i].keys, k)
	list[i].ids[k] = id
	return list
}
