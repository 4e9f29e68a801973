// Package v1alpha1_test holds the schema to its word: every rule and bound of the kinds, each with what the API server
// accepts and what it refuses. The tests run against a real API server; those that need none run with -short too.
package v1alpha1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/agentrooms/agentrooms/test/testenv"
)

const crds = "../../config/crd/bases"

func TestMain(m *testing.M) { testenv.Main(m) }

// server gives a client of the API server that the tests of this package share. It refuses unknown fields, so that a test
// cannot pass by a misspelt one.
func server(t *testing.T) client.Client {
	t.Helper()
	return testenv.Get(t).Client
}

var counter atomic.Int64

// unique gives a name that no other object of the run has.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, counter.Add(1)) }

// object reads a manifest, merges the changes into it as `kubectl patch --type=merge` would, and gives it a name of its own
// if it has none.
func object(t *testing.T, manifest string, changes ...string) *unstructured.Unstructured {
	t.Helper()
	doc, err := yaml.YAMLToJSONStrict([]byte(manifest))
	if err != nil {
		t.Fatalf("reading the manifest: %v", err)
	}
	for _, change := range changes {
		if change == "" {
			continue
		}
		if doc, err = jsonpatch.MergePatch(doc, asJSON(t, change)); err != nil {
			t.Fatalf("merging %s: %v", change, err)
		}
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(doc); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace("default")
	if u.GetName() == "" {
		name := unique(strings.ToLower(u.GetKind()))
		if u.GetKind() == "MessageBatch" {
			number, _, _ := unstructured.NestedInt64(u.Object, "spec", "number")
			room, _, _ := unstructured.NestedString(u.Object, "spec", "roomRef", "name")
			name = fmt.Sprintf("%s-%s-b%010d", room, name, number)
		}
		if u.GetKind() == "File" {
			room, _, _ := unstructured.NestedString(u.Object, "spec", "roomRef", "name")
			name = room + "-f" + name
		}
		u.SetName(name)
	}
	return u
}

func asJSON(t *testing.T, change string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(change))
	if err != nil {
		t.Fatalf("reading the change %q: %v", change, err)
	}
	return raw
}

// patch sends a merge patch without a resourceVersion, as the careless do.
func patch(t *testing.T, c client.Client, u *unstructured.Unstructured, change string) error {
	t.Helper()
	return c.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, asJSON(t, change)))
}

// patchStatus sends a merge patch of the status, as `kubectl patch --subresource=status --type=merge` does.
func patchStatus(t *testing.T, c client.Client, u *unstructured.Unstructured, status string) error {
	t.Helper()
	raw := asJSON(t, status)
	body, err := json.Marshal(map[string]json.RawMessage{"status": raw})
	if err != nil {
		t.Fatal(err)
	}
	return c.Status().Patch(t.Context(), u, client.RawPatch(types.MergePatchType, body))
}

// check holds an answer against what is wanted: no error when refused is empty, else an Invalid that says so.
func check(t *testing.T, err error, refused string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("refused: %v", err)
	case refused == "":
	case err == nil:
		t.Errorf("accepted, want it refused with %q", refused)
	case !apierrors.IsInvalid(err):
		t.Errorf("got another error than Invalid: %v", err)
	case !strings.Contains(err.Error(), refused):
		t.Errorf("refused for another reason than %q: %v", refused, err)
	}
}

// must stops the test at an error of the setting.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create makes an object, and removes it when the test is over.
func create(t *testing.T, c client.Client, u *unstructured.Unstructured) error {
	t.Helper()
	if err := c.Create(t.Context(), u); err != nil {
		return err
	}
	t.Cleanup(func() {
		err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), u))
		if err != nil {
			t.Errorf("deleting %s: %v", u.GetName(), err)
		}
	})
	return nil
}

// crdFiles lists the manifests of the kinds.
func crdFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil || len(files) != 7 {
		t.Fatalf("want seven kinds in %s, got %v (%v)", crds, files, err)
	}
	return files
}

// mustMerge merges a change into a document, both YAML. A null stays: it is to reach the API server.
func mustMerge(t *testing.T, doc, change string) []byte {
	t.Helper()
	merged, err := jsonpatch.MergeMergePatches(asJSON(t, doc), asJSON(t, change))
	must(t, err)
	return merged
}
