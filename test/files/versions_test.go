package files

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

func versions(t *testing.T, s *setup) {
	p := s.place(t, nil)
	var id string
	for n := 1; n <= 3; n++ {
		written := p.write(t, "plan.md", fmt.Sprint("content ", n))
		if written.Version != int64(n) || (id != "" && written.FileID != id) {
			t.Fatalf("write %d gives %+v", n, written)
		}
		id = written.FileID
	}
	for _, by := range [][]any{{"path", "plan.md"}, {"file_id", id}} {
		if got := p.read(t, by...); got.Content != "content 3" || got.Version != 3 || got.FileID != id {
			t.Errorf("the latest by %v is %+v", by, got)
		}
		for n := 1; n <= 3; n++ {
			if got := p.read(t, append(by, "version", n)...); got.Content != fmt.Sprint("content ", n) || got.Version != int64(n) {
				t.Errorf("version %d by %v is %+v", n, by, got)
			}
		}
		e := harness.Refused(t, p.reader, "NOT_FOUND", "read_file", p.args(append(by, "version", 4)...))
		if !strings.Contains(e.Hint, "3") {
			t.Errorf("a version that is not kept is told as %v (%s), want the latest named", e, e.Hint)
		}
	}
	list := harness.Get[rooms.FileList](t, p.reader, "list_files", p.args()).Files
	if len(list) != 1 || list[0].Version != 3 || list[0].FileID != id || list[0].Size != 9 || list[0].UpdatedBy != p.Alias("ada", "ann") {
		t.Errorf("the list is %+v", list)
	}
	refused(t, p.reader, "path", "read_file", p.args("path", "plan.md", "file_id", id))
	refused(t, p.reader, "file_id", "read_file", p.args("file_id", "plan.md"))
	harness.Refused(t, p.reader, "NOT_FOUND", "read_file", p.args("file_id", p.room))
}

// sideBySide has agents of both replicas write one path at once.
func sideBySide(t *testing.T, s *setup) {
	p := s.place(t, func(r *v1alpha1.RoomSpec) { r.Retention = &v1alpha1.RoomRetention{FileVersions: 100} })
	const writes = 12
	var mu sync.Mutex
	got := map[int64]string{}
	var wg sync.WaitGroup
	for i, session := range []*harness.Session{p.writer, p.reader, p.At(0, "bob", "c"), p.At(1, "ada", "d")} {
		wg.Go(func() {
			for n := range writes {
				content := fmt.Sprintf("writer %d, write %d", i, n)
				out := harness.Get[rooms.FileWritten](t, session, "write_file", p.args("path", "log.txt", "content", content))
				mu.Lock()
				if other, twice := got[out.Version]; twice {
					t.Errorf("version %d was given to %q and %q", out.Version, other, content)
				}
				got[out.Version] = content
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for n := int64(1); n <= 4*writes; n++ {
		if read := p.read(t, "path", "log.txt", "version", n); read.Content != got[n] || got[n] == "" {
			t.Errorf("version %d holds %q, its writer wrote %q", n, read.Content, got[n])
		}
	}
}

func compareAndSwap(t *testing.T, s *setup) {
	p := s.place(t, nil)
	with := func(base int, content string) harness.Args {
		return p.args("path", "plan.md", "content", content, "base_version", base)
	}
	e := harness.Refused(t, p.writer, "CONFLICT", "write_file", with(1, "x"))
	if !strings.Contains(e.Message, "no such file") {
		t.Errorf("a base of a file that is not there gives %v", e)
	}
	harness.Get[rooms.FileWritten](t, p.writer, "write_file", with(0, "one"))
	for _, session := range []*harness.Session{p.writer, p.reader} { // also at the replica that may not have seen it yet
		if e := harness.Refused(t, session, "CONFLICT", "write_file", with(0, "x")); !strings.Contains(e.Message, "version is 1") {
			t.Errorf("the conflict does not name the present version: %v", e)
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		session := p.At(i%2, "ada", fmt.Sprint("racer-", i))
		wg.Go(func() {
			r := session.Call(t, "write_file", with(1, fmt.Sprint("two by ", i)))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.Err == nil:
				won++
			case r.Err.Code != "CONFLICT" || !strings.Contains(r.Err.Message, "version is 2"):
				t.Errorf("a loser is told %v", r.Err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d of 8 swapped version 1, want one", won)
	}
}

func retention(t *testing.T, s *setup) {
	p := s.place(t, func(r *v1alpha1.RoomSpec) { r.Retention = &v1alpha1.RoomRetention{FileVersions: 2} })
	for n := 1; n <= 5; n++ {
		p.write(t, "plan.md", fmt.Sprint("content ", n))
	}
	kept := func() string {
		numbers := []string{}
		for n := 1; n <= 5; n++ {
			r := p.reader.Call(t, "read_file", p.args("path", "plan.md", "version", n))
			if r.Err == nil {
				numbers = append(numbers, fmt.Sprint(n))
			} else if r.Err.Code != "NOT_FOUND" {
				t.Errorf("reading version %d gives %v", n, r.Err)
			}
		}
		return strings.Join(numbers, " ")
	}
	if got := kept(); got != "4 5" {
		t.Errorf("with a retention of 2 the versions %s are kept", got)
	}
	room := p.roomObject(t)
	room.Spec.Retention.FileVersions = 1
	if err := s.Client.Update(t.Context(), room); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, "the controller to prune all but the latest", func() bool { return kept() == "5" })
	if got := p.write(t, "plan.md", "next"); got.Version != 6 {
		t.Errorf("after pruning, the next version is %+v", got)
	}
}

// deleted looks for a deleted file with every tool, by path and by id, at both replicas.
func deleted(t *testing.T, s *setup) {
	p := s.place(t, nil)
	id := p.write(t, "plan.md", "one").FileID
	p.write(t, "plan.md", "two")
	upload := p.upload(t, "plan.md", []byte("three")).FileID
	gone := p.writer.Call(t, "delete_file", p.args("path", "plan.md"))
	if gone.Err != nil || !strings.Contains(string(gone.Raw), `"deleted":true`) {
		t.Fatalf("deleting gives %s, %v", gone.Raw, gone.Err)
	}
	p.reader.After = gone.Revision
	for _, session := range []*harness.Session{p.writer, p.reader} {
		for _, by := range [][]any{{"path", "plan.md"}, {"file_id", id}, {"file_id", upload}} {
			harness.Refused(t, session, "NOT_FOUND", "read_file", p.args(by...))
			harness.Refused(t, session, "NOT_FOUND", "read_file", p.args(append(by, "version", 1)...))
		}
		harness.Refused(t, session, "NOT_FOUND", "fetch_file", harness.Args{"file_id": id})
		harness.Refused(t, session, "NOT_FOUND", "fetch_file", harness.Args{"file_id": upload})
		if got := p.list(t, session); len(got) > 0 {
			t.Errorf("the list still has %q", got)
		}
	}
	harness.Get[rooms.FileDeleted](t, p.writer, "delete_file", p.args("path", "plan.md"))
	harness.Refused(t, p.writer, "NOT_FOUND", "delete_file", p.args("path", "never-there.md"))
	again := p.write(t, "plan.md", "anew", "base_version", 0)
	if again.Version != 4 || again.FileID != id {
		t.Errorf("writing it anew gives %+v, want version 4 of the same file", again)
	}
	harness.Refused(t, p.reader, "NOT_FOUND", "read_file", p.args("path", "plan.md", "version", 3))
	if got := p.read(t, "path", "plan.md"); got.Content != "anew" {
		t.Errorf("read %+v", got)
	}
}

// collected is slow: it waits for the grace times.
func collected(t *testing.T, s *setup) {
	p := s.place(t, nil)
	id := p.write(t, "back.md", "brought back").FileID
	p.write(t, "gone.md", "collected")
	p.write(t, "same.md", "brought back") // shares its content with the first
	for _, path := range []string{"back.md", "gone.md"} {
		harness.Get[rooms.FileDeleted](t, p.writer, "delete_file", p.args("path", path))
	}
	file := p.object(t, id)
	if d := file.Spec.Deletion; d == nil || d.By.Plate != p.Plates["ada"] || d.ThroughVersion != 1 {
		t.Fatalf("the deletion is recorded as %+v", d)
	}
	back := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deletion":null}}`))
	if err := s.Client.Patch(context.Background(), file, back); err != nil {
		t.Fatalf("an admin brings the file back: %v", err)
	}
	harness.Await(t, "the file to be back", func() bool { return slices.Equal(p.list(t, p.reader), []string{"back.md", "same.md"}) })
	if got := p.read(t, "file_id", id); got.Content != "brought back" {
		t.Errorf("what was brought back reads %+v", got)
	}
	if n := s.objects(t, p.uid, "content"); n != 2 {
		t.Errorf("the store holds %d contents before the grace is over, want 2", n)
	}
	harness.Await(t, "the other file to be collected", func() bool { return len(p.objects(t)) == 2 })
	harness.Await(t, "its content to be collected", func() bool {
		return s.objects(t, p.uid, "content") == 1 && s.objects(t, p.uid, "trash") == 0
	})
	for _, path := range []string{"back.md", "same.md"} {
		if got := p.read(t, "path", path); got.Content != "brought back" {
			t.Errorf("%s reads %+v after the collection", path, got)
		}
	}
	p.write(t, "gone.md", "collected")
	if got := p.read(t, "path", "gone.md"); got.Content != "collected" || got.Version != 1 {
		t.Errorf("content that was collected and written again reads %+v", got)
	}
}

func lists(t *testing.T, s *setup) {
	p := s.place(t, nil)
	if got := harness.Get[rooms.FileList](t, p.writer, "list_files", p.args()); got.Files == nil || len(got.Files) > 0 {
		t.Errorf("a room without files lists %+v", got)
	}
	for _, path := range []string{"b/2", "a", "b/1", "ba", "caf\u00e9/x"} {
		p.write(t, path, path)
	}
	for prefix, want := range map[string][]string{
		"": {"a", "b/1", "b/2", "ba", "caf\u00e9/x"}, "b/": {"b/1", "b/2"}, "b": {"b/1", "b/2", "ba"}, "cafe\u0301/": {"caf\u00e9/x"}, "z": {}, "/": {},
	} {
		got := []string{}
		for _, f := range harness.Get[rooms.FileList](t, p.reader, "list_files", p.args("prefix", prefix)).Files {
			got = append(got, f.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with the prefix %q: %q, want %q", prefix, got, want)
		}
	}
	after := harness.Get[rooms.FileList](t, p.reader, "list_files", p.args("after", "b/1", "prefix", "b"))
	if len(after.Files) != 2 || after.Files[0].Path != "b/2" || after.NextAfter != "" {
		t.Errorf("after b/1 come %+v", after)
	}
}
