package mcpbridge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge"
)

func TestAResultIsTextAndStructuredAndSaysWhatWaits(t *testing.T) {
	b := serve(t)
	for era, call := range map[string]func() *answer{
		legacy: func() *answer { return b.call("echo", `{"text":"a<b & ünï"}`) },
		modern: func() *answer {
			_, body := b.modernCall("tools/call", "echo", `"name":"echo","arguments":{"text":"a<b & ünï"}`)
			return decode(t, body)
		},
	} {
		t.Run(era, func(t *testing.T) {
			r := call().Result
			want := `{"list":null,"plate":"BRNL-AGT-ADA","session":"` + ids.Session("BRNL-AGT-ADA", "", "") + `","text":"a<b & ünï"}`
			if r.IsError || r.Content[0].Text != want {
				t.Errorf("text: %s", r.Content[0].Text)
			}
			var text, structured any
			_ = json.Unmarshal([]byte(want), &text)
			_ = json.Unmarshal(r.StructuredContent, &structured)
			if diff := cmp.Diff(text, structured); diff != "" {
				t.Error(diff)
			}
			if r.Meta["pending_mentions"] != 3.0 {
				t.Errorf("_meta: %v", r.Meta)
			}
		})
	}
}

func TestEveryErrorHasItsEnvelope(t *testing.T) {
	b := serve(t, func(o *mcpbridge.Options) { o.MaxBodyBytes = 1 << 20 })
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for name, c := range map[string]struct {
		token, tool, arguments string
		code                   problem.Code
		field, says            string
	}{
		"a person":            {"person-bob", "echo", `{}`, problem.IdentityRequired, "", "person-bob"},
		"no scope":            {"agent-scopeless", "send", `{}`, problem.ForbiddenScope, "", "WRITE"},
		"scope comes first":   {"agent-scopeless", "send", `{"x":1}`, problem.ForbiddenScope, "", "WRITE"},
		"unknown field":       {"agent-ada", "echo", `{"nonsense":1}`, problem.Validation, "nonsense", "not a parameter"},
		"wrong type":          {"agent-ada", "echo", `{"text":7}`, problem.Validation, "text", "string"},
		"doubled field":       {"agent-ada", "echo", `{"text":"a","text":"b"}`, problem.Validation, "text", "once"},
		"arguments are none":  {"agent-ada", "echo", `[1]`, problem.Validation, "arguments", "object"},
		"broken UTF-8":        {"agent-ada", "echo", "{\"text\":\"\xff\"}", problem.Validation, "text", "UTF-8"},
		"too deep":            {"agent-ada", "echo", `{"list":` + deep + `}`, problem.Validation, "list", "64 levels"},
		"too deep all over":   {"agent-ada", "echo", deep, problem.Validation, "arguments", "64 levels"},
		"huge":                {"agent-ada", "echo", `{"text":"` + strings.Repeat("x", 200_000) + `"}`, problem.Validation, "text", "at most"},
		"a rule says no":      {"agent-ada", "conflict", `{}`, problem.Conflict, "", "somebody was faster"},
		"something else":      {"agent-ada", "secret", `{}`, problem.Internal, "", "incident"},
		"a panic":             {"agent-ada", "panic", `{}`, problem.Internal, "", "incident"},
		"an answer of a kind": {"agent-ada", "list", `{}`, problem.Internal, "", "incident"},
	} {
		t.Run(name, func(t *testing.T) {
			a := b.call(c.tool, c.arguments, "Authorization", "Bearer "+c.token)
			p := a.toolError(t)
			if p.Code != c.code || !strings.Contains(p.Message, c.says) || strings.Contains(p.Message, "hunter2") || p.Status == 0 {
				t.Errorf("%+v", p)
			}
			if c.field != "" && !cmp.Equal(p.Fields, []string{c.field}) {
				t.Errorf("fields %v, want %s", p.Fields, c.field)
			}
			if _, ok := a.Result.Meta["pending_mentions"]; !ok {
				t.Error("no pending_mentions")
			}
		})
	}
	want := "# HELP agentrooms_panics_total Panics that were caught.\n# TYPE agentrooms_panics_total counter\nagentrooms_panics_total 1\n"
	if err := testutil.GatherAndCompare(b.reg, strings.NewReader(want), "agentrooms_panics_total"); err != nil {
		t.Error(err)
	}
}

func TestWhatWentWrongInsideIsInTheLogUnderItsNumber(t *testing.T) {
	b := serve(t)
	for _, tool := range []string{"secret", "panic"} {
		p := b.call(tool, `{}`, "X-Request-Id", "req-"+tool).toolError(t)
		_, number, _ := strings.Cut(p.Message, "incident ")
		number = strings.TrimSuffix(number, ")")
		line := ""
		for l := range strings.Lines(b.logs.String()) {
			if strings.Contains(l, number) {
				line = l
			}
		}
		if !strings.Contains(line, "hunter2") || !strings.Contains(line, "req-"+tool) {
			t.Errorf("%s: incident %s in the log: %q", tool, number, line)
		}
	}
	if strings.Contains(b.logs.String(), "agent-ada") {
		t.Error("the log holds a token")
	}
}

func TestToolsThatAreNone(t *testing.T) {
	b := serve(t)
	resp, body := b.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nonsense"}}`)
	if a := decode(t, body); resp.StatusCode != 200 || a.Error == nil || a.Error.Code != -32602 {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	resp, body = b.modernCall("tools/call", "nonsense", `"name":"nonsense"`)
	if a := decode(t, body); resp.StatusCode != 400 || a.Error == nil || a.Error.Code != -32602 {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	b.call("zero", `{}`)
	want := `
# HELP agentrooms_tool_calls_total Tool calls by outcome: ok, or the code of the error.
# TYPE agentrooms_tool_calls_total counter
agentrooms_tool_calls_total{outcome="NOT_FOUND",tool="unknown",toolset="fake"} 2
agentrooms_tool_calls_total{outcome="ok",tool="zero",toolset="fake"} 1
`
	if err := testutil.GatherAndCompare(b.reg, strings.NewReader(want), "agentrooms_tool_calls_total"); err != nil {
		t.Error(err)
	}
}

func TestTheInstanceIsWhoItSaysOrWhereItRuns(t *testing.T) {
	b := serve(t)
	for arguments, want := range map[string]string{
		`{}`:                                  ids.Session("BRNL-AGT-ADA", "", ""),
		`{"host":"h","workspace":"w"}`:        ids.Session("BRNL-AGT-ADA", "h", "w"),
		`{"session_id":"mine","host":"h"}`:    "mine",
		`{"instance_id":"one"}`:               "one",
		`{"session_id":null,"workspace":"w"}`: ids.Session("BRNL-AGT-ADA", "", "w"),
	} {
		var got struct{ Session string }
		_ = json.Unmarshal(b.call("echo", arguments).Result.StructuredContent, &got)
		if got.Session != want {
			t.Errorf("%s: session %s, want %s", arguments, got.Session, want)
		}
		if sessions, _ := b.set.touches(); sessions[len(sessions)-1] != want {
			t.Errorf("%s: touched %v, want %s", arguments, sessions, want)
		}
	}
}

// The list must be the same for every caller, in the toolset's order, and its output schemas must let errors pass: clients
// hold those against the schema as well.
func TestTheListOfTools(t *testing.T) {
	b := serve(t)
	type list struct {
		Result struct {
			Tools []struct {
				Name         string
				Annotations  map[string]bool
				InputSchema  map[string]any
				OutputSchema map[string]any
			}
			TTLMs      *int64 `json:"ttlMs"`
			CacheScope string `json:"cacheScope"`
		}
	}
	read := func(body []byte) (l list) {
		if err := json.Unmarshal(body, &l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	_, first := b.post(listTools)
	_, other := b.post(listTools, "Authorization", "Bearer person-bob")
	if string(first) != string(other) {
		t.Error("callers see different lists")
	}
	l := read(first)
	var names []string
	for _, tool := range l.Result.Tools {
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{"zero", "echo", "send", "conflict", "secret", "list", "panic", "block"}, names); diff != "" {
		t.Error(diff)
	}
	echo := l.Result.Tools[1]
	if diff := cmp.Diff(map[string]bool{"readOnlyHint": true, "openWorldHint": false}, echo.Annotations); diff != "" {
		t.Error(diff)
	}
	anyOf := []any{map[string]any{"required": []any{"text"}}, map[string]any{"required": []any{"error"}}}
	if diff := cmp.Diff(anyOf, echo.OutputSchema["anyOf"]); diff != "" || echo.OutputSchema["required"] != nil {
		t.Error(diff, echo.OutputSchema)
	}
	if echo.InputSchema["additionalProperties"] != false {
		t.Error(echo.InputSchema)
	}
	_, body := b.modernCall("tools/list", "", "")
	if l := read(body); l.Result.TTLMs == nil || *l.Result.TTLMs != 300_000 || l.Result.CacheScope != "public" {
		t.Errorf("cache hints: %v %s", l.Result.TTLMs, l.Result.CacheScope)
	}
}

func TestResources(t *testing.T) {
	b := serve(t)
	for era, send := range map[string]func(method, name, params string) (*http.Response, []byte){
		legacy: func(method, _, params string) (*http.Response, []byte) {
			return b.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params))
		},
		modern: func(method, name, params string) (*http.Response, []byte) { return b.modernCall(method, name, params) },
	} {
		t.Run(era, func(t *testing.T) {
			for _, c := range []struct{ method, uri, says string }{
				{"resources/list", "", inboxURI},
				{"resources/templates/list", "", "rooms://inbox/{plate}"},
				{"resources/read", inboxURI, `{\"waiting\":3}`},
			} {
				params := ""
				if c.uri != "" {
					params = fmt.Sprintf(`"uri":%q`, c.uri)
				}
				resp, body := send(c.method, c.uri, params)
				if resp.StatusCode != 200 || !strings.Contains(string(body), c.says) {
					t.Errorf("%s: status %d: %s", c.method, resp.StatusCode, body)
				}
			}
			notFound := map[string]int{legacy: -32002, modern: -32602}[era]
			for uri, code := range map[string]int{"rooms://elsewhere": notFound, "rooms://broken": -32603, "rooms://panic": -32603} {
				_, body := send("resources/read", uri, fmt.Sprintf(`"uri":%q`, uri))
				if a := decode(t, body); a.Error == nil || a.Error.Code != code || a.ID != 1.0 || strings.Contains(string(body), "hunter2") ||
					!strings.Contains(string(a.Error.Data), `"uri":"`+uri+`"`) {
					t.Errorf("%s: %s", uri, body)
				}
			}
		})
	}
	_, body := b.post(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, "Authorization", "Bearer person-bob")
	if a := decode(t, body); a.Error == nil || !strings.Contains(string(a.Error.Data), "IDENTITY_REQUIRED") {
		t.Errorf("a person: %s", body)
	}
}
