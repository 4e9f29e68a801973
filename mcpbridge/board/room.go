package board

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

const (
	// maxCell is how many cards a cell shows, maxEnded how many where the tasks have ended. A page of its own lists the rest.
	maxCell, maxEnded = 60, 12
	// maxIdleLanes is up to how many agents have a lane although they have nothing to do.
	maxIdleLanes = 16
	// maxMembers that a page shows.
	maxMembers = 256
)

// column of a board: the states that it shows.
type column struct {
	Key, Name string
	states    []v1alpha1.TaskState
	ended     bool
}

var columns = []column{
	{"todo", "Todo", []v1alpha1.TaskState{v1alpha1.TaskTodo}, false},
	{"doing", "Doing", []v1alpha1.TaskState{v1alpha1.TaskDoing}, false},
	{"blocked", "Blocked", []v1alpha1.TaskState{v1alpha1.TaskBlocked}, false},
	{"done", "Done", []v1alpha1.TaskState{v1alpha1.TaskDone}, true},
	{"dropped", "Failed, cancelled", []v1alpha1.TaskState{v1alpha1.TaskFailed, v1alpha1.TaskCancelled}, true},
}

func columnOf(state v1alpha1.TaskState) int {
	return max(0, slices.IndexFunc(columns, func(c column) bool { return slices.Contains(c.states, state) }))
}

// lane is a row of a board: the tasks of an agent.
type lane struct {
	Key, Alias, Plate string
	Head              part
	Cells             []cell
	tasks             [][]*v1alpha1.Task
}

// cell is where a lane and a column meet.
type cell struct {
	list
	Column column
	More   part
}

// roomView is what the page of a room shows beside its log.
type roomView struct {
	ID      string
	May     rights
	Head    part
	Members list
	Heads   []part
	Lanes   []lane
}

// headView is the top of a room's page.
type headView struct {
	ID, Name, Namespace, Description, State string
	May                                     rights
	Open, Messages                          int64
}

// findRoom gives the room that a path names to somebody who may see it. Nobody is told more than that there is none.
func (b *Board) findRoom(r *http.Request, p *person) (*access, error) {
	id := r.PathValue("id")
	room, ok := b.view.RoomByID(id)
	if !ok {
		return nil, absent("room")
	}
	a, err := b.accessTo(r.Context(), p, room, id)
	if err == nil && a == nil {
		err = absent("room")
	}
	return a, err
}

func absent(what string) error {
	return problem.New(problem.NotFound, "there is no such %s, or you may not see it", what)
}

// again gives the access that the person has now to a room that they had access to.
func (b *Board) again(ctx context.Context, a *access) (*access, error) {
	room, ok := b.view.RoomByID(a.id)
	if !ok {
		return nil, absent("room")
	}
	now, err := b.accessTo(ctx, a.person, room, a.id)
	if err == nil && now == nil {
		err = absent("room")
	}
	return now, err
}

// roomSnapshot gives what the page of a room shows beside its log.
func (b *Board) roomSnapshot(a *access) (*snapshot, error) {
	v := &roomView{ID: a.id, May: a.may}
	var err error
	if v.Head, err = b.roomHead(a); err != nil {
		return nil, err
	}
	if v.Members, err = b.memberList(a); err != nil {
		return nil, err
	}
	if a.may.Tasks {
		if err := b.fillBoard(a, v); err != nil {
			return nil, err
		}
	}
	s := &snapshot{parts: append([]part{v.Head}, v.Heads...), lists: []list{v.Members}}
	shape := []string{fmt.Sprintf("%+v", a.may)}
	for _, l := range v.Lanes {
		shape = append(shape, l.Key)
		s.parts = append(s.parts, l.Head)
		for _, c := range l.Cells {
			s.parts, s.lists = append(s.parts, c.More), append(s.lists, c.list)
		}
	}
	s.shape = strings.Join(shape, " ")
	s.body = func() (template.HTML, error) { return b.fragment("room-page", v) }
	return s, nil
}

func (b *Board) part(id, name string, data any) (part, error) {
	html, err := b.fragment(name, data)
	return part{id, html}, err
}

func (b *Board) roomHead(a *access) (part, error) {
	spec := a.room.Spec
	v := headView{
		ID: a.id, Name: spec.DisplayName, Namespace: a.room.Namespace, Description: spec.Description,
		State: cmp.Or(string(spec.State), string(v1alpha1.RoomActive)), May: a.may,
	}
	return b.part("room-head", "room-head", v)
}

// memberView is a member of a room, with how it is.
type memberView struct {
	Key, Name, Role, Plate string
	Person                 bool
	Instances              []instanceView
}

// instanceView is a running instance of an agent.
type instanceView struct {
	Session, Host, Workspace, Summary string
	Wakeable                          bool
}

func (b *Board) memberList(a *access) (list, error) {
	out := list{ID: "members"}
	members := b.view.Members(a.room)
	add := func(v memberView) error {
		p, err := b.part("m-"+v.Key, "member", v)
		out.Parts = append(out.Parts, p)
		return err
	}
	for _, m := range members.Sorted {
		v := memberView{Key: key(m.Plate), Name: m.Alias(), Role: string(m.Role), Plate: m.Plate, Instances: b.instances(m.Plate)}
		if err := add(v); err != nil {
			return out, err
		}
	}
	users := make([]string, 0, len(members.Users))
	for user := range members.Users {
		users = append(users, user)
	}
	slices.Sort(users)
	for _, user := range users {
		v := memberView{Key: key(user), Name: user, Role: string(members.Users[user]), Person: true}
		if err := add(v); err != nil {
			return out, err
		}
	}
	out.Parts = out.Parts[:min(len(out.Parts), maxMembers)]
	return out, nil
}

func (b *Board) instances(plate string) []instanceView {
	var list []instanceView
	for _, i := range b.view.Instances(plate) {
		notes := i.Lease.Annotations
		list = append(list, instanceView{
			Session: i.Session, Host: notes[v1alpha1.HostAnnotation], Workspace: notes[v1alpha1.WorkspaceAnnotation],
			Summary: notes[v1alpha1.SummaryAnnotation], Wakeable: i.Wakeable(),
		})
	}
	return list
}

// key gives a name that ids of elements can hold.
func key(name string) string {
	if ids.IsPlate(name) {
		return strings.ToLower(strings.TrimPrefix(name, "BRNL-AGT-"))
	}
	return digest(name)[:16]
}

// fillBoard sorts the tasks of the room into lanes and columns.
func (b *Board) fillBoard(a *access, v *roomView) error {
	counts, lanes := make([]int, len(columns)), map[string]*lane{}
	at := func(plate string) *lane {
		if lanes[plate] == nil {
			lanes[plate] = &lane{Key: key(plate), Plate: plate, Alias: b.alias(plate), tasks: make([][]*v1alpha1.Task, len(columns))}
		}
		return lanes[plate]
	}
	at("").Key = "nobody"
	if members := b.view.Members(a.room); len(members.Sorted) <= maxIdleLanes {
		for _, m := range members.Sorted {
			at(m.Plate)
		}
	}
	for _, task := range b.view.Tasks(a.room) {
		if task.Spec.Archived {
			continue
		}
		plate, assigned := b.view.Assignee(task)
		if assigned && plate == "" {
			plate = task.Spec.Assignee
		}
		l, c := at(plate), columnOf(task.Status.State)
		l.tasks[c] = append(l.tasks[c], task)
		counts[c]++
	}
	for i, c := range columns {
		p, err := b.part("h-"+c.Key, "column-head", struct {
			column
			Count int
		}{c, counts[i]})
		if err != nil {
			return err
		}
		v.Heads = append(v.Heads, p)
	}
	for _, l := range lanes {
		if err := b.fillLane(a, l); err != nil {
			return err
		}
		v.Lanes = append(v.Lanes, *l)
	}
	slices.SortFunc(v.Lanes, func(x, y lane) int { return cmp.Or(cmp.Compare(x.Alias, y.Alias), cmp.Compare(x.Key, y.Key)) })
	return nil
}

func (b *Board) fillLane(a *access, l *lane) error {
	name := "Nobody in particular"
	if l.Plate != "" {
		name = l.Alias
	}
	var err error
	l.Head, err = b.part("l-"+l.Key, "lane-head", memberView{Key: l.Key, Name: name, Plate: l.Plate, Instances: b.instances(l.Plate)})
	if err != nil {
		return err
	}
	for i, c := range columns {
		filled, err := b.cell(a, l, c, l.tasks[i])
		if err != nil {
			return err
		}
		l.Cells = append(l.Cells, filled)
	}
	return nil
}

// cell shows the first tasks of a lane in a column: by their order, or the latest where they have ended.
func (b *Board) cell(a *access, l *lane, c column, all []*v1alpha1.Task) (cell, error) {
	limit := maxCell
	if c.ended {
		limit = maxEnded
		slices.SortFunc(all, newestFirst(tasks.UpdatedAt))
	} else {
		slices.SortFunc(all, tasks.ByOrder)
	}
	out := cell{list: list{ID: "c-" + l.Key + "-" + c.Key}, Column: c}
	for _, task := range all[:min(limit, len(all))] {
		p, err := b.card(a, task)
		if err != nil {
			return out, err
		}
		out.Parts = append(out.Parts, p)
	}
	var err error
	out.More, err = b.part("more-"+l.Key+"-"+c.Key, "more", struct {
		ID, Key, Column, Assignee string
		More                      int
	}{a.id, l.Key, c.Key, cmp.Or(l.Plate, "nobody"), len(all) - len(out.Parts)})
	return out, err
}

// showRoom serves the page of a room.
func (b *Board) showRoom(w http.ResponseWriter, r *http.Request, p *person) error {
	a, err := b.findRoom(r, p)
	if err != nil {
		return err
	}
	// The log's end is taken first: what comes later is sent by the stream.
	page, err := b.latestMessages(a)
	if err != nil {
		return err
	}
	s, err := b.roomSnapshot(a)
	if err != nil {
		return err
	}
	body, err := s.body()
	if err != nil {
		return err
	}
	b.renderPage(w, r, p, http.StatusOK, "room", a.room.Spec.DisplayName, struct {
		ID      string
		At      cursor
		May     rights
		Body    template.HTML
		Log     logView
		Members []view.Member
		MaxBody int
	}{a.id, cursorOf(b.tasksOf(a.room), s, page.Last), a.may, body, page, b.view.Members(a.room).Sorted, v1alpha1.MaxBodyCharacters})
	return nil
}

// liveRoom keeps the page of a room live.
func (b *Board) liveRoom(w http.ResponseWriter, r *http.Request, p *person) error {
	a, err := b.findRoom(r, p)
	if err != nil {
		return err
	}
	topics := []string{
		view.RoomsTopic, view.MembersTopic, view.BoardTopic(a.id), view.LeasesTopic(a.id), view.PresenceTopic, view.ConsentsTopic,
		view.LogTopic(a.id),
	}
	look := func(ctx context.Context) (*snapshot, *access, error) {
		now, err := b.again(ctx, a)
		if err != nil {
			return nil, nil, err
		}
		s, err := b.roomSnapshot(now)
		return s, now, err
	}
	return b.live(w, r, p, stream{topics: topics, look: look, shows: b.tasksOf(a.room), log: a.room})
}
