// Package harness runs Agent Rooms as a user does, with the real binary, and talks to it as agents do, with an MCP client.
// The tests that look at the system from outside are built on it.
package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// Agent is an agent of the plane, as `rooms up --json` reports it.
type Agent struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Owner     string `json:"owner"`
	Plate     string `json:"plate"`
	TokenFile string `json:"token_file"`
}

// Token of the agent.
func (a Agent) Token(tb testing.TB) string {
	tb.Helper()
	raw, err := os.ReadFile(a.TokenFile)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// Plane is a running `rooms up`.
type Plane struct {
	Kubeconfig      string         `json:"kubeconfig"`
	MCP             string         `json:"mcp"`
	Replicas        []string       `json:"mcp_replicas"`
	Board           string         `json:"board"`
	BoardReplicas   []string       `json:"board_replicas"`
	SignIn          string         `json:"sign_in"`
	Metrics         string         `json:"metrics"`
	MetricsReplicas []string       `json:"metrics_replicas"`
	ManagerMetrics  string         `json:"manager_metrics"`
	Agents          []Agent        `json:"agents"`
	Room            string         `json:"room"`
	PIDs            map[string]int `json:"pids"`

	// DataDir of the plane, kept when it is stopped.
	DataDir string `json:"data_dir"`
	// AuditLog of the API server.
	AuditLog string `json:"-"`
	// Client reaches the API server as the admin.
	Client client.Client `json:"-"`
	// Config of the client.
	Config *rest.Config `json:"-"`

	cmd  *exec.Cmd
	args []string
	log  *os.File
	done chan struct{}
}

// Root is the top of the project's tree.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

var buildOnce = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("ROOMS_BIN"); bin != "" {
		return bin, nil
	}
	dir, err := os.MkdirTemp("", "rooms-bin-")
	if err != nil {
		return "", fmt.Errorf("making a folder for the binary: %w", err)
	}
	bin := filepath.Join(dir, "rooms")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/rooms")
	cmd.Dir = Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building rooms: %w\n%s", err, out)
	}
	return bin, nil
})

// Binary gives the rooms binary: ROOMS_BIN, or one built from the tree.
func Binary(tb testing.TB) string {
	tb.Helper()
	watchSources(tb)
	bin, err := buildOnce()
	if err != nil {
		tb.Fatal(err)
	}
	return bin
}

// watchSources makes a test's result depend on the sources of the binary: go test caches results by what the test itself
// looks at.
func watchSources(tb testing.TB) {
	tb.Helper()
	for _, top := range []string{"api", "cmd", "config", "controllers", "internal", "mcpbridge"} {
		err := filepath.WalkDir(filepath.Join(Root(), top), func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			_, err = d.Info()
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// Options of a plane.
type Options struct {
	// Bridges is how many replicas run: 1 when zero.
	Bridges int
	// RateLimits keeps the limits on.
	RateLimits bool
	// DataDir is used and kept; a temporary one when empty.
	DataDir string
	// NoDemo leaves the demo out.
	NoDemo bool
	// Args are further flags of `rooms up`.
	Args []string
}

// Up starts a plane and waits until it is ready. It is stopped with the test.
func Up(tb testing.TB, o Options) *Plane {
	tb.Helper()
	if o.Bridges == 0 {
		o.Bridges = 1
	}
	if o.DataDir == "" {
		o.DataDir = tb.TempDir()
	}
	p := &Plane{AuditLog: filepath.Join(tb.TempDir(), "audit.log")}
	p.args = []string{
		"up", "--json", "--port=0", "--data-dir=" + o.DataDir, fmt.Sprintf("--bridges=%d", o.Bridges), "--audit-log=" + p.AuditLog,
	}
	if !o.RateLimits {
		p.args = append(p.args, "--rate-limits=off")
	}
	if o.NoDemo {
		p.args = append(p.args, "--no-demo")
	}
	p.args = append(p.args, o.Args...)
	tb.Cleanup(func() { p.Stop(tb) })
	p.Start(tb)
	return p
}

// readyTimeout is how long a plane may take: on a busy machine with two cores much longer than usual.
const readyTimeout = 3 * time.Minute

// Start starts the plane, or starts it again on the same folder after Stop or Kill.
func (p *Plane) Start(tb testing.TB) {
	tb.Helper()
	logFile, err := os.CreateTemp("", "rooms-up-*.log")
	if err != nil {
		tb.Fatal(err)
	}
	p.log = logFile
	p.cmd = exec.Command(Binary(tb), p.args...)
	p.cmd.Stderr = logFile
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	line := make(chan string, 1)
	p.done = make(chan struct{})
	go func() {
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 1<<20)
		if scanner.Scan() {
			line <- scanner.Text()
		}
		_ = p.cmd.Wait()
		close(p.done)
	}()
	select {
	case text := <-line:
		if err := json.Unmarshal([]byte(text), p); err != nil {
			tb.Fatalf("reading what `rooms up --json` printed: %v\n%s", err, text)
		}
	case <-p.done:
		tb.Fatalf("`rooms up` ended before it was ready:\n%s", p.stderr())
	case <-time.After(readyTimeout):
		tb.Fatalf("`rooms up` was not ready in %s:\n%s", readyTimeout, p.stderr())
	}
	p.connect(tb)
}

func (p *Plane) stderr() string {
	raw, _ := os.ReadFile(p.log.Name())
	return string(raw[max(0, len(raw)-8000):])
}

func (p *Plane) connect(tb testing.TB) {
	tb.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		tb.Fatal(err)
	}
	config.QPS = -1
	p.Config = config
	if p.Client, err = client.New(config, client.Options{Scheme: Scheme(tb)}); err != nil {
		tb.Fatal(err)
	}
}

// Scheme knows the kinds of Kubernetes and of Agent Rooms.
func Scheme(tb testing.TB) *apiruntime.Scheme {
	tb.Helper()
	scheme := apiruntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		tb.Fatal(err)
	}
	return scheme
}

// Stop stops the plane as Ctrl-C does.
func (p *Plane) Stop(tb testing.TB) {
	tb.Helper()
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		tb.Errorf("`rooms up` did not stop in a minute:\n%s", p.stderr())
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	_ = p.log.Close()
	if !tb.Failed() {
		_ = os.Remove(p.log.Name())
	}
}

// Kill kills `rooms up` itself without a word, as the kernel does when memory runs out. Its children must die with it.
func (p *Plane) Kill(tb testing.TB) {
	tb.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		tb.Fatal(err)
	}
	<-p.done
	_ = p.log.Close()
	_ = os.Remove(p.log.Name())
}

// Agent gives an agent of the demo by name.
func (p *Plane) Agent(tb testing.TB, name string) Agent {
	tb.Helper()
	for _, a := range p.Agents {
		if a.Name == name {
			return a
		}
	}
	tb.Fatalf("there is no agent %s: %v", name, p.Agents)
	return Agent{}
}

// Kubectl runs kubectl on the plane and gives what it printed.
func (p *Plane) Kubectl(tb testing.TB, stdin string, args ...string) (string, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig", p.Kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
