package view

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// feed brings one kind of object into the View. It is the store of its reflector, and remembers what is there, so that it can
// tell what was deleted while the watch was broken.
type feed struct {
	view   *View
	kind   client.Object
	source *toolscache.ListWatch
	known  map[types.NamespacedName]client.Object
	// filled is closed when everything that existed has come.
	filled chan struct{}
	full   bool
	// live says whether the watch holds.
	live atomic.Bool
}

func newFeed(view *View, kind client.Object, source *toolscache.ListWatch) *feed {
	return &feed{
		view: view, kind: kind, source: source, known: map[types.NamespacedName]client.Object{}, filled: make(chan struct{}),
	}
}

// run watches until the context ends.
func (f *feed) run(ctx context.Context) {
	backoff := retry
	observed := &toolscache.ListWatch{
		ListWithContextFunc: f.source.ListWithContextFunc,
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := f.source.WatchFuncWithContext(ctx, o)
			// One that begins with what exists is only live when all of that has come.
			f.live.Store(err == nil && (o.SendInitialEvents == nil || !*o.SendInitialEvents))
			if err != nil {
				return nil, err //nolint:wrapcheck // the reflector judges the API server's own error
			}
			return &observedWatch{Interface: w, feed: f}, nil
		},
	}
	toolscache.NewReflectorWithOptions(observed, f.kind, f, toolscache.ReflectorOptions{Backoff: &backoff}).RunWithContext(ctx)
}

// observedWatch tells its feed when it is over.
type observedWatch struct {
	watch.Interface
	feed *feed
}

// Stop ends the watch.
func (w *observedWatch) Stop() {
	w.feed.live.Store(false)
	w.Interface.Stop()
}

func (f *feed) take(obj any) (client.Object, bool) {
	o, ok := obj.(client.Object)
	if ok {
		o.SetManagedFields(nil)
	}
	return o, ok
}

// Add takes in an object that the watch shows.
func (f *feed) Add(obj any) error {
	if o, ok := f.take(obj); ok {
		f.known[keyOf(o)] = o
		f.view.Watched(o)
	}
	return nil
}

// Update takes in a change that the watch shows.
func (f *feed) Update(obj any) error { return f.Add(obj) }

// Delete takes in a deletion that the watch shows.
func (f *feed) Delete(obj any) error {
	if o, ok := f.take(obj); ok {
		delete(f.known, keyOf(o))
		f.view.Gone(o)
		f.view.cameTo(f.kind, o.GetResourceVersion())
	}
	return nil
}

// Bookmark takes in how far the watch has come while it had nothing to show.
func (f *feed) Bookmark(resourceVersion string) error {
	f.view.cameTo(f.kind, resourceVersion)
	return nil
}

// Replace takes in everything that exists. What was there before and is not there now was deleted.
func (f *feed) Replace(list []any, resourceVersion string) error {
	next := make(map[types.NamespacedName]client.Object, len(list))
	for _, obj := range list {
		if o, ok := f.take(obj); ok {
			next[keyOf(o)] = o
		}
	}
	for k, old := range f.known {
		if o, still := next[k]; !still || o.GetUID() != old.GetUID() {
			f.view.Gone(old)
		}
	}
	f.known = next
	for _, o := range next {
		f.view.Saw(o)
	}
	f.view.cameTo(f.kind, resourceVersion)
	f.live.Store(true)
	if !f.full {
		f.full = true
		close(f.filled)
	}
	return nil
}

// Resync does nothing: the View needs no reminders.
func (f *feed) Resync() error { return nil }

var (
	_ toolscache.ReflectorStore         = (*feed)(nil)
	_ toolscache.ReflectorBookmarkStore = (*feed)(nil)
)

// Behind says whether the View may lack what others wrote, because a watch is broken and not yet begun anew.
func (v *View) Behind() bool { return v.behind != nil && v.behind() }
