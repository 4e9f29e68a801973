package controllers

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// patience is how an informer's list or watch is tried while the API server is away: some ten seconds, a second apart at
// most. What fails longer is the reflector's, which logs it, and waits for up to a minute when it has failed often.
var patience = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Jitter: 0.5, Steps: 14, Cap: time.Second}

// newInformer makes an informer that is soon up to date when the API server was away: leases run out by what it shows.
func newInformer(
	source toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(patient(source), obj, resync, indexers)
}

func patient(source toolscache.ListerWatcher) toolscache.ListerWatcher {
	lw := toolscache.ToListerWatcherWithContext(source)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return insist(ctx, func() (runtime.Object, error) { return lw.ListWithContext(ctx, o) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return insist(ctx, func() (watch.Interface, error) { return lw.WatchWithContext(ctx, o) })
		},
	}
}

// insist calls until the API server has its say.
func insist[T any](ctx context.Context, call func() (T, error)) (result T, err error) {
	_ = wait.ExponentialBackoffWithContext(ctx, patience, func(context.Context) (bool, error) {
		result, err = call()
		return err == nil || !away(err), nil
	})
	return result, err
}

// away says whether an error is the lack of an API server, or of one that has started: it knows no roles for a while.
func away(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonForbidden, metav1.StatusReasonUnauthorized:
		return true
	case metav1.StatusReasonUnknown:
		status, answered := errors.AsType[*apierrors.StatusError](err)
		return !answered || status.Status().Code >= http.StatusInternalServerError
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err)
}
