package faults

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/agentrooms/agentrooms/internal/controlplane"
	"github.com/agentrooms/agentrooms/mcpbridge"
	"github.com/agentrooms/agentrooms/test/harness"
)

// TestAGoodTokenIsNeverRefused reviews a token without a pause while the API server and its database are killed and start
// again. Whose it is may not be known for a while; that it is nobody's may not be said.
func TestAGoodTokenIsNeverRefused(t *testing.T) {
	w := plane.World(t)
	w.Agent("ann", "olga")
	kube, err := kubernetes.NewForConfig(bridgeConfig())
	if err != nil {
		t.Fatal(err)
	}
	reviewer := &mcpbridge.TokenReviewer{Reviews: kube.AuthenticationV1().TokenReviews(), Audience: mcpbridge.DefaultAudience}
	var accepted, unknown atomic.Int64
	review := func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		switch _, err := reviewer.Authenticate(ctx, w.Tokens["ann"]); {
		case err == nil:
			accepted.Add(1)
			return true
		case errors.Is(err, mcpbridge.ErrUnauthenticated):
			t.Error("a good token was refused")
		default:
			unknown.Add(1)
		}
		return false
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			pacer := time.NewTicker(5 * time.Millisecond)
			defer pacer.Stop()
			for {
				select {
				case <-stop:
					return
				case <-pacer.C:
					review()
				}
			}
		})
	}
	for _, victims := range [][]string{
		{controlplane.Etcd}, {controlplane.APIServer}, {controlplane.Etcd, controlplane.APIServer}, {controlplane.APIServer, controlplane.Etcd},
	} {
		for _, name := range victims {
			plane.KillChild(t, name)
		}
		harness.Await(t, "tokens to be reviewed again", review)
	}
	close(stop)
	running.Wait()
	t.Logf("%d reviews accepted the token, %d could not be carried out", accepted.Load(), unknown.Load())
	awaitReady(t)
}
