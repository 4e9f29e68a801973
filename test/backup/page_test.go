package backup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentrooms/agentrooms/test/harness"
)

// TestTheCommandsOfThePage runs what docs/backup.md tells to try, as it stands there, and has the API server look at its CronJob.
func TestTheCommandsOfThePage(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	for _, program := range []string{"bash", "kubectl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the page needs %s", program)
		}
	}
	page := string(content(t, filepath.Join(harness.Root(), "docs", "backup.md")))
	dir := t.TempDir()
	harness.Up(t, harness.Options{DataDir: filepath.Join(dir, ".rooms")})
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(harness.Binary(t), filepath.Join(dir, "bin", "rooms")); err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\n" + block(t, page, "## Try it", "sh") + block(t, page, "## On a schedule", "sh") +
		"kubectl apply --dry-run=server -f - <<'EOF'\n" + block(t, page, "## On a schedule", "yaml") + "EOF\n"
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	left := string(out)
	for _, want := range []string{
		"exported room launch (", `room.agentrooms.dev "launch" deleted`, "consent.agentrooms.dev", "imported room launch (", "draft-announcement",
		"serviceaccount/exporter created", "cronjob.batch/export-launch created",
	} {
		_, after, ok := strings.Cut(left, want)
		if !ok {
			t.Fatalf("the page's commands do not show %q where they should:\n%s", want, out)
		}
		left = after
	}
	_, rest, _ := strings.Cut(string(out), "exported room launch (")
	if id, _, _ := strings.Cut(rest, ")"); strings.Count(string(out), id) != 4 {
		t.Errorf("the id %s does not stand in the two answers and for the room before and after:\n%s", id, out)
	}
}

// block gives the first block of a language behind a heading.
func block(t *testing.T, page, heading, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n"+heading+"\n")
	_, rest, begins := strings.Cut(rest, "\n```"+language+"\n")
	text, _, ends := strings.Cut(rest, "\n```\n")
	if !found || !begins || !ends {
		t.Fatalf("docs/backup.md has no block of %s behind %q", language, heading)
	}
	return text + "\n"
}
