package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers"
	"github.com/agentrooms/agentrooms/controllers/logs"
	"github.com/agentrooms/agentrooms/internal/archive"
)

// Name is what the process is called: as the owner of fields, as the holder of the leader election's Lease, and in Events.
const Name = "agentrooms-manager"

// shutdownTimeout is how long reconciles may take to end.
const shutdownTimeout = 10 * time.Second

// Options for New.
type Options struct {
	// MetricsAddress serves /metrics, "0" for nowhere.
	MetricsAddress string
	// ProbeAddress serves /healthz and /readyz, "0" for nowhere.
	ProbeAddress string
	// LeaderElection makes sure that one of several processes acts.
	LeaderElection bool
	// LeaderElectionNamespace holds the Lease for it, the pod's own namespace when empty.
	LeaderElectionNamespace string
	// LeaseDuration, RenewDeadline and RetryPeriod are the times of the leader election. Zero stands for
	// controller-runtime's.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// SkipNameValidation lets a test run several managers in one process.
	SkipNameValidation bool
	// Bucket takes old messages. Without one all messages stay in the cluster.
	Bucket archive.Bucket
	// Controllers are options for the controllers. Logs and Poster are made here when there are none.
	Controllers controllers.Options
}

// NewScheme makes a scheme with the kinds that the controllers deal with.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("adding kinds to the scheme: %w", err)
		}
	}
	return scheme, nil
}

// New makes a manager with every controller, ready to be started.
func New(ctx context.Context, cfg *rest.Config, o Options) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, managerOptions(scheme, o))
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	o.Controllers.Bucket = o.Bucket
	if o.Controllers.Logs == nil {
		if o.Controllers.Logs, err = logs.New(mgr); err != nil {
			return nil, err
		}
	}
	if o.Controllers.Poster == nil {
		reader := archive.NewReader(archive.Options{Bucket: o.Bucket, Clock: o.Controllers.Clock})
		o.Controllers.Poster = newPoster(mgr, o.Controllers.Logs, o.Controllers.Clock, reader)
	}
	if err := controllers.SetupAll(ctx, mgr, o.Controllers); err != nil {
		return nil, fmt.Errorf("setting up the controllers: %w", err)
	}
	return mgr, addProbes(mgr)
}

func managerOptions(scheme *runtime.Scheme, o Options) ctrl.Options {
	timeout := shutdownTimeout
	opts := ctrl.Options{
		Scheme: scheme,
		Cache:  controllers.CacheOptions(),
		Client: client.Options{
			FieldOwner: Name, FieldValidation: "Strict",
		},
		Metrics:                       server.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.ProbeAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              Name,
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &timeout,
		Controller:                    config.Controller{SkipNameValidation: &o.SkipNameValidation},
	}
	for _, d := range []struct {
		from time.Duration
		to   **time.Duration
	}{{o.LeaseDuration, &opts.LeaseDuration}, {o.RenewDeadline, &opts.RenewDeadline}, {o.RetryPeriod, &opts.RetryPeriod}} {
		if d.from > 0 {
			*d.to = &d.from
		}
	}
	return opts
}

// addProbes serves /healthz as long as the process runs, and /readyz once its caches hold what exists.
func addProbes(mgr ctrl.Manager) error {
	synced := &atomic.Bool{}
	watch := manager.RunnableFunc(func(ctx context.Context) error {
		for _, kind := range watched() {
			// This waits until the cache of the kind is filled.
			if _, err := mgr.GetCache().GetInformer(ctx, kind); err != nil {
				return fmt.Errorf("filling the cache of %T: %w", kind, err)
			}
		}
		synced.Store(true)
		return nil
	})
	if err := mgr.Add(everywhere{watch}); err != nil {
		return fmt.Errorf("adding the watch of the caches: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	ready := func(*http.Request) error {
		if !synced.Load() {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
	if err := mgr.AddReadyzCheck("caches", ready); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return nil
}

// watched are the kinds whose caches must be filled before the process is ready.
func watched() []client.Object {
	return []client.Object{
		&v1alpha1.Room{}, &v1alpha1.Agent{}, &v1alpha1.Task{}, &v1alpha1.Consent{}, &v1alpha1.MessageBatch{}, &v1alpha1.File{},
		&coordinationv1.Lease{},
	}
}

// everywhere is something that runs whether the process leads or not.
type everywhere struct{ manager.Runnable }

// NeedLeaderElection says that it runs in any case.
func (everywhere) NeedLeaderElection() bool { return false }
