package ids_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
)

const uid types.UID = "0f0e0d0c-0b0a-4988-8765-432100ffeedd"

var created = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func room(uid types.UID, at time.Time, annotations map[string]string) *v1alpha1.Room {
	return &v1alpha1.Room{ObjectMeta: metav1.ObjectMeta{UID: uid, CreationTimestamp: metav1.NewTime(at), Annotations: annotations}}
}

func TestAnIDFollowsFromCreationTimeAndUID(t *testing.T) {
	const natural, kept = "01M8P570G01W70T30B194RH1V5", "01KBAMXNG01W71T38C1C5196C8"
	tests := map[string]struct {
		room *v1alpha1.Room
		want string
	}{
		"an object that exists":                        {room(uid, created, nil), natural},
		"an object that was restored":                  {room(uid, created, map[string]string{v1alpha1.IDAnnotation: kept}), kept},
		"an annotation that is no id counts for none":  {room(uid, created, map[string]string{v1alpha1.IDAnnotation: "launch"}), natural},
		"an annotation in lower case counts for none":  {room(uid, created, map[string]string{v1alpha1.IDAnnotation: strings.ToLower(kept)}), natural},
		"an object that does not exist yet":            {room("", created, nil), ""},
		"an object that does not exist but was backed": {room("", created, map[string]string{v1alpha1.IDAnnotation: kept}), kept},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ids.ID(tc.room); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("holds the creation time and the first 80 bits of the UID", func(t *testing.T) {
		id := ids.ID(room(uid, created, nil))
		if at, ok := ids.CreatedAt(id); !ok || !at.Equal(created) {
			t.Errorf("created at %v (%v), want %v", at, ok, created)
		}
		if other := ids.ID(room("0f0e0d0c-0b0a-4988-8765-ffffffffffff", created, nil)); other[:22] != id[:22] {
			t.Errorf("%s and %s differ before the 80th bit of the UID", id, other)
		}
		if other := ids.ID(room("0f0e0d0c-0b0a-4988-8764-432100ffeedd", created, nil)); other == id {
			t.Errorf("two UIDs give one id: %s", id)
		}
	})
	t.Run("orders objects by age", func(t *testing.T) {
		older, younger := ids.ID(room("ffffffff-ffff-4fff-8fff-ffffffffffff", created, nil)), ids.ID(room("00000000-0000-4000-8000-000000000000", created.Add(time.Second), nil))
		if older >= younger {
			t.Errorf("%s (older) does not sort before %s", older, younger)
		}
	})
	t.Run("is well-formed for any UID and any time", func(t *testing.T) {
		for _, r := range []*v1alpha1.Room{
			room("not a uuid", created, nil), room(uid, time.Unix(0, 0), nil), room(uid, time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), nil),
			room(uid, time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), nil),
		} {
			if id := ids.ID(r); !ids.Valid(id) {
				t.Errorf("%q is no id (%v, %v)", id, r.UID, r.CreationTimestamp)
			}
		}
	})
}

func TestValid(t *testing.T) {
	tests := map[string]bool{
		"01KBAMXNG01W71T38C1C5196C8":  true,
		"7ZZZZZZZZZZZZZZZZZZZZZZZZZ":  true,
		"8ZZZZZZZZZZZZZZZZZZZZZZZZZ":  false, // more than 128 bits
		"01kbamxng01w71t38c1c5196c8":  false, // there is one way to write an id
		"01KBAMXNG01W71T38C1C5196C":   false,
		"01KBAMXNG01W71T38C1C5196C80": false,
		"01KBAMXNG01W71T38C1C5196CU":  false, // Crockford left U out
		"":                            false,
	}
	for id, want := range tests {
		if got := ids.Valid(id); got != want {
			t.Errorf("Valid(%q) is %v, want %v", id, got, want)
		}
		if _, got := ids.CreatedAt(id); got != want {
			t.Errorf("CreatedAt(%q) says %v, want %v", id, got, want)
		}
	}
}

func TestAPlateFollowsFromTheUID(t *testing.T) {
	agent := func(uid types.UID, id string) *v1alpha1.Agent {
		a := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		if id != "" {
			a.Annotations = map[string]string{v1alpha1.IDAnnotation: id}
		}
		return a
	}
	const natural, kept = "BRNL-AGT-1W70T30B194RH1V58CGG1ZZEVM", "BRNL-AGT-00000000000000000000000004"
	tests := map[string]struct {
		agent *v1alpha1.Agent
		want  string
	}{
		"an agent that exists":                           {agent(uid, ""), ids.Plate(agent(uid, ""))},
		"an agent that was restored":                     {agent(uid, kept), kept},
		"an annotation that is no plate counts for none": {agent(uid, "BRNL-AGT-me"), ids.Plate(agent(uid, ""))},
		"an id of another kind counts for none":          {agent(uid, "01KBAMXNG01W71T38C1C5196C8"), ids.Plate(agent(uid, ""))},
		"an agent that does not exist yet":               {agent("", ""), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ids.Plate(tc.agent); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("stays what it is from release to release", func(t *testing.T) {
		if got := ids.Plate(agent(uid, "")); got != natural {
			t.Errorf("got %s, want %s", got, natural)
		}
	})
	t.Run("is a plate for any UID, and another for another", func(t *testing.T) {
		a, b := ids.Plate(agent("not a uuid", "")), ids.Plate(agent("nor this", ""))
		if !ids.IsPlate(a) || !ids.IsPlate(b) || a == b {
			t.Errorf("got %q and %q", a, b)
		}
	})
}

func TestIsPlate(t *testing.T) {
	tests := map[string]bool{
		"BRNL-AGT-00000000000000000000000004":     true,
		"BRNL-AGT-1W70T30B194RH1V58CGG1ZZEVM":     true,
		"BRNL-AGT-1w71t3158trk46v581hg1zzdvm":     false,
		"BRNL-AGT-0000000000000000000000000":      false,
		"BRNL-AGT-000000000000000000000000000":    false,
		"BRNL-AGT-0000000000000000000000000U":     false,
		"BRNL-AGT-00000000000000000000000001":     false, // spare bits: no UID gives it
		"BRNL-AGT-000000000000000000000000\n\n":   false, // the decoder overlooks line breaks
		"00000000000000000000000004":              false,
		"brnl-agt-00000000000000000000000004":     false,
		"":                                        false,
		"BRNL-AGT-":                               false,
		"BRNL-AGT-00000000000000000000000004#one": false,
	}
	for s, want := range tests {
		if got := ids.IsPlate(s); got != want {
			t.Errorf("IsPlate(%q) is %v, want %v", s, got, want)
		}
	}
}

func TestAMessageIDSaysWhereTheMessageStands(t *testing.T) {
	const here, elsewhere = "01KBAMXNG01W71T38C1C5196C8", "01KBAMXNG01W71T38C1C5196C9"
	for _, seq := range []int64{1, 2, 255, 256, 1 << 20, 1<<40 - 1} {
		id := ids.MessageID(here, created, seq)
		if got, ok := ids.MessageSeq(here, id); !ok || got != seq {
			t.Errorf("seq %d reads back as %d (%v)", seq, got, ok)
		}
		if _, ok := ids.MessageSeq(elsewhere, id); ok {
			t.Errorf("the id of seq %d is taken for one of another room", seq)
		}
		if at, ok := ids.CreatedAt(id); !ok || !at.Equal(created) {
			t.Errorf("seq %d: sent at %v, want %v", seq, at, created)
		}
	}
	if a, b := ids.MessageID(here, created, 1), ids.MessageID(here, created, 2); a >= b {
		t.Errorf("%s (seq 1) does not sort before %s (seq 2)", a, b)
	}
	for _, id := range []string{"", "x", here, ids.MessageID(here, created, 0), strings.ToLower(ids.MessageID(here, created, 7))} {
		if seq, ok := ids.MessageSeq(here, id); ok {
			t.Errorf("%q is taken for message %d", id, seq)
		}
	}
}

func TestMentionIDs(t *testing.T) {
	message := ids.MessageID("01KBAMXNG01W71T38C1C5196C8", created, 7)
	for _, index := range []int32{0, 1, 49} {
		m, i, ok := ids.ParseMentionID(ids.MentionID(message, index))
		if !ok || m != message || i != index {
			t.Errorf("mention %d reads back as %s %d (%v)", index, m, i, ok)
		}
	}
	for name, id := range map[string]string{
		"nothing": "", "no place": message, "an empty place": message + "-", "a place beyond any": message + "-50",
		"a place below zero": message + "--1", "a place with a sign": message + "-+1", "a place with a zero before it": message + "-01",
		"no message": "launch-1", "a message in lower case": strings.ToLower(message) + "-1", "more behind it": message + "-1-1",
		"a place beyond 32 bits": message + "-4294967296",
	} {
		if m, i, ok := ids.ParseMentionID(id); ok {
			t.Errorf("%s (%q) is taken for %s %d", name, id, m, i)
		}
	}
}

func TestDigestsTellPartsApart(t *testing.T) {
	seen := map[string]string{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"a", "b", ""}, {"1:a;1:b"}, {"a;", "b"}, {"a", ";b"}} {
		d := ids.Digest(parts...)
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`).MatchString(d) {
			t.Errorf("%q is not as the schema wants a digest", d)
		}
		if other, twice := seen[d]; twice {
			t.Errorf("%q and %s have one digest", parts, other)
		}
		seen[d] = fmt.Sprintf("%q", parts)
		if again := ids.Digest(parts...); again != d {
			t.Errorf("%q has two digests", parts)
		}
	}
}

func TestNamesAreNamesAndFitTheSchema(t *testing.T) {
	longest := strings.Repeat("x", 63)
	const anyPlate = "BRNL-AGT-00000000000000000000000004"
	dns := regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	names := map[string]struct {
		name string
		max  int
	}{
		"batch":    {ids.BatchName(longest, uid, 1), 253},
		"inbox":    {ids.InboxName(longest, uid, anyPlate), 253},
		"lease":    {ids.LeaseName(longest), 253},
		"instance": {ids.InstanceLeaseName(anyPlate, "Any Session ☃"), 253},
		"task":     {ids.TaskName(anyPlate, longest, "Any Key ☃"), 63},
		"consent":  {ids.ConsentName(longest, "Any Owner ☃"), 128},
	}
	for what, n := range names {
		if !dns.MatchString(n.name) || len(n.name) > n.max {
			t.Errorf("the name of a %s, %q, is none, or has more than %d characters", what, n.name, n.max)
		}
	}
	if s := ids.Session(anyPlate, "host", "workspace"); len(s) > 64 || !strings.HasPrefix(s, "auto-") {
		t.Errorf("session %q", s)
	}
}

func TestNamesDifferWhereWhatTheyNameDiffers(t *testing.T) {
	const p1, p2 = "BRNL-AGT-00000000000000000000000004", "BRNL-AGT-00000000000000000000000008"
	seen := map[string]bool{}
	all := []string{
		ids.BatchName("launch", uid, 1), ids.BatchName("launch", uid, 2), ids.BatchName("launch", "other", 1), ids.BatchName("launch2", uid, 1),
		ids.InboxName("launch", uid, p1), ids.InboxName("launch", uid, p2), ids.InboxName("launch", "other", p1),
		ids.LeaseName("a"), ids.LeaseName("b"),
		ids.InstanceLeaseName(p1, "s1"), ids.InstanceLeaseName(p1, "s2"), ids.InstanceLeaseName(p2, "s1"),
		ids.TaskName(p1, "launch", "k1"), ids.TaskName(p1, "launch", "k2"), ids.TaskName(p2, "launch", "k1"), ids.TaskName(p1, "other", "k1"),
		ids.ConsentName("launch", "said"), ids.ConsentName("launch", "maya"),
		ids.Session(p1, "h1", "w1"), ids.Session(p1, "h2", "w1"), ids.Session(p1, "h1", "w2"), ids.Session(p2, "h1", "w1"), ids.Session(p1, "h1w1", ""),
	}
	for _, name := range all {
		if seen[name] {
			t.Errorf("%s names two things", name)
		}
		seen[name] = true
	}
	if diff := cmp.Diff(ids.TaskName(p1, "launch", "k1"), ids.TaskName(p1, "launch", "k1")); diff != "" {
		t.Errorf("one request has two names (-first +second):\n%s", diff)
	}
}

func TestBatchNamesReadBack(t *testing.T) {
	for _, n := range []int64{1, 42, 9999999999} {
		name := ids.BatchName("launch-b0000000001", uid, n)
		chain, number, ok := ids.ParseBatchName(name)
		if !ok || number != n || chain != ids.Chain("launch-b0000000001", uid) {
			t.Errorf("%s reads back as %s, %d (%v)", name, chain, number, ok)
		}
	}
	for _, name := range []string{"", "launch", "launch-b1", "launch-b0000000000", "launch-b-000000001", "launch-b+000000001", "launch-bx", "launch-b00000000001"} {
		if chain, n, ok := ids.ParseBatchName(name); ok {
			t.Errorf("%q is taken for batch %d of %s", name, n, chain)
		}
	}
}

func FuzzParseIDs(f *testing.F) {
	f.Add("01KBAMXNG01W71T38C1C5196C8", "BRNL-AGT-00000000000000000000000004", "01KBAMXNG01W71T38C1C5196C8-7", "launch-b0000000001")
	f.Add("01kbamxng01w71t38c1c5196c8", "BRNL-AGT-000000000000000000000000\n\n", "-", "-b")
	f.Fuzz(func(t *testing.T, id, plate, mention, batch string) {
		if ids.Valid(id) && !regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`).MatchString(id) {
			t.Errorf("%q is taken for an id, and the schema would refuse it", id)
		}
		if ids.IsPlate(plate) && !regexp.MustCompile(`^BRNL-AGT-[0-9A-HJKMNP-TV-Z]{26}$`).MatchString(plate) {
			t.Errorf("%q is taken for a plate, and the schema would refuse it", plate)
		}
		if m, i, ok := ids.ParseMentionID(mention); ok && ids.MentionID(m, i) != mention {
			t.Errorf("mention %q is also written %q", mention, ids.MentionID(m, i))
		}
		if seq, ok := ids.MessageSeq(id, mention); ok && (seq < 1 || seq >= 1<<40) {
			t.Errorf("message %q stands at %d", mention, seq)
		}
		if chain, n, ok := ids.ParseBatchName(batch); ok && fmt.Sprintf("%s-b%010d", chain, n) != batch {
			t.Errorf("batch %q is also written %s-b%010d", batch, chain, n)
		}
	})
}

func TestARestoredObjectHasItsAge(t *testing.T) {
	made := metav1.NewTime(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: made, UID: "6f1f3d0e-9d5e-4d0b-8d75-0c8a4d6a3b21"}}
	id := ids.ID(task)
	later := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{
		CreationTimestamp: metav1.NewTime(made.Add(time.Hour)), UID: "0d2b8a51-6a0c-4b4e-9a51-3a9b8c7d6e5f",
		Annotations: map[string]string{v1alpha1.IDAnnotation: id},
	}}
	if ids.ID(later) != id || !ids.Created(later).Time.Equal(made.Time) {
		t.Errorf("restored it is %s of %s, want %s of %s", ids.ID(later), ids.Created(later), id, made)
	}
	delete(later.Annotations, v1alpha1.IDAnnotation)
	if !ids.Created(later).Time.Equal(made.Add(time.Hour)) {
		t.Errorf("without its old id it is of %s", ids.Created(later))
	}
}
