package mcpbridge_test

import (
	"context"
	"slices"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// connect gives mcp-go's own client for a version of the protocol.
func (b *bench) connect(t *testing.T, version string) (*client.Client, *mcp.InitializeResult) {
	t.Helper()
	http, err := transport.NewStreamableHTTP(b.url+"/mcp",
		transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer agent-ada"}),
		transport.WithHTTPBasicClient(b.client))
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(http, client.WithProtocolVersion(version))
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = version
	hello.Params.ClientInfo = mcp.Implementation{Name: "test", Version: "1"}
	result, err := c.Initialize(t.Context(), hello)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	return c, result
}

func TestEveryVersionOfTheProtocolIsServed(t *testing.T) {
	b := serve(t)
	for _, version := range mcp.ValidProtocolVersions {
		t.Run(version, func(t *testing.T) {
			c, hello := b.connect(t, version)
			if hello.ProtocolVersion != version || hello.Instructions != "Try things." || hello.ServerInfo.Version != "1.2.3" {
				t.Errorf("%+v", hello)
			}
			// Only the modern era can listen; the others are not told that they could.
			if can := hello.Capabilities.Resources.Subscribe; can != (version == modern) {
				t.Errorf("resources.subscribe is %v", can)
			}
			if hello.Capabilities.Tools == nil || hello.Capabilities.Tools.ListChanged || hello.Capabilities.Prompts != nil {
				t.Errorf("%+v", hello.Capabilities)
			}
			tools, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
			if err != nil || len(tools.Tools) != 8 {
				t.Fatalf("%v, %v", tools, err)
			}
			var call mcp.CallToolRequest
			call.Params.Name, call.Params.Arguments = "echo", map[string]any{"text": "hi"}
			result, err := c.CallTool(t.Context(), call)
			if err != nil || result.IsError || result.Meta.AdditionalFields["pending_mentions"] != 3.0 {
				t.Errorf("%+v, %v", result, err)
			}
			call.Params.Name = "conflict"
			if result, err = c.CallTool(t.Context(), call); err != nil || !result.IsError {
				t.Errorf("%+v, %v", result, err)
			}
			resources, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
			if err != nil || len(resources.Resources) != 1 {
				t.Errorf("%v, %v", resources, err)
			}
			var read mcp.ReadResourceRequest
			read.Params.URI = inboxURI
			content, err := c.ReadResource(t.Context(), read)
			if err != nil || content.Contents[0].(mcp.TextResourceContents).Text != `{"waiting":3}` {
				t.Errorf("%v, %v", content, err)
			}
		})
	}
}

func TestDiscover(t *testing.T) {
	b := serve(t)
	c, _ := b.connect(t, modern)
	found, err := c.Discover(t.Context(), mcp.DiscoverRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found.SupportedVersions, mcp.ValidProtocolVersions) || !found.Capabilities.Resources.Subscribe {
		t.Errorf("%+v", found)
	}
	resp, body := b.post(`{"jsonrpc":"2.0","id":1,"method":"no/such"}`)
	if a := decode(t, body); a.Error == nil || a.Error.Code != -32601 {
		t.Errorf("an unknown method in the older era: status %d: %s", resp.StatusCode, body)
	}
	if resp, body := b.modernCall("no/such", "", ""); resp.StatusCode != 404 || decode(t, body).Error.Code != -32601 {
		t.Errorf("an unknown method in the modern era: status %d: %s", resp.StatusCode, body)
	}
}

func TestNobodyIsSubscribedWhoWouldNeverHear(t *testing.T) {
	b := serve(t)
	for _, method := range []string{"resources/subscribe", "resources/unsubscribe"} {
		resp, body := b.post(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"uri":"` + inboxURI + `"}}`)
		if a := decode(t, body); resp.StatusCode != 200 || a.Error == nil || a.Error.Code != -32601 {
			t.Errorf("%s: status %d: %s", method, resp.StatusCode, body)
		}
		if resp, body := b.modernCall(method, "", `"uri":"x"`); resp.StatusCode != 404 {
			t.Errorf("%s in the modern era: status %d: %s", method, resp.StatusCode, body)
		}
	}
}

func TestTheLibrarysClientListens(t *testing.T) {
	b := serve(t)
	c, _ := b.connect(t, modern)
	got := make(chan mcp.JSONRPCNotification, 8)
	c.OnNotification(func(n mcp.JSONRPCNotification) { got <- n })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.Listen(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{inboxURI}}) }()
	if n := <-got; n.Method != mcp.MethodNotificationSubscriptionsAcknowledged {
		t.Fatalf("first came %+v", n)
	}
	b.set.inbox <- struct{}{}
	if n := <-got; n.Method != mcp.MethodNotificationResourceUpdated || n.Params.AdditionalFields["uri"] != inboxURI {
		t.Fatalf("then came %+v", n)
	}
	b.server.Drain()
	if err := <-ended; err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}
