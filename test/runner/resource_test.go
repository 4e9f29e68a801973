package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/runner/bridge"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
)

// client talks to the steady replica as the runners do.
func (s *scene) client(agent string) *bridge.Client {
	s.t.Helper()
	file := filepath.Join(s.dir, agent+".token")
	if err := os.WriteFile(file, []byte(s.Tokens[agent]), 0o600); err != nil {
		s.t.Fatal(err)
	}
	c, err := bridge.New(bridge.Options{URL: plane.Replicas[steady], TokenFile: file, Session: "reader"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func TestATaskCanBeReadWithItsDetailsByMembersOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Agent("stranger", "olga")
	id := s.give(script{Say: "a detail"})
	var task rooms.Task
	if err := s.client("hand").Read(t.Context(), "rooms://task/"+id, &task); err != nil || !strings.Contains(task.Detail, "a detail") {
		t.Errorf("%v %+v, want the task with its detail", err, task)
	}
	for uri, agent := range map[string]string{"rooms://task/" + id: "stranger", "rooms://task/" + s.room: "hand"} {
		err := s.client(agent).Read(t.Context(), uri, &task)
		if p, ok := problem.As(err); !ok || p.Code != problem.NotFound {
			t.Errorf("%s as %s: %v, want NOT_FOUND", uri, agent, err)
		}
	}
	if err := s.client("hand").Read(t.Context(), "rooms://task/nonsense", &task); err == nil {
		t.Error("nonsense is read")
	}
}
