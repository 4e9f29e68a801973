package problem

import (
	"fmt"
	"unicode/utf8"
)

// CheckText refuses what no text holds: control characters other than tab and line breaks, and the mark that stands where
// something could not be decoded. The problem names the field.
func CheckText(field, s string) *Problem {
	for _, r := range s {
		if (r < 0x20 && r != '\n' && r != '\t' && r != '\r') || r == 0x7f {
			return Invalid(field, "holds the control character %s: remove it", fmt.Sprintf("U+%04X", r))
		}
		if r == utf8.RuneError {
			return Invalid(field, "holds U+FFFD, the mark of text that could not be decoded: send UTF-8")
		}
	}
	return nil
}
