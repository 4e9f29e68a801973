package files

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentrooms/agentrooms/internal/problem"
)

// The encodings in which content stands in a call.
const (
	UTF8   = "utf-8"
	Base64 = "base64"
)

// Decode gives the bytes of the content of a call.
func Decode(content, encoding string) ([]byte, *problem.Problem) {
	raw := []byte(content)
	if encoding == Base64 {
		var err error
		if raw, err = base64.StdEncoding.Strict().DecodeString(content); err != nil {
			return nil, problem.Invalid("content", "must be base64 (RFC 4648 section 4, with padding), as encoding says: %s", err)
		}
	}
	if len(raw) > MaxInline {
		return nil, TooLargeInline(int64(len(raw)))
	}
	return raw, nil
}

// TooLargeInline is the answer to content that does not fit into a call.
func TooLargeInline(size int64) *problem.Problem {
	return problem.New(problem.TooLarge, "the content has %d bytes, and a call takes at most %d", size, MaxInline).
		WithHint("call share_file, PUT the bytes to the URL that it gives, and call complete_file_upload")
}

// ContentType checks a content type, and finds one for content that was given none.
func ContentType(given string, content []byte) (string, *problem.Problem) {
	if given == "" {
		return http.DetectContentType(content), nil
	}
	media, params, err := mime.ParseMediaType(given)
	if err != nil || !strings.Contains(media, "/") || len(given) > 127 {
		return "", problem.Invalid("content_type", "must be a media type such as text/markdown, of at most 127 characters: %q", clip(given))
	}
	if clean := mime.FormatMediaType(media, params); clean != "" && len(clean) <= 127 && printable(clean) {
		return clean, nil
	}
	return "", problem.Invalid("content_type", "must be a media type such as text/markdown, of at most 127 characters: %q", clip(given))
}

func printable(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(b byte) bool { return b < 0x20 || b > 0x7e })
}

func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "…"
	}
	return s
}

// IsText says whether content of a type may be shown as text.
func IsText(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	switch kind, sub, _ := strings.Cut(media, "/"); kind {
	case "text", "message":
		return true
	case "application":
		return slices.Contains([]string{"json", "xml", "yaml", "x-yaml", "toml", "javascript", "x-sh", "sql", "graphql", "x-ndjson", "jsonl"}, sub) ||
			strings.HasSuffix(sub, "+json") || strings.HasSuffix(sub, "+xml") || strings.HasSuffix(sub, "+yaml")
	case "image":
		return sub == "svg+xml"
	}
	return false
}

// Span is a part of a file's bytes.
type Span struct {
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
}

// Slack is how many bytes more than a span must be read at either end, so that it can be cut where a character ends.
const Slack = utf8.UTFMax - 1

// Widen gives the bytes to read for a span of a file of a size: the span within the file, with the slack around it.
func Widen(s Span, size int64) Span {
	from := max(0, min(s.Offset, size)-Slack)
	to := min(size, max(s.Offset, 0)+min(s.Length, MaxInline)+Slack)
	return Span{Offset: from, Length: max(0, to-from)}
}

// Cut gives the answer to a span: the bytes as they are shown, the encoding, and the span that they are. raw is what Widen
// asked for. Text begins and ends with whole characters, also where it holds something that is none and is shown in base64: a span
// that ends within one leaves it to the next, so that spans one behind the other make up the file.
func Cut(raw []byte, asked Span, size int64, contentType string) (content, encoding string, got Span) {
	wide := Widen(asked, size)
	from := min(max(asked.Offset, 0), size) - wide.Offset
	to := min(from+min(asked.Length, MaxInline), int64(len(raw)))
	from = min(from, to)
	text := IsText(contentType)
	if text {
		a, b := wholeRunes(raw, int(from), int(to))
		from, to = int64(a), int64(b)
	}
	part, got := raw[from:to], Span{Offset: wide.Offset + from, Length: to - from}
	if text && utf8.Valid(part) && !bytes.ContainsRune(part, 0) {
		return string(part), UTF8, got
	}
	return base64.StdEncoding.EncodeToString(part), Base64, got
}

// wholeRunes moves both ends back to where a character begins. When that leaves nothing, the first character is taken whole.
func wholeRunes(raw []byte, from, to int) (a, b int) {
	a, b = runeStart(raw, from), runeStart(raw, to)
	if b <= a && to > from {
		_, n := utf8.DecodeRune(raw[a:])
		b = a + n
	}
	return a, b
}

// runeStart gives where the character begins that a place lies in. A place that no valid character covers stays.
func runeStart(raw []byte, at int) int {
	if at >= len(raw) {
		return len(raw)
	}
	for back := 0; back <= Slack && at-back >= 0; back++ {
		if utf8.RuneStart(raw[at-back]) {
			if _, n := utf8.DecodeRune(raw[at-back:]); n > back {
				return at - back
			}
			return at
		}
	}
	return at
}

// Lines finds where lines lie in a stream: from the first to the last, both counted from 1; last <= 0 stands for the end.
// It reads no further than it must and holds one buffer. A first line beyond the end gives an empty span at the end.
func Lines(r io.Reader, first, last int64) (Span, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	line, at, start := int64(1), int64(0), int64(-1)
	if first <= 1 {
		start = 0
	}
	for {
		part, err := buffered.ReadSlice('\n')
		at += int64(len(part))
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return Span{}, err //nolint:wrapcheck // the store's own error
		}
		if err != nil || (last > 0 && line >= last) {
			if start < 0 {
				start = at
			}
			return Span{Offset: start, Length: at - start}, nil
		}
		if line++; line == first {
			start = at
		}
	}
}
