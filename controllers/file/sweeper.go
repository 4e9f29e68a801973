package file

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/builder"
	"github.com/agentrooms/agentrooms/controllers/internal/metrics"
	"github.com/agentrooms/agentrooms/internal/blobs"
)

// afterGrace is added to the time after which content may go, so that it may when it is looked at.
const afterGrace = time.Second

// again is when a room is swept though nothing is known to be over: a writer may have been killed before it wrote what refers to
// the content that it stored.
const again = 24 * time.Hour

// Sweeper deletes content that no File refers to: what a writer stored before it was killed, and what was collected. It
// sweeps a room once when the process begins to lead, again after Files of the room let go of content, and once a day.
type Sweeper struct {
	// Client reads from caches.
	Client client.Client
	// Live reads from the API server: what is about to be deleted must not be referred to by anything.
	Live client.Reader
	// Blobs holds the contents. Nil when there is no store: then nothing is swept.
	Blobs *blobs.Store
}

// SetupWithManager registers the controller. A request with a namespace names a Room; one without names the UID of a Room
// that is gone.
func (s *Sweeper) SetupWithManager(mgr ctrl.Manager) error {
	if s.Blobs == nil {
		return nil
	}
	appears := ctrlbuilder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
	err := builder.New(mgr, "content", 1).
		Named("content").
		Watches(&v1alpha1.Room{}, s.roomHandler(), appears).
		Watches(&v1alpha1.File{}, s.fileHandler()).
		Complete(builder.Quiet(s))
	if err != nil {
		return fmt.Errorf("building the content controller: %w", err)
	}
	return nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (s *Sweeper) roomHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: string(e.Object.GetUID())}}, s.wait())
		},
	}
}

func (s *Sweeper) wait() time.Duration { return s.Blobs.Grace() + afterGrace }

func (s *Sweeper) fileHandler() handler.EventHandler {
	later := func(f *v1alpha1.File, q queue) {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: f.Namespace, Name: f.Spec.RoomRef.Name}}, s.wait())
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*v1alpha1.File), e.ObjectNew.(*v1alpha1.File)
			if letsGo(before, after) {
				later(after, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if f, ok := e.Object.(*v1alpha1.File); ok {
				later(f, q)
			}
		},
	}
}

// letsGo says whether a File no longer refers to something that it referred to before.
func letsGo(before, after *v1alpha1.File) bool {
	now := sets.New[string]()
	refer(after, now)
	was := sets.New[string]()
	refer(before, was)
	return !now.IsSuperset(was) || len(after.Spec.Uploads) < len(before.Spec.Uploads)
}

func refer(f *v1alpha1.File, to sets.Set[string]) {
	for i := range f.Spec.Versions {
		to.Insert(f.Spec.Versions[i].SHA256)
	}
}

// Reconcile sweeps the content of a room, and comes back while there is content that may go later.
func (s *Sweeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Namespace == "" {
		return ctrl.Result{}, s.drop(ctx, types.UID(req.Name))
	}
	room := &v1alpha1.Room{}
	if err := s.Client.Get(ctx, req.NamespacedName, room); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	references := func(ctx context.Context) (sets.Set[string], error) { return s.references(ctx, room) }
	stats, err := s.Blobs.Sweep(ctx, room.UID, references, blobs.SweepOptions{Now: time.Now()})
	s.count(stats, err)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("sweeping the content of room %s: %w", room.Name, err)
	}
	if stats.Young > 0 || stats.Trashed > 0 || stats.More {
		return ctrl.Result{RequeueAfter: s.wait()}, nil
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// references gives what the Files of a room refer to, as the API server says.
func (s *Sweeper) references(ctx context.Context, room *v1alpha1.Room) (sets.Set[string], error) {
	var list v1alpha1.FileList
	err := s.Live.List(ctx, &list, client.InNamespace(room.Namespace), client.MatchingFields{"spec.roomRef.name": room.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the files of room %s: %w", room.Name, err)
	}
	refs := sets.New[string]()
	for i := range list.Items {
		refer(&list.Items[i], refs)
	}
	return refs, nil
}

// drop deletes everything of a room that is gone.
func (s *Sweeper) drop(ctx context.Context, room types.UID) error {
	var list v1alpha1.RoomList
	if err := s.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing rooms: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].UID == room {
			return nil
		}
	}
	stats, err := s.Blobs.DropRoom(ctx, room)
	s.count(stats, err)
	if err != nil {
		return fmt.Errorf("dropping the content of a room that is gone: %w", err)
	}
	return nil
}

func (s *Sweeper) count(stats blobs.SweepStats, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	metrics.FileSweeps.WithLabelValues(result).Inc()
	metrics.FilesCollected.WithLabelValues("content").Add(float64(stats.Deleted))
	metrics.FileBytesCollected.Add(float64(stats.Bytes))
}
