package board

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

const (
	// maxRooms that the list shows.
	maxRooms = 500
	// askAtOnce bounds the questions to the API server for one page that are under way at once.
	askAtOnce = 8
)

// roomItem is a room in the list.
type roomItem struct {
	ID, Name, Namespace, Description, State string
	Tasks                                   v1alpha1.TaskCounts
	Members                                 int
	Messages                                int64
	May                                     rights
}

// visibleRooms gives the rooms that a person may see, by name.
func (b *Board) visibleRooms(ctx context.Context, p *person) ([]*access, error) {
	byNamespace := map[string][]*v1alpha1.Room{}
	for _, room := range b.view.Rooms() {
		byNamespace[room.Namespace] = append(byNamespace[room.Namespace], room)
	}
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(askAtOnce)
	for namespace := range byNamespace {
		asking.Go(func() error {
			_, err := b.rulesIn(ctx, p, namespace)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err //nolint:wrapcheck // rulesIn says whose rights
	}
	var found []*access
	for _, rooms := range byNamespace {
		for _, room := range rooms {
			a, err := b.accessTo(ctx, p, room, ids.ID(room))
			if err != nil {
				return nil, err
			}
			if a != nil {
				found = append(found, a)
			}
		}
	}
	slices.SortFunc(found, func(x, y *access) int {
		return cmp.Or(cmp.Compare(rank(x.room), rank(y.room)), cmp.Compare(x.room.Spec.DisplayName, y.room.Spec.DisplayName),
			cmp.Compare(x.id, y.id))
	})
	return found, nil
}

// rank puts archived rooms behind the others.
func rank(room *v1alpha1.Room) int {
	if room.Spec.State == v1alpha1.RoomArchived {
		return 1
	}
	return 0
}

func (b *Board) roomsSnapshot(ctx context.Context, p *person) (*snapshot, error) {
	found, err := b.visibleRooms(ctx, p)
	if err != nil {
		return nil, err
	}
	items := list{ID: "rooms"}
	for _, a := range found[:min(len(found), maxRooms)] {
		item, err := b.part("r-"+a.id, "room-item", roomItem{
			ID: a.id, Name: a.room.Spec.DisplayName, Namespace: a.room.Namespace, Description: a.room.Spec.Description,
			State: cmp.Or(string(a.room.Spec.State), string(v1alpha1.RoomActive)), Tasks: a.room.Status.Tasks,
			Members: len(a.room.Spec.Members), Messages: a.room.Status.LastSeq, May: a.may,
		})
		if err != nil {
			return nil, err
		}
		items.Parts = append(items.Parts, item)
	}
	shape := "some"
	if len(found) == 0 {
		shape = "none"
	}
	return &snapshot{shape: shape, lists: []list{items}, body: func() (template.HTML, error) {
		return b.fragment("rooms-page", struct {
			Items list
			Left  int
		}{items, max(0, len(found)-maxRooms)})
	}}, nil
}

// simple is a page that shows nothing but a snapshot.
type simple struct {
	Live string
	Body template.HTML
}

// showSimple serves a page that shows a snapshot and is kept live under a path and a query.
func (b *Board) showSimple(w http.ResponseWriter, r *http.Request, p *person, title, live, query string, s *snapshot, shows *written) error {
	body, err := s.body()
	if err != nil {
		return err
	}
	live += "?at=" + cursorOf(shows, s, 0).String()
	if query != "" {
		live += "&" + query
	}
	b.renderPage(w, r, p, http.StatusOK, "simple", title, simple{Live: live, Body: body})
	return nil
}

// showRooms serves the list of rooms.
func (b *Board) showRooms(w http.ResponseWriter, r *http.Request, p *person) error {
	s, err := b.roomsSnapshot(r.Context(), p)
	if err != nil {
		return err
	}
	return b.showSimple(w, r, p, "Rooms", "/live", "", s, nil)
}

func (b *Board) liveRooms(w http.ResponseWriter, r *http.Request, p *person) error {
	return b.live(w, r, p, stream{
		topics: []string{view.RoomsTopic, view.MembersTopic},
		look: func(ctx context.Context) (*snapshot, *access, error) {
			s, err := b.roomsSnapshot(ctx, p)
			return s, nil, err
		},
	})
}
