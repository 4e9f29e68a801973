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
	plate, assigned := v.Assignee(task)
	if assigned && plate == "" {
		plate = task.Spec.Assignee
	}
	p := consent.Proposal{Assignee: plate, Proposer: v.Proposer(task)}
	if agent, ok := v.AgentByPlate(plate); ok {
		p.AssigneeOwner = agent.Spec.Owner
		p.Consent = v.Consent(room, p.AssigneeOwner)
	}
	p.ProposerInRoom = p.Proposer != "" && v.Members(room).Owners[p.Proposer]
	return p
}

// Proposer gives the person for whom a task was assigned, empty when that is not known.
func (v *View) Proposer(task *v1alpha1.Task) string {
	by := task.Spec.AssignedBy
	if by == nil {
		by = task.Spec.Creator
	}
	switch {
	case by == nil:
		return ""
	case by.User != "":
		return by.User
	}
	if agent, ok := v.AgentByPlate(by.Plate); ok {
		return agent.Spec.Owner
	}
	return ""
}
