package files

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// badPaths can mean something to a file system, or hide what they are.
var badPaths = map[string]string{
	"the folder above": "../secret", "the folder above, within": "a/../../secret", "the folder above alone": "..", "the folder itself": "./a",
	"a slash in front": "/etc/passwd", "a backslash": `..\secret`, "NUL": "a\x00b", "a newline": "a\nb", "two slashes": "a//b",
	"a slash at the end": "a/", "a trailing dot": "plan.", "a folder with a trailing dot": "notes./plan", "a trailing space": "plan ",
	"a space in front": " plan", "a text direction": "a\u202etxt.exe", "a zero-width space": "pl\u200ban", "a filler": "pl\u3164an",
	"a mark alone": "a/\ufe0f", "a long name": strings.Repeat("x", 256), "a long path": strings.Repeat("abc/", 128) + "x",
}

func pathsAreKeys(t *testing.T, s *setup) {
	p := s.place(t, nil)
	for name, path := range badPaths {
		t.Run(name, func(t *testing.T) {
			refused(t, p.writer, "path", "write_file", p.args("path", path, "content", "x"))
			refused(t, p.writer, "path", "read_file", p.args("path", path))
			refused(t, p.writer, "path", "delete_file", p.args("path", path))
			refused(t, p.writer, "filename", "share_file", p.announce(path, nil))
		})
	}
	refused(t, p.writer, "path", "write_file", p.args("path", "", "content", "x"))
	refused(t, p.writer, "path", "read_file", p.args())
	if left := p.objects(t); len(left) > 0 {
		t.Errorf("refused paths left %d files, such as %q", len(left), left[0].Spec.Path)
	}
	for _, path := range []string{"a..b/...c/%2e%2e/~/$HOME/C:x", strings.Repeat("ab/", 170) + "ab", "my notes/über 世界 ❤️.md"} {
		p.write(t, path, "this is "+path)
		if got := p.read(t, "path", path); got.Content != "this is "+path || got.Path != path {
			t.Errorf("%q gives %+v", path, got)
		}
	}
}

func lookAlikes(t *testing.T, s *setup) {
	p := s.place(t, nil)
	first := p.write(t, "caf\u00e9/plan.md", "one")
	second := p.write(t, "cafe\u0301/plan.md", "two")
	if second.FileID != first.FileID || second.Version != 2 || second.Path != first.Path {
		t.Errorf("two ways to write é are the files %+v and %+v", first, second)
	}
	if got := p.read(t, "path", "cafe\u0301/plan.md", "version", 1); got.Content != "one" {
		t.Errorf("read as it is not stored: %+v", got)
	}
	for name, path := range map[string]string{
		"a Cyrillic a": "caf\u00e9/pl\u0430n.md", "a full-width m": "caf\u00e9/plan.\uff4dd", "a selector": "caf\u00e9/plan\ufe0f.md",
		"a division slash": "caf\u00e9\u2215plan.md",
	} {
		e := harness.Refused(t, p.writer, "CONFLICT", "write_file", p.args("path", path, "content", "x"))
		if !strings.Contains(e.Message, "plan.md") {
			t.Errorf("%s is refused with %v, want it to name the other path", name, e)
		}
		harness.Refused(t, p.writer, "CONFLICT", "share_file", p.announce(path, nil))
		harness.Refused(t, p.reader, "NOT_FOUND", "read_file", p.args("path", path))
		harness.Refused(t, p.reader, "NOT_FOUND", "delete_file", p.args("path", path))
	}
	p.write(t, "README.md", "upper")
	p.write(t, "readme.md", "lower")
	if a, b := p.read(t, "path", "README.md"), p.read(t, "path", "readme.md"); a.Content != "upper" || b.Content != "lower" {
		t.Errorf("paths that the eye can tell apart are mixed up: %+v, %+v", a, b)
	}
	if got := p.list(t, p.reader); !slices.Equal(got, []string{"README.md", "caf\u00e9/plan.md", "readme.md"}) {
		t.Errorf("the room lists %q", got)
	}
}

// pathsStayInTheRoom holds that the same path is another file in another room, also where that has the same members or had the
// same name, and that no path becomes a name on the host's disk.
func pathsStayInTheRoom(t *testing.T, s *setup) {
	p, other := s.place(t, nil), s.place(t, nil)
	written := p.write(t, "plan-of-this-room.md", "of the first room")
	twin := p.Room("shop-f2", nil, harness.Admin("ada"), harness.Member("bob"))
	harness.Refused(t, p.writer, "NOT_FOUND", "read_file", harness.Args{"room": twin, "path": "plan-of-this-room.md"})
	harness.Refused(t, p.writer, "NOT_FOUND", "read_file", harness.Args{"room": twin, "file_id": written.FileID})
	harness.Refused(t, p.writer, "NOT_FOUND", "delete_file", harness.Args{"room": twin, "file_id": written.FileID})
	harness.Refused(t, other.writer, "NOT_FOUND", "read_file", p.args("path", "plan-of-this-room.md"))
	harness.Refused(t, other.writer, "NOT_FOUND", "read_file", other.args("file_id", written.FileID))
	if got := harness.Get[rooms.FileWritten](t, p.writer, "write_file", harness.Args{
		"room": twin, "path": "plan-of-this-room.md", "content": "of the second room",
	}); got.Version != 1 || got.FileID == written.FileID {
		t.Errorf("the same path in another room is %+v", got)
	}
	if got := p.read(t, "path", "plan-of-this-room.md"); got.Content != "of the first room" {
		t.Errorf("the first room's file is now %+v", got)
	}
	err := filepath.WalkDir(s.DataDir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.Contains(filepath.Base(path), "plan-of-this-room") {
			return fmt.Errorf("a path became a name on the disk: %s", path)
		}
		return nil // files of the plane come and go
	})
	if err != nil {
		t.Error(err)
	}
}
