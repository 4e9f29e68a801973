package archivedtask

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/testmgr"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const rest = 3 * time.Second

// stage is a room that keeps two archived tasks.
type stage struct {
	*testing.T
	env    *testenv.Env
	ns     string
	room   *v1alpha1.Room
	dir    string
	bucket *blob.Bucket
}

func newStage(t *testing.T) *stage {
	t.Helper()
	env := testenv.Get(t)
	s := &stage{T: t, env: env, ns: env.Namespace(t), dir: t.TempDir()}
	s.room = testenv.Room(s.ns, "lab")
	s.room.Spec.Retention = &v1alpha1.RoomRetention{ArchivedTasks: 2}
	env.Create(t, s.room)
	var err error
	s.bucket, err = fileblob.OpenBucket(s.dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite, NoTempDir: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.bucket.Close() })
	return s
}

// task makes a task that ended. The time at which it did tells the order.
func (s *stage) task(name string, order int, archived bool, dependsOn ...string) *v1alpha1.Task {
	s.Helper()
	task := testenv.Task(s.ns, "lab", name, "said")
	task.Spec.DependsOn = dependsOn
	s.env.Create(s.T, task)
	ended := metav1.NewTime(time.Now().Add(time.Duration(order) * time.Second).Truncate(time.Second))
	task.Status = v1alpha1.TaskStatus{
		State: v1alpha1.TaskCancelled, Reason: "over", History: []v1alpha1.TaskEvent{{At: ended, From: v1alpha1.TaskTodo, To: v1alpha1.TaskCancelled, By: "said"}},
	}
	if err := s.env.Client.Status().Update(s.Context(), task); err != nil {
		s.Fatal(err)
	}
	if archived {
		task.Spec.Archived = true
		if err := s.env.Client.Update(s.Context(), task); err != nil {
			s.Fatal(err)
		}
	}
	return task
}

// mark says that the room is being restored, or takes that back and changes what an import changes then.
func (s *stage) mark(digest string) {
	s.Helper()
	if s.room.Annotations = nil; digest != "" {
		s.room.Annotations = map[string]string{v1alpha1.RestoringAnnotation: digest}
	}
	s.room.Spec.State = map[bool]v1alpha1.RoomState{true: v1alpha1.RoomPaused, false: v1alpha1.RoomActive}[digest != ""]
	if err := s.env.Client.Update(s.Context(), s.room); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) names() []string {
	s.Helper()
	var list v1alpha1.TaskList
	if err := s.env.Client.List(s.Context(), &list, client.InNamespace(s.ns)); err != nil {
		s.Fatal(err)
	}
	var names []string
	for _, task := range list.Items {
		names = append(names, task.Name)
	}
	slices.Sort(names)
	return names
}

func (s *stage) run() *testmgr.Run {
	return testmgr.Start(s.T, s.env, func(mgr ctrl.Manager) error {
		r := &Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Bucket: s.bucket, Clock: clock.RealClock{}, Rest: rest, Every: 50 * time.Millisecond,
		}
		return r.SetupWithManager(mgr)
	})
}

func TestArchivedTasksBeyondTheRetentionMove(t *testing.T) {
	s, g := newStage(t), NewWithT(t)
	first := s.task("first", 0, true)
	needed := s.task("needed", 0, true)
	s.task("second", 1, true)
	s.task("third", 2, true)
	s.task("on-the-board", 0, false)
	dependent := testenv.Task(s.ns, "lab", "dependent", "said")
	dependent.Spec.DependsOn = []string{"needed"}
	s.env.Create(t, dependent)
	// While the room is being restored what waits for its tasks may not be there yet.
	s.mark("digest")
	run := s.run()
	run.ExpectIdle(t, s.ns)
	if got := len(s.names()); got != 6 {
		t.Fatalf("the cluster holds %d tasks of a room that is being restored, want 6", got)
	}
	s.mark("")
	g.Eventually(s.names, testmgr.Soon, testmgr.Tick).Should(Equal([]string{"dependent", "needed", "on-the-board", "second", "third"}))
	run.ExpectIdle(t, s.ns)

	moved, err := archive.ReadTask(t.Context(), s.bucket, s.room.UID, ids.ID(first))
	if err != nil {
		t.Fatal(err)
	}
	if moved.UID != first.UID || moved.Status.State != v1alpha1.TaskCancelled || moved.Spec.Title != first.Spec.Title || moved.ManagedFields != nil {
		t.Errorf("what moved is %+v", moved)
	}
	// What waited for one of them goes: then it goes as well.
	g.Expect(s.env.Client.Delete(t.Context(), dependent)).To(Succeed())
	g.Eventually(s.names, testmgr.Soon, testmgr.Tick).Should(Equal([]string{"on-the-board", "second", "third"}))
	if _, err := archive.ReadTask(t.Context(), s.bucket, s.room.UID, ids.ID(needed)); err != nil {
		t.Error(err)
	}
	run.ExpectIdle(t, s.ns)
}

// TestNothingIsDeletedThatWasNotWritten takes the store away, and lets a task change between the steps.
func TestNothingIsDeletedThatWasNotWritten(t *testing.T) {
	s := newStage(t)
	task := s.task("first", 0, true)
	before := 0
	changing := interceptor.NewClient(s.env.Client, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if before++; before == 1 {
				changed := task.DeepCopy()
				changed.Spec.Title = "changed meanwhile"
				if err := c.Update(ctx, changed); err != nil {
					return fmt.Errorf("changing it: %w", err)
				}
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	r := &Reconciler{Client: changing, Live: s.env.Client, Bucket: s.bucket, Clock: clock.RealClock{}}
	away := &Reconciler{Client: s.env.Client, Live: s.env.Client, Bucket: closed(t), Clock: clock.RealClock{}}
	if err := away.move(t.Context(), s.room, task); err == nil {
		t.Error("a task moved to a store that is closed")
	}
	if err := r.move(t.Context(), s.room, task); err == nil {
		t.Error("a task was deleted that had changed since it was written")
	}
	if got := s.names(); !slices.Equal(got, []string{"first"}) {
		t.Fatalf("the cluster holds %v", got)
	}
	if err := s.env.Client.Get(t.Context(), client.ObjectKeyFromObject(task), task); err != nil {
		t.Fatal(err)
	}
	if err := r.move(t.Context(), s.room, task); err != nil {
		t.Fatal(err)
	}
	moved, err := archive.ReadTask(t.Context(), s.bucket, s.room.UID, ids.ID(task))
	if err != nil || moved.Spec.Title != "changed meanwhile" {
		t.Errorf("the archive holds %+v, %v", moved, err)
	}
	if got := s.names(); len(got) > 0 {
		t.Errorf("the cluster still holds %v", got)
	}
	// One who believes that it still leads does not write what it read before over it.
	old := task.DeepCopy()
	old.ResourceVersion, old.Spec.Title = "1", "stale"
	if err := archive.WriteTask(t.Context(), s.bucket, s.room.UID, ids.ID(task), old); err != nil {
		t.Fatal(err)
	}
	if moved, err = archive.ReadTask(t.Context(), s.bucket, s.room.UID, ids.ID(task)); err != nil || moved.Spec.Title != "changed meanwhile" {
		t.Errorf("a stale writer left %+v, %v", moved, err)
	}
	if _, err := archive.ReadTask(t.Context(), s.bucket, s.room.UID, "01K00000000000000000000000"); !errors.Is(err, archive.ErrNoTask) {
		t.Errorf("a task that never was gives %v", err)
	}
}

func closed(t *testing.T) *blob.Bucket {
	t.Helper()
	b, err := fileblob.OpenBucket(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}
