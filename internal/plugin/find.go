package plugin

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// find looks for something in the namespace, and in all others when it is not there and no namespace was named.
func find[T any](
	ctx context.Context, o *options, ref string, look func(ctx context.Context, namespace, ref string) (*T, error),
) (*T, error) {
	if err := o.connect(ctx); err != nil {
		return nil, err
	}
	namespace, named, err := o.namespace()
	if err != nil {
		return nil, err
	}
	found, err := look(ctx, namespace, ref)
	if named || !missing(err) {
		return found, err
	}
	if ns, name, both := strings.Cut(ref, "/"); both {
		if found, err := look(ctx, ns, name); !missing(err) {
			return found, err
		}
	}
	elsewhere, err2 := look(ctx, "", ref)
	if p, ok := problem.As(err2); ok && (p.Code == problem.Forbidden || p.Code == problem.NotFound) {
		return nil, err
	}
	return elsewhere, err2
}

func missing(err error) bool {
	p, ok := problem.As(err)
	return ok && p.Code == problem.NotFound
}

// agent finds an agent by name, plate or alias.
func (o *options) agent(ctx context.Context, ref string) (*v1alpha1.Agent, error) {
	return find(ctx, o, ref, func(ctx context.Context, namespace, ref string) (*v1alpha1.Agent, error) {
		var list v1alpha1.AgentList
		if err := o.watch.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, acts.Explain(err, "looking for agent "+ref)
		}
		return pick(list.Items, ref)
	})
}

// pick gives the one agent that a name, plate or alias means.
func pick(all []v1alpha1.Agent, ref string) (*v1alpha1.Agent, error) {
	var found []*v1alpha1.Agent
	h, bad := handles.Parse("agent", ref)
	for i := range all {
		a := &all[i]
		named := handles.Agent{Plate: ids.Plate(a), Name: a.Spec.DisplayName, Owner: a.Spec.Owner}
		if a.Name == ref || (bad == nil && len(handles.Match(h, []handles.Agent{named})) > 0) {
			found = append(found, a)
		}
	}
	// A name in the namespace comes before somebody's alias.
	if i := slices.IndexFunc(found, func(a *v1alpha1.Agent) bool { return a.Name == ref }); i >= 0 && len(found) > 1 {
		found = found[i : i+1]
	}
	switch len(found) {
	case 0:
		return nil, problem.New(problem.NotFound, "there is no agent %q: kubectl rooms agents shows those you may see", ref)
	case 1:
		return found[0], nil
	default:
		p := problem.New(problem.Validation, "several agents are called %q: use the plate", ref)
		for _, a := range found {
			p.Candidates = append(p.Candidates, ids.Plate(a)+" "+aliasOf(a))
		}
		return nil, p
	}
}

func aliasOf(a *v1alpha1.Agent) string { return handles.Alias(a.Spec.DisplayName, a.Spec.Owner) }

// directory says how agents are called.
type directory struct {
	byPlate map[string]*v1alpha1.Agent
	byName  map[string]*v1alpha1.Agent
}

// directory reads the agents that the person may see: of all namespaces, or else of one. Without any, plates stand for
// themselves.
func (o *options) directory(ctx context.Context, namespace string) directory {
	d := directory{byPlate: map[string]*v1alpha1.Agent{}, byName: map[string]*v1alpha1.Agent{}}
	var list v1alpha1.AgentList
	if err := o.watch.List(ctx, &list); err != nil {
		list = v1alpha1.AgentList{}
		_ = o.watch.List(ctx, &list, client.InNamespace(namespace)) // who may not see them sees plates
	}
	for i := range list.Items {
		a := &list.Items[i]
		d.byPlate[ids.Plate(a)] = a
		d.byName[a.Namespace+"/"+a.Name] = a
	}
	return d
}

// agent finds an agent by plate, or by its name in a namespace.
func (d directory) agent(namespace, name string) (*v1alpha1.Agent, bool) {
	if a, ok := d.byPlate[name]; ok {
		return a, true
	}
	a, ok := d.byName[namespace+"/"+name]
	return a, ok
}

// call gives how an agent is called: its alias, or what it was asked for by.
func (d directory) call(namespace, name string) string {
	if a, ok := d.agent(namespace, name); ok {
		return aliasOf(a)
	}
	return name
}

// creator gives how a task's creator or assigner is called.
func (d directory) creator(c *v1alpha1.TaskCreator) string {
	switch {
	case c == nil:
		return ""
	case c.Plate != "":
		return d.call("", c.Plate)
	default:
		return c.User
	}
}

// sender gives how the sender of a message is called. Only an agent has parentheses: usernames cannot hold any.
func (d directory) sender(s v1alpha1.MessageSender) string {
	switch s.Type {
	case v1alpha1.SenderAgent:
		if a, ok := d.byPlate[s.ID]; ok {
			return aliasOf(a)
		}
		return "@" + s.Name + "(?)"
	case v1alpha1.SenderSystem:
		return "(rooms)"
	default:
		return s.ID
	}
}
