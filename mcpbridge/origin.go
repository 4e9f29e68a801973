package mcpbridge

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agentrooms/agentrooms/internal/problem"
)

// origins decides which web pages may call, and under which names the server may be called over loopback. A browser sends
// the origin of a page with every call; other clients send none, and pass.
type origins struct {
	allowed []string
	// hosts that the server is known by, from its public URL and the allowed origins.
	hosts []string
}

func newOrigins(publicURL string, allowed []string) *origins {
	o := &origins{allowed: slices.Clone(allowed)}
	if own, ok := canonicalOrigin(publicURL); ok {
		o.allowed = append(o.allowed, own)
	}
	for _, origin := range o.allowed {
		if u, err := url.Parse(origin); err == nil {
			o.hosts = append(o.hosts, strings.ToLower(u.Hostname()))
		}
	}
	return o
}

// canonicalOrigin gives scheme and host of a URL as browsers write an origin.
func canonicalOrigin(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", false
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); (u.Scheme == "http" && port == "80") || (u.Scheme == "https" && port == "443") {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host, true
}

// check refuses pages of foreign origins, and names of foreign hosts on a loopback connection: so does a page look that
// made its own name point to this machine.
func (o *origins) check(r *http.Request) *problem.Problem {
	if p := o.checkHost(r); p != nil {
		return p
	}
	loopback := overLoopback(r)
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return nil
	}
	origin, ok := canonicalOrigin(values[0])
	if len(values) == 1 && ok && (slices.Contains(o.allowed, origin) || (loopback && loopbackOrigin(origin))) {
		return nil
	}
	return problem.New(problem.Forbidden, "pages of the origin %q may not call this server: whoever runs it can allow them "+
		"with --allowed-origins", short(values[0]))
}

// checkHost refuses names of foreign hosts on a loopback connection.
func (o *origins) checkHost(r *http.Request) *problem.Problem {
	if overLoopback(r) && !o.ownHost(r.Host) {
		return problem.New(problem.Forbidden, "the host %q is not one of this server's: use localhost or the server's public URL",
			short(r.Host))
	}
	return nil
}

// ownHost says whether a name that a loopback connection was made under can be this server's. In a cluster a sidecar
// delivers requests over loopback under the name of the Service. Nobody can register names of these forms publicly.
func (o *origins) ownHost(hostport string) bool {
	host := hostname(hostport)
	return isLoopback(host) || slices.Contains(o.hosts, host) ||
		(host != "" && !strings.Contains(host, ".") && !strings.Contains(host, ":")) ||
		strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".svc.cluster.local")
}

// cors tells browsers that the page of an allowed origin may read the answer. It answers their question beforehand by
// itself and then gives true.
func (o *origins) cors(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, X-Request-Id, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", http.MethodPost)
	h.Set("Access-Control-Allow-Headers", strings.Join([]string{
		"Authorization", "Content-Type", "Accept", "X-Request-Id", mcp.HeaderProtocolVersion, mcp.HeaderMethod, mcp.HeaderName,
		mcp.HeaderSessionID,
	}, ", "))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

func overLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && local != nil && isLoopback(hostname(local.String()))
}

func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && isLoopback(strings.ToLower(u.Hostname()))
}

// hostname takes the port and brackets off.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
