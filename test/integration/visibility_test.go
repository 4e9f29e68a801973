package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// TestWhoIsNoMemberCannotTellHiddenFromAbsent calls every tool that takes a room or a task from outside the room, and with
// ids that do not exist, and compares what comes back to the letter.
func TestWhoIsNoMemberCannotTellHiddenFromAbsent(t *testing.T) {
	w, room := team(t)
	w.Agent("stranger", "eve", delegated)
	boss, stranger := w.As("boss", "b"), w.As("stranger", "s")
	task := newTask(t, boss, room, "secret", "@worker")
	sent := send(t, boss, room, "secret", "@worker")
	absent := func(like string) string {
		at, _ := ids.CreatedAt(like)
		uid := types.UID("00000000-0000-4000-8000-000000000000")
		if like == task.TaskID {
			uid = "11111111-0000-4000-8000-000000000000"
		}
		return ids.NaturalID(&metav1.ObjectMeta{UID: uid, CreationTimestamp: metav1.NewTime(at)})
	}
	calls := []struct {
		tool string
		args harness.Args
	}{
		{"read_room", harness.Args{"room": room}},
		{"list_members", harness.Args{"room": room}},
		{"read_board", harness.Args{"room": room}},
		{"send_message", harness.Args{"room": room, "body": "x"}},
		{"resolve_handle", harness.Args{"room": room, "handle": "@worker"}},
		{"list_instances", harness.Args{"room": room}},
		{"check_mentions", harness.Args{"room": room}},
		{"check_mentions", harness.Args{"rooms": []string{room}}},
		{"ack_mentions", harness.Args{"room": room, "last_mention_seq": 1}},
		{"create_task", harness.Args{"room": room, "title": "x", "definition_of_done": "x", "assignee": "@worker"}},
		{"set_room_consent", harness.Args{"room": room, "mode": "approve_all"}},
		{"list_pending_consents", harness.Args{"room": room}},
		{"assign_task", harness.Args{"task_id": task.TaskID, "assignee": "@worker"}},
		{"update_task", harness.Args{"task_id": task.TaskID, "title": "x"}},
		{"set_status", harness.Args{"task_id": task.TaskID, "status": "done"}},
		{"claim_task", harness.Args{"task_id": task.TaskID}},
		{"renew_lease", harness.Args{"task_id": task.TaskID}},
		{"release_task", harness.Args{"task_id": task.TaskID}},
		{"archive_task", harness.Args{"task_id": task.TaskID}},
		{"accept_task", harness.Args{"task_id": task.TaskID}},
		{"reject_task", harness.Args{"task_id": task.TaskID}},
	}
	for _, c := range calls {
		hidden := harness.Refused(t, stranger, "NOT_FOUND", c.tool, c.args)
		other := harness.Args{}
		for k, v := range c.args {
			switch v := v.(type) {
			case string:
				other[k] = strings.NewReplacer(room, absent(room), task.TaskID, absent(task.TaskID)).Replace(v)
			case []string:
				other[k] = []string{absent(room)}
			default:
				other[k] = v
			}
		}
		gone := harness.Refused(t, stranger, "NOT_FOUND", c.tool, other)
		same := strings.NewReplacer(absent(room), room, absent(task.TaskID), task.TaskID).Replace(gone.Message)
		if hidden.Message != same || hidden.Hint != gone.Hint {
			t.Errorf("%s tells hidden from absent:\n%q\n%q", c.tool, hidden.Message, same)
		}
	}
	harness.Refused(t, stranger, "VALIDATION", "ack_mentions", harness.Args{"mention_ids": []string{sent.ID + "-0"}})
	if list := harness.Get[rooms.RoomList](t, stranger, "list_rooms", nil); len(list.Rooms) != 0 {
		t.Errorf("list_rooms gives %+v", list)
	}
	if s := taskObject(t, w, task.TaskID); s.Status.State != v1alpha1.TaskTodo || s.Spec.Title != "secret" {
		t.Errorf("the task was touched: %+v", s)
	}
}

// editRoom changes a room, again when the controller wrote its status meanwhile.
func editRoom(t *testing.T, w *harness.World, name string, edit func(*v1alpha1.Room)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		room := &v1alpha1.Room{}
		if err := plane.Client.Get(context.Background(), client.ObjectKey{Namespace: w.Namespace, Name: name}, room); err != nil {
			return err
		}
		edit(room)
		return plane.Client.Update(context.Background(), room)
	})
	if err != nil {
		t.Fatalf("editing room %s: %v", name, err)
	}
}

func TestMembershipCountsAtOnce(t *testing.T) {
	w, room := team(t)
	worker := w.As("worker", "w")
	harness.Get[rooms.Page](t, worker, "read_room", harness.Args{"room": room})
	editRoom(t, w, "shop", func(r *v1alpha1.Room) {
		r.Spec.Members = slices.DeleteFunc(r.Spec.Members, func(m v1alpha1.RoomMember) bool { return m.Agent.Name == "worker" })
	})
	harness.AwaitFor(t, 5*time.Second, "the former member to be shut out", func() bool {
		r := worker.Call(t, "read_room", harness.Args{"room": room})
		return r.Err != nil && r.Err.Code == "NOT_FOUND"
	})
}

func TestAPausedRoomTakesNoWritesAndAnswersRepeats(t *testing.T) {
	w, room := team(t)
	boss := w.As("boss", "b")
	task := newTask(t, boss, room, "before", "@worker")
	keyed := harness.Args{"room": room, "body": "before", "idempotency_key": "k"}
	first := harness.Get[rooms.Sent](t, boss, "send_message", keyed)
	keyedTask := harness.Args{"room": room, "title": "keyed", "definition_of_done": "x", "assignee": "@worker", "idempotency_key": "k"}
	made := harness.Get[rooms.Task](t, boss, "create_task", keyedTask)
	editRoom(t, w, "shop", func(r *v1alpha1.Room) { r.Spec.State = v1alpha1.RoomPaused })
	harness.Await(t, "the room to be paused", func() bool {
		r := boss.Call(t, "send_message", harness.Args{"room": room, "body": "x"})
		return r.Err != nil && r.Err.Code == "ROOM_NOT_ACTIVE"
	})
	harness.Refused(t, w.As("worker", "w"), "ROOM_NOT_ACTIVE", "claim_task", harness.Args{"task_id": task.TaskID})
	if again := harness.Get[rooms.Sent](t, boss, "send_message", keyed); !again.Duplicate || again.ID != first.ID {
		t.Errorf("the repeat in a paused room gives %+v, want %+v", again, first)
	}
	if again := harness.Get[rooms.Task](t, boss, "create_task", keyedTask); !again.Duplicate || again.TaskID != made.TaskID {
		t.Errorf("the repeat in a paused room gives %+v", again)
	}
	harness.Get[rooms.Board](t, boss, "read_board", harness.Args{"room": room})
}

func TestAViewerReadsAndDoesNotWrite(t *testing.T) {
	w := plane.World(t)
	w.Agent("boss", "ann")
	w.Agent("viewer", "ann")
	view := harness.Member("viewer")
	view.Role = v1alpha1.RoleViewer
	room := w.Room("glass", nil, harness.Admin("boss"), view)
	viewer := w.As("viewer", "v")
	harness.Get[rooms.Page](t, viewer, "read_room", harness.Args{"room": room})
	harness.Refused(t, viewer, "FORBIDDEN", "send_message", harness.Args{"room": room, "body": "x"})
	harness.Refused(t, viewer, "FORBIDDEN", "create_task", harness.Args{"room": room, "title": "x", "definition_of_done": "x", "assignee": "@boss"})
	harness.Refused(t, w.As("boss", "b"), "VALIDATION", "create_task", harness.Args{"room": room, "title": "x", "definition_of_done": "x", "assignee": "@viewer"})
}

func TestScopesAreKept(t *testing.T) {
	w := plane.World(t)
	w.Agent("reader", "ann", func(s *v1alpha1.AgentSpec) { s.Scopes = []v1alpha1.Scope{v1alpha1.ScopeRead} })
	w.Agent("mute", "ann", func(s *v1alpha1.AgentSpec) { s.Scopes = nil })
	room := w.Room("r", nil, harness.Member("reader"), harness.Member("mute"))
	reader := w.As("reader", "r")
	harness.Get[rooms.Page](t, reader, "read_room", harness.Args{"room": room})
	for _, tool := range []string{"send_message", "create_task", "claim_task", "ack_mentions", "accept_task"} {
		harness.Refused(t, reader, "FORBIDDEN_SCOPE", tool, harness.Args{"room": room})
	}
	harness.Refused(t, w.As("mute", "m"), "FORBIDDEN_SCOPE", "read_room", harness.Args{"room": room})
}

// TestIdentityComesFromTheTokenAlone tries every way of being somebody else.
func TestIdentityComesFromTheTokenAlone(t *testing.T) {
	w, room := team(t)
	worker := w.As("worker", "w")
	for _, field := range []string{"agent", "plate", "as", "sender", "user", "owner"} {
		r := worker.Call(t, "send_message", harness.Args{"room": room, "body": "x", field: w.Plates["boss"]})
		if r.Err == nil || r.Err.Code != "VALIDATION" || !slices.Contains(r.Err.Fields, field) {
			t.Errorf("an argument %s was taken: %+v", field, r.Err)
		}
	}
	for _, header := range []string{"Impersonate-User", "X-Remote-User", "X-Forwarded-User"} {
		body := whoamiOver(t, w.Tokens["worker"], map[string]string{header: "system:serviceaccount:" + w.Namespace + ":boss"})
		if !strings.Contains(body, w.Plates["worker"]) {
			t.Errorf("%s changed who the caller is: %s", header, body)
		}
	}
	for name, token := range map[string]string{"none": "", "nonsense": "abc", "cut": w.Tokens["worker"][:len(w.Tokens["worker"])-4]} {
		if code := statusOf(t, token); code != http.StatusUnauthorized {
			t.Errorf("the token %s gives %d, want 401", name, code)
		}
	}
}

// post sends a call without a client's help and gives the answer.
func post(t *testing.T, token string, headers map[string]string, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, plane.MCP, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2025-06-18")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

const whoamiCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`

func whoamiOver(t *testing.T, token string, headers map[string]string) string {
	t.Helper()
	resp := post(t, token, headers, whoamiCall)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func statusOf(t *testing.T, token string) int {
	t.Helper()
	resp := post(t, token, nil, whoamiCall)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusUnauthorized {
		var envelope struct {
			Error struct {
				Code string `json:"code"`
			} `json:"error"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&envelope); err != nil || envelope.Error.Code != "IDENTITY_REQUIRED" ||
			!strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("401 comes with %v, %v, %q", envelope, err, resp.Header.Get("WWW-Authenticate"))
		}
	}
	return resp.StatusCode
}

func TestTheSameKeyGivesTheSameAnswerFromAnyReplica(t *testing.T) {
	w, room := team(t)
	a, b := w.At(0, "boss", "one"), w.At(1, "boss", "two")
	args := harness.Args{"room": room, "title": "once", "definition_of_done": "x", "assignee": "@worker", "idempotency_key": "key"}
	first := harness.Get[rooms.Task](t, a, "create_task", args)
	again := harness.Get[rooms.Task](t, b, "create_task", args)
	if first.TaskID != again.TaskID || !again.Duplicate {
		t.Errorf("the other replica gives %+v, want task %s", again, first.TaskID)
	}
	worker := w.As("worker", "w")
	harness.Get[rooms.Claim](t, worker, "claim_task", harness.Args{"task_id": first.TaskID})
	harness.Get[rooms.Task](t, worker, "set_status", harness.Args{"task_id": first.TaskID, "status": "done"})
	harness.Await(t, "the other replica to answer with the task as it ended", func() bool {
		ended := harness.Get[rooms.Task](t, b, "create_task", args)
		if ended.TaskID != first.TaskID || !ended.Duplicate {
			t.Fatalf("after the task has ended the key gives %+v", ended)
		}
		return ended.Status == "done"
	})
	args["title"] = "other"
	harness.Refused(t, a, "IDEMPOTENCY_CONFLICT", "create_task", args)
	for i := range 5 {
		msg := harness.Args{"room": room, "body": "hello", "idempotency_key": fmt.Sprint("m", i), "mentions": []string{"@worker"}}
		one, two := harness.Get[rooms.Sent](t, a, "send_message", msg), harness.Get[rooms.Sent](t, b, "send_message", msg)
		if one.ID != two.ID || !two.Duplicate || one.Duplicate {
			t.Errorf("the two replicas give %+v and %+v", one, two)
		}
		msg["body"] = "other"
		harness.Refused(t, b, "IDEMPOTENCY_CONFLICT", "send_message", msg)
	}
}
