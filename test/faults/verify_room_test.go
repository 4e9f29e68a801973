package faults

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/inboxes"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// stored gives the room's messages as the API server keeps them, and holds that their chain has no gap.
func (l *load) stored() []v1alpha1.Message {
	l.t.Helper()
	var list v1alpha1.MessageBatchList
	if err := l.api.List(context.Background(), &list, client.InNamespace(l.world.Namespace)); err != nil {
		l.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.MessageBatch) int { return cmp.Compare(a.Spec.Number, b.Spec.Number) })
	var log []v1alpha1.Message
	for i, batch := range list.Items {
		if batch.Spec.Number != int64(i+1) || batch.Spec.FirstSeq != int64(len(log)+1) {
			l.t.Errorf("batch %d has number %d and first seq %d, want seq %d", i+1, batch.Spec.Number, batch.Spec.FirstSeq, len(log)+1)
		}
		log = append(log, batch.Spec.Messages...)
	}
	return log
}

// shown gives the room's messages as a replica shows them, page by page.
func (l *load) shown(replica int) []rooms.Message {
	l.t.Helper()
	s := l.world.At(replica, agents[0], "auditor")
	var all []rooms.Message
	args := harness.Args{"room": l.room, "limit": 100}
	for {
		page := harness.Get[rooms.Page](l.t, s, "read_room", args)
		all = append(page.Messages, all...)
		if page.NextBeforeSeq == nil {
			return all
		}
		args["before_seq"] = *page.NextBeforeSeq
	}
}

// checkLog holds the log against what senders were told: each acknowledged message stands once, at its seq, and none stands
// twice; all replicas show the same.
func (l *load) checkLog() {
	l.t.Helper()
	log := l.stored()
	for replica := range plane.Replicas {
		shown := l.shown(replica)
		if len(shown) != len(log) {
			l.t.Errorf("replica %d shows %d messages, the API server has %d", replica, len(shown), len(log))
			continue
		}
		for i, m := range shown {
			if m.Seq != int64(i+1) || m.Body != log[i].Body || m.Sender.ID != log[i].Sender.ID {
				l.t.Fatalf("replica %d shows %+v at seq %d, the API server has %+v", replica, m, i+1, log[i])
			}
		}
	}
	l.checkKeys(log)
	at := map[string]int64{}
	var ops []porcupine.Operation
	for i, m := range log {
		seq := int64(i + 1)
		if first, twice := at[m.Body]; twice && m.Sender.Type == v1alpha1.SenderAgent {
			l.t.Errorf("%q stands at seq %d and at seq %d (sent: %+v)", m.Body, first, seq, l.messages[m.Body])
		}
		at[m.Body] = seq
		op := porcupine.Operation{Input: appended{seq}, Return: never}
		if sent := l.messages[m.Body]; sent != nil {
			op.ClientId, op.Call, op.Return = sent.client, sent.call, sent.ret
		}
		ops = append(ops, op)
	}
	for body, sent := range l.messages {
		if sent.seq != 0 && at[body] != sent.seq {
			l.t.Errorf("%q was acknowledged at seq %d and stands at %d: %+v", body, sent.seq, at[body], sent)
		}
	}
	if got := porcupine.CheckOperationsTimeout(logModel, ops, checkTime); got != porcupine.Ok {
		l.t.Errorf("the history of the log is %s", got)
	}
}

// checkKeys holds that nothing that was sent under a key stands twice, notices of the system included.
func (l *load) checkKeys(log []v1alpha1.Message) {
	l.t.Helper()
	seen := map[string]int{}
	for i, m := range log {
		if first, twice := seen[m.Key]; twice && m.Key != "" {
			l.t.Errorf("what stands at seq %d and at seq %d was sent under one key: %q", first+1, i+1, m.Body)
		}
		seen[m.Key] = i
	}
}

// drain lets every instance take and acknowledge what is left for it, until nothing is left for anybody.
func (l *load) drain() {
	l.t.Helper()
	harness.AwaitFor(l.t, patience, "every mention to be handled", func() bool {
		left := 0
		for _, c := range l.clients {
			for _, session := range c.lives {
				list, _ := c.check("check_mentions", harness.Args{"limit": 100, "session_id": session})
				var ids []string
				for _, m := range list.Mentions {
					ids = append(ids, m.MentionID)
				}
				c.ack(ids)
				left += len(ids)
			}
			for replica := range c.links {
				answer, outcome := c.at(replica, "whoami", harness.Args{})
				if outcome != told || answer.err != nil {
					return false
				}
				left += into[rooms.Identity](answer.result).PendingMentions
			}
		}
		return left == 0
	})
}

// held is how long a mention that was given is kept from other instances at least.
const held = inboxes.DefaultVisibility / 2

// checkMentions holds that no mention came again once acknowledged, that none was with two instances at once, and that each
// was given and acknowledged in the end.
func (l *load) checkMentions() {
	l.t.Helper()
	names, _ := l.inboxes.subjects()
	handled := map[string]map[int64]bool{}
	for _, id := range names {
		ops := l.inboxes.of(id)
		if got := porcupine.CheckOperationsTimeout(mentionModel.ToModel(), ops, checkTime); got != porcupine.Ok {
			l.t.Errorf("mention %s: its history is %s:\n%s", id, got, describe(ops))
		}
		gifts := l.givens[id]
		for i, a := range gifts {
			for _, b := range gifts[i+1:] {
				if a.session != b.session && b.ret-a.call < int64(held) && a.ret-b.call < int64(held) {
					l.t.Errorf("mention %s was with two instances within %s:\n%s", id, time.Duration(b.ret-a.call), describe(ops))
				}
			}
		}
		if l.acked[id] && len(gifts) > 0 {
			plate := l.world.Plates[gifts[0].agent]
			if handled[plate] == nil {
				handled[plate] = map[int64]bool{}
			}
			handled[plate][gifts[0].seq] = true
		}
	}
	for i, m := range l.stored() {
		for _, mention := range m.Mentions {
			if !handled[mention.Plate][int64(i+1)] {
				l.t.Errorf("the mention of %s at seq %d was never handled", mention.Plate, i+1)
			}
		}
	}
}

// checkInboxes holds that every acknowledgement that was answered is in the Inbox.
func (l *load) checkInboxes() {
	l.t.Helper()
	var list v1alpha1.InboxList
	if err := l.api.List(context.Background(), &list, client.InNamespace(l.world.Namespace)); err != nil {
		l.t.Fatal(err)
	}
	boxes := map[string]*v1alpha1.Inbox{}
	for i := range list.Items {
		boxes[list.Items[i].Spec.Plate] = &list.Items[i]
	}
	for id, gifts := range l.givens {
		_, index, _ := ids.ParseMentionID(id)
		box := boxes[l.world.Plates[gifts[0].agent]]
		if l.acked[id] && (box == nil || !inboxes.IsAcked(&box.Status, v1alpha1.MentionKey{Seq: gifts[0].seq, Index: index})) {
			l.t.Errorf("mention %s at seq %d was acknowledged, and its Inbox does not say so", id, gifts[0].seq)
		}
	}
}
