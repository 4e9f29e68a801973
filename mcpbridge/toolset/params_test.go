package toolset_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// tool has a parameter of each sort.
var tool = &toolset.Tool{
	Hints: true,
	Params: []toolset.Param{
		{Name: "room", Type: toolset.TypeString, Required: true, Description: "id of the room"},
		{Name: "body", Type: toolset.TypeString, Max: 8000},
		{Name: "code", Type: toolset.TypeString, Min: 3, Max: 5},
		{Name: "mode", Type: toolset.TypeString, Enum: []string{"a1", "a2"}},
		{Name: "maybe", Type: toolset.TypeString, Enum: []string{"a1"}, Nullable: true},
		{Name: "limit", Type: toolset.TypeInteger, Min: 1, Max: 100},
		{Name: "order", Type: toolset.TypeInteger, Min: -10, Max: 10},
		{Name: "seq", Type: toolset.TypeInteger, Min: 1},
		{Name: "count", Type: toolset.TypeInteger},
		{Name: "all", Type: toolset.TypeBoolean},
		{Name: "to", Type: toolset.TypeStrings, Max: 4, MaxItems: 3},
		{Name: "tags", Type: toolset.TypeStrings},
		{Name: "both", Type: toolset.TypeStrings, Required: true},
		{Name: "content", Type: toolset.TypeString, Raw: true, Max: 20},
		{Name: "span", Type: toolset.TypeObject, Fields: []toolset.Param{
			{Name: "offset", Type: toolset.TypeInteger, Max: 100}, {Name: "unit", Type: toolset.TypeString, Enum: []string{"bytes", "lines"}},
		}},
		{Name: "owner", Type: toolset.TypeObject, Nullable: true, Fields: []toolset.Param{{Name: "name", Type: toolset.TypeString, Required: true}}},
	},
}

func TestWhatIsAccepted(t *testing.T) {
	const rest = `"room": "r", "both": []`
	text := func(a toolset.Args, name string) any { return a.String(name) }
	number := func(a toolset.Args, name string) any { return a.Int(name, -99) }
	list := func(a toolset.Args, name string) any { return a.Strings(name) }
	given := func(a toolset.Args, name string) any { return a.Has(name) }
	inner := func(a toolset.Args, name string) any {
		return []any{a.Object(name).Int("offset", -99), a.Object(name).String("unit")}
	}
	tests := map[string]struct {
		field string
		raw   string
		get   func(toolset.Args, string) any
		want  any
	}{
		"text":                                   {"body", `"Hello, Wörld ☃"`, text, "Hello, Wörld ☃"},
		"text with escapes":                      {"body", `"a\u00fcb\n\t\r\ud83d\ude00"`, text, "aüb\n\t\r😀"},
		"empty text where none is required":      {"body", `""`, text, ""},
		"as many characters as allowed":          {"body", `"` + strings.Repeat("ü", 8000) + `"`, text, strings.Repeat("ü", 8000)},
		"as many as where nothing is said":       {"room", `"` + strings.Repeat("ü", 512) + `"`, text, strings.Repeat("ü", 512)},
		"text of just the right length":          {"code", `"abc"`, text, "abc"},
		"one of the values":                      {"mode", `"a2"`, text, "a2"},
		"an integer":                             {"count", `7`, number, int64(7)},
		"an integer that is written as decimal":  {"count", `7.0`, number, int64(7)},
		"an integer that is written with e":      {"count", `1e2`, number, int64(100)},
		"a negative one where nothing is said":   {"count", `-7`, number, int64(-7)},
		"the largest":                            {"count", `9007199254740991`, number, int64(1<<53 - 1)},
		"the smallest":                           {"count", `-9007199254740991`, number, int64(-(1<<53 - 1))},
		"the least of a range":                   {"limit", `1`, number, int64(1)},
		"the most of a range":                    {"limit", `100`, number, int64(100)},
		"the least of a range below zero":        {"order", `-10`, number, int64(-10)},
		"zero within a range":                    {"order", `0`, number, int64(0)},
		"a large one with a least only":          {"seq", `1000000`, number, int64(1000000)},
		"true":                                   {"all", `true`, func(a toolset.Args, name string) any { return a.Bool(name) }, true},
		"a list":                                 {"to", `["a", "bcde"]`, list, []string{"a", "bcde"}},
		"an empty list":                          {"to", `[]`, list, []string{}},
		"a hint":                                 {"session_id", `"s1"`, text, "s1"},
		"null, where it counts as nothing":       {"maybe", `null`, func(a toolset.Args, name string) any { return a.Has(name) }, false},
		"null for what is not required":          {"limit", `null`, number, int64(-99)},
		"content with any character":             {"content", `"a\u0000\u001b\u007f\ufeff\u202e"`, text, "a\x00\x1b\x7f\ufeff\u202e"},
		"content with the mark of decoding":      {"content", `"\ufffd\uFFFD` + "\ufffd" + `"`, text, "\ufffd\ufffd\ufffd"},
		"content with a backslash before a mark": {"content", `"\\ufffd"`, text, `\ufffd`},
		"content with a whole surrogate pair":    {"content", `"\ud83d\ude00"`, text, "😀"},
		"content of nothing":                     {"content", `""`, given, true},
		"an object":                              {"span", `{"offset": 7, "unit": "lines"}`, inner, []any{int64(7), "lines"}},
		"an object with space around":            {"span", `{ "unit" : "bytes" , "offset" : 1e2 }`, inner, []any{int64(100), "bytes"}},
		"an object without members":              {"span", `{}`, inner, []any{int64(-99), ""}},
		"an object with null members":            {"span", `{"offset": null}`, inner, []any{int64(-99), ""}},
		"null for an object":                     {"owner", `null`, given, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			raw := `{` + rest + `, "` + tc.field + `": ` + tc.raw + `}`
			if tc.field == "room" {
				raw = `{"both": [], "room": ` + tc.raw + `}`
			}
			args, p := tool.ParseArgs(json.RawMessage(raw))
			if p != nil {
				t.Fatal(p)
			}
			if diff := cmp.Diff(tc.want, tc.get(args, tc.field)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatWasNotGiven(t *testing.T) {
	args, p := tool.ParseArgs(json.RawMessage(`{"room": "r", "both": []}`))
	if p != nil {
		t.Fatal(p)
	}
	if args.Has("limit") || args.String("body") != "" || args.Int("limit", 50) != 50 || args.IntPtr("limit") != nil || args.Bool("all") || args.Strings("to") != nil {
		t.Errorf("got %+v", args)
	}
	args, _ = tool.ParseArgs(json.RawMessage(`{"room": "r", "both": [], "limit": 3}`))
	if got := args.IntPtr("limit"); got == nil || *got != 3 || !args.Has("limit") {
		t.Errorf("got %v", got)
	}
	if args.Has("span") || args.Object("span").Has("offset") || args.Object("room").Has("offset") {
		t.Error("an object that was not given has members")
	}
	if args.String("limit") != "" || args.Bool("limit") || args.Strings("room") != nil || args.Int("room", 5) != 5 {
		t.Error("an argument is given out as another type than it has")
	}
	for _, raw := range []string{``, `null`, `{}`, ` {} `} {
		if args, p := (&toolset.Tool{}).ParseArgs(json.RawMessage(raw)); p != nil || args.Has("room") {
			t.Errorf("%q for a tool without parameters: %v", raw, p)
		}
	}
}

func TestWhatIsRefusedNamesTheField(t *testing.T) {
	const rest = `"room": "r", "both": []`
	one := func(field, value string) string { return `{` + rest + `, "` + field + `": ` + value + `}` }
	tests := map[string]struct{ raw, field string }{
		"no object":                               {`[]`, "arguments"},
		"text in place of an object":              {`"x"`, "arguments"},
		"what is no JSON":                         {`{`, "arguments"},
		"a field without an end":                  {`{"room": `, "room"},
		"a field without quotes":                  {`{room: 1}`, "arguments"},
		"something behind the object":             {`{` + rest + `} {}`, "arguments"},
		"a stray comma":                           {`{` + rest + `,}`, "arguments"},
		"a field twice":                           {`{"room": "r", "room": "s", "both": []}`, "room"},
		"an unknown field":                        {one("bodY", `"x"`), "bodY"},
		"the first unknown field of several":      {`{"zz": 1, "aa": 1}`, "aa"},
		"a missing field":                         {`{"both": []}`, "room"},
		"nothing at all":                          {``, "room"},
		"null for what is required":               {`{"room": null, "both": []}`, "room"},
		"an empty text for what is required":      {`{"room": "", "both": []}`, "room"},
		"a missing list":                          {`{"room": "r"}`, "both"},
		"a number for a text":                     {one("body", `1`), "body"},
		"an object for a text":                    {one("body", `{}`), "body"},
		"text with a control character":           {one("body", `"a\u0000b"`), "body"},
		"text with an escape":                     {one("body", `"a\u001bb"`), "body"},
		"text with a delete":                      {one("body", `"a\u007fb"`), "body"},
		"half of a character":                     {one("body", `"a\ud83db"`), "body"},
		"the mark of a decoding error":            {one("body", `"a\ufffdb"`), "body"},
		"what is not UTF-8":                       {one("body", "\"a\xffb\""), "body"},
		"UTF-8 that is cut off":                   {one("body", "\"a\xe2\x98\""), "body"},
		"too many characters":                     {one("body", `"`+strings.Repeat("ü", 8001)+`"`), "body"},
		"too many where nothing is said":          {`{"both": [], "room": "` + strings.Repeat("x", 513) + `"}`, "room"},
		"too few characters":                      {one("code", `"ab"`), "code"},
		"none of the values":                      {one("mode", `"A1"`), "mode"},
		"an integer with a fraction":              {one("count", `1.5`), "count"},
		"an integer in quotes":                    {one("count", `"1"`), "count"},
		"an integer beyond all":                   {one("count", `1e300`), "count"},
		"an integer that others would round":      {one("count", `9007199254740993`), "count"},
		"an integer below all":                    {one("count", `-9007199254740992`), "count"},
		"below a range":                           {one("limit", `0`), "limit"},
		"above a range":                           {one("limit", `101`), "limit"},
		"below a range that begins below zero":    {one("order", `-11`), "order"},
		"below the least":                         {one("seq", `0`), "seq"},
		"what is no truth":                        {one("all", `"true"`), "all"},
		"a number for a truth":                    {one("all", `1`), "all"},
		"a text for a list":                       {one("to", `"a"`), "to"},
		"a list with a number":                    {one("to", `["a", 1]`), "to"},
		"a list with a null":                      {one("to", `["a", null]`), "to"},
		"a list with an empty text":               {one("to", `["a", ""]`), "to"},
		"a list with a text that is too long":     {one("to", `["abcde"]`), "to"},
		"a list with a control character":         {one("to", `["a\u0007"]`), "to"},
		"a list that is too long":                 {one("to", `["a", "b", "c", "d"]`), "to"},
		"a list that is too long, nothing said":   {one("tags", `["a"`+strings.Repeat(`, "a"`, 100)+`]`), "tags"},
		"a list of lists":                         {one("to", `[["a"]]`), "to"},
		"something nested beyond reason":          {one("body", strings.Repeat("[", 20000)+strings.Repeat("]", 20000)), "body"},
		"a hint that is too long":                 {one("session_id", `"`+strings.Repeat("s", 65)+`"`), "session_id"},
		"content with half of a character":        {one("content", `"a\ud83db"`), "content"},
		"content with half beside a real mark":    {one("content", `"\ufffd\ud83d"`), "content"},
		"content that is not UTF-8":               {one("content", "\"a\xffb\""), "content"},
		"content that is too long":                {one("content", `"`+strings.Repeat("x", 21)+`"`), "content"},
		"a number for content":                    {one("content", `7`), "content"},
		"a text for an object":                    {one("span", `"0-5"`), "span"},
		"a list for an object":                    {one("span", `[1]`), "span"},
		"a number for an object":                  {one("span", `7`), "span"},
		"an object with an unknown member":        {one("span", `{"from": 1}`), "span"},
		"an object with a member twice":           {one("span", `{"offset": 1, "offset": 1}`), "span"},
		"an object with a member of another type": {one("span", `{"offset": "1"}`), "span"},
		"an object with a member out of range":    {one("span", `{"offset": 101}`), "span"},
		"an object with none of the values":       {one("span", `{"unit": "words"}`), "span"},
		"an object in an object":                  {one("span", `{"unit": {}}`), "span"},
		"an object without what it must have":     {one("owner", `{}`), "owner"},
		"an unknown field with a very long name":  {one(strings.Repeat("x", 100), `1`), strings.Repeat("x", 64) + "…"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			args, p := tool.ParseArgs(json.RawMessage(tc.raw))
			if p == nil {
				t.Fatalf("accepted as %+v", args)
			}
			if p.Code != problem.Validation || !cmp.Equal(p.Fields, []string{tc.field}) || !strings.HasPrefix(p.Message, tc.field+" ") {
				t.Errorf("got %+v, want a VALIDATION problem that names %s", p, tc.field)
			}
			if !utf8.ValidString(p.Message) || len(p.Message) > 1024 {
				t.Errorf("the message is no text to show: %q", p.Message)
			}
		})
	}
	t.Run("an unknown field tells the known ones", func(t *testing.T) {
		_, p := tool.ParseArgs(json.RawMessage(`{"x": 1}`))
		if p == nil || !strings.Contains(p.Hint, "room, body, code") || !strings.Contains(p.Hint, "session_id") {
			t.Errorf("got %+v", p)
		}
	})
}

// Whatever is wrong with a number, the answer gives the range that it must be in.
func TestARefusedIntegerIsToldTheRange(t *testing.T) {
	ranges := map[string]string{
		"limit": "from 1 to 100", "order": "from -10 to 10", "seq": "from 1 to 9007199254740991",
		"count": "from -9007199254740991 to 9007199254740991",
	}
	values := []string{
		`4611686018427387904`, `9223372036854775808`, `-4611686018427387904`, `1e30`, `-1e30`, `1e400`, `1.5`, `1e-3`, `"7"`, `true`, `[7]`, `{}`,
	}
	for field, says := range ranges {
		for _, value := range values {
			_, p := tool.ParseArgs(json.RawMessage(`{"room": "r", "both": [], "` + field + `": ` + value + `}`))
			if p == nil || p.Message != field+" must be an integer "+says {
				t.Errorf("%s %s: got %+v, want %q", field, value, p, says)
			}
		}
	}
}

func TestAToolWithoutHintsTakesNone(t *testing.T) {
	bare := &toolset.Tool{}
	if _, p := bare.ParseArgs(json.RawMessage(`{"session_id": "s1"}`)); p == nil {
		t.Error("accepted")
	}
	if got := len(tool.AllParams()) - len(tool.Params); got != 3 {
		t.Errorf("%d hints, want 3", got)
	}
	if len(tool.Params) != 16 {
		t.Error("the hints were added to the tool itself")
	}
}

func TestTheSchemaSaysWhatIsChecked(t *testing.T) {
	raw, err := json.Marshal(tool.InputSchema())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	text, texts := map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	want := map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{"room", "both"},
		"properties": map[string]any{
			"room": map[string]any{"type": "string", "description": "id of the room"},
			"body": map[string]any{"type": "string", "maxLength": 8000.0},
			"code": text, "mode": map[string]any{"type": "string", "enum": []any{"a1", "a2"}},
			"maybe": map[string]any{"type": []any{"string", "null"}, "enum": []any{"a1", nil}},
			"limit": map[string]any{"type": "integer", "minimum": 1.0, "maximum": 100.0},
			"order": map[string]any{"type": "integer", "minimum": -10.0, "maximum": 10.0},
			"seq":   map[string]any{"type": "integer", "minimum": 1.0},
			"count": map[string]any{"type": "integer"},
			"all":   map[string]any{"type": "boolean"},
			"to":    texts, "tags": texts, "both": texts, "content": text,
			"span": map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{
				"offset": map[string]any{"type": "integer", "minimum": 0.0, "maximum": 100.0},
				"unit":   map[string]any{"type": "string", "enum": []any{"bytes", "lines"}},
			}},
			"owner": map[string]any{
				"type": []any{"object", "null"}, "additionalProperties": false, "properties": map[string]any{"name": text},
				"required": []any{"name"},
			},
			"workspace": text, "host": text, "session_id": text,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := (&toolset.Tool{}).InputSchema(); s["properties"] == nil || s["required"] != nil {
		t.Errorf("a tool without parameters has the schema %v; some clients want properties, if empty", s)
	}
}

func FuzzParseArgs(f *testing.F) {
	for _, s := range []string{
		`{"room": "r", "both": ["a"], "limit": 3, "all": true, "to": ["x"], "maybe": null}`, `{"room": "\ud83d"}`, "{\"\xff\": 1}",
		`{"room": "r", "room": "r"}`, `null`, `[[[[`, `{"count": 1e400}`, `{"count": 9007199254740993}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		args, p := tool.ParseArgs(raw)
		if p != nil {
			if p.Code != problem.Validation || len(p.Fields) != 1 || !utf8.ValidString(p.Message+p.Hint) {
				t.Errorf("%q: %+v", raw, p)
			}
			return
		}
		if !json.Valid(raw) || args.String("room") == "" || !args.Has("both") {
			t.Errorf("%q is accepted", raw)
		}
		for _, s := range append(args.Strings("to"), args.String("body"), args.String("room")) {
			if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || r == 0 || r == 0x1b }) {
				t.Errorf("%q lets %q through", raw, s)
			}
		}
		if n := args.Int("limit", 1); n < 1 || n > 100 {
			t.Errorf("%q: limit is %d", raw, n)
		}
		if n := args.Int("count", 0); n >= 1<<53 || n <= -1<<53 {
			t.Errorf("%q: count is %d", raw, n)
		}
	})
}
