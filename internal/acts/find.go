package acts

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// maxShown is how many candidates a problem lists, and how long what was asked for may be in its text.
const maxShown = 20

// Room finds a room by name, id or display name. An empty namespace stands for all.
func (p *Person) Room(ctx context.Context, namespace, ref string) (*v1alpha1.Room, error) {
	var list v1alpha1.RoomList
	if err := p.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, Explain(err, "looking for room "+quote(ref))
	}
	for _, same := range []func(*v1alpha1.Room) bool{
		func(r *v1alpha1.Room) bool { return r.Name == ref },
		func(r *v1alpha1.Room) bool { return ids.ID(r) == ref },
		func(r *v1alpha1.Room) bool { return r.Spec.DisplayName == ref },
	} {
		var found []*v1alpha1.Room
		for i := range list.Items {
			if same(&list.Items[i]) {
				found = append(found, &list.Items[i])
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return nil, several("room", ref, found)
		}
	}
	return nil, problem.New(problem.NotFound, "there is no room %s%s: kubectl rooms list -A shows those you may see",
		quote(ref), in(namespace))
}

func several(kind, ref string, found []*v1alpha1.Room) error {
	var names []string
	for _, r := range found[:min(len(found), maxShown)] {
		names = append(names, r.Namespace+"/"+r.Name)
	}
	return problem.New(problem.Validation, "several %ss are called %s: name the namespace, or use the id", kind, quote(ref)).
		WithCandidates(names)
}

// Task finds a task by name or id. An empty namespace stands for all.
func (p *Person) Task(ctx context.Context, namespace, ref string) (*v1alpha1.Task, error) {
	if namespace != "" && !ids.Valid(ref) {
		task := &v1alpha1.Task{}
		err := p.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref}, task)
		if apierrors.IsNotFound(err) && !unknownKind(err) {
			return nil, noTask(namespace, ref)
		}
		return task, Explain(err, "reading task "+quote(ref))
	}
	var list v1alpha1.TaskList
	if err := p.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, Explain(err, "looking for task "+quote(ref))
	}
	var found []*v1alpha1.Task
	for i := range list.Items {
		if t := &list.Items[i]; t.Name == ref || ids.ID(t) == ref {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return nil, noTask(namespace, ref)
	case 1:
		return found[0], nil
	default:
		return nil, problem.New(problem.Validation, "several tasks are called %s: name the namespace, or use the id", quote(ref))
	}
}

func noTask(namespace, ref string) error {
	return problem.New(problem.NotFound, "there is no task %s%s: kubectl rooms board ROOM shows the tasks of a room",
		quote(ref), in(namespace))
}

// Members of a room.
type Members struct {
	// Agents that are members, as handles name them, in the order of the spec.
	Agents []handles.Agent
	// Objects are the Agents by plate, as far as the person may see them.
	Objects map[string]*v1alpha1.Agent
	// Users that are members in person.
	Users []string
}

// Person says whether somebody is a member, or an agent of theirs is.
func (m Members) Person(user string) bool {
	return user != "" && (slices.Contains(m.Users, user) ||
		slices.ContainsFunc(m.Agents, func(a handles.Agent) bool { return a.Owner == user }))
}

// Members reads who belongs to a room. Agents of other namespaces that the person may not see are known by their plate only.
func (p *Person) Members(ctx context.Context, room *v1alpha1.Room) (Members, error) {
	m := Members{Objects: map[string]*v1alpha1.Agent{}}
	known, err := p.agents(ctx, room)
	if err != nil {
		return m, err
	}
	for _, member := range room.Spec.Members {
		if member.Agent == nil {
			m.Users = append(m.Users, member.User)
			continue
		}
		a := known.find(room.Namespace, *member.Agent)
		switch {
		case a != nil:
			plate := ids.Plate(a)
			m.Objects[plate] = a
			m.Agents = append(m.Agents, handles.Agent{Plate: plate, Name: a.Spec.DisplayName, Owner: a.Spec.Owner})
		case member.Agent.Plate != "":
			m.Agents = append(m.Agents, handles.Agent{Plate: member.Agent.Plate, Name: member.Agent.Plate})
		}
	}
	return m, nil
}

// agents known to a person.
type agents []v1alpha1.Agent

func (l agents) find(namespace string, ref v1alpha1.AgentReference) *v1alpha1.Agent {
	for i := range l {
		a := &l[i]
		if (ref.Plate != "" && ids.Plate(a) == ref.Plate) || (ref.Plate == "" && a.Namespace == namespace && a.Name == ref.Name) {
			return a
		}
	}
	return nil
}

// agents reads the agents of a room's namespace, and of all namespaces when the room has members from elsewhere and the person
// may.
func (p *Person) agents(ctx context.Context, room *v1alpha1.Room) (agents, error) {
	var list v1alpha1.AgentList
	if err := p.Client.List(ctx, &list, client.InNamespace(room.Namespace)); err != nil {
		return nil, Explain(err, "reading the agents of room "+room.Name)
	}
	known := agents(list.Items)
	if !slices.ContainsFunc(room.Spec.Members, func(m v1alpha1.RoomMember) bool {
		return m.Agent != nil && m.Agent.Plate != "" && known.find("", *m.Agent) == nil
	}) {
		return known, nil
	}
	return p.everywhere(ctx, known)
}

// everywhere gives the agents of all namespaces, or the known ones when the person may not see those.
func (p *Person) everywhere(ctx context.Context, known agents) (agents, error) {
	var all v1alpha1.AgentList
	err := p.Client.List(ctx, &all)
	if apierrors.IsForbidden(err) {
		return known, nil
	}
	if err != nil {
		return nil, Explain(err, "reading the agents of all namespaces")
	}
	return all.Items, nil
}

func quote(ref string) string { return `"` + tasks.Truncate(ref, 64) + `"` }

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}
