package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/problem"
)

const (
	// audience is whom an agent's token is for unless the bridge was told otherwise.
	audience = "agentrooms"
	// service is where the bridge is in its own cluster.
	service = "http://agentrooms-bridge.agentrooms-system/mcp"
	// minLife and maxLife bound how long a token is asked to be good for.
	minLife, maxLife = 10 * time.Minute, 90 * 24 * time.Hour
)

// minting is what is asked for of a token.
type minting struct {
	audience, bridge string
	life             time.Duration
	bare             bool
}

func newToken(o *options) *cobra.Command {
	m := &minting{}
	cmd := &cobra.Command{
		Use: "token AGENT", Short: "Make a token of an agent, and write a ready configuration for an MCP client",
		Long: `Make a token of an agent's service account for the bridge, and write the configuration of an MCP client with it. The token opens
nothing but the bridge, for as long as --duration says: keep it like a password.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: o.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			if m.life < minLife || m.life > maxLife {
				return problem.New(problem.Validation, "--duration must be 10m to 2160h, not %s", m.life)
			}
			agent, err := o.agent(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			minted, err := o.mint(cmd.Context(), agent, m)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(o.Err, "# token of %s, good until %s\n", aliasOf(agent), minted.ExpirationTimestamp.Local().Format(time.DateTime))
			if m.bare {
				o.say("%s", minted.Token)
				return nil
			}
			return o.encode(clientConfig(m.bridge, minted.Token))
		},
	}
	f := cmd.Flags()
	f.StringVar(&m.audience, "audience", audience, "audience that the bridge takes tokens for")
	f.StringVar(&m.bridge, "bridge", service, "URL of the bridge as the agent reaches it")
	f.DurationVar(&m.life, "duration", 24*time.Hour, "how long the token is good for: 10m to 2160h; the cluster may give less")
	f.BoolVar(&m.bare, "token-only", false, "write nothing but the token")
	return cmd
}

// clientConfig is what MCP clients read.
func clientConfig(url, token string) map[string]any {
	return map[string]any{"mcpServers": map[string]any{"agent-rooms": map[string]any{
		"type": "http", "url": url, "headers": map[string]string{"Authorization": "Bearer " + token},
	}}}
}

// mint makes a token of the first service account that may act as an agent.
func (o *options) mint(ctx context.Context, agent *v1alpha1.Agent, m *minting) (*authenticationv1.TokenRequestStatus, error) {
	account := accountOf(agent)
	if account == "" {
		return nil, problem.New(problem.Validation, "no service account may act as %s: name one in spec.subjects of the Agent", agent.Name)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{m.audience}, ExpirationSeconds: new(int64(m.life / time.Second)),
	}}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: agent.Namespace, Name: account}}
	if err := o.watch.SubResource("token").Create(ctx, of, request); err != nil {
		err = acts.Explain(err, fmt.Sprintf("making a token of service account %s/%s", agent.Namespace, account))
		if p, ok := problem.As(err); ok && p.Code == problem.Forbidden {
			return nil, p.WithHint("making tokens takes the verb create on serviceaccounts/token; the ClusterRole edit has it")
		}
		return nil, err
	}
	return &request.Status, nil
}

func accountOf(agent *v1alpha1.Agent) string {
	for _, s := range agent.Spec.Subjects {
		if s.Kind == v1alpha1.SubjectServiceAccount {
			return s.Name
		}
	}
	return ""
}
