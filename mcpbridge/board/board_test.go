package board

import (
	"errors"
	"html/template"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
)

func TestWhatWorksUnseenIsMadeVisible(t *testing.T) {
	for given, want := range map[string]string{
		"plain <b>text</b>":           "plain <b>text</b>",
		"a\u202eb\u202cc":             "a⟦RLO⟧b⟦PDF⟧c",
		"\u2066x\u2069\u200f":         "⟦LRI⟧x⟦PDI⟧⟦RLM⟧",
		"\x1b[31mred\x00\x7f":         "␛[31mred␀␡",
		"two\r\nlines\tand a tab":     "two\nlines\tand a tab",
		"zero\u200bwidth\ufeff":       "zero⟦U+200B⟧width⟦U+FEFF⟧",
		"tags \U000e0041":             "tags ⟦U+E0041⟧",
		"👩‍👩‍👧 🏳️‍🌈 שלום":             "👩‍👩‍👧 🏳️‍🌈 שלום",
		"c1 \u0085 and \u2028 a line": "c1 ⟦U+0085⟧ and \n a line",
	} {
		if got := plain(given); got != want {
			t.Errorf("plain(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestASealIsForOnePurposeAndOneKey(t *testing.T) {
	key := make([]byte, KeyBytes)
	one, err := newSealer(key)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := one.seal("session", session{Token: "secret", Until: 7})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(sealed, "secret") {
		t.Error("the seal hides nothing")
	}
	same, err := newSealer(key)
	if err != nil {
		t.Fatal(err)
	}
	var got session
	if err := same.open("session", sealed, &got); err != nil || got != (session{Token: "secret", Until: 7}) {
		t.Errorf("another replica with the key opened %v: %v", got, err)
	}
	random, err := newSealer(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"another key":     random.open("session", sealed, &got),
		"another purpose": one.open("code", sealed, &got),
		"a changed seal":  one.open("session", "A"+sealed[1:], &got),
		"no seal":         one.open("session", "not even base64 !", &got),
	} {
		if !errors.Is(err, errSeal) {
			t.Errorf("%s gave %v", name, err)
		}
	}
	if _, err := newSealer(make([]byte, 5)); err == nil {
		t.Error("a short key was taken")
	}
}

func TestCursorsComeBackAsTheyWereAndNothingElseDoes(t *testing.T) {
	c := cursor{Digest: "0123456789abcdef", Seq: 77, Write: "1234"}
	if got := parseCursor(c.String()); got != c {
		t.Errorf("%v came back as %v", c, got)
	}
	for _, bad := range []string{"", "x", "a.b.c", "a.1.x", "a.-1.2", "a.1.2.3", strings.Repeat("a", 200) + ".1.2"} {
		if got := parseCursor(bad); got != (cursor{}) {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}

func snap(shape string, lists ...list) *snapshot {
	return &snapshot{shape: shape, lists: lists, body: func() (template.HTML, error) { return "all of it", nil }}
}

func item(id, text string) part {
	return part{id, template.HTML(`<li id="` + id + `">` + text + `</li>`)}
}

func TestOnlyWhatDiffersIsSent(t *testing.T) {
	a, b, c := item("a", "1"), item("b", "1"), item("c", "1")
	for name, tc := range map[string]struct {
		old, next *snapshot
		want      string
	}{
		"nothing":       {snap("x", list{"l", []part{a, b}}), snap("x", list{"l", []part{a, b}}), ""},
		"a first look":  {nil, snap("x"), `<div hx-swap-oob="innerHTML:#page">all of it</div>`},
		"another shape": {snap("x"), snap("y"), `<div hx-swap-oob="innerHTML:#page">all of it</div>`},
		"one came at the end": {snap("x", list{"l", []part{a}}), snap("x", list{"l", []part{a, b}}),
			`<div hx-swap-oob="afterend:#a"><li id="b">1</li></div>`},
		"one came first": {snap("x", list{"l", []part{b}}), snap("x", list{"l", []part{a, b}}),
			`<div hx-swap-oob="afterbegin:#l"><li id="a">1</li></div>`},
		"one went": {snap("x", list{"l", []part{a, b}}), snap("x", list{"l", []part{b}}), `<div id="a" hx-swap-oob="delete"></div>`},
		"one changed": {snap("x", list{"l", []part{a, b}}), snap("x", list{"l", []part{a, item("b", "2")}}),
			`<li hx-swap-oob="true" id="b">2</li>`},
		"one moved to another list": {
			snap("x", list{"l", []part{a}}, list{"m", []part{c}}), snap("x", list{"l", nil}, list{"m", []part{c, a}}),
			`<div id="a" hx-swap-oob="delete"></div><div hx-swap-oob="afterend:#c"><li id="a">1</li></div>`,
		},
		"their order changed": {snap("x", list{"l", []part{a, b}}), snap("x", list{"l", []part{b, a}}),
			`<div hx-swap-oob="innerHTML:#l"><li id="b">1</li><li id="a">1</li></div>`},
	} {
		got, err := diff(tc.old, tc.next)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestDigestsTellSnapshotsApart(t *testing.T) {
	a, b := item("a", "1"), item("b", "1")
	seen := map[string]bool{}
	for _, s := range []*snapshot{
		snap("x", list{"l", []part{a, b}}), snap("x", list{"l", []part{b, a}}), snap("x", list{"l", []part{a}}, list{"m", []part{b}}),
		snap("y", list{"l", []part{a, b}}), snap("x", list{"m", []part{a, b}}),
	} {
		seen[s.digest()] = true
	}
	if len(seen) != 5 {
		t.Errorf("five snapshots have %d digests", len(seen))
	}
	one, same := snap("x", list{"l", []part{a}}), snap("x", list{"l", []part{a}})
	if one.digest() != same.digest() {
		t.Error("the same has two digests")
	}
}

func TestRulesAllowWhatTheyName(t *testing.T) {
	r := &rules{list: []authorizationv1.ResourceRule{
		{Verbs: []string{"get", "list"}, APIGroups: []string{"agentrooms.dev"}, Resources: []string{"tasks"}},
		{Verbs: []string{"update"}, APIGroups: []string{"agentrooms.dev"}, Resources: []string{"rooms"}, ResourceNames: []string{"mine"}},
		{Verbs: []string{"*"}, APIGroups: []string{"apps"}, Resources: []string{"*"}},
		{Verbs: []string{"get"}, APIGroups: []string{"agentrooms.dev"}, Resources: []string{"*/content"}},
	}}
	for _, tc := range []struct {
		verb, resource, name string
		want                 bool
	}{
		{"get", "tasks", "", true}, {"get", "tasks", "any", true}, {"update", "tasks", "", false}, {"get", "rooms", "mine", false},
		{"update", "rooms", "mine", true}, {"update", "rooms", "yours", false}, {"update", "rooms", "", false},
		{"create", "messagebatches", "", false}, {"get", "files/content", "", true}, {"get", "files", "", false},
		{"get", "tasks/status", "", false},
	} {
		if got := r.allow(tc.verb, tc.resource, tc.name); got != tc.want {
			t.Errorf("%s %s %q: %t, want %t", tc.verb, tc.resource, tc.name, got, tc.want)
		}
	}
	all := &rules{list: []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}}
	if !all.allow("create", "messagebatches", "") {
		t.Error("an administrator may not")
	}
	asked := ""
	open := &rules{ask: func(verb, resource, name string) bool { asked = verb + resource + name; return true }}
	if !open.allow("get", "rooms", "a") || asked != "getroomsa" {
		t.Errorf("what the list leaves open was not asked: %q", asked)
	}
}
