// Package terminal shows text that strangers wrote at a terminal: as text, and never as orders to the terminal. Control
// characters, and characters that would turn, hide or join others, are made visible; widths are those of the screen.
package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// maxCluster is how many characters may stack up on one place of the screen. A family of emoji has eleven.
const maxCluster = 16

// Line gives text as one line: line breaks are made visible too.
func Line(s string) string { return visible(s, false) }

// Text gives text with its line breaks. Tabs become four spaces.
func Text(s string) string { return visible(s, true) }

func visible(s string, breaks bool) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s { // bytes that are no UTF-8 come as U+FFFD
		switch {
		case r == '\n' && breaks:
			b.WriteRune(r)
		case r == '\t' && breaks:
			b.WriteString("    ")
		case r == '\t':
			b.WriteByte(' ')
		case r < 0x20:
			b.WriteRune('\u2400' + r) // the picture of the control character
		case r == 0x7f:
			b.WriteRune('\u2421')
		case hidden(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return unstacked(b.String())
}

// plain says whether text is printable ASCII, as most is.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// hidden says whether a character gives orders or cannot be seen. Joiners and variation selectors are let through: emoji and
// many scripts need them, and they cannot reorder anything.
func hidden(r rune) bool {
	switch r {
	case '\u200c', '\u200d':
		return false
	case '\u2028', '\u2029', '\u3164', '\u115f', '\u1160', '\uffa0':
		return true // separators of lines, and letters without a shape
	default:
		return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)
	}
}

// Hidden says whether text holds a character that Line would make visible.
func Hidden(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && hidden(r) })
}

// unstacked cuts what is piled up on one place, which no screen can show and which has no end.
func unstacked(s string) string {
	var b strings.Builder
	state, cluster := -1, ""
	for rest := s; rest != ""; {
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if utf8.RuneCountInString(cluster) > maxCluster {
			cluster = string([]rune(cluster)[:maxCluster]) + "…"
		}
		b.WriteString(cluster)
	}
	return b.String()
}

// Width gives how many columns a line takes.
func Width(s string) int { return uniseg.StringWidth(s) }

// Cut shortens a line to a number of columns, at least one, with an ellipsis where something was cut.
func Cut(s string, columns int) string {
	if _, rest := split(s, columns); rest == "" {
		return s
	}
	head, _ := split(s, max(columns-1, 0))
	return head + "…"
}

// split gives what fits into a number of columns, and the rest.
func split(s string, columns int) (head, rest string) {
	used, at, state := 0, 0, -1
	for rest = s; rest != ""; {
		cluster, next, width, newState := uniseg.FirstGraphemeClusterInString(rest, state)
		if used+width > columns {
			return s[:at], s[at:]
		}
		used, at, rest, state = used+width, at+len(cluster), next, newState
	}
	return s, ""
}

// minColumns is the narrowest that text is wrapped to.
const minColumns = 20

// Wrap breaks text into lines of a number of columns, at spaces where it can. Columns of 0 or less leave the lines as they are.
func Wrap(s string, columns int) []string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		if columns <= 0 {
			lines = append(lines, line)
			continue
		}
		lines = append(lines, wrapLine(line, max(columns, minColumns))...)
	}
	return lines
}

func wrapLine(line string, columns int) []string {
	var lines []string
	for {
		head, rest := split(line, columns)
		if rest == "" {
			break
		}
		if at := strings.LastIndexByte(head, ' '); at > 0 && !strings.HasPrefix(rest, " ") {
			head, rest = line[:at], line[at:]
		}
		lines, line = append(lines, strings.TrimRight(head, " ")), strings.TrimLeft(rest, " ")
	}
	return append(lines, line)
}
