package roomlog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

// server keeps batches as the API server does, name by name, and can lose answers. The real one is used in test/faults.
type server struct {
	mu      sync.Mutex
	batches map[string]*v1alpha1.MessageBatch
	order   []*v1alpha1.MessageBatch
	lose    float64
	drop    float64
	creates int
	gate    chan struct{}
	// now is the API server's time, and seam where the log begins; what lies before it is gone.
	now   time.Time
	seam  v1alpha1.RoomArchive
	reads int
}

var resource = schema.GroupResource{Group: "agentrooms.dev", Resource: "messagebatches"}

func (s *server) Create(_ context.Context, b *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error) {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creates++
	if rand.Float64() < s.drop {
		return nil, apierrors.NewTimeoutError("the request did not arrive", 1)
	}
	if _, taken := s.batches[b.Name]; taken {
		return nil, apierrors.NewAlreadyExists(resource, b.Name)
	}
	b = b.DeepCopy()
	b.UID, b.CreationTimestamp = types.UID(fmt.Sprint(b.Name, s.creates)), metav1.NewTime(s.now)
	s.batches[b.Name] = b
	s.order = append(s.order, s.batches[b.Name])
	if rand.Float64() < s.lose {
		return nil, apierrors.NewTimeoutError("the answer was lost", 1)
	}
	return b.DeepCopy(), nil
}

func (s *server) Get(_ context.Context, _, name string) (*v1alpha1.MessageBatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.batches[name]; ok {
		return b.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (s *server) Room(context.Context, string, string) (*v1alpha1.Room, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	r := room()
	if s.seam.ThroughSeq > 0 {
		r.Status.Archive = s.seam.DeepCopy()
	}
	return r, nil
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newServer() *server { return &server{batches: map[string]*v1alpha1.MessageBatch{}, now: epoch} }

func room() *v1alpha1.Room {
	return &v1alpha1.Room{ObjectMeta: metav1.ObjectMeta{
		Namespace: "demo", Name: "launch", UID: "6f2b6f0e-0f4f-4b7c-9a52-0d1c5f6a7b8c",
		CreationTimestamp: metav1.NewTime(epoch),
	}}
}

func message(body, key string) v1alpha1.Message {
	m := v1alpha1.Message{Sender: v1alpha1.MessageSender{Type: v1alpha1.SenderAgent, ID: "a"}, Body: body}
	if key != "" {
		m.Key, m.Payload = key, "payload of "+body
	}
	return m
}

func committer(s roomlog.Store, name string) (*roomlog.Committer, *roomlog.Book) {
	book := roomlog.NewBook(nil)
	book.Saw(room())
	return roomlog.NewCommitter(s, book, clock.RealClock{}, name, nil), book
}

// bodies gives the whole log as a fresh reader sees it.
func bodies(t *testing.T, s *server) []string {
	t.Helper()
	book := roomlog.NewBook(nil)
	for _, i := range rand.Perm(len(s.order)) {
		book.Apply(s.order[i])
	}
	log := book.Log(roomlog.KeyOf(room()))
	var out []string
	for i, e := range log.Before(0, 1<<20) {
		if e.Seq != int64(i+1) {
			t.Fatalf("seq %d stands at place %d: the log has a gap", e.Seq, i+1)
		}
		out = append(out, e.Message.Body)
	}
	return out
}

func TestRivalCommittersThatLoseAnswersNeitherLoseNorDoubleAMessage(t *testing.T) {
	s := newServer()
	s.lose, s.drop = 0.2, 0.1
	const committers, senders, each = 3, 8, 20
	var mu sync.Mutex
	seqs := map[string]int64{}
	var wg sync.WaitGroup
	for c := range committers {
		com, _ := committer(s, fmt.Sprint("replica-", c))
		for w := range senders {
			wg.Go(func() {
				last := int64(0)
				for i := range each {
					body := fmt.Sprintf("%d/%d/%d", c, w, i)
					r, err := com.Send(context.Background(), room(), message(body, ""))
					if err != nil {
						t.Errorf("sending %s: %v", body, err)
						return
					}
					if r.Seq <= last {
						t.Errorf("%s got seq %d after %d: a sender's own messages must keep their order", body, r.Seq, last)
					}
					last = r.Seq
					mu.Lock()
					seqs[body] = r.Seq
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	got := bodies(t, s)
	if len(got) != committers*senders*each {
		t.Fatalf("the log holds %d messages, %d were acknowledged", len(got), committers*senders*each)
	}
	for i, body := range got {
		if seqs[body] != int64(i+1) {
			t.Errorf("%s was acknowledged as seq %d and stands at %d", body, seqs[body], i+1)
		}
	}
}

func TestTheSameKeyGivesTheSameAnswerFromEveryReplica(t *testing.T) {
	s := newServer()
	s.lose = 0.3
	const replicas, racers = 3, 10
	var mu sync.Mutex
	fresh, seqs := 0, map[int64]int{}
	var wg sync.WaitGroup
	for c := range replicas {
		com, _ := committer(s, fmt.Sprint("replica-", c))
		for range racers {
			wg.Go(func() {
				r, err := com.Send(context.Background(), room(), message("once", "key"))
				if err != nil {
					t.Errorf("sending: %v", err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				seqs[r.Seq]++
				if !r.Duplicate {
					fresh++
				}
			})
		}
	}
	wg.Wait()
	if got := bodies(t, s); !cmp.Equal(got, []string{"once"}) {
		t.Errorf("the log holds %v, want the message once", got)
	}
	if fresh != 1 || len(seqs) != 1 {
		t.Errorf("%d answers said the message was new, with seqs %v; want one answer and one seq", fresh, seqs)
	}
}

func TestTheSameKeyWithOtherContentIsAConflict(t *testing.T) {
	s := newServer()
	com, _ := committer(s, "a")
	if _, err := com.Send(context.Background(), room(), message("first", "key")); err != nil {
		t.Fatal(err)
	}
	other, _ := committer(s, "b")
	_, err := other.Send(context.Background(), room(), message("second", "key"))
	if p, ok := problem.As(err); !ok || p.Code != problem.IdempotencyConflict {
		t.Errorf("got %v, want IDEMPOTENCY_CONFLICT", err)
	}
	if got := bodies(t, s); !cmp.Equal(got, []string{"first"}) {
		t.Errorf("the log holds %v", got)
	}
}

func TestWhatWaitsGoesOutTogetherWithinTheBoundsOfABatch(t *testing.T) {
	s := newServer()
	s.gate = make(chan struct{})
	com, _ := committer(s, "a")
	var wg sync.WaitGroup
	const n = 200
	long := make([]rune, 4000)
	for i := range long {
		long[i] = 'x'
	}
	for i := range n {
		wg.Go(func() {
			body := fmt.Sprint(i)
			if i%4 == 0 {
				body = string(long)
			}
			if _, err := com.Send(context.Background(), room(), message(body, "")); err != nil {
				t.Errorf("sending: %v", err)
			}
		})
	}
	for com.Waiting() < n-v1alpha1.MaxBatchMessages {
		runtime.Gosched()
	}
	close(s.gate)
	wg.Wait()
	for _, b := range s.order {
		characters := 0
		for _, m := range b.Spec.Messages {
			characters += len(m.Body)
		}
		if len(b.Spec.Messages) > v1alpha1.MaxBatchMessages || characters > v1alpha1.MaxBatchCharacters {
			t.Errorf("batch %s holds %d messages with %d characters", b.Name, len(b.Spec.Messages), characters)
		}
	}
	if len(s.order) >= n/2 {
		t.Errorf("%d messages went out in %d batches: nothing was put together", n, len(s.order))
	}
}

// refusing takes no batch that holds a certain body, as the API server does with what breaks its schema.
type refusing struct{ *server }

func (r *refusing) Create(ctx context.Context, b *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error) {
	for _, m := range b.Spec.Messages {
		if m.Body == "bad" {
			return nil, apierrors.NewInvalid(schema.GroupKind{Group: "agentrooms.dev", Kind: "MessageBatch"}, b.Name, nil)
		}
	}
	return r.server.Create(ctx, b)
}

func TestOneMessageThatIsRefusedTakesNoOtherWithIt(t *testing.T) {
	s := newServer()
	s.gate = make(chan struct{})
	com, _ := committer(&refusing{s}, "a")
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for i := range 20 {
		wg.Go(func() {
			body := fmt.Sprint(i)
			if i == 7 {
				body = "bad"
			}
			if _, err := com.Send(context.Background(), room(), message(body, "")); err != nil {
				mu.Lock()
				refused++
				mu.Unlock()
			}
		})
	}
	close(s.gate)
	wg.Wait()
	if got := bodies(t, s); len(got) != 19 || refused != 1 {
		t.Errorf("%d messages were written and %d refused, want 19 and 1", len(got), refused)
	}
}

type dead struct{ err error }

func (d *dead) Create(context.Context, *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error) {
	return nil, d.err
}

func (d *dead) Room(context.Context, string, string) (*v1alpha1.Room, error) { return nil, d.err }

func (d *dead) Get(context.Context, string, string) (*v1alpha1.MessageBatch, error) {
	return nil, d.err
}

func TestASenderThatGivesUpIsToldSo(t *testing.T) {
	com, _ := committer(&dead{err: apierrors.NewServiceUnavailable("gone")}, "a")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := com.Send(ctx, room(), message("lost", "")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestABatchThatLiesAboutItsSeqMovesNobody(t *testing.T) {
	s := newServer()
	com, book := committer(s, "a")
	if _, err := com.Send(context.Background(), room(), message("one", "")); err != nil {
		t.Fatal(err)
	}
	forged := s.order[0].DeepCopy()
	forged.Name = forged.Name[:len(forged.Name)-1] + "2"
	forged.Spec.Number, forged.Spec.FirstSeq = 2, 1000
	book.Apply(forged)
	r, err := com.Send(context.Background(), room(), message("three", ""))
	if err != nil || r.Seq != 3 {
		t.Errorf("got seq %d, %v; want 3", r.Seq, err)
	}
}

func TestMentionsAndPagesFollowTheOldestBatches(t *testing.T) {
	s := newServer()
	com, book := committer(s, "a")
	for i := range 10 {
		m := message(fmt.Sprint(i), fmt.Sprint("key", i))
		m.Mentions = []v1alpha1.Mention{{Plate: "b"}, {Plate: "b", Session: "s"}}
		if _, err := com.Send(context.Background(), room(), m); err != nil {
			t.Fatal(err)
		}
	}
	log := book.Log(roomlog.KeyOf(room()))
	if n := len(log.Refs("b")); n != 20 {
		t.Errorf("got %d mentions, want 20", n)
	}
	for _, b := range s.order[:4] {
		book.Forget(b)
	}
	if n := len(log.Refs("b")); n != 20 {
		t.Errorf("got %d mentions after batches went of which the room does not say that they are archived, want 20", n)
	}
	s.seam = v1alpha1.RoomArchive{ThroughSeq: 4, ThroughBatch: 4, ThroughBatchSeq: 4}
	archived, _ := s.Room(t.Context(), "", "")
	book.Saw(archived)
	if refs := log.Refs("b"); len(refs) != 12 || refs[0].Key.Seq != 5 {
		t.Errorf("after four batches were archived, %d mentions remain, the first at %v", len(refs), refs[0].Key)
	}
	page := log.Before(8, 100)
	if len(page) != 3 || page[0].Seq != 5 || page[2].Seq != 7 {
		t.Errorf("the page before 8 is %v", page)
	}
	if _, _, known := log.Sent("key0"); known {
		t.Error("the key of a message that went is still known")
	}
}

// echoing shows a batch to the writer's own watch before its answer is lost.
type echoing struct {
	*server
	book **roomlog.Book
}

func (e *echoing) Create(ctx context.Context, b *v1alpha1.MessageBatch) (*v1alpha1.MessageBatch, error) {
	created, err := e.server.Create(ctx, b)
	if err == nil && b.Spec.Number == 1 {
		(*e.book).Apply(created)
		return nil, apierrors.NewTimeoutError("the answer was lost", 1)
	}
	return created, err
}

func (e *echoing) Get(context.Context, string, string) (*v1alpha1.MessageBatch, error) {
	return nil, apierrors.NewServiceUnavailable("down for a moment")
}

func TestAnUnkeyedMessageWhoseAnswerIsLostIsNotWrittenTwiceWhenTheWatchShowsItFirst(t *testing.T) {
	s := newServer()
	var book *roomlog.Book
	store := &echoing{server: s, book: &book}
	com, b := committer(store, "a")
	book = b
	r, err := com.Send(context.Background(), room(), message("once", ""))
	if err != nil || r.Seq != 1 {
		t.Errorf("got seq %d, %v; want 1", r.Seq, err)
	}
	if got := bodies(t, s); !cmp.Equal(got, []string{"once"}) {
		t.Errorf("the log holds %v, want the message once", got)
	}
}
