package board

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/deps"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
)

// taskView is all that is known of a task.
type taskView struct {
	ID, RoomID, Room, Namespace, Name string
	Title, Detail, Done, Type, State  string
	Reason                            string
	Priority                          int32
	Order                             int64
	Archived                          bool
	Assignee, AssigneePlate           string
	Creator, AssignedBy               string
	Created                           time.Time
	Consent                           v1alpha1.TaskConsent
	ConsentBy                         string
	// Decide is true for the assignee's owner while the proposal waits for them. Terms stand for what they read.
	Decide bool
	Owner  string
	Terms  string
	Holder string
	Epoch  int64
	Until  time.Time
	Stale  bool
	// Records are the latest one and those that came too late to count.
	Records []recordView
	History []eventView
	Needs   []linkView
	Blocks  []linkView
	// Order of the person that was refused, if the last one was.
	Refused string
	May     rights
	// Ended, Held and Blocked say what may be done about the task.
	Ended, Held, Blocked bool
	Members              []memberOption
}

type recordView struct {
	By, State, Summary, Next, Reason, Result string
	Artifacts                                []string
	Late, Contested                          bool
	At                                       time.Time
}

type eventView struct {
	At             time.Time
	From, To       string
	By, Note       string
	FirstAppearing bool
}

// linkView leads to another task.
type linkView struct {
	ID, Name, Title, State string
	Open                   bool
}

type memberOption struct{ Plate, Alias string }

// findTask gives the task that a path names to somebody who may read tasks where it is.
func (b *Board) findTask(r *http.Request, p *person) (*access, *v1alpha1.Task, error) {
	return b.taskFor(r.Context(), p, r.PathValue("id"))
}

func (b *Board) taskFor(ctx context.Context, p *person, id string) (*access, *v1alpha1.Task, error) {
	task, ok := b.view.TaskByID(id)
	if !ok {
		return nil, nil, absent("task")
	}
	room, ok := b.view.Room(task.Namespace, task.Spec.RoomRef.Name)
	if !ok {
		return nil, nil, absent("task")
	}
	a, err := b.accessTo(ctx, p, room, ids.ID(room))
	if err == nil && (a == nil || !a.may.Tasks) {
		err = absent("task")
	}
	return a, task, err
}

func (b *Board) taskView(a *access, task *v1alpha1.Task) *taskView {
	spec, status := &task.Spec, &task.Status
	plate, _ := b.view.Assignee(task)
	v := &taskView{
		ID: ids.ID(task), RoomID: a.id, Room: a.room.Spec.DisplayName, Namespace: task.Namespace, Name: task.Name,
		Title: spec.Title, Detail: spec.Detail, Done: spec.DefinitionOfDone, Type: spec.Type, State: string(status.State),
		Reason: status.Reason, Priority: spec.Priority, Order: spec.Order, Archived: spec.Archived,
		Assignee: spec.Assignee, AssigneePlate: plate, Creator: b.whoName(spec.Creator), Created: ids.Created(task).Time,
		Epoch: status.Epoch, May: a.may, Ended: tasks.Terminal(status.State), Held: status.Claim != nil,
		Blocked: status.State == v1alpha1.TaskBlocked, Terms: consent.Terms(spec),
	}
	if plate != "" {
		v.Assignee = b.alias(plate)
	}
	if spec.AssignedBy != nil {
		v.AssignedBy = b.whoName(spec.AssignedBy)
	}
	proposal := b.view.Proposal(a.room, task)
	v.Consent, v.Owner = b.consentOf(a.room, task), proposal.AssigneeOwner
	v.ConsentBy = v.Consent.By
	v.Decide = b.decides(a, task)
	if claim := status.Claim; claim != nil {
		v.Holder, v.Until, v.Stale = b.holderName(claim), b.until(a.room, task), stale(task)
	}
	if i := status.Intervention; i != nil {
		v.Refused = i.Refused
	}
	b.fillRecords(v, task)
	b.fillLinks(v, a, task)
	for _, m := range b.view.Members(a.room).Sorted {
		v.Members = append(v.Members, memberOption{m.Plate, m.Alias()})
	}
	return v
}

// decides says whether a proposal waits for the person.
func (b *Board) decides(a *access, task *v1alpha1.Task) bool {
	proposal := b.view.Proposal(a.room, task)
	return proposal.AssigneeOwner == a.person.name && proposal.Proposer != a.person.name &&
		b.consentOf(a.room, task).State == v1alpha1.ConsentPending && !tasks.Terminal(task.Status.State)
}

func (b *Board) fillRecords(v *taskView, task *v1alpha1.Task) {
	if r := task.Status.Record; r != nil {
		v.Records = append(v.Records, b.recordView(r, false))
	}
	for i := range task.Status.Contested {
		v.Records = append(v.Records, b.recordView(&task.Status.Contested[i], true))
	}
	for _, e := range slices.Backward(task.Status.History) {
		v.History = append(v.History, eventView{
			At: e.At.Time, From: string(e.From), To: string(e.To), By: b.byName(e.By), Note: e.Note,
		})
	}
}

func (b *Board) recordView(r *v1alpha1.TaskRecord, contested bool) recordView {
	by := b.alias(r.Plate)
	if r.Session != "" {
		by += "#" + r.Session
	}
	return recordView{
		By: by, State: string(r.State), Summary: r.Summary, Next: r.Next, Reason: r.Reason, Result: r.ResultRef,
		Artifacts: r.Artifacts, Late: r.Late, Contested: contested, At: r.At.Time,
	}
}

// maxLinks bounds how many tasks a page leads to that wait for its own.
const maxLinks = 50

func (b *Board) fillLinks(v *taskView, a *access, task *v1alpha1.Task) {
	open := deps.Open(task, b.lookup(task.Namespace))
	for _, name := range task.Spec.DependsOn {
		link := linkView{Name: name, Title: name, State: "does not exist", Open: slices.Contains(open, name)}
		if needed, ok := b.view.Task(task.Namespace, name); ok {
			link.ID, link.Title, link.State = ids.ID(needed), needed.Spec.Title, string(needed.Status.State)
		}
		v.Needs = append(v.Needs, link)
	}
	for _, other := range sorted(b.view.Tasks(a.room), tasks.ByOrder) {
		if len(v.Blocks) < maxLinks && slices.Contains(other.Spec.DependsOn, task.Name) {
			v.Blocks = append(v.Blocks, linkView{
				ID: ids.ID(other), Name: other.Name, Title: other.Spec.Title, State: string(other.Status.State),
			})
		}
	}
}

// taskParts are the pieces of a task's page, each of which is replaced by itself, so that a form is not taken away from
// somebody who fills it in because something else changed.
var taskParts = []string{"task-head", "task-claim", "task-consent", "task-text", "task-links", "task-records", "task-history", "task-acts"}

func (b *Board) taskSnapshot(a *access, task *v1alpha1.Task) (*snapshot, error) {
	v := b.taskView(a, task)
	s := &snapshot{shape: "task"}
	for _, name := range taskParts {
		p, err := b.part(name, name, v)
		if err != nil {
			return nil, err
		}
		s.parts = append(s.parts, p)
	}
	s.body = func() (template.HTML, error) { return b.fragment("task-page", s.parts) }
	return s, nil
}

// showTask serves the page of a task.
func (b *Board) showTask(w http.ResponseWriter, r *http.Request, p *person) error {
	a, task, err := b.findTask(r, p)
	if err != nil {
		return err
	}
	s, err := b.taskSnapshot(a, task)
	if err != nil {
		return err
	}
	return b.showSimple(w, r, p, task.Spec.Title, "/tasks/"+ids.ID(task)+"/live", "", s, b.tasksOf(a.room))
}

func (b *Board) liveTask(w http.ResponseWriter, r *http.Request, p *person) error {
	a, task, err := b.findTask(r, p)
	if err != nil {
		return err
	}
	id := ids.ID(task)
	return b.live(w, r, p, stream{
		shows: b.tasksOf(a.room),
		topics: []string{
			view.RoomsTopic, view.MembersTopic, view.BoardTopic(a.id), view.LeasesTopic(a.id), view.ConsentsTopic,
		},
		look: func(ctx context.Context) (*snapshot, *access, error) {
			a, task, err := b.taskFor(ctx, p, id)
			if err != nil {
				return nil, nil, err
			}
			s, err := b.taskSnapshot(a, task)
			return s, a, err
		},
	})
}

// taskDialog serves what may be done about a task, for a board that shows its card only.
func (b *Board) taskDialog(w http.ResponseWriter, r *http.Request, p *person) error {
	a, task, err := b.findTask(r, p)
	if err != nil {
		return err
	}
	b.render(w, r, http.StatusOK, "task-dialog", b.taskView(a, task))
	return nil
}

// newTaskDialog serves the form to make a task.
func (b *Board) newTaskDialog(w http.ResponseWriter, r *http.Request, p *person) error {
	a, err := b.findRoom(r, p)
	if err != nil {
		return err
	}
	v := &taskView{RoomID: a.id, Room: a.room.Spec.DisplayName, May: a.may}
	for _, m := range b.view.Members(a.room).Sorted {
		v.Members = append(v.Members, memberOption{m.Plate, m.Alias()})
	}
	b.render(w, r, http.StatusOK, "new-task", v)
	return nil
}

// taskPage is how many tasks a list loads at once.
const taskPage = 50

// taskList is a piece of a list of tasks.
type taskList struct {
	Room, RoomID, Column, Assignee, Who string
	Items                               []cardView
	// Next is the id of the last one shown when there are more.
	Next  string
	Total int
}

// listTasks serves the tasks of a room one page after the other: those of a column, or of an agent, or all.
func (b *Board) listTasks(w http.ResponseWriter, r *http.Request, p *person) error {
	a, err := b.findRoom(r, p)
	if err != nil {
		return err
	}
	if !a.may.Tasks {
		return absent("list of tasks")
	}
	v := taskList{Room: a.room.Spec.DisplayName, RoomID: a.id, Column: r.FormValue("column"), Assignee: r.FormValue("assignee")}
	v.Who = v.Assignee
	if ids.IsPlate(v.Assignee) {
		v.Who = b.alias(v.Assignee)
	}
	found := b.matching(a.room, v.Column, v.Assignee)
	v.Total = len(found)
	start := 0
	if after := r.FormValue("after"); after != "" {
		// A task that has gone from the list meanwhile ends it: the page says where it stands, and no task comes twice.
		start = len(found)
		if i := slices.IndexFunc(found, func(t *v1alpha1.Task) bool { return ids.ID(t) == after }); i >= 0 {
			start = i + 1
		}
	}
	end := min(start+taskPage, len(found))
	for _, task := range found[start:end] {
		item := b.cardView(a, task)
		item.Edit = false
		v.Items = append(v.Items, item)
	}
	if end < len(found) {
		v.Next = ids.ID(found[end-1])
	}
	if isHTMX(r) {
		b.render(w, r, http.StatusOK, "task-items", v)
		return nil
	}
	b.renderPage(w, r, p, http.StatusOK, "task-list", "Tasks of "+a.room.Spec.DisplayName, v)
	return nil
}

// matching gives the tasks of a room in a column and of an assignee, either of which may be empty. The column "archived" has
// those that are off the board.
func (b *Board) matching(room *v1alpha1.Room, columnKey, assignee string) []*v1alpha1.Task {
	var found []*v1alpha1.Task
	for _, task := range b.view.Tasks(room) {
		plate, assigned := b.view.Assignee(task)
		if !assigned {
			plate = "nobody"
		}
		in := columnKey == "" || columns[columnOf(task.Status.State)].Key == columnKey
		if columnKey == "archived" {
			in = true
		}
		if in && task.Spec.Archived == (columnKey == "archived") && (assignee == "" || plate == assignee) {
			found = append(found, task)
		}
	}
	slices.SortFunc(found, func(x, y *v1alpha1.Task) int {
		return cmp.Or(cmp.Compare(columnOf(x.Status.State), columnOf(y.Status.State)), tasks.ByOrder(x, y))
	})
	return found
}
