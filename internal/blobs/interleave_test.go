package blobs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gocloud.dev/blob/fileblob"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

const testRoom types.UID = "0f0e0d0c-0b0a-4988-8765-432100ffeedd"

// actor is somebody whose steps are taken one by one, in an order that the test chooses.
type actor struct {
	act    func(step func(string)) error
	turn   chan struct{}
	parked chan bool // true at a step, false at the end
	err    error
	steps  []string
}

// play runs actors; choose picks whose turn it is among n who still have steps to take.
func play(actors []*actor, choose func(n int) int) {
	live := make([]*actor, 0, len(actors))
	for _, a := range actors {
		a.turn, a.parked = make(chan struct{}), make(chan bool)
		go func() {
			a.err = a.act(func(what string) {
				a.steps = append(a.steps, what)
				a.parked <- true
				<-a.turn
			})
			a.parked <- false
		}()
		if <-a.parked {
			live = append(live, a)
		}
	}
	for len(live) > 0 {
		i := choose(len(live))
		live[i].turn <- struct{}{}
		if !<-live[i].parked {
			live = append(live[:i:i], live[i+1:]...)
		}
	}
}

// every calls run with one order of steps after the other, until there is none left, and says how many there were.
func every(run func(choose func(n int) int)) int {
	var path, width []int
	for runs := 1; ; runs++ {
		at := 0
		run(func(n int) int {
			if at == len(path) {
				path, width = append(path, 0), append(width, 0)
			}
			width[at] = n
			at++
			return path[at-1]
		})
		path, width = path[:at], width[:at]
		for len(path) > 0 && path[len(path)-1]+1 >= width[len(path)-1] {
			path, width = path[:len(path)-1], width[:len(path)-1]
		}
		if len(path) == 0 {
			return runs
		}
		path[len(path)-1]++
	}
}

// world is a bucket with content that is old, and references as the API server has them.
type world struct {
	store *Store
	refs  sets.Set[string]
	hash  string
	then  time.Time
}

var worldContent = []byte("what must not be lost")

func newWorld(t *testing.T, inContent, inTrash bool) *world {
	t.Helper()
	// A folder that is not flushed to the disk. (memblob would not do: its copies are as old as what they are copied from.)
	dir := t.TempDir()
	bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	s := &Store{bucket: bucket, grace: DefaultGrace, now: time.Now}
	hash, err := s.Put(t.Context(), testRoom, worldContent)
	if err != nil {
		t.Fatalf("putting: %v", err)
	}
	key, _ := contentKey(testRoom, hash)
	keys := []string{key}
	if inTrash {
		keys = append(keys, trashPrefix(key)+nonce())
		if err := s.copy(t.Context(), keys[1], key); err != nil {
			t.Fatalf("copying: %v", err)
		}
	}
	then := time.Now()
	for _, key := range keys {
		if err := os.Chtimes(filepath.Join(dir, key), then, then.Add(-2*DefaultGrace)); err != nil {
			t.Fatalf("making it old: %v", err)
		}
	}
	if !inContent {
		if err := s.bucket.Delete(t.Context(), key); err != nil {
			t.Fatalf("deleting: %v", err)
		}
	}
	return &world{store: s, refs: sets.New[string](), hash: hash, then: then}
}

// as gives the store as an actor uses it.
func (w *world) as(step func(string)) *Store {
	s := *w.store
	s.step, s.now = step, func() time.Time { return w.then }
	return &s
}

// writer puts the content, writes the reference, and from then on must be able to read it.
func (w *world) writer(ctx context.Context) *actor {
	return &actor{act: func(step func(string)) error {
		s := w.as(step)
		if _, err := s.Put(ctx, testRoom, worldContent); err != nil {
			return err
		}
		step("writer: reference")
		w.refs = sets.New(w.hash)
		return w.read(ctx, s)
	}}
}

func (w *world) read(ctx context.Context, s *Store) error {
	got, err := s.Read(ctx, testRoom, w.hash, 0, 100)
	if err == nil && string(got) != string(worldContent) {
		err = fmt.Errorf("read %q", got)
	}
	return err
}

func (w *world) sweeper(ctx context.Context) *actor {
	return &actor{act: func(step func(string)) error {
		_, err := w.as(step).Sweep(ctx, testRoom, w.referenced, SweepOptions{Now: w.then})
		return err
	}}
}

func (w *world) referenced(context.Context) (sets.Set[string], error) { return w.refs.Clone(), nil }

// check says what is wrong after all have done their steps.
func (w *world) check(t *testing.T, actors []*actor) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		for i, a := range actors {
			t.Logf("actor %d: %q, %v", i, a.steps, a.err)
		}
		t.Fatalf(format, args...)
	}
	for i, a := range actors {
		if a.err != nil {
			fail("actor %d: %s", i, Detail(a.err))
		}
	}
	// What is referred to survives all sweeps to come; what is not is gone after some.
	for later := 1; later <= 4; later++ {
		if later == 4 {
			w.refs = nil
		}
		for n := range 2 {
			now := w.then.Add(time.Duration(2*later+n) * 2 * DefaultGrace)
			if _, err := w.store.Sweep(t.Context(), testRoom, w.referenced, SweepOptions{Now: now}); err != nil {
				fail("sweeping later: %s", Detail(err))
			}
		}
		err := w.read(t.Context(), w.store)
		if w.refs.Has(w.hash) && err != nil {
			fail("reading after later sweeps: %v", err)
		}
		if later == 4 && !IsNotFound(err) {
			fail("what nobody refers to is still there: %v", err)
		}
	}
}

var states = map[string][2]bool{"in its place": {true, false}, "in the trash": {false, true}, "in both": {true, true}}

func TestNoOrderOfStepsLosesContent(t *testing.T) {
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			runs := every(func(choose func(int) int) {
				w := newWorld(t, state[0], state[1])
				actors := []*actor{w.writer(t.Context()), w.sweeper(t.Context())}
				play(actors, choose)
				w.check(t, actors)
			})
			t.Logf("%d orders", runs)
			if runs < 20 {
				t.Errorf("only %d orders: the steps are not marked", runs)
			}
		})
	}
}

// Leader election may overlap: two sweepers and a writer have too many orders for all of them, so these are picked by chance.
func TestTwoSweepersLoseNoContent(t *testing.T) {
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			for range 400 {
				w := newWorld(t, state[0], state[1])
				actors := []*actor{w.writer(t.Context()), w.sweeper(t.Context()), w.sweeper(t.Context())}
				play(actors, r.IntN)
				w.check(t, actors)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// A sweeper that is killed after any of its steps leaves nothing lost, too.
func TestSweepMayDieAnywhere(t *testing.T) {
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			for last := 1; ; last++ {
				w := newWorld(t, state[0], state[1])
				ctx, kill := context.WithCancel(t.Context())
				steps := 0
				s := w.as(func(string) {
					if steps++; steps > last {
						kill()
					}
				})
				_, err := s.Sweep(ctx, testRoom, func(ctx context.Context) (sets.Set[string], error) {
					defer func() { w.refs = sets.New(w.hash) }() // It is referred to right after the sweeper looked.
					return w.refs.Clone(), ctx.Err()
				}, SweepOptions{Now: w.then})
				if !state[0] {
					// Nobody has put it again, and it was in the trash for its time: it may be gone.
					w.refs = nil
				}
				w.check(t, nil)
				if kill(); err == nil {
					break
				}
			}
		})
	}
}
