package acts

import (
	"context"
	"strings"
	"unicode"

	"github.com/oklog/ulid/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

// NewTask is what a person wants done. The bounds are those of the schema.
type NewTask struct {
	// Name of the object, made up when empty. Creating a name twice is refused.
	Name string
	// Title, Detail and DefinitionOfDone say what is to be done; Detail may be empty.
	Title, Detail, DefinitionOfDone string
	// Assignee is a handle or a plate of a member, or empty.
	Assignee string
	// Order within the lane, smaller first, and Priority, 0 to 100.
	Order    int64
	Priority int32
	// Type in the words of the room.
	Type string
	// DependsOn names tasks of the namespace, by name or id.
	DependsOn []string
	// LeaseSeconds overrides the room's lease duration when it is not 0.
	LeaseSeconds int32
}

// CreateTask puts a task on a room's board.
func (p *Person) CreateTask(ctx context.Context, room *v1alpha1.Room, n NewTask) (*v1alpha1.Task, error) {
	if err := open(room); err != nil {
		return nil, err
	}
	if err := n.check(); err != nil {
		return nil, err
	}
	plate, err := p.assignee(ctx, room, n.Assignee)
	if err != nil {
		return nil, err
	}
	task := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Namespace: room.Namespace, Name: n.Name},
		Spec: v1alpha1.TaskSpec{
			RoomRef: v1alpha1.RoomReference{Name: room.Name}, Title: n.Title, Detail: n.Detail, DefinitionOfDone: n.DefinitionOfDone,
			Assignee: plate, Order: n.Order, Priority: n.Priority, Type: n.Type, LeaseDurationSeconds: n.LeaseSeconds,
			Creator: &v1alpha1.TaskCreator{User: p.Name},
		},
	}
	if task.Name == "" {
		task.Name = "task-" + strings.ToLower(ulid.Make().String())
	}
	if plate != "" {
		task.Spec.AssignedBy = &v1alpha1.TaskCreator{User: p.Name}
	}
	for _, ref := range n.DependsOn {
		blocker, err := p.Task(ctx, room.Namespace, ref)
		if err != nil {
			return nil, err
		}
		if blocker.Spec.RoomRef != task.Spec.RoomRef {
			return nil, problem.Invalid("depends-on", "names a task of another room: %s", quote(ref))
		}
		task.Spec.DependsOn = append(task.Spec.DependsOn, blocker.Name)
	}
	if err := p.Client.Create(ctx, task); err != nil {
		return nil, Explain(err, "creating a task in room "+room.Name)
	}
	return task, nil
}

// check refuses texts that say nothing, or hold what no text holds.
func (n NewTask) check() error {
	for _, part := range []struct{ field, text string }{
		{"title", n.Title}, {"definition of done", n.DefinitionOfDone}, {"detail", n.Detail},
	} {
		if part.field != "detail" && blank(part.text) {
			return problem.Invalid(part.field, "may not be blank")
		}
		if bad := problem.CheckText(part.field, part.text); bad != nil {
			return bad
		}
	}
	return nil
}

// checkReason refuses a reason that holds what no text holds.
func checkReason(reason string) error {
	bad := problem.CheckText("reason", reason)
	if bad == nil {
		return nil // a nil *Problem would be no nil error
	}
	return bad
}

func blank(text string) bool { return strings.TrimFunc(text, unicode.IsSpace) == "" }

// assignee gives the plate that a handle means in a room, empty for an empty one.
func (p *Person) assignee(ctx context.Context, room *v1alpha1.Room, handle string) (string, error) {
	if handle == "" {
		return "", nil
	}
	m, err := p.Members(ctx, room)
	if err != nil {
		return "", err
	}
	target, h, bad := handles.Resolve("assignee", handle, m.Agents)
	switch {
	case bad != nil:
		return "", bad
	case h.Session != "":
		return "", problem.Invalid("assignee", "may not name a session: any instance of the agent may claim the task")
	}
	return target.Plate, nil
}

// open refuses what would write into an archived room. A paused one takes the writes of people.
func open(room *v1alpha1.Room) error {
	if room.Spec.State != v1alpha1.RoomArchived {
		return nil
	}
	return problem.New(problem.RoomNotActive, "room %s is archived and kept for reading: make it active first", room.Name)
}

// Assign gives a task to an agent of its room, by handle or plate, or to nobody when the handle is empty. The agent's owner is
// asked when that is somebody else. Who holds the task loses it.
func (p *Person) Assign(ctx context.Context, key client.ObjectKey, handle string) (*v1alpha1.Task, error) {
	task, err := p.Task(ctx, key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	room, err := p.roomOf(ctx, task)
	if err != nil {
		return nil, err
	}
	plate, err := p.assignee(ctx, room, handle)
	if err != nil {
		return nil, err
	}
	return p.changeTask(ctx, key, "assigning", func(t *v1alpha1.Task) error {
		c := t.Status.Consent
		switch {
		case tasks.Terminal(t.Status.State):
			return problem.New(problem.Conflict, "the task is %s: reopen it before assigning it", t.Status.State)
		case c != nil && c.State == v1alpha1.ConsentRejected && plate != "" && c.Assignee == plate:
			return problem.New(problem.Conflict, "%s rejected this task for that agent: %s", c.By, orNone(c.Reason)).
				WithHint("assign it to nobody first to ask again, or to another agent")
		case t.Spec.Assignee == plate:
			return nil
		}
		t.Spec.Assignee, t.Spec.Decision = plate, nil
		t.Spec.AssignedBy = nil
		if plate != "" {
			t.Spec.AssignedBy = &v1alpha1.TaskCreator{User: p.Name}
		}
		return nil
	})
}

func orNone(reason string) string {
	if reason == "" {
		return "no reason given"
	}
	return reason
}

// roomOf reads the room of a task.
func (p *Person) roomOf(ctx context.Context, task *v1alpha1.Task) (*v1alpha1.Room, error) {
	room := &v1alpha1.Room{}
	key := client.ObjectKey{Namespace: task.Namespace, Name: task.Spec.RoomRef.Name}
	if err := p.Client.Get(ctx, key, room); err != nil {
		return nil, Explain(err, "reading room "+key.Name)
	}
	return room, nil
}

// Reprioritise changes a task's place in its lane, its priority (0 to 100), or both. What is nil stays.
func (p *Person) Reprioritise(ctx context.Context, key client.ObjectKey, order *int64, priority *int32) (*v1alpha1.Task, error) {
	return p.changeTask(ctx, key, "reprioritising", func(t *v1alpha1.Task) error {
		if order != nil {
			t.Spec.Order = *order
		}
		if priority != nil {
			t.Spec.Priority = *priority
		}
		return nil
	})
}

// ArchiveTask takes a task that has ended off the board, or puts it back.
func (p *Person) ArchiveTask(ctx context.Context, key client.ObjectKey, archived bool) (*v1alpha1.Task, error) {
	return p.changeTask(ctx, key, "archiving", func(t *v1alpha1.Task) error {
		if archived && !tasks.Terminal(t.Status.State) {
			return problem.New(problem.Conflict, "the task is %s: only one that is Done, Failed or Cancelled can be archived",
				t.Status.State)
		}
		t.Spec.Archived = archived
		return nil
	})
}

// Release takes a task from its holder and puts it back to Todo. epoch is the one that the person saw, so that nobody is met who
// claimed since; nil stands for whoever holds it now. Release, Cancel and Reopen return when the controller has carried the order
// out.
func (p *Person) Release(ctx context.Context, key client.ObjectKey, reason string, epoch *int64) (*v1alpha1.Task, error) {
	return p.order(ctx, key, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionRelease, Reason: reason, Epoch: epoch})
}

// Cancel cancels a task that has not ended. It needs a reason. See Release.
func (p *Person) Cancel(ctx context.Context, key client.ObjectKey, reason string) (*v1alpha1.Task, error) {
	if blank(reason) {
		return nil, problem.Invalid("reason", "must be given to cancel a task: say why")
	}
	return p.order(ctx, key, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionCancel, Reason: reason})
}

// Reopen puts a task that has ended, or is blocked, back to Todo, and back on the board. See Release.
func (p *Person) Reopen(ctx context.Context, key client.ObjectKey, reason string) (*v1alpha1.Task, error) {
	return p.order(ctx, key, v1alpha1.TaskIntervention{Action: v1alpha1.InterventionReopen, Reason: reason})
}

// order writes an order into a task and waits for what comes of it.
func (p *Person) order(ctx context.Context, key client.ObjectKey, order v1alpha1.TaskIntervention) (*v1alpha1.Task, error) {
	if err := checkReason(order.Reason); err != nil {
		return nil, err
	}
	order.ID, order.By = strings.ToLower(ulid.Make().String()), p.Name
	task, err := p.changeTask(ctx, key, strings.ToLower(string(order.Action))+":", func(t *v1alpha1.Task) error {
		if order.Action == v1alpha1.InterventionReopen {
			t.Spec.Archived = false
		}
		if bad := tasks.MayIntervene(t, &order, p.Clock.Now()); bad != nil {
			return bad
		}
		t.Spec.Intervention = order.DeepCopy()
		return nil
	})
	if err != nil {
		return nil, err
	}
	task, err = p.await(ctx, task, func(t *v1alpha1.Task) bool {
		done, now := t.Status.Intervention, t.Spec.Intervention
		return (done != nil && done.ID == order.ID) || now == nil || now.ID != order.ID
	})
	if err != nil {
		return task, err
	}
	switch done := task.Status.Intervention; {
	case done == nil || done.ID != order.ID:
		return task, problem.New(problem.Conflict, "somebody else gave an order about the task meanwhile: look at it again")
	case done.Refused != "":
		return task, problem.New(problem.Conflict, "%s", done.Refused)
	}
	return task, nil
}

func same(before, after any) bool { return equality.Semantic.DeepEqual(before, after) }

// IDOf gives what tools and the plugin call a task by.
func IDOf(task *v1alpha1.Task) string { return ids.ID(task) }
