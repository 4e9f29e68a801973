package inboxes

import (
	"regexp"
	"slices"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// All gives all mentions of an agent in their order: those that the Inbox carries since their messages moved to the blob
// store, and those in the log. One that is in both, as the log may begin in the middle of what has moved, counts once.
func All(s *v1alpha1.InboxStatus, log []Ref) []Ref {
	if len(s.Carried) == 0 {
		return log
	}
	all := make([]Ref, 0, len(s.Carried)+len(log))
	for _, c := range s.Carried {
		if _, twice := find(log, c.MentionKey); !twice {
			all = append(all, Ref{Key: c.MentionKey, Session: c.Session, At: c.At})
		}
	}
	all = append(all, log...)
	if !slices.IsSortedFunc(all, byKey) {
		slices.SortFunc(all, byKey)
	}
	return all
}

func byKey(a, b Ref) int { return compare(a.Key, b.Key) }

// Settled parts the mentions that somebody acknowledges: those whose messages have moved to the blob store, up to a seq, and
// that are not pending, need no acknowledgement any more.
func Settled(s *v1alpha1.InboxStatus, refs []Ref, archived int64, keys []v1alpha1.MentionKey) (settled, rest []v1alpha1.MentionKey) {
	for _, k := range keys {
		if _, found := find(refs, k); !found && k.Seq <= archived {
			settled = append(settled, k)
			continue
		}
		rest = append(rest, k)
	}
	return settled, rest
}

// plainSession is what a carried mention may name.
var plainSession = regexp.MustCompile(`^[A-Za-z0-9._:/@-]{0,64}$`)

// Carry takes pending mentions over into the Inbox, before their messages move to the blob store. Refs are those of the
// messages that move, in their order. It gives the status to write, nil when all is there already, and false when the Inbox
// cannot take them: its agent must acknowledge some first.
func Carry(s *v1alpha1.InboxStatus, refs []Ref) (next *v1alpha1.InboxStatus, fits bool) {
	known := map[v1alpha1.MentionKey]bool{}
	for _, c := range s.Carried {
		known[c.MentionKey] = true
	}
	for _, ref := range refs {
		if known[ref.Key] || IsAcked(s, ref.Key) {
			continue
		}
		if next == nil {
			next = s.DeepCopy()
		}
		c := v1alpha1.CarriedMention{MentionKey: ref.Key, At: ref.At}
		if plainSession.MatchString(ref.Session) {
			c.Session = ref.Session
		}
		next.Carried = append(next.Carried, c)
	}
	if next == nil {
		return nil, true
	}
	slices.SortFunc(next.Carried, func(a, b v1alpha1.CarriedMention) int { return compare(a.MentionKey, b.MentionKey) })
	return next, len(next.Carried) <= v1alpha1.MaxCarried
}
