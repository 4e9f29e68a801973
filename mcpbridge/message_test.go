package mcpbridge

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParseMessage holds the walk over raw bytes against the standard decoder: what is accepted is well-formed, and the
// part that is taken out is the one that a decoder would find.
func FuzzParseMessage(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,{"b":"}"}]}}}`,
		` { "id" : "a\"b" , "method" : "tools/call" , "params" : { "arguments" : [ ] , "name" : "\u0041" } } `,
		`{"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["x"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"method":"tools/call","params":{"arguments":"x\\"}}`,
		`{"method":"tools/call","params":{"arguments":-1.5e3}}`,
		`{"method":"tools/call","params":{"arguments":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}`,
		`{"params":{"":{}}}`, `{"a":{"b":[{}]}}`, `{}`, `[]`, `{"a":1,}`, `{"a" 1}`, `{"a":}`, `{,}`, `{"a":1}}`, `{"a":tru}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := parseMessage(body, "")
		if err != nil {
			return
		}
		if !utf8.Valid(m.body) || !json.Valid(m.body) {
			t.Fatalf("mcp-go would get %q", m.body)
		}
		if m.refused != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("accepted %q", body)
		}
		var want struct {
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal(body, &want) != nil {
			return
		}
		var params map[string]json.RawMessage
		_ = json.Unmarshal(want.Params, &params)
		inner := map[string]json.RawMessage{"tools/call": params["arguments"], "subscriptions/listen": params["notifications"]}[m.method]
		if m.method != want.Method || !bytes.Equal(m.inner, inner) {
			t.Fatalf("method %q with %q, want %q with %q", m.method, m.inner, want.Method, inner)
		}
	})
}
