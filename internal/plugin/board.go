package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/leases"
	"github.com/agentrooms/agentrooms/internal/tasks"
	"github.com/agentrooms/agentrooms/internal/terminal"
)

// board is what is asked for of a room's tasks.
type board struct {
	state, assignee string
	archived, watch bool
}

func newBoard(o *options) *cobra.Command {
	b := &board{}
	cmd := o.printed(&cobra.Command{
		Use: "board ROOM", Short: "Show the tasks of a room", Args: cobra.ExactArgs(1), ValidArgsFunction: o.completeRooms,
		PreRunE: func(*cobra.Command, []string) error { return oneOf("state", b.state, append(stateNames(), "")) },
		RunE: func(cmd *cobra.Command, args []string) error {
			room, err := o.room(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if b.watch {
				return o.watchBoard(cmd.Context(), room, b)
			}
			return o.showBoard(cmd.Context(), room, b)
		},
	})
	cmd.Flags().StringVar(&b.state, "state", "", "only tasks in this state: "+list(stateNames()))
	cmd.Flags().StringVar(&b.assignee, "assignee", "", "only tasks of this agent: name, plate or alias")
	cmd.Flags().BoolVar(&b.archived, "archived", false, "archived tasks too")
	cmd.Flags().BoolVarP(&b.watch, "watch", "w", false, "show it anew with each change, until Ctrl-C")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// lanes are the states in the order of the board.
var lanes = []v1alpha1.TaskState{
	v1alpha1.TaskDoing, v1alpha1.TaskTodo, v1alpha1.TaskBlocked, v1alpha1.TaskDone, v1alpha1.TaskFailed, v1alpha1.TaskCancelled,
}

func stateNames() []string {
	names := make([]string, len(lanes))
	for i, s := range lanes {
		names[i] = string(s)
	}
	return names
}

// boardTasks reads the tasks that are asked for, in the order of the board.
func (o *options) boardTasks(ctx context.Context, room *v1alpha1.Room, b *board, d directory) ([]*v1alpha1.Task, error) {
	var found v1alpha1.TaskList
	err := o.watch.List(ctx, &found, client.InNamespace(room.Namespace), client.MatchingFields{"spec.roomRef.name": room.Name})
	if err != nil {
		return nil, acts.Explain(err, "reading the board of room "+room.Name)
	}
	list := slices.DeleteFunc(pointers(found.Items), func(t *v1alpha1.Task) bool {
		return (t.Spec.Archived && !b.archived) || (b.state != "" && string(t.Status.State) != b.state)
	})
	if b.assignee != "" {
		plate := b.assignee
		if a, err := pick(values(d.byPlate), b.assignee); err == nil {
			plate = ids.Plate(a)
		}
		list = slices.DeleteFunc(list, func(t *v1alpha1.Task) bool {
			a, ok := d.agent(t.Namespace, t.Spec.Assignee)
			return t.Spec.Assignee != plate && (!ok || ids.Plate(a) != plate)
		})
	}
	slices.SortStableFunc(list, byLane)
	return list, nil
}

func values(m map[string]*v1alpha1.Agent) []v1alpha1.Agent {
	list := make([]v1alpha1.Agent, 0, len(m))
	for _, a := range m {
		list = append(list, *a)
	}
	return list
}

// byLane orders by state, then as within a lane: order, priority, age.
func byLane(a, b *v1alpha1.Task) int {
	return cmp.Or(
		cmp.Compare(slices.Index(lanes, a.Status.State), slices.Index(lanes, b.Status.State)),
		cmp.Compare(a.Spec.Order, b.Spec.Order), cmp.Compare(b.Spec.Priority, a.Spec.Priority),
		ids.Created(a).Compare(ids.Created(b).Time), cmp.Compare(a.Name, b.Name),
	)
}

func (o *options) showBoard(ctx context.Context, room *v1alpha1.Room, b *board) error {
	d := o.directory(ctx, room.Namespace)
	list, err := o.boardTasks(ctx, room, b, d)
	if err != nil {
		return err
	}
	if done, err := objects(o, list, false); done {
		return err
	}
	t := o.boardTable(list, d, o.leases(ctx, room.Namespace))
	return o.write(t, fmt.Sprintf("Room %s has no such tasks.", room.Name))
}

func (o *options) boardTable(list []*v1alpha1.Task, d directory, held map[string]*coordinationv1.Lease) *terminal.Table {
	t := o.table("TITLE", "STATE", "TASK", "TITLE", "ASSIGNEE", "HOLDER", "LEASE", "CONSENT", "PRIO", "ORDER", "WAITS FOR", "EPOCH", "AGE", "ID")
	for _, task := range list {
		t.Add(string(task.Status.State), task.Name, task.Spec.Title, d.call(task.Namespace, task.Spec.Assignee), holder(task, d),
			remaining(task, held[task.Name]), consentOf(task), count(task.Spec.Priority), strconv.FormatInt(task.Spec.Order, 10),
			waits(task), strconv.FormatInt(task.Status.Epoch, 10), age(ids.Created(task).Time), ids.ID(task))
	}
	if o.output != "wide" {
		for _, column := range []string{"ORDER", "EPOCH", "ID"} {
			t.Drop(column)
		}
	}
	return t
}

// holder gives who holds a task: the agent's alias and its session.
func holder(t *v1alpha1.Task, d directory) string {
	c := t.Status.Claim
	if c == nil {
		return ""
	}
	if c.Session == "" {
		return d.call(t.Namespace, c.Holder)
	}
	return d.call(t.Namespace, c.Holder) + "#" + c.Session
}

func consentOf(t *v1alpha1.Task) string {
	if t.Status.Consent == nil {
		return ""
	}
	return string(t.Status.Consent.State)
}

// waits gives what a task that is open waits for.
func waits(t *v1alpha1.Task) string {
	if tasks.Terminal(t.Status.State) {
		return ""
	}
	for _, c := range t.Status.Conditions {
		if c.Type == v1alpha1.DependenciesMetCondition && c.Status == "False" {
			return strings.Join(t.Spec.DependsOn, ",")
		}
	}
	return ""
}

// leases reads the Leases of a namespace's tasks by task. Who may not see them sees none.
func (o *options) leases(ctx context.Context, namespace string) map[string]*coordinationv1.Lease {
	found, held := coordinationv1.LeaseList{}, map[string]*coordinationv1.Lease{}
	if err := o.watch.List(ctx, &found, client.InNamespace(namespace), client.HasLabels{v1alpha1.TaskLabel}); err != nil {
		return held
	}
	for i := range found.Items {
		held[found.Items[i].Labels[v1alpha1.TaskLabel]] = &found.Items[i]
	}
	return held
}

// remaining says how long the lease of a task lasts by this machine's clock. The manager judges by its own.
func remaining(t *v1alpha1.Task, l *coordinationv1.Lease) string {
	if t.Status.State != v1alpha1.TaskDoing {
		return ""
	}
	if l == nil || leases.Epoch(l) != t.Status.Epoch {
		return "?"
	}
	left := time.Until(leases.ExpiresAt(l))
	if left <= 0 {
		return "over by " + duration.HumanDuration(-left)
	}
	return duration.HumanDuration(left)
}
