package up

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/install"
)

const (
	plateTimeout  = 30 * time.Second
	plateInterval = 50 * time.Millisecond
	// tokenInterval is how soon an agent that was just created gets its token.
	tokenInterval = 5 * time.Second
)

// listAgents lists the agents to mint tokens for: all of them on our own control plane, on another cluster only the
// demo's, since the others are not ours to impersonate.
func (s *system) listAgents(ctx context.Context) ([]v1alpha1.Agent, error) {
	var opts []client.ListOption
	if s.plane == nil {
		if s.opts.NoDemo {
			return nil, nil
		}
		opts = append(opts, client.InNamespace(install.DemoNamespace))
	}
	var agents v1alpha1.AgentList
	if err := s.installer.Client().List(ctx, &agents, opts...); err != nil {
		return nil, fmt.Errorf("listing the agents: %w", err)
	}
	return agents.Items, nil
}

// awaitPlates waits until every agent has its plate, which shows that the manager works.
func (s *system) awaitPlates(ctx context.Context) (agents []v1alpha1.Agent, err error) {
	var missing []string
	err = wait.PollUntilContextTimeout(ctx, plateInterval, plateTimeout, true, func(ctx context.Context) (bool, error) {
		listed, err := s.listAgents(ctx)
		if err != nil {
			return false, nil //nolint:nilerr // tried again until the time is up
		}
		agents, missing = listed, nil
		for i := range agents {
			if agents[i].Status.Plate == "" {
				missing = append(missing, agents[i].Namespace+"/"+agents[i].Name)
			}
		}
		return len(missing) == 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the manager to give agents their plates (missing: %s; its log is %s): %w",
			strings.Join(missing, ", "), s.manager.Log(), err)
	}
	return agents, nil
}

// keepTokens keeps every agent's token fresh until ctx ends.
func (s *system) keepTokens(ctx context.Context) {
	ticker := time.NewTicker(tokenInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		agents, err := s.listAgents(ctx)
		if err != nil { // the API server may be just being restarted
			s.tokens.renew(ctx)
			continue
		}
		s.tokens.sync(ctx, agents)
	}
}
