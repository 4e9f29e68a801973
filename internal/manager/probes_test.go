package manager_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/internal/manager"
	"github.com/agentrooms/agentrooms/test/testenv"
)

// freeAddress gives an address that nobody listened on a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestProbes starts a process that never comes to lead: it is ready all the same, with full caches, and says what it counts.
func TestProbes(t *testing.T) {
	env, g := testenv.Get(t), NewWithT(t)
	run(t, env, manager.Options{})
	g.Eventually(func(g Gomega) {
		lease := &coordinationv1.Lease{}
		g.Expect(env.Client.Get(t.Context(), client.ObjectKey{Namespace: testenv.Namespace, Name: manager.Name}, lease)).To(Succeed())
		g.Expect(lease.Spec.HolderIdentity).To(HaveValue(Not(BeEmpty())))
	}, soon, tick).Should(Succeed())
	probes, metrics := freeAddress(t), freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := manager.New(ctx, env.AsServiceAccount(account), manager.Options{
		ProbeAddress: probes, MetricsAddress: metrics, SkipNameValidation: true,
		LeaderElection: true, LeaderElectionNamespace: testenv.Namespace,
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
	get := func(url string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+url, http.NoBody)
		if err != nil {
			return err.Error()
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, err, "\n", string(body))
	}
	for _, path := range []string{"/healthz", "/readyz", "/readyz/caches"} {
		g.Eventually(func() string { return get(probes + path) }, soon, tick).Should(HavePrefix("200"), path)
	}
	select {
	case <-mgr.Elected():
		t.Error("two processes lead")
	default:
	}
	body := get(metrics + "/metrics")
	for _, name := range []string{
		`agentrooms_lease_expiries_total{action="Reopen"}`, `agentrooms_lease_expiries_total{action="MarkStale"}`,
		`agentrooms_consents_decided_total{state="Accepted"}`, `agentrooms_notices_posted_total{kind="assigned"}`,
		`controller_runtime_reconcile_total`,
	} {
		g.Expect(body).To(ContainSubstring(name))
	}
}
