package bridge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// firstPause and maxPause are between two tries to open the stream.
	firstPause = 250 * time.Millisecond
	maxPause   = 20 * time.Second
	// steady is how long a stream must have been open for its end to be nothing to worry about.
	steady = 5 * time.Second
)

// Watch keeps a stream open on resources and signals Changed at its beginning and whenever one of them changes, until ctx
// ends. A stream that breaks is opened again after a while that doubles up to 20 s; each end of a stream is signalled, too, so that
// whoever watches looks by itself while there is no stream. Report is told what went wrong, nil when it is well again.
func (c *Client) Watch(ctx context.Context, uris []string, report func(error)) {
	pause := firstPause
	for ctx.Err() == nil {
		opened := time.Now()
		err := c.listen(ctx, uris)
		if ctx.Err() != nil {
			return
		}
		if time.Since(opened) > steady {
			pause = firstPause
		}
		// A stream that the bridge ends in order ends with a result, and is to be opened again at once.
		if err == nil {
			pause = firstPause
		}
		report(err)
		c.signal()
		timer := time.NewTimer(pause/2 + rand.N(pause/2)) //nolint:gosec // spreads, and hides nothing
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, maxPause)
	}
}

// listen opens the stream and returns when it ends.
func (c *Client) listen(ctx context.Context, uris []string) error {
	filter := mcp.SubscriptionFilter{ResourceSubscriptions: slices.Clone(uris)}
	_, err := c.send(ctx, mcp.MethodSubscriptionsListen, map[string]any{"notifications": filter})
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if errors.Is(err, transport.ErrSessionTerminated) {
		return errors.New("the bridge knows no streams")
	}
	return fmt.Errorf("listening: %w", err)
}
