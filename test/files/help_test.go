package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

// place is a room of a test with an agent at each replica.
type place struct {
	*harness.World

	store *setup
	// room is its id, uid that of its object, by which the store knows it.
	room, uid string
	// writer and reader are two agents, the second at the other replica.
	writer, reader *harness.Session
}

// place makes a room with two members. edit changes the room before it is made.
func (s *setup) place(t *testing.T, edit func(*v1alpha1.RoomSpec)) *place {
	t.Helper()
	w := s.World(t)
	w.Agent("ada", "ann")
	w.Agent("bob", "ben")
	p := &place{World: w, store: s}
	p.room = w.Room("shop", edit, harness.Admin("ada"), harness.Member("bob"))
	p.uid = string(p.roomObject(t).UID)
	p.writer, p.reader = w.At(0, "ada", "a"), w.At(1, "bob", "b")
	return p
}

func (p *place) roomObject(t *testing.T) *v1alpha1.Room {
	t.Helper()
	room := &v1alpha1.Room{}
	if err := p.store.Client.Get(t.Context(), client.ObjectKey{Namespace: p.Namespace, Name: "shop"}, room); err != nil {
		t.Fatal(err)
	}
	return room
}

// args adds the room to the arguments of a call: pairs of names and values.
func (p *place) args(pairs ...any) harness.Args {
	args := harness.Args{"room": p.room}
	for i := 0; i < len(pairs); i += 2 {
		args[pairs[i].(string)] = pairs[i+1]
	}
	return args
}

// write writes content as the writer. The reader's next call sees it.
func (p *place) write(t *testing.T, path, content string, more ...any) rooms.FileWritten {
	t.Helper()
	r := p.writer.Call(t, "write_file", p.args(append([]any{"path", path, "content", content}, more...)...))
	var out rooms.FileWritten
	r.Into(t, &out)
	p.reader.After = r.Revision
	return out
}

// read reads a file as the reader.
func (p *place) read(t *testing.T, pairs ...any) rooms.FileRead {
	t.Helper()
	return harness.Get[rooms.FileRead](t, p.reader, "read_file", p.args(pairs...))
}

// raw gives the bytes of what was read.
func raw(t *testing.T, f rooms.FileRead) []byte {
	t.Helper()
	if f.Encoding == "utf-8" {
		return []byte(f.Content)
	}
	content, err := base64.StdEncoding.DecodeString(f.Content)
	if err != nil || f.Encoding != "base64" {
		t.Fatalf("%q claims to be %s: %v", f.Content, f.Encoding, err)
	}
	return content
}

// list gives the paths that a session is shown.
func (p *place) list(t *testing.T, s *harness.Session) []string {
	t.Helper()
	paths := []string{}
	for _, f := range harness.Get[rooms.FileList](t, s, "list_files", p.args()).Files {
		paths = append(paths, f.Path)
	}
	return paths
}

// object gives the File of an id.
func (p *place) object(t *testing.T, id string) *v1alpha1.File {
	t.Helper()
	for _, f := range p.objects(t) {
		if ids.ID(&f) == id {
			return &f
		}
	}
	return nil
}

func (p *place) objects(t *testing.T) []v1alpha1.File {
	t.Helper()
	var list v1alpha1.FileList
	if err := p.store.Client.List(context.Background(), &list, client.InNamespace(p.Namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// refused demands a VALIDATION that names a field.
func refused(t *testing.T, s *harness.Session, field, tool string, args harness.Args) {
	t.Helper()
	if e := harness.Refused(t, s, "VALIDATION", tool, args); !slices.Equal(e.Fields, []string{field}) || !strings.HasPrefix(e.Message, field+" ") {
		t.Errorf("%s %v is refused with %+v, want it to name %s", tool, args, e, field)
	}
}

func sum(content []byte) string {
	h := sha256.Sum256(content)
	return hex.EncodeToString(h[:])
}

func random(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.Read(content)
	return content
}

// announce gives the arguments of share_file for content.
func (p *place) announce(path string, content []byte, more ...any) harness.Args {
	return p.args(append([]any{
		"filename", path, "content_type", "image/png", "size_bytes", len(content), "sha256", sum(content),
	}, more...)...)
}

// share announces content as the writer.
func (p *place) share(t *testing.T, path string, content []byte, more ...any) rooms.FileShared {
	t.Helper()
	return harness.Get[rooms.FileShared](t, p.writer, "share_file", p.announce(path, content, more...))
}

// complete completes an upload as the writer. The reader's next call sees it.
func (p *place) complete(t *testing.T, id string) rooms.FileCompleted {
	t.Helper()
	r := p.writer.Call(t, "complete_file_upload", harness.Args{"file_id": id})
	var out rooms.FileCompleted
	r.Into(t, &out)
	p.reader.After = r.Revision
	return out
}

// upload shares, sends and completes content.
func (p *place) upload(t *testing.T, path string, content []byte) rooms.FileCompleted {
	t.Helper()
	shared := p.share(t, path, content)
	if status, text := put(t, shared.UploadURL, shared.Headers, content); status != http.StatusOK {
		t.Fatalf("the upload is answered %d: %s", status, text)
	}
	return p.complete(t, shared.FileID)
}

// put sends bytes to where they go.
func put(t *testing.T, url string, headers map[string]string, content []byte) (int, string) {
	t.Helper()
	return send(t, http.MethodPut, url, headers, bytes.NewReader(content))
}

// get fetches a URL.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	return send(t, http.MethodGet, url, nil, nil)
}

func send(t *testing.T, method, url string, headers map[string]string, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	// A server that refuses an upload may close the connection with the bytes unread: the next request takes its own.
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return answer.StatusCode, string(text)
}
