package board

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errSignedOut says that nobody is signed in, or no longer.
var errSignedOut = errors.New("nobody is signed in")

const (
	// apiTimeout bounds a question to the API server for a page.
	apiTimeout = 10 * time.Second
	// maxName bounds a username and the name of a group, maxGroups how many groups a proxy may name.
	maxName, maxGroups = 253, 64
	userHeader         = "X-Remote-User"
	groupHeader        = "X-Remote-Group"
)

// person is who looks at a page.
type person struct {
	// name that the cluster knows them by.
	name string
	// token is their own; empty for one whom a proxy vouches for.
	token  string
	groups []string
	// until is when the session ends.
	until time.Time
	// key stands for the person's credentials in caches.
	key string
}

// config gives how to reach the API server with the person's own rights.
func (b *Board) config(p *person) *rest.Config {
	if p.token != "" {
		c := rest.AnonymousClientConfig(b.opts.Config)
		c.BearerToken, c.QPS = p.token, -1
		return c
	}
	c := rest.CopyConfig(b.opts.Config)
	c.Impersonate = rest.ImpersonationConfig{UserName: p.name, Groups: p.groups}
	return c
}

// client gives a client with the person's own rights. It is cheap: the connections are shared.
func (b *Board) client(p *person) (client.Client, error) {
	config := b.config(p)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", p.name, err)
	}
	c, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: b.scheme, Mapper: b.mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", p.name, err)
	}
	return c, nil
}

// whoIs asks the API server whose a token is, with that token: what it accepts there, it accepts for everything that the
// person does. errSignedOut means nobody's.
func (b *Board) whoIs(ctx context.Context, token string) (string, error) {
	key := digest("token", token)
	if known, ok := b.names.get(key, b.clock.Now()); ok {
		return known, nil
	}
	reviews, err := authenticationclient.NewForConfig(b.config(&person{token: token}))
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	asked := b.clock.Now()
	review, err := reviews.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return "", errSignedOut
	case err != nil:
		return "", fmt.Errorf("asking whose a token is: %w", err)
	case review.Status.UserInfo.Username == "" || review.Status.UserInfo.Username == "system:anonymous":
		return "", errSignedOut
	}
	b.names.put(key, review.Status.UserInfo.Username, asked.Add(b.opts.Recheck))
	return review.Status.UserInfo.Username, nil
}

// identify finds out who sent a request: by the headers of a trusted proxy, else by the session.
func (b *Board) identify(r *http.Request) (*person, error) {
	if p, err := b.vouchedFor(r); p != nil || err != nil {
		return p, err
	}
	s, err := b.sessionOf(r)
	if err != nil {
		return nil, err
	}
	name, err := b.whoIs(r.Context(), s.Token)
	if err != nil {
		return nil, err
	}
	return &person{name: name, token: s.Token, until: time.Unix(s.Until, 0), key: digest("token", s.Token)}, nil
}

// vouchedFor gives the person whom a trusted proxy names, nil when no such proxy speaks. A peer that is not trusted is not
// listened to at all.
func (b *Board) vouchedFor(r *http.Request) (*person, error) {
	if len(b.opts.TrustedProxies) == 0 || !b.trusted(r.RemoteAddr) {
		return nil, nil
	}
	names, groups := r.Header.Values(userHeader), r.Header.Values(groupHeader)
	switch {
	case len(names) == 0:
		return nil, nil
	case len(names) > 1 || names[0] == "" || len(names[0]) > maxName || len(groups) > maxGroups:
		return nil, errSignedOut
	}
	for _, name := range append([]string{names[0]}, groups...) {
		// The system's own names are for nobody to lend: a proxy's mistake must not make an administrator of the cluster.
		if name == "" || len(name) > maxName || strings.HasPrefix(name, "system:") {
			return nil, errSignedOut
		}
	}
	return &person{
		name: names[0], groups: append([]string{"system:authenticated"}, groups...), until: b.clock.Now().Add(b.opts.SessionLife),
		key: digest(append([]string{"proxy", names[0]}, groups...)...),
	}, nil
}

func (b *Board) trusted(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	for _, prefix := range b.opts.TrustedProxies {
		if prefix.Contains(peer.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// digest stands for secrets in caches.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
