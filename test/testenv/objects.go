package testenv

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// Create makes objects, in their order.
func (e *Env) Create(tb testing.TB, objects ...client.Object) {
	tb.Helper()
	for _, o := range objects {
		if err := e.Client.Create(tb.Context(), o); err != nil {
			tb.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// Agent is an Agent with every scope but those of files, whose ServiceAccount is called as it is.
func Agent(namespace, name, owner string, delegations ...v1alpha1.Delegation) *v1alpha1.Agent {
	return &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.AgentSpec{
			DisplayName: name, Owner: owner, Delegations: delegations,
			Scopes:   []v1alpha1.Scope{v1alpha1.ScopeRead, v1alpha1.ScopeWrite, v1alpha1.ScopeInvoke},
			Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectServiceAccount, Name: name}},
		},
	}
}

// Room is an active Room whose members are agents of its namespace, by name.
func Room(namespace, name string, members ...string) *v1alpha1.Room {
	r := &v1alpha1.Room{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.RoomSpec{DisplayName: name, State: v1alpha1.RoomActive},
	}
	for _, m := range members {
		r.Spec.Members = append(r.Spec.Members, v1alpha1.RoomMember{Agent: &v1alpha1.AgentReference{Name: m}})
	}
	return r
}

// Task is a Task that nobody is assigned to, created by a user.
func Task(namespace, room, name, user string) *v1alpha1.Task {
	return &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.TaskSpec{
			RoomRef: v1alpha1.RoomReference{Name: room}, Title: "Do " + name, DefinitionOfDone: name + " is done",
			Creator: &v1alpha1.TaskCreator{User: user},
		},
	}
}

// Proposal is a Task that one agent assigns to another.
func Proposal(namespace, room, name string, by, to *v1alpha1.Agent) *v1alpha1.Task {
	t := Task(namespace, room, name, "")
	t.Spec.Creator = &v1alpha1.TaskCreator{Plate: ids.Plate(by)}
	t.Spec.Assignee = ids.Plate(to)
	return t
}

// Consent is what an owner agrees to in a room.
func Consent(namespace, room, owner string, mode v1alpha1.ConsentMode, collaborators ...string) *v1alpha1.Consent {
	return &v1alpha1.Consent{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: room + "-" + owner},
		Spec: v1alpha1.ConsentSpec{
			RoomRef: v1alpha1.RoomReference{Name: room}, Owner: owner, Mode: mode, Collaborators: collaborators,
		},
	}
}

// StatusProblems says what tools that wait for objects (kstatus) would find wrong with a status that has settled.
func StatusProblems(generation, observed int64, conditions []metav1.Condition) []string {
	var problems []string
	if observed != generation {
		problems = append(problems, "observedGeneration is not the generation")
	}
	seen := map[string]bool{}
	for _, c := range conditions {
		switch {
		case seen[c.Type]:
			problems = append(problems, c.Type+" is there twice")
		case c.Reason == "" || c.Message == "":
			problems = append(problems, c.Type+" does not say why")
		case c.LastTransitionTime.IsZero():
			problems = append(problems, c.Type+" does not say since when")
		case c.ObservedGeneration > generation:
			problems = append(problems, c.Type+" is of a generation to come")
		}
		seen[c.Type] = true
	}
	if !seen[v1alpha1.ReadyCondition] {
		problems = append(problems, "there is no condition Ready")
	}
	return problems
}
