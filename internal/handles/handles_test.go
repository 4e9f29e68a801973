package handles_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/agentrooms/agentrooms/internal/handles"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
)

const (
	plate1 = "BRNL-AGT-00000000000000000000000004"
	plate2 = "BRNL-AGT-00000000000000000000000008"
	plate3 = "BRNL-AGT-0000000000000000000000000C"
	plate4 = "BRNL-AGT-0000000000000000000000000G"
)

func TestParse(t *testing.T) {
	type handle = handles.Handle
	tests := map[string]struct {
		handle string
		want   handle
		bad    bool
	}{
		"an alias":                                   {handle: "@cc(said)", want: handle{Name: "cc", Owner: "said"}},
		"an alias without @":                         {handle: "cc(said)", want: handle{Name: "cc", Owner: "said"}},
		"a name alone":                               {handle: "@cc", want: handle{Name: "cc"}},
		"an instance":                                {handle: "@cc(said)#s1", want: handle{Name: "cc", Owner: "said", Session: "s1"}},
		"an instance of a name alone":                {handle: "@cc#s1", want: handle{Name: "cc", Session: "s1"}},
		"a plate":                                    {handle: plate1, want: handle{Plate: plate1}},
		"a plate with @":                             {handle: "@" + plate1, want: handle{Plate: plate1}},
		"an instance of a plate":                     {handle: plate1 + "#s1", want: handle{Plate: plate1, Session: "s1"}},
		"an alias that looks like a plate":           {handle: plate1 + "(said)", want: handle{Name: plate1, Owner: "said"}},
		"what is almost a plate":                     {handle: plate1 + "0", want: handle{Name: plate1 + "0"}},
		"an owner as a cluster names people":         {handle: "@cc(system:serviceaccount:demo:x)", want: handle{Name: "cc", Owner: "system:serviceaccount:demo:x"}},
		"an owner with a #":                          {handle: "@cc(oidc#1)", want: handle{Name: "cc", Owner: "oidc#1"}},
		"an owner with a # and an instance":          {handle: "@cc(oidc#1)#s1", want: handle{Name: "cc", Owner: "oidc#1", Session: "s1"}},
		"an owner with an @ and a space":             {handle: "@cc(Said S. <x@y>)", want: handle{Name: "cc", Owner: "Said S. <x@y>"}},
		"a session with parentheses and a #":         {handle: "@cc(said)#a(b)#c", want: handle{Name: "cc", Owner: "said", Session: "a(b)#c"}},
		"a session of 64 characters":                 {handle: "@cc#" + strings.Repeat("ü", 64), want: handle{Name: "cc", Session: strings.Repeat("ü", 64)}},
		"the longest of all":                         {handle: "@" + strings.Repeat("n", 64) + "(" + strings.Repeat("ö", 253) + ")#" + strings.Repeat("s", 64), want: handle{Name: strings.Repeat("n", 64), Owner: strings.Repeat("ö", 253), Session: strings.Repeat("s", 64)}},
		"nothing":                                    {handle: "", bad: true},
		"an @ alone":                                 {handle: "@", bad: true},
		"an owner alone":                             {handle: "(said)", bad: true},
		"a session alone":                            {handle: "#s1", bad: true},
		"an empty owner":                             {handle: "@cc()", bad: true},
		"an open parenthesis":                        {handle: "@cc(said", bad: true},
		"a closing parenthesis alone":                {handle: "@cc)", bad: true},
		"a parenthesis within an owner":              {handle: "@cc(sa(id)", bad: true},
		"two owners":                                 {handle: "@cc(said)(maya)", bad: true},
		"words behind the owner":                     {handle: "@cc(said) please", bad: true},
		"a space in the name":                        {handle: "@c c(said)", bad: true},
		"an empty session":                           {handle: "@cc(said)#", bad: true},
		"an empty session of a name":                 {handle: "@cc#", bad: true},
		"a session of 65 characters":                 {handle: "@cc#" + strings.Repeat("s", 65), bad: true},
		"more characters than a handle may have":     {handle: "@cc(" + strings.Repeat("x", handles.MaxLength) + ")", bad: true},
		"as many characters as it may have, no more": {handle: "@cc(" + strings.Repeat("ü", handles.MaxLength-5) + ")", want: handle{Name: "cc", Owner: strings.Repeat("ü", handles.MaxLength-5)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, p := handles.Parse("to", tc.handle)
			if tc.bad {
				if p == nil {
					t.Fatalf("%q is taken for %+v", tc.handle, got)
				}
				if p.Code != problem.Validation || !cmp.Equal(p.Fields, []string{"to"}) {
					t.Errorf("got %v, want a VALIDATION problem that names the field", p)
				}
				return
			}
			if p != nil {
				t.Fatalf("%q: %v", tc.handle, p)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tc.handle, diff)
			}
		})
	}
}

var members = []handles.Agent{
	{Plate: plate2, Name: "cc", Owner: "maya"},
	{Plate: plate1, Name: "cc", Owner: "said"},
	{Plate: plate4, Name: "twin", Owner: "said"},
	{Plate: plate3, Name: "twin", Owner: "said"},
	{Plate: "BRNL-AGT-0000000000000000000000000M", Name: "dd", Owner: "maya"},
}

func TestResolve(t *testing.T) {
	tests := map[string]struct {
		handle     string
		plate      string
		session    string
		candidates []string
	}{
		"an alias means one agent":                           {handle: "@cc(said)", plate: plate1},
		"a name means the one agent of that name":            {handle: "@dd", plate: "BRNL-AGT-0000000000000000000000000M"},
		"a plate means its agent":                            {handle: plate2, plate: plate2},
		"an instance means its agent":                        {handle: "@cc(said)#s1", plate: plate1, session: "s1"},
		"a name of two owners' agents is ambiguous":          {handle: "@cc", candidates: []string{"@cc(maya)", "@cc(said)"}},
		"an alias of two agents is ambiguous, told by plate": {handle: "@twin(said)", candidates: []string{plate3, plate4}},
		"a name that nobody has lists everybody":             {handle: "@nobody", candidates: []string{"@cc(maya)", "@cc(said)", "@dd(maya)", "@twin(said)", "@twin(said)"}},
		"a plate that is not in the room lists everybody":    {handle: "BRNL-AGT-0000000000000000000000000R", candidates: []string{"@cc(maya)", "@cc(said)", "@dd(maya)", "@twin(said)", "@twin(said)"}},
		"an owner narrows the name":                          {handle: "@dd(said)", candidates: []string{"@cc(maya)", "@cc(said)", "@dd(maya)", "@twin(said)", "@twin(said)"}},
		"names are told apart by case":                       {handle: "@CC(said)", candidates: []string{"@cc(maya)", "@cc(said)", "@dd(maya)", "@twin(said)", "@twin(said)"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := append([]handles.Agent(nil), members...)
			got, h, p := handles.Resolve("to", tc.handle, members)
			if diff := cmp.Diff(before, members); diff != "" {
				t.Errorf("the members were changed (-before +after):\n%s", diff)
			}
			if tc.plate != "" {
				if p != nil || got.Plate != tc.plate || h.Session != tc.session {
					t.Fatalf("got %+v, session %q, %v; want %s, %q", got, h.Session, p, tc.plate, tc.session)
				}
				return
			}
			if p == nil {
				t.Fatalf("got %+v, want a problem", got)
			}
			if p.Code != problem.Validation || p.Hint == "" {
				t.Errorf("got %v, want a VALIDATION problem with a hint", p)
			}
			if diff := cmp.Diff(tc.candidates, p.Candidates); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("lists no more than twenty candidates", func(t *testing.T) {
		var many []handles.Agent
		for range 50 {
			many = append(many, handles.Agent{Plate: plate1, Name: "n", Owner: "o"})
		}
		if _, _, p := handles.Resolve("to", "@x", many); p == nil || len(p.Candidates) != 20 {
			t.Errorf("got %v", p)
		}
	})
	t.Run("refuses what is no handle before it looks", func(t *testing.T) {
		if _, _, p := handles.Resolve("to", "", members); p == nil || p.Candidates != nil {
			t.Errorf("got %v", p)
		}
	})
}

func FuzzParseHandle(f *testing.F) {
	for _, s := range []string{"@cc(said)#s1", plate1, "@" + plate1 + "#s1", "@cc(oidc#1)#a)b", "((((", "@#", "@cc(said))"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, p := handles.Parse("to", s)
		if p != nil {
			if (h != handles.Handle{}) {
				t.Errorf("%q is refused and still read as %+v", s, h)
			}
			return
		}
		if (h.Plate == "") == (h.Name == "") {
			t.Errorf("%q has both or neither of plate and name: %+v", s, h)
		}
		if h.Plate != "" && (!ids.IsPlate(h.Plate) || h.Owner != "") {
			t.Errorf("%q: %+v", s, h)
		}
		if strings.ContainsAny(h.Owner, "()") || utf8.RuneCountInString(h.Session) > 64 {
			t.Errorf("%q holds what no agent has: %+v", s, h)
		}
		written := "@" + h.Plate + h.Name
		if h.Owner != "" {
			written = handles.Alias(h.Name, h.Owner)
		}
		if h.Session != "" {
			written += "#" + h.Session
		}
		if again, p := handles.Parse("to", written); utf8.RuneCountInString(written) <= handles.MaxLength && (p != nil || again != h) {
			t.Errorf("%q reads as %+v, which is written %q and reads as %+v (%v)", s, h, written, again, p)
		}
	})
}
