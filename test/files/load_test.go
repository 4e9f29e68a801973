package files

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

func manyWriters(t *testing.T, s *setup) {
	const agents, each = 50, 20
	p := s.place(t, nil)
	var members []string
	room := p.roomObject(t)
	for i := range agents {
		name := fmt.Sprint("agent-", i)
		p.Agent(name, "zed")
		room.Spec.Members = append(room.Spec.Members, harness.Member(name))
		members = append(members, name)
	}
	if err := s.Client.Update(t.Context(), room); err != nil {
		t.Fatal(err)
	}
	sessions := make([]*harness.Session, agents)
	for i, name := range members {
		sessions[i] = p.At(i%2, name, "s")
		harness.Await(t, "an agent to see the room", func() bool { return sessions[i].Call(t, "list_files", p.args()).Err == nil })
	}
	began := time.Now()
	var wg sync.WaitGroup
	for i, session := range sessions {
		wg.Go(func() {
			for n := range each {
				out := harness.Get[rooms.FileWritten](t, session, "write_file", p.args("path", pathOf(i, n), "content", "content of "+pathOf(i, n)))
				if out.Version != 1 || out.Path != pathOf(i, n) {
					t.Errorf("writing gives %+v", out)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d agents wrote %d files in %s", agents, agents*each, time.Since(began).Round(time.Millisecond))
	p.holdsAll(t, agents, each)
}

func pathOf(agent, n int) string { return fmt.Sprintf("out/%02d/%02d.txt", agent, n) }

// holdsAll pages through the list and reads some files of each agent, at both replicas.
func (p *place) holdsAll(t *testing.T, agents, each int) {
	t.Helper()
	for _, session := range []*harness.Session{p.writer, p.reader} {
		harness.Await(t, "the replica to list all", func() bool {
			seen := map[string]bool{}
			for after := ""; ; {
				page := harness.Get[rooms.FileList](t, session, "list_files", p.args("after", after))
				for _, f := range page.Files {
					seen[f.Path] = true
				}
				if after = page.NextAfter; after == "" {
					return len(seen) == agents*each
				}
			}
		})
		for i := range agents {
			got := harness.Get[rooms.FileRead](t, session, "read_file", p.args("path", pathOf(i, i%each)))
			if got.Content != "content of "+pathOf(i, i%each) {
				t.Errorf("%s reads %+v", pathOf(i, i%each), got)
			}
		}
	}
}

// streams sends and fetches more than a bridge may hold in memory.
func streams(t *testing.T, s *setup) {
	const size, most = 200 << 20, 100 << 20
	p := s.place(t, nil)
	hash := sha256.New()
	if _, err := io.Copy(hash, noise(size)); err != nil {
		t.Fatal(err)
	}
	want := hex.EncodeToString(hash.Sum(nil))
	before := s.memory(t)
	shared := harness.Get[rooms.FileShared](t, p.writer, "share_file", p.args(
		"filename", "large.bin", "content_type", "application/octet-stream", "size_bytes", size, "sha256", want))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, shared.UploadURL, noise(size))
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = size
	for name, value := range shared.Headers {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the upload is answered %s", answer.Status)
	}
	if done := p.complete(t, shared.FileID); done.Status != "available" || done.SHA256 != want {
		t.Fatalf("the upload is settled as %+v", done)
	}
	if got := p.download(t, shared.FileID); got != want {
		t.Errorf("what is fetched has the hash %s, want %s", got, want)
	}
	last := p.read(t, "path", "large.bin", "range", harness.Args{"offset": size - 5})
	if len(raw(t, last)) != 5 || last.Truncated {
		t.Errorf("its end reads %+v", last)
	}
	for bridge, after := range s.memory(t) {
		t.Logf("%s grew from %d to %d MiB", bridge, before[bridge]>>20, after>>20)
		if after-before[bridge] > most {
			t.Errorf("%s grew by %d MiB over a file of %d MiB", bridge, (after-before[bridge])>>20, size>>20)
		}
	}
}

// noise gives the same bytes each time.
func noise(size int64) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{7}), size) }

// download fetches a file and gives the hash of what comes.
func (p *place) download(t *testing.T, id string) string {
	t.Helper()
	fetched := harness.Get[rooms.FileFetched](t, p.reader, "fetch_file", harness.Args{"file_id": id})
	answer, err := http.Get(fetched.DownloadURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, answer.Body); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// memory gives the most that each bridge has had in memory, in bytes.
func (s *setup) memory(t *testing.T) map[string]int64 {
	t.Helper()
	most := map[string]int64{}
	for name, pid := range s.Children(t) {
		if !strings.HasPrefix(name, "bridge-") {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		most[name] = kilobytes << 10
	}
	return most
}
