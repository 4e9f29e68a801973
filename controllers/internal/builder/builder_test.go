package builder

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestQuiet(t *testing.T) {
	resource := schema.GroupResource{Group: "agentrooms.dev", Resource: "tasks"}
	terminating := apierrors.NewForbidden(resource, "x", errors.New("ending"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	conflict := apierrors.NewConflict(resource, "x", errors.New("changed"))
	for name, c := range map[string]struct {
		err   error
		retry bool
		loud  bool
	}{
		"all is well":                 {},
		"a conflict":                  {err: fmt.Errorf("writing: %w", conflict), retry: true},
		"a conflict among others":     {err: errors.Join(nil, fmt.Errorf("writing: %w", conflict)), retry: true},
		"somebody made it already":    {err: apierrors.NewAlreadyExists(resource, "x"), retry: true},
		"the namespace goes":          {err: fmt.Errorf("creating: %w", terminating)},
		"the process stops":           {err: fmt.Errorf("reading: %w", context.Canceled)},
		"the server does not answer":  {err: context.DeadlineExceeded, loud: true},
		"something that is forbidden": {err: apierrors.NewForbidden(resource, "x", errors.New("no")), loud: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := Quiet(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: time.Hour}, c.err
			}))
			res, err := r.Reconcile(t.Context(), reconcile.Request{})
			if (err != nil) != c.loud {
				t.Errorf("error %v, want one %t", err, c.loud)
			}
			if soon := res.RequeueAfter > 0 && res.RequeueAfter < time.Second; soon != c.retry {
				t.Errorf("again after %s, want soon %t", res.RequeueAfter, c.retry)
			}
			if c.err == nil && res.RequeueAfter != time.Hour {
				t.Errorf("again after %s, want what the reconciler said", res.RequeueAfter)
			}
		})
	}
}
