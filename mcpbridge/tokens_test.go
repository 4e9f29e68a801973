package mcpbridge_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/mcpbridge"
)

func withClock(c *clocktesting.FakeClock) func(*mcpbridge.Options) {
	return func(o *mcpbridge.Options) { o.Clock = c }
}

func (b *bench) status(token string) int {
	resp, _ := b.post(listTools, "Authorization", "Bearer "+token)
	return resp.StatusCode
}

func TestATokenIsReviewedOnceAMinute(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	b := serve(t, withClock(clock))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if s := b.status("agent-ada"); s != 200 {
				t.Errorf("status %d", s)
			}
		})
	}
	all.Wait()
	if n := b.tokens.count("agent-ada"); n != 1 {
		t.Errorf("%d reviews for 20 requests", n)
	}
	clock.Step(59 * time.Second)
	b.status("agent-ada")
	if n := b.tokens.count("agent-ada"); n != 1 {
		t.Errorf("%d reviews within a minute", n)
	}
	clock.Step(2 * time.Second)
	b.status("agent-ada")
	if n := b.tokens.count("agent-ada"); n != 2 {
		t.Errorf("%d reviews after a minute", n)
	}
}

func TestATokenIsNotBelievedBeyondItsOwnEnd(t *testing.T) {
	start := time.Now()
	clock := clocktesting.NewFakeClock(start)
	b := serve(t, withClock(clock))
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, start.Unix()+10))
	token := "agent-ada." + claims + ".c2ln"
	b.status(token)
	b.tokens.set(func() { b.tokens.bad = map[string]bool{token: true} })
	clock.Step(5 * time.Second)
	if s := b.status(token); s != 200 {
		t.Errorf("before its end: status %d", s)
	}
	clock.Step(6 * time.Second)
	if s := b.status(token); s != 401 {
		t.Errorf("after its end: status %d", s)
	}
}

func TestARefusalIsRememberedShortly(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	b := serve(t, withClock(clock))
	b.status("nobody")
	b.status("nobody")
	if n := b.tokens.count("nobody"); n != 1 {
		t.Errorf("%d reviews", n)
	}
	clock.Step(6 * time.Second)
	b.status("nobody")
	if n := b.tokens.count("nobody"); n != 2 {
		t.Errorf("%d reviews after 6 s", n)
	}
}

func TestWhileTheAPIServerIsAwayNobodyIsLetInAnew(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	b := serve(t, withClock(clock))
	b.status("agent-ada")
	b.tokens.set(func() { b.tokens.down = true })
	if s := b.status("agent-ada"); s != 200 {
		t.Errorf("a token that was just reviewed: status %d", s)
	}
	clock.Step(61 * time.Second)
	resp, body := b.post(listTools)
	if p := envelopeOf(t, body); resp.StatusCode != 503 || p.Code != problem.Unavailable || !p.Retryable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("status %d: %+v", resp.StatusCode, p)
	}
	if resp.Header.Get("WWW-Authenticate") != "" {
		t.Error("the client is told that its token is bad, which nobody knows")
	}
	b.tokens.set(func() { b.tokens.down = false })
	if s := b.status("agent-ada"); s != 200 {
		t.Errorf("when it is back: status %d", s)
	}
}

func TestTokenReview(t *testing.T) {
	for name, c := range map[string]struct {
		status authenticationv1.TokenReviewStatus
		fail   error
		want   string
		bad    bool
	}{
		"accepted": {
			status: authenticationv1.TokenReviewStatus{
				Authenticated: true, Audiences: []string{"agentrooms"}, User: authenticationv1.UserInfo{Username: "ada"},
			}, want: "ada",
		},
		"refused": {status: authenticationv1.TokenReviewStatus{Error: "expired"}, bad: true},
		"for somebody else": {
			status: authenticationv1.TokenReviewStatus{
				Authenticated: true, Audiences: []string{"other"}, User: authenticationv1.UserInfo{Username: "ada"},
			}, bad: true,
		},
		"by a server without audiences": {
			status: authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "ada"}}, bad: true,
		},
		"nobody": {status: authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{"agentrooms"}}, bad: true},
		"away":   {fail: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				review := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
				if review.Spec.Token != "secret" || len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != "agentrooms" {
					t.Errorf("asked %+v", review.Spec)
				}
				review.Status = c.status
				return true, review, c.fail
			})
			r := &mcpbridge.TokenReviewer{Reviews: client.AuthenticationV1().TokenReviews(), Audience: "agentrooms"}
			got, err := r.Authenticate(t.Context(), "secret")
			if got != c.want || errors.Is(err, mcpbridge.ErrUnauthenticated) != c.bad || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// A client that leaves must not take the review along that others wait for.
func TestAReviewSurvivesWhoeverAskedFirst(t *testing.T) {
	b := serve(t)
	gate := make(chan struct{})
	b.tokens.set(func() { b.tokens.gate = gate })
	impatient := b.request(http.MethodPost, "/mcp", listTools)
	left := make(chan struct{})
	client := *b.client
	client.Timeout = 50 * time.Millisecond
	go func() {
		defer close(left)
		if resp, err := client.Do(impatient); err == nil {
			_ = resp.Body.Close()
			t.Error("it got an answer")
		}
	}()
	eventually(t, "the review", func() bool { return b.tokens.count("agent-ada") == 1 })
	patient := make(chan int)
	go func() { patient <- b.status("agent-ada") }()
	<-left
	close(gate)
	if s := <-patient; s != 200 {
		t.Errorf("status %d", s)
	}
}
