package board

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinesKeepTheirNumbersFromPartToPart(t *testing.T) {
	for name, tc := range map[string]struct {
		content       string
		line, end     int64
		numbers, text string
		next, line2   int64
	}{
		"whole":                    {"a\nb\n", 1, 100, "1\n2", "a\nb", 0, 3},
		"without an end":           {"a\nb", 1, 100, "1\n2", "a\nb", 0, 2},
		"a part":                   {"a\nb\n", 7, 50, "7\n8", "a\nb", 50, 9},
		"within a line":            {strings.Repeat("x", 5), 7, 50, "7", "xxxxx", 50, 7},
		"separators that few know": {"a\u2028b\n", 1, 100, "1", "a⟦LS⟧b", 0, 2},
		"escapes":                  {"\x1b[1m\n", 1, 100, "1", "␛[1m", 0, 2},
	} {
		c := chunkView{Size: 100}
		c.fill(tc.content, tc.line, tc.end)
		if c.Numbers != tc.numbers || c.Text != tc.text || c.Next != tc.next || (c.Next > 0 && c.NextLine != tc.line2) {
			t.Errorf("%s: got %+v, want %+v", name, c, tc)
		}
	}
}

func TestFoldersLeadToWhatIsAbove(t *testing.T) {
	want := []crumb{{"a", "a/"}, {"b c", "a/b c/"}}
	if diff := cmp.Diff(want, crumbs("a/b c/d.txt")); diff != "" {
		t.Error(diff)
	}
	if got := crumbs("d.txt"); got != nil {
		t.Errorf("a file at the top has folders %v", got)
	}
}

func TestDownloadsGetNamesThatAreWhatTheyLookLike(t *testing.T) {
	for path, want := range map[string]string{
		"a/plan.md": "plan.md", "x\u202egnp.exe": "x_gnp.exe", `a"b.txt`: "a_b.txt", "Größe.txt": "Größe.txt",
	} {
		if got := fileName(path); got != want {
			t.Errorf("%q is kept as %q, want %q", path, got, want)
		}
	}
}

func TestSizesAreReadable(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 20 << 20: "20 MiB", 5 << 40: "5.0 TiB", 3000 << 30: "2.9 TiB"} {
		if got := readableSize(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
