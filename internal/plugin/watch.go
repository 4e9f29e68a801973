package plugin

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/terminal"
)

// redraw is how long changes are gathered before the board is shown anew, tick how often leases that run down are.
const (
	redraw = 150 * time.Millisecond
	tick   = 10 * time.Second
)

// watchBoard shows the board anew with each change until the context ends. On a screen it takes the place of the one before.
func (o *options) watchBoard(ctx context.Context, room *v1alpha1.Room, b *board) error {
	if o.output != "" && o.output != "wide" {
		return fmt.Errorf("--watch shows a table: leave -o %s out", o.output)
	}
	changed := make(chan struct{}, 1)
	touch := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.TaskList{}
			return list, o.watch.List(ctx, list, ofRoom(room, &raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return o.watch.Watch(ctx, &v1alpha1.TaskList{}, ofRoom(room, &raw))
		},
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &v1alpha1.Task{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: touch, UpdateFunc: func(_, o any) { touch(o) }, DeleteFunc: touch,
		},
	})
	go informer.RunWithContext(ctx)
	return o.redrawBoard(ctx, room, b, changed)
}

func (o *options) redrawBoard(ctx context.Context, room *v1alpha1.Room, b *board, changed <-chan struct{}) error {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	for {
		if err := o.drawBoard(ctx, room, b); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // ended by whoever watches
			}
			complain(o.Err, err) // and it is tried again
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			if !pause(ctx, redraw) {
				return nil
			}
		case <-clock.C:
			if o.columns == 0 {
				continue // a file gets changes only
			}
		}
	}
}

func (o *options) drawBoard(ctx context.Context, room *v1alpha1.Room, b *board) error {
	var out strings.Builder
	screen := o.Out
	shown := *o
	shown.Out, shown.Err = &out, &out
	if err := shown.showBoard(ctx, room, b); err != nil {
		return err
	}
	title := fmt.Sprintf("%s  %s  (Ctrl-C ends it)\n\n", terminal.Line(room.Spec.DisplayName), time.Now().Format(time.TimeOnly))
	if o.columns > 0 {
		title = "\x1b[H\x1b[2J" + title
	}
	if _, err := io.WriteString(screen, title+out.String()+map[bool]string{true: "", false: "\n"}[o.columns > 0]); err != nil {
		return fmt.Errorf("showing the board: %w", err)
	}
	return nil
}

// ofRoom selects what belongs to a room, for a reflector's list or watch.
func ofRoom(room *v1alpha1.Room, raw *metav1.ListOptions) *client.ListOptions {
	return &client.ListOptions{
		Namespace: room.Namespace, FieldSelector: fields.OneTermEqualSelector("spec.roomRef.name", room.Name), Raw: raw,
	}
}

// pause waits, and answers false when the context ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
