package mcpbridge

import (
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/server"
)

// baseURL gives where the client reaches the server: the configured public URL, else what the request says.
func (s *Server) baseURL(r *http.Request) string {
	if s.opts.PublicURL != "" {
		return s.opts.PublicURL
	}
	scheme := "http"
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// metadata serves what RFC 9728 has clients look up: how to authenticate at the resource with the given path.
func (s *Server) metadata(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		server.NewProtectedResourceMetadataHandler(server.ProtectedResourceMetadataConfig{
			Resource:               s.baseURL(r) + path,
			ResourceName:           "Agent Rooms",
			AuthorizationServers:   s.opts.AuthorizationServers,
			BearerMethodsSupported: []string{"header"},
		}).ServeHTTP(w, r)
	}
}

// challenge gives the header that tells a client without a valid token where to learn how to get one.
func (s *Server) challenge(r *http.Request, presented bool) string {
	c := `Bearer resource_metadata="` + s.baseURL(r) + server.WellKnownProtectedResourcePath + r.URL.Path + `"`
	if presented {
		c += `, error="invalid_token"`
	}
	return c
}
