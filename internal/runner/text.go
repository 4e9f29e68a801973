package runner

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// escapes are the sequences by which programs colour a terminal, move its cursor and set its title.
var escapes = regexp.MustCompile(`\x1b(?:\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x40-\x5a\x5c-\x5f])`)

// clean makes output fit for a record: text without control characters and without what could not be decoded.
func clean(s string) string {
	s = escapes.ReplaceAllString(strings.ToValidUTF8(s, ""), "")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r == '\n' || r == '\t':
			return r
		case r < 0x20 || r == 0x7f || r == utf8.RuneError:
			return -1
		default:
			return r
		}
	}, s)
}

// lastLines gives the end of a text, up to a number of characters: whole lines where that is possible.
func lastLines(s string, limit int) string {
	s = strings.TrimSpace(clean(s))
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	// One character is for the mark, and one more shows whether the cut falls between two lines.
	tail := string(runes[len(runes)-limit:])
	if _, whole, ok := strings.Cut(tail, "\n"); ok && strings.TrimSpace(whole) != "" {
		return "…" + strings.TrimSpace(whole)
	}
	return "…" + string([]rune(tail)[1:])
}

// first gives the beginning of a text, up to a number of characters.
func first(s string, limit int) string {
	s = strings.TrimSpace(clean(s))
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return s
}

// Tail keeps the end of what is written to it. It is not safe for concurrent use.
type Tail struct {
	limit int
	kept  []byte
	// cut is true when something was left out.
	cut bool
}

// NewTail makes a tail of up to a number of bytes.
func NewTail(limit int) *Tail { return &Tail{limit: limit} }

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > t.limit {
		p, t.cut = p[n-t.limit:], true
	}
	if over := len(t.kept) + len(p) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
		t.cut = true
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

// String gives what is kept.
func (t *Tail) String() string { return string(t.kept) }

// Whole says whether nothing was left out.
func (t *Tail) Whole() bool { return !t.cut }
