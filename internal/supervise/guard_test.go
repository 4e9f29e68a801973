package supervise_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/agentrooms/agentrooms/internal/supervise"
)

// guardEnv makes this test binary play the guard, guardParentEnv the parent that gets killed.
const (
	guardEnv       = "SUPERVISE_TEST_GUARD"
	guardParentEnv = "SUPERVISE_TEST_GUARD_PARENT"
)

// playGuarded plays what the environment says, and says false when it says nothing.
func playGuarded() bool {
	switch {
	case os.Getenv(guardEnv) != "":
		code, err := supervise.Guard(os.Args[1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	case os.Getenv(guardParentEnv) != "":
		_, _ = shell(os.Getenv(guardParentEnv)).Run(context.Background())
		return true
	}
	return false
}

// shell gives a shell's command line as a guarded command.
func shell(line string) supervise.Command {
	return supervise.Command{Guard: []string{os.Args[0]}, Env: []string{guardEnv + "=1"}, Args: []string{"sh", "-c", line}}
}

func readPIDs(t *testing.T, file string, n int) []int {
	t.Helper()
	g := gomega.NewWithT(t)
	var pids []int
	g.Eventually(func() int {
		pids = nil
		raw, _ := os.ReadFile(file)
		for field := range strings.FieldsSeq(string(raw)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		return len(pids)
	}, "10s", "10ms").Should(gomega.Equal(n))
	return pids
}

// nested starts a grandchild beside the command and writes the ids of both.
func nested(file string) string {
	return fmt.Sprintf("sleep 300 & echo $! >> %s; echo $$ >> %s; wait", file, file)
}

func TestACommandGetsItsInputAndGivesItsOutputAndCode(t *testing.T) {
	for _, tc := range []struct {
		line string
		code int
		out  string
	}{
		{"cat; exit 3", 3, "hello"},
		{"exit 0", 0, ""},
		{"kill -9 $$", 128 + 9, ""},
		{"/no/such/program", 127, ""},
	} {
		var out bytes.Buffer
		c := shell(tc.line)
		c.Stdin, c.Stdout = strings.NewReader("hello"), &out
		exit, err := c.Run(t.Context())
		if err != nil || exit.Code != tc.code || exit.Cause != nil || out.String() != tc.out {
			t.Errorf("%s: %+v %v, wrote %q; want code %d and %q", tc.line, exit, err, out.String(), tc.code, tc.out)
		}
	}
}

func TestACommandThatDoesNotExistSaysSo(t *testing.T) {
	c := shell("")
	var complaint bytes.Buffer
	c.Args, c.Stderr = []string{"no-such-program-here"}, &complaint
	exit, err := c.Run(t.Context())
	if err != nil || exit.Code != 127 || !strings.Contains(complaint.String(), "no-such-program-here") {
		t.Errorf("%+v %v %q", exit, err, complaint.String())
	}
}

func TestTheWholeGroupIsKilledWhenTheContextEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	go func() {
		readPIDs(t, file, 2)
		cancel(why)
	}()
	exit, err := shell("trap '' TERM; " + nested(file)).Run(ctx)
	if err != nil || !errors.Is(exit.Cause, why) || exit.Code != 128+9 {
		t.Errorf("%+v %v", exit, err)
	}
	assertDead(t, file)
}

func assertDead(t *testing.T, file string) {
	t.Helper()
	for _, pid := range readPIDs(t, file, 2) {
		gomega.NewWithT(t).Eventually(func() bool { return running(pid) }, "5s", "10ms").Should(gomega.BeFalse())
	}
}

func TestACommandMayEndInOrderWhenThereIsPatience(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		readPIDs(t, filepath.Join(dir, "ready"), 1)
		cancel(context.Canceled)
	}()
	c := shell("trap 'echo bye; exit 7' TERM; echo $$ > " + filepath.Join(dir, "ready") + "; while :; do sleep 0.01; done")
	var out bytes.Buffer
	c.Stdout, c.Patience = &out, func(error) time.Duration { return time.Minute }
	exit, err := c.Run(ctx)
	if err != nil || exit.Code != 7 || out.String() != "bye\n" {
		t.Errorf("%+v %v, wrote %q", exit, err, out.String())
	}
}

func TestNothingOfACommandOutlivesIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	exit, err := shell(strings.TrimSuffix(nested(file), "; wait")).Run(t.Context())
	if err != nil || exit.Code != 0 {
		t.Errorf("%+v %v", exit, err)
	}
	assertDead(t, file)
}

func TestNothingOfACommandOutlivesItsKilledParent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), guardParentEnv+"="+nested(file))
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range readPIDs(t, file, 2) {
		if !running(pid) {
			t.Errorf("process %d of the command is dead before anything was killed", pid)
		}
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	assertDead(t, file)
}

func TestAGuardIsNotStartedByHand(t *testing.T) {
	cmd := exec.Command(os.Args[0], "true")
	cmd.Env = append(os.Environ(), guardEnv+"=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 126 || !strings.Contains(string(out), "not by hand") {
		t.Errorf("%v %s", err, out)
	}
}

func TestNothingOfACommandOutlivesItsKilledGuard(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	go func() {
		pids := readPIDs(t, file, 2)
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pids[1]))
		if err != nil {
			t.Error(err)
			return
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		guard, err := strconv.Atoi(strings.Fields(rest)[1])
		if err != nil || syscall.Kill(guard, syscall.SIGKILL) != nil {
			t.Errorf("the guard could not be killed: %v", err)
		}
	}()
	exit, err := shell(nested(file)).Run(t.Context())
	if err != nil || exit.Code != 128+9 || exit.Cause != nil {
		t.Errorf("%+v %v", exit, err)
	}
	assertDead(t, file)
}
