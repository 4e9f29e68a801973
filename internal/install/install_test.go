package install

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/config"
	"github.com/agentrooms/agentrooms/internal/localplane"
)

// newInstaller starts a control plane and gives an installer for it.
func newInstaller(t *testing.T) *Installer {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	plane, err := localplane.Start(t.Context(), localplane.Options{DataDir: t.TempDir(), Progress: os.Stderr})
	if err != nil {
		t.Fatalf("starting the control plane: %v", err)
	}
	t.Cleanup(plane.Stop)
	installer, err := New(plane.AdminConfig())
	if err != nil {
		t.Fatalf("making the installer: %v", err)
	}
	return installer
}

func TestManifestsAreReadWithoutKustomizations(t *testing.T) {
	installer := &Installer{files: fstest.MapFS{
		"rbac/a.yaml":             {Data: []byte("# only a comment\n---\nkind: Role\nmetadata: {name: one}\n---\nkind: Role\nmetadata: {name: two}\n")},
		"rbac/b.yaml":             {Data: []byte("kind: Role\nmetadata: {name: three}\n")},
		"rbac/kustomization.yaml": {Data: []byte("kind: Kustomization\n")},
	}}
	objects, err := installer.read("rbac")
	if err != nil {
		t.Fatalf("reading: %v", err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// policy is a pair of policies that can be seen to bite: one refuses a ConfigMap, one changes another. The second matches only
// that one: the API server applies mutating policies in no order, and it replaces what the installer's probe changes.
const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: test-refuse}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "object.metadata.name != 'refused'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: test-refuse}
spec: {policyName: test-refuse, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: test-stamp}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps], resourceNames: [stamped]}
  reinvocationPolicy: Never
  mutations:
  - {patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/data', value: {'stamp': 'here'}}]"}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: test-stamp}
spec: {policyName: test-stamp}
`

// withPolicy is the project's own manifests with the test's policies for theirs.
type withPolicy struct{ policy fstest.MapFS }

func (f withPolicy) Open(name string) (fs.File, error) {
	if file, err := f.policy.Open(name); err == nil {
		return file, nil
	}
	return config.Files.Open(name)
}

func TestPoliciesBiteOnceAwaited(t *testing.T) {
	g := gomega.NewWithT(t)
	installer := newInstaller(t)
	installer.files = withPolicy{fstest.MapFS{"policy/test.yaml": {Data: []byte(policy)}}}
	g.Expect(installer.System(t.Context())).To(gomega.Succeed())
	began := time.Now()
	g.Expect(installer.AwaitPolicies(t.Context())).To(gomega.Succeed())
	t.Logf("the policies bit after %s", time.Since(began).Round(time.Millisecond))

	refused := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: "default"}}
	err := installer.client.Create(t.Context(), refused)
	g.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "the API server answers %v", err)
	stamped := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stamped", Namespace: "default"}}
	g.Expect(installer.client.Create(t.Context(), stamped)).To(gomega.Succeed())
	g.Expect(stamped.Data).To(gomega.HaveKeyWithValue("stamp", "here"))

	var left admissionv1.ValidatingAdmissionPolicyList
	g.Expect(installer.client.List(t.Context(), &left)).To(gomega.Succeed())
	for _, item := range left.Items {
		g.Expect(item.Name).NotTo(gomega.HavePrefix("agentrooms-install-probe"))
	}
}

func TestInstallingAgainChangesNothing(t *testing.T) {
	g := gomega.NewWithT(t)
	installer := newInstaller(t)
	versions := func() map[string]string {
		g.Expect(installer.System(t.Context())).To(gomega.Succeed())
		g.Expect(installer.AwaitPolicies(t.Context())).To(gomega.Succeed())
		seen := map[string]string{}
		for _, dir := range []string{"crd/bases", "rbac", "policy"} {
			objects, err := installer.read(dir)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			for _, object := range objects {
				g.Expect(installer.client.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
				seen[object.GetKind()+" "+object.GetName()] = object.GetResourceVersion()
			}
		}
		return seen
	}
	first := versions()
	// A role that aggregates others is filled in by its controller a moment later; the second reading has it either way.
	if diff := cmp.Diff(first, versions()); diff != "" {
		t.Errorf("resource versions after applying twice (-first +second):\n%s", diff)
	}
}

func TestTheDemoIsCreatedOnceAndThenLeftAlone(t *testing.T) {
	g := gomega.NewWithT(t)
	installer := newInstaller(t)
	g.Expect(installer.System(t.Context())).To(gomega.Succeed())
	g.Expect(installer.AwaitPolicies(t.Context())).To(gomega.Succeed())
	g.Expect(installer.Demo(t.Context())).To(gomega.Succeed())

	key := types.NamespacedName{Namespace: DemoNamespace, Name: "launch"}
	room := &v1alpha1.Room{}
	g.Expect(installer.client.Get(t.Context(), key, room)).To(gomega.Succeed())
	room.Spec.DisplayName = "Renamed by a person"
	g.Expect(installer.client.Update(t.Context(), room)).To(gomega.Succeed())
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: DemoNamespace, Name: "draft-announcement"}}
	g.Expect(installer.client.Delete(t.Context(), task)).To(gomega.Succeed())

	g.Expect(installer.Demo(t.Context())).To(gomega.Succeed())
	g.Expect(installer.client.Get(t.Context(), key, room)).To(gomega.Succeed())
	g.Expect(room.Spec.DisplayName).To(gomega.Equal("Renamed by a person"))
	err := installer.client.Get(t.Context(), client.ObjectKeyFromObject(task), task)
	g.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "the task that was deleted: %v", err)
}
