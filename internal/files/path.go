package files

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mtibben/confusables"
	"golang.org/x/text/unicode/norm"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/problem"
)

// maxSegment is how many bytes a segment of a path may have: what every file system can hold.
const maxSegment = 255

// CleanPath gives a path in the one form that it is stored in: NFC. The field is the parameter to blame in the problem. A path
// is a key, no place on any disk: what could mean something else to a file system is refused and not repaired.
func CleanPath(field, raw string) (string, *problem.Problem) {
	p := norm.NFC.String(raw)
	switch {
	case raw == "":
		return "", problem.Invalid(field, "may not be empty")
	case !utf8.ValidString(raw):
		return "", problem.Invalid(field, "must be UTF-8")
	case utf8.RuneCountInString(p) > v1alpha1.MaxFilePath:
		return "", problem.Invalid(field, "has %d characters, at most %d are allowed", utf8.RuneCountInString(p), v1alpha1.MaxFilePath)
	case strings.HasPrefix(p, "/"):
		return "", problem.Invalid(field, "must be relative: leave out the slash in front")
	case strings.Contains(p, `\`):
		return "", problem.Invalid(field, "may hold no backslash: separate folders with /")
	}
	for _, r := range p {
		if !visible(r) {
			return "", problem.Invalid(field, "holds U+%04X, which cannot be seen: remove it", r)
		}
	}
	for segment := range strings.SplitSeq(p, "/") {
		if prob := checkSegment(field, segment); prob != nil {
			return "", prob
		}
	}
	return p, nil
}

// brailleBlank is printable to Unicode, and nothing to the eye.
const brailleBlank = '\u2800'

// visible says whether a character can stand in a path. The space can; no other blank, control, format or filling character does.
func visible(r rune) bool {
	return r == ' ' || (unicode.IsPrint(r) && r != utf8.RuneError && r != brailleBlank &&
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r))
}

func checkSegment(field, segment string) *problem.Problem {
	switch {
	case segment == "":
		return problem.Invalid(field, "may hold no empty folder name: one slash between two names, none at the end")
	case segment == "." || segment == "..":
		return problem.Invalid(field, "may not hold %q: give the path from the room's root", segment)
	case strings.TrimSpace(segment) != segment:
		return problem.Invalid(field, "may hold no name that begins or ends with a space")
	case strings.HasSuffix(segment, "."):
		return problem.Invalid(field, "may hold no name that ends with a dot")
	case unicode.In(firstRune(segment), unicode.M):
		return problem.Invalid(field, "may hold no name that begins with a mark, which needs a character before it")
	case len(segment) > maxSegment:
		return problem.Invalid(field, "holds a name of %d bytes, at most %d are allowed", len(segment), maxSegment)
	}
	return nil
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// Look gives what a path looks like: two paths that cannot be told apart by eye, because one has letters of another
// alphabet or full-width ones in it, give the same. It follows the confusables of UTS #39 for all but ASCII, whose characters
// are told apart. What only chooses between shapes of a character (a variation selector) has no look. A room holds one file of
// a look.
func Look(p string) string {
	if isASCII(p) {
		return p
	}
	var b strings.Builder
	for _, r := range p {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		if !unicode.Is(unicode.Variation_Selector, r) {
			b.WriteString(lookOf(r))
		}
	}
	return b.String()
}

// lookOf gives what a character beyond ASCII looks like. UTS #39 has one prototype for 0 and O, one for 1, I, l and |, and one
// for m and rn, which a room tells apart: of those, the one that the character is a form of.
func lookOf(r rune) string {
	plain := norm.NFKC.String(string(r))
	if isASCII(plain) {
		return plain
	}
	switch skeleton := confusables.Skeleton(plain); {
	case skeleton == "l" && unicode.IsUpper(r):
		return "I"
	case skeleton == "l" && unicode.IsDigit(r):
		return "1"
	case skeleton == "O" && unicode.IsDigit(r):
		return "0"
	case skeleton == "rn":
		return "m"
	default:
		return skeleton
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// HasPrefix says whether a path lies under a prefix as list_files takes it: the beginning of the path, composed.
func HasPrefix(p, prefix string) bool { return strings.HasPrefix(p, norm.NFC.String(prefix)) }

// Base gives the last name of a path.
func Base(p string) string { return path.Base(p) }
