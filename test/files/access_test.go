package files

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// sameKey repeats calls under their keys, at the replica that may not have seen the first one yet, too.
func sameKey(t *testing.T, s *setup) {
	p := s.place(t, nil)
	twin := p.At(1, "ada", "twin")
	for n := range 5 {
		args := p.args("path", "log.txt", "content", fmt.Sprint("entry ", n), "idempotency_key", fmt.Sprint("k", n))
		first := harness.Get[rooms.FileWritten](t, p.writer, "write_file", args)
		for _, session := range []*harness.Session{twin, p.writer} {
			again := harness.Get[rooms.FileWritten](t, session, "write_file", args)
			if !again.Duplicate || again.Version != first.Version || again.FileID != first.FileID || again.SHA256 != first.SHA256 {
				t.Errorf("the same call again gives %+v, the first time it gave %+v", again, first)
			}
		}
		for name, value := range map[string]any{"content": "other", "content_type": "text/csv", "base_version": 0} {
			args := p.args("path", "log.txt", "content", fmt.Sprint("entry ", n), "idempotency_key", fmt.Sprint("k", n))
			args[name] = value
			harness.Refused(t, twin, "IDEMPOTENCY_CONFLICT", "write_file", args)
		}
	}
	harness.Refused(t, twin, "IDEMPOTENCY_CONFLICT", "write_file", p.args("path", "other.txt", "content", "entry 0", "idempotency_key", "k0"))
	if got := harness.Get[rooms.FileWritten](t, p.reader, "write_file", p.args("path", "log.txt", "content", "mine", "idempotency_key", "k0")); got.Version != 6 {
		t.Errorf("another agent's call under the same key gives %+v", got)
	}
	content := random(500)
	args := p.announce("pic.png", content, "idempotency_key", "k0")
	first := harness.Get[rooms.FileShared](t, p.writer, "share_file", args)
	again := harness.Get[rooms.FileShared](t, twin, "share_file", args)
	if again.FileID != first.FileID || !again.Duplicate || again.Status != "pending" {
		t.Errorf("sharing again gives %+v, the first time it gave %+v", again, first)
	}
	harness.Refused(t, twin, "IDEMPOTENCY_CONFLICT", "share_file", p.announce("pic.png", random(500), "idempotency_key", "k0"))
	if status, text := put(t, again.UploadURL, again.Headers, content); status != http.StatusOK {
		t.Fatalf("the fresh URL is answered %d: %s", status, text)
	}
	p.complete(t, first.FileID)
	if done := harness.Get[rooms.FileShared](t, p.writer, "share_file", args); done.Status != "available" || done.FileID != first.FileID {
		t.Errorf("sharing what is complete gives %+v", done)
	}
}

// hidden compares what somebody is told about what is there and what is not.
func hidden(t *testing.T, s *setup) {
	p := s.place(t, nil)
	p.Agent("eve", "eva")
	eve := p.As("eve", "e")
	id := p.write(t, "plan.md", "secret").FileID
	upload := p.share(t, "pic.png", []byte("secret")).FileID
	const absent = "01KABCDEFGHJKMNPQRSTVWXYZ0"
	for tool, args := range map[string]harness.Args{
		"write_file":  {"path": "plan.md", "content": "x"},
		"read_file":   {"path": "plan.md"},
		"list_files":  {},
		"delete_file": {"path": "plan.md"},
		"share_file":  p.announce("pic.png", []byte("x")),
	} {
		args["room"] = p.room
		there := harness.Refused(t, eve, "NOT_FOUND", tool, args)
		args["room"] = absent
		sameButFor(t, tool, there, harness.Refused(t, eve, "NOT_FOUND", tool, args), p.room, absent)
	}
	for _, tool := range []string{"fetch_file", "complete_file_upload"} {
		for _, there := range []string{id, upload} {
			e := harness.Refused(t, eve, "NOT_FOUND", tool, harness.Args{"file_id": there})
			sameButFor(t, tool, e, harness.Refused(t, eve, "NOT_FOUND", tool, harness.Args{"file_id": absent}), there, absent)
		}
	}
	own := p.Room("own", nil, harness.Admin("eve"))
	for _, tool := range []string{"read_file", "delete_file"} {
		e := harness.Refused(t, eve, "NOT_FOUND", tool, harness.Args{"room": own, "file_id": id})
		sameButFor(t, tool, e, harness.Refused(t, eve, "NOT_FOUND", tool, harness.Args{"room": own, "file_id": absent}), id, absent)
	}
	if got := p.read(t, "path", "plan.md"); got.Content != "secret" {
		t.Errorf("the file is now %+v", got)
	}
}

// sameButFor holds that two refusals differ in the id alone.
func sameButFor(t *testing.T, tool string, there, absent *harness.Error, id, other string) {
	t.Helper()
	if strings.ReplaceAll(there.Message, id, other) != absent.Message || there.Hint != absent.Hint {
		t.Errorf("%s tells %v (%s) of what is hidden, and %v (%s) of what is not there", tool, there, there.Hint, absent, absent.Hint)
	}
}

func scopes(t *testing.T, s *setup) {
	p := s.place(t, nil)
	written := p.write(t, "plan.md", "x")
	content := []byte("y")
	pending := p.share(t, "pic.png", content).FileID
	calls := map[string]harness.Args{
		"write_file": p.args("path", "new.md", "content", "x"), "share_file": p.announce("new.png", content),
		"complete_file_upload": {"file_id": pending}, "delete_file": p.args("path", "plan.md"),
		"read_file": p.args("path", "plan.md"), "list_files": p.args(), "fetch_file": {"file_id": written.FileID},
	}
	needs := map[string]v1alpha1.Scope{"read_file": v1alpha1.ScopeDownload, "list_files": v1alpha1.ScopeDownload, "fetch_file": v1alpha1.ScopeDownload}
	for tool, args := range calls {
		scope, ok := needs[tool]
		if !ok {
			scope = v1alpha1.ScopeUpload
		}
		name := "without-" + strings.ReplaceAll(tool, "_", "-")
		p.Agent(name, "zed", func(a *v1alpha1.AgentSpec) {
			a.Scopes = nil
			for _, one := range harness.AllScopes {
				if one != scope {
					a.Scopes = append(a.Scopes, one)
				}
			}
		})
		p.join(t, harness.Member(name))
		session := p.As(name, "s")
		harness.Await(t, "the agent to see the room", func() bool {
			return strings.Contains(string(session.Call(t, "list_rooms", nil).Raw), p.room)
		})
		if e := harness.Refused(t, session, "FORBIDDEN_SCOPE", tool, args); !strings.Contains(strings.ToLower(e.Message+e.Hint), strings.ToLower(string(scope))) {
			t.Errorf("%s without %s is refused with %v (%s)", tool, scope, e, e.Hint)
		}
	}
	p.viewersRead(t, calls, needs)
}

// viewersRead holds that a viewer of a room may do what reads, and nothing that writes.
func (p *place) viewersRead(t *testing.T, calls map[string]harness.Args, reads map[string]v1alpha1.Scope) {
	t.Helper()
	p.Agent("vic", "zed")
	p.join(t, v1alpha1.RoomMember{Agent: &v1alpha1.AgentReference{Name: "vic"}, Role: v1alpha1.RoleViewer})
	viewer := p.As("vic", "s")
	harness.Await(t, "the viewer to see the room", func() bool {
		return strings.Contains(string(viewer.Call(t, "list_rooms", nil).Raw), p.room)
	})
	for tool, args := range calls {
		if _, reading := reads[tool]; !reading {
			harness.Refused(t, viewer, "FORBIDDEN", tool, args)
		} else if r := viewer.Call(t, tool, args); r.Err != nil {
			t.Errorf("a viewer calls %s and is told %v", tool, r.Err)
		}
	}
}

// join makes an agent a member.
func (p *place) join(t *testing.T, m v1alpha1.RoomMember) {
	t.Helper()
	room := p.roomObject(t)
	room.Spec.Members = append(room.Spec.Members, m)
	if err := p.store.Client.Update(t.Context(), room); err != nil {
		t.Fatal(err)
	}
}

func quotas(t *testing.T, s *setup) {
	p := s.place(t, func(r *v1alpha1.RoomSpec) { r.Limits = &v1alpha1.RoomLimits{Files: 2, FileBytes: 100} })
	p.write(t, "a", strings.Repeat("x", 40))
	p.write(t, "b", strings.Repeat("x", 40))
	numbers := func(e *harness.Error, want ...string) {
		t.Helper()
		for _, number := range want {
			if !strings.Contains(e.Message, number) {
				t.Errorf("refused with %v, want it to name %s", e, number)
			}
		}
	}
	numbers(harness.Refused(t, p.writer, "TOO_LARGE", "write_file", p.args("path", "c", "content", "")), "2", "limits.files")
	numbers(harness.Refused(t, p.writer, "TOO_LARGE", "share_file", p.announce("c", nil)), "2", "limits.files")
	big := strings.Repeat("x", 21)
	numbers(harness.Refused(t, p.writer, "TOO_LARGE", "write_file", p.args("path", "a", "content", big)), "80", "21", "100", "limits.fileBytes")
	numbers(harness.Refused(t, p.writer, "TOO_LARGE", "share_file", p.announce("a", []byte(big))), "80", "21", "100", "limits.fileBytes")
	p.share(t, "a", []byte(big[1:])) // what is under way counts
	numbers(harness.Refused(t, p.writer, "TOO_LARGE", "write_file", p.args("path", "b", "content", "x")), "100", "1", "limits.fileBytes")
	harness.Get[rooms.FileDeleted](t, p.writer, "delete_file", p.args("path", "b"))
	if got := p.write(t, "c", strings.Repeat("y", 40)); got.Version != 1 {
		t.Errorf("after one was deleted, the next is %+v", got)
	}
}

func quotaOfVersions(t *testing.T, s *setup) {
	p := s.place(t, func(r *v1alpha1.RoomSpec) {
		r.Limits = &v1alpha1.RoomLimits{Files: 1, FileBytes: 100}
		r.Retention = &v1alpha1.RoomRetention{FileVersions: 2}
	})
	p.write(t, "a", strings.Repeat("x", 50))
	p.write(t, "a", strings.Repeat("y", 50))
	if got := p.write(t, "a", strings.Repeat("z", 50)); got.Version != 3 {
		t.Errorf("a version that pushes out as much as it brings gives %+v", got)
	}
	harness.Refused(t, p.writer, "TOO_LARGE", "write_file", p.args("path", "a", "content", strings.Repeat("z", 51)))
}
