package mcpbridge_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkEmptyTool calls a tool that does nothing, over HTTP on loopback, with 32 clients in the same process.
func BenchmarkEmptyTool(b *testing.B) {
	for _, era := range []string{legacy, modern} {
		b.Run(era, func(b *testing.B) {
			s := serve(b)
			s.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"zero","arguments":{}}}`
			var headers []string
			if era == modern {
				body, headers = modernBody(1, "tools/call", "zero", `"name":"zero","arguments":{}`)
			}
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
		})
	}
}
