package localplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/agentrooms/agentrooms/internal/controlplane"
	"github.com/agentrooms/agentrooms/internal/datadir"
	"github.com/agentrooms/agentrooms/internal/supervise"
)

const (
	// startTimeout bounds a start once the programs are built.
	startTimeout = 2 * time.Minute
	// leaveTimeout is how long Stop waits for the ports to be free.
	leaveTimeout = 10 * time.Second
	probeTimeout = 2 * time.Second
)

// Options says what to start and where.
type Options struct {
	// DataDir is the folder to keep everything in; empty means .rooms in the working directory.
	DataDir string
	// Dir is a folder that the caller already holds, in place of DataDir. Stop leaves it to the caller.
	Dir *datadir.Dir
	// Assets are the programs. The zero value finds them, or builds them, which can take minutes.
	Assets controlplane.Assets
	// AuditLog is the file for the API server's audit log, one JSON event a line; empty means no log.
	AuditLog string
	// User is whom the admin's kubeconfig speaks as; empty means DefaultUser.
	User string
	// Progress is told what happens, in lines for a person. Nil discards it.
	Progress io.Writer
}

// Plane is a running control plane.
type Plane struct {
	opts       Options
	assets     controlplane.Assets
	dir        *datadir.Dir
	ownsDir    bool
	supervisor *supervise.Supervisor
	authority  *authority
	admin      *rest.Config
	adminToken string
	url        string
	stop       sync.Once

	port, etcdPort, etcdPeerPort int

	processes []*supervise.Process
}

// Start starts a control plane and returns when its API is ready. The context bounds the start only: what has been
// started runs until Stop, or until this process ends, however it ends.
func Start(ctx context.Context, opts Options) (*Plane, error) {
	p, err := newPlane(opts)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		p.Stop() //nolint:contextcheck // what was started has to go, also when ctx has ended
		return nil, err
	}
	return p, nil
}

func newPlane(opts Options) (*Plane, error) {
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	p := &Plane{opts: opts, dir: opts.Dir}
	if p.dir == nil {
		path := opts.DataDir
		if path == "" {
			path = datadir.Default
		}
		dir, err := datadir.Open(path)
		if err != nil {
			return nil, err
		}
		p.dir, p.ownsDir = dir, true
	}
	if opts.AuditLog != "" {
		path, err := filepath.Abs(opts.AuditLog)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("finding the audit log's folder: %w", err), p.closeDir())
		}
		p.opts.AuditLog = path
	}
	p.supervisor = supervise.New(func(format string, args ...any) {
		_, _ = fmt.Fprintf(opts.Progress, format+"\n", args...)
	})
	return p, nil
}

func (p *Plane) start(ctx context.Context) error {
	if err := p.findAssets(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	if err := p.prepare(ctx); err != nil {
		return fmt.Errorf("preparing the control plane: %w", err)
	}
	if _, err := p.run(p.etcdSpec()); err != nil {
		return err
	}
	// The API server waits for etcd by itself, and so saves the time that etcd takes.
	server, err := p.run(p.apiServerSpec())
	if err != nil {
		return err
	}
	if err := supervise.AwaitReady(ctx, server, p.probe()); err != nil {
		return err
	}
	kubeconfig, err := p.Kubeconfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	_, err = p.run(p.controllerManagerSpec(kubeconfig))
	return err
}

func (p *Plane) findAssets(ctx context.Context) (err error) {
	p.assets = p.opts.Assets
	if p.assets == (controlplane.Assets{}) {
		p.assets, err = controlplane.Find(ctx, controlplane.Options{Progress: p.opts.Progress})
	}
	if err != nil {
		return fmt.Errorf("finding the control plane's programs: %w", err)
	}
	return nil
}

func (p *Plane) user() string {
	if p.opts.User != "" {
		return p.opts.User
	}
	return DefaultUser
}

// prepare makes what the programs need: folders, ports, certificates, the audit policy and the admin's kubeconfig.
func (p *Plane) prepare(ctx context.Context) (err error) {
	if _, err := p.dir.MakeDir("logs"); err != nil {
		return err
	}
	for name, port := range map[string]*int{"apiserver": &p.port, "etcd": &p.etcdPort, "etcd-peer": &p.etcdPeerPort} {
		if *port, err = p.dir.Port(ctx, name); err != nil {
			return err
		}
	}
	p.url = "https://" + datadir.Loopback(p.port)
	if err := p.prepareIdentities(); err != nil {
		return err
	}
	if p.opts.AuditLog != "" {
		if err := p.dir.WriteFile(auditPolicyFile, []byte(auditPolicy), 0o600); err != nil {
			return err
		}
	}
	if err := p.prepareToken(); err != nil {
		return err
	}
	if p.admin, err = p.Config(p.user(), adminGroup); err != nil {
		return err
	}
	return p.writeKubeconfig(adminKubeconfig, p.user(), adminGroup)
}

func (p *Plane) prepareIdentities() (err error) {
	if err := ensureSigningKey(p.dir); err != nil {
		return err
	}
	if p.authority, err = loadAuthority(p.dir, clusterCA); err != nil {
		return err
	}
	etcd, err := loadAuthority(p.dir, etcdCA)
	if err != nil {
		return err
	}
	for name, issuer := range map[string]*authority{apiServer: p.authority, etcdServer: etcd, etcdClient: etcd} {
		id, err := issuer.server(name)
		if err != nil {
			return err
		}
		if err := writeIdentity(p.dir, name, id); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plane) run(spec supervise.Spec) (*supervise.Process, error) {
	process, err := p.supervisor.Start(spec)
	if err != nil {
		return nil, err
	}
	p.processes = append(p.processes, process)
	return process, nil
}

// probe asks the API server whether it is ready.
func (p *Plane) probe() func(context.Context) error {
	client, err := rest.HTTPClientFor(p.admin)
	if err != nil {
		return func(context.Context) error { return err }
	}
	client.Timeout = probeTimeout
	return func(ctx context.Context) error { return get(ctx, client, p.url+"/readyz") }
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// Ready asks once whether the API server is ready.
func (p *Plane) Ready(ctx context.Context) error { return p.probe()(ctx) }

// Dir is the folder that holds the plane's data.
func (p *Plane) Dir() *datadir.Dir { return p.dir }

// URL is the address of the API.
func (p *Plane) URL() string { return p.url }

// Kill sends SIGKILL to one of the plane's programs, by its name in package controlplane. It is started again like after
// any other death.
func (p *Plane) Kill(component string) error {
	process, err := p.process(component)
	if err != nil {
		return err
	}
	return process.Kill()
}

// PID is the present process id of one of the plane's programs, or 0 where there is none.
func (p *Plane) PID(component string) int {
	process, err := p.process(component)
	if err != nil {
		return 0
	}
	return process.PID()
}

func (p *Plane) process(component string) (*supervise.Process, error) {
	i := slices.IndexFunc(p.processes, func(process *supervise.Process) bool { return process.Name() == component })
	if i < 0 {
		return nil, fmt.Errorf("the control plane runs no %q", component)
	}
	return p.processes[i], nil
}

// Stop ends the programs in order, the last started first, waits until they have left their ports, and gives the data
// folder back. It can be called more than once.
func (p *Plane) Stop() {
	p.stop.Do(func() {
		p.supervisor.Close()
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		for _, port := range []int{p.port, p.etcdPort, p.etcdPeerPort} {
			if port == 0 {
				continue
			}
			if err := datadir.AwaitFree(ctx, port); err != nil {
				_, _ = fmt.Fprintf(p.opts.Progress, "%v\n", err)
			}
		}
		_ = p.closeDir()
	})
}

func (p *Plane) closeDir() error {
	if !p.ownsDir {
		return nil
	}
	return p.dir.Close()
}
