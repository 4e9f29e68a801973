package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

func TestValues(t *testing.T) {
	agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cc"}, Spec: v1alpha1.AgentSpec{
		Owner: "said", Subjects: []v1alpha1.Subject{
			{Kind: v1alpha1.SubjectServiceAccount, Name: "cc"}, {Kind: v1alpha1.SubjectServiceAccount, Namespace: "ns", Name: "cc"},
			{Kind: v1alpha1.SubjectServiceAccount, Namespace: "far", Name: "cc"}, {Kind: v1alpha1.SubjectUser, Name: "said"},
		},
	}}
	task := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{
		RoomRef: v1alpha1.RoomReference{Name: "lab"}, Assignee: "P", DependsOn: []string{"a", "b"},
		Creator: &v1alpha1.TaskCreator{Plate: "Q"}, AssignedBy: &v1alpha1.TaskCreator{Plate: "P"},
	}}
	room := &v1alpha1.Room{Spec: v1alpha1.RoomSpec{Members: []v1alpha1.RoomMember{
		{User: "said"}, {Agent: &v1alpha1.AgentReference{Name: "cc"}}, {Agent: &v1alpha1.AgentReference{Plate: "P"}},
	}}}
	for name, c := range map[string]struct {
		values client.IndexerFunc
		object client.Object
		want   []string
	}{
		"tasks by room":     {taskRoom, task, []string{"lab"}},
		"batches by room":   {batchRoom, &v1alpha1.MessageBatch{Spec: v1alpha1.MessageBatchSpec{RoomRef: v1alpha1.RoomReference{Name: "lab"}}}, []string{"lab"}},
		"tasks by agent":    {taskAgents, task, []string{"P", "Q"}},
		"tasks by person":   {taskAgents, &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Creator: &v1alpha1.TaskCreator{User: "said"}}}, nil},
		"tasks by blocker":  {taskBlockers, task, []string{"a", "b"}},
		"agents by subject": {agentSubjects, agent, []string{"system:serviceaccount:ns:cc", "system:serviceaccount:far:cc", "said"}},
		"agents by owner":   {agentOwner, agent, []string{"said"}},
		"rooms by member":   {roomMembers, room, []string{"cc", "P"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.values(c.object)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
