package mcpbridge_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// runServer runs a server as the command does. stop tells it to end, and ended gives what Run returned.
func runServer(t *testing.T, change ...func(*mcpbridge.Options)) (b *bench, stop func(), ended chan error) {
	t.Helper()
	b = serve(t, change...)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- b.server.Run(ctx, listener) }()
	b.url, b.client = "http://"+listener.Addr().String(), &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		cancel()
		b.client.CloseIdleConnections()
	})
	return b, cancel, ended
}

func TestDrain(t *testing.T) {
	b, stop, ended := runServer(t)
	stream := b.listen(inboxFilter)
	expect(t, stream, acknowledged)
	poll := make(chan *answer)
	go func() { poll <- b.call("block", `{}`) }()
	<-b.set.entered
	stop()
	expect(t, stream, endOfStream, "")
	if a := <-poll; a.Result.IsError || !strings.Contains(a.Result.Content[0].Text, "drain") {
		t.Errorf("the long poll: %+v", a.Result)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	r := b.request(http.MethodPost, "/mcp", listTools)
	if resp, err := b.client.Do(r); err == nil {
		_ = resp.Body.Close()
		t.Error("the server still answers")
	}
}

// stubborn is a toolset with a tool that nothing ends.
type stubborn struct {
	*fakeSet
}

func (s stubborn) Tools() []toolset.Tool {
	return []toolset.Tool{{Name: "stubborn", Handle: func(context.Context, *toolset.Caller, toolset.Args) (any, error) {
		s.entered <- struct{}{}
		<-s.release
		return map[string]bool{}, nil
	}}}
}

func TestDrainWaitsForAnswersButNotForever(t *testing.T) {
	set := stubborn{newFakeSet()}
	b, stop, ended := runServer(t, func(o *mcpbridge.Options) {
		o.DrainTimeout, o.Toolsets = 50*time.Millisecond, []toolset.Toolset{set}
	})
	failed := make(chan error)
	go func() {
		resp, err := b.client.Do(b.request(http.MethodPost, "/mcp",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stubborn"}}`))
		if err == nil {
			_ = resp.Body.Close()
		}
		failed <- err
	}()
	<-set.entered
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered, though nothing could answer it")
	}
	close(set.release)
}

func TestOptionsThatCannotWork(t *testing.T) {
	set, tokens := newFakeSet(), newFakeTokens()
	for name, o := range map[string]mcpbridge.Options{
		"no toolset":       {Authenticator: tokens},
		"no authenticator": {Toolsets: []toolset.Toolset{set}},
		"two of a name":    {Authenticator: tokens, Toolsets: []toolset.Toolset{set, set}},
		"no URL":           {Authenticator: tokens, Toolsets: []toolset.Toolset{set}, PublicURL: "rooms.example.com"},
		"no origin":        {Authenticator: tokens, Toolsets: []toolset.Toolset{set}, AllowedOrigins: []string{"*"}},
	} {
		if _, err := mcpbridge.New(o); err == nil {
			t.Errorf("%s: no error", name)
		} else if _, ok := problem.As(err); ok {
			t.Errorf("%s: %v is for agents", name, err)
		}
	}
}
