package localplane_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/agentrooms/agentrooms/internal/controlplane"
	"github.com/agentrooms/agentrooms/internal/localplane"
)

// parentEnv makes this test binary play the parent that gets killed: it starts a plane on that folder and only waits.
const parentEnv = "LOCALPLANE_TEST_PARENT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		playParent(dir)
		return
	}
	os.Exit(m.Run())
}

func playParent(dir string) {
	plane, err := localplane.Start(context.Background(), localplane.Options{DataDir: dir, Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	pids := map[string]int{}
	for _, name := range controlplane.Names {
		pids[name] = plane.PID(name)
	}
	_ = json.NewEncoder(os.Stdout).Encode(pids)
	select {}
}

func TestAPlaneWhoseParentIsKilledDiesAndStartsAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+dir)
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(parent.Start()).To(gomega.Succeed())
	line, err := bufio.NewReader(out).ReadBytes('\n')
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var pids map[string]int
	g.Expect(json.Unmarshal(line, &pids)).To(gomega.Succeed())
	g.Expect(pids).To(gomega.HaveLen(len(controlplane.Names)))

	_, err = localplane.Start(t.Context(), localplane.Options{DataDir: dir})
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(fmt.Sprintf("in use by process %d", parent.Process.Pid))))

	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	write(t, clientFor(t, config), "acknowledged")
	g.Expect(parent.Process.Kill()).To(gomega.Succeed())
	_ = parent.Wait()
	for name, pid := range pids {
		g.Eventually(func() bool { return running(pid) }, 5*time.Second, 10*time.Millisecond).Should(gomega.BeFalse(), name)
	}
	plane := start(t, localplane.Options{DataDir: dir})
	client := clientFor(t, plane.AdminConfig())
	_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "acknowledged", metav1.GetOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
}

// running says whether a process runs; a zombie that nobody has reaped yet does not count.
func running(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, found := strings.Cut(string(stat), ") ")
	return err != nil || !found || !strings.HasPrefix(state, "Z")
}
