package plugin

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/consent"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/tasks"
)

func newInbox(o *options) *cobra.Command {
	return o.everywhere(o.printed(&cobra.Command{
		Use: "inbox", Short: "Show what waits for your decision: what others ask of your agents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.inbox(cmd.Context()) },
	}))
}

func (o *options) inbox(ctx context.Context) error {
	namespace, err := o.inNamespace(ctx)
	if err != nil {
		return err
	}
	var found v1alpha1.TaskList
	if err := o.watch.List(ctx, &found, client.InNamespace(namespace)); err != nil {
		return acts.Explain(err, "looking for proposals")
	}
	d := o.directory(ctx, namespace)
	waiting := slices.DeleteFunc(pointers(found.Items), func(t *v1alpha1.Task) bool {
		a, ok := d.agent(t.Namespace, t.Spec.Assignee)
		c := t.Status.Consent
		return !ok || a.Spec.Owner != o.person.Name || c == nil || c.State != v1alpha1.ConsentPending || tasks.Terminal(t.Status.State)
	})
	if done, err := objects(o, waiting, false); done {
		return err
	}
	t := o.table("TITLE", "NAMESPACE", "ROOM", "TASK", "TITLE", "FOR", "FROM", "DONE WHEN", "AGE", "TERMS")
	for _, task := range waiting {
		from := task.Spec.AssignedBy
		if from == nil {
			from = task.Spec.Creator
		}
		t.Add(task.Namespace, task.Spec.RoomRef.Name, task.Name, task.Spec.Title, d.call(task.Namespace, task.Spec.Assignee), d.creator(from),
			task.Spec.DefinitionOfDone, age(ids.Created(task).Time), consent.Terms(&task.Spec))
	}
	if o.output != "wide" {
		t.Drop("DONE WHEN")
		t.Drop("TERMS")
	}
	return o.write(t, "Nothing waits for your decision"+where(namespace)+".")
}

func newAccept(o *options) *cobra.Command {
	return newDecision(o, "accept", "Let your agent do what somebody asks of it", func(
		ctx context.Context, key client.ObjectKey, terms, reason string,
	) (*v1alpha1.Task, error) {
		return o.person.Accept(ctx, key, terms, reason)
	})
}

func newReject(o *options) *cobra.Command {
	return newDecision(o, "reject", "Refuse what somebody asks of your agent", func(
		ctx context.Context, key client.ObjectKey, terms, reason string,
	) (*v1alpha1.Task, error) {
		return o.person.Reject(ctx, key, terms, reason)
	})
}

func newDecision(
	o *options, word, short string, decide func(ctx context.Context, key client.ObjectKey, terms, reason string) (*v1alpha1.Task, error),
) *cobra.Command {
	var reason, terms string
	cmd := o.printed(&cobra.Command{
		Use: word + " TASK...", Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: o.completeTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			if terms != "" && len(args) > 1 {
				return problem.New(problem.Validation, "--terms are those of one task: decide on one at a time")
			}
			var done []*v1alpha1.Task
			for _, ref := range args {
				task, err := o.task(cmd.Context(), ref)
				if err == nil {
					task, err = decide(cmd.Context(), client.ObjectKeyFromObject(task), terms, reason)
				}
				if err != nil {
					return err
				}
				done = append(done, task)
				if o.output == "" {
					o.say("task %s/%s: %s, \"%s\"", task.Namespace, task.Name, strings.ToLower(consentOf(task)), task.Spec.Title)
				}
			}
			_, err := objects(o, done, true)
			return err
		},
	}, "name", "json", "yaml")
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "for the one who asked to read")
	cmd.Flags().StringVar(&terms, "terms", "", "decide only if the task still says what you have read (inbox -o wide shows them)")
	return cmd
}

// modes are the modes of consent, and what each means.
var modes = []struct {
	mode  v1alpha1.ConsentMode
	means string
}{
	{v1alpha1.ConsentTaskByTask, "you are asked about every task that somebody else gives your agents"},
	{v1alpha1.ConsentTrustCollaborator, "your agents take tasks from the people you name, and you are asked about others"},
	{v1alpha1.ConsentTrustRoom, "your agents take tasks from everybody in the room"},
	{v1alpha1.ConsentApproveAll, "your agents take every task"},
}

func modeNames() []string {
	names := make([]string, len(modes))
	for i, m := range modes {
		names[i] = string(m.mode)
	}
	return names
}

// parseMode reads a mode as people write it: TrustRoom, trust-room.
func parseMode(word string) (v1alpha1.ConsentMode, error) {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s)) }
	for _, m := range modes {
		if plain(string(m.mode)) == plain(word) {
			return m.mode, nil
		}
	}
	return "", problem.New(problem.Validation, "the mode must be one of %s, not %q", list(modeNames()), word)
}

func newConsent(o *options) *cobra.Command {
	var who []string
	cmd := o.printed(&cobra.Command{
		Use: "consent ROOM [MODE]", Short: "Show or set which tasks of others your agents take unasked in a room",
		Long: "Show or set which tasks of others your agents take unasked in a room. MODE is one of\n\n" + explainModes(),
		Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return modeNames(), cobra.ShellCompDirectiveNoFileComp
			}
			return o.completeRooms(cmd, args, start)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			room, err := o.room(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return o.showConsent(cmd.Context(), room, who)
			}
			mode, err := parseMode(args[1])
			if err != nil {
				return err
			}
			c, err := o.person.SetConsent(cmd.Context(), room, mode, who)
			if err != nil {
				return err
			}
			return o.tellConsent(room, c)
		},
	}, "name", "json", "yaml")
	cmd.Flags().StringSliceVar(&who, "collaborator", nil, "username of somebody to trust, for the mode TrustCollaborator; may be repeated")
	return cmd
}

func explainModes() string {
	var b strings.Builder
	for _, m := range modes {
		b.WriteString("  " + string(m.mode) + ": " + m.means + "\n")
	}
	return b.String()
}

func (o *options) showConsent(ctx context.Context, room *v1alpha1.Room, who []string) error {
	if len(who) > 0 {
		return problem.New(problem.Validation, "--collaborator goes with the mode TrustCollaborator: name it")
	}
	c, err := o.person.Consent(ctx, room, o.person.Name)
	if err != nil {
		return err
	}
	return o.tellConsent(room, c)
}

func (o *options) tellConsent(room *v1alpha1.Room, c *v1alpha1.Consent) error {
	if c == nil {
		if o.output != "" {
			return problem.New(problem.NotFound, "you have set no consent for room %s", room.Name)
		}
		o.say("%s, as you have set nothing for room %s: %s", string(modes[0].mode), room.Name, modes[0].means)
		return nil
	}
	if done, err := objects(o, []*v1alpha1.Consent{c}, true); done {
		return err
	}
	for _, m := range modes {
		if m.mode == c.Spec.Mode {
			o.say("%s in room %s: %s", string(m.mode), room.Name, m.means)
		}
	}
	if c.Spec.Mode == v1alpha1.ConsentTrustCollaborator {
		o.say("you trust %s", strings.Join(c.Spec.Collaborators, ", "))
	}
	return nil
}
