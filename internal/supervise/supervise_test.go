package supervise_test

import (
	"bufio"
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

// parentEnv makes this test binary play the parent whose death is tested: it starts a child and then only waits.
const parentEnv = "SUPERVISE_TEST_PARENT_LOG"

func TestMain(m *testing.M) {
	if log := os.Getenv(parentEnv); log != "" {
		playParent(log)
		return
	}
	if playGuarded() {
		return
	}
	os.Exit(m.Run())
}

func playParent(log string) {
	p, err := supervise.New(nil).Start(supervise.Spec{Name: "sleeper", Path: "/bin/sleep", Args: []string{"600"}, Log: log})
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println(p.PID())
	select {}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// running is like alive, but a zombie that nobody has reaped yet does not count.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return alive(pid)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func sleeper(t *testing.T) supervise.Spec {
	t.Helper()
	return supervise.Spec{Name: "sleeper", Path: "/bin/sleep", Args: []string{"600"}, Log: filepath.Join(t.TempDir(), "log")}
}

func TestAKilledProcessIsStartedAgain(t *testing.T) {
	g := gomega.NewWithT(t)
	s := supervise.New(t.Logf)
	defer s.Close()
	p, err := s.Start(sleeper(t))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	first := p.PID()
	g.Expect(p.Kill()).To(gomega.Succeed())
	g.Eventually(p.PID, 5*time.Second, 10*time.Millisecond).ShouldNot(gomega.Equal(first))
	g.Expect(alive(first)).To(gomega.BeFalse())
	g.Eventually(p.Restarts).Should(gomega.Equal(1))
	g.Expect(alive(p.PID())).To(gomega.BeTrue())
}

func TestCloseEndsWhatIgnoresSIGTERM(t *testing.T) {
	g := gomega.NewWithT(t)
	s := supervise.New(t.Logf)
	log := filepath.Join(t.TempDir(), "log")
	stubborn, err := s.Start(supervise.Spec{Name: "stubborn", Path: "/bin/sh", Log: log, Grace: 200 * time.Millisecond,
		Args: []string{"-c", `trap "" TERM; echo trapped; while :; do sleep 0.05; done`}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Eventually(func() string { return supervise.Tail(log, 1) }, 5*time.Second).Should(gomega.Equal("trapped"))
	pid := stubborn.PID()
	s.Close()
	g.Expect(alive(pid)).To(gomega.BeFalse())
	_, err = s.Start(sleeper(t))
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("closed")))
}

func TestAwaitReadyShowsTheLogOfWhatKeepsDying(t *testing.T) {
	g := gomega.NewWithT(t)
	s := supervise.New(t.Logf)
	defer s.Close()
	p, err := s.Start(supervise.Spec{Name: "broken", Path: "/bin/sh", Args: []string{"-c", "echo no such flag; exit 1"},
		Log: filepath.Join(t.TempDir(), "log")})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	err = supervise.AwaitReady(t.Context(), p, func(context.Context) error { return errors.New("not ready") })
	g.Expect(err).To(gomega.MatchError(gomega.And(gomega.ContainSubstring("broken"), gomega.ContainSubstring("no such flag"))))
}

func TestAChildDiesWithItsKilledParent(t *testing.T) {
	g := gomega.NewWithT(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+filepath.Join(t.TempDir(), "log"))
	out, err := parent.StdoutPipe()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(parent.Start()).To(gomega.Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(gomega.HaveOccurred())
	child, err := strconv.Atoi(strings.TrimSpace(line))
	g.Expect(err).NotTo(gomega.HaveOccurred(), line)
	g.Expect(alive(child)).To(gomega.BeTrue())

	g.Expect(parent.Process.Kill()).To(gomega.Succeed())
	_ = parent.Wait()
	g.Eventually(func() bool { return running(child) }, 5*time.Second, 10*time.Millisecond).Should(gomega.BeFalse())
}
