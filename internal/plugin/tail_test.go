package plugin_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/agentrooms/agentrooms/internal/acts"
	"github.com/agentrooms/agentrooms/test/people"
)

// flaky stands before the API server: watches end after a moment, and every third one is refused as too old.
func flaky(t *testing.T, cfg *rest.Config) (server *rest.Config, watches *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(cfg.Host)
	must(t, err)
	transport, err := rest.TransportFor(cfg)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	watches = &atomic.Int64{}
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			proxy.ServeHTTP(w, r)
			return
		}
		if watches.Add(1)%3 == 0 {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}}`)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		defer cancel()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}))
	front.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	front.StartTLS()
	t.Cleanup(front.Close)
	return &rest.Config{Host: front.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, BearerToken: cfg.BearerToken}, watches
}

// The log is followed through watches that end and expire, without a hole or a double.
func TestTheTailHasNoHoleAndNoDouble(t *testing.T) {
	h := people.New(t)
	const before, during = 30, 60
	speaker := h.As(people.Ada)
	say := func(n int) {
		t.Helper()
		_, err := speaker.Send(t.Context(), h.Room, acts.Draft{Text: fmt.Sprint(n)})
		must(t, err)
	}
	for n := range before {
		say(n + 1)
	}
	cfg, watches := flaky(t, h.Env.As(people.Rita, "system:authenticated"))
	x := sit(h, people.Rita)
	x.file = kubeconfig(t, cfg, h.Namespace)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errs, code := x.start(ctx, "tail", "lab", "--lines", "10", "-o", "json")
	for n := range during {
		say(before + n + 1)
		if n%10 == 0 { // so that watches end while nothing is said, too
			seen := watches.Load()
			must(t, wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
				return watches.Load() > seen+1, nil
			}))
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return strings.Contains(out.String(), fmt.Sprintf(`"seq":%d,`, before+during)), nil
	})
	if err != nil {
		t.Fatalf("the last message does not come: %v\n%s\n%s", err, out, errs)
	}
	cancel()
	if c := <-code; c != 0 {
		t.Errorf("it ends with %d: %s", c, errs)
	}
	next := before - 10 + 1
	first := next
	for line := range strings.Lines(out.String()) {
		var m struct {
			Seq  int
			Body string
		}
		must(t, json.Unmarshal([]byte(line), &m))
		if first == next && m.Seq > first {
			next = m.Seq // the tail may have begun after the first words of the second part
		}
		if m.Seq != next || m.Body != fmt.Sprint(m.Seq) {
			t.Fatalf("after %d comes %d, which says %q", next-1, m.Seq, m.Body)
		}
		next++
	}
	if next != before+during+1 {
		t.Errorf("it ends before %d", next)
	}
	if watches.Load() < 6 {
		t.Errorf("there were %d watches: too few to prove anything", watches.Load())
	}
}

func TestHowFarBackTheTailBegins(t *testing.T) {
	h := people.New(t)
	rita := sit(h, people.Rita)
	if out := rita.ok(nil, "tail", "lab", "--follow=false"); out != "" {
		t.Errorf("an empty room says %q", out)
	}
	for n := range 5 {
		_, err := h.As(people.Ada).Send(t.Context(), h.Room, acts.Draft{Text: fmt.Sprint(n + 1)})
		must(t, err)
	}
	for _, tc := range []struct {
		want int
		args []string
	}{
		{5, nil}, {2, words{"--lines", "2"}}, {0, words{"--lines", "0"}}, {5, words{"--since", "1h"}}, {3, words{"--since", "1h", "--lines", "3"}},
		{0, words{"--since", "1ns"}},
	} {
		out := rita.ok(nil, append([]string{"tail", "lab", "--follow=false", "-o", "json"}, tc.args...)...)
		if got := strings.Count(out, "\n"); got != tc.want {
			t.Errorf("%v shows %d messages, want %d:\n%s", tc.args, got, tc.want, out)
		}
	}
}
