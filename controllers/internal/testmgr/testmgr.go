// Package testmgr runs a single controller in a test, with the indexes of the real manager and a user of its own, so that
// what it does can be read off the API server's audit log.
package testmgr

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/test/testenv"
)

const (
	// Soon is how long a test waits for something to happen.
	Soon = 15 * time.Second
	// Tick is how often it looks.
	Tick = 20 * time.Millisecond
)

var count atomic.Int64

// Run is a controller that runs.
type Run struct {
	env  *testenv.Env
	user string
}

// Start runs what setup adds to a manager until the test ends.
func Start(t *testing.T, env *testenv.Env, setup func(ctrl.Manager) error) *Run {
	t.Helper()
	r := &Run{env: env, user: fmt.Sprintf("controller-%d", count.Add(1))}
	opts := ctrl.Options{Scheme: env.Scheme, Client: client.Options{FieldValidation: "Strict", FieldOwner: r.user}}
	opts.Metrics.BindAddress, opts.HealthProbeBindAddress = "0", "0"
	opts.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(env.As(r.user, "system:masters"), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := index.Register(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
	return r
}

// Writes counts what the controller has written in a namespace.
func (r *Run) Writes(tb testing.TB, namespace string) int {
	tb.Helper()
	n := 0
	for _, req := range r.env.Requests(tb, r.user) {
		if req.Write() && req.Namespace == namespace && req.Group != "events.k8s.io" {
			n++
		}
	}
	return n
}

// ExpectIdle waits until the controller has nothing left to write in a namespace, and expects that it writes no more.
func (r *Run) ExpectIdle(tb testing.TB, namespace string) {
	tb.Helper()
	g := NewWithT(tb)
	last := -1
	g.Eventually(func() bool {
		before := last
		last = r.Writes(tb, namespace)
		return last == before
	}, Soon, time.Second).Should(BeTrue(), "the controller does not come to rest")
	g.Consistently(func() int { return r.Writes(tb, namespace) }, 3*time.Second, 200*time.Millisecond).
		Should(Equal(last), "the controller writes though nothing changes")
}

// Instances makes the cache of the Leases of instances, as the real manager has it.
func Instances(tb testing.TB, mgr ctrl.Manager) cache.Cache {
	tb.Helper()
	c, err := cache.New(mgr.GetConfig(), cache.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		tb.Fatal(err)
	}
	if err := index.RegisterInstances(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	if err := mgr.Add(c); err != nil {
		tb.Fatal(err)
	}
	return c
}
