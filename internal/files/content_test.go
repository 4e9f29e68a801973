package files_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/problem"
)

func TestTheContentOfACallIsBounded(t *testing.T) {
	full := strings.Repeat("x", files.MaxInline)
	for name, tc := range map[string]struct {
		content, encoding string
		want              int
		code              problem.Code
	}{
		"nothing":                   {"", "", 0, ""},
		"text":                      {"grüße", files.UTF8, len("grüße"), ""},
		"base64":                    {"/wA=", files.Base64, 2, ""},
		"as much as a call takes":   {full, "", files.MaxInline, ""},
		"one byte more":             {full + "x", "", 0, problem.TooLarge},
		"as much in base64":         {base64.StdEncoding.EncodeToString([]byte(full)), files.Base64, files.MaxInline, ""},
		"one byte more in base64":   {base64.StdEncoding.EncodeToString([]byte(full + "x")), files.Base64, 0, problem.TooLarge},
		"base64 without padding":    {"/wA", files.Base64, 0, problem.Validation},
		"base64 of URLs":            {"_wA=", files.Base64, 0, problem.Validation},
		"base64 with stray bits":    {"/wB=", files.Base64, 0, problem.Validation},
		"text that claims base64":   {"hello!", files.Base64, 0, problem.Validation},
		"characters count as bytes": {strings.Repeat("ü", files.MaxInline/2) + "ü", "", 0, problem.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			raw, p := files.Decode(tc.content, tc.encoding)
			switch {
			case p != nil && p.Code != tc.code:
				t.Errorf("refused with %v, want %q", p, tc.code)
			case p == nil && (tc.code != "" || len(raw) != tc.want):
				t.Errorf("gives %d bytes, want %d or %q", len(raw), tc.want, tc.code)
			}
		})
	}
}

func TestAContentTypeIsCheckedOrFound(t *testing.T) {
	for given, want := range map[string]string{
		"text/markdown": "text/markdown", "Text/HTML; Charset=UTF-8": "text/html; charset=UTF-8", "image/png": "image/png",
		"":     "text/plain; charset=utf-8",
		"text": "!", "text/": "!", "text/plain\r\nX: y": "!", "text/plain; x": "!", "a/b; c=\"\u00fc\"": "a/b; c*=utf-8''%C3%BC",
		"a/" + strings.Repeat("b", 126): "!",
	} {
		got, p := files.ContentType(given, []byte("hello"))
		if p != nil {
			got = "!"
		}
		if got != want {
			t.Errorf("ContentType(%q) = %q, %v, want %q", given, got, p, want)
		}
	}
}

func TestSpansAreCutBetweenCharacters(t *testing.T) {
	const text = "aü☃😀z" // 1, 2, 3, 4 and 1 bytes
	for name, tc := range map[string]struct {
		content, kind  string
		offset, length int64
		want, encoding string
		at             int64
	}{
		"all of it":                        {text, "text/plain", 0, 99, text, files.UTF8, 0},
		"within the first":                 {text, "text/plain", 0, 2, "a", files.UTF8, 0},
		"from within one to its end":       {text, "text/plain", 2, 1, "ü", files.UTF8, 1},
		"within one only":                  {text, "text/plain", 7, 1, "😀", files.UTF8, 6},
		"from within one into the next":    {text, "text/plain", 4, 4, "☃", files.UTF8, 3},
		"the last byte":                    {text, "text/plain", 10, 1, "z", files.UTF8, 10},
		"at the end":                       {text, "text/plain", 11, 5, "", files.UTF8, 11},
		"of nothing":                       {"", "text/plain", 0, 5, "", files.UTF8, 0},
		"binary where asked":               {text, "image/png", 2, 2, base64.StdEncoding.EncodeToString([]byte(text)[2:4]), files.Base64, 2},
		"what is not UTF-8":                {"ab\xffcd", "text/plain", 1, 2, base64.StdEncoding.EncodeToString([]byte("b\xff")), files.Base64, 1},
		"what is not UTF-8, cut before it": {"ab\xffcd", "text/plain", 0, 2, "ab", files.UTF8, 0},
		"text with NUL":                    {"a\x00b", "text/plain", 0, 3, "YQBi", files.Base64, 0},
		"not UTF-8, to within a character": {"\xff☃z", "text/plain", 0, 3, base64.StdEncoding.EncodeToString([]byte("\xff")), files.Base64, 0},
		"a character that is not whole":    {"ab\xe2\x98", "text/plain", 0, 4, base64.StdEncoding.EncodeToString([]byte("ab\xe2\x98")), files.Base64, 0},
	} {
		t.Run(name, func(t *testing.T) {
			content, encoding, got := cut([]byte(tc.content), files.Span{Offset: tc.offset, Length: tc.length}, tc.kind)
			if content != tc.want || encoding != tc.encoding || got.Offset != tc.at {
				t.Errorf("gives %q (%s) at %d, want %q (%s) at %d", content, encoding, got.Offset, tc.want, tc.encoding, tc.at)
			}
		})
	}
}

// cut reads a span as a reader of a blob does.
func cut(content []byte, asked files.Span, kind string) (string, string, files.Span) {
	size := int64(len(content))
	wide := files.Widen(asked, size)
	return files.Cut(content[wide.Offset:wide.Offset+wide.Length], asked, size, kind)
}

// FuzzCut walks through content in steps, as next_range leads, and holds that what comes is the content, byte for byte.
func FuzzCut(f *testing.F) {
	f.Add([]byte("aü☃😀z"), uint8(1), true)
	f.Add([]byte("\xff☃z\xe2\x98😀😀"), uint8(3), true)
	f.Add([]byte("☃\x00☃☃\xf0\x9f"), uint8(2), true)
	f.Add([]byte("\x80\x80\x80\x80😀"), uint8(5), false)
	f.Fuzz(func(t *testing.T, content []byte, step uint8, text bool) {
		kind := map[bool]string{true: "text/plain", false: "image/png"}[text]
		var all []byte
		size := int64(len(content))
		for at := int64(0); at < size; {
			part, encoding, got := cut(content, files.Span{Offset: at, Length: int64(step)%8 + 1}, kind)
			raw := []byte(part)
			if encoding == files.Base64 {
				raw, _ = base64.StdEncoding.DecodeString(part)
			}
			if got.Offset != at || got.Length != int64(len(raw)) || len(raw) == 0 || (encoding == files.UTF8 && !utf8.ValidString(part)) {
				t.Fatalf("at %d of %q: %q (%s) is said to be %+v", at, content, part, encoding, got)
			}
			all, at = append(all, raw...), got.Offset+got.Length
		}
		if !bytes.Equal(all, content) {
			t.Errorf("%q comes as %q in steps of %d", content, all, step%8+1)
		}
		if !text || !utf8.Valid(content) {
			return
		}
		_, _, got := cut(content, files.Span{Offset: int64(step), Length: 2}, kind)
		if !utf8.Valid(content[:got.Offset]) || !utf8.Valid(content[got.Offset+got.Length:]) {
			t.Errorf("%q is cut within a character: %+v", content, got)
		}
	})
}

func TestWhatIsReadForASpanIsBounded(t *testing.T) {
	const size = 10 << 20
	for _, s := range []files.Span{{0, size}, {5, 1}, {size, 1}, {size - 1, 1 << 40}, {0, 1}, {size / 2, files.MaxInline + 1}} {
		wide := files.Widen(s, size)
		if wide.Offset < 0 || wide.Length < 0 || wide.Length > files.MaxInline+2*files.Slack || wide.Offset+wide.Length > size {
			t.Errorf("Widen(%+v) = %+v", s, wide)
		}
	}
}

func TestLinesLieWhereTheyAreCounted(t *testing.T) {
	const text = "one\ntwo\r\n\nfour ☃\nfive"
	for name, tc := range map[string]struct {
		content     string
		first, last int64
		want        string
	}{
		"all":                          {text, 1, 0, text},
		"the first":                    {text, 1, 1, "one\n"},
		"one within, with its ending":  {text, 2, 2, "two\r\n"},
		"an empty one":                 {text, 3, 3, "\n"},
		"some":                         {text, 2, 4, "two\r\n\nfour ☃\n"},
		"the last, without an ending":  {text, 5, 5, "five"},
		"more than there are":          {text, 4, 99, "four ☃\nfive"},
		"behind the end":               {text, 6, 7, ""},
		"behind the last line's end":   {"one\n", 2, 2, ""},
		"of nothing":                   {"", 1, 1, ""},
		"longer than any buffer":       {strings.Repeat("x", 200<<10) + "\nnext", 2, 2, "next"},
		"a long one at a buffer's end": {strings.Repeat("x", 64<<10-1) + "\nnext\n", 2, 2, "next\n"},
	} {
		t.Run(name, func(t *testing.T) {
			span, err := files.Lines(iotest.HalfReader(strings.NewReader(tc.content)), tc.first, tc.last)
			if err != nil {
				t.Fatal(err)
			}
			if got := tc.content[span.Offset : span.Offset+span.Length]; got != tc.want {
				t.Errorf("lines %d to %d are %.40q, want %.40q", tc.first, tc.last, got, tc.want)
			}
		})
	}
}

func TestLinesAreReadNoFurtherThanTheyMust(t *testing.T) {
	broken := errors.New("broken")
	content := io.MultiReader(strings.NewReader("one\ntwo\n"), iotest.ErrReader(broken))
	if span, err := files.Lines(content, 1, 2); err != nil || span.Length != 8 {
		t.Errorf("two lines before the fault are %+v, %v", span, err)
	}
	content = io.MultiReader(strings.NewReader("one\ntwo\n"), iotest.ErrReader(broken))
	if _, err := files.Lines(content, 1, 3); !errors.Is(err, broken) {
		t.Errorf("a line behind the fault gives %v", err)
	}
}
