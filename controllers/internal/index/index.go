// Package index names the indexes of the manager's caches and registers them, so that no controller has to list and look.
package index

import (
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
)

const (
	// Room finds Tasks, Consents and Files by the name of their Room. It is a selectable field of all as well.
	Room = "spec.roomRef.name"
	// TaskAgent finds Tasks by an Agent: by the assignee as the spec has it, and by the plate of creator and assigner.
	TaskAgent = "agent"
	// TaskBlocker finds Tasks by the names of those they depend on.
	TaskBlocker = "spec.dependsOn"
	// Owner finds Agents and Consents by the person. It is a selectable field of both as well.
	Owner = "spec.owner"
	// AgentPlate finds Agents by plate.
	AgentPlate = "plate"
	// AgentSubject finds Agents by the username of their subjects.
	AgentSubject = "subject"
	// RoomMember finds Rooms by member agents: by plate, or by name within the namespace.
	RoomMember = "member"
	// BatchRoom finds MessageBatches by the name of their Room. It is a selectable field as well.
	BatchRoom = Room
	// LeasePlate finds the Leases of instances by the plate of their agent.
	LeasePlate = "instance"
)

// Register adds the indexes of the manager's cache. Each is added once a cache.
func Register(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range []struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}{
		{&v1alpha1.Task{}, Room, taskRoom},
		{&v1alpha1.Task{}, TaskAgent, taskAgents},
		{&v1alpha1.Task{}, TaskBlocker, taskBlockers},
		{&v1alpha1.Consent{}, Room, consentRoom},
		{&v1alpha1.File{}, Room, fileRoom},
		{&v1alpha1.MessageBatch{}, BatchRoom, batchRoom},
		{&v1alpha1.Consent{}, Owner, consentOwner},
		{&v1alpha1.Agent{}, Owner, agentOwner},
		{&v1alpha1.Agent{}, AgentPlate, agentPlate},
		{&v1alpha1.Agent{}, AgentSubject, agentSubjects},
		{&v1alpha1.Room{}, RoomMember, roomMembers},
	} {
		if err := indexer.IndexField(ctx, i.object, i.field, i.values); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", i.object, i.field, err)
		}
	}
	return nil
}

// RegisterInstances adds the index of the cache that holds the Leases of instances.
func RegisterInstances(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &coordinationv1.Lease{}, LeasePlate, leasePlate); err != nil {
		return fmt.Errorf("indexing Leases by %s: %w", LeasePlate, err)
	}
	return nil
}

func taskRoom(o client.Object) []string {
	return []string{o.(*v1alpha1.Task).Spec.RoomRef.Name}
}

func fileRoom(o client.Object) []string {
	return []string{o.(*v1alpha1.File).Spec.RoomRef.Name}
}

func taskAgents(o client.Object) []string {
	s := o.(*v1alpha1.Task).Spec
	var values []string
	add := func(v string) {
		if v != "" && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	add(s.Assignee)
	for _, c := range []*v1alpha1.TaskCreator{s.Creator, s.AssignedBy} {
		if c != nil {
			add(c.Plate)
		}
	}
	return values
}

func taskBlockers(o client.Object) []string {
	return o.(*v1alpha1.Task).Spec.DependsOn
}

func batchRoom(o client.Object) []string {
	return []string{o.(*v1alpha1.MessageBatch).Spec.RoomRef.Name}
}

func consentRoom(o client.Object) []string {
	return []string{o.(*v1alpha1.Consent).Spec.RoomRef.Name}
}

func consentOwner(o client.Object) []string {
	return []string{o.(*v1alpha1.Consent).Spec.Owner}
}

func agentOwner(o client.Object) []string {
	return []string{o.(*v1alpha1.Agent).Spec.Owner}
}

func agentPlate(o client.Object) []string {
	return []string{ids.Plate(o.(*v1alpha1.Agent))}
}

func agentSubjects(o client.Object) []string { return ids.Usernames(o.(*v1alpha1.Agent)) }

func roomMembers(o client.Object) []string {
	var values []string
	for _, m := range o.(*v1alpha1.Room).Spec.Members {
		switch {
		case m.Agent == nil:
		case m.Agent.Plate != "":
			values = append(values, m.Agent.Plate)
		default:
			values = append(values, m.Agent.Name)
		}
	}
	return values
}

func leasePlate(o client.Object) []string {
	return []string{o.GetLabels()[v1alpha1.InstanceLabel]}
}
