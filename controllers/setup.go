package controllers

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/agent"
	"github.com/agentrooms/agentrooms/controllers/archivedtask"
	"github.com/agentrooms/agentrooms/controllers/consent"
	"github.com/agentrooms/agentrooms/controllers/file"
	"github.com/agentrooms/agentrooms/controllers/inbox"
	"github.com/agentrooms/agentrooms/controllers/instance"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/controllers/logs"
	"github.com/agentrooms/agentrooms/controllers/retention"
	"github.com/agentrooms/agentrooms/controllers/room"
	"github.com/agentrooms/agentrooms/controllers/task"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/blobs"
)

// eventSource is how Kubernetes Events call the process.
const eventSource = "agentrooms-manager"

// Options for SetupAll.
type Options struct {
	// Clock tells the time, the system's when nil.
	Clock clock.PassiveClock
	// Poster takes the notices about tasks. Without one nothing is posted.
	Poster task.Poster
	// Logs are what the controllers see of the logs of rooms. They are made here when nil.
	Logs *logs.Logs
	// Bucket takes old messages. Without one all messages stay in the cluster.
	Bucket archive.Bucket
	// ArchiveGrace is how long message batches stay in the cluster after their messages have moved to the bucket. Zero stands
	// for roomlog.Grace; less is for tests.
	ArchiveGrace time.Duration
	// TaskRest is how long nothing must have happened to an archived task before it moves to the bucket. Zero stands for
	// tasks.Rest; less is for tests.
	TaskRest time.Duration
	// Blobs holds the contents of files. Nil when there is no store.
	Blobs *blobs.Store
	// FileGrace is how long deleted files can be brought back. Zero stands for a day.
	FileGrace time.Duration
	// CountsEvery is how often counts in the status of busy objects are written. Zero stands for five seconds.
	CountsEvery time.Duration
	// InstanceTTL is how long an instance counts as live after it was last seen to renew. Zero stands for 180 seconds.
	InstanceTTL time.Duration
	// InstanceDeadAfter is how long the Lease of an instance is kept after it was last seen to renew. Zero stands for ten
	// minutes.
	InstanceDeadAfter time.Duration
}

// SetupAll adds every controller to a manager that was made with CacheOptions.
func SetupAll(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := index.Register(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	instances, err := instanceCache(ctx, mgr)
	if err != nil {
		return err
	}
	if o.Logs == nil {
		if o.Logs, err = logs.New(mgr); err != nil {
			return err
		}
	}
	c, events := mgr.GetClient(), mgr.GetEventRecorder(eventSource)
	all := []interface{ SetupWithManager(ctrl.Manager) error }{
		&room.Reconciler{Client: c, Logs: o.Logs, Clock: o.Clock, Events: events, Every: o.CountsEvery},
		&agent.Reconciler{Client: c, Instances: instances, Clock: o.Clock, Every: o.CountsEvery, TTL: o.InstanceTTL},
		&task.Reconciler{Client: c, Live: mgr.GetAPIReader(), Clock: o.Clock, Events: events, Poster: o.Poster},
		&consent.Reconciler{Client: c, Clock: o.Clock, Every: o.CountsEvery},
		&inbox.Reconciler{Client: c, Clock: o.Clock},
		&file.Reconciler{Client: c, Blobs: o.Blobs, Clock: o.Clock, Grace: o.FileGrace},
		&file.Sweeper{Client: c, Live: mgr.GetAPIReader(), Blobs: o.Blobs},
		&instance.Reconciler{Client: c, Instances: instances, Clock: o.Clock, DeadAfter: o.InstanceDeadAfter},
	}
	if o.Bucket != nil {
		all = append(all, &retention.Reconciler{
			Client: c, Live: mgr.GetAPIReader(), Logs: o.Logs, Bucket: o.Bucket, Clock: o.Clock, Every: o.CountsEvery, Grace: o.ArchiveGrace,
		}, &archivedtask.Reconciler{
			Client: c, Live: mgr.GetAPIReader(), Bucket: o.Bucket, Clock: o.Clock, Every: o.CountsEvery, Rest: o.TaskRest,
		})
	}
	for _, controller := range all {
		if err := controller.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}

// instanceCache holds the Leases of instances. No label selector says "of a task or of an instance", and the alternative is
// to hear of each heartbeat of each node of the cluster. So there are two caches of Leases.
func instanceCache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:       mgr.GetHTTPClient(),
		Scheme:           mgr.GetScheme(),
		Mapper:           mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		NewInformer:      newInformer,
		ByObject:         map[client.Object]cache.ByObject{&coordinationv1.Lease{}: {Label: having(v1alpha1.InstanceLabel)}},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of instances: %w", err)
	}
	if err := index.RegisterInstances(ctx, c); err != nil {
		return nil, err
	}
	if err := mgr.Add(cached{c}); err != nil {
		return nil, fmt.Errorf("adding the cache of instances: %w", err)
	}
	return c, nil
}

// cached is a cache that the manager starts with its own.
type cached struct{ cache.Cache }

// GetCache makes the manager wait for the cache before it starts the controllers.
func (c cached) GetCache() cache.Cache { return c.Cache }
