package mcpbridge

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTroubleWithTheAPIServerIsToldFromFaultsOfTheBridge(t *testing.T) {
	tasks := schema.GroupResource{Resource: "tasks"}
	terminating := apierrors.NewForbidden(tasks, "x", errors.New("it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		err     error
		trouble bool
	}{
		"starting, without roles":       {apierrors.NewForbidden(tasks, "x", errors.New("no role")), true},
		"starting, without users":       {apierrors.NewUnauthorized("who?"), true},
		"overloaded":                    {apierrors.NewTooManyRequests("later", 1), true},
		"without its database":          {apierrors.NewInternalError(errors.New("etcd")), true},
		"a namespace on its way out":    {terminating, false},
		"an object that is refused":     {apierrors.NewInvalid(schema.GroupKind{Kind: "Task"}, "x", nil), false},
		"something that we did not see": {errors.New("nil map"), false},
	} {
		if got := apiTrouble(fmt.Errorf("writing: %w", c.err)); got != c.trouble {
			t.Errorf("%s: trouble with the API server is %v, want %v", name, got, c.trouble)
		}
	}
}
