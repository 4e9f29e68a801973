// Package files looks at the tools for files from outside: the real binary with two replicas of the bridge, MCP clients, and one
// suite of tests against each kind of store, the local folder and a real S3 server.
package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/agentrooms/agentrooms/test/harness"
	"github.com/agentrooms/agentrooms/test/s3"
)

const (
	// blobGrace is how long content lies without a reference, and in the trash after that.
	blobGrace = 4 * time.Second
	// fileGrace is how long deleted files can be brought back.
	fileGrace = 8 * time.Second
)

// setup is a plane and the store that it keeps contents in.
type setup struct {
	*harness.Plane

	// folder of the store, empty for S3.
	folder string
	// down makes the store unreachable, up brings it back.
	down, up func()
	// objects counts what the store holds of a room in one of its folders.
	objects func(t *testing.T, room, dir string) int
}

// suite is what must hold with every store. Those that are alone disturb others, or are disturbed by them.
var suite = []struct {
	name  string
	alone bool
	test  func(*testing.T, *setup)
}{
	{"a path is one key or refused", false, pathsAreKeys},
	{"paths that look the same are one file or refused", false, lookAlikes},
	{"a path leads to no other room and to no disk", false, pathsStayInTheRoom},
	{"content comes back as it was written", false, contentComesBack},
	{"content beyond the ceiling is refused", false, ceiling},
	{"what cannot be content is refused", false, badContent},
	{"ranges are cut between characters", false, rangesOfBytes},
	{"next_range leads through a file byte for byte", false, walks},
	{"lines are found where they lie", false, rangesOfLines},
	{"ranges that cannot be are refused", false, badRanges},

	{"the same path again makes the next version", false, versions},
	{"two writers of one path both get a version", false, sideBySide},
	{"base_version compares and swaps", false, compareAndSwap},
	{"retention prunes the oldest and never the latest", false, retention},
	{"a deleted file is hidden from every tool", false, deleted},
	{"a list pages and knows prefixes", false, lists},

	{"an upload becomes the next version", false, uploads},
	{"an upload is settled once", false, settledOnce},
	{"an upload of other bytes is quarantined or not taken", false, quarantine},
	{"an upload can be taken back", false, withdrawn},
	{"an upload expires with its URL", false, expired},
	{"transfer URLs are good for one object at every replica", false, transferURLs},
	{"transfer URLs that were changed are refused", false, tamperedURLs},
	{"what was announced wrongly is refused", false, badAnnouncements},

	{"the same key again gives the same answer", false, sameKey},
	{"those who are no members cannot tell hidden from absent", false, hidden},
	{"scopes and roles are demanded", false, scopes},
	{"a room's limits are held, with the numbers", false, quotas},
	{"a room at its limit takes what makes it smaller", false, quotaOfVersions},

	{"fifty agents write a thousand files side by side", true, manyWriters},
	{"a large file streams through", true, streams},
	{"the store goes down and comes back", true, storeDown},
	{"a bridge that is killed loses nothing", true, kills},
	{"deleted files can be brought back, and are collected after the grace", true, collected},
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func TestFolder(t *testing.T) {
	skipShort(t)
	data := t.TempDir()
	folder := filepath.Join(data, "blobs")
	s := start(t, harness.Options{DataDir: data})
	s.folder = folder
	s.down = func() { rename(t, folder, folder+".gone") }
	s.up = func() { rename(t, folder+".gone", folder) }
	s.objects = func(t *testing.T, room, dir string) int {
		return countFiles(t, filepath.Join(folder, "rooms", room, dir))
	}
	s.run(t)
}

func TestS3(t *testing.T) {
	skipShort(t)
	server := s3.New(t)
	s := start(t, harness.Options{Args: []string{"--blob-url=" + server.URL, "--blob-public-url=" + server.Endpoint}})
	s.down = func() { server.Stop(t) }
	s.up = func() { server.Restart(t) }
	s.objects = func(t *testing.T, room, dir string) int { return countFiles(t, server.Folder("rooms", room, dir)) }
	s.run(t)
}

func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
}

func start(t *testing.T, o harness.Options) *setup {
	t.Helper()
	o.Bridges = 2
	o.Args = append(o.Args, "--blob-grace="+blobGrace.String(), "--file-grace="+fileGrace.String())
	return &setup{Plane: harness.Up(t, o)}
}

// run runs the suite: side by side where the tests do not disturb each other.
func (s *setup) run(t *testing.T) {
	t.Helper()
	t.Run("together", func(t *testing.T) {
		for _, c := range suite {
			if !c.alone {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.test(t, s)
				})
			}
		}
	})
	for _, c := range suite {
		if c.alone {
			t.Run(c.name, func(t *testing.T) { c.test(t, s) })
		}
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// countFiles counts the objects in a folder. There are none where there is no folder.
func countFiles(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasSuffix(e.Name(), ".tmp") {
			n++
		}
	}
	return n
}
