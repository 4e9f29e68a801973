package archive

import (
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// Policy is what the cluster keeps of a room's messages.
type Policy struct {
	// MaxCount of messages.
	MaxCount int64
	// MaxAge of a message, 0 for no bound.
	MaxAge time.Duration
}

// PolicyOf gives the policy of a room.
func PolicyOf(room *v1alpha1.Room) Policy {
	p := Policy{MaxCount: v1alpha1.DefaultMaxMessages}
	if r := room.Spec.Retention; r != nil && r.Messages != nil {
		if r.Messages.MaxCount > 0 {
			p.MaxCount = int64(r.Messages.MaxCount)
		}
		p.MaxAge = time.Duration(r.Messages.MaxAgeSeconds) * time.Second
	}
	return p
}

// Next says whether the next 1,000 messages are to move to the blob store. archived is the seq up to which they did, last
// that of the room's last message, and taken gives when the API server took a message, false when that is not known. When
// they are not to move yet, wake is how long until they are if nothing else happens, 0 for never. Only whole segments move,
// so up to 999 messages stay that are beyond a bound.
func Next(p Policy, archived, last int64, taken func(seq int64) (time.Time, bool), now time.Time) (due bool, wake time.Duration) {
	end := archived + SegmentMessages
	switch {
	case last < end:
		return false, 0
	case last-archived > p.MaxCount:
		return true, 0
	case p.MaxAge == 0:
		return false, 0
	}
	at, known := taken(end)
	if !known {
		return false, 0
	}
	if old := now.Sub(at); old < p.MaxAge {
		return false, p.MaxAge - old
	}
	return true, 0
}
