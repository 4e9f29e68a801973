// Package sdk looks at Agent Rooms through the official TypeScript SDK: walk.test.mjs holds the walk, this starts the
// system for it.
package sdk

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/test/harness"
)

// walkTimeout bounds the walk, which takes five seconds on an idle machine.
const walkTimeout = 5 * time.Minute

func TestTheOfficialTypeScriptSDKWalksThroughARoom(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	needsModules(t)
	watched(t, ".", "../../go.mod", "../../api", "../../cmd", "../../config", "../../controllers", "../../internal", "../../mcpbridge")
	plane := harness.Up(t, harness.Options{Bridges: 2})
	line, err := json.Marshal(plane)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), walkTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-reporter=spec", "walk.test.mjs")
	cmd.Env = append(os.Environ(), "ROOMS_PLANE="+string(line))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node --test: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// needsModules skips the test where `npm ci` was not run, which only a person at work may leave out.
func needsModules(t *testing.T) {
	t.Helper()
	_, err := os.Stat(filepath.Join("node_modules", "@modelcontextprotocol", "sdk", "package.json"))
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal("the SDK is not installed: run npm ci in test/sdk (make test does)")
	default:
		t.Skip("the SDK is not installed: run npm ci in test/sdk (make test does)")
	}
}

// watched makes the result depend on files that only the programs look at which the test runs: go test caches results by what
// the test itself opens.
func watched(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.Name() == "node_modules":
				return filepath.SkipDir
			}
			_, err = d.Info()
			return err //nolint:wrapcheck // it names the file
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
