// Package plugin_test runs kubectl with the real plugin on a whole plane.
package plugin_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/test/harness"
)

// bin has the plugin, and the name by which kubectl asks it to complete.
func bin(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "kubectl-rooms"), "./cmd/kubectl-rooms")
	cmd.Dir = harness.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, out)
	}
	if err := os.Symlink("kubectl-rooms", filepath.Join(dir, "kubectl_complete-rooms")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// person is somebody with a terminal.
type person struct {
	*testing.T
	env []string
}

func (p *person) kubectl(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// shows runs kubectl rooms, which must succeed and show some words in their order.
func (p *person) shows(words []string, args ...string) string {
	p.Helper()
	out, err := p.kubectl(append([]string{"rooms"}, args...)...)
	if err != nil {
		p.Fatalf("kubectl rooms %v: %v\n%s", args, err, out)
	}
	left := out
	for _, w := range words {
		_, after, found := strings.Cut(left, w)
		if !found {
			p.Fatalf("kubectl rooms %v does not show %q where it should:\n%s", args, w, out)
		}
		left = after
	}
	return out
}

// TestAPersonAndAnAgentWorkTogether is a person at a terminal and agents over MCP, on the real thing.
func TestAPersonAndAnAgentWorkTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("needs kubectl")
	}
	plane := harness.Up(t, harness.Options{})
	said := &person{T: t, env: append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig, "PATH="+bin(t)+":"+os.Getenv("PATH"))}
	type words = []string

	said.shows(words{"launch", "Launch week", "Active"}, "list", "-n", "demo")
	said.shows(words{"sent to room demo/launch"}, "send", "launch", "Please look at the board", "-m", "@cc(said)")
	// The configuration that token prints lets a client in, as the agent.
	var config struct {
		Servers map[string]struct {
			URL     string
			Headers map[string]string
		} `json:"mcpServers"`
	}
	_, printed, _ := strings.Cut(said.shows(nil, "token", "cc", "-n", "demo", "--bridge", plane.MCP, "--duration", "10m"), "{")
	if err := json.Unmarshal([]byte("{"+printed), &config); err != nil {
		t.Fatalf("%v:\n%s", err, printed)
	}
	server := config.Servers["agent-rooms"]
	cc := harness.Connect(t, server.URL, strings.TrimPrefix(server.Headers["Authorization"], "Bearer "), "laptop")
	mentions := harness.Get[struct {
		Mentions []struct {
			From       string
			TrustLevel string `json:"trust_level"`
		}
	}](t, cc, "check_mentions", nil)
	if n := len(mentions.Mentions); n == 0 || mentions.Mentions[n-1].From != "said" || mentions.Mentions[n-1].TrustLevel != "owner" {
		t.Errorf("the agent hears %+v", mentions.Mentions)
	}
	said.shows(words{"created"}, "task", "create", "launch", "Count the chairs", "--done", "A message has the number", "--assignee", "cc", "--name", "chairs", "-n", "demo")
	task := struct {
		ID string `json:"task_id"`
	}{ID: strings.TrimSpace(said.shows(nil, "board", "launch", "-n", "demo", "-o", "wide", "--no-headers", "--assignee", "cc"))}
	for line := range strings.Lines(task.ID) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[1] == "chairs" {
			task.ID = fields[len(fields)-1]
		}
	}
	claim := harness.Get[struct{ OK bool }](t, cc, "claim_task", harness.Args{"task_id": task.ID})
	if !claim.OK {
		t.Fatal("the agent cannot claim what it was given")
	}
	said.shows(words{"Doing", "chairs", "@cc(said)#laptop"}, "board", "launch", "-n", "demo")
	said.shows(words{"chairs is Todo"}, "task", "release", "chairs", "-n", "demo", "-r", "take a break")
	harness.Refused(t, cc, "LEASE_LOST", "renew_lease", harness.Args{"task_id": task.ID})
	harness.Get[any](t, cc, "send_message", harness.Args{"room": plane.Room, "body": "Twelve.\u202e"})
	said.shows(words{"said → @cc(said)", "Please look", "@cc(said)\n    Twelve.<U+202E>"}, "tail", "launch", "-n", "demo", "--follow=false")

	said.shows(words{"ok       kinds", "ok       policies", "ok       bridge", "ok       token", "knows @cc(said) by it", "ok       cache lag"},
		"doctor", "-n", "demo", "--bridge", plane.MCP, "--metrics", plane.Metrics, "--agent", "cc")
	out, err := said.kubectl("rooms", "doctor", "-n", "demo", "--bridge", plane.MCP, "--agent", "cc", "--audience", "elsewhere")
	if err == nil || !strings.Contains(out, "the bridge does not take a token for the audience elsewhere") {
		t.Errorf("with the wrong audience the doctor says %v:\n%s", err, out)
	}
	said.shows(words{"CLAIMS", "won"}, "top", "--metrics", plane.Metrics, "--interval", "1s")
	said.shows(words{"launch"}, "top", "-n", "demo")
	if out, err := said.kubectl("__complete", "rooms", "-n", "demo", "board", "l"); err != nil || !strings.Contains(out, "\nlaunch\n") {
		t.Errorf("kubectl completes %q: %v", out, err)
	}
	// Somebody without rights, and one who may look on.
	if out, err := said.kubectl("rooms", "list", "-n", "demo", "--as", "nora"); err == nil || !strings.Contains(out, "you may not list rooms in namespace demo") {
		t.Errorf("nora sees %v:\n%s", err, out)
	}
	if out, err := said.kubectl("create", "rolebinding", "rita", "-n", "demo", "--clusterrole=agentrooms-message-viewer", "--user=rita"); err != nil {
		t.Fatal(out)
	}
	if out, err := said.kubectl("create", "rolebinding", "rita-view", "-n", "demo", "--clusterrole=view", "--user=rita"); err != nil {
		t.Fatal(out)
	}
	for until := time.Now().Add(30 * time.Second); ; {
		out, err := said.kubectl("rooms", "tail", "launch", "-n", "demo", "--follow=false", "--as", "rita")
		if err == nil && strings.Contains(out, "Twelve.") {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("rita does not see what is said: %v\n%s", err, out)
		}
	}
	if out, err := said.kubectl("rooms", "send", "launch", "hi", "-n", "demo", "--as", "rita"); err == nil || !strings.Contains(out, "you may not create messagebatches") {
		t.Errorf("rita speaks: %v\n%s", err, out)
	}
}
