package policy_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/test/testenv"
)

// A cluster's admin applies the demo with every policy in force, and is its creator.
func TestAnAdminAppliesTheDemo(t *testing.T) {
	env := server(t)
	apply := func() map[string]string {
		objects, err := manifests("../../config/samples/demo.yaml")
		must(t, err)
		versions := map[string]string{}
		for _, u := range objects {
			must(t, env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl")))
			must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			versions[u.GetKind()+"/"+u.GetName()] = u.GetResourceVersion()
		}
		return versions
	}
	apply()
	settled := apply()
	if diff := cmp.Diff(settled, apply()); diff != "" {
		t.Errorf("applied again (-before +after):\n%s", diff)
	}
	task := &v1alpha1.Task{}
	must(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: "demo", Name: "draft-announcement"}, task))
	admin := &v1alpha1.TaskCreator{User: "admin"}
	if diff := cmp.Diff([]*v1alpha1.TaskCreator{admin, admin}, []*v1alpha1.TaskCreator{task.Spec.Creator, task.Spec.AssignedBy}); diff != "" {
		t.Errorf("creator and assigner (-want +got):\n%s", diff)
	}
}

// The checker is the one that a cluster's controller manager uses to warn of expressions that do not fit the schema.
func TestThePoliciesAreWellTyped(t *testing.T) {
	env := server(t)
	d, err := discovery.NewDiscoveryClientForConfig(env.Config)
	must(t, err)
	checker := &validating.TypeChecker{SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: d}, RestMapper: env.Client.RESTMapper()}
	list := &admissionv1.ValidatingAdmissionPolicyList{}
	must(t, env.Client.List(t.Context(), list))
	if len(list.Items) != 9 {
		t.Errorf("got %d validating policies, want 9", len(list.Items))
	}
	for _, p := range list.Items {
		for _, w := range checker.Check(&p) {
			t.Errorf("%s: %s: %s", p.Name, w.FieldRef, w.Warning)
		}
	}
}

// The heartbeats of the bridge and the manager have a level of their own; those of others do not.
func TestHeartbeatsHaveALevelOfTheirOwn(t *testing.T) {
	env := server(t)
	level := &flowcontrolv1.PriorityLevelConfiguration{}
	must(t, env.Client.Get(t.Context(), client.ObjectKey{Name: "agentrooms-leases"}, level))
	schema := &flowcontrolv1.FlowSchema{}
	must(t, env.Client.Get(t.Context(), client.ObjectKey{Name: "agentrooms-leases"}, schema))
	for _, c := range schema.Status.Conditions {
		if c.Type == flowcontrolv1.FlowSchemaConditionDangling && c.Status == flowcontrolv1.ConditionTrue {
			t.Errorf("the schema names a level that does not exist: %s", c.Message)
		}
	}
	ns := env.Namespace(t)
	for _, tc := range []struct {
		name, user, manifest string
		want                 bool
	}{
		{"the bridge's lease", bridge, lease, true},
		{"the manager's lease", manager, lease, true},
		{"somebody's lease", said, lease, false},
		{"the bridge's task", bridge, task, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := levelOf(t, env, tc.user, parse(ns, tc.manifest))
			if (got == string(level.UID)) != tc.want {
				t.Errorf("went through the level %q; ours is %q, and it should be ours: %v", got, level.UID, tc.want)
			}
		})
	}
}

// levelHeader names the priority level that a request went through.
const levelHeader = "X-Kubernetes-Pf-Prioritylevel-Uid"

// levelOf creates an object as a user and gives the priority level that the request went through.
func levelOf(t *testing.T, env *testenv.Env, user string, u *unstructured.Unstructured) string {
	t.Helper()
	var level string
	config := env.As(user, everybodyMay, "system:authenticated")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil && r.Method == http.MethodPost {
				level = answer.Header.Get(levelHeader)
			}
			return answer, err
		})
	})
	c, err := client.New(config, client.Options{Scheme: env.Scheme})
	must(t, err)
	must(t, c.Create(t.Context(), u))
	return level
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
