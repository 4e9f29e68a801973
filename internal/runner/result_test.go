package runner

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestJudge(t *testing.T) {
	said := func(code int, out string) Ending { return Ending{Code: code, Stdout: out, Whole: true} }
	for name, tc := range map[string]struct {
		ending  Ending
		attempt int
		want    Verdict
	}{
		"done, with words": {said(0, "working\nall well\n"), 1,
			Verdict{Action: Record, Status: "done", Result: Result{Summary: "working\nall well"}}},
		"done without a word": {said(0, ""), 1, Verdict{Action: Record, Status: "done", Result: Result{Summary: "done"}}},
		"done, as JSON": {said(0, `{"summary":"s","artifacts":["file:a"],"result_ref":"file:a","next":"n"}`), 1,
			Verdict{Action: Record, Status: "done", Result: Result{Summary: "s", Artifacts: []string{"file:a"}, ResultRef: "file:a", Next: "n"}}},
		"done, with JSON in the last line": {said(0, "chatter\n{\"summary\":\"s\"}\n"), 1,
			Verdict{Action: Record, Status: "done", Result: Result{Summary: "s"}}},
		"done, with the file": {Ending{Stdout: `{"summary":"not this"}`, Whole: true, File: `{"summary":"this"}`}, 1,
			Verdict{Action: Record, Status: "done", Result: Result{Summary: "this"}}},
		"JSON that is no result": {said(0, `{"weather":"fine"}`), 1,
			Verdict{Action: Record, Status: "done", Result: Result{Summary: `{"weather":"fine"}`}}},
		"blocked": {said(0, `{"status":"blocked","reason":"no key"}`), 1,
			Verdict{Action: Record, Status: "blocked", Result: Result{Status: "blocked", Reason: "no key"}}},
		"failed in its own words": {said(0, `{"status":"failed","summary":"no"}`), 1,
			Verdict{Action: Record, Status: "failed", Result: Result{Status: "failed", Summary: "no", Reason: "the command gave no reason. no"}}},
		"failed": {Ending{Code: 3, Stderr: "boom\n"}, 1,
			Verdict{Action: Record, Status: "failed", Result: Result{Reason: "the command ended with exit status 3. boom"}}},
		"to be tried again": {Ending{Code: 75}, 1,
			Verdict{Action: Retry, Result: Result{Summary: "attempt 1: the command ended with exit status 75."}}},
		"killed by a signal": {Ending{Code: 137}, 2,
			Verdict{Action: Retry, Result: Result{Summary: "attempt 2: the command was killed by signal 9."}}},
		"took too long, though it says 0": {Ending{Code: 0, TimedOut: true}, 1,
			Verdict{Action: Retry, Result: Result{Summary: "attempt 1: the command took too long and was killed."}}},
		"could not be run": {Ending{Code: 127}, 1,
			Verdict{Action: Retry, Result: Result{Summary: "attempt 1: the command could not be run (exit status 127)."}}},
		"could not be looked after": {Ending{Trouble: "no pipes"}, 1,
			Verdict{Action: Retry, Result: Result{Summary: "attempt 1: the command could not be run: no pipes."}}},
		"given up": {Ending{Code: 75}, 3,
			Verdict{Action: Record, Status: "failed", Result: Result{Reason: "given up after 3 attempts: the command ended with exit status 75."}}},
		"stopped, though it says 0": {Ending{Code: 0, Stopped: true, Stdout: "x"}, 1, Verdict{Action: Release}},
		"lost":                      {Ending{Code: 0, Lost: true, Stdout: "x"}, 1, Verdict{Action: Nothing}},
		"finished by itself":        {Ending{Code: 1, Finished: true}, 1, Verdict{Action: Nothing}},
		"an unknown status": {said(0, `{"status":"great","summary":"s"}`), 1,
			Verdict{Action: Record, Status: "done", Result: Result{Status: "great", Summary: "s"}, Dropped: `status "great" is none of done, failed and blocked`}},
	} {
		if diff := cmp.Diff(tc.want, Judge(tc.ending, tc.attempt, 3)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestARecordHoldsNothingThatTheBoardRefuses(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	for name, e := range map[string]Ending{
		"long text":      {Stdout: long, Whole: true},
		"long lines":     {Stdout: strings.Repeat(strings.Repeat("x", 300)+"\n", 20), Whole: true},
		"long JSON":      {Stdout: `{"summary":"` + long + `","next":"` + long + `","reason":"` + long + `","result_ref":"` + long + `"}`, Whole: true},
		"long errors":    {Code: 1, Stderr: long},
		"escapes":        {Stdout: "\x1b[31mred\x1b[0m \x1b]0;title\x07\x00\x07 \x1b(B rest\r\nnext\rlast", Whole: true},
		"broken text":    {Stdout: "\xff\xfe bad \xed\xa0\x80 �", Whole: true},
		"given up, long": {Code: 75, Stderr: long},
	} {
		v := Judge(e, 5, 5)
		for field, text := range map[string]string{"summary": v.Result.Summary, "reason": v.Result.Reason, "next": v.Result.Next, "ref": v.Result.ResultRef} {
			limit := map[string]int{"summary": maxSummary, "reason": maxReason, "next": maxNext, "ref": maxResultRef}[field]
			if n := utf8.RuneCountInString(text); n > limit {
				t.Errorf("%s: %s has %d characters", name, field, n)
			}
			if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
				return r == utf8.RuneError || r == 0x7f || (r < 0x20 && r != '\n' && r != '\t')
			}) {
				t.Errorf("%s: %s holds %q", name, field, text)
			}
		}
	}
	if got := Judge(Ending{Stdout: "\x1b[31mred\x1b[0m\r\nend", Whole: true}, 1, 1).Result.Summary; got != "red\nend" {
		t.Errorf("colours leave %q", got)
	}
}

func TestArtifactsThatDoNotFitAreNamed(t *testing.T) {
	var list []string
	for range 30 {
		list = append(list, `"`+strings.Repeat("a", 150)+`"`)
	}
	v := Judge(Ending{Stdout: `{"summary":"s","artifacts":["` + strings.Repeat("b", 201) + `",` + strings.Join(list, ",") + `]}`, Whole: true}, 1, 1)
	if n := len(v.Result.Artifacts); n != 13 || !strings.Contains(v.Dropped, "bbb") {
		t.Errorf("%d artifacts are kept, dropped: %.80s", n, v.Dropped)
	}
}

func TestTheEndOfTheOutputIsKept(t *testing.T) {
	tail := NewTail(10)
	for _, s := range []string{"abc", "defgh", "ij"} {
		_, _ = tail.Write([]byte(s))
	}
	if tail.String() != "abcdefghij" || !tail.Whole() {
		t.Errorf("%q %t", tail.String(), tail.Whole())
	}
	_, _ = tail.Write([]byte("kl"))
	if tail.String() != "cdefghijkl" || tail.Whole() {
		t.Errorf("%q %t", tail.String(), tail.Whole())
	}
	_, _ = tail.Write([]byte("0123456789ABC"))
	if tail.String() != "3456789ABC" || cap(tail.kept) > 64 {
		t.Errorf("%q, %d bytes", tail.String(), cap(tail.kept))
	}
}
