package runner

import (
	"time"

	"github.com/agentrooms/agentrooms/internal/problem"
)

// minRenewal is the shortest pause between two renewals.
const minRenewal = time.Second

// Claim is how long a task may be taken as held: by the clock of the holder, from before it last asked. The lease is judged
// from when the manager saw it renewed, which is later, so the holder stops before anybody else can begin.
type Claim struct {
	// Lease is how long a renewal lasts.
	Lease time.Duration
	// Until is when the holder must have stopped, unless it renews.
	Until time.Time
	// Next is when to renew.
	Next time.Time
	// failures in a row.
	failures int
}

// Held gives the claim after a success: asked is from before the request, left is what its answer said.
func Held(asked time.Time, left time.Duration, chance float64) Claim {
	// A third of the lease, so that two renewals may fail; by chance somewhat sooner.
	pause := max(left/3, min(minRenewal, left/2))
	return Claim{Lease: left, Until: asked.Add(left), Next: asked.Add(pause - time.Duration(chance*float64(pause)/4))}
}

// Failed gives the claim after a renewal that was not answered as it should be: it is tried again soon, and oftener the less
// time there is.
func (c Claim) Failed(now time.Time, chance float64) Claim {
	c.failures++
	pause := Backoff{First: 500 * time.Millisecond, Max: max(c.Lease/8, time.Second)}.Delay(c.failures, chance)
	c.Next = now.Add(pause)
	return c
}

// Over says whether the holder must stop because it could not renew.
func (c Claim) Over(now time.Time) bool { return !now.Before(c.Until) }

// Wait gives how long until something is to be done: a renewal, or the end.
func (c Claim) Wait(now time.Time) time.Duration {
	return max(0, min(c.Next.Sub(now), c.Until.Sub(now)))
}

// Lost says whether an answer means that the task is not held any more. Everything else, such as a room that is paused or a
// token that ended, may pass before the lease does.
func Lost(p *problem.Problem) bool { return p.Code == problem.LeaseLost || p.Code == problem.NotFound }

// Passes says whether a call that gave a problem may succeed when it is made again as it is, without anybody deciding anything
// about the task or mention: the system was away, there were too many calls, or the token has to be replaced.
func Passes(p *problem.Problem) bool {
	switch p.Code {
	case problem.RateLimited, problem.Unavailable, problem.Internal, problem.IdentityRequired:
		return true
	default:
		return p.Retryable
	}
}
