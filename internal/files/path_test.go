package files_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/problem"
)

func TestAPathIsAKeyInOneForm(t *testing.T) {
	for name, tc := range map[string]struct{ raw, want string }{
		"a name":                     {"plan.md", "plan.md"},
		"folders":                    {"notes/2026/plan.md", "notes/2026/plan.md"},
		"spaces within a name":       {"my notes/the plan.md", "my notes/the plan.md"},
		"dots within a name":         {"a..b/c.tar.gz", "a..b/c.tar.gz"},
		"a dot in front":             {".env/.hidden", ".env/.hidden"},
		"three dots in front":        {"...a", "...a"},
		"composed":                   {"caf\u00e9", "caf\u00e9"},
		"decomposed":                 {"cafe\u0301", "caf\u00e9"},
		"Hangul, decomposed":         {"\u1112\u1161\u11ab", "\ud55c"},
		"an emoji with its selector": {"\u2764\ufe0f.md", "\u2764\ufe0f.md"},
		"a drive letter":             {"C:x", "C:x"},
		"percent signs":              {"%2e%2e/%2f", "%2e%2e/%2f"},
		"as long as a name can be":   {strings.Repeat("x", 255), strings.Repeat("x", 255)},
		"as long as a path can be":   {strings.Repeat("ab/", 170) + "ab", strings.Repeat("ab/", 170) + "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			got, p := files.CleanPath("path", tc.raw)
			if p != nil || got != tc.want {
				t.Errorf("CleanPath(%q) = %q, %v, want %q", tc.raw, got, p, tc.want)
			}
		})
	}
}

// badPaths are refused everywhere.
var badPaths = map[string]string{
	"nothing":                    "",
	"the folder above":           "..",
	"the folder above, within":   "a/../b",
	"the folder above, at last":  "a/..",
	"the folder itself":          "./a",
	"a slash in front":           "/etc/passwd",
	"a slash at the end":         "a/",
	"two slashes":                "a//b",
	"a slash alone":              "/",
	"a backslash":                `a\b`,
	"folders of Windows":         `..\..\x`,
	"NUL":                        "a\x00b",
	"a control character":        "a\x1bb",
	"a newline":                  "a\nb",
	"a delete":                   "a\x7fb",
	"a trailing dot":             "a.",
	"a trailing dot of a folder": "a./b",
	"a trailing space":           "a ",
	"a space in front":           " a",
	"a space around a folder":    "a / b",
	"a no-break space":           "a\u00a0b",
	"a zero-width space":         "a\u200bb",
	"a zero-width joiner":        "a\u200db",
	"a text direction":           "a\u202eb",
	"a byte order mark":          "\ufeffa",
	"a line separator":           "a\u2028b",
	"a soft hyphen":              "a\u00adb",
	"a Hangul filler":            "a\u3164b",
	"a half-width filler":        "a\uffa0b",
	"a grapheme joiner":          "a\u034fb",
	"a Braille blank":            "a\u2800b",
	"a mark alone":               "\u0301",
	"a mark after a slash":       "a/\u0338b",
	"a selector alone":           "a/\ufe0f",
	"a private character":        "a\ue000b",
	"no character":               "a\ufffdb",
	"what is not UTF-8":          "a\xffb",
	"half of a character":        "a\xe2\x98",
	"a name that is too long":    strings.Repeat("x", 256),
	"a name with too many bytes": strings.Repeat("\u00fc", 128),
	"a path that is too long":    strings.Repeat("abc/", 128) + "x",
}

func TestAPathThatCouldMeanSomethingElseIsRefused(t *testing.T) {
	for name, raw := range badPaths {
		t.Run(name, func(t *testing.T) {
			got, p := files.CleanPath("filename", raw)
			if p == nil {
				t.Fatalf("CleanPath(%q) = %q, want it refused", raw, got)
			}
			if p.Code != problem.Validation || !slices.Equal(p.Fields, []string{"filename"}) || !utf8.ValidString(p.Message) {
				t.Errorf("CleanPath(%q) gives %+v, want a VALIDATION that names filename", raw, p)
			}
		})
	}
}

func TestPathsThatCannotBeToldApartHaveOneLook(t *testing.T) {
	for name, tc := range map[string]struct{ a, b string }{
		"a Cyrillic a":                       {"plan.md", "pl\u0430n.md"},
		"a Greek omicron":                    {"notes", "n\u03bftes"},
		"a full-width a":                     {"a.md", "\uff41.md"},
		"a full-width m":                     {"m.md", "\uff4d.md"},
		"a full-width zero":                  {"v0", "v\uff10"},
		"a full-width one":                   {"v1", "v\uff11"},
		"a Cyrillic capital I":               {"Index", "\u0406ndex"},
		"a Greek capital iota":               {"Index", "\u0399ndex"},
		"a mathematical letter":              {"plan", "\U0001d429lan"},
		"a ligature":                         {"final", "\ufb01nal"},
		"a division slash":                   {"a/b", "a\u2215b"},
		"a variation selector":               {"plan\ufe0f", "plan"},
		"a variation selector of the others": {"plan\U000e0100", "plan"},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := files.Look(tc.a), files.Look(tc.b); a != b {
				t.Errorf("%q looks like %q, %q like %q: want the same", tc.a, a, tc.b, b)
			}
		})
	}
}

func TestPathsThatCanBeToldApartHaveLooksOfTheirOwn(t *testing.T) {
	for name, tc := range map[string]struct{ a, b string }{
		"case":                   {"README.md", "readme.md"},
		"l and 1":                {"l", "1"},
		"O and 0":                {"O", "0"},
		"m and rn":               {"m", "rn"},
		"an accent":              {"cafe", "caf\u00e9"},
		"case beyond ASCII":      {"\u00c9", "\u00e9"},
		"letters of one writing": {"\u4e16", "\u754c"},
		"folders":                {"a/b", "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := files.Look(tc.a), files.Look(tc.b); a == b {
				t.Errorf("%q and %q both look like %q", tc.a, tc.b, a)
			}
		})
	}
}

func TestAPrefixIsTheBeginningOfAPathHoweverItIsComposed(t *testing.T) {
	for _, tc := range []struct {
		prefix string
		want   bool
	}{{"", true}, {"caf\u00e9/", true}, {"cafe\u0301/p", true}, {"af", false}, {"cafe/", false}} {
		if got := files.HasPrefix("caf\u00e9/plan", tc.prefix); got != tc.want {
			t.Errorf("HasPrefix(%q) = %t", tc.prefix, got)
		}
	}
}

func FuzzCleanPath(f *testing.F) {
	for _, raw := range badPaths {
		f.Add(raw)
	}
	f.Add("notes/cafe\u0301.md")
	f.Add("\u0406/\uff4d")
	f.Fuzz(func(t *testing.T, raw string) {
		clean, p := files.CleanPath("path", raw)
		if p != nil {
			if p.Code != problem.Validation || !utf8.ValidString(p.Message) {
				t.Errorf("%q: %+v", raw, p)
			}
			return
		}
		if again, p := files.CleanPath("path", clean); p != nil || again != clean {
			t.Errorf("%q becomes %q, and that %q, %v", raw, clean, again, p)
		}
		if !norm.NFC.IsNormalString(clean) || utf8.RuneCountInString(clean) > v1alpha1.MaxFilePath || strings.ContainsAny(clean, "\\\x00") {
			t.Errorf("%q becomes %q", raw, clean)
		}
		for segment := range strings.SplitSeq(clean, "/") {
			if segment == "" || segment == "." || segment == ".." || len(segment) > 255 {
				t.Errorf("%q becomes %q, with the segment %q", raw, clean, segment)
			}
		}
		if files.Look(clean) == "" {
			t.Errorf("%q looks like nothing", clean)
		}
	})
}
