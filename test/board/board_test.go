// Package board looks at the board as people do, in a real browser on the real system: board.test.mjs and its neighbours hold
// what is done there, this starts the system, fills it, and runs them.
package board

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

const (
	// runTimeout bounds the browser's part, which takes about a minute on an idle machine with two cores.
	runTimeout = 6 * time.Minute
	// installTimeout bounds the installation of a browser on a new machine.
	installTimeout = 8 * time.Minute
)

func TestPeopleAtTheBoard(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	needsModules(t)
	browser := needsBrowser(t)
	watched(t, ".", "../../go.mod", "../../api", "../../cmd", "../../config", "../../controllers", "../../internal", "../../mcpbridge")
	plane := harness.Up(t, harness.Options{Bridges: 2, NoDemo: true})
	line, err := json.Marshal(struct {
		*harness.Plane
		*scene
		Browser string `json:"browser"`
	}{plane, prepare(t, plane), browser})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-reporter=spec", "--test-concurrency=1",
		"files.test.mjs", "admin.test.mjs", "board.test.mjs")
	cmd.Env = append(os.Environ(), "ROOMS_SCENE="+string(line))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node --test: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	if dir := os.Getenv("BOARD_PICTURES"); dir != "" {
		shrinkPictures(t, dir)
	}
}

// needsModules skips the test where `npm ci` was not run, which only a person at work may leave out.
func needsModules(t *testing.T) {
	t.Helper()
	_, err := os.Stat(filepath.Join("node_modules", "playwright-core", "package.json"))
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal("the browser's driver is not installed: run npm ci in test/board (make test does)")
	default:
		t.Skip("the browser's driver is not installed: run npm ci in test/board (make test does)")
	}
}

// needsBrowser finds Chromium, or installs it where that can be done. Only a person at work may be without one.
func needsBrowser(t *testing.T) string {
	t.Helper()
	if path := findBrowser(); path != "" {
		return path
	}
	reason := "there is no Chromium: install it, or name one with ROOMS_BROWSER"
	if apt, err := exec.LookPath("apt-get"); err == nil && os.Geteuid() == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
		defer cancel()
		patient := apt + " -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "
		script := patient + "update && " + patient +
			"install -y --no-install-recommends chromium fonts-dejavu-core fonts-noto-color-emoji"
		cmd := exec.CommandContext(ctx, "sh", "-c", script)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			reason += "; installing it gave " + err.Error() + ": " + string(out[max(0, len(out)-500):])
		}
		if path := findBrowser(); path != "" {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
	return ""
}

func findBrowser() string {
	if path := os.Getenv("ROOMS_BROWSER"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
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
