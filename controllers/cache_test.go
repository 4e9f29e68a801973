package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

func TestStripBatch(t *testing.T) {
	at := metav1.NowMicro()
	batch := &v1alpha1.MessageBatch{
		ObjectMeta: metav1.ObjectMeta{Name: "b", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
		Spec: v1alpha1.MessageBatchSpec{Number: 2, FirstSeq: 7, Writer: "w", Messages: []v1alpha1.Message{
			{Body: "long", Mentions: []v1alpha1.Mention{{Plate: "P"}}, Key: "k", Payload: "p", At: at}, {Body: "more", At: at},
		}},
	}
	o, err := stripMessages(batch)
	if err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.MessageBatch{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec: v1alpha1.MessageBatchSpec{Number: 2, FirstSeq: 7, Writer: "w", Messages: []v1alpha1.Message{
			{Key: "k", Payload: "p", At: at}, {At: at},
		}},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHaving(t *testing.T) {
	s := having(v1alpha1.TaskLabel)
	if !s.Matches(labels.Set{v1alpha1.TaskLabel: "x"}) || s.Matches(labels.Set{v1alpha1.InstanceLabel: "x"}) || s.Matches(labels.Set{}) {
		t.Errorf("%s selects the wrong things", s)
	}
}
