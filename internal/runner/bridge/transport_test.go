package bridge

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentrooms/agentrooms/internal/problem"
)

func tokenFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func options(url, file string) Options { return Options{URL: url, TokenFile: file, Session: "s"} }

func TestTheTokenIsReadForEachCallAndGoesNowhereElse(t *testing.T) {
	var seen []string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("somebody else got %q", r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	file := tokenFile(t, "first\n")
	c, err := New(options(server.URL, file))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, token := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.Call(t.Context(), "whoami", nil, nil); err == nil {
			t.Error("a redirection counts as an answer")
		}
	}
	if got := strings.Join(seen, ","); got != "Bearer first,Bearer second" {
		t.Errorf("the bridge saw %s", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := c.Call(t.Context(), "whoami", nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
}

func TestWhatCannotBeATokenIsRefusedAtOnce(t *testing.T) {
	for content, want := range map[string]string{
		"": "is empty", " \n": "is empty", "two words": "more than a token", strings.Repeat("x", maxTokenBytes+1): "too large", "ok": "",
	} {
		_, err := New(options("http://127.0.0.1:1/mcp", tokenFile(t, content)))
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%.20q: %v, want %q", content, err, want)
		}
	}
}

func TestWhatCannotBeABridgeIsRefusedAtOnce(t *testing.T) {
	file := tokenFile(t, "x")
	for _, url := range []string{"", "127.0.0.1:7600", "ftp://host/mcp", "http:///mcp", "http://user:secret@host/mcp", "://"} {
		if _, err := New(options(url, file)); err == nil {
			t.Errorf("%q is accepted", url)
		}
	}
	if _, err := New(Options{URL: "http://host/mcp", TokenFile: file, Session: strings.Repeat("x", 65)}); err == nil {
		t.Error("a name of 65 characters is accepted")
	}
}

func TestAnswersAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		code   problem.Code
		want   string
	}{
		"refused token":  {http.StatusUnauthorized, `{}`, problem.IdentityRequired, "does not accept the token"},
		"wrong path":     {http.StatusNotFound, `no`, "", "ends with /mcp"},
		"a tool's error": {http.StatusOK, rpc(`{"isError":true,"structuredContent":{"error":{"code":"CONFLICT","status":409,"message":"no"}}}`), problem.Conflict, "no"},
		"no envelope":    {http.StatusOK, rpc(`{"isError":true,"structuredContent":{}}`), "", "no known form"},
		"no JSON":        {http.StatusOK, `<html>`, "", "calling whoami"},
		"away":           {http.StatusBadGateway, `<html>`, "", "502"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(tc.status)
			_, _ = w.Write([]byte(tc.body))
		}))
		c, err := New(options(server.URL, tokenFile(t, "x")))
		if err != nil {
			t.Fatal(err)
		}
		err = c.Call(t.Context(), "whoami", nil, nil)
		p, _ := problem.As(err)
		if err == nil || !strings.Contains(err.Error(), tc.want) || (p != nil) != (tc.code != "") || (p != nil && p.Code != tc.code) {
			t.Errorf("%s: %v, want %s %q", name, err, tc.code, tc.want)
		}
		c.Close()
		server.Close()
	}
}

func rpc(result string) string { return `{"jsonrpc":"2.0","id":1,"result":` + result + `}` }
