package up

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentrooms/agentrooms/internal/datadir"
	"github.com/agentrooms/agentrooms/internal/install"
	"github.com/agentrooms/agentrooms/internal/supervise"
)

// The service accounts of the two processes, as config/rbac has them.
const (
	managerAccount = "agentrooms-manager"
	bridgeAccount  = "agentrooms-bridge"
)

const (
	probeTimeout = 2 * time.Second
)

type managerProcess struct {
	*supervise.Process
	health, metrics int
}

type bridgeProcess struct {
	*supervise.Process
	port, metrics int
}

// startProcesses starts the manager and the bridges, each with its own identity.
func (s *system) startProcesses(ctx context.Context) error {
	s.say("starting the manager and the bridge")
	if err := s.startManager(ctx); err != nil {
		return err
	}
	kubeconfig, err := s.kubeconfigFor(ctx, bridgeAccount)
	if err != nil {
		return fmt.Errorf("making the bridge's identity: %w", err)
	}
	for i := range s.opts.Bridges {
		if err := s.startBridge(ctx, i, kubeconfig); err != nil {
			return err
		}
	}
	return nil
}

func (s *system) startManager(ctx context.Context) (err error) {
	kubeconfig, err := s.kubeconfigFor(ctx, managerAccount)
	if err != nil {
		return fmt.Errorf("making the manager's identity: %w", err)
	}
	m := &s.manager
	if m.health, err = s.dir.Port(ctx, "manager-health"); err != nil {
		return err
	}
	if m.metrics, err = s.dir.Port(ctx, "manager-metrics"); err != nil {
		return err
	}
	flags := []string{
		"--kubeconfig", kubeconfig,
		"--metrics-bind-address", datadir.Loopback(m.metrics),
		"--health-probe-bind-address", datadir.Loopback(m.health),
		"--blob-url", s.blobURL(),
		"--blob-grace", s.opts.BlobGrace.String(),
		"--file-grace", s.opts.FileGrace.String(),
	}
	if s.plane == nil {
		// Another cluster may have a manager already. On our own there is none but this one, which must not wait for the
		// Lease of its former self to run out when it was killed.
		flags = append(flags, "--leader-elect", "--leader-election-namespace", install.Namespace)
	}
	m.Process, err = s.startRooms("manager", "manager", flags...)
	return err
}

func (s *system) startBridge(ctx context.Context, i int, kubeconfig string) (err error) {
	name := fmt.Sprintf("bridge-%d", i)
	b := bridgeProcess{}
	if b.port, err = s.bridgePort(ctx, i, name); err != nil {
		return err
	}
	if b.metrics, err = s.dir.Port(ctx, name+"-metrics"); err != nil {
		return err
	}
	limits := "on"
	if s.opts.RateLimitsOff {
		limits = "off"
	}
	if i == 0 {
		s.firstPort = b.port
	}
	flags, err := s.boardFlags()
	if err != nil {
		return err
	}
	b.Process, err = s.startRooms(name, "bridge", append(flags,
		"--kubeconfig", kubeconfig,
		"--listen", datadir.Loopback(b.port),
		"--metrics-bind-address", datadir.Loopback(b.metrics),
		"--rate-limits", limits,
		"--blob-url", s.blobURL(),
		"--blob-public-url", s.transferURL(),
		"--blob-grace", s.opts.BlobGrace.String())...)
	s.bridges = append(s.bridges, b)
	return err
}

// blobURL is where the contents of files are: what was asked for, or a folder beside everything else.
func (s *system) blobURL() string {
	if s.opts.BlobURL != "" {
		return s.opts.BlobURL
	}
	return (&url.URL{Scheme: "file", Path: s.dir.Path("blobs")}).String()
}

// transferURL is where clients reach the contents of files in a folder: at the first bridge. What it signs is good at any.
func (s *system) transferURL() string {
	if s.opts.BlobURL != "" && !strings.HasPrefix(s.opts.BlobURL, "file:") {
		return s.opts.BlobPublicURL
	}
	return "http://" + datadir.Loopback(s.firstPort) + "/transfer"
}

// bridgePort is the port that was asked for, for the first bridge, and a free one for the others.
func (s *system) bridgePort(ctx context.Context, i int, name string) (int, error) {
	if i > 0 || s.opts.Port == 0 {
		return s.dir.Port(ctx, name)
	}
	return s.opts.Port, s.checkPort(ctx)
}

func (s *system) startRooms(name, command string, flags ...string) (*supervise.Process, error) {
	return s.supervisor.Start(supervise.Spec{
		Name: name,
		Path: s.opts.Executable,
		Args: append([]string{command}, flags...),
		Log:  s.dir.Path("logs", name+".log"),
	})
}

// awaitProcesses waits until the manager and every bridge say that they are ready.
func (s *system) awaitProcesses(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return supervise.AwaitReady(ctx, s.manager.Process, probe(s.manager.health)) })
	for _, bridge := range s.bridges {
		group.Go(func() error { return supervise.AwaitReady(ctx, bridge.Process, probe(bridge.port)) })
	}
	return group.Wait()
}

// probe asks a process of ours whether it is ready.
func probe(port int) func(context.Context) error {
	client := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	url := "http://" + datadir.Loopback(port) + "/readyz"
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}
