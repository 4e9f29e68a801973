package file

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/builder"
	"github.com/agentrooms/agentrooms/controllers/internal/index"
	"github.com/agentrooms/agentrooms/controllers/internal/metrics"
	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/internal/files"
)

// Reconciler takes out of Files what is over.
type Reconciler struct {
	// Client reads from caches and writes.
	Client client.Client
	// Blobs holds the contents. Nil when there is no store: then there are no contents either.
	Blobs *blobs.Store
	// Clock tells the time.
	Clock clock.PassiveClock
	// Grace is how long deleted versions can be brought back: a day when zero.
	Grace time.Duration
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Grace == 0 {
		r.Grace = files.DefaultGrace
	}
	retention := ctrlbuilder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // each File is looked at anyway
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return files.Versions(retentionOf(e.ObjectOld)) != files.Versions(retentionOf(e.ObjectNew))
		},
	})
	err := builder.New(mgr, "file", 2).
		For(&v1alpha1.File{}).
		Watches(&v1alpha1.Room{}, handler.EnqueueRequestsFromMapFunc(r.filesOf), retention).
		Complete(builder.Quiet(r))
	if err != nil {
		return fmt.Errorf("building the file controller: %w", err)
	}
	return nil
}

func retentionOf(o client.Object) *v1alpha1.RoomRetention {
	if room, ok := o.(*v1alpha1.Room); ok {
		return room.Spec.Retention
	}
	return nil
}

func (r *Reconciler) filesOf(ctx context.Context, room client.Object) []reconcile.Request {
	var list v1alpha1.FileList
	if err := r.Client.List(ctx, &list, client.InNamespace(room.GetNamespace()), client.MatchingFields{index.Room: room.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the files of a room failed", "room", client.ObjectKeyFromObject(room))
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return requests
}

// Reconcile takes out of a File what is over, and comes back when more will be.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	file := &v1alpha1.File{}
	if err := r.Client.Get(ctx, req.NamespacedName, file); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !file.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	room := &v1alpha1.Room{}
	key := types.NamespacedName{Namespace: file.Namespace, Name: file.Spec.RoomRef.Name}
	if err := r.Client.Get(ctx, key, room); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // it goes with its room
	}
	now := r.Clock.Now()
	over := files.Collect(file, room.Spec.Retention, r.Grace, now)
	if len(over.Uploads) > 0 || over.Versions > 0 || over.Empty {
		if err := r.write(ctx, room, file, over); err != nil {
			return ctrl.Result{}, err
		}
	}
	if over.Next.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(over.Next.Sub(now), time.Millisecond)}, nil
}

// write takes what is over out of the File first and out of the store second: what a File refers to is always there.
func (r *Reconciler) write(ctx context.Context, room *v1alpha1.Room, file *v1alpha1.File, over files.Collected) error {
	if over.Empty {
		version := file.ResourceVersion
		err := r.Client.Delete(ctx, file, client.Preconditions{UID: &file.UID, ResourceVersion: &version})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting file %s: %w", file.Name, err)
		}
	} else if err := r.Client.Update(ctx, file); err != nil {
		return fmt.Errorf("writing file %s: %w", file.Name, err)
	}
	metrics.FilesCollected.WithLabelValues("version").Add(float64(over.Versions))
	metrics.FilesCollected.WithLabelValues("upload").Add(float64(len(over.Uploads)))
	if r.Blobs == nil {
		return nil
	}
	for _, id := range over.Uploads {
		if err := r.Blobs.DropUpload(ctx, room.UID, id); err != nil {
			// The sweep gets it later.
			ctrl.LoggerFrom(ctx).Info("Dropping an upload failed", "upload", id, "error", err.Error())
		}
	}
	return nil
}
