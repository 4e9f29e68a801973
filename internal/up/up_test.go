package up

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/install"
	"github.com/agentrooms/agentrooms/internal/localplane"
)

const patience = 30 * time.Second

// run runs everything until the test ends or stop is called; stop returns what Run returned.
func run(t *testing.T, opts Options) (report Report, stop func() error) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	if os.Getenv(adminEnv) == "" {
		t.Setenv(adminEnv, filepath.Join(opts.DataDir, "kubeconfig"))
	}
	ctx, cancel := context.WithCancel(context.Background())
	reports, result := make(chan Report, 1), make(chan error, 1)
	opts.Executable, opts.Progress = os.Args[0], os.Stderr
	opts.Ready = func(r Report) error { reports <- r; return nil }
	go func() { result <- Run(ctx, opts); close(result) }()
	stop = func() error { cancel(); return <-result }
	t.Cleanup(func() { _ = stop() })
	select {
	case report = <-reports:
	case err := <-result:
		t.Fatalf("running: %v", err)
	}
	return report, stop
}

func clientFor(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatalf("reading the kubeconfig: %v", err)
	}
	installer, err := install.New(config)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return installer.Client()
}

func TestEverythingRunsIsReportedAndStops(t *testing.T) {
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	report, stop := run(t, Options{DataDir: dir, Bridges: 2})
	c := clientFor(t, report.Kubeconfig)

	g.Expect(report.MCPReplicas).To(gomega.HaveLen(2))
	g.Expect(report.MCP).To(gomega.Equal(report.MCPReplicas[0]))
	for _, mcp := range report.MCPReplicas {
		response, err := http.Get(strings.TrimSuffix(mcp, "/mcp") + "/readyz")
		g.Expect(err).NotTo(gomega.HaveOccurred())
		_ = response.Body.Close()
		g.Expect(response.StatusCode).To(gomega.Equal(http.StatusOK))
	}
	g.Expect(report.Room).To(gomega.MatchRegexp("^01[0-9A-HJKMNP-TV-Z]{24}$"))
	want := []AgentReport{
		{Name: "cc", Namespace: "demo", Owner: "said", TokenFile: filepath.Join(dir, "tokens", "demo-cc.token")},
		{Name: "dd", Namespace: "demo", Owner: "maya", TokenFile: filepath.Join(dir, "tokens", "demo-dd.token")},
	}
	got := make([]AgentReport, len(report.Agents))
	copy(got, report.Agents)
	for i := range got {
		g.Expect(got[i].Plate).To(gomega.HavePrefix("BRNL-AGT-"))
		got[i].Plate = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	g.Expect(reviewed(t, c, report.Agents[0].TokenFile)).To(gomega.Equal("system:serviceaccount:demo:cc"))
	info, err := os.Stat(report.Agents[0].TokenFile)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(info.Mode().Perm()).To(gomega.Equal(os.FileMode(0o600)))

	aKilledBridgeComesBack(t, report)
	aLaterAgentGetsItsToken(t, c, dir)
	g.Expect(report.PIDs).To(gomega.HaveLen(6))
	g.Expect(stop()).To(gomega.Succeed())
	for name, pid := range report.PIDs {
		g.Expect(syscall.Kill(pid, 0)).To(gomega.MatchError(syscall.ESRCH), name)
	}
}

// reviewed is whom the cluster takes the bearer of a token file for, when asked for the audience of Agent Rooms.
func reviewed(t *testing.T, c client.Client, file string) string {
	t.Helper()
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("reading the token: %v", err)
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: string(token), Audiences: []string{audience}}}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatalf("reviewing the token: %v", err)
	}
	return review.Status.User.Username
}

func aKilledBridgeComesBack(t *testing.T, report Report) {
	t.Helper()
	g := gomega.NewWithT(t)
	pid := report.PIDs["bridge-1"]
	g.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(gomega.Succeed())
	g.Eventually(func() error { return syscall.Kill(pid, 0) }, patience, 10*time.Millisecond).ShouldNot(gomega.Succeed())
	g.Eventually(func() error {
		response, err := http.Get(strings.TrimSuffix(report.MCPReplicas[1], "/mcp") + "/readyz")
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}, patience, 20*time.Millisecond).Should(gomega.Succeed())
}

func aLaterAgentGetsItsToken(t *testing.T, c client.Client, dir string) {
	t.Helper()
	g := gomega.NewWithT(t)
	meta := metav1.ObjectMeta{Namespace: "demo", Name: "late"}
	agent := &v1alpha1.Agent{ObjectMeta: meta, Spec: v1alpha1.AgentSpec{DisplayName: "late", Owner: "said",
		Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectServiceAccount, Name: "late"}}}}
	g.Expect(c.Create(t.Context(), agent)).To(gomega.Succeed())
	g.Expect(c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta})).To(gomega.Succeed())
	file := filepath.Join(dir, "tokens", "demo-late.token")
	g.Eventually(file, patience).Should(gomega.BeARegularFile())
	g.Expect(reviewed(t, c, file)).To(gomega.Equal("system:serviceaccount:demo:late"))
	g.Expect(c.Delete(t.Context(), agent)).To(gomega.Succeed())
	g.Eventually(file, patience).ShouldNot(gomega.BeAnExistingFile())
}

func TestKilledAndStartedAgainItCarriesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	g := gomega.NewWithT(t)
	dir := t.TempDir()
	t.Setenv(adminEnv, filepath.Join(dir, "kubeconfig"))
	process := exec.Command(os.Args[0])
	process.Env, process.Stderr = append(os.Environ(), dirEnv+"="+dir), os.Stderr
	out, err := process.StdoutPipe()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(process.Start()).To(gomega.Succeed())
	line, err := bufio.NewReader(out).ReadBytes('\n')
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var first Report
	g.Expect(json.Unmarshal(line, &first)).To(gomega.Succeed())

	err = Run(t.Context(), Options{DataDir: dir, Bridges: 1})
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(fmt.Sprintf("in use by process %d", process.Process.Pid))))

	c := clientFor(t, first.Kubeconfig)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "acknowledged"}}
	g.Expect(c.Create(t.Context(), kept)).To(gomega.Succeed())
	g.Expect(process.Process.Kill()).To(gomega.Succeed())
	_ = process.Wait()

	second, _ := run(t, Options{DataDir: dir, Bridges: 1})
	g.Expect(second.MCP).To(gomega.Equal(first.MCP))
	g.Expect(second.Room).To(gomega.Equal(first.Room))
	g.Expect(second.Agents).To(gomega.Equal(first.Agents))
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(kept), kept)).To(gomega.Succeed(), "with the first start's kubeconfig")
}

func TestAClusterThatIsThereAlreadyIsUsed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	g := gomega.NewWithT(t)
	plane, err := localplane.Start(t.Context(), localplane.Options{DataDir: t.TempDir(), Progress: os.Stderr})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(plane.Stop)
	t.Setenv(adminEnv, plane.AdminKubeconfig())
	dir := t.TempDir()
	report, stop := run(t, Options{DataDir: dir, Bridges: 1, Kubeconfig: plane.AdminKubeconfig()})
	g.Expect(report.Kubeconfig).To(gomega.Equal(plane.AdminKubeconfig()))
	g.Expect(report.Agents).To(gomega.HaveLen(2))
	g.Expect(report.PIDs).To(gomega.HaveLen(2), "a manager and a bridge, no control plane")
	g.Expect(reviewed(t, clientFor(t, report.Kubeconfig), report.Agents[1].TokenFile)).To(gomega.Equal("system:serviceaccount:demo:dd"))
	g.Expect(stop()).To(gomega.Succeed())
	g.Expect(plane.Ready(t.Context())).To(gomega.Succeed(), "the cluster goes on without us")
}

func TestTokensAreRenewedAtHalfOfTheirLife(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	g := gomega.NewWithT(t)
	plane, err := localplane.Start(t.Context(), localplane.Options{DataDir: t.TempDir(), Progress: os.Stderr})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(plane.Stop)
	c := clientFor(t, plane.AdminKubeconfig())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cc"}}
	g.Expect(c.Create(t.Context(), account)).To(gomega.Succeed())

	keeper := newTokenKeeper(c, plane.Dir(), t.Logf)
	now := time.Now()
	keeper.now = func() time.Time { return now }
	kept := &token{namespace: "default", account: "cc", audiences: []string{audience}, file: "tokens/cc.token"}
	g.Expect(keeper.add(t.Context(), kept)).To(gomega.Succeed())
	read := func() string {
		content, err := os.ReadFile(plane.Dir().Path(kept.file))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		return string(content)
	}
	first := read()
	now = now.Add(tokenLife/2 - time.Minute)
	keeper.renew(t.Context())
	g.Expect(read()).To(gomega.Equal(first), "before half of its life")
	now = now.Add(2 * time.Minute)
	keeper.renew(t.Context())
	g.Expect(read()).NotTo(gomega.Equal(first), "after half of its life")
}

func TestAnAgentWithoutItsAccountIsToldOfOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	g := gomega.NewWithT(t)
	plane, err := localplane.Start(t.Context(), localplane.Options{DataDir: t.TempDir(), Progress: os.Stderr})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(plane.Stop)
	var said []string
	keeper := newTokenKeeper(clientFor(t, plane.AdminKubeconfig()), plane.Dir(), func(format string, args ...any) {
		said = append(said, fmt.Sprintf(format, args...))
	})
	agents := []v1alpha1.Agent{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cc"},
		Spec: v1alpha1.AgentSpec{Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectServiceAccount, Name: "nobody"}}}}}
	keeper.sync(t.Context(), agents)
	keeper.sync(t.Context(), agents)
	g.Expect(said).To(gomega.HaveLen(1))
	g.Expect(said[0]).To(gomega.ContainSubstring("default/nobody"))
	g.Expect(keeper.fileOf(&agents[0])).To(gomega.BeEmpty())
}

// A port that cannot be had is said before anything is started: the folder then holds nothing but its lock.
func TestAPortInUseIsSaidFirst(t *testing.T) {
	rooms := server.NewProtectedResourceMetadataHandler(server.ProtectedResourceMetadataConfig{
		Resource: "http://127.0.0.1/mcp", ResourceName: "Agent Rooms",
	})
	for name, c := range map[string]struct {
		handler http.Handler
		says    string
	}{
		"another bridge":  {rooms, "is in use by another bridge of Agent Rooms, likely of another `rooms up`"},
		"another program": {http.NotFoundHandler(), "is in use by another program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits a while for the port
			g := gomega.NewWithT(t)
			other := httptest.NewServer(c.handler)
			defer other.Close()
			port := other.Listener.Addr().(*net.TCPAddr).Port
			dir := t.TempDir()
			err := Run(t.Context(), Options{DataDir: dir, Bridges: 1, Port: port, Executable: os.Args[0]})
			g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(fmt.Sprintf("port %d %s", port, c.says))))
			g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("--port (0 for a free one)")))
			entries, err := os.ReadDir(dir)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(entries).To(gomega.HaveLen(2), "the lock and a .gitignore")
		})
	}
}

func TestAFolderThatCannotBeUsedIsSaidFirst(t *testing.T) {
	g := gomega.NewWithT(t)
	file := filepath.Join(t.TempDir(), "file")
	g.Expect(os.WriteFile(file, nil, 0o600)).To(gomega.Succeed())
	err := Run(t.Context(), Options{DataDir: file, Bridges: 1, Executable: os.Args[0]})
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("choose one that you may write to with --data-dir")))
	g.Expect((&Options{}).space()).To(gomega.BeNumerically(">", (&Options{Kubeconfig: "x"}).space()))
}

// Who loses its folder stops, so that whoever starts on the path anew is alone there.
func TestALostFolderEndsIt(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	g := gomega.NewWithT(t)
	dir := filepath.Join(t.TempDir(), "data")
	t.Setenv(adminEnv, filepath.Join(dir, "kubeconfig"))
	result, ready := make(chan error, 1), make(chan Report, 1)
	go func() {
		result <- Run(t.Context(), Options{DataDir: dir, Bridges: 1, Executable: os.Args[0], Progress: os.Stderr,
			Ready: func(r Report) error { ready <- r; return nil }})
	}()
	var report Report
	g.Eventually(ready, 2*time.Minute).Should(gomega.Receive(&report))
	g.Eventually(func() error { return os.RemoveAll(dir) }, patience).Should(gomega.Succeed(), "in spite of what is written meanwhile")
	var err error
	g.Eventually(result, patience).Should(gomega.Receive(&err))
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("the data folder " + dir + " was removed or replaced")))
	for name, pid := range report.PIDs {
		g.Expect(syscall.Kill(pid, 0)).To(gomega.MatchError(syscall.ESRCH), name)
	}
	g.Expect(dir).NotTo(gomega.BeADirectory(), "what stops makes nothing anew")
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	for name, opts := range map[string]Options{
		"--bridges":   {Bridges: 0},
		"--port":      {Bridges: 1, Port: 70000},
		"--audit-log": {Bridges: 1, AuditLog: "log", Kubeconfig: "config"},
	} {
		if err := opts.complete(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}

func TestTheReportForPeopleCanBePasted(t *testing.T) {
	g := gomega.NewWithT(t)
	file := filepath.Join(t.TempDir(), "cc.token")
	g.Expect(os.WriteFile(file, []byte("secret-token"), 0o600)).To(gomega.Succeed())
	report := Report{Kubeconfig: "/data/kubeconfig", MCP: "http://127.0.0.1:7600/mcp", PID: 42,
		MCPReplicas: []string{"http://127.0.0.1:7600/mcp"}, Room: "01K",
		Agents: []AgentReport{{Name: "cc", Namespace: "demo", Owner: "said", Plate: "BRNL-AGT-1", TokenFile: file}}}
	var text bytes.Buffer
	g.Expect(report.WriteText(&text)).To(gomega.Succeed())
	g.Expect(text.String()).To(gomega.ContainSubstring("export KUBECONFIG=/data/kubeconfig"))
	_, after, found := strings.Cut(text.String(), "good for a day):\n\n")
	g.Expect(found).To(gomega.BeTrue(), text.String())
	var pasted struct {
		MCPServers map[string]struct {
			URL     string
			Headers map[string]string
		}
	}
	g.Expect(json.NewDecoder(strings.NewReader(after)).Decode(&pasted)).To(gomega.Succeed(), after)
	server := pasted.MCPServers["agent-rooms"]
	g.Expect(server.URL).To(gomega.Equal(report.MCP))
	g.Expect(server.Headers).To(gomega.HaveKeyWithValue("Authorization", "Bearer secret-token"))

	text.Reset()
	g.Expect(Report{MCP: report.MCP}.WriteText(&text)).To(gomega.Succeed())
	g.Expect(text.String()).To(gomega.ContainSubstring("kubectl create token SERVICEACCOUNT"))
	text.Reset()
	g.Expect(report.WriteJSON(&text)).To(gomega.Succeed())
	g.Expect(strings.Count(text.String(), "\n")).To(gomega.Equal(1))
}
