package mcpbridge

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// RateLimits are calls a minute that an agent has in each bucket. A bucket that is missing has no limit.
type RateLimits map[toolset.Bucket]int

// ParseRateLimits reads limits as a flag gives them: "on" for the defaults, "off" for none, or the buckets that differ from
// the defaults with their calls a minute, from 1 to 1,000,000, as in "send=120,read=600".
func ParseRateLimits(text string) (RateLimits, error) {
	limits := DefaultRateLimits()
	switch text {
	case "on":
		return limits, nil
	case "off":
		return RateLimits{}, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		if _, known := limits[toolset.Bucket(name)]; !known || err != nil || n < 1 || n > maxRate {
			return nil, fmt.Errorf("reading the rate limits: %q must be on, off, or a bucket (send, upload, heartbeat, write, read) "+
				"with its calls a minute, as in send=120", part)
		}
		limits[toolset.Bucket(name)] = n
	}
	return limits, nil
}

// maxRate bounds the calls a minute of a bucket.
const maxRate = 1000000

// DefaultRateLimits gives the limits of the rooms toolset.
func DefaultRateLimits() RateLimits {
	return RateLimits{
		toolset.BucketSend:      60,
		toolset.BucketUpload:    20,
		toolset.BucketHeartbeat: 200,
		toolset.BucketWrite:     120,
		toolset.BucketRead:      300,
	}
}

// maxLimiters bounds the limiters that are remembered. One that is pushed out starts afresh, with a full bucket.
const maxLimiters = 50_000

// limiters hold a token bucket for each agent and kind of call: a minute's worth may come at once, then they refill evenly.
type limiters struct {
	limits RateLimits
	clock  clock.PassiveClock
	mu     sync.Mutex
	known  *lru.Cache
}

type limiterKey struct {
	plate  string
	bucket toolset.Bucket
}

func newLimiters(limits RateLimits, c clock.PassiveClock) *limiters {
	return &limiters{limits: limits, clock: c, known: lru.New(maxLimiters)}
}

// take counts a call, or says when there is room for it.
func (l *limiters) take(plate string, bucket toolset.Bucket) *problem.Problem {
	perMinute, limited := l.limits[bucket]
	if !limited {
		return nil
	}
	now, limiter := l.clock.Now(), l.limiter(limiterKey{plate, bucket}, perMinute)
	if limiter.AllowN(now, 1) {
		return nil
	}
	wait := time.Minute
	if perMinute > 0 {
		wait = time.Duration((1 - limiter.TokensAt(now)) / float64(limiter.Limit()) * float64(time.Second))
	}
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	p := problem.New(problem.RateLimited, "this agent has used up its %d %s calls a minute: wait %d s", perMinute, bucket, seconds)
	p.RetryAfterSeconds = seconds
	return p
}

func (l *limiters) limiter(key limiterKey, perMinute int) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.known.Get(key); ok {
		if limiter, ok := known.(*rate.Limiter); ok {
			return limiter
		}
	}
	limiter := rate.NewLimiter(rate.Limit(float64(perMinute)/60), perMinute)
	l.known.Add(key, limiter)
	return limiter
}

// gate bounds how many of a kind are under way at once, for each agent and altogether.
type gate struct {
	perKey, total int
	mu            sync.Mutex
	open          map[string]int
	all           int
}

func newGate(perKey, total int) *gate {
	return &gate{perKey: perKey, total: total, open: map[string]int{}}
}

// enter takes a place, or gives false when there is none. The place is given back by leave.
func (g *gate) enter(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[key] >= g.perKey || g.all >= g.total {
		return false
	}
	g.open[key]++
	g.all++
	return true
}

func (g *gate) leave(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	if g.open[key]--; g.open[key] <= 0 {
		delete(g.open, key)
	}
}

// instanceKey names an instance among those that listen.
func instanceKey(c *toolset.Caller) string { return c.Plate + "/" + c.Session }

// has says whether the key holds a place.
func (g *gate) has(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open[key] > 0
}
