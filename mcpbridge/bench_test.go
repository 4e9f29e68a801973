package mcpbridge_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// BenchmarkEmptyTool calls a tool that does nothing, over HTTP on loopback, with 32 clients in the same process. The bare
// one is mcp-go by itself: what the bridge adds is the difference.
func BenchmarkEmptyTool(b *testing.B) {
	older := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"zero","arguments":{}}}`
	newer, headers := modernBody(1, "tools/call", "zero", `"name":"zero","arguments":{}`)
	b.Run("bare", func(b *testing.B) {
		m := server.NewMCPServer("bare", "1")
		m.AddTool(mcp.NewTool("zero"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultStructured(map[string]bool{"ok": true}, `{"ok":true}`), nil
		})
		ts := httptest.NewServer(server.NewStreamableHTTPServer(m, server.WithStateLess(true)))
		b.Cleanup(ts.Close)
		hammer(b, &bench{t: b, url: ts.URL, client: ts.Client()}, older)
	})
	b.Run(legacy, func(b *testing.B) { hammer(b, serve(b), older) })
	b.Run(modern, func(b *testing.B) { hammer(b, serve(b), newer, headers...) })
}

// hammer sends the same body over and over.
func hammer(b *testing.B, s *bench, body string, headers ...string) {
	b.Helper()
	s.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := s.request(http.MethodPost, "/mcp", "", headers...)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			resp, err := s.client.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				b.Error(fmt.Errorf("status %d", resp.StatusCode))
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
