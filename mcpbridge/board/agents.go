package board

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

// maxAgents that the page shows.
const maxAgents = 500

// agentView is an agent with its instances.
type agentView struct {
	Key, Alias, Owner, Namespace, Name, Plate string
	Scopes                                    []v1alpha1.Scope
	Decides                                   bool
	Instances                                 []instanceView
	Rooms                                     []settingView
	Pending                                   int
}

// visibleAgents gives the agents that a person may see, by alias.
func (b *Board) visibleAgents(ctx context.Context, p *person) ([]*v1alpha1.Agent, error) {
	byNamespace := map[string][]*v1alpha1.Agent{}
	for _, agent := range b.view.Agents() {
		byNamespace[agent.Namespace] = append(byNamespace[agent.Namespace], agent)
	}
	asking, asked := errgroup.WithContext(ctx)
	asking.SetLimit(askAtOnce)
	for namespace := range byNamespace {
		asking.Go(func() error {
			_, err := b.rulesIn(asked, p, namespace)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err //nolint:wrapcheck // rulesIn says whose rights
	}
	var found []*v1alpha1.Agent
	for namespace, agents := range byNamespace {
		r, err := b.rulesIn(ctx, p, namespace)
		if err != nil {
			return nil, err
		}
		for _, agent := range agents {
			if r.allow("get", "agents", agent.Name) {
				found = append(found, agent)
			}
		}
	}
	slices.SortFunc(found, func(x, y *v1alpha1.Agent) int {
		return cmp.Or(cmp.Compare(x.Spec.DisplayName, y.Spec.DisplayName), cmp.Compare(x.Spec.Owner, y.Spec.Owner),
			cmp.Compare(x.UID, y.UID))
	})
	return found, nil
}

func (b *Board) agentsSnapshot(ctx context.Context, p *person) (*snapshot, error) {
	agents, err := b.visibleAgents(ctx, p)
	if err != nil {
		return nil, err
	}
	rooms, err := b.visibleRooms(ctx, p)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, a := range rooms {
		seen[a.id] = true
	}
	items, shape := list{ID: "agents"}, "none"
	for _, agent := range agents[:min(len(agents), maxAgents)] {
		item, err := b.part("g-"+key(ids.Plate(agent)), "agent", b.agentView(agent, seen))
		if err != nil {
			return nil, err
		}
		items.Parts, shape = append(items.Parts, item), "some"
	}
	return &snapshot{shape: shape, lists: []list{items}, body: func() (template.HTML, error) {
		return b.fragment("agents-page", items)
	}}, nil
}

func (b *Board) agentView(agent *v1alpha1.Agent, seen map[string]bool) agentView {
	plate := ids.Plate(agent)
	v := agentView{
		Key: key(plate), Alias: handles.Alias(agent.Spec.DisplayName, agent.Spec.Owner), Owner: agent.Spec.Owner,
		Namespace: agent.Namespace, Name: agent.Name, Plate: plate, Scopes: agent.Spec.Scopes,
		Decides: slices.Contains(agent.Spec.Delegations, v1alpha1.DelegationConsent), Instances: b.instances(plate),
		Pending: b.view.Pending(plate),
	}
	for _, room := range b.view.RoomsOf(plate) {
		if id := ids.ID(room); seen[id] {
			v.Rooms = append(v.Rooms, settingView{ID: id, Room: room.Spec.DisplayName})
		}
	}
	return v
}

// showAgents serves the agents and their instances.
func (b *Board) showAgents(w http.ResponseWriter, r *http.Request, p *person) error {
	s, err := b.agentsSnapshot(r.Context(), p)
	if err != nil {
		return err
	}
	return b.showSimple(w, r, p, "Agents", "/agents/live", "", s, nil)
}

func (b *Board) liveAgents(w http.ResponseWriter, r *http.Request, p *person) error {
	return b.live(w, r, p, stream{
		topics: []string{view.MembersTopic, view.PresenceTopic},
		look: func(ctx context.Context) (*snapshot, *access, error) {
			s, err := b.agentsSnapshot(ctx, p)
			return s, nil, err
		},
	})
}
