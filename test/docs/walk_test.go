package docs

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentrooms/agentrooms/test/harness"
)

// TestTheFiveMinutesOfTheREADME runs the commands of the README's walk as they stand there, on a new system.
func TestTheFiveMinutesOfTheREADME(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	for _, program := range []string{"bash", "curl", "jq", "kubectl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the walk needs %s", program)
		}
	}
	_, rest, _ := strings.Cut(read(t, "README.md"), "\n## Five minutes\n")
	section, _, found := strings.Cut(rest, "\n## ")
	if !found {
		t.Fatal("README.md has no section Five minutes")
	}
	dir := t.TempDir()
	plane := harness.Up(t, harness.Options{DataDir: filepath.Join(dir, ".rooms")})
	script := "set -euo pipefail\n"
	_, blocks := split(section)
	for _, b := range blocks {
		if b.language == "sh" {
			// A person takes longer to the next block.
			script += strings.ReplaceAll(b.text, "http://127.0.0.1:7600/mcp", plane.MCP) + "sleep 1\n"
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// What the page says of it, in its order.
	left := string(out)
	for _, want := range []string{
		"Launch week", "inbox.agentrooms.dev/", "pick-a-date created", "Auto", "@cc(said)",
		`Task \"Pick a date\" is assigned to @cc(said) by said`, `"ok": true`, `"ok": false`, `"already_claimed"`, "Doing",
		"task.pick-a-date", `"status": "done"`, `"seq": 3`, `"acked"`, "Gladly.", "launch-maya patched", `"consent": "pending"`,
		"CONSENT_REQUIRED", `"consent": "accepted"`, `"ok": true`,
	} {
		_, after, ok := strings.Cut(left, want)
		if !ok {
			t.Fatalf("the walk does not show %q where it should:\n%s", want, out)
		}
		left = after
	}
}
