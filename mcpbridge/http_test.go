package mcpbridge_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge"
)

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// envelopeOf reads the error envelope of an answer that is no JSON-RPC message.
func envelopeOf(t *testing.T, body []byte) problem.Problem {
	t.Helper()
	var e struct{ Error problem.Problem }
	if err := json.Unmarshal(body, &e); err != nil || e.Error.Code == "" {
		t.Fatalf("no envelope (%v): %s", err, body)
	}
	return e.Error
}

func TestWhoeverHasNoTokenIsToldWhereToGetOne(t *testing.T) {
	b := serve(t)
	for name, c := range map[string]struct {
		method, path, authorization, challenge string
	}{
		"no token":         {http.MethodPost, "/mcp", "", `Bearer resource_metadata="URL/.well-known/oauth-protected-resource/mcp"`},
		"another path":     {http.MethodPost, "/mcp/fake", "", `Bearer resource_metadata="URL/.well-known/oauth-protected-resource/mcp/fake"`},
		"a bad token":      {http.MethodPost, "/mcp", "Bearer nobody", `Bearer resource_metadata="URL/.well-known/oauth-protected-resource/mcp", error="invalid_token"`},
		"another scheme":   {http.MethodPost, "/mcp", "Basic YTpi", `Bearer resource_metadata="URL/.well-known/oauth-protected-resource/mcp", error="invalid_token"`},
		"an endless token": {http.MethodPost, "/mcp", "Bearer agent-" + strings.Repeat("x", 20_000), `Bearer resource_metadata="URL/.well-known/oauth-protected-resource/mcp", error="invalid_token"`},
		"get":              {http.MethodGet, "/mcp", "", `Bearer resource_metadata="URL/.well-known/oauth-protected-resource/mcp"`},
		"delete":           {http.MethodDelete, "/mcp", "", `Bearer resource_metadata="URL/.well-known/oauth-protected-resource/mcp"`},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := b.do(b.request(c.method, c.path, listTools, "Authorization", c.authorization))
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("status %d", resp.StatusCode)
			}
			if diff := cmp.Diff(strings.ReplaceAll(c.challenge, "URL", b.url), resp.Header.Get("WWW-Authenticate")); diff != "" {
				t.Error(diff)
			}
			if p := envelopeOf(t, body); p.Code != problem.IdentityRequired || p.Hint == "" {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestTheMetadataNameTheResourceAsTheClientReachesIt(t *testing.T) {
	for name, c := range map[string]struct{ public, want string }{
		"what the client called": {"", "URL"},
		"the public URL":         {"https://rooms.example.com/", "https://rooms.example.com"},
		"written with the path":  {"https://rooms.example.com/mcp", "https://rooms.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			b := serve(t, func(o *mcpbridge.Options) {
				o.PublicURL, o.AuthorizationServers = c.public, []string{"https://issuer.example.com"}
			})
			for path, resource := range map[string]string{"": "/mcp", "/mcp": "/mcp", "/mcp/fake": "/mcp/fake"} {
				resp, body := b.do(b.request(http.MethodGet, "/.well-known/oauth-protected-resource"+path, "", "Authorization", ""))
				var got struct {
					Resource             string   `json:"resource"`
					AuthorizationServers []string `json:"authorization_servers"`
				}
				if err := json.Unmarshal(body, &got); err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("status %d: %s", resp.StatusCode, body)
				}
				if want := strings.Replace(c.want, "URL", b.url, 1) + resource; got.Resource != want {
					t.Errorf("the resource is %s, want %s", got.Resource, want)
				}
				if len(got.AuthorizationServers) != 1 {
					t.Errorf("issuers %v", got.AuthorizationServers)
				}
			}
		})
	}
}

func TestOnlyPostIsServed(t *testing.T) {
	b := serve(t)
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut, http.MethodHead, http.MethodOptions} {
		resp, _ := b.do(b.request(method, "/mcp", ""))
		if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != http.MethodPost {
			t.Errorf("%s: status %d, Allow %q", method, resp.StatusCode, resp.Header.Get("Allow"))
		}
	}
}

func TestOrigins(t *testing.T) {
	b := serve(t, func(o *mcpbridge.Options) {
		o.PublicURL, o.AllowedOrigins = "https://rooms.example.com", []string{"https://Board.example.com:443"}
	})
	for name, c := range map[string]struct {
		origin, host string
		status       int
	}{
		"no page":                      {"", "", 200},
		"a page on this machine":       {"http://localhost:6274", "", 200},
		"by address":                   {"http://127.0.0.1:1", "", 200},
		"an allowed page":              {"https://board.example.com", "", 200},
		"the server's own":             {"https://rooms.example.com", "", 200},
		"a foreign page":               {"https://evil.example.com", "", 403},
		"an opaque page":               {"null", "", 403},
		"a name made to point here":    {"http://evil.example.com", "evil.example.com", 403},
		"the same without origin":      {"", "evil.example.com", 403},
		"a service through a sidecar":  {"", "agentrooms-bridge.agentrooms-system.svc", 200},
		"with the cluster's domain":    {"", "agentrooms-bridge.agentrooms-system.svc.cluster.local:80", 200},
		"a service by its short name":  {"", "agentrooms-bridge", 200},
		"a public name like a service": {"", "a.b.svc.evil.com", 403},
		"the public name":              {"", "rooms.example.com", 200},
		"loopback by name":             {"", "localhost:1234", 200},
		"loopback of the other kind":   {"", "[::1]:80", 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.request(http.MethodPost, "/mcp", listTools, "Origin", c.origin)
			if c.host != "" {
				r.Host = c.host
			}
			resp, body := b.do(r)
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, c.status, body)
			}
			if allow := resp.Header.Get("Access-Control-Allow-Origin"); c.status == 200 && allow != c.origin {
				t.Errorf("Access-Control-Allow-Origin %q", allow)
			}
		})
	}
}

func TestAnAllowedPageMayAskBeforehand(t *testing.T) {
	b := serve(t, func(o *mcpbridge.Options) { o.AllowedOrigins = []string{"https://board.example.com"} })
	ask := []string{"Authorization", "", "Access-Control-Request-Method", "POST", "Origin"}
	resp, _ := b.do(b.request(http.MethodOptions, "/mcp", "", append(ask, "https://board.example.com")...))
	if resp.StatusCode != http.StatusNoContent || !strings.Contains(resp.Header.Get("Access-Control-Allow-Headers"), "Mcp-Protocol-Version") {
		t.Errorf("status %d, headers %v", resp.StatusCode, resp.Header)
	}
	if resp, _ := b.do(b.request(http.MethodOptions, "/mcp", "", append(ask, "https://evil.example.com")...)); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a foreign page: status %d", resp.StatusCode)
	}
}

func TestWhatIsNoJSONIsRefusedByItsType(t *testing.T) {
	b := serve(t)
	for _, headers := range [][]string{{"Content-Type", "text/plain"}, {"Content-Type", ""}, {"Content-Encoding", "gzip"}} {
		if resp, body := b.post(listTools, headers...); resp.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("%v: status %d: %s", headers, resp.StatusCode, body)
		}
	}
	if resp, body := b.post(listTools, "Content-Type", "application/json; charset=utf-8"); resp.StatusCode != http.StatusOK {
		t.Errorf("with a charset: status %d: %s", resp.StatusCode, body)
	}
}

func TestABodyBeyondTheLimitIsToldTheLimit(t *testing.T) {
	b := serve(t, func(o *mcpbridge.Options) { o.MaxBodyBytes = 4096 })
	resp, body := b.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","x":"` + strings.Repeat("x", 5000) + `"}`)
	if p := envelopeOf(t, body); resp.StatusCode != http.StatusRequestEntityTooLarge || p.Code != problem.TooLarge ||
		!strings.Contains(p.Message, "4096") {
		t.Errorf("status %d: %+v", resp.StatusCode, p)
	}
}

func TestMessagesThatAreNone(t *testing.T) {
	b := serve(t)
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	for name, c := range map[string]struct {
		body string
		code int
		says string
	}{
		"nothing":                {``, -32700, "JSON object"},
		"no JSON":                {`{`, -32700, "well-formed"},
		"two messages":           {listTools + listTools, -32700, "well-formed"},
		"a list":                 {`[` + listTools + `]`, -32600, "batches"},
		"a number":               {`7`, -32700, "JSON object"},
		"broken inside":          {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":[}]}}`, -32700, "well-formed"},
		"broken in arguments":    {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"x":[}]}}}`, -32700, "well-formed"},
		"another version":        {`{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, -32600, "version"},
		"method is a number":     {`{"jsonrpc":"2.0","id":1,"method":3}`, -32600, "method"},
		"id is null":             {`{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, -32600, "id"},
		"id is a list":           {`{"jsonrpc":"2.0","id":[1],"method":"tools/list"}`, -32600, "id"},
		"id has a fraction":      {`{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`, -32600, "id"},
		"id is too exact":        {`{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/list"}`, -32600, "53 bits"},
		"id is endless":          {`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"tools/list"}`, -32600, "256"},
		"doubled method":         {`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"ping"}`, -32600, "only once"},
		"doubled in other case":  {`{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"ping"}`, -32600, `"method"`},
		"doubled arguments":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"arguments":{}}}`, -32600, "only once"},
		"a list of params":       {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["echo",{}]}`, -32602, "params must be an object"},
		"params is a text":       {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}`, -32602, "params must be an object"},
		"too deep":               {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":` + deep + `}`, -32600, "64 levels"},
		"no UTF-8 in the params": {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":{\"uri\":\"\xff\"}}", -32700, "UTF-8"},
		"a tool's endless name":  {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + strings.Repeat("x", 200) + `"}}`, -32602, "128"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := b.post(c.body)
			a := decode(t, body)
			if a.Error == nil || a.Error.Code != c.code || !strings.Contains(a.Error.Message, c.says) {
				t.Errorf("status %d: %s", resp.StatusCode, body)
			}
			if name != "another version" && resp.StatusCode != http.StatusBadRequest {
				t.Errorf("status %d", resp.StatusCode)
			}
		})
	}
}

func TestTheProtocolVersionIsStatedOnce(t *testing.T) {
	b := serve(t)
	r := b.request(http.MethodPost, "/mcp", listTools)
	r.Header["Mcp-Protocol-Version"] = []string{"2025-06-18", "2026-07-28"}
	resp, body := b.do(r)
	if a := decode(t, body); a.Error == nil || a.Error.Code != -32600 || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
}

func TestWordsThatNeedNoAnswerGetNone(t *testing.T) {
	b := serve(t)
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
	} {
		if resp, got := b.post(body); resp.StatusCode != http.StatusAccepted || len(got) != 0 {
			t.Errorf("%s: status %d: %s", body, resp.StatusCode, got)
		}
	}
}

// Without sessions all clients share one space of request ids: one must not cancel another's request.
func TestNobodyCancelsTheRequestOfAnother(t *testing.T) {
	b := serve(t)
	done := make(chan *answer)
	go func() { done <- b.call("block", `{}`) }()
	<-b.set.entered
	b.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, "Authorization", "Bearer agent-eve")
	close(b.set.release)
	if a := <-done; a.Result.IsError || !strings.Contains(a.Result.Content[0].Text, "released") {
		t.Errorf("%+v", a.Result)
	}
}

func TestRequestIDs(t *testing.T) {
	b := serve(t)
	for given, kept := range map[string]bool{"abc-123": true, "": false, strings.Repeat("x", 65): false, "a b": false, `a"b`: false} {
		resp, _ := b.post(listTools, "X-Request-Id", given)
		got := resp.Header.Get("X-Request-Id")
		if (got == given) != kept || got == "" {
			t.Errorf("%q became %q", given, got)
		}
	}
}

func TestAPanicOutsideOfAToolIsAnsweredToo(t *testing.T) {
	b := serve(t)
	resp, body := b.post(listTools, "Authorization", "Bearer agent-panic")
	if p := envelopeOf(t, body); resp.StatusCode != 500 || p.Code != problem.Internal || strings.Contains(p.Message, "hunter2") {
		t.Errorf("status %d: %+v", resp.StatusCode, p)
	}
}

func TestEachCallLeavesOneLineInTheDebugLog(t *testing.T) {
	logs := &syncBuffer{}
	b := serve(t, func(o *mcpbridge.Options) {
		o.Logger = slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	b.call("conflict", `{"workspace":"hush"}`, "X-Request-Id", "abc")
	eventually(t, "the line", func() bool { return strings.Count(logs.String(), "\n") > 0 })
	line := logs.String()
	for _, part := range []string{`"request":"abc"`, `"tool":"conflict"`, `"outcome":"CONFLICT"`, `"plate":"BRNL-AGT-ADA"`, `"status":200`} {
		if !strings.Contains(line, part) {
			t.Errorf("no %s in %s", part, line)
		}
	}
	if strings.Count(line, "\n") != 1 || strings.Contains(line, "agent-ada") || strings.Contains(line, "hush") {
		t.Errorf("it says too much: %s", line)
	}
}

func TestHealth(t *testing.T) {
	b := serve(t)
	status := func(path string) int {
		resp, _ := b.do(b.request(http.MethodGet, path, "", "Authorization", ""))
		return resp.StatusCode
	}
	if status("/healthz") != 200 || status("/readyz") != 200 {
		t.Error("a server that could serve says that it cannot")
	}
	b.set.notReady = problem.New(problem.Unavailable, "watching")
	if status("/healthz") != 200 || status("/readyz") != 503 {
		t.Error("a toolset that is not ready goes unnoticed")
	}
	b.set.notReady = nil
	b.server.Drain()
	if status("/healthz") != 200 || status("/readyz") != 503 {
		t.Error("readyz must say that the server drains")
	}
}
