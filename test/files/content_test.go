package files

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/mcpbridge/toolsets/rooms"
	"github.com/agentrooms/agentrooms/test/harness"
)

func contentComesBack(t *testing.T, s *setup) {
	p := s.place(t, nil)
	b64 := base64.StdEncoding.EncodeToString
	for name, tc := range map[string]struct {
		content              []byte
		encoding, kind       string
		wantType, wantEncode string
	}{
		"nothing":                       {nil, "", "", "text/plain; charset=utf-8", "utf-8"},
		"nothing, in base64":            {nil, "base64", "image/png", "image/png", "base64"},
		"text":                          {[]byte("grüße, 世界 😀\r\n\ttab"), "utf-8", "text/markdown", "text/markdown", "utf-8"},
		"text of a type":                {[]byte("{}"), "", "application/json", "application/json", "utf-8"},
		"text in base64":                {[]byte("plain"), "base64", "text/plain", "text/plain", "utf-8"},
		"text with NUL":                 {[]byte("a\x00b\x1b"), "", "text/plain", "text/plain", "base64"},
		"the mark of decoding":          {[]byte("a\ufffdb"), "", "text/plain", "text/plain", "utf-8"},
		"binary":                        {[]byte("\x89PNG\r\n\x1a\n\x00\xff"), "base64", "", "image/png", "base64"},
		"binary that claims to be text": {[]byte("\xff\xfe\x00a"), "base64", "text/plain", "text/plain", "base64"},
		"text that is not UTF-8":        {[]byte("gr\xfc\xdfe"), "base64", "text/plain; charset=latin1", "text/plain; charset=latin1", "base64"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []any{}
			content := string(tc.content)
			if tc.encoding != "" {
				args = append(args, "encoding", tc.encoding)
			}
			if tc.encoding == "base64" {
				content = b64(tc.content)
			}
			if tc.kind != "" {
				args = append(args, "content_type", tc.kind)
			}
			written := p.write(t, name, content, args...)
			if written.Size != int64(len(tc.content)) || written.SHA256 != sum(tc.content) || written.ContentType != tc.wantType {
				t.Errorf("written as %+v", written)
			}
			got := p.read(t, "path", name)
			if !bytes.Equal(raw(t, got), tc.content) || got.ContentType != tc.wantType || got.Truncated || got.NextRange != nil {
				t.Errorf("read as %+v", got)
			}
			if got.Encoding != tc.wantEncode && len(tc.content) > 0 {
				t.Errorf("shown as %s, want %s", got.Encoding, tc.wantEncode)
			}
		})
	}
}

func ceiling(t *testing.T, s *setup) {
	p := s.place(t, nil)
	full := strings.Repeat("0123456789abcde\n", files.MaxInline/16)
	p.write(t, "full.txt", full)
	if got := p.read(t, "path", "full.txt"); got.Content != full || got.Truncated || got.Size != files.MaxInline {
		t.Errorf("a file of just the ceiling comes with %d bytes, truncated: %t", len(got.Content), got.Truncated)
	}
	controls := strings.Repeat("\x01", files.MaxInline) // six bytes of JSON for each
	p.write(t, "controls.bin", controls)
	if got := p.read(t, "path", "controls.bin"); !bytes.Equal(raw(t, got), []byte(controls)) {
		t.Errorf("control characters come back as %d bytes (%s)", got.Size, got.Encoding)
	}
	for name, args := range map[string]harness.Args{
		"one more":                             p.args("path", "more.txt", "content", full+"x"),
		"one more in base64":                   p.args("path", "more.txt", "encoding", "base64", "content", base64.StdEncoding.EncodeToString([]byte(full+"x"))),
		"one more, in characters of two bytes": p.args("path", "more.txt", "content", strings.Repeat("ü", files.MaxInline/2)+"ü"),
	} {
		e := harness.Refused(t, p.writer, "TOO_LARGE", "write_file", args)
		if !strings.Contains(e.Message, "262144") || !strings.Contains(e.Hint, "share_file") {
			t.Errorf("%s is refused with %v (%s)", name, e, e.Hint)
		}
	}
	harness.Refused(t, p.writer, "NOT_FOUND", "read_file", p.args("path", "more.txt"))
	p.upload(t, "more.txt", []byte(full+"x"))
	got := p.read(t, "path", "more.txt", "range", harness.Args{"offset": 0})
	if len(raw(t, got)) != files.MaxInline || !got.Truncated || got.NextRange == nil || *got.NextRange != (files.Span{Offset: files.MaxInline, Length: 1}) {
		t.Errorf("a byte more than the ceiling comes with %d bytes, truncated: %t, and %+v", len(raw(t, got)), got.Truncated, got.NextRange)
	}
}

func badContent(t *testing.T, s *setup) {
	p := s.place(t, nil)
	for name, tc := range map[string]struct {
		field string
		args  harness.Args
	}{
		"no content":              {"content", p.args("path", "x")},
		"null for content":        {"content", p.args("path", "x", "content", nil)},
		"a number for content":    {"content", p.args("path", "x", "content", 7)},
		"broken base64":           {"content", p.args("path", "x", "content", "/wA", "encoding", "base64")},
		"text that claims base64": {"content", p.args("path", "x", "content", "hello, world", "encoding", "base64")},
		"another encoding":        {"encoding", p.args("path", "x", "content", "x", "encoding", "latin1")},
		"no media type":           {"content_type", p.args("path", "x", "content", "x", "content_type", "text")},
		"a type with a line":      {"content_type", p.args("path", "x", "content", "x", "content_type", "text/plain\r\nX: y")},
		"a version below none":    {"base_version", p.args("path", "x", "content", "x", "base_version", -1)},
	} {
		t.Run(name, func(t *testing.T) { refused(t, p.writer, tc.field, "write_file", tc.args) })
	}
	if got := p.objects(t); len(got) > 0 {
		t.Errorf("what was refused left %d files", len(got))
	}
}

func rangesOfBytes(t *testing.T, s *setup) {
	p := s.place(t, nil)
	const text = "aü☃😀z" // 1, 2, 3, 4 and 1 bytes
	p.write(t, "text.txt", text)
	for offset := range len(text) + 1 {
		for length := 1; length <= len(text)-offset+1; length++ {
			got := p.read(t, "path", "text.txt", "range", harness.Args{"offset": offset, "length": length})
			end := int(got.Range.Offset + got.Range.Length)
			if got.Encoding != "utf-8" || !utf8.ValidString(got.Content) || text[got.Range.Offset:end] != got.Content {
				t.Errorf("%d bytes from %d give %+v", length, offset, got)
			}
			if int(got.Range.Offset) > offset || offset-int(got.Range.Offset) > 3 || end-offset > max(length, 4) {
				t.Errorf("%d bytes from %d give those of %+v", length, offset, got.Range)
			}
			if got.Truncated != (end < min(offset+length, len(text))) || got.Truncated != (got.NextRange != nil) {
				t.Errorf("%d bytes from %d: truncated %t after %d, %+v", length, offset, got.Truncated, end, got.NextRange)
			}
		}
	}
	p.write(t, "binary.png", base64.StdEncoding.EncodeToString([]byte(text)), "encoding", "base64", "content_type", "image/png")
	got := p.read(t, "path", "binary.png", "range", harness.Args{"offset": 2, "length": 3})
	if !bytes.Equal(raw(t, got), []byte(text)[2:5]) || got.Range != (files.Span{Offset: 2, Length: 3}) {
		t.Errorf("of binary content 3 bytes from 2 are %+v", got)
	}
}

// walks reads files from their beginning as next_range leads, and puts together what comes.
func walks(t *testing.T, s *setup) {
	p := s.place(t, nil)
	for name, content := range map[string][]byte{
		"multi-byte text":                   []byte(strings.Repeat("aü☃😀", files.MaxInline/5)),
		"binary":                            random(files.MaxInline + 1),
		"text that is not UTF-8 at times":   []byte(strings.Repeat("☃", files.MaxInline/3-5) + "\xff" + strings.Repeat("☃", files.MaxInline/3) + "\xe2\x98"),
		"three times the ceiling, one more": bytes.Repeat([]byte("x"), 3*files.MaxInline+1),
	} {
		t.Run(name, func(t *testing.T) {
			shared := harness.Get[rooms.FileShared](t, p.writer, "share_file", p.args(
				"filename", name, "content_type", "text/plain", "size_bytes", len(content), "sha256", sum(content)))
			if status, text := put(t, shared.UploadURL, shared.Headers, content); status != 200 {
				t.Fatalf("uploading: %d %s", status, text)
			}
			p.complete(t, shared.FileID)
			var all []byte
			for args := p.args("path", name); ; {
				got := harness.Get[rooms.FileRead](t, p.writer, "read_file", args)
				part := raw(t, got)
				if got.Range.Offset != int64(len(all)) || len(part) == 0 || len(part) > files.MaxInline {
					t.Fatalf("after %d bytes come %d of %+v", len(all), len(part), got.Range)
				}
				all = append(all, part...)
				if !got.Truncated {
					break
				}
				args = p.args("path", name, "range", *got.NextRange)
			}
			if !bytes.Equal(all, content) {
				t.Errorf("%d bytes come together, which are not the %d that were written", len(all), len(content))
			}
		})
	}
}

func rangesOfLines(t *testing.T, s *setup) {
	p := s.place(t, nil)
	p.write(t, "lines.txt", "one\ntwo\r\n\nfour ☃\nfive")
	for name, tc := range map[string]struct {
		lines harness.Args
		want  string
	}{
		"one":                  {harness.Args{"start_line": 2, "end_line": 2}, "two\r\n"},
		"from one on":          {harness.Args{"start_line": 4}, "four ☃\nfive"},
		"up to one":            {harness.Args{"end_line": 3}, "one\ntwo\r\n\n"},
		"more than there are":  {harness.Args{"start_line": 5, "end_line": 50}, "five"},
		"behind the last line": {harness.Args{"start_line": 6}, ""},
	} {
		if got := p.read(t, "path", "lines.txt", "range", tc.lines); got.Content != tc.want || got.Truncated {
			t.Errorf("%s gives %+v, want %q", name, got, tc.want)
		}
	}
	long := strings.Repeat("x", files.MaxInline) + "\nnext\n"
	p.upload(t, "long.txt", []byte(long))
	got := p.read(t, "path", "long.txt", "range", harness.Args{"start_line": 1, "end_line": 2})
	if !got.Truncated || got.NextRange == nil || *got.NextRange != (files.Span{Offset: files.MaxInline, Length: 6}) {
		t.Errorf("lines beyond the ceiling go on with %+v", got.NextRange)
	}
}

func badRanges(t *testing.T, s *setup) {
	p := s.place(t, nil)
	p.write(t, "x", "hello\nworld")
	for name, r := range map[string]any{
		"bytes and lines":         harness.Args{"offset": 1, "start_line": 1},
		"a beginning behind it":   harness.Args{"offset": 12},
		"a beginning before it":   harness.Args{"offset": -1},
		"a length of nothing":     harness.Args{"length": 0},
		"line zero":               harness.Args{"start_line": 0},
		"lines that go backwards": harness.Args{"start_line": 2, "end_line": 1},
		"what is no member":       harness.Args{"from": 1},
		"text":                    "0-5",
		"a list":                  []int{0, 5},
		"half a number":           harness.Args{"offset": 0.5},
	} {
		t.Run(name, func(t *testing.T) { refused(t, p.writer, "range", "read_file", p.args("path", "x", "range", r)) })
	}
	if got := p.read(t, "path", "x", "range", harness.Args{}); got.Content != "hello\nworld" {
		t.Errorf("a range without members gives %+v", got)
	}
	if got := p.read(t, "path", "x", "range", harness.Args{"offset": 11}); got.Content != "" || got.Truncated {
		t.Errorf("a range at the end gives %+v", got)
	}
}
