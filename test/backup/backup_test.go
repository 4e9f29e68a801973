package backup_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/archive"
	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// fill does in a room whatever can be done there, and gives the tasks by their titles.
func fill(t *testing.T, w *harness.World, room string) map[string]string {
	t.Helper()
	cc, dd, decider := w.As("cc", "c"), w.As("dd", "d"), w.As("decider", "x")
	old := harness.Get[rooms.Page](t, cc, "read_room", harness.Args{"room": room, "before_seq": 11, "limit": 1}).Messages[0]
	harness.Get[rooms.Sent](t, cc, "send_message", harness.Args{
		"room": room, "body": "To the tenth.", "parent_id": old.ID, "mentions": []string{"@dd(maya)"}, "idempotency_key": "k",
	})
	found := harness.Get[rooms.MentionList](t, cc, "check_mentions", harness.Args{"room": room})
	if len(found.Mentions) < 2 {
		t.Fatalf("cc has the mentions %+v, want two or more", found)
	}
	harness.Get[rooms.Acks](t, cc, "ack_mentions", harness.Args{"mention_ids": []string{found.Mentions[1].MentionID}})

	known := map[string]string{}
	create := func(s *harness.Session, title, assignee string, more harness.Args) harness.Args {
		args := harness.Args{"room": room, "title": title, "definition_of_done": "it is " + title, "assignee": assignee, "idempotency_key": title}
		maps.Copy(args, more)
		known[title] = harness.Get[rooms.Task](t, s, "create_task", args).TaskID
		return harness.Args{"task_id": known[title]}
	}
	set := func(s *harness.Session, id harness.Args, status string) {
		harness.Get[rooms.Task](t, s, "set_status", harness.Args{
			"task_id": id["task_id"], "status": status, "reason": "because", "summary": "so it is", "artifacts": []string{"file:a.md"}, "next": "rest",
		})
	}
	todo := create(cc, "todo", "@cc(said)", nil)
	create(cc, "waiting", "@cc(said)", harness.Args{"depends_on": []string{todo["task_id"].(string)}, "priority": 7})
	for _, state := range []string{"doing", "done", "failed", "cancelled", "blocked"} {
		id := create(cc, state, "@cc(said)", nil)
		for range 2 {
			harness.Get[rooms.Claim](t, cc, "claim_task", id)
			harness.Get[rooms.Task](t, cc, "release_task", id)
		}
		if harness.Get[rooms.Claim](t, cc, "claim_task", id); state != "doing" {
			set(cc, id, state)
		}
	}
	unheld := create(cc, "given up", "@cc(said)", nil)
	set(cc, unheld, "blocked")
	set(cc, unheld, "failed")
	for _, title := range []string{"put away", "long ago"} {
		away := create(cc, title, "@cc(said)", nil)
		harness.Get[rooms.Claim](t, cc, "claim_task", away)
		set(cc, away, "done")
		harness.Get[rooms.Archived](t, cc, "archive_task", away)
	}
	create(cc, "asked", "@dd(maya)", nil)
	harness.Get[rooms.Task](t, decider, "accept_task", create(cc, "accepted", "@dd(maya)", nil))
	harness.Get[rooms.Task](t, decider, "reject_task", create(cc, "rejected", "@dd(maya)", nil))
	harness.Get[rooms.RoomConsent](t, decider, "set_room_consent", harness.Args{"room": room, "mode": "trust_collaborator", "collaborator": "said"})
	create(cc, "trusted", "@dd(maya)", nil)

	for i := range 5 {
		harness.Get[rooms.FileWritten](t, cc, "write_file", harness.Args{"room": room, "path": "notes/a.md", "content": fmt.Sprintf("version %d", i+1)})
	}
	harness.Get[rooms.FileWritten](t, dd, "write_file", harness.Args{"room": room, "path": "notes/same.md", "content": "version 5"})
	harness.Get[rooms.FileWritten](t, dd, "write_file", harness.Args{"room": room, "path": "empty", "content": ""})
	harness.Get[rooms.FileWritten](t, dd, "write_file", harness.Args{"room": room, "path": "gone", "content": "gone"})
	harness.Get[rooms.FileDeleted](t, dd, "delete_file", harness.Args{"room": room, "path": "gone"})
	return known
}

// seen gives what the tools say of a room, apart from when leases end and who is awake.
func seen(t *testing.T, w *harness.World, room string) map[string]any {
	t.Helper()
	out := map[string]any{}
	keep := func(name string, r *harness.Result) {
		var v any
		r.Into(t, &v)
		out[name] = v
	}
	cc, dd := w.As("cc", "c"), w.As("dd", "d")
	for name, s := range map[string]*harness.Session{"cc": cc, "dd": dd} {
		keep("whoami "+name, s.Call(t, "whoami", nil))
		keep("list_rooms "+name, s.Call(t, "list_rooms", nil))
	}
	keep("read_board", cc.Call(t, "read_board", harness.Args{"room": room}))
	keep("list_files", cc.Call(t, "list_files", harness.Args{"room": room}))
	keep("list_pending_consents", dd.Call(t, "list_pending_consents", harness.Args{"room": room}))
	for before := int64(1 << 30); before > 1; {
		r := cc.Call(t, "read_room", harness.Args{"room": room, "limit": 100, "before_seq": before})
		var page rooms.Page
		r.Into(t, &page)
		keep(fmt.Sprintf("read_room before %d", before), r)
		if before = page.Messages[0].Seq; page.NextBeforeSeq == nil {
			break
		}
	}
	for version := 3; version <= 5; version++ {
		keep(fmt.Sprintf("read_file %d", version), cc.Call(t, "read_file", harness.Args{"room": room, "path": "notes/a.md", "version": version}))
	}
	keep("read_file empty", cc.Call(t, "read_file", harness.Args{"room": room, "path": "empty"}))
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	plain := map[string]any{}
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	return strip(plain).(map[string]any)
}

// strip takes out what a lease's time is.
func strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "expires_at")
		delete(v, "expires_in_seconds")
		delete(v, "session_id")
		for k := range v {
			v[k] = strip(v[k])
		}
	case []any:
		for i := range v {
			v[i] = strip(v[i])
		}
	}
	return v
}

func content(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func testARoomComesBackAsItWas(t *testing.T) {
	w, room := lab(t, 2100)
	tasks := fill(t, w, room)
	moveTask(t, w, tasks["long ago"])
	settled(t, w)
	before := seen(t, w, room)
	first := export(t, w, "lab")
	if again := export(t, w, "lab"); !bytes.Equal(content(t, first), content(t, again)) {
		t.Error("two archives of one state differ")
	}
	v := accounts(t, to, "cc", "dd", "decider")
	restore(t, v, first)
	harness.Await(t, "the room to appear", func() bool {
		r := v.As("cc", "c").Call(t, "list_rooms", nil)
		return r.Err == nil && strings.Contains(string(r.Raw), room)
	})
	harness.Await(t, "the lease of the held task", func() bool {
		var leases coordinationv1.LeaseList
		if err := v.Plane.Client.List(t.Context(), &leases, client.InNamespace(v.Namespace), client.HasLabels{v1alpha1.TaskLabel}); err != nil {
			t.Fatal(err)
		}
		return len(leases.Items) == 1
	})
	settled(t, v)
	if diff := cmp.Diff(before, seen(t, v, room)); diff != "" {
		t.Errorf("what the tools say (-before +after):\n%s", diff)
	}
	second := export(t, v, "lab")
	if !bytes.Equal(content(t, first), content(t, second)) {
		t.Errorf("the archive of the restored room is another one:\n%s", differ(t, first, second))
	}
	old, err := archive.ReadTask(t.Context(), bucket(t, v.Plane), theRoom(t, v).UID, tasks["long ago"])
	if err != nil || old.Spec.Title != "long ago" || old.Status.State != v1alpha1.TaskDone || !old.Spec.Archived {
		t.Errorf("the task that had moved to the blob store is %+v, %v", old, err)
	}
	worksOn(t, v, room, tasks)
	refused(t, v, first, "there is a room lab in the namespace "+v.Namespace+" already: nothing was changed")
	refused(t, to.World(t), first, "is there already")
}

// moveTask moves an archived task to the blob store, as the manager does after a day.
func moveTask(t *testing.T, w *harness.World, id string) {
	t.Helper()
	var list v1alpha1.TaskList
	if err := w.Plane.Client.List(t.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.Items, func(task v1alpha1.Task) bool { return ids.ID(&task) == id })
	if i < 0 {
		t.Fatalf("there is no task %s", id)
	}
	if err := archive.WriteTask(t.Context(), bucket(t, w.Plane), theRoom(t, w).UID, id, &list.Items[i]); err != nil {
		t.Fatal(err)
	}
	if err := w.Plane.Client.Delete(t.Context(), &list.Items[i]); err != nil {
		t.Fatal(err)
	}
}

func bucket(t *testing.T, p *harness.Plane) archive.Bucket {
	t.Helper()
	store, err := blobs.Open(t.Context(), blobs.Options{URL: blobURL(p)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store.Bucket()
}

// worksOn does in a restored room what depends on all that went before.
func worksOn(t *testing.T, w *harness.World, room string, tasks map[string]string) {
	t.Helper()
	cc, dd := w.As("cc", "c"), w.As("dd", "d")
	sent := harness.Get[rooms.Sent](t, cc, "send_message", harness.Args{
		"room": room, "body": "To the tenth.", "parent_id": parentOf(t, cc, room), "mentions": []string{"@dd(maya)"}, "idempotency_key": "k",
	})
	if !sent.Duplicate {
		t.Errorf("a message sent again under its key gives %+v", sent)
	}
	last := theRoom(t, w).Status.LastSeq
	if next := harness.Get[rooms.Sent](t, cc, "send_message", harness.Args{"room": room, "body": "On we go."}); next.Seq != last+1 {
		t.Errorf("the next message has seq %d, want %d", next.Seq, last+1)
	}
	var pending []int64
	for _, m := range harness.Get[rooms.MentionList](t, w.As("cc", "other"), "check_mentions", harness.Args{"room": room}).Mentions {
		pending = append(pending, m.Seq)
	}
	harness.Await(t, "the mentions that were out to come again", func() bool {
		for _, m := range harness.Get[rooms.MentionList](t, cc, "check_mentions", harness.Args{"room": room}).Mentions {
			if !slices.Contains(pending, m.Seq) {
				pending = append(pending, m.Seq)
			}
		}
		return slices.Contains(pending, 450) && slices.Contains(pending, 1350) && slices.Contains(pending, 1800)
	})
	if slices.Contains(pending, 900) {
		t.Errorf("the acknowledged mention of seq 900 came again: %v", pending)
	}
	held := harness.Args{"task_id": tasks["doing"], "fence": 5}
	harness.Get[rooms.Renewal](t, cc, "renew_lease", held)
	if again := harness.Get[rooms.Claim](t, w.As("cc", "other"), "claim_task", harness.Args{"task_id": tasks["doing"]}); again.OK {
		t.Errorf("another instance takes a held task: %+v", again)
	}
	harness.Get[rooms.Task](t, cc, "set_status", harness.Args{"task_id": tasks["doing"], "status": "done", "fence": 5})
	if c := harness.Get[rooms.Claim](t, dd, "claim_task", harness.Args{"task_id": tasks["accepted"]}); !c.OK {
		t.Errorf("claiming an accepted task gives %+v", c)
	}
	harness.Refused(t, dd, "CONSENT_REQUIRED", "claim_task", harness.Args{"task_id": tasks["rejected"]})
	same := harness.Get[rooms.Task](t, cc, "create_task", harness.Args{
		"room": room, "title": "todo", "definition_of_done": "it is todo", "assignee": "@cc(said)", "idempotency_key": "todo",
	})
	if same.TaskID != tasks["todo"] {
		t.Errorf("a task created again under its key is %s, want %s", same.TaskID, tasks["todo"])
	}
	file := harness.Get[rooms.FileWritten](t, cc, "write_file", harness.Args{"room": room, "path": "notes/a.md", "content": "six", "base_version": 5})
	if file.Version != 6 {
		t.Errorf("the next version is %d, want 6", file.Version)
	}
}

func parentOf(t *testing.T, s *harness.Session, room string) string {
	t.Helper()
	return harness.Get[rooms.Page](t, s, "read_room", harness.Args{"room": room, "before_seq": 11, "limit": 1}).Messages[0].ID
}

// settled waits until the manager has done with the tasks and the room.
func settled(t *testing.T, w *harness.World) {
	t.Helper()
	same := 0
	var last string
	harness.Await(t, "the room to settle", func() bool {
		var tasks v1alpha1.TaskList
		var batches v1alpha1.MessageBatchList
		if err := list(t, w, &tasks, &batches); err != nil {
			t.Fatal(err)
		}
		now := fmt.Sprint(tasks.ResourceVersion != "", len(batches.Items), versions(&tasks))
		if now == last {
			same++
		} else {
			same, last = 0, now
		}
		return same >= 40
	})
}

// The next writer goes by the last batch, so that one has to be there although all of its messages are in the blob store.
func testARoomThatIsAllInTheBlobStoreGoesOn(t *testing.T) {
	w, room := lab(t, 2000)
	if through := theRoom(t, w).Status.Archive.ThroughSeq; through != 2000 {
		t.Fatalf("the archive goes through seq %d, want 2000", through)
	}
	file := export(t, w, "lab")
	v := accounts(t, to, "cc", "dd", "decider")
	restore(t, v, file)
	if again := export(t, v, "lab"); !bytes.Equal(content(t, file), content(t, again)) {
		t.Errorf("the archive of the restored room is another one:\n%s", differ(t, file, again))
	}
	cc := v.As("cc", "c")
	harness.Await(t, "the room to appear", func() bool {
		r := cc.Call(t, "read_room", harness.Args{"room": room, "limit": 1})
		return r.Err == nil
	})
	for want := int64(2001); want < 2004; want++ {
		if sent := harness.Get[rooms.Sent](t, cc, "send_message", harness.Args{"room": room, "body": "On we go."}); sent.Seq != want {
			t.Errorf("the next message has seq %d, want %d", sent.Seq, want)
		}
	}
	found := harness.Get[rooms.MentionList](t, cc, "check_mentions", harness.Args{"room": room})
	if len(found.Mentions) != 4 || found.Mentions[0].Seq != 450 || found.Mentions[3].Seq != 1800 {
		t.Errorf("the pending mentions are %+v, want those of 450, 900, 1350 and 1800", found.Mentions)
	}
}
