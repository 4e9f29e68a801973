// Package drain tells long polls that the server is about to leave, so that they answer early and the client asks another
// replica.
package drain

import "context"

type key struct{}

// WithSignal returns a context that carries the channel which is closed when the server begins to drain.
func WithSignal(ctx context.Context, draining <-chan struct{}) context.Context {
	return context.WithValue(ctx, key{}, draining)
}

// Signal gives the channel that is closed when the server begins to drain. It is nil, and so never ready, in a context
// that does not come from a server.
func Signal(ctx context.Context) <-chan struct{} {
	draining, _ := ctx.Value(key{}).(<-chan struct{})
	return draining
}
