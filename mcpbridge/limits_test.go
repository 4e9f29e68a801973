package mcpbridge_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

func TestEachAgentHasItsOwnLimits(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	b := serve(t, withClock(clock), func(o *mcpbridge.Options) { o.RateLimits = nil })
	for i := range 60 {
		if a := b.call("send", `{}`); a.Result.IsError {
			t.Fatalf("call %d: %s", i, a.Result.StructuredContent)
		}
	}
	p := b.call("send", `{}`).toolError(t)
	if p.Code != problem.RateLimited || !p.Retryable || p.RetryAfterSeconds != 1 {
		t.Errorf("%+v", p)
	}
	if p := b.call("send", `{"nonsense":1}`).toolError(t); p.Code != problem.Validation {
		t.Errorf("wrong arguments are told before the limit, but: %+v", p)
	}
	if a := b.call("zero", `{}`); a.Result.IsError {
		t.Error("another bucket is used up, too")
	}
	if a := b.call("send", `{}`, "Authorization", "Bearer agent-eve"); a.Result.IsError {
		t.Error("another agent pays for it")
	}
	clock.Step(time.Second)
	if a := b.call("send", `{}`); a.Result.IsError {
		t.Error("after the time that it was told to wait it is still refused")
	}
	want := "# HELP agentrooms_rate_limited_total Requests refused because the agent had too many, by the limit that they ran into.\n" +
		"# TYPE agentrooms_rate_limited_total counter\nagentrooms_rate_limited_total{bucket=\"send\"} 1\n"
	if err := testutil.GatherAndCompare(b.reg, strings.NewReader(want), "agentrooms_rate_limited_total"); err != nil {
		t.Error(err)
	}
}

func TestALimitMayBeZero(t *testing.T) {
	b := serve(t, func(o *mcpbridge.Options) { o.RateLimits = mcpbridge.RateLimits{toolset.BucketSend: 0} })
	if p := b.call("send", `{}`).toolError(t); p.Code != problem.RateLimited || p.RetryAfterSeconds != 60 {
		t.Errorf("%+v", p)
	}
}

func TestAnAgentHasOnlySoManyRequestsUnderWay(t *testing.T) {
	b := serve(t, func(o *mcpbridge.Options) { o.MaxConcurrent = 3 })
	done := make(chan *answer, 3)
	for range 3 {
		go func() { done <- b.call("block", `{}`) }()
	}
	for range 3 {
		<-b.set.entered
	}
	if p := b.call("zero", `{}`).toolError(t); p.Code != problem.RateLimited {
		t.Errorf("%+v", p)
	}
	if resp, body := b.modernCall("tools/list", "", ""); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	if a := b.call("zero", `{}`, "Authorization", "Bearer agent-eve"); a.Result.IsError {
		t.Error("another agent pays for it")
	}
	close(b.set.release)
	for range 3 {
		<-done
	}
	eventually(t, "room", func() bool { return !b.call("zero", `{}`).Result.IsError })
}

func TestACallEndsInTime(t *testing.T) {
	b := serve(t, func(o *mcpbridge.Options) {
		o.CallTimeouts = map[string]time.Duration{"block": 20 * time.Millisecond}
	})
	if p := b.call("block", `{}`).toolError(t); p.Code != problem.Unavailable || !p.Retryable {
		t.Errorf("%+v", p)
	}
}
