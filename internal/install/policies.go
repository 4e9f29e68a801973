package install

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

const (
	policyTimeout = 30 * time.Second

	probeKey, probeUntouched, probeTouched = "probe", "untouched", "touched"
)

// AwaitPolicies waits until the policies that System applied bite. The API server takes up policies in the order in which
// they were written, about a second late. So a probe policy is written after them, one of each sort, and a dry run shows
// when it bites; then the earlier ones do too.
func (i *Installer) AwaitPolicies(ctx context.Context) error {
	objects, err := i.read("policy")
	if err != nil {
		return err
	}
	kinds := map[string]bool{}
	for _, object := range objects {
		kinds[object.GetKind()] = true
	}
	name := "agentrooms-install-probe-" + strings.ToLower(rand.Text()[:8])
	if kinds["ValidatingAdmissionPolicy"] {
		refused := func(err error, _ *corev1.ConfigMap) bool { return apierrors.IsInvalid(err) }
		if err := i.awaitProbe(ctx, name, validatingProbe(name), refused); err != nil {
			return fmt.Errorf("waiting for the validating policies to bite: %w", err)
		}
	}
	if kinds["MutatingAdmissionPolicy"] {
		changed := func(err error, seen *corev1.ConfigMap) bool { return err == nil && seen.Data[probeKey] == probeTouched }
		if err := i.awaitProbe(ctx, name, mutatingProbe(name), changed); err != nil {
			return fmt.Errorf("waiting for the mutating policies to bite: %w", err)
		}
		if err := i.awaitSchema(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitSchema waits until the API server can stamp what is created: the mutating policies learn of new kinds some seconds
// after the kinds are served, and refuse everything of them until then.
func (i *Installer) awaitSchema(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, policyTimeout, true, func(ctx context.Context) (bool, error) {
		last = i.client.Create(ctx, &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: "agentrooms-install-probe", Namespace: Namespace},
			Spec: v1alpha1.TaskSpec{
				RoomRef: v1alpha1.RoomReference{Name: "probe"}, Title: "probe", DefinitionOfDone: "never created", Assignee: "probe",
			},
		}, client.DryRunAll)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until tasks can be created: %w (last answer: %w)", err, last)
	}
	return nil
}

// awaitProbe writes a probe policy and its binding, tries until it bites, and removes both.
func (i *Installer) awaitProbe(ctx context.Context, name string, probe []client.Object, bites func(error, *corev1.ConfigMap) bool) error {
	defer func() {
		for _, object := range probe {
			_ = i.client.Delete(context.WithoutCancel(ctx), object)
		}
	}()
	for _, object := range probe {
		if err := i.client.Create(ctx, object, client.FieldOwner(FieldOwner)); err != nil {
			return fmt.Errorf("creating the probe: %w", err)
		}
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, policyTimeout, true, func(ctx context.Context) (bool, error) {
		seen := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
			Data:       map[string]string{probeKey: probeUntouched},
		}
		last = i.client.Create(ctx, seen, client.DryRunAll)
		return bites(last, seen), nil
	})
	if err != nil {
		return fmt.Errorf("%w (last answer to the probe: %v)", err, last) //nolint:errorlint // nil when the probe was let through
	}
	return nil
}

// probeMatch matches the creation of one ConfigMap that nobody ever creates but by dry run.
func probeMatch(name string) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		ResourceNames: []string{name},
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		},
	}}}
}

func validatingProbe(name string) []client.Object {
	meta := metav1.ObjectMeta{Name: name}
	return []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: probeMatch(name),
			FailurePolicy:    ptr.To(admissionv1.Ignore),
			Validations:      []admissionv1.Validation{{Expression: "false"}},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
	}
}

func mutatingProbe(name string) []client.Object {
	meta := metav1.ObjectMeta{Name: name}
	change := fmt.Sprintf("[JSONPatch{op: 'replace', path: '/data/%s', value: '%s'}]", probeKey, probeTouched)
	return []client.Object{
		&admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   probeMatch(name),
			FailurePolicy:      ptr.To(admissionv1.Ignore),
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: change},
			}},
		}},
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}},
	}
}
