package plugin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// activity is how much goes on in a room.
type activity struct {
	Namespace string `json:"namespace"`
	Room      string `json:"room"`
	Messages  int    `json:"messages"`
	Claims    int    `json:"claims"`
	Finished  int    `json:"finished"`
	Expired   int    `json:"expired"`
	Doing     int    `json:"doing"`
	Todo      int    `json:"todo"`
	// Silent is true when the messages may not be read.
	Silent bool `json:"silent,omitempty"`
}

// top is what is asked for.
type top struct {
	o        *options
	window   time.Duration
	metrics  string
	interval time.Duration
	most     int
	doctor   *doctor
	now      time.Time
}

// maxCounted messages of a room are counted.
const maxCounted = 5000

func newTop(o *options) *cobra.Command {
	t := &top{o: o}
	cmd := o.everywhere(o.printed(&cobra.Command{
		Use: "top", Short: "Show the busiest rooms, and how often tasks are claimed",
		Long: `Show the busiest rooms by what the objects say of the last minutes: messages, claims, and how claims ended. With --metrics, show how
often tasks are claimed at a bridge, by what came of it.`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if t.window < time.Minute || t.window > 7*24*time.Hour {
				return problem.New(problem.Validation, "--window must be 1m to 168h, not %s", t.window)
			}
			if t.interval < time.Second || t.interval > time.Minute {
				return problem.New(problem.Validation, "--interval must be 1s to 1m, not %s", t.interval)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if t.metrics != "" {
				return t.rates(cmd.Context())
			}
			return t.rooms(cmd.Context())
		},
	}, "json", "yaml"))
	f := cmd.Flags()
	f.DurationVar(&t.window, "window", 10*time.Minute, "how far to look back")
	f.IntVar(&t.most, "limit", 20, "how many rooms to show")
	f.StringVar(&t.metrics, "metrics", "", "URL of a bridge's metrics, as in http://127.0.0.1:9090/metrics")
	f.DurationVar(&t.interval, "interval", 5*time.Second, "how long to count with --metrics")
	return cmd
}

func (t *top) rooms(ctx context.Context) error {
	namespace, err := t.o.inNamespace(ctx)
	if err != nil {
		return err
	}
	var rooms v1alpha1.RoomList
	var tasks v1alpha1.TaskList
	for _, l := range []client.ObjectList{&rooms, &tasks} {
		if err := t.o.watch.List(ctx, l, client.InNamespace(namespace)); err != nil {
			return acts.Explain(err, "looking at rooms")
		}
	}
	t.now = time.Now()
	list := make([]*activity, len(rooms.Items))
	for i := range rooms.Items {
		if list[i], err = t.activity(ctx, &rooms.Items[i], tasks.Items); err != nil {
			return err
		}
	}
	slices.SortStableFunc(list, func(a, b *activity) int {
		return cmp.Or(cmp.Compare(b.Messages+b.Claims+b.Finished, a.Messages+a.Claims+a.Finished), cmp.Compare(b.Doing, a.Doing))
	})
	list = list[:min(len(list), max(t.most, 0))]
	if t.o.output != "" {
		return t.o.encode(map[string]any{"window": t.window.String(), "rooms": list})
	}
	table := t.o.table("ROOM", "NAMESPACE", "ROOM", "MSG/MIN", "CLAIMS/MIN", "FINISHED", "EXPIRED", "DOING", "TODO")
	for _, a := range list {
		messages := t.perMinute(a.Messages)
		if a.Silent {
			messages = "?"
		}
		table.Add(a.Namespace, a.Room, messages, t.perMinute(a.Claims), strconv.Itoa(a.Finished), strconv.Itoa(a.Expired), strconv.Itoa(a.Doing),
			strconv.Itoa(a.Todo))
	}
	return t.o.write(table, "There are no rooms"+where(namespace)+".")
}

func (t *top) perMinute(n int) string {
	return strconv.FormatFloat(float64(n)/t.window.Minutes(), 'f', 1, 64)
}

// activity counts what a room's objects say of the window. A task keeps its last twenty changes.
func (t *top) activity(ctx context.Context, room *v1alpha1.Room, tasks []v1alpha1.Task) (*activity, error) {
	a := &activity{Namespace: room.Namespace, Room: room.Name}
	for i := range tasks {
		if task := &tasks[i]; task.Namespace == room.Namespace && task.Spec.RoomRef.Name == room.Name {
			t.count(a, task)
		}
	}
	book := roomlog.NewBook(nil)
	err := book.Open(ctx, t.o.person.Batches(), room, func(b *v1alpha1.MessageBatch) bool {
		a.Messages += len(b.Spec.Messages)
		return a.Messages >= maxCounted || t.now.Sub(b.Spec.Messages[0].At.Time) > t.window
	})
	if err = acts.Explain(err, "reading room "+room.Name); err != nil {
		if p, ok := problem.As(err); ok && p.Code == problem.Forbidden {
			a.Messages, a.Silent = 0, true
			return a, nil
		}
		return nil, err
	}
	a.Messages = 0
	for _, e := range book.Log(roomlog.KeyOf(room)).Before(0, maxCounted) {
		if t.now.Sub(e.Message.At.Time) <= t.window {
			a.Messages++
		}
	}
	return a, nil
}

func (t *top) count(a *activity, task *v1alpha1.Task) {
	if !task.Spec.Archived {
		switch task.Status.State {
		case v1alpha1.TaskDoing:
			a.Doing++
		case v1alpha1.TaskTodo:
			a.Todo++
		case v1alpha1.TaskBlocked, v1alpha1.TaskDone, v1alpha1.TaskFailed, v1alpha1.TaskCancelled:
		}
	}
	for _, e := range task.Status.History {
		if t.now.Sub(e.At.Time) > t.window {
			continue
		}
		switch {
		case e.To == v1alpha1.TaskDoing:
			a.Claims++
		case e.To == v1alpha1.TaskDone || e.To == v1alpha1.TaskFailed:
			a.Finished++
		case e.From == v1alpha1.TaskDoing && e.To == v1alpha1.TaskTodo && e.By == "task-controller" && e.Note == "the lease ran out":
			a.Expired++
		}
	}
}

// rates counts claims at a bridge for a while.
func (t *top) rates(ctx context.Context) error {
	t.doctor = &doctor{o: t.o, metrics: t.metrics, client: &http.Client{Timeout: checkTimeout}}
	before, err := t.claims(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if !pause(ctx, t.interval) {
		return ctx.Err() //nolint:wrapcheck // ended by whoever asked
	}
	after, err := t.claims(ctx)
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	results := make([]string, 0, len(after))
	for r := range after {
		results = append(results, r)
	}
	slices.Sort(results)
	rates := map[string]float64{}
	table := t.o.table("", "CLAIMS", "PER SECOND", "SINCE ITS START")
	for _, r := range results {
		rates[r] = (after[r] - before[r]) / seconds
		table.Add(r, strconv.FormatFloat(rates[r], 'f', 1, 64), strconv.FormatFloat(after[r], 'f', 0, 64))
	}
	if t.o.output != "" {
		return t.o.encode(map[string]any{"claimsPerSecond": rates, "claims": after})
	}
	return t.o.write(table, "Nothing was claimed at this bridge yet.")
}

func (t *top) claims(ctx context.Context) (map[string]float64, error) {
	families, err := t.doctor.scrape(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the bridge's metrics: %w", err)
	}
	out := map[string]float64{}
	for _, m := range families["agentrooms_claims_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "result" {
				out[l.GetValue()] += m.GetCounter().GetValue()
			}
		}
	}
	return out, nil
}
