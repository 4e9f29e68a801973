package terminal

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// hostile is what a stranger may write.
var hostile = []string{
	"\x1b[2J\x1b[1;1H\x1b]0;owned\x07", "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\", "\u009b31mred", "a\rb", "a\bb\x7f\x00",
	"\u202egnp.exe", "\u2066\u2067\u2068\u2069\u061c\u200e\u200f", "a\u200bb\ufeffc\u00add", "\U000e0041\U000e007f", "line\u2028sep\u2029",
	"\xff\xfe", "<script>alert(1)</script>", "Z" + strings.Repeat("\u0301", 8000), strings.Repeat("x", 8000), "\t\n\v\f", "ᅟᅠㅤ",
}

func obeyed(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f || hidden(r) })
}

func TestNothingIsObeyed(t *testing.T) {
	for _, s := range hostile {
		if got := Line(s); obeyed(got) || utf8.RuneCountInString(got) > 9*len(s) {
			t.Errorf("%q is shown as %q", s, got)
		}
		if got := Text(s); obeyed(strings.ReplaceAll(got, "\n", "")) {
			t.Errorf("%q is shown as %q", s, got)
		}
	}
	for s, want := range map[string]string{
		"\x1b[31m": "␛[31m", "\u202eabc": "<U+202E>abc", "a\nb\tc": "a␊b c", "\u009b": "<U+009B>", "plain ✓ 漢字": "plain ✓ 漢字",
		"👩\u200d👩\u200d👧": "👩\u200d👩\u200d👧", "❤\ufe0f": "❤\ufe0f", "\xff": "\ufffd", "میخواهم\u200cمن": "میخواهم\u200cمن",
	} {
		if got := Line(s); got != want {
			t.Errorf("%q is shown as %q, want %q", s, got, want)
		}
	}
}

func TestWidths(t *testing.T) {
	for s, want := range map[string]int{"abc": 3, "漢字": 4, "👩\u200d👩\u200d👧": 2, "e\u0301": 1, "🇩🇪": 2} {
		if got := Width(s); got != want {
			t.Errorf("%q takes %d columns, want %d", s, got, want)
		}
	}
	for _, tc := range []struct {
		s       string
		columns int
		want    string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"漢字漢", 4, "漢…"}, {"漢字", 4, "漢字"}, {"👩\u200d👩\u200d👧x", 2, "…"}, {"", 1, ""},
	} {
		if got := Cut(tc.s, tc.columns); got != tc.want || Width(got) > max(tc.columns, 1) {
			t.Errorf("%q cut to %d is %q, want %q", tc.s, tc.columns, got, tc.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tc := range []struct {
		s       string
		columns int
		want    []string
	}{
		{"one two three four five six", 20, []string{"one two three four", "five six"}},
		{strings.Repeat("x", 45), 20, []string{strings.Repeat("x", 20), strings.Repeat("x", 20), "xxxxx"}},
		{"a\n\nb", 20, []string{"a", "", "b"}},
		{"漢字漢字漢字漢字漢字漢", 20, []string{"漢字漢字漢字漢字漢字", "漢"}},
		{strings.Repeat("y", 30), 0, []string{strings.Repeat("y", 30)}},
		{"exactly twenty chars and more", 20, []string{"exactly twenty chars", "and more"}},
	} {
		if diff := cmp.Diff(tc.want, Wrap(tc.s, tc.columns)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.s, diff)
		}
	}
	for _, s := range hostile {
		for _, line := range Wrap(Text(s), 40) {
			if Width(line) > 40 {
				t.Errorf("a line of %q takes %d columns", s, Width(line))
			}
		}
	}
}

func TestATableKeepsItsColumns(t *testing.T) {
	table := Table{Columns: []string{"NAME", "TITLE", "AGE"}, Flexible: 1, Width: 40}
	table.Add("a", "short", "1s")
	table.Add("漢字", strings.Repeat("long ", 100), "2s")
	table.Add("b", "evil\x1b[2J\nnext", "3s")
	table.Add("c")
	var b strings.Builder
	if err := table.Write(&b, true); err != nil {
		t.Fatal(err)
	}
	want := `NAME   TITLE                         AGE
a      short                         1s
漢字   long long long long long lo…  2s
b      evil␛[2J␊next                 3s
c
`
	want = strings.ReplaceAll(want, "…  2s", "…   2s")
	if got := b.String(); strings.Count(got, "\n") != 5 || obeyed(strings.ReplaceAll(got, "\n", "")) {
		t.Errorf("the table is:\n%s\nwant about:\n%s", got, want)
	}
	for line := range strings.SplitSeq(b.String(), "\n") {
		if Width(line) > 40 {
			t.Errorf("a row takes %d columns: %s", Width(line), line)
		}
	}
}

func TestMachinesReadWhatWasThere(t *testing.T) {
	for _, s := range append(hostile, "plain", "yes", "off", "y", "1:20", "0777", "1e3", "2026-11-30", "", "~", "0x10", "- a", "a: b", "漢字 👩\u200d👩\u200d👧", "two\nlines\n", "tab\tand\u202eturn\x1b", `back\slash "quoted"`) {
		if !utf8.ValidString(s) {
			continue // the API server takes none
		}
		for name, codec := range map[string]struct {
			encode func(*strings.Builder, any) error
			decode func([]byte, any) error
		}{
			"JSON":     {func(b *strings.Builder, v any) error { return JSON(b, v, "  ") }, json.Unmarshal},
			"YAML":     {func(b *strings.Builder, v any) error { return YAML(b, v) }, yaml.Unmarshal},
			"YAML 1.1": {func(b *strings.Builder, v any) error { return YAML(b, v) }, func(raw []byte, v any) error { return sigsyaml.Unmarshal(raw, v) }},
		} {
			var b strings.Builder
			if err := codec.encode(&b, map[string]any{"text": s}); err != nil {
				t.Fatalf("%s of %q: %v", name, s, err)
			}
			if out := strings.NewReplacer("\n", "", "\t", "").Replace(b.String()); obeyed(out) {
				t.Errorf("%s of %q is %q", name, s, out)
			}
			var back map[string]string
			if err := codec.decode([]byte(b.String()), &back); err != nil || back["text"] != s {
				t.Errorf("%s of %q is read back as %q: %v\n%s", name, s, back["text"], err, b.String())
			}
		}
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if obeyed(Line(s)) {
			t.Errorf("%q is shown as %q", s, Line(s))
		}
		for _, line := range Wrap(Text(s), 30) {
			if Width(line) > 30 {
				t.Errorf("a line of %q takes %d columns", s, Width(line))
			}
		}
	})
}
