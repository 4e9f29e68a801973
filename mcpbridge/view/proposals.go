package view

import (
	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// Assignee gives the plate of a task's assignee, empty when the agent does not exist, and whether anybody is assigned.
func (v *View) Assignee(task *v1alpha1.Task) (plate string, assigned bool) {
	name := task.Spec.Assignee
	switch {
	case name == "":
		return "", false
	case ids.IsPlate(name):
		return name, true
	}
	if agent, ok := v.Agent(task.Namespace, name); ok {
		return ids.Plate(agent), true
	}
	return "", true
}

// Proposal gives what the consent to a task of a room is judged by.
func (v *View) Proposal(room *v1alpha1.Room, task *v1alpha1.Task) consent.Proposal {
	plate, _ := v.Assignee(task)
	assignee, _ := v.AgentByPlate(plate)
	return consent.Propose(task, consent.Parties{
		Assigner: v.assigner(task), Assignee: assignee,
		InRoom:  func(person string) bool { return v.Members(room).Owners[person] },
		InForce: func(owner string) *v1alpha1.Consent { return v.Consent(room, owner) },
	})
}

// Proposer gives the person for whom a task was assigned, empty when that is not known.
func (v *View) Proposer(task *v1alpha1.Task) string { return consent.Proposer(task, v.assigner(task)) }

// assigner gives the agent that assigned a task, nil when it was a person or the agent is gone.
func (v *View) assigner(task *v1alpha1.Task) *v1alpha1.Agent {
	by := consent.AssignedBy(task)
	if by == nil || by.Plate == "" {
		return nil
	}
	agent, _ := v.AgentByPlate(by.Plate)
	return agent
}
