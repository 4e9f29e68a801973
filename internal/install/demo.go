package install

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// DemoNamespace is where the demo lives.
	DemoNamespace = "demo"
	// DemoUser is the person who makes the demo: the owner of one of its agents and an admin of its room.
	DemoUser = "said"

	// demoAnnotation stands on the demo's namespace once all of the demo has been created. Set and read here.
	demoAnnotation = "agentrooms.dev/demo"
)

// Demo creates the demo, once: what people and agents have made of it since, or removed, stays as they left it.
func (i *Installer) Demo(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	err := i.client.Get(ctx, types.NamespacedName{Name: DemoNamespace}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking for the demo: %w", err)
	}
	if _, done := namespace.Annotations[demoAnnotation]; done {
		return nil
	}
	objects, err := i.readFile("samples/demo.yaml")
	if err != nil {
		return err
	}
	person, err := i.as(DemoUser)
	if err != nil {
		return err
	}
	for _, object := range objects {
		err := person.Create(ctx, object, client.FieldOwner(FieldOwner))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating the demo's %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+demoAnnotation+`":"created"}}}`))
	namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: DemoNamespace}}
	if err := i.client.Patch(ctx, namespace, patch, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("marking the demo as created: %w", err)
	}
	return nil
}
