package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// sample gives a small archive.
func sample(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := newWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	room := &v1alpha1.Room{TypeMeta: kind("Room")}
	room.Name = "lab"
	if err := w.object(roomEntry, room); err != nil {
		t.Fatal(err)
	}
	out := &lines{to: w, dir: messagesDir}
	for seq := int64(1); seq <= 1001; seq++ {
		if err := out.add(message{Seq: seq, Message: v1alpha1.Message{Body: "hello"}}); err != nil {
			t.Fatal(err)
		}
	}
	text := "some content"
	err = errors.Join(out.flush(), list(w, agentsEntry, []*v1alpha1.Agent{}),
		w.stream(contentDir+sum([]byte(text)), int64(len(text)), strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	w.index.Room, w.index.Counts.Messages = "lab", 1001
	if _, err := w.close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// rewrite unpacks an archive, changes its entries, and packs it again.
func rewrite(t *testing.T, raw []byte, change func(name string, body []byte) (string, []byte)) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := gzip.NewWriter(&b)
	to := tar.NewWriter(out)
	for from := tar.NewReader(z); ; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		body, readErr := io.ReadAll(from)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		if h.Name, body = change(h.Name, body); h.Name == "" {
			continue
		}
		h.Size = int64(len(body))
		if err := to.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(to.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// in changes one entry.
func in(entry string, change func([]byte) []byte) func(string, []byte) (string, []byte) {
	return func(name string, body []byte) (string, []byte) {
		if name == entry {
			body = change(body)
		}
		return name, body
	}
}

func replaced(before, after string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.Replace(b, []byte(before), []byte(after), 1) }
}

func TestTheSameStateGivesTheSameBytes(t *testing.T) {
	if !bytes.Equal(sample(t), sample(t)) {
		t.Error("two archives of the same entries differ")
	}
}

func TestAWholeArchiveIsTaken(t *testing.T) {
	raw := sample(t)
	index, err := Verify(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range index.Entries {
		names = append(names, e.Name)
	}
	want := []string{
		formatEntry, roomEntry, chunkName(messagesDir, 1), chunkName(messagesDir, 2), agentsEntry, contentDir + sum([]byte("some content")),
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	same := rewrite(t, raw, func(name string, body []byte) (string, []byte) { return name, body })
	again, err := Verify(bytes.NewReader(same))
	if err != nil || again.Digest() != index.Digest() {
		t.Errorf("packed again it gives %v and the digest %s, want %s", err, again.Digest(), index.Digest())
	}
}

// An import has no client here: it would panic if it touched the cluster.
func TestADamagedArchiveIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	raw := sample(t)
	without := func(entry string) []byte {
		return rewrite(t, raw, func(name string, body []byte) (string, []byte) {
			if name == entry {
				return "", nil
			}
			return name, body
		})
	}
	for name, c := range map[string]struct {
		raw  []byte
		want error
		says string
	}{
		"nothing":             {nil, ErrFormat, ""},
		"something else":      {[]byte("a text that is no archive"), ErrFormat, ""},
		"a line changed":      {rewrite(t, raw, in(chunkName(messagesDir, 2), replaced("hello", "jello"))), ErrDamaged, "was changed"},
		"a line more":         {rewrite(t, raw, in(chunkName(messagesDir, 2), func(b []byte) []byte { return append(b, b...) })), ErrDamaged, "was changed"},
		"the room changed":    {rewrite(t, raw, in(roomEntry, replaced("lab", "lob"))), ErrDamaged, `"room.json" was changed`},
		"content changed":     {rewrite(t, raw, in(contentDir+sum([]byte("some content")), replaced("some", "same"))), ErrDamaged, "is not what its name says"},
		"messages missing":    {without(chunkName(messagesDir, 2)), ErrDamaged, "is missing"},
		"the index missing":   {without(indexEntry), ErrDamaged, "it has no index"},
		"the format missing":  {without(formatEntry), ErrFormat, ""},
		"a later version":     {rewrite(t, raw, in(formatEntry, replaced(`"version":1`, `"version":2`))), ErrFormat, "version 2"},
		"another format":      {rewrite(t, raw, in(formatEntry, replaced("agentrooms.dev", "example.com"))), ErrFormat, ""},
		"an impossible index": {rewrite(t, raw, in(indexEntry, replaced(`"archived": 0`, `"archived": 1500`))), ErrDamaged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Import(t.Context(), ImportOptions{}, bytes.NewReader(c.raw))
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the import gives %v, want %v with %q", err, c.want, c.says)
			}
		})
	}
}

func TestAnArchiveIsRefusedWhereverItWasCutOrHit(t *testing.T) {
	raw := sample(t)
	for at := 0; at < len(raw); at += max(1, len(raw)/200) {
		if _, err := Verify(bytes.NewReader(raw[:at])); err == nil {
			t.Errorf("cut at %d of %d bytes it is taken", at, len(raw))
		}
		if at < 10 {
			continue // the header of gzip says nothing of what follows
		}
		hit := bytes.Clone(raw)
		hit[at] ^= 0x10
		if _, err := Verify(bytes.NewReader(hit)); err == nil {
			t.Errorf("hit at byte %d of %d it is taken", at, len(raw))
		}
	}
}

// An archive can be made by anybody: it must not take the program, its memory or the terminal with it.
func TestAHostileArchiveIsRefused(t *testing.T) {
	made := func(entries ...string) []byte {
		t.Helper()
		var b bytes.Buffer
		w, err := newWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(entries); i += 2 {
			if err := w.bytes(entries[i], []byte(entries[i+1])); err != nil {
				t.Fatal(err)
			}
		}
		w.index.Room = "lab"
		if _, err := w.close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	const room = `{"metadata":{"name":"lab"}}`
	text := "some content"
	for name, c := range map[string]struct {
		raw  []byte
		says string
	}{
		"content before the room":   {made(contentDir+sum([]byte(text)), text, roomEntry, room), "second entry must be room.json"},
		"messages before the room":  {made(chunkName(messagesDir, 1), "{}", roomEntry, room), "second entry must be room.json"},
		"the room twice":            {made(roomEntry, room, roomEntry, room), `"room.json" twice`},
		"lines of nothing":          {made(roomEntry, room, chunkName(tasksDir, 1), strings.Repeat("{}\n", chunkLines+1)), "more than 1000 lines"},
		"agents of nothing":         {made(roomEntry, room, agentsEntry, strings.Repeat("{}\n", maxListed+1)), "more than 100000 lines"},
		"a task that was worked on": {made(roomEntry, room, chunkName(tasksDir, 1), `{"status":{"epoch":2000000000}}`), "epoch 2000000000"},
		"a name for the terminal":   {made(roomEntry, room, contentDir+"\x1b]0;pwn\a", text), `\x1b]0;pwn\a" is not what its name says`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Verify(bytes.NewReader(c.raw))
			if err == nil {
				im := &restore{}
				err = walk(bytes.NewReader(c.raw), im.lookedAt(agents{}, taken{}))
			}
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it gives %v, want %q", err, c.says)
			}
		})
	}
}
