package mcpbridge_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agentrooms/agentrooms/mcpbridge"
)

const (
	inboxFilter = `{"resourceSubscriptions":["` + inboxURI + `"],"toolsListChanged":true}`
	tag         = `{"io.modelcontextprotocol/subscriptionId":9}`
	updated     = `data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":` + tag + `,"uri":"` + inboxURI + `"}}`
	endOfStream = `data: {"id":9,"jsonrpc":"2.0","result":{"_meta":{"io.modelcontextprotocol/serverInfo":` +
		`{"name":"agentrooms-fake","version":"1.2.3"},"io.modelcontextprotocol/subscriptionId":9},"resultType":"complete"}}`
)

func expect(t *testing.T, e *events, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if diff := cmp.Diff(want, e.next(t)); diff != "" {
			t.Fatal(diff)
		}
	}
}

const acknowledged = `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":` + tag +
	`,"notifications":{"resourceSubscriptions":["` + inboxURI + `"]}}}`

func TestAStreamAcknowledgesAndThenAnnounces(t *testing.T) {
	b := serve(t, func(o *mcpbridge.Options) { o.Settle = time.Millisecond })
	e := b.listen(inboxFilter)
	expect(t, e, acknowledged)
	if e.header.Get("X-Accel-Buffering") != "no" || !strings.Contains(e.header.Get("Cache-Control"), "no-cache") {
		t.Errorf("headers %v", e.header)
	}
	b.set.inbox <- struct{}{}
	expect(t, e, updated)
	b.set.inbox <- struct{}{}
	expect(t, e, updated)
}

func TestWhatChangesInQuickSuccessionIsAnnouncedAsOne(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	b := serve(t, withClock(clock))
	e := b.listen(inboxFilter)
	expect(t, e, acknowledged)
	b.set.inbox <- struct{}{}
	expect(t, e, updated)
	for range 5 {
		b.set.inbox <- struct{}{}
	}
	eventually(t, "the changes to be taken in", func() bool { return len(b.set.inbox) == 0 })
	e.silent(t, 20*time.Millisecond)
	eventually(t, "the timer", func() bool { return clock.HasWaiters() })
	clock.Step(200 * time.Millisecond)
	expect(t, e, updated)
	clock.Step(200 * time.Millisecond)
	e.silent(t, 20*time.Millisecond)
}

func TestASilentStreamIsKeptAlive(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	b := serve(t, withClock(clock))
	e := b.listen(inboxFilter)
	expect(t, e, acknowledged)
	eventually(t, "the stream to wait", func() bool { s, _ := b.set.touches(); return len(s) > 0 })
	for range 3 {
		clock.Step(20 * time.Second)
		expect(t, e, ": keep-alive")
	}
	if _, wakeable := b.set.touches(); !wakeable[len(wakeable)-1] {
		t.Error("whoever listens can be woken")
	}
	b.call("zero", `{}`)
	if _, wakeable := b.set.touches(); !wakeable[len(wakeable)-1] {
		t.Error("whoever listens can be woken, also while it calls")
	}
}

// An instance says which one it is, so that the others see that this one can be woken.
func TestAStreamBelongsToAnInstance(t *testing.T) {
	b := serve(t)
	body, headers := modernBody(9, "subscriptions/listen", "", `"notifications":`+inboxFilter)
	hint := strings.Replace(body, `"_meta":{`, `"_meta":{"agentrooms.dev/session_id":"mine",`, 1)
	e := b.read(b.request(http.MethodPost, "/mcp", hint, headers...))
	expect(t, e, acknowledged)
	for arguments, want := range map[string]bool{`{"session_id":"mine"}`: true, `{"session_id":"other"}`: false} {
		b.call("zero", arguments)
		if _, wakeable := b.set.touches(); wakeable[len(wakeable)-1] != want {
			t.Errorf("%s: wakeable is %v", arguments, !want)
		}
	}
	wrong := strings.Replace(body, `"_meta":{`, `"_meta":{"agentrooms.dev/session_id":7,`, 1)
	if resp, got := b.post(wrong, headers...); resp.StatusCode != 400 || !strings.Contains(string(got), "session_id") {
		t.Errorf("status %d: %s", resp.StatusCode, got)
	}
}

func TestAStreamEndsProperly(t *testing.T) {
	for name, end := range map[string]func(*bench, *clocktesting.FakeClock){
		"when the server drains":         func(b *bench, _ *clocktesting.FakeClock) { b.server.Drain() },
		"when it is old":                 func(_ *bench, c *clocktesting.FakeClock) { c.Step(31 * time.Minute) },
		"when the right is lost":         func(b *bench, _ *clocktesting.FakeClock) { close(b.set.inbox) },
		"when the token is revoked":      func(b *bench, c *clocktesting.FakeClock) { b.revoke(); c.Step(time.Minute) },
		"when the agent is gone":         func(b *bench, c *clocktesting.FakeClock) { b.forget(); c.Step(time.Minute) },
		"when nobody can check for long": func(b *bench, c *clocktesting.FakeClock) { b.away(c) },
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Now())
			b := serve(t, withClock(clock), func(o *mcpbridge.Options) { o.KeepAlive = time.Hour })
			e := b.listen(inboxFilter)
			expect(t, e, acknowledged)
			eventually(t, "the stream to wait", func() bool { s, _ := b.set.touches(); return len(s) > 0 })
			end(b, clock)
			expect(t, e, endOfStream, "")
		})
	}
}

func (b *bench) revoke() {
	b.tokens.set(func() { b.tokens.bad = map[string]bool{"agent-ada": true} })
}

func (b *bench) forget() {
	b.set.mu.Lock()
	defer b.set.mu.Unlock()
	b.set.lost = true
}

func (b *bench) away(clock *clocktesting.FakeClock) {
	b.tokens.set(func() { b.tokens.down = true })
	for i := range 3 {
		clock.Step(time.Minute)
		eventually(b.t, "a check", func() bool { return b.tokens.count("agent-ada") == 2+i })
	}
}

func TestAStreamAboutNothingEndsAtOnce(t *testing.T) {
	b := serve(t)
	e := b.listen(`{"toolsListChanged":true}`)
	expect(t, e, `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":`+tag+
		`,"notifications":{}}}`, endOfStream, "")
}

func TestRefusedBeforeTheStreamBegins(t *testing.T) {
	b := serve(t)
	filter := func(uris ...string) string {
		return `"notifications":{"resourceSubscriptions":["` + strings.Join(uris, `","`) + `"]}`
	}
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprintf("rooms://%d", i)
	}
	for name, c := range map[string]struct {
		params, token string
		status, code  int
		says          string
	}{
		"what it may not see":     {filter(inboxURI, "rooms://inbox/other"), "agent-ada", 400, -32602, "rooms://inbox/other"},
		"a person":                {filter(inboxURI), "person-bob", 403, -32600, "IDENTITY_REQUIRED"},
		"too many":                {filter(many...), "agent-ada", 400, -32602, "at most 32"},
		"an empty URI":            {filter(""), "agent-ada", 400, -32602, "1 to 2048"},
		"another form":            {`"notifications":{"resourceSubscriptions":"x"}`, "agent-ada", 400, -32602, "resourceSubscriptions"},
		"a list for a filter":     {`"notifications":[]`, "agent-ada", 400, -32602, "filter"},
		"too deep":                {`"notifications":` + strings.Repeat("[", 99) + strings.Repeat("]", 99), "agent-ada", 400, -32602, "64 levels"},
		"another protocol header": {filter(inboxURI), "mismatch", 400, -32020, "does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			headers := []string{"Authorization", "Bearer " + c.token}
			if c.token == "mismatch" {
				headers = []string{"Mcp-Method", "tools/list"}
			}
			resp, body := b.modernCall("subscriptions/listen", "", c.params, headers...)
			a := decode(t, body)
			if resp.StatusCode != c.status || a.Error == nil || a.Error.Code != c.code || !strings.Contains(string(body), c.says) || a.ID != 1.0 {
				t.Errorf("status %d: %s", resp.StatusCode, body)
			}
		})
	}
	resp, body := b.post(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{}}}`)
	if a := decode(t, body); a.Error == nil || a.Error.Code != -32601 {
		t.Errorf("in the older era: status %d: %s", resp.StatusCode, body)
	}
}

func TestAnAgentHasOnlySoManyStreams(t *testing.T) {
	b := serve(t, func(o *mcpbridge.Options) { o.MaxStreamsPerAgent, o.MaxConcurrent = 2, 1 })
	first := b.listen(inboxFilter)
	second := b.listen(inboxFilter)
	expect(t, first, acknowledged)
	expect(t, second, acknowledged)
	resp, body := b.modernCall("subscriptions/listen", "", `"notifications":`+inboxFilter)
	if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), "RATE_LIMITED") {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	if a := b.call("zero", `{}`); a.Result.IsError {
		t.Error("streams are counted among the requests")
	}
	first.cancel()
	eventually(t, "a place", func() bool {
		resp, _ := b.modernCall("subscriptions/listen", "", `"notifications":{"resourceSubscriptions":["x"]}`)
		return resp.StatusCode == http.StatusBadRequest
	})
}
