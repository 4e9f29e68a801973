package plugin_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/agentrooms/agentrooms/internal/plugin"
	"github.com/agentrooms/agentrooms/test/people"
	"github.com/agentrooms/agentrooms/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// kubeconfig writes the file of an admin. A user is chosen with --as, as kubectl does.
func kubeconfig(t *testing.T, cfg *rest.Config, namespace string) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData, InsecureSkipTLSVerify: cfg.Insecure}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Token: cfg.BearerToken}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	file.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// terminal runs the plugin as somebody in a house.
type terminal struct {
	h      *people.House
	file   string
	user   string
	groups []string
	args   []string
	in     string
}

func sit(h *people.House, user string) *terminal {
	return &terminal{h: h, user: user, file: kubeconfig(h.T, h.Env.Config, h.Namespace)}
}

// buffer can be read while it is written to.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start runs the plugin until the context ends.
func (x *terminal) start(ctx context.Context, args ...string) (out, errs *buffer, code chan int) {
	out, errs, code = &buffer{}, &buffer{}, make(chan int, 1)
	full := []string{"--kubeconfig", x.file, "--as", x.user, "--as-group", "system:authenticated"}
	for _, g := range x.groups {
		full = append(full, "--as-group", g)
	}
	full = append(append(full, x.args...), args...)
	go func() {
		code <- plugin.Main(ctx, "test", full, plugin.Streams{In: strings.NewReader(x.in), Out: out, Err: errs})
	}()
	return out, errs, code
}

// run runs the plugin to its end.
func (x *terminal) run(args ...string) (out, errs string, code int) {
	x.h.T.Helper()
	ctx, cancel := context.WithTimeout(x.h.Context(), time.Minute)
	defer cancel()
	o, e, c := x.start(ctx, args...)
	code = <-c
	clean(x.h.T, o.String()+e.String())
	return o.String(), e.String(), code
}

// clean fails when something is written that a terminal would obey.
func clean(t *testing.T, s string) {
	t.Helper()
	for _, r := range s {
		if (r < 0x20 && r != '\n') || (r >= 0x7f && r < 0xa0) || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
			t.Fatalf("it writes %U: %q", r, s)
		}
	}
}

// ok runs the plugin, which must succeed and show some words in their order.
func (x *terminal) ok(words []string, args ...string) string {
	x.h.T.Helper()
	out, errs, code := x.run(args...)
	if code != 0 {
		x.h.Fatalf("%s: rooms %s ends with %d:\n%s%s", x.user, strings.Join(args, " "), code, out, errs)
	}
	inOrder(x.h.T, out+errs, words)
	return out
}

// fails runs the plugin, which must fail and say some words.
func (x *terminal) fails(words []string, args ...string) {
	x.h.T.Helper()
	out, errs, code := x.run(args...)
	if code == 0 {
		x.h.Errorf("%s: rooms %s succeeds:\n%s", x.user, strings.Join(args, " "), out)
	}
	inOrder(x.h.T, errs, words)
}

func inOrder(t *testing.T, text string, words []string) {
	t.Helper()
	left := text
	for _, w := range words {
		_, after, found := strings.Cut(left, w)
		if !found {
			t.Errorf("it does not say %q where it should:\n%s", w, text)
			return
		}
		left = after
	}
}
