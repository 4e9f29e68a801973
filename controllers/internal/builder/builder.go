// Package builder makes every controller of Agent Rooms, so that all of them have the same timeout, the same way of trying
// again and the same idea of what is an error.
package builder

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// Timeout of one reconcile. A server that does not answer must not hold a worker for ever.
	Timeout = time.Minute

	// firstRetry and lastRetry bound the waiting time after errors, which doubles from one to the other.
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute

	// conflictRetry is how long a controller whose view was stale waits for the watch to catch up.
	conflictRetry = 100 * time.Millisecond
)

// New begins a controller. Sources that start before the process leads keep a second replica warm: it takes over with full
// caches, and with leases that it has watched all along.
func New(mgr ctrl.Manager, name string, workers int) *ctrl.Builder {
	warm := true
	return ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{
		MaxConcurrentReconciles: workers,
		ReconciliationTimeout:   Timeout,
		EnableWarmup:            &warm,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			firstRetry, lastRetry),
	})
}

// Quiet wraps a reconciler so that normal outcomes are no errors: somebody else was faster (try again when the watch has
// caught up), the namespace is on its way out, or the process is stopping.
func Quiet(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := r.Reconcile(ctx, req)
		switch {
		case err == nil:
			return result, nil
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			ctrl.LoggerFrom(ctx).V(1).Info("Somebody else was faster, trying again", "reason", err.Error())
			return reconcile.Result{RequeueAfter: spread(conflictRetry)}, nil
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return reconcile.Result{}, nil
		case errors.Is(err, context.Canceled):
			return reconcile.Result{}, nil
		default:
			return reconcile.Result{}, err
		}
	})
}

// spread makes a waiting time up to half as long again, so that those who lost together do not come back together.
func spread(d time.Duration) time.Duration {
	return d + rand.N(d/2) //nolint:gosec // spreads, and hides nothing
}
