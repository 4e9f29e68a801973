package plugin

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/terminal"
)

func newTaskShow(o *options) *cobra.Command {
	return o.printed(&cobra.Command{
		Use: "show TASK", Short: "Show a task with its history", Args: cobra.ExactArgs(1), ValidArgsFunction: o.completeTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			task, err := o.task(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if done, err := objects(o, []*v1alpha1.Task{task}, true); done {
				return err
			}
			return o.showTask(cmd.Context(), task)
		},
	}, "name", "json", "yaml")
}

// sheet is what is shown of one thing: names and what they are.
type sheet struct {
	o *options
	b strings.Builder
}

const sheetName = 14

// line adds a line, unless there is nothing to say.
func (s *sheet) line(name, value string) {
	if value == "" {
		return
	}
	fmt.Fprintf(&s.b, "%-*s %s\n", sheetName, name+":", terminal.Line(value))
}

// text adds what may have several lines.
func (s *sheet) text(name, value string) {
	if value == "" {
		return
	}
	fmt.Fprintf(&s.b, "%s:\n", name)
	for _, l := range terminal.Wrap(terminal.Text(value), s.o.columns-2) {
		s.b.WriteString("  " + l + "\n")
	}
}

func (s *sheet) write() error {
	if _, err := s.o.Out.Write([]byte(s.b.String())); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

func (o *options) showTask(ctx context.Context, t *v1alpha1.Task) error {
	d := o.directory(ctx, t.Namespace)
	s := &sheet{o: o}
	s.line("Task", t.Namespace+"/"+t.Name)
	s.line("Id", ids.ID(t))
	s.line("Room", t.Spec.RoomRef.Name)
	s.line("Title", t.Spec.Title)
	state := string(t.Status.State)
	if t.Spec.Archived {
		state += ", archived"
	}
	s.line("State", state)
	s.line("Reason", t.Status.Reason)
	s.line("Assignee", d.call(t.Namespace, t.Spec.Assignee))
	s.line("Assigned by", d.creator(t.Spec.AssignedBy))
	s.line("Created by", d.creator(t.Spec.Creator))
	s.line("Created", stamp(ids.Created(t).Time))
	s.line("Consent", consentLine(t))
	s.line("Holder", holder(t, d))
	if t.Status.Claim != nil {
		s.line("Held since", stamp(t.Status.Claim.AcquiredAt.Time))
		s.line("Lease", remaining(t, o.leases(ctx, t.Namespace)[t.Name]))
	}
	s.line("Priority", count(t.Spec.Priority))
	s.line("Order", strconv.FormatInt(t.Spec.Order, 10))
	s.line("Type", t.Spec.Type)
	s.line("Epoch", strconv.FormatInt(t.Status.Epoch, 10))
	s.line("Depends on", o.blockers(ctx, t))
	for _, c := range t.Status.Conditions {
		if c.Status != "True" {
			s.line(c.Type, c.Reason+": "+c.Message)
		}
	}
	s.text("Definition of done", t.Spec.DefinitionOfDone)
	s.text("Detail", t.Spec.Detail)
	if r := t.Status.Record; r != nil {
		s.text("Last word", recordText(*r, d))
	}
	for _, r := range t.Status.Contested {
		s.text("Contested", recordText(r, d))
	}
	s.text("History", history(t, d))
	return s.write()
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format(time.DateTime) + " (" + age(at) + " ago)"
}

func consentLine(t *v1alpha1.Task) string {
	c := t.Status.Consent
	if c == nil {
		return ""
	}
	line := string(c.State)
	switch {
	case c.Standing:
		line += " by a standing consent (" + c.By + ")"
	case c.By != "":
		line += " by " + c.By
	}
	if c.Reason != "" {
		line += ": " + c.Reason
	}
	return line
}

// blockers gives what a task depends on, and where that stands.
func (o *options) blockers(ctx context.Context, t *v1alpha1.Task) string {
	var words []string
	for _, name := range t.Spec.DependsOn {
		blocker, state := &v1alpha1.Task{}, "missing"
		if err := o.watch.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: name}, blocker); err == nil {
			state = string(blocker.Status.State)
		}
		words = append(words, name+" ("+state+")")
	}
	return strings.Join(words, ", ")
}

func recordText(r v1alpha1.TaskRecord, d directory) string {
	lines := []string{string(r.State) + " by " + d.call("", r.Plate) + ", " + stamp(r.At.Time)}
	if r.Late {
		lines[0] += ", after its lease ran out"
	}
	for _, part := range [][2]string{
		{"", r.Summary}, {"reason: ", r.Reason}, {"result: ", r.ResultRef}, {"artifacts: ", strings.Join(r.Artifacts, ", ")}, {"next: ", r.Next},
	} {
		if part[1] != "" {
			lines = append(lines, part[0]+part[1])
		}
	}
	return strings.Join(lines, "\n")
}

func history(t *v1alpha1.Task, d directory) string {
	var lines []string
	for _, e := range t.Status.History {
		by, session, _ := strings.Cut(e.By, "/")
		if ids.IsPlate(by) {
			by = d.call("", by)
			if session != "" {
				by += "#" + session
			}
		} else {
			by = e.By
		}
		lines = append(lines, fmt.Sprintf("%s  %s → %s  %s  %s", e.At.Local().Format(time.DateTime), e.From, e.To, by, terminal.Line(e.Note)))
	}
	return strings.Join(lines, "\n")
}
