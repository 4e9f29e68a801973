package problem_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// gizmo gives an object of a kind of our group that nobody has installed.
func gizmo(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "agentrooms.dev", Version: "v1alpha1", Kind: "Gizmo"})
	u.SetNamespace(namespace)
	u.SetName("g")
	return u
}

// TestMissing asks a real API server for what it does not have.
func TestMissing(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	dyn, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	gizmos := dyn.Resource(schema.GroupVersionResource{Group: "agentrooms.dev", Version: "v1alpha1", Resource: "gizmos"}).Namespace(ns)
	for name, c := range map[string]struct {
		call func(context.Context) error
		want problem.Code
	}{
		"creating what is not installed": {func(ctx context.Context) error {
			_, err := gizmos.Create(ctx, gizmo(ns), metav1.CreateOptions{})
			return err
		}, problem.Unavailable},
		"updating what is not installed": {func(ctx context.Context) error {
			_, err := gizmos.Update(ctx, gizmo(ns), metav1.UpdateOptions{})
			return err
		}, problem.Unavailable},
		"updating the status of what is not installed": {func(ctx context.Context) error {
			_, err := gizmos.UpdateStatus(ctx, gizmo(ns), metav1.UpdateOptions{})
			return err
		}, problem.Unavailable},
		"reading what is not installed": {func(ctx context.Context) error {
			_, err := gizmos.Get(ctx, "g", metav1.GetOptions{})
			return err
		}, problem.Unavailable},
		"a client that looks kinds up": {func(ctx context.Context) error { return env.Client.Create(ctx, gizmo(ns)) }, problem.Unavailable},
		"reading an object that is not": {func(ctx context.Context) error {
			return env.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "x"}, testenv.Room(ns, "x"))
		}, problem.NotFound},
		"updating an object that is not": {func(ctx context.Context) error {
			room := testenv.Room(ns, "x")
			room.ResourceVersion = "1"
			return env.Client.Update(ctx, room)
		}, problem.NotFound},
		"creating where no namespace is": {func(ctx context.Context) error { return env.Client.Create(ctx, testenv.Room("no-such", "x")) }, problem.NotFound},
		"creating where a namespace is on its way out": {func(ctx context.Context) error {
			going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "going-"}}
			// Nobody finishes namespaces here, so that it stays on its way.
			if err := errors.Join(env.Client.Create(ctx, going), env.Client.Delete(ctx, going)); err != nil {
				t.Fatal(err)
			}
			return env.Client.Create(ctx, testenv.Room(going.Name, "x"))
		}, problem.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.call(t.Context())
			if err == nil {
				t.Fatal("it is there")
			}
			p := problem.Missing(fmt.Errorf("calling: %w", err))
			if p == nil || p.Code != c.want || p.Hint == "" || p.Retryable != (c.want == problem.Unavailable) {
				t.Errorf("%v is told as %+v, want %s", err, p, c.want)
			}
			if problem.NotInstalled(err) != (c.want == problem.Unavailable) {
				t.Errorf("%v: taken for a kind that is not installed: %t", err, problem.NotInstalled(err))
			}
		})
	}
	if p := problem.Missing(env.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "A"}})); p != nil {
		t.Errorf("an object that is refused is told as %+v", p)
	}
	if p := problem.Missing(nil); p != nil {
		t.Errorf("no error is told as %+v", p)
	}
}
