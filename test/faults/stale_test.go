package faults

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/go-logr/logr"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// replica is a bridge's toolset in this process whose watches can be held up or cut off, as a bad network does.
type replica struct {
	set *rooms.Toolset
	net *network
}

// network stands between a replica and the API server.
type network struct {
	next http.RoundTripper
	mu   sync.Mutex
	held chan struct{} // closed when watches may go on; nil while nothing holds them
	cut  bool
	open map[io.Closer]bool
}

// RoundTrip passes everything on, and watches at the network's pleasure.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	watches, lists := query.Has("watch"), query.Has("resourceVersion")
	n.mu.Lock()
	cut := n.cut
	n.mu.Unlock()
	if (watches || lists) && cut {
		return nil, errors.New("the network is cut")
	}
	answer, err := n.next.RoundTrip(r)
	if err == nil && watches {
		n.mu.Lock()
		n.open[answer.Body] = true
		n.mu.Unlock()
		answer.Body = &slowBody{answer.Body, n}
	}
	return answer, err
}

type slowBody struct {
	io.ReadCloser
	net *network
}

func (b *slowBody) Read(p []byte) (int, error) {
	count, err := b.ReadCloser.Read(p)
	b.net.mu.Lock()
	held := b.net.held
	b.net.mu.Unlock()
	if held != nil {
		<-held
	}
	return count, err
}

// hold keeps from the replica what its watches show, until it is let go.
func (n *network) hold(t *testing.T) (letGo func()) {
	t.Helper()
	n.mu.Lock()
	n.held = make(chan struct{})
	held := n.held
	n.mu.Unlock()
	letGo = sync.OnceFunc(func() {
		n.mu.Lock()
		n.held = nil
		n.mu.Unlock()
		close(held)
	})
	t.Cleanup(letGo)
	return letGo
}

// sever ends the watches and lets none begin, or lets them begin again.
func (n *network) sever(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
	for body := range n.open {
		_ = body.Close()
		delete(n.open, body)
	}
}

func startReplica(t *testing.T) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	config := bridgeConfig()
	net := &network{open: map[io.Closer]bool{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		// One network for all of the replica's clients: they share what is beneath.
		net.next = next
		return net
	})
	set, err := rooms.New(ctx, rooms.Options{Config: config, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	harness.Await(t, "the replica to be ready", func() bool { return set.Ready() == nil })
	return &replica{set, net}
}

// call calls a tool as an agent's session.
func call[T any](t *testing.T, r *replica, w *harness.World, agent, session, tool string, args harness.Args) (T, error) {
	t.Helper()
	var out T
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	known, plate, err := r.set.Identify("system:serviceaccount:" + w.Namespace + ":" + agent)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range r.set.Tools() {
		if one.Name != tool {
			continue
		}
		parsed, p := one.ParseArgs(raw)
		if p != nil {
			t.Fatal(p)
		}
		answer, err := one.Handle(context.Background(), &toolset.Caller{Agent: known, Plate: plate, Session: session}, parsed)
		if err != nil {
			return out, err
		}
		if raw, err = json.Marshal(answer); err != nil {
			t.Fatal(err)
		}
		return into[T](raw), nil
	}
	t.Fatalf("there is no tool %s", tool)
	return out, nil
}

func code(err error) problem.Code {
	if p, ok := problem.As(err); ok {
		return p.Code
	}
	return ""
}

// staleWorld is a room with two agents, one of them with a session at a plane's replica.
func staleWorld(t *testing.T, r *replica) (w *harness.World, room string, ann, bob *harness.Session) {
	t.Helper()
	w = plane.World(t)
	w.Agent("ann", "olga")
	w.Agent("bob", "olga")
	room = w.Room("stale", nil, harness.Admin("ann"), harness.Member("bob"))
	harness.Await(t, "the third replica to show the room", func() bool {
		list, err := call[rooms.RoomList](t, r, w, "ann", "a", "list_rooms", nil)
		return err == nil && len(list.Rooms) == 1
	})
	ann, bob = w.As("ann", "a"), w.As("bob", "b")
	return w, room, ann, bob
}

// What a replica remembers may be behind. These are the answers that it must not give from memory.

func TestAReleaseIsNotTakenForTheOneBefore(t *testing.T) {
	r := startReplica(t)
	w, room, ann, _ := staleWorld(t, r)
	id, args := taskFor(t, ann, room)
	awaitTask(t, r, w, id)
	for _, tool := range []string{"claim_task", "release_task"} {
		ann.Call(t, tool, args)
	}
	harness.Await(t, "the replica to see the release", func() bool {
		task, err := call[rooms.Task](t, r, w, "ann", "a", "release_task", args)
		return err == nil && task.Status == "todo"
	})
	r.net.hold(t)
	second := harness.Get[rooms.Claim](t, ann, "claim_task", args)
	if task, err := call[rooms.Task](t, r, w, "ann", "a", "release_task", args); err != nil || task.Status != "todo" {
		t.Fatalf("releasing gives %+v, %v", task, err)
	}
	if status := taskByTitle(t, w, "stale").Status; status.State != v1alpha1.TaskTodo || status.Epoch != second.Lease.Fence+1 {
		t.Errorf("a release was answered, and the task is %s under epoch %d", status.State, status.Epoch)
	}
}

func TestAFormerHolderIsNotToldThatItHolds(t *testing.T) {
	r := startReplica(t)
	w, room, ann, _ := staleWorld(t, r)
	id, args := taskFor(t, ann, room)
	awaitTask(t, r, w, id)
	if c, err := call[rooms.Claim](t, r, w, "ann", "a", "claim_task", args); err != nil || !c.OK {
		t.Fatalf("claiming gives %+v, %v", c, err)
	}
	r.net.hold(t)
	harness.Get[rooms.Task](t, ann, "release_task", args)
	other := w.As("ann", "another")
	if c := harness.Get[rooms.Claim](t, other, "claim_task", args); !c.OK {
		t.Fatalf("claiming what was released gives %+v", c)
	}
	again, err := call[rooms.Claim](t, r, w, "ann", "a", "claim_task", args)
	if err != nil || again.OK || again.Holder != w.Plates["ann"]+"/another" {
		t.Errorf("the former holder claims again and is told %+v, %v", again, err)
	}
}

func TestAMentionIsAcknowledgedAtAReplicaThatHasNotSeenIt(t *testing.T) {
	r := startReplica(t)
	w, room, ann, bob := staleWorld(t, r)
	r.net.hold(t)
	sent := harness.Get[rooms.Sent](t, ann, "send_message", harness.Args{"room": room, "body": "x", "mentions": []string{"@bob"}})
	mention := onlyMention(t, bob)
	acks, err := call[rooms.Acks](t, r, w, "bob", "b", "ack_mentions", harness.Args{"mention_ids": []string{mention}})
	if err != nil || len(acks.Acked) != 1 {
		t.Errorf("acknowledging gives %+v, %v", acks, err)
	}
	reply, err := call[rooms.Sent](t, r, w, "bob", "b", "send_message", harness.Args{"room": room, "body": "y", "parent_id": sent.ID})
	if err != nil || reply.Seq != sent.Seq+1 {
		t.Errorf("replying gives %+v, %v", reply, err)
	}
	next := harness.Get[rooms.Sent](t, ann, "send_message", harness.Args{"room": room, "body": "z", "mentions": []string{"@bob"}})
	onlyMention(t, bob)
	through, err := call[rooms.Acks](t, r, w, "bob", "b", "ack_mentions", harness.Args{"room": room, "last_mention_seq": next.Seq})
	if err != nil || len(through.Acked) != 1 {
		t.Errorf("acknowledging up to a seq gives %+v, %v", through, err)
	}
}

func TestAnAcknowledgedMentionDoesNotComeAgain(t *testing.T) {
	r := startReplica(t)
	w, room, ann, bob := staleWorld(t, r)
	harness.Get[rooms.Sent](t, ann, "send_message", harness.Args{"room": room, "body": "x", "mentions": []string{"@bob"}})
	var list rooms.MentionList
	harness.Await(t, "the replica to give the mention", func() bool {
		var err error
		list, err = call[rooms.MentionList](t, r, w, "bob", "b", "check_mentions", harness.Args{})
		return err == nil && len(list.Mentions) == 1
	})
	r.net.hold(t)
	harness.Get[rooms.Acks](t, bob, "ack_mentions", harness.Args{"mention_ids": []string{list.Mentions[0].MentionID}})
	again, err := call[rooms.MentionList](t, r, w, "bob", "b", "check_mentions", harness.Args{})
	if err != nil || len(again.Mentions) != 0 {
		t.Errorf("after the acknowledgement comes %+v, %v", again, err)
	}
}

func TestAReplicaWithoutWatchesDeniesNothing(t *testing.T) {
	r := startReplica(t)
	w, room, ann, _ := staleWorld(t, r)
	r.net.sever(true)
	id, args := taskFor(t, ann, room)
	harness.Await(t, "the replica to notice", func() bool {
		_, err := call[rooms.Claim](t, r, w, "ann", "a", "claim_task", args)
		return code(err) == problem.Unavailable
	})
	r.net.sever(false)
	awaitTask(t, r, w, id)
	if c, err := call[rooms.Claim](t, r, w, "ann", "a", "claim_task", args); err != nil || !c.OK {
		t.Errorf("claiming gives %+v, %v", c, err)
	}
	unknown := harness.Args{"task_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
	harness.Await(t, "what is not there to be denied again", func() bool {
		_, err := call[rooms.Claim](t, r, w, "ann", "a", "claim_task", unknown)
		return code(err) == problem.NotFound
	})
}

// taskFor makes a task and gives its id, also as arguments.
func taskFor(t *testing.T, s *harness.Session, room string) (string, harness.Args) {
	t.Helper()
	task := harness.Get[rooms.Task](t, s, "create_task", harness.Args{
		"room": room, "title": "stale", "definition_of_done": "it is done", "assignee": "@ann",
	})
	return task.TaskID, harness.Args{"task_id": task.TaskID}
}

func awaitTask(t *testing.T, r *replica, w *harness.World, id string) {
	t.Helper()
	harness.Await(t, "the replica to show the task", func() bool {
		list, err := call[rooms.RoomList](t, r, w, "ann", "a", "list_rooms", nil)
		if err != nil || len(list.Rooms) != 1 {
			return false
		}
		board, err := call[rooms.Board](t, r, w, "ann", "a", "read_board", harness.Args{"room": list.Rooms[0].Room})
		if err != nil {
			return false
		}
		for _, lane := range board.Lanes {
			for _, task := range lane.Tasks {
				if task.TaskID == id {
					return true
				}
			}
		}
		return false
	})
}

func onlyMention(t *testing.T, s *harness.Session) string {
	t.Helper()
	var list rooms.MentionList
	harness.Await(t, "the mention", func() bool {
		list = harness.Get[rooms.MentionList](t, s, "check_mentions", nil)
		return len(list.Mentions) == 1
	})
	return list.Mentions[0].MentionID
}
