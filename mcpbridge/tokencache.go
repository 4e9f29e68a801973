package mcpbridge

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// acceptedFor is how long an accepted token is believed without asking again.
	acceptedFor = time.Minute
	// refusedFor is how long a refused one is.
	refusedFor = 5 * time.Second
	// reviewTimeout bounds the wait for the API server.
	reviewTimeout = 10 * time.Second
	// cachedTokens bounds the tokens remembered, accepted and refused ones apart, so that guesses push out no accepted one.
	cachedTokens = 10_000
	// maxReviews bounds the reviews under way at once.
	maxReviews = 64
)

// tokenKey is all that is remembered of a token.
type tokenKey [sha256.Size]byte

// verdict is what is known of a token, since when, and until when it may be believed.
type verdict struct {
	username string
	at       time.Time
	until    time.Time
}

// tokenCache remembers whose a token is. When the API server is away it gives no answer rather than an old one.
type tokenCache struct {
	authenticator Authenticator
	clock         clock.PassiveClock
	metrics       *metrics
	accepted      *lru.Cache
	refused       *lru.Cache
	flights       singleflight.Group
	slots         chan struct{}
}

func newTokenCache(a Authenticator, c clock.PassiveClock, m *metrics) *tokenCache {
	return &tokenCache{
		authenticator: a, clock: c, metrics: m,
		accepted: lru.New(cachedTokens), refused: lru.New(cachedTokens), slots: make(chan struct{}, maxReviews),
	}
}

// authenticate gives the username behind a token, from what was learnt within maxAge or by asking.
func (c *tokenCache) authenticate(ctx context.Context, token string, maxAge time.Duration) (string, error) {
	key, now := tokenKey(sha256.Sum256([]byte(token))), c.clock.Now()
	if v, ok := get(c.accepted, key); ok && now.Before(v.until) && now.Sub(v.at) <= maxAge {
		return v.username, nil
	}
	if v, ok := get(c.refused, key); ok && now.Before(v.until) {
		return "", ErrUnauthenticated
	}
	// One review serves all that wait for it. It goes on when the one that asked first leaves.
	flight := c.flights.DoChan(string(key[:]), func() (any, error) {
		return c.review(context.WithoutCancel(ctx), key, token)
	})
	select {
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for the review of a token: %w", ctx.Err())
	case r := <-flight:
		username, _ := r.Val.(string)
		return username, r.Err
	}
}

func get(cache *lru.Cache, key tokenKey) (verdict, bool) {
	value, ok := cache.Get(key)
	if !ok {
		return verdict{}, false
	}
	v, ok := value.(verdict)
	return v, ok
}

func (c *tokenCache) review(ctx context.Context, key tokenKey, token string) (username string, err error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = caught(p)
		}
	}()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return "", fmt.Errorf("waiting to review a token: %w", ctx.Err())
	}
	asked := c.clock.Now()
	username, err = c.authenticator.Authenticate(ctx, token)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		c.metrics.reviews.WithLabelValues("refused").Inc()
		c.accepted.Remove(key)
		c.refused.Add(key, verdict{at: asked, until: asked.Add(refusedFor)})
		return "", ErrUnauthenticated
	case err != nil:
		c.metrics.reviews.WithLabelValues("unavailable").Inc()
		return "", err
	}
	c.metrics.reviews.WithLabelValues("accepted").Inc()
	until := asked.Add(acceptedFor)
	if exp := expiry(token); !exp.IsZero() && exp.Before(until) {
		until = exp
	}
	c.accepted.Add(key, verdict{username: username, at: asked, until: until})
	return username, nil
}
