package view

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// apiServer is one that goes away and comes back.
type apiServer struct {
	mu      sync.Mutex
	away    bool
	version int
	rooms   map[string]v1alpha1.Room
	watch   *watch.FakeWatcher
}

var errAway = errors.New("connection refused")

func (s *apiServer) put(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.rooms[name] = v1alpha1.Room{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(s.version),
	}}
}

// goAway ends the watch, and changes what is there behind the replica's back.
func (s *apiServer) goAway(change func()) {
	s.mu.Lock()
	s.away = true
	s.watch.Stop()
	s.mu.Unlock()
	change()
}

func (s *apiServer) comeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
}

func (s *apiServer) source() *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.away {
				return nil, errAway
			}
			list := &v1alpha1.RoomList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
			for _, room := range s.rooms {
				list.Items = append(list.Items, room)
			}
			return list, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.away || o.SendInitialEvents != nil {
				return nil, errAway
			}
			s.watch = watch.NewFake()
			return s.watch, nil
		},
	}
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 5*time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("waited in vain for %s", what)
	}
}

func (v *View) has(name string) bool {
	_, ok := v.Room("ns", name)
	return ok
}

func TestAReplicaThatStartsWithoutAnAPIServerWaitsForIt(t *testing.T) {
	server := &apiServer{rooms: map[string]v1alpha1.Room{}, away: true}
	server.put("old")
	v := New(clock.RealClock{}, nil)
	s := &Source{view: v, feeds: []*feed{newFeed(v, &v1alpha1.Room{}, server.source())}}
	started := make(chan error, 1)
	go func() { started <- s.Start(t.Context()) }()
	if v.behind = s.behind; !v.Behind() {
		t.Error("it does not say that it is behind")
	}
	server.comeBack()
	if err := <-started; err != nil || !v.has("old") {
		t.Errorf("starting gives %v, and the room is there: %v", err, v.has("old"))
	}
	await(t, "the replica to be level", func() bool { return !v.Behind() })
}

func TestAReplicaLearnsWhatHappenedWhileItsWatchWasBroken(t *testing.T) {
	server := &apiServer{rooms: map[string]v1alpha1.Room{}}
	server.put("stays")
	server.put("goes")
	v := New(clock.RealClock{}, nil)
	s := &Source{view: v, feeds: []*feed{newFeed(v, &v1alpha1.Room{}, server.source())}}
	v.behind = s.behind
	if err := s.Start(t.Context()); err != nil || !v.has("stays") || !v.has("goes") {
		t.Fatalf("starting gives %v", err)
	}
	await(t, "the replica to be level", func() bool { return !v.Behind() })
	server.goAway(func() {
		server.mu.Lock()
		delete(server.rooms, "goes")
		server.mu.Unlock()
		server.put("comes")
	})
	await(t, "the replica to notice", v.Behind)
	server.comeBack()
	await(t, "the replica to learn what happened", func() bool { return v.has("comes") && !v.has("goes") && v.has("stays") })
	await(t, "the replica to be level", func() bool { return !v.Behind() })
	server.put("news")
	server.mu.Lock()
	room, w := server.rooms["news"], server.watch
	server.mu.Unlock()
	w.Add(&room)
	await(t, "the watch to show news", func() bool { return v.has("news") })
	w.Delete(&room)
	await(t, "the watch to show a deletion", func() bool { return !v.has("news") })
}

// TestAReplicaKnowsHowFarItHasCome holds that whoever waits for a write waits no longer than needed: also when what was
// written is gone again, and nothing else happens.
func TestAReplicaKnowsHowFarItHasCome(t *testing.T) {
	v := New(clock.RealClock{}, nil)
	f := newFeed(v, &v1alpha1.Room{}, nil)
	reached := func(version string) bool { return v.Reached(&v1alpha1.Room{}, version) }
	if err := f.Replace(nil, "7"); err != nil || !reached("7") || reached("8") {
		t.Error("a list says how far it goes, whatever is in it")
	}
	room := &v1alpha1.Room{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", UID: "r", ResourceVersion: "9"}}
	if err := f.Add(room); err != nil || !reached("9") {
		t.Error("an object says how far the watch has come")
	}
	gone := room.DeepCopy()
	gone.ResourceVersion = "11"
	if err := f.Delete(gone); err != nil || !reached("11") {
		t.Error("a deletion says how far the watch has come")
	}
	if err := f.Bookmark("15"); err != nil || !reached("15") || reached("16") {
		t.Error("a bookmark says how far the watch has come")
	}
}
