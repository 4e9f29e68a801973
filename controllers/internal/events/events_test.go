package events

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

type kept []string

func (k *kept) Eventf(_, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	*k = append(*k, fmt.Sprint(eventType, " ", reason, " ", action, " ", fmt.Sprintf(note, args...)))
}

func TestQueue(t *testing.T) {
	var q Queue
	var k kept
	// What people wrote is no format.
	q.Normal("Decided", "Decide", "100% sure")
	q.Warning("Expired", "Reopen", "late")
	q.Send(&k, &corev1.Pod{})
	q.Send(&k, &corev1.Pod{})
	if diff := cmp.Diff(kept{"Normal Decided Decide 100% sure", "Warning Expired Reopen late"}, k); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
