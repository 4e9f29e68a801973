package v1alpha1_test

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// The fields that lists and watches may select by. Each selects the object that has the value and not the one that has
// another.
func TestSelectableFields(t *testing.T) {
	c := server(t)
	fields := map[string]map[string]string{ // kind, field, a change that gives it another value
		"Agent":        {"spec.owner": "spec: {owner: other}"},
		"Consent":      {"spec.roomRef.name": "spec: {roomRef: {name: other}}", "spec.owner": "spec: {owner: other}"},
		"File":         {"spec.roomRef.name": "spec: {roomRef: {name: other}}"},
		"Inbox":        {"spec.roomRef.name": "spec: {roomRef: {name: other}}", "spec.plate": "spec: {plate: BRNL-AGT-00000000000000000000000009}"},
		"MessageBatch": {"spec.roomRef.name": "spec: {roomRef: {name: other}}"},
		"Task":         {"spec.roomRef.name": "spec: {roomRef: {name: other}}", "spec.assignee": "spec: {assignee: other}", "status.state": ""},
	}
	for kind, crd := range readCRDs(t) {
		var declared, tested []string
		for _, f := range crd.Spec.Versions[0].SelectableFields {
			declared = append(declared, strings.TrimPrefix(f.JSONPath, "."))
		}
		for field := range fields[kind] {
			tested = append(tested, field)
		}
		slices.Sort(declared)
		slices.Sort(tested)
		if diff := cmp.Diff(tested, declared); diff != "" {
			t.Errorf("%s (-tested +declared):\n%s", kind, diff)
		}
	}
	for kind, table := range fields {
		for field, change := range table {
			t.Run(kind+" "+field, func(t *testing.T) {
				one, other := object(t, full[kind]), object(t, full[kind], change)
				must(t, create(t, c, one))
				must(t, create(t, c, other))
				if change == "" {
					must(t, patchStatus(t, c, other, blocked))
				}
				got := selected(t, c, kind, field, get(one.Object, field).(string))
				if !slices.Contains(got, one.GetName()) || slices.Contains(got, other.GetName()) {
					t.Errorf("selected %v, want %s and not %s", got, one.GetName(), other.GetName())
				}
			})
		}
	}
	t.Run("no other field", func(t *testing.T) {
		list := &v1alpha1.TaskList{}
		if err := c.List(t.Context(), list, client.MatchingFields{"spec.title": "x"}); !apierrors.IsBadRequest(err) {
			t.Errorf("got %v, want a bad request", err)
		}
	})
}

func selected(t *testing.T, c client.Client, kind, field, v string) []string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	must(t, c.List(t.Context(), list, client.InNamespace("default"), client.MatchingFields{field: v}))
	var names []string
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	return names
}

// What a user applies works unchanged, and applying it again changes nothing.
func TestTheDemoApplies(t *testing.T) {
	c := server(t)
	apply := func() map[string]string {
		versions := map[string]string{}
		for _, u := range manifests(t, "../../config/samples/demo.yaml") {
			must(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl")))
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			versions[u.GetKind()+"/"+u.GetName()] = u.GetResourceVersion()
		}
		return versions
	}
	apply()
	second := apply() // an object with a status default settles on its second apply
	if diff := cmp.Diff(second, apply()); diff != "" {
		t.Errorf("applied again (-before +after):\n%s", diff)
	}
	task := &v1alpha1.Task{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "demo", Name: "draft-announcement"}, task))
	if task.Status.State != v1alpha1.TaskTodo || task.Status.Epoch != 0 {
		t.Errorf("the demo's task is %s at epoch %d, want Todo at 0", task.Status.State, task.Status.Epoch)
	}
}

func manifests(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	f, err := os.Open(file) //nolint:gosec // a file of this repository
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	var found []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(f, 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(u)
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		if len(u.Object) > 0 {
			found = append(found, u)
		}
	}
	kinds := map[schema.GroupKind]bool{}
	for _, u := range found {
		kinds[u.GroupVersionKind().GroupKind()] = true
	}
	if len(kinds) < 6 {
		t.Fatalf("%s holds only %v", file, kinds)
	}
	return found
}
