package mcpbridge_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentrooms/agentrooms/mcpbridge"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// FuzzHandler sends garbage: whatever comes, the answer is JSON with a status that says whose fault it was, and nothing
// panics but the tool that is there to panic.
func FuzzHandler(f *testing.F) {
	modernTools, _ := modernBody(1, "tools/list", "", "")
	modernListen, _ := modernBody(1, "subscriptions/listen", "", `"notifications":{"resourceSubscriptions":["x"]}`)
	for _, seed := range []struct{ body, version, method, name string }{
		{listTools, "", "", ""},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, "", "", ""},
		{`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"text":"x","list":["a"]}}}`, legacy, "", ""},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"\xff\",\"text\":1}}}", "", "", ""},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"rooms://x"}}`, "", "", ""},
		{`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{}}}`, modern, "subscriptions/listen", ""},
		{modernTools, modern, "tools/list", ""},
		{modernListen, modern, "subscriptions/listen", ""},
		{strings.Repeat(`{"a":[`, 200), "", "", ""},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, "", "", ""},
		{`[]`, "", "", ""},
	} {
		f.Add(seed.body, seed.version, seed.method, seed.name)
	}
	server, err := mcpbridge.New(mcpbridge.Options{
		Toolsets: []toolset.Toolset{newFakeSet()}, Authenticator: newFakeTokens(), RateLimits: mcpbridge.RateLimits{},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.Fatal(err)
	}
	server.Drain() // so that streams end
	f.Fuzz(func(t *testing.T, body, version, method, name string) {
		if strings.Contains(body, "block") || strings.Contains(body, `\u`) {
			t.Skip("it might call the tool that waits")
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
		r.Header = http.Header{
			"Authorization": {"Bearer agent-ada"}, "Content-Type": {"application/json"},
			"Mcp-Protocol-Version": {version}, "Mcp-Method": {method}, "Mcp-Name": {name},
		}
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, r)
		answer, _ := io.ReadAll(w.Body)
		if w.Code >= 500 {
			t.Fatalf("status %d: %s", w.Code, answer)
		}
		streamed := w.Header().Get("Content-Type") == "text/event-stream"
		if len(answer) > 0 && !streamed && !json.Valid(answer) {
			t.Fatalf("status %d: no JSON: %q", w.Code, answer)
		}
	})
}
