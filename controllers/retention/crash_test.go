package retention

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/controllers/internal/pace"
	"github.com/agentrooms/agentrooms/controllers/logs"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/inboxes"
	"github.com/agentrooms/agentrooms/internal/roomlog"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// stage is a room with messages, and what must be found whatever happens to the process that moves them.
type stage struct {
	*testing.T
	env    *testenv.Env
	room   *v1alpha1.Room
	plate  string
	dir    string
	bucket *blob.Bucket
	// sent counts the messages.
	sent int64
	// pending are the mentions that nobody has acknowledged.
	pending int
}

func newStage(t *testing.T, messages int64) *stage {
	t.Helper()
	env := testenv.Get(t)
	ns := env.Namespace(t)
	s := &stage{T: t, env: env, dir: t.TempDir()}
	agent := testenv.Agent(ns, "cc", "said")
	s.room = testenv.Room(ns, "lab", "cc")
	s.room.Spec.Retention = &v1alpha1.RoomRetention{Messages: &v1alpha1.MessageRetention{MaxCount: 100}}
	env.Create(t, agent, s.room)
	s.plate = ids.Plate(agent)
	env.Create(t, &v1alpha1.Inbox{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: ids.InboxName("lab", s.room.UID, s.plate)},
		Spec:       v1alpha1.InboxSpec{RoomRef: v1alpha1.RoomReference{Name: "lab"}, Plate: s.plate},
	})
	s.openBucket()
	for number := int64(1); s.sent < messages; number++ {
		s.batch(number, min(messages-s.sent, 1+rand.Int64N(v1alpha1.MaxBatchMessages)))
	}
	return s
}

func (s *stage) openBucket() {
	s.Helper()
	b, err := fileblob.OpenBucket(s.dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite, NoTempDir: true})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = b.Close() })
	s.bucket = b
}

// batch writes a batch. Each fiftieth message mentions the agent.
func (s *stage) batch(number, n int64) {
	s.Helper()
	b := &v1alpha1.MessageBatch{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.room.Namespace, Name: ids.BatchName("lab", s.room.UID, number)},
		Spec: v1alpha1.MessageBatchSpec{
			RoomRef: v1alpha1.RoomReference{Name: "lab"}, Number: number, FirstSeq: s.sent + 1, Writer: "test",
		},
	}
	for range n {
		s.sent++
		m := v1alpha1.Message{
			Sender: v1alpha1.MessageSender{Type: v1alpha1.SenderHuman, ID: "said"}, Body: fmt.Sprint(s.sent), At: metav1.NowMicro(),
		}
		if s.sent%50 == 0 {
			m.Mentions = []v1alpha1.Mention{{Plate: s.plate}}
			s.pending++
		}
		b.Spec.Messages = append(b.Spec.Messages, m)
	}
	s.env.Create(s.T, b)
}

// reread brings a Book to what the API server holds, as a process that starts does.
func (s *stage) reread() *roomlog.Book {
	s.Helper()
	book := roomlog.NewBook(nil)
	var batches v1alpha1.MessageBatchList
	if err := s.env.Client.List(s.Context(), &batches, client.InNamespace(s.room.Namespace)); err != nil {
		s.Fatal(err)
	}
	for i := range batches.Items {
		book.Apply(&batches.Items[i])
	}
	if err := s.env.Client.Get(s.Context(), client.ObjectKeyFromObject(s.room), s.room); err != nil {
		s.Fatal(err)
	}
	book.Saw(s.room)
	return book
}

// whole expects every message once, in its place, in the log or in the archive, and every pending mention.
func (s *stage) whole(when string) {
	s.Helper()
	book := s.reread()
	log, reader := book.Log(roomlog.KeyOf(s.room)), archive.NewReader(archive.Options{Bucket: s.bucket})
	if log.LastSeq() != s.sent {
		s.Fatalf("%s: the log ends at %d, want %d", when, log.LastSeq(), s.sent)
	}
	for seq := int64(1); seq <= s.sent; seq++ {
		e, ok := log.At(seq)
		if a := log.Seam().Archived; seq <= a {
			old, err := reader.At(s.Context(), s.room.UID, seq)
			if err != nil || old.Message.Body != fmt.Sprint(seq) {
				s.Fatalf("%s: seq %d is not in the archive, which goes up to %d: %+v, %v", when, seq, a, old, err)
			}
			continue
		}
		if !ok || e.Message.Body != fmt.Sprint(seq) {
			s.Fatalf("%s: seq %d is missing, the archive goes up to %d: %+v", when, seq, log.Seam().Archived, e)
		}
	}
	box := &v1alpha1.Inbox{}
	key := client.ObjectKey{Namespace: s.room.Namespace, Name: ids.InboxName("lab", s.room.UID, s.plate)}
	if err := s.env.Client.Get(s.Context(), key, box); err != nil {
		s.Fatal(err)
	}
	if n := inboxes.Pending(&box.Status, inboxes.All(&box.Status, log.Refs(s.plate))); n != s.pending {
		s.Fatalf("%s: %d mentions are pending, want %d", when, n, s.pending)
	}
}

// reconciler makes one as a process that starts does.
func (s *stage) reconciler(c client.Client) *Reconciler {
	s.Helper()
	return &Reconciler{
		Client: c, Live: c, Logs: logs.Over(s.reread()), Bucket: s.bucket, Clock: clock.RealClock{},
		pacer: pace.New(clock.RealClock{}, time.Millisecond),
	}
}

func (s *stage) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.room)}
}

var errCrash = errors.New("the process dies here")

// dying is a client whose process dies at its n-th write, before it or after it.
func (s *stage) dying(n int, after bool) client.Client {
	count := 0
	step := func(write func() error) error {
		if count++; count < n {
			return write()
		}
		if after && count == n {
			if err := write(); err != nil {
				return err
			}
		}
		return errCrash
	}
	return interceptor.NewClient(s.env.Client, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return step(func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return step(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
	})
}

// TestACrashAnywhereLeavesNeitherHoleNorDouble lets the process die at each of its writes, before it and after it, and starts
// a new one each time, until there is nothing left to move.
func TestACrashAnywhereLeavesNeitherHoleNorDouble(t *testing.T) {
	s := newStage(t, 3300)
	s.whole("before anything moved")
	steps := []int{1, 2, 3, 4, 7, 20}
	crashes := 0
	for round := 0; ; round++ {
		n, after := steps[(round/2)%len(steps)], round%2 == 1
		_, err := s.reconciler(s.dying(n, after)).Reconcile(t.Context(), s.request())
		s.whole(fmt.Sprintf("after round %d, which died at write %d", round, n))
		if err == nil {
			break
		}
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		if crashes++; crashes > 500 {
			t.Fatal("it does not come to an end")
		}
	}
	t.Logf("%d crashes", crashes)
	s.expectArchived(3000)
}

// expectArchived expects that the cluster holds what it must and no more.
func (s *stage) expectArchived(through int64) {
	s.Helper()
	book := s.reread()
	a := s.room.Status.Archive
	if a == nil || a.ThroughSeq != through || a.Segments != through/archive.SegmentMessages || a.Bytes <= 0 {
		s.Fatalf("the status says %+v", a)
	}
	var batches v1alpha1.MessageBatchList
	if err := s.env.Client.List(s.Context(), &batches, client.InNamespace(s.room.Namespace)); err != nil {
		s.Fatal(err)
	}
	held := int64(0)
	for _, b := range batches.Items {
		held += int64(len(b.Spec.Messages))
		if b.Spec.Number <= a.ThroughBatch {
			s.Errorf("batch %d is still there, and needed up to %d only", b.Spec.Number, a.ThroughBatch)
		}
	}
	if most := s.sent - through + v1alpha1.MaxBatchMessages; held > most {
		s.Errorf("the cluster holds %d messages, want at most %d", held, most)
	}
	if log := book.Log(roomlog.KeyOf(s.room)); log.LastSeq() != s.sent {
		s.Errorf("the log ends at %d", log.LastSeq())
	}
}

// TestTheStoreFailsHalfWay leaves half a segment behind, as a disk that was full does, and then no store at all.
func TestTheStoreFailsHalfWay(t *testing.T) {
	s := newStage(t, 1200)
	file := filepath.Join(s.dir, filepath.FromSlash(archive.Key(s.room.UID, 1)))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	closed, err := fileblob.OpenBucket(s.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	r := s.reconciler(s.env.Client)
	r.Bucket = closed
	if _, err := r.Reconcile(t.Context(), s.request()); err == nil {
		t.Error("a store that is closed took a segment")
	}
	s.whole("with a store that failed")
	if got := s.condition(); got != "False BlobStoreFailed" {
		t.Errorf("the condition is %q", got)
	}
	if _, err := s.reconciler(s.env.Client).Reconcile(t.Context(), s.request()); err != nil {
		t.Fatal(err)
	}
	s.whole("after the store came back")
	s.expectArchived(1000)
	if got := s.condition(); got != "True WithinRetention" {
		t.Errorf("the condition is %q", got)
	}
	before := s.room.ResourceVersion
	if _, err := s.reconciler(s.env.Client).Reconcile(t.Context(), s.request()); err != nil {
		t.Fatal(err)
	}
	if s.reread(); s.room.ResourceVersion != before {
		t.Error("the room was written though nothing changed")
	}
}

// condition gives what the room says about its history.
func (s *stage) condition() string {
	s.Helper()
	s.reread()
	for _, c := range s.room.Status.Conditions {
		if c.Type == v1alpha1.HistoryBoundedCondition {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// TestAnAgentThatAcknowledgesNothingHoldsUpItsRoomAndIsNamed fills an Inbox.
func TestAnAgentThatAcknowledgesNothingHoldsUpItsRoomAndIsNamed(t *testing.T) {
	s := newStage(t, 1200)
	box := &v1alpha1.Inbox{}
	key := client.ObjectKey{Namespace: s.room.Namespace, Name: ids.InboxName("lab", s.room.UID, s.plate)}
	if err := s.env.Client.Get(t.Context(), key, box); err != nil {
		t.Fatal(err)
	}
	for i := range v1alpha1.MaxCarried - 10 {
		box.Status.Carried = append(box.Status.Carried, v1alpha1.CarriedMention{
			MentionKey: v1alpha1.MentionKey{Seq: 100_000 + int64(i)}, At: metav1.NowMicro(),
		})
	}
	if err := s.env.Client.Status().Update(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	r := s.reconciler(s.env.Client)
	if _, err := r.Reconcile(t.Context(), s.request()); err != nil {
		t.Fatal(err)
	}
	if got := s.condition(); got != "False MentionsPending" || s.room.Status.Archive != nil {
		t.Fatalf("the condition is %q, the archive %+v", got, s.room.Status.Archive)
	}
	if reqs := r.blocked.roomOf(t.Context(), &v1alpha1.Inbox{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.room.Namespace, Labels: map[string]string{v1alpha1.RoomLabel: "lab"},
	}}); len(reqs) != 1 {
		t.Error("an acknowledgement does not wake the room")
	}
	if err := s.env.Client.Get(t.Context(), key, box); err != nil {
		t.Fatal(err)
	}
	box.Status.Carried = nil
	if err := s.env.Client.Status().Update(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), s.request()); err != nil {
		t.Fatal(err)
	}
	s.whole("after the agent acknowledged")
	s.expectArchived(1000)
}

func TestGraces(t *testing.T) {
	var g graces
	room := (&stage{room: testenv.Room("ns", "lab")}).request().NamespacedName
	t0, long := time.Unix(1_800_000_000, 0), 2*time.Minute
	if through, wait := g.over(room, 5, long, t0); through != 0 || wait != long {
		t.Errorf("at once: %d, %s", through, wait)
	}
	// The seam moves every second: what is old goes nevertheless, and nothing that is young.
	for second := 1; second < 600; second++ {
		now := t0.Add(time.Duration(second) * time.Second)
		through, wait := g.over(room, 5+int64(second), long, now)
		if young := int64(5 + second - 120); through > max(young, 0) {
			t.Fatalf("after %d s batch %d goes, which was needed %d s ago", second, through, second-int(through)+5)
		}
		if old := int64(5 + second - 120 - 2*15); through < old {
			t.Fatalf("after %d s only those up to %d go, want %d", second, through, old)
		}
		if wait <= 0 || len(g.rooms[room]) > maxGraces+2 {
			t.Fatalf("after %d s: wait %s, %d remembered", second, wait, len(g.rooms[room]))
		}
	}
	if through, _ := g.over(room, 1, long, t0.Add(time.Hour)); through != 0 {
		t.Error("a room made anew does not begin anew")
	}
}
