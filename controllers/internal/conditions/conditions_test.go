package conditions

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSet(t *testing.T) {
	t0 := time.Unix(1_700_000_000, 0)
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(t0.Add(d)).Rfc3339Copy() }
	var list []metav1.Condition
	for _, step := range []struct {
		name    string
		status  metav1.ConditionStatus
		reason  string
		gen     int64
		changed bool
		since   time.Duration
	}{
		{"new", metav1.ConditionFalse, "A", 1, true, 0},
		{"the same again", metav1.ConditionFalse, "A", 1, false, 0},
		{"another reason", metav1.ConditionFalse, "B", 1, true, 0},
		{"another generation", metav1.ConditionFalse, "B", 2, true, 0},
		{"another status", metav1.ConditionTrue, "C", 2, true, 4 * time.Minute},
		{"the same status", metav1.ConditionTrue, "C", 2, false, 4 * time.Minute},
	} {
		now := t0
		if step.since > 0 {
			now = t0.Add(step.since)
		}
		if step.name != "new" && step.since == 0 {
			now = t0.Add(time.Minute)
		}
		changed := Set(&list, New("Ready", step.status, step.reason, "m", step.gen), now)
		if changed != step.changed {
			t.Errorf("%s: changed %t, want %t", step.name, changed, step.changed)
		}
		want := []metav1.Condition{{
			Type: "Ready", Status: step.status, Reason: step.reason, Message: "m", ObservedGeneration: step.gen, LastTransitionTime: at(step.since),
		}}
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if Reason(list, "Ready") != "C" || Reason(list, "Other") != "" {
		t.Error("Reason does not find what is there, or finds what is not")
	}
}

func TestNewCutsMessage(t *testing.T) {
	c := New("Ready", metav1.ConditionTrue, "A", strings.Repeat("界", 2000), 1)
	if n := len([]rune(c.Message)); n != MaxMessage || !strings.HasSuffix(c.Message, "…") {
		t.Errorf("%d characters, ending in %q", n, c.Message[len(c.Message)-6:])
	}
}
