package board

import (
	"fmt"
	"strings"
)

// marks are the characters that change how what stands around them is read, without being seen themselves.
var marks = map[rune]string{
	'\u061c': "ALM", '\u200e': "LRM", '\u200f': "RLM", '\u202a': "LRE", '\u202b': "RLE", '\u202c': "PDF", '\u202d': "LRO",
	'\u202e': "RLO", '\u2066': "LRI", '\u2067': "RLI", '\u2068': "FSI", '\u2069': "PDI",
}

// visible gives what stands for a character that cannot be seen, and false for one that can.
func visible(r rune) (string, bool) {
	if name, ok := marks[r]; ok {
		return "⟦" + name + "⟧", true
	}
	switch {
	case r == '\n' || r == '\t':
		return "", false
	case r < 0x20:
		return string(0x2400 + r), true
	case r == 0x7f:
		return "␡", true
	case r >= 0x80 && r < 0xa0, r == 0x200b, r == 0xfeff, r >= 0x2060 && r <= 0x2064, r >= 0xe0000 && r <= 0xe007f:
		return fmt.Sprintf("⟦U+%04X⟧", r), true
	case r == 0x2028 || r == 0x2029:
		return "\n", true
	}
	return "", false
}

// plain gives text that somebody wrote as it may be shown: what works unseen, such as marks that turn the direction of
// reading, or escapes of terminals, is made visible. It is not escaped for HTML; the templates do that.
func plain(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if !strings.ContainsFunc(s, func(r rune) bool { _, hidden := visible(r); return hidden }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if shown, hidden := visible(r); hidden {
			b.WriteString(shown)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// readableSize says how much a number of bytes is.
func readableSize(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/step, 0
	for size >= step && unit < 3 {
		size, unit = size/step, unit+1
	}
	if size < 10 {
		return fmt.Sprintf("%.1f %ciB", size, "KMGT"[unit])
	}
	return fmt.Sprintf("%.0f %ciB", size, "KMGT"[unit])
}
