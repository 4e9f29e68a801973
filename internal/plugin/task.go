package plugin

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/problem"
)

func newTask(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "task", Short: "Create, show and change tasks"}
	cmd.AddCommand(newTaskCreate(o), newTaskShow(o), newTaskAssign(o), newTaskSet(o), newTaskArchive(o))
	for _, order := range []struct {
		use, short string
		act        func(context.Context, client.ObjectKey, string) (*v1alpha1.Task, error)
	}{
		{"cancel TASK", "Cancel a task, and take it from its holder", func(ctx context.Context, k client.ObjectKey, reason string) (*v1alpha1.Task, error) {
			return o.person.Cancel(ctx, k, reason)
		}},
		{"reopen TASK", "Put a task that has ended, or is blocked, back to Todo", func(ctx context.Context, k client.ObjectKey, reason string) (*v1alpha1.Task, error) {
			return o.person.Reopen(ctx, k, reason)
		}},
		{"release TASK", "Take a task from its holder, and put it back to Todo", func(ctx context.Context, k client.ObjectKey, reason string) (*v1alpha1.Task, error) {
			return o.person.Release(ctx, k, reason, nil)
		}},
	} {
		var reason string
		c := o.printed(&cobra.Command{
			Use: order.use, Short: order.short, Args: cobra.ExactArgs(1), ValidArgsFunction: o.completeTasks,
			RunE: func(cmd *cobra.Command, args []string) error {
				return o.changed(cmd, args[0], func(ctx context.Context, key client.ObjectKey) (*v1alpha1.Task, error) {
					return order.act(ctx, key, reason)
				})
			},
		}, "name", "json", "yaml")
		c.Flags().StringVarP(&reason, "reason", "r", "", "why, for others to read; cancel needs it")
		cmd.AddCommand(c)
	}
	return cmd
}

// changed finds a task, changes it and says what it is now.
func (o *options) changed(
	cmd *cobra.Command, ref string, act func(context.Context, client.ObjectKey) (*v1alpha1.Task, error),
) error {
	task, err := o.task(cmd.Context(), ref)
	if err != nil {
		return err
	}
	if task, err = act(cmd.Context(), client.ObjectKeyFromObject(task)); err != nil {
		return err
	}
	return o.tell(cmd.Context(), task)
}

// tell says what a task is now.
func (o *options) tell(ctx context.Context, task *v1alpha1.Task) error {
	if done, err := objects(o, []*v1alpha1.Task{task}, true); done {
		return err
	}
	line := "task " + task.Namespace + "/" + task.Name + " is " + string(task.Status.State)
	if task.Spec.Archived {
		line += " and archived"
	}
	if task.Spec.Assignee != "" {
		line += ", assigned to " + o.directory(ctx, task.Namespace).call(task.Namespace, task.Spec.Assignee)
	}
	o.say("%s", line)
	return nil
}

func newTaskCreate(o *options) *cobra.Command {
	n := acts.NewTask{}
	cmd := o.printed(&cobra.Command{
		Use: "create ROOM TITLE", Short: "Put a task on a room's board",
		Example:           `  kubectl rooms task create launch "Pick a date" --done "A message in the room names the date" --assignee @cc(said)`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: o.completeRooms,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			n.Title = args[1]
			if n.Detail, err = o.text(n.Detail); err != nil {
				return err
			}
			room, err := o.room(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			task, err := o.person.CreateTask(cmd.Context(), room, n)
			if err != nil {
				return err
			}
			if done, err := objects(o, []*v1alpha1.Task{task}, true); done {
				return err
			}
			o.say("task %s/%s created, id %s", task.Namespace, task.Name, acts.IDOf(task))
			return nil
		},
	}, "name", "json", "yaml")
	f := cmd.Flags()
	f.StringVar(&n.DefinitionOfDone, "done", "", "how anybody can check that it is done (required)")
	f.StringVar(&n.Detail, "detail", "", "more about it; - reads it from standard input")
	f.StringVar(&n.Assignee, "assignee", "", "who should do it: @name(owner), a name or a plate; any member when absent")
	f.StringVar(&n.Name, "name", "", "name of the object; made up when absent")
	f.StringVar(&n.Type, "type", "", "type in the words of the room: bug, feature, research")
	f.Int32Var(&n.Priority, "priority", 0, "0 to 100, larger is more urgent")
	f.Int64Var(&n.Order, "order", 0, "place in the lane, smaller first")
	f.Int32Var(&n.LeaseSeconds, "lease-seconds", 0, "how long a claim lasts without renewal; the room's own when absent")
	f.StringSliceVar(&n.DependsOn, "depends-on", nil, "tasks that must be Done before: names or ids")
	_ = cmd.MarkFlagRequired("done")
	_ = cmd.RegisterFlagCompletionFunc("assignee", o.completeAgents)
	_ = cmd.RegisterFlagCompletionFunc("depends-on", o.completeTasks)
	return cmd
}

func newTaskAssign(o *options) *cobra.Command {
	var nobody bool
	cmd := o.printed(&cobra.Command{
		Use: "assign TASK [AGENT]", Short: "Give a task to an agent of its room, or to nobody",
		Long: `Give a task to an agent of its room, or with --nobody to whoever takes it. Who holds it loses it. When the agent works for
somebody else, that person is asked, or has agreed to such tasks before.`,
		Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return o.completeAgents(cmd, args, start)
			}
			return o.completeTasks(cmd, args, start)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if nobody == (len(args) == 2) {
				return problem.New(problem.Validation, "name an agent, or use --nobody")
			}
			handle := ""
			if !nobody {
				handle = args[1]
			}
			return o.changed(cmd, args[0], func(ctx context.Context, key client.ObjectKey) (*v1alpha1.Task, error) {
				return o.person.Assign(ctx, key, handle)
			})
		},
	}, "name", "json", "yaml")
	cmd.Flags().BoolVar(&nobody, "nobody", false, "assign it to nobody: any member may claim it")
	return cmd
}

func newTaskSet(o *options) *cobra.Command {
	var order int64
	var priority int32
	cmd := o.printed(&cobra.Command{
		Use: "set TASK", Short: "Change a task's priority and its place in the lane", Args: cobra.ExactArgs(1),
		ValidArgsFunction: o.completeTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			var newOrder *int64
			var newPriority *int32
			if cmd.Flags().Changed("order") {
				newOrder = &order
			}
			if cmd.Flags().Changed("priority") {
				newPriority = &priority
			}
			if newOrder == nil && newPriority == nil {
				return problem.New(problem.Validation, "say what to change: --priority, --order, or both")
			}
			return o.changed(cmd, args[0], func(ctx context.Context, key client.ObjectKey) (*v1alpha1.Task, error) {
				return o.person.Reprioritise(ctx, key, newOrder, newPriority)
			})
		},
	}, "name", "json", "yaml")
	cmd.Flags().Int64Var(&order, "order", 0, "place in the lane, smaller first")
	cmd.Flags().Int32Var(&priority, "priority", 0, "0 to 100, larger is more urgent")
	return cmd
}

func newTaskArchive(o *options) *cobra.Command {
	var undo bool
	cmd := o.printed(&cobra.Command{
		Use: "archive TASK", Short: "Take a task that has ended off the board", Args: cobra.ExactArgs(1), ValidArgsFunction: o.completeTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.changed(cmd, args[0], func(ctx context.Context, key client.ObjectKey) (*v1alpha1.Task, error) {
				return o.person.ArchiveTask(ctx, key, !undo)
			})
		},
	}, "name", "json", "yaml")
	cmd.Flags().BoolVar(&undo, "undo", false, "put it back")
	return cmd
}
