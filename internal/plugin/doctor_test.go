package plugin_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/test/people"
)

// findings runs the doctor and gives what it says of each thing.
func findings(t *testing.T, x *terminal, args ...string) (verdicts map[string]string, code int) {
	t.Helper()
	out, errs, code := x.run(append([]string{"doctor", "-o", "json"}, args...)...)
	var report struct {
		Findings []struct{ Check, Verdict, Says string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	verdicts = map[string]string{}
	for _, f := range report.Findings {
		verdicts[f.Check] = f.Verdict + ": " + f.Says
	}
	return verdicts, code
}

// master is the cluster's admin.
func master(h *people.House) *terminal {
	x := sit(h, "root")
	x.groups = []string{"system:masters"}
	return x
}

func says(t *testing.T, got map[string]string, check, want string) {
	t.Helper()
	if !strings.HasPrefix(got[check], want) {
		t.Errorf("of the %s it says %q, want %q", check, got[check], want)
	}
}

func TestTheDoctorFindsNothingWhereAllIsWell(t *testing.T) {
	h := people.New(t)
	h.Task("job", nil)
	h.Claim("job", h.CC, "s1")
	got, code := findings(t, master(h))
	for check, want := range map[string]string{
		"connection": "ok: ", "clock": "ok: this machine", "kinds": "ok: all ", "policies": "ok: all ", "rights": "ok: in namespace " + h.Namespace + " you may do everything",
		"manager": "ok: ", "leases": "ok: 1 tasks", "bridge": "warning: it does not answer", "cache lag": "unknown: ",
	} {
		says(t, got, check, want)
	}
	if code != 0 {
		t.Errorf("it ends with %d", code)
	}
	rita, code := findings(t, sit(h, people.Rita))
	for check, want := range map[string]string{
		"kinds": "ok: ", "policies": "unknown: ", "rights": "ok: in namespace", "manager": "ok: ", "leases": "unknown: 1 tasks are held, and you see no leases",
		"bridge": "unknown: ",
	} {
		says(t, rita, check, want)
	}
	if code != 0 {
		t.Errorf("for Rita it ends with %d", code)
	}
	nora, code := findings(t, sit(h, people.Nora))
	says(t, nora, "rights", "broken: in namespace")
	if code == 0 {
		t.Error("without rights all is well")
	}
}

func TestTheDoctorFindsWhatIsWrong(t *testing.T) {
	h := people.New(t)
	x := master(h)
	h.Task("stuck", nil)
	h.Claim("stuck", h.CC, "dead")
	key := h.Key(ids.LeaseName("stuck"))
	bridge, err := client.New(h.Env.AsServiceAccount("agentrooms-bridge"), client.Options{Scheme: h.Env.Scheme})
	must(t, err)
	h.Eventually("the lease", func(ctx context.Context) (bool, error) {
		l := &coordinationv1.Lease{}
		if err := bridge.Get(ctx, key, l); err != nil {
			return false, err
		}
		l.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-2 * time.Hour)))
		return true, bridge.Update(ctx, l)
	})
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
	must(t, h.Env.Client.Get(t.Context(), client.ObjectKey{Name: "agentrooms-ids"}, binding))
	must(t, h.Env.Client.Delete(t.Context(), binding))
	defer func() {
		binding.ResourceVersion, binding.UID = "", ""
		must(t, h.Env.Client.Create(t.Context(), binding))
	}()
	got, code := findings(t, x, "--bridge", "http://127.0.0.1:1/mcp")
	says(t, got, "policies", "broken: missing: ValidatingAdmissionPolicyBinding agentrooms-ids")
	says(t, got, "leases", "broken: held beyond their lease: "+h.Namespace+"/stuck")
	says(t, got, "bridge", "broken: it cannot be reached")
	if code != 1 {
		t.Errorf("it ends with %d", code)
	}
	x.ok(nil, "task", "release", "stuck")
	got, _ = findings(t, x)
	says(t, got, "leases", "ok: 0 tasks")

	x.args = []string{"--server", "https://127.0.0.1:1"}
	got, code = findings(t, x)
	says(t, got, "connection", "broken: the API server at 127.0.0.1:1 does not answer")
	if code != 1 || len(got) != 1 {
		t.Errorf("without a connection it ends with %d: %v", code, got)
	}
}
