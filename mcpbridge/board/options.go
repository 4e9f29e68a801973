package board

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/mcpbridge"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

// Options of a board. What is zero takes the default that the field states.
type Options struct {
	// View is what the replica sees. Required.
	View *view.View
	// Config reaches the API server as the bridge. Of people it only takes the address and the authority, unless a proxy
	// says who they are: then it must be allowed to impersonate them. Required.
	Config *rest.Config
	// Bounds are lent by the server. Required.
	Bounds mcpbridge.Bounds
	// Blobs has the contents of files. Without it they are listed and cannot be read.
	Blobs Blobs
	// Clock that decisions are made by. The real one.
	Clock clock.WithTicker
	// Logger for what people do not get to see. Nothing is logged.
	Logger *slog.Logger
	// Registry for the metrics. They are registered nowhere.
	Registry prometheus.Registerer

	// Key that sessions are sealed with, of KeyBytes bytes, the same in every replica. A random one, so that sessions end
	// with the process and are unknown to other replicas.
	Key []byte
	// Secure says that people reach the board over https, so that cookies may be held to it. Requests that come over TLS are
	// secure anyway.
	Secure bool
	// CodesDir is the folder of one-time codes to sign in with (see WriteCode). No codes are taken when empty.
	CodesDir string
	// TrustedProxies are the peers that are believed when they say by X-Remote-User and X-Remote-Group who calls. Nobody.
	TrustedProxies []netip.Prefix

	// SessionLife bounds how long a session lasts, also when its token lasts longer. 12 hours.
	SessionLife time.Duration
	// RightsFor is how long it is believed what a person may do. 10 s.
	RightsFor time.Duration
	// KeepAlive is how often a stream sends a comment. 15 s.
	KeepAlive time.Duration
	// Recheck is how often a stream checks the person's rights, and looks at what changes with time only. 1 minute.
	Recheck time.Duration
	// Settle is the shortest time between two events of a stream: what changes in between goes out as one. 150 ms.
	Settle time.Duration
	// MaxStreamAge is how old a stream gets before it ends and the page connects anew. 30 minutes.
	MaxStreamAge time.Duration
}

func orDefault[T comparable](value *T, def T) {
	var zero T
	if *value == zero {
		*value = def
	}
}

func (o *Options) complete() error {
	if o.View == nil || o.Config == nil || o.Bounds.Take == nil || o.Bounds.OpenStream == nil || o.Bounds.Ready == nil {
		return errors.New("the board needs a view, a configuration and the server's bounds")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	orDefault(&o.SessionLife, 12*time.Hour)
	orDefault(&o.RightsFor, 10*time.Second)
	orDefault(&o.KeepAlive, 15*time.Second)
	orDefault(&o.Recheck, time.Minute)
	orDefault(&o.Settle, 150*time.Millisecond)
	orDefault(&o.MaxStreamAge, 30*time.Minute)
	return nil
}
