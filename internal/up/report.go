package up

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/template"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/controlplane"
	"github.com/agentrooms/agentrooms/internal/datadir"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/install"
)

// Report says what runs where. Its JSON is what `rooms up --json` prints.
type Report struct {
	Kubeconfig string `json:"kubeconfig"`
	MCP        string `json:"mcp"`
	Metrics    string `json:"metrics"`
	// Board is where people look on; BoardReplicas has it for each bridge.
	Board         string   `json:"board"`
	BoardReplicas []string `json:"board_replicas"`
	// SignIn is a link that signs its first user in; empty on a cluster that was there already.
	SignIn string        `json:"sign_in"`
	Agents []AgentReport `json:"agents"`
	// Room is the id of the demo's room; empty without a demo.
	Room string `json:"room"`

	// MCPReplicas and MetricsReplicas have one entry for each bridge, the first one's first.
	MCPReplicas     []string `json:"mcp_replicas"`
	MetricsReplicas []string `json:"metrics_replicas"`
	ManagerMetrics  string   `json:"manager_metrics"`
	DataDir         string   `json:"data_dir"`
	// PID is the process to stop; PIDs are its children as they are now: one that dies comes back under another id.
	PID  int            `json:"pid"`
	PIDs map[string]int `json:"pids"`
}

// AgentReport says who an agent is and where its token is.
type AgentReport struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Owner     string `json:"owner"`
	Plate     string `json:"plate"`
	// TokenFile is empty for an agent that no service account may act as.
	TokenFile string `json:"token_file"`
}

func (s *system) report(ctx context.Context, agents []v1alpha1.Agent) (Report, error) {
	r := Report{
		Kubeconfig:     s.kubeconfig,
		Agents:         []AgentReport{},
		ManagerMetrics: metricsURL(s.manager.metrics),
		DataDir:        s.dir.Path(),
		PID:            os.Getpid(),
		PIDs:           s.pids(),
	}
	for _, bridge := range s.bridges {
		r.MCPReplicas = append(r.MCPReplicas, "http://"+datadir.Loopback(bridge.port)+"/mcp")
		r.BoardReplicas = append(r.BoardReplicas, "http://"+datadir.Loopback(bridge.port)+"/")
		r.MetricsReplicas = append(r.MetricsReplicas, metricsURL(bridge.metrics))
	}
	r.MCP, r.Metrics, r.Board = r.MCPReplicas[0], r.MetricsReplicas[0], r.BoardReplicas[0]
	var err error
	if r.SignIn, err = s.firstSignIn(r.Board); err != nil {
		return Report{}, err
	}
	for i := range agents {
		agent := &agents[i]
		r.Agents = append(r.Agents, AgentReport{Name: agent.Name, Namespace: agent.Namespace, Owner: agent.Spec.Owner,
			Plate: agent.Status.Plate, TokenFile: s.tokens.fileOf(agent)})
	}
	if s.opts.NoDemo {
		return r, nil
	}
	var room v1alpha1.Room
	err = s.installer.Client().Get(ctx, client.ObjectKey{Namespace: install.DemoNamespace, Name: "launch"}, &room)
	if client.IgnoreNotFound(err) != nil {
		return Report{}, fmt.Errorf("reading the demo's room: %w", err)
	}
	if err == nil { // somebody may have deleted it since
		r.Room = ids.ID(&room)
	}
	return r, nil
}

func (s *system) pids() map[string]int {
	pids := map[string]int{s.manager.Name(): s.manager.PID()}
	for _, bridge := range s.bridges {
		pids[bridge.Name()] = bridge.PID()
	}
	if s.plane != nil {
		for _, name := range controlplane.Names {
			pids[name] = s.plane.PID(name)
		}
	}
	return pids
}

func metricsURL(port int) string { return "http://" + datadir.Loopback(port) + "/metrics" }

// WriteJSON writes the report on one line.
func (r Report) WriteJSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(r)
}

var forPeople = template.Must(template.New("report").Funcs(template.FuncMap{"join": strings.Join}).Parse(`
Agent Rooms is running.

  Board       {{join .BoardReplicas "  "}}
{{- if .SignIn}}
              a link to sign in with, once, in the next quarter of an hour (rooms signin makes others):
              {{.SignIn}}
{{- end}}
  MCP         {{join .MCPReplicas "  "}}
  Kubernetes  {{.Kubeconfig}}
  Data, logs  {{.DataDir}}
  Metrics     {{.Metrics}}  {{.ManagerMetrics}}
{{- if .Room}}
  Room        {{.Room}} (launch, in namespace demo)
{{- end}}
{{range .Agents}}
  Agent       {{.Name}}({{.Owner}})  {{.Plate}}
{{- if .TokenFile}}
              token, renewed while this runs: {{.TokenFile}}
{{- end}}
{{- end}}

An MCP client's configuration{{if .Client.Agent}} for the agent {{.Client.Agent}} (the token is good for a day){{end}}:

{{.Client.JSON}}

With kubectl:

  export KUBECONFIG={{.Kubeconfig}}
  kubectl get rooms,agents,tasks -A
  kubectl get tasks -A --watch
  kubectl explain task.spec

Stop with Ctrl-C (or kill {{.PID}}). Everything is kept; the same command carries on with it.
`[1:]))

// clientConfig is what a person pastes into an MCP client.
type clientConfig struct {
	Agent, JSON string
}

// WriteText writes the report for a person. The template is filled with the report and a client's configuration.
func (r Report) WriteText(w io.Writer) error {
	config, err := r.clientConfig()
	if err != nil {
		return err
	}
	return forPeople.Execute(w, struct {
		Report
		Client clientConfig
	}{r, config})
}

// clientConfig makes the configuration for the first agent that has a token.
func (r Report) clientConfig() (clientConfig, error) {
	result, token := clientConfig{}, "TOKEN (kubectl create token SERVICEACCOUNT --audience "+audience+")"
	for _, agent := range r.Agents {
		if agent.TokenFile == "" {
			continue
		}
		content, err := os.ReadFile(agent.TokenFile)
		if err != nil {
			return result, fmt.Errorf("reading the token of %s: %w", agent.Name, err)
		}
		result.Agent, token = agent.Name, strings.TrimSpace(string(content))
		break
	}
	encoded, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"agent-rooms": map[string]any{
		"type": "http", "url": r.MCP, "headers": map[string]string{"Authorization": "Bearer " + token},
	}}}, "", "  ")
	result.JSON = string(encoded)
	return result, err
}
