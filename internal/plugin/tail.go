package plugin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/roomlog"
	"github.com/agentrooms/agentrooms/internal/terminal"
)

// tail follows a room's log.
type tail struct {
	o        *options
	room     *v1alpha1.Room
	lines    int
	since    time.Duration
	follow   bool
	book     *roomlog.Book
	shown    int64
	said     directory
	saidRead time.Time
}

// maxLines bounds how far back tail goes.
const maxLines = 100000

func newTail(o *options) *cobra.Command {
	t := &tail{o: o}
	cmd := o.printed(&cobra.Command{
		Use: "tail ROOM", Short: "Show what is said in a room, as it is said", Args: cobra.ExactArgs(1), ValidArgsFunction: o.completeRooms,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if t.lines < 0 || t.lines > maxLines {
				return problem.New(problem.Validation, "--lines must be 0 to %d", maxLines)
			}
			if t.since > 0 && !cmd.Flags().Changed("lines") {
				t.lines = maxLines
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if t.room, err = o.room(cmd.Context(), args[0]); err != nil {
				return err
			}
			return t.run(cmd.Context())
		},
	}, "wide", "json", "yaml")
	cmd.Flags().IntVar(&t.lines, "lines", 20, "how many messages to begin with")
	cmd.Flags().DurationVar(&t.since, "since", 0, "begin with messages of this long ago: 10m, 2h")
	cmd.Flags().BoolVarP(&t.follow, "follow", "f", true, "go on with what is said from now on, until Ctrl-C")
	return cmd
}

func (t *tail) run(ctx context.Context) error {
	if !t.follow {
		return t.begin(ctx)
	}
	for wait, begun := time.Duration(0), false; ctx.Err() == nil; {
		err := t.watch(ctx, &begun)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil: // the watch ended, as they do
			wait = 0
			continue
		case final(err) || !begun:
			return err
		}
		complain(t.o.Err, err)
		wait = min(max(2*wait, 200*time.Millisecond), 10*time.Second)
		if !pause(ctx, wait) {
			return nil
		}
	}
	return nil
}

// final says whether it is no use to try again.
func final(err error) bool {
	p, ok := problem.As(err)
	return ok && p.Code != problem.Unavailable && p.Code != problem.Conflict
}

// watch shows what is new, and follows until the watch ends. What is there is read after the revision from which it is watched, so
// that nothing falls between the two, and the numbers of the batches leave no double.
func (t *tail) watch(ctx context.Context, begun *bool) error {
	var list v1alpha1.MessageBatchList
	if err := t.o.watch.List(ctx, &list, ofRoom(t.room, nil), client.Limit(1)); err != nil {
		return acts.Explain(err, "following room "+t.room.Name)
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	*begun = true
	raw := &metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true}
	events, err := t.o.watch.Watch(ctx, &v1alpha1.MessageBatchList{}, ofRoom(t.room, raw))
	if err != nil {
		return acts.Explain(err, "following room "+t.room.Name)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		switch event.Type {
		case watch.Added:
			if batch, ok := event.Object.(*v1alpha1.MessageBatch); ok {
				if err := t.saw(ctx, batch); err != nil {
					return err
				}
			}
		case watch.Error:
			if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
				return acts.Explain(err, "following room "+t.room.Name)
			}
			return nil // too old: begin anew, behind what was shown
		case watch.Bookmark, watch.Modified, watch.Deleted:
		}
	}
	return nil
}

// begin reads what was said before, or since what was shown.
func (t *tail) begin(ctx context.Context) error {
	if t.book == nil {
		t.book = roomlog.NewBook(nil)
		if err := t.book.Open(ctx, t.o.person.Batches(), t.room, t.enough()); err != nil {
			return acts.Explain(err, "reading room "+t.room.Name)
		}
		t.shown = t.first() - 1
	} else if err := t.committer().CatchUp(ctx, t.room); err != nil {
		return acts.Explain(err, "reading room "+t.room.Name)
	}
	return t.show(ctx)
}

// committer reads on; it writes nothing.
func (t *tail) committer() *roomlog.Committer {
	return roomlog.NewCommitter(t.o.person.Batches(), t.book, t.o.person.Clock, "tail", nil)
}

// enough says when to go no further back.
func (t *tail) enough() func(*v1alpha1.MessageBatch) bool {
	messages := 0
	return func(b *v1alpha1.MessageBatch) bool {
		messages += len(b.Spec.Messages)
		return messages >= t.lines || (t.since > 0 && time.Since(b.Spec.Messages[0].At.Time) > t.since)
	}
}

func (t *tail) log() *roomlog.Log { return t.book.Log(roomlog.KeyOf(t.room)) }

// first gives the seq of the first message to show.
func (t *tail) first() int64 {
	for _, e := range t.log().Before(0, t.lines) {
		if t.since == 0 || time.Since(e.Message.At.Time) <= t.since {
			return e.Seq
		}
	}
	return t.log().LastSeq() + 1
}

// saw takes in a batch from the watch. One that leaves a gap is either early, or what was before it has gone to the archive.
func (t *tail) saw(ctx context.Context, batch *v1alpha1.MessageBatch) error {
	chain, _, ok := ids.ParseBatchName(batch.Name)
	if !ok || chain != ids.Chain(t.room.Name, t.room.UID) {
		return nil
	}
	t.book.Apply(batch)
	if t.log().End() < batch.Spec.Number {
		if err := t.committer().CatchUp(ctx, t.room); err != nil {
			return acts.Explain(err, "reading room "+t.room.Name)
		}
	}
	return t.show(ctx)
}

// show writes what was not shown yet.
func (t *tail) show(ctx context.Context) error {
	if first := t.log().FirstSeq(); t.shown+1 < first {
		_, _ = fmt.Fprintf(t.o.Err, "… messages %d to %d have moved to the archive\n", t.shown+1, first-1)
		t.shown = first - 1
	}
	for {
		e, ok := t.log().At(t.shown + 1)
		if !ok {
			break
		}
		if err := t.write(ctx, e); err != nil {
			return err
		}
		t.shown = e.Seq
	}
	t.log().Trim(1) // the last one says where the log goes on
	return nil
}

// line is a message for machines.
type line struct {
	ID       string                 `json:"id"`
	Seq      int64                  `json:"seq"`
	At       time.Time              `json:"at"`
	Sender   v1alpha1.MessageSender `json:"sender"`
	Body     string                 `json:"body"`
	Mentions []v1alpha1.Mention     `json:"mentions,omitempty"`
	ParentID string                 `json:"parentID,omitempty"`
	FileRef  string                 `json:"fileRef,omitempty"`
}

func (t *tail) write(ctx context.Context, e roomlog.Entry) error {
	m := e.Message
	id := ids.MessageID(ids.ID(t.room), m.At.Time, e.Seq)
	machine := line{
		ID: id, Seq: e.Seq, At: m.At.UTC(), Sender: m.Sender, Body: m.Body, Mentions: m.Mentions, ParentID: m.ParentID, FileRef: m.FileRef,
	}
	switch t.o.output {
	case "json":
		return terminal.JSON(t.o.Out, machine, "") //nolint:wrapcheck // says itself what it did
	case "yaml":
		_, _ = fmt.Fprintln(t.o.Out, "---")
		return terminal.YAML(t.o.Out, machine) //nolint:wrapcheck // says itself what it did
	}
	t.look(ctx, m)
	head := fmt.Sprintf("#%d %s %s", e.Seq, m.At.Local().Format(when(m.At.Time)), t.said.sender(m.Sender))
	if len(m.Mentions) > 0 {
		head += " → " + strings.Join(t.mentioned(m), ", ")
	}
	if t.o.output == "wide" {
		head += "  " + id
		if m.ParentID != "" {
			head += "  answers " + m.ParentID
		}
	}
	var b strings.Builder
	b.WriteString(terminal.Line(head) + "\n")
	for _, l := range terminal.Wrap(terminal.Text(m.Body), t.o.columns-4) {
		b.WriteString("    " + l + "\n")
	}
	if _, err := t.o.Out.Write([]byte(b.String())); err != nil {
		return fmt.Errorf("showing a message: %w", err)
	}
	return nil
}

// when gives the form of a time: today's without the date.
func when(at time.Time) string {
	if now := time.Now(); at.Local().YearDay() == now.YearDay() && at.Local().Year() == now.Year() {
		return time.TimeOnly
	}
	return time.DateTime
}

func (t *tail) mentioned(m *v1alpha1.Message) []string {
	names := make([]string, len(m.Mentions))
	for i, to := range m.Mentions {
		names[i] = t.said.call("", to.Plate)
		if to.Session != "" {
			names[i] += "#" + to.Session
		}
	}
	return names
}

// stale is how long names are believed before an unknown one is looked up.
const stale = 5 * time.Second

// look reads how agents are called, when somebody unknown speaks or is spoken to.
func (t *tail) look(ctx context.Context, m *v1alpha1.Message) {
	unknown := m.Sender.Type == v1alpha1.SenderAgent && t.said.byPlate[m.Sender.ID] == nil
	for _, to := range m.Mentions {
		unknown = unknown || t.said.byPlate[to.Plate] == nil
	}
	if unknown && time.Since(t.saidRead) > stale {
		t.said, t.saidRead = t.o.directory(ctx, t.room.Namespace), time.Now()
	}
}
