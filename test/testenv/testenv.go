package testenv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/config"
)

// Namespace is where the manager and the bridge live.
const Namespace = "agentrooms-system"

// Env is an API server with the kinds and the roles of Agent Rooms.
type Env struct {
	// Config may do everything.
	Config *rest.Config
	// Scheme knows the kinds of Agent Rooms and those of Kubernetes.
	Scheme *runtime.Scheme
	// Client may do everything, reads from the API server, and refuses unknown fields.
	Client client.WithWatch

	server   *envtest.Environment
	auditLog string
	count    atomic.Int64
}

var (
	// ErrNoAssets says that there are no binaries to run an API server with.
	ErrNoAssets = errors.New("KUBEBUILDER_ASSETS is not set")

	started atomic.Bool
	shared  = sync.OnceValues(func() (*Env, error) {
		started.Store(true)
		return start()
	})
)

// Main runs the tests of a package, and stops the API server if one of them started it. A panic in a reconciler, which
// controller-runtime recovers from, fails the package.
func Main(m *testing.M) {
	log.SetLogger(logr.Discard())
	code := m.Run()
	if started.Load() {
		if env, err := shared(); err == nil {
			if err := env.server.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stopping the API server:", err)
			}
			_ = os.RemoveAll(filepath.Dir(env.auditLog))
		}
	}
	if n := panics(); n > 0 {
		fmt.Fprintf(os.Stderr, "FAIL: reconcilers panicked %v times\n", n)
		code = 1
	}
	os.Exit(code)
}

// panics counts the panics that controller-runtime recovered from.
func panics() float64 {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0
	}
	var n float64
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_panics_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			n += m.GetCounter().GetValue()
		}
	}
	return n
}

// Get gives the API server that the tests of a package share. It must be stopped by Main.
func Get(tb testing.TB) *Env {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs an API server")
	}
	env, err := shared()
	if err != nil {
		tb.Fatalf("starting the API server: %v", err)
	}
	return env
}

func start() (*Env, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, ErrNoAssets
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	env := &Env{Scheme: runtime.NewScheme(), server: &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
	}}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(env.Scheme); err != nil {
			return nil, fmt.Errorf("making the scheme: %w", err)
		}
	}
	if err := env.audit(); err != nil {
		return nil, err
	}
	if env.Config, err = env.server.Start(); err != nil {
		return nil, fmt.Errorf("starting etcd and the API server: %w", err)
	}
	env.Config.QPS = -1
	if env.Client, err = client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme, FieldValidation: "Strict"}); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := env.installRoles(ctx); err != nil {
		return nil, err
	}
	return env, nil
}

// moduleRoot finds the folder that holds go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("finding the module: no go.mod in any folder above")
		}
		dir = filepath.Dir(dir)
	}
}

// installRoles applies what is in config/rbac: with it goes the namespace of the system.
func (e *Env) installRoles(ctx context.Context) error {
	for _, name := range []string{"namespace.yaml", ""} {
		objects, err := manifests("rbac", name)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := e.apply(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Env) apply(ctx context.Context, object *unstructured.Unstructured) error {
	err := e.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("testenv"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// manifests reads the objects of a folder of config, or of one file in it.
func manifests(dir, only string) ([]*unstructured.Unstructured, error) {
	entries, err := fs.ReadDir(config.Files, dir)
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, entry := range entries {
		if entry.Name() == "kustomization.yaml" || (only != "" && entry.Name() != only) {
			continue
		}
		raw, err := fs.ReadFile(config.Files, path.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the manifests: %w", err)
		}
		for _, doc := range splitYAML(raw) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(doc, object); err != nil {
				return nil, fmt.Errorf("reading %s: %w", entry.Name(), err)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// Namespace makes a namespace for a test.
func (e *Env) Namespace(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test-%d", e.count.Add(1))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := e.Client.Create(tb.Context(), ns); err != nil {
		tb.Fatalf("making a namespace: %v", err)
	}
	return name
}

// As gives a configuration for a user, in groups.
func (e *Env) As(user string, groups ...string) *rest.Config {
	c := rest.CopyConfig(e.Config)
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return c
}

// AsServiceAccount gives a configuration for a service account of the system: agentrooms-manager or agentrooms-bridge, with
// the roles that config/rbac binds to it.
func (e *Env) AsServiceAccount(name string) *rest.Config {
	return e.As(ServiceAccountUser(name), "system:serviceaccounts", "system:serviceaccounts:"+Namespace, "system:authenticated")
}

// ServiceAccountUser is what the API server calls a service account of the system.
func ServiceAccountUser(name string) string { return "system:serviceaccount:" + Namespace + ":" + name }
