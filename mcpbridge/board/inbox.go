package board

import (
	"context"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

// maxDecisions that the inbox shows. Further ones come when those before are decided.
const maxDecisions = 100

// waiting gives what waits for a decision of the person, the oldest first, and the rooms in which it waits.
func (b *Board) waiting(rooms []*access) []*taskView {
	var found []*taskView
	for _, a := range rooms {
		if !a.may.Tasks || !b.ownsIn(a) {
			continue
		}
		for _, task := range sorted(b.view.Tasks(a.room), tasks.ByOrder) {
			if len(found) < maxDecisions && !task.Spec.Archived && b.decides(a, task) {
				found = append(found, b.taskView(a, task))
			}
		}
	}
	slices.SortStableFunc(found, func(x, y *taskView) int { return x.Created.Compare(y.Created) })
	return found
}

// ownsIn says whether an agent of the person is a member of the room: nobody else decides on anything there.
func (b *Board) ownsIn(a *access) bool {
	return slices.ContainsFunc(b.view.Members(a.room).Sorted, func(m view.Member) bool {
		return m.Agent.Spec.Owner == a.person.name
	})
}

func (b *Board) inboxSnapshot(ctx context.Context, p *person) (*snapshot, []string, error) {
	rooms, err := b.visibleRooms(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	items, shape := list{ID: "decisions"}, "none"
	var topics []string
	for _, a := range rooms {
		if b.ownsIn(a) {
			topics = append(topics, view.BoardTopic(a.id))
		}
	}
	for _, v := range b.waiting(rooms) {
		item, err := b.part("d-"+v.ID, "decision", v)
		if err != nil {
			return nil, nil, err
		}
		items.Parts, shape = append(items.Parts, item), "some"
	}
	return &snapshot{shape: shape, lists: []list{items}, body: func() (template.HTML, error) {
		return b.fragment("inbox-page", struct {
			Items list
			Rooms []settingView
		}{items, b.settings(rooms)})
	}}, topics, nil
}

// settingView is what the person's agents take unasked in a room, in a word.
type settingView struct {
	ID, Room, Mode string
}

// settings gives the rooms in which the person's agents are members, with the consent that is in force.
func (b *Board) settings(rooms []*access) []settingView {
	var found []settingView
	for _, a := range rooms {
		if !b.ownsIn(a) {
			continue
		}
		mode := v1alpha1.ConsentTaskByTask
		if c := b.view.Consent(a.room, a.person.name); c != nil {
			mode = c.Spec.Mode
		}
		found = append(found, settingView{a.id, a.room.Spec.DisplayName, modeWords[mode].Title})
	}
	return found
}

// showInbox serves what waits for a decision of the person.
func (b *Board) showInbox(w http.ResponseWriter, r *http.Request, p *person) error {
	s, _, err := b.inboxSnapshot(r.Context(), p)
	if err != nil {
		return err
	}
	return b.showSimple(w, r, p, "Decisions", "/inbox/live", "", s, nil)
}

func (b *Board) liveInbox(w http.ResponseWriter, r *http.Request, p *person) error {
	_, topics, err := b.inboxSnapshot(r.Context(), p)
	if err != nil {
		return err
	}
	return b.live(w, r, p, stream{
		topics: append(topics, view.RoomsTopic, view.MembersTopic, view.ConsentsTopic),
		look: func(ctx context.Context) (*snapshot, *access, error) {
			s, _, err := b.inboxSnapshot(ctx, p)
			return s, nil, err
		},
	})
}

// modeView says in plain words what a mode of consent means.
type modeView struct {
	Mode        v1alpha1.ConsentMode
	Title, Says string
	Chosen      bool
}

// modes in the order in which they trust more.
var modes = []v1alpha1.ConsentMode{
	v1alpha1.ConsentTaskByTask, v1alpha1.ConsentTrustCollaborator, v1alpha1.ConsentTrustRoom, v1alpha1.ConsentApproveAll,
}

var modeWords = map[v1alpha1.ConsentMode]modeView{
	v1alpha1.ConsentTaskByTask: {Title: "Ask me about every task",
		Says: "Nothing that other people or their agents propose is begun before you have accepted it."},
	v1alpha1.ConsentTrustCollaborator: {Title: "Trust the people I name",
		Says: "Your agents take what the people below, and the agents of these people, give them. About everybody else you are asked."},
	v1alpha1.ConsentTrustRoom: {Title: "Trust everybody in this room",
		Says: "Your agents take what members of the room give them, whoever becomes one. About everybody else you are asked."},
	v1alpha1.ConsentApproveAll: {Title: "Take everything",
		Says: "Your agents take whatever anybody gives them in this room. You are not asked."},
}

// consentView is the page of what the person's agents take unasked in a room.
type consentView struct {
	ID, Room      string
	May           rights
	Owns          bool
	Modes         []modeView
	People        []personOption
	Others        []otherConsent
	Collaborators []string
}

type personOption struct {
	Name   string
	Chosen bool
}

type otherConsent struct{ Owner, Title, Trusts string }

// showConsent serves the settings of consent in a room.
func (b *Board) showConsent(w http.ResponseWriter, r *http.Request, p *person) error {
	a, err := b.findRoom(r, p)
	if err != nil {
		return err
	}
	v := consentView{ID: a.id, Room: a.room.Spec.DisplayName, May: a.may, Owns: b.ownsIn(a)}
	mode := v1alpha1.ConsentTaskByTask
	if c := b.view.Consent(a.room, p.name); c != nil {
		mode, v.Collaborators = c.Spec.Mode, c.Spec.Collaborators
	}
	for _, m := range modes {
		words := modeWords[m]
		words.Mode, words.Chosen = m, m == mode
		v.Modes = append(v.Modes, words)
	}
	members := b.view.Members(a.room)
	people := slices.Clone(v.Collaborators)
	for owner := range members.Owners {
		if owner != p.name && !slices.Contains(people, owner) {
			people = append(people, owner)
		}
	}
	slices.Sort(people)
	for _, name := range people {
		v.People = append(v.People, personOption{name, slices.Contains(v.Collaborators, name)})
	}
	if a.may.Consents {
		v.Others = b.otherConsents(a, members)
	}
	b.renderPage(w, r, p, http.StatusOK, "consent", "Consent in "+v.Room, v)
	return nil
}

func (b *Board) otherConsents(a *access, members *view.Members) []otherConsent {
	var found []otherConsent
	for owner := range members.Owners {
		if owner == a.person.name {
			continue
		}
		c := b.view.Consent(a.room, owner)
		if c == nil {
			continue
		}
		other := otherConsent{Owner: owner, Title: string(c.Spec.Mode)}
		if c.Spec.Mode == v1alpha1.ConsentTrustCollaborator {
			other.Trusts = strings.Join(c.Spec.Collaborators, ", ")
		}
		found = append(found, other)
	}
	slices.SortFunc(found, func(x, y otherConsent) int { return strings.Compare(x.Owner, y.Owner) })
	return found
}
