package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

func send(t *testing.T, s *harness.Session, room, body string, mentions ...string) rooms.Sent {
	t.Helper()
	return harness.Get[rooms.Sent](t, s, "send_message", harness.Args{"room": room, "body": body, "mentions": mentions})
}

func TestMentionsGoToThoseNamedAndToNobodyElse(t *testing.T) {
	w := plane.World(t)
	w.Agent("cc", "said")
	w.Agent("dd", "maya")
	w.Agent("stranger", "eve")
	w.Agent("twin-a", "ann", func(s *v1alpha1.AgentSpec) { s.DisplayName = "twin" })
	w.Agent("twin-b", "bob", func(s *v1alpha1.AgentSpec) { s.DisplayName = "twin" })
	room := w.Room("talk", nil, harness.Member("cc"), harness.Member("dd"), harness.Member("twin-a"), harness.Member("twin-b"))
	cc, dd := w.As("cc", "c1"), w.As("dd", "d1")

	sent := send(t, cc, room, "@dd(maya) and "+w.Plates["twin-a"]+" stand in the body only")
	if len(sent.Mentions) != 0 || len(harness.Get[rooms.MentionList](t, dd, "check_mentions", nil).Mentions) != 0 {
		t.Error("a name in the body reached somebody")
	}
	for _, handle := range []string{"@dd(maya)", "@dd", "dd", w.Plates["dd"], "@dd(maya)#d1"} {
		sent := send(t, cc, room, "for "+handle, handle)
		if len(sent.Mentions) != 1 || sent.Mentions[0].Plate != w.Plates["dd"] || sent.Mentions[0].Alias != "@dd(maya)" {
			t.Errorf("mentioning %s gives %+v", handle, sent.Mentions)
		}
	}
	before := harness.Get[rooms.Page](t, cc, "read_room", harness.Args{"room": room})
	ambiguous := harness.Refused(t, cc, "VALIDATION", "send_message", harness.Args{"room": room, "body": "x", "mentions": []string{"@twin"}})
	if len(ambiguous.Candidates) != 2 || ambiguous.Candidates[0] != "@twin(ann)" {
		t.Errorf("an ambiguous handle gives %+v", ambiguous)
	}
	for _, bad := range []string{"@stranger(eve)", "@nobody", w.Plates["stranger"], "@dd(maya", "@dd(maya)#gone", "@cc(said)", "@"} {
		e := harness.Refused(t, cc, "VALIDATION", "send_message", harness.Args{"room": room, "body": "x", "mentions": []string{"@dd(maya)", bad}})
		if len(e.Fields) != 1 || e.Fields[0] != "mentions" {
			t.Errorf("mentioning %s gives %+v", bad, e)
		}
	}
	after := harness.Get[rooms.Page](t, cc, "read_room", harness.Args{"room": room})
	if len(after.Messages) != len(before.Messages) {
		t.Error("a message with a bad mention was sent")
	}
	candidates := harness.Get[rooms.Candidates](t, cc, "resolve_handle", harness.Args{"room": room, "handle": "@twin"})
	if len(candidates.Candidates) != 2 {
		t.Errorf("resolve_handle gives %+v", candidates)
	}
}

func TestTwoInstancesCheckingAtOnceGetOneDeliveryBetweenThem(t *testing.T) {
	w := plane.World(t)
	w.Agent("cc", "said")
	w.Agent("dd", "maya")
	room := w.Room("talk", nil, harness.Member("cc"), harness.Member("dd"))
	cc := w.As("cc", "c1")
	instances := make([]*harness.Session, 8)
	for i := range instances {
		instances[i] = w.At(i%2, "dd", fmt.Sprint("d", i))
	}
	const rounds = 10
	for n := range rounds {
		sent := send(t, cc, room, fmt.Sprint("round ", n), "@dd")
		var mu sync.Mutex
		got := map[string][]string{}
		var wg sync.WaitGroup
		awaitMention(t, instances[n%2], sent)
		for _, s := range instances {
			wg.Go(func() {
				r, err := s.Do(context.Background(), "check_mentions", nil)
				var list rooms.MentionList
				if err != nil || r.Err != nil || json.Unmarshal(r.Raw, &list) != nil {
					t.Errorf("checking: %v %+v", err, r)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				for _, m := range list.Mentions {
					got[m.MessageID] = append(got[m.MessageID], s.Name)
				}
			})
		}
		wg.Wait()
		if len(got[sent.ID]) != 1 {
			t.Errorf("round %d was delivered to %v, want one instance", n, got[sent.ID])
		}
	}
}

// awaitMention waits until the replica of a session has seen a message.
func awaitMention(t *testing.T, s *harness.Session, sent rooms.Sent) {
	t.Helper()
	harness.Await(t, "the message to reach the replica", func() bool {
		page := harness.Get[rooms.Page](t, s, "read_room", harness.Args{"room": sent.Room, "limit": 1})
		return len(page.Messages) == 1 && page.Messages[0].Seq >= sent.Seq
	})
}

func TestAcknowledgementsAreExplicitAndBounded(t *testing.T) {
	w := plane.World(t)
	w.Agent("cc", "said")
	w.Agent("dd", "maya")
	room := w.Room("talk", nil, harness.Member("cc"), harness.Member("dd"))
	cc, dd, other := w.As("cc", "c1"), w.As("dd", "d1"), w.As("dd", "d2")
	var sent []rooms.Sent
	for i := range 5 {
		sent = append(sent, send(t, cc, room, fmt.Sprint("m", i), "@dd"))
	}
	harness.Refused(t, dd, "VALIDATION", "ack_mentions", harness.Args{"mention_ids": []string{sent[0].ID + "-0"}})
	harness.Refused(t, dd, "VALIDATION", "ack_mentions", harness.Args{"room": room, "last_mention_seq": sent[4].Seq})
	list := harness.Get[rooms.MentionList](t, dd, "check_mentions", harness.Args{"limit": 2})
	if len(list.Mentions) != 2 || !list.More {
		t.Fatalf("check_mentions with a limit gives %+v", list)
	}
	harness.Get[rooms.Page](t, dd, "read_room", harness.Args{"room": room})
	if again := harness.Get[rooms.MentionList](t, dd, "check_mentions", harness.Args{"limit": 2}); len(again.Mentions) != 2 || again.Mentions[0] != list.Mentions[0] {
		t.Errorf("asking again gives %+v, want the same", again)
	}
	harness.Refused(t, dd, "VALIDATION", "ack_mentions", harness.Args{"room": room, "last_mention_seq": sent[4].Seq})
	acks := harness.Get[rooms.Acks](t, dd, "ack_mentions", harness.Args{"mention_ids": []string{list.Mentions[1].MentionID, list.Mentions[0].MentionID}})
	if len(acks.Acked) != 2 || acks.Pending != 3 {
		t.Errorf("ack_mentions gives %+v", acks)
	}
	acks = harness.Get[rooms.Acks](t, other, "ack_mentions", harness.Args{"mention_ids": []string{list.Mentions[0].MentionID}})
	if len(acks.Acked) != 0 || len(acks.AlreadyAcked) != 1 {
		t.Errorf("acknowledging twice gives %+v", acks)
	}
	rest := harness.Get[rooms.MentionList](t, other, "check_mentions", nil)
	if len(rest.Mentions) != 3 {
		t.Fatalf("another instance gets %+v, want the other three", rest)
	}
	acks = harness.Get[rooms.Acks](t, other, "ack_mentions", harness.Args{"room": room, "last_mention_seq": sent[4].Seq})
	if len(acks.Acked) != 3 || acks.Pending != 0 {
		t.Errorf("acknowledging up to a seq gives %+v", acks)
	}
	harness.Refused(t, dd, "VALIDATION", "ack_mentions", harness.Args{"room": room, "last_mention_seq": sent[4].Seq + 100})
	harness.Refused(t, cc, "VALIDATION", "ack_mentions", harness.Args{"mention_ids": []string{list.Mentions[0].MentionID}})
	harness.Refused(t, cc, "VALIDATION", "ack_mentions", nil)
	rooms1 := harness.Get[rooms.RoomList](t, dd, "list_rooms", nil)
	if rooms1.Rooms[0].MentionsUnread != 0 || rooms1.Rooms[0].Unread != 0 {
		t.Errorf("list_rooms still counts unread: %+v", rooms1)
	}
}

func TestFiftyMentionsAtOnce(t *testing.T) {
	w := plane.World(t)
	w.Agent("cc", "said")
	members := []v1alpha1.RoomMember{harness.Member("cc")}
	var handles []string
	for i := range 50 {
		name := fmt.Sprintf("m%02d", i)
		w.Agent(name, "maya")
		members = append(members, harness.Member(name))
		handles = append(handles, "@"+name)
	}
	room := w.Room("crowd", nil, members...)
	cc := w.As("cc", "c")
	if sent := send(t, cc, room, "all of you", handles...); len(sent.Mentions) != 50 {
		t.Errorf("%d were mentioned, want 50", len(sent.Mentions))
	}
	if list := harness.Get[rooms.MentionList](t, w.As("m49", "x"), "check_mentions", nil); len(list.Mentions) != 1 {
		t.Errorf("the last one gets %+v", list)
	}
	harness.Refused(t, cc, "VALIDATION", "send_message", harness.Args{"room": room, "body": "x", "mentions": append(handles, "@m00")})
}

func TestWaitForMentionsReturnsAsSoonAsOneComesThroughAnotherReplica(t *testing.T) {
	w := plane.World(t)
	w.Agent("cc", "said")
	w.Agent("dd", "maya")
	room := w.Room("talk", nil, harness.Member("cc"), harness.Member("dd"))
	cc, dd := w.At(0, "cc", "c1"), w.At(1, "dd", "d1")
	type answer struct {
		list rooms.MentionList
		took time.Duration
	}
	got := make(chan answer, 1)
	go func() {
		began := time.Now()
		r, err := dd.Do(context.Background(), "wait_for_mentions", harness.Args{"timeout_seconds": 40})
		var a answer
		if err == nil && r.Err == nil {
			_ = json.Unmarshal(r.Raw, &a.list)
		}
		a.took = time.Since(began)
		got <- a
	}()
	harness.Await(t, "the waiting instance to be seen", func() bool {
		return strings.Contains(string(cc.Call(t, "list_instances", harness.Args{"room": room}).Raw), `"wakeable":true`)
	})
	send(t, cc, room, "wake up", "@dd(maya)#d1")
	select {
	case a := <-got:
		if len(a.list.Mentions) != 1 || a.took > 30*time.Second {
			t.Errorf("waiting gives %+v after %s", a.list, a.took)
		}
	case <-time.After(45 * time.Second):
		t.Fatal("wait_for_mentions did not return")
	}
	began := time.Now()
	none := harness.Get[rooms.MentionList](t, cc, "wait_for_mentions", harness.Args{"timeout_seconds": 1})
	if len(none.Mentions) != 0 || time.Since(began) < 900*time.Millisecond {
		t.Errorf("waiting in vain gives %+v after %s", none, time.Since(began))
	}
}
