package board_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/signin"
	"github.com/agentrooms/agentrooms/mcpbridge"
	"github.com/agentrooms/agentrooms/mcpbridge/board"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
	"github.com/agentrooms/agentrooms/mcpbridge/view"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// served is a board on a real API server, with a room.
type served struct {
	env       *testenv.Env
	url       string
	namespace string
	room      string
}

func serve(t *testing.T, edits ...func(*board.Options)) *served {
	t.Helper()
	env := testenv.Get(t)
	v := view.New(clock.RealClock{}, nil)
	source, err := view.NewSource(v, env.Config, env.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	s := &served{env: env, namespace: env.Namespace(t)}
	room := testenv.Room(s.namespace, "launch")
	env.Create(t, room, testenv.Task(s.namespace, "launch", "write", "admin"))
	s.room = ids.ID(room)
	if err := source.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	opts := board.Options{View: v, Config: env.Config, Key: make([]byte, board.KeyBytes), Bounds: mcpbridge.Bounds{
		Take:       func(string, toolset.Bucket) *problem.Problem { return nil },
		OpenStream: func(string) (func(), bool) { return func() {}, true },
		Ready:      func() error { return nil },
	}}
	for _, edit := range edits {
		edit(&opts)
	}
	b, err := board.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// token makes somebody with a role in the namespace, none when it is empty, and gives a token of theirs.
func (s *served) token(t *testing.T, name, role string, audiences ...string) string {
	t.Helper()
	s.env.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})
	s.bind(t, role, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: s.namespace})
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	if err := s.env.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// bind gives somebody what a role of the cluster's own, viewer or editor, has of the kinds of Agent Rooms. Nobody puts roles
// together on this API server.
func (s *served) bind(t *testing.T, role string, subject rbacv1.Subject) {
	t.Helper()
	if role == "" {
		return
	}
	for _, kind := range []string{"room", "task", "agent", "consent"} {
		s.env.Create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: subject.Name + "-" + kind},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "agentrooms-" + kind + "-" + role},
			Subjects:   []rbacv1.Subject{subject},
		})
	}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func do(t *testing.T, c *http.Client, method, at string, form url.Values, headers map[string]string) answer {
	t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(t.Context(), method, at, body)
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// browser keeps cookies and follows no redirects.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (s *served) signIn(t *testing.T, token string) *http.Client {
	t.Helper()
	c := browser(t)
	if a := do(t, c, http.MethodPost, s.url+"/signin", url.Values{"token": {token}}, nil); a.status != http.StatusSeeOther {
		t.Fatalf("signing in gave %d: %s", a.status, a.body)
	}
	return c
}

var csrfToken = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func (s *served) csrf(t *testing.T, c *http.Client) string {
	t.Helper()
	found := csrfToken.FindStringSubmatch(do(t, c, http.MethodGet, s.url+"/", nil, nil).body)
	if found == nil {
		t.Fatal("the page has no token for its forms")
	}
	return found[1]
}

func TestASessionIsSealedAndHeldToItsSite(t *testing.T) {
	s := serve(t)
	token := s.token(t, "ann", "viewer")
	c := browser(t)
	a := do(t, c, http.MethodPost, s.url+"/signin", url.Values{"token": {token}}, nil)
	cookie := a.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie lacks %s: %s", want, cookie)
		}
	}
	if strings.Contains(cookie, token[:20]) {
		t.Error("the cookie shows the token")
	}
	if page := do(t, c, http.MethodGet, s.url+"/", nil, nil); !strings.Contains(page.body, "system:serviceaccount:"+s.namespace+":ann") ||
		!strings.Contains(page.body, s.room) {
		t.Errorf("the page does not show who is signed in and the room: %s", page.body)
	}
	secure := serve(t, func(o *board.Options) { o.Secure = true })
	a = do(t, browser(t), http.MethodPost, secure.url+"/signin", url.Values{"token": {secure.token(t, "ann", "")}}, nil)
	if cookie := a.header.Get("Set-Cookie"); !strings.HasPrefix(cookie, "__Host-") || !strings.Contains(cookie, "Secure") {
		t.Errorf("over https the cookie is %s", cookie)
	}
}

func TestWhoeverHasNoTokenForTheClusterIsNotSignedIn(t *testing.T) {
	s := serve(t)
	for name, tc := range map[string]struct {
		token  string
		status int
	}{
		"an agent's":     {s.token(t, "agent", "", "agentrooms"), http.StatusUnauthorized},
		"nobody's":       {"e30.e30.e30", http.StatusUnauthorized},
		"none":           {"", http.StatusBadRequest},
		"one too long":   {strings.Repeat("x", 3000), http.StatusBadRequest},
		"one with a gap": {"a b", http.StatusBadRequest},
	} {
		c := browser(t)
		a := do(t, c, http.MethodPost, s.url+"/signin", url.Values{"token": {tc.token}}, nil)
		if a.status != tc.status || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s token gave %d and the cookie %q, want %d", name, a.status, a.header.Get("Set-Cookie"), tc.status)
		}
		if a := do(t, c, http.MethodGet, s.url+"/", nil, nil); a.status != http.StatusSeeOther || a.header.Get("Location") != "/signin" {
			t.Errorf("%s token: the rooms gave %d", name, a.status)
		}
		if a := do(t, c, http.MethodGet, s.url+"/live", nil, map[string]string{"Accept": "text/event-stream"}); a.status != http.StatusUnauthorized {
			t.Errorf("%s token: the stream gave %d", name, a.status)
		}
	}
}

func TestOtherReplicasKnowTheSessionAndTheFormsOfOne(t *testing.T) {
	one := serve(t)
	c := one.signIn(t, one.token(t, "ann", "editor"))
	csrf := one.csrf(t, c)
	two := serve(t)
	// Cookies are not kept apart by port.
	a := do(t, c, http.MethodPost, two.url+"/rooms/"+one.room+"/state", url.Values{"state": {"Paused"}, "csrf": {csrf}}, nil)
	if a.status != http.StatusSeeOther {
		t.Errorf("another replica gave %d: %s", a.status, a.body)
	}
	other := serve(t, func(o *board.Options) { o.Key = nil })
	if a := do(t, c, http.MethodGet, other.url+"/", nil, nil); a.status != http.StatusSeeOther {
		t.Errorf("a replica with another key gave %d", a.status)
	}
}

func TestFormsOfOtherPagesAreRefused(t *testing.T) {
	s := serve(t)
	c := s.signIn(t, s.token(t, "ann", "editor"))
	csrf := s.csrf(t, c)
	at := s.url + "/rooms/" + s.room + "/state"
	form := url.Values{"state": {"Paused"}, "csrf": {csrf}}
	for name, tc := range map[string]struct {
		form    url.Values
		headers map[string]string
	}{
		"no token":             {url.Values{"state": {"Paused"}}, nil},
		"another token":        {url.Values{"state": {"Paused"}, "csrf": {"x"}}, nil},
		"another site":         {form, map[string]string{"Sec-Fetch-Site": "cross-site"}},
		"a sister site":        {form, map[string]string{"Sec-Fetch-Site": "same-site"}},
		"another origin":       {form, map[string]string{"Origin": "https://evil.example.com"}},
		"another port":         {form, map[string]string{"Origin": "http://127.0.0.1:1"}},
		"an origin of nowhere": {form, map[string]string{"Origin": "null"}},
	} {
		if a := do(t, c, http.MethodPost, at, tc.form, tc.headers); a.status != http.StatusForbidden {
			t.Errorf("%s gave %d", name, a.status)
		}
	}
	if a := do(t, c, http.MethodPost, at, form, map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": s.url}); a.status != http.StatusSeeOther {
		t.Errorf("the own page gave %d: %s", a.status, a.body)
	}
}

func TestEveryAnswerIsHardened(t *testing.T) {
	s := serve(t)
	c := s.signIn(t, s.token(t, "ann", "viewer"))
	for _, path := range []string{"/", "/signin", "/rooms/" + s.room, "/rooms/none", "/inbox", "/agents", "/nothing", "/static/x"} {
		a := do(t, c, http.MethodGet, s.url+path, nil, nil)
		csp := a.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy lacks %s", path, want)
			}
		}
		if strings.Contains(csp, "unsafe") || a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", path, a.header)
		}
		for _, inline := range []string{"<script>", "<style", " style=", " onclick=", "javascript:"} {
			if strings.Contains(a.body, inline) {
				t.Errorf("%s has %s in it", path, inline)
			}
		}
	}
}

func TestFormsAreBounded(t *testing.T) {
	s := serve(t)
	c := s.signIn(t, s.token(t, "ann", "editor"))
	form := url.Values{"csrf": {s.csrf(t, c)}, "text": {strings.Repeat("x", 300<<10)}}
	if a := do(t, c, http.MethodPost, s.url+"/rooms/"+s.room+"/messages", form, nil); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a form that is too large gave %d", a.status)
	}
	limited := serve(t, func(o *board.Options) {
		o.Bounds.Take = func(string, toolset.Bucket) *problem.Problem { return problem.New(problem.RateLimited, "too many") }
	})
	if a := do(t, browser(t), http.MethodPost, limited.url+"/signin", url.Values{"token": {"x"}}, nil); a.status != http.StatusTooManyRequests {
		t.Errorf("too many tries to sign in gave %d", a.status)
	}
}

func TestACodeSignsInOnce(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, func(o *board.Options) { o.CodesDir = dir })
	code, err := signin.Write(dir, s.token(t, "ann", "viewer"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{http.StatusSeeOther, http.StatusUnauthorized} {
		if a := do(t, browser(t), http.MethodPost, s.url+"/signin", url.Values{"code": {code}}, nil); a.status != want {
			t.Errorf("use %d of the code gave %d, want %d", i+1, a.status, want)
		}
	}
}

func TestAProxyIsBelievedOnlyWhereItIsTrusted(t *testing.T) {
	headers := map[string]string{"X-Remote-User": "jo"}
	without := serve(t)
	if a := do(t, browser(t), http.MethodGet, without.url+"/", nil, headers); a.status != http.StatusSeeOther {
		t.Errorf("without a trusted proxy the headers gave %d", a.status)
	}
	elsewhere := serve(t, func(o *board.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
	if a := do(t, browser(t), http.MethodGet, elsewhere.url+"/", nil, headers); a.status != http.StatusSeeOther {
		t.Errorf("the headers of another peer gave %d", a.status)
	}
	s := serve(t, func(o *board.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	a := do(t, browser(t), http.MethodGet, s.url+"/", nil, headers)
	if a.status != http.StatusOK || !strings.Contains(a.body, "no room that you may see") {
		t.Errorf("somebody without rights got %d: %s", a.status, a.body)
	}
	s.bind(t, "editor", rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "writers"})
	headers["X-Remote-Group"] = "writers"
	c := browser(t)
	page := do(t, c, http.MethodGet, s.url+"/rooms/"+s.room, nil, headers)
	if page.status != http.StatusOK || !strings.Contains(page.body, "b-pause") {
		t.Errorf("a member of the group got %d", page.status)
	}
	form := url.Values{"state": {"Paused"}, "csrf": {csrfToken.FindStringSubmatch(page.body)[1]}}
	if a := do(t, c, http.MethodPost, s.url+"/rooms/"+s.room+"/state", form, headers); a.status != http.StatusSeeOther {
		t.Errorf("a member of the group may not act: %d %s", a.status, a.body)
	}
	for _, group := range []string{"system:masters", "system:nodes"} {
		headers["X-Remote-Group"] = group
		if a := do(t, browser(t), http.MethodGet, s.url+"/", nil, headers); a.status != http.StatusSeeOther {
			t.Errorf("the group %s gave %d", group, a.status)
		}
	}
}

func TestRightsDecideWhatIsShownAndDone(t *testing.T) {
	s := serve(t)
	for _, tc := range []struct {
		name, role string
		room       int
		tasks      bool
		controls   bool
		pause      int
	}{
		{"stranger", "", http.StatusNotFound, false, false, http.StatusNotFound},
		{"reader", "viewer", http.StatusOK, true, false, http.StatusForbidden},
		{"writer", "editor", http.StatusOK, true, true, http.StatusSeeOther},
	} {
		c := s.signIn(t, s.token(t, tc.name, tc.role))
		page := do(t, c, http.MethodGet, s.url+"/rooms/"+s.room, nil, nil)
		if page.status != tc.room {
			t.Errorf("%s: the room gave %d, want %d", tc.name, page.status, tc.room)
		}
		if got := strings.Contains(page.body, `class="card`); got != tc.tasks {
			t.Errorf("%s sees tasks: %t, want %t", tc.name, got, tc.tasks)
		}
		for _, control := range []string{"b-pause", "b-new", `draggable="true"`} {
			if got := strings.Contains(page.body, control); got != tc.controls {
				t.Errorf("%s is shown %s: %t, want %t", tc.name, control, got, tc.controls)
			}
		}
		if strings.Contains(page.body, `id="log"`) || strings.Contains(page.body, `id="composer"`) {
			t.Errorf("%s may read or write messages without a role for them", tc.name)
		}
		form := url.Values{"state": {"Paused"}, "csrf": {s.csrf(t, c)}}
		if a := do(t, c, http.MethodPost, s.url+"/rooms/"+s.room+"/state", form, nil); a.status != tc.pause {
			t.Errorf("%s: pausing gave %d, want %d", tc.name, a.status, tc.pause)
		}
	}
}

var cursorIn = regexp.MustCompile(`live\?at=([^"]+)"`)

func TestAStreamSendsNothingToAPageThatIsUpToDateAndAllToOneThatIsNot(t *testing.T) {
	s := serve(t)
	c := s.signIn(t, s.token(t, "ann", "viewer"))
	page := do(t, c, http.MethodGet, s.url+"/rooms/"+s.room, nil, nil)
	at := cursorIn.FindStringSubmatch(page.body)[1]
	for name, tc := range map[string]struct {
		at   string
		sent bool
	}{
		"up to date": {at, false}, "old": {"0000000000000000.0.", true}, "nonsense": {"x", true},
	} {
		if sent := s.firstEvent(t, c, tc.at); strings.Contains(sent, "hx-swap-oob") != tc.sent {
			t.Errorf("a page that is %s got %q", name, sent)
		}
	}
}

// firstEvent gives what a stream of the room sends first.
func (s *served) firstEvent(t *testing.T, c *http.Client, at string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/rooms/"+s.room+"/live?at="+url.QueryEscape(at), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var event strings.Builder
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		event.WriteString(lines.Text() + "\n")
		if text := event.String(); strings.Contains(text, "event: u\n") && strings.HasSuffix(text, "\n\n") {
			return text
		}
	}
	t.Fatal("the stream ended before its first event")
	return ""
}
