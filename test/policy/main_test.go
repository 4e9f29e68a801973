// Package policy_test holds the admission policies in config/policy to their word, on a real API server and with users who
// may do everything that a role can grant: what is refused here, a policy refuses.
package policy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The users of these tests. All of them may do with every object of Agent Rooms, and with Leases, what RBAC has verbs for.
// A restorer has the verb restore too, an assigner the verb assignowner, and said may act as every service account.
const (
	said     = "said"
	maya     = "maya"
	restorer = "restorer"
	assigner = "assigner"
)

var (
	bridge  = testenv.ServiceAccountUser("agentrooms-bridge")
	manager = testenv.ServiceAccountUser("agentrooms-manager")
)

const (
	collector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaces   = "system:serviceaccount:kube-system:namespace-controller"
	everybodyMay = "agentrooms-policy-test"
)

var ready = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return install(ctx)
})

// shared is set by server before ready is called.
var shared *testenv.Env

// server gives the API server with the policies in force.
func server(t *testing.T) *testenv.Env {
	t.Helper()
	shared = testenv.Get(t)
	if err := ready(); err != nil {
		t.Fatalf("installing the policies: %v", err)
	}
	return shared
}

func install(ctx context.Context) error {
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	for name, rules := range map[string][]rbacv1.PolicyRule{
		everybodyMay: {
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: all},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: all},
		},
		said:     {{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}}},
		restorer: {{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"restore"}}},
		assigner: {{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"agents", "consents"}, Verbs: []string{"assignowner"}}},
	} {
		subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}
		if name == everybodyMay {
			subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: everybodyMay}}
		}
		meta := metav1.ObjectMeta{Name: "policy-test-" + name}
		for _, o := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: meta, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			},
		} {
			if err := shared.Client.Create(ctx, o); err != nil {
				return fmt.Errorf("granting %s: %w", name, err)
			}
		}
	}
	files, err := filepath.Glob("../../config/policy/*.yaml")
	if err != nil {
		return fmt.Errorf("finding the policies: %w", err)
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		objects, err := manifests(file)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if err := shared.Client.Create(ctx, o); err != nil {
				return fmt.Errorf("creating %s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
	}
	return await(ctx, probes()...)
}

// manifests reads the objects of a file.
func manifests(file string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(file) //nolint:gosec // a file of this repository
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	var found []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(u)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if len(u.Object) > 0 {
			found = append(found, u)
		}
	}
}

var clients sync.Map

// as gives a client for a user. Everything the user does passes RBAC.
func as(user string) client.Client {
	if c, ok := clients.Load(user); ok {
		return c.(client.Client)
	}
	c, err := client.New(shared.As(user, everybodyMay, "system:authenticated"), client.Options{
		Scheme: shared.Scheme, FieldValidation: metav1.FieldValidationStrict,
	})
	if err != nil {
		panic(err) // the configuration is the shared one, which works
	}
	clients.Store(user, c)
	return c
}

// probe is something that succeeds once a policy bites.
type probe func(ctx context.Context) (bool, error)

func await(ctx context.Context, all ...probe) error {
	for _, p := range all {
		if err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, wait.ConditionWithContextFunc(p)); err != nil {
			return fmt.Errorf("waiting for a policy to bite: %w", err)
		}
	}
	return nil
}

// probes has one for each policy: a dry run that the policy refuses or changes.
func probes() []probe {
	refused := func(user, manifest string) probe {
		return func(ctx context.Context) (bool, error) {
			err := as(user).Create(ctx, parse("default", manifest), client.DryRunAll)
			return apierrors.IsForbidden(err), nil
		}
	}
	stamped := func(ctx context.Context) (bool, error) {
		u := parse("default", task, "spec: {assignee: cc, decision: {verdict: Accept}}")
		if err := as(said).Create(ctx, u, client.DryRunAll); err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		for _, path := range [][]string{{"creator", "user"}, {"assignedBy", "user"}, {"decision", "by"}} {
			if got, _, _ := unstructured.NestedString(u.Object, append([]string{"spec"}, path...)...); got != said {
				return false, nil
			}
		}
		return true, nil
	}
	return []probe{
		stamped,
		refused(said, agent+"\n  subjects: [{kind: User, name: maya}]"),
		refused(maya, consent),
		refused(said, "{apiVersion: agentrooms.dev/v1alpha1, kind: Room, metadata: {annotations: {agentrooms.dev/id: x}}, spec: {displayName: x}}"),
		refused(maya, batch),
		refused(said, inbox),
		refused(said, file),
		refused(said, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {labels: {agentrooms.dev/task: x}}, spec: {}}"),
		refused(said, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {labels: {agentrooms.dev/instance: x}}, spec: {}}"),
	}
}

var counter atomic.Int64

// spoken stands for the present time in messages.
const spoken = "2026-01-01T00:00:00.000000Z"

// parse reads a manifest with changes merged into it, and names the object.
func parse(namespace, manifest string, changes ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	for i, doc := range append([]string{manifest}, changes...) {
		o := map[string]any{}
		doc = strings.ReplaceAll(doc, spoken, time.Now().UTC().Format(metav1.RFC3339Micro))
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			panic(fmt.Sprintf("%s: %v", doc, err)) // a constant of this package
		}
		if i == 0 {
			u.Object = o
			continue
		}
		merge(u.Object, o)
	}
	u.SetNamespace(namespace)
	if u.GetName() == "" {
		u.SetName(fmt.Sprintf("%s-%d", strings.ToLower(u.GetKind()), counter.Add(1)))
		if u.GetKind() == "MessageBatch" {
			u.SetName(fmt.Sprintf("launch-%d-b0000000001", counter.Add(1)))
		}
		if u.GetKind() == "File" {
			u.SetName(fmt.Sprintf("launch-f%d", counter.Add(1)))
		}
	}
	return u
}

func merge(into, change map[string]any) {
	for k, v := range change {
		deeper, isMap := v.(map[string]any)
		below, has := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && has:
			merge(below, deeper)
		default:
			into[k] = v
		}
	}
}

// patch merges a change into an object as a user.
func patch(ctx context.Context, user string, u *unstructured.Unstructured, change string, subresource ...string) error {
	raw, err := yaml.ToJSON([]byte(change))
	if err != nil {
		return fmt.Errorf("reading the change: %w", err)
	}
	target := u.DeepCopy()
	if len(subresource) > 0 {
		return as(user).SubResource(subresource[0]).Patch(ctx, target, client.RawPatch(types.MergePatchType, raw))
	}
	return as(user).Patch(ctx, target, client.RawPatch(types.MergePatchType, raw))
}

// check holds an answer against what is wanted: no error when refused is empty, else a Forbidden that says so.
func check(t *testing.T, err error, refused string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("refused: %v", err)
	case refused == "":
	case err == nil:
		t.Errorf("accepted, want it refused with %q", refused)
	case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refused):
		t.Errorf("refused for another reason than %q: %v", refused, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made creates an object as the cluster's admin. It passes every policy, and no stamp is left out.
func made(t *testing.T, env *testenv.Env, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	must(t, env.Client.Create(t.Context(), u))
	return u
}

func verdict(refused string) string {
	if refused == "" {
		return "may"
	}
	return "may not"
}
