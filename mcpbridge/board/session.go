package board

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/agentrooms/agentrooms/internal/problem"
)

const (
	sessionPurpose = "session"
	// maxToken bounds the token of a session: a cookie has room for 4096 bytes, and the token grows by a third in it.
	maxToken  = 2900
	maxCookie = 4096
)

// session is what the browser keeps, sealed.
type session struct {
	Token string `json:"t"`
	// Until is when the session ends, in seconds since 1970.
	Until int64 `json:"u"`
}

// cookieName has a prefix that browsers hold to https and to this very host, where there is https.
func (b *Board) cookieName(r *http.Request) string {
	if b.secure(r) {
		return "__Host-agentrooms-session"
	}
	return "agentrooms-session"
}

func (b *Board) secure(r *http.Request) bool { return b.opts.Secure || r.TLS != nil }

// sessionOf reads the session of a request. errSignedOut says that there is none, or that it has ended.
func (b *Board) sessionOf(r *http.Request) (*session, error) {
	cookie, err := r.Cookie(b.cookieName(r))
	if err != nil || len(cookie.Value) > maxCookie {
		return nil, errSignedOut
	}
	s := &session{}
	if err := b.sealer.open(sessionPurpose, cookie.Value, s); err != nil || b.clock.Now().Unix() >= s.Until {
		return nil, errSignedOut
	}
	return s, nil
}

// begin hands the browser a session for a token, which ends with the token at the latest.
func (b *Board) begin(w http.ResponseWriter, r *http.Request, token string) error {
	if len(token) > maxToken {
		return problem.Invalid("token", "is too long for a cookie: %d bytes, at most %d", len(token), maxToken)
	}
	until := b.clock.Now().Add(b.opts.SessionLife)
	if ends := tokenEnd(token); !ends.IsZero() && ends.Before(until) {
		until = ends
	}
	sealed, err := b.sealer.seal(sessionPurpose, session{Token: token, Until: until.Unix()})
	if err != nil {
		return err
	}
	http.SetCookie(w, b.cookie(r, sealed, int(until.Sub(b.clock.Now())/time.Second)))
	return nil
}

// end takes the session from the browser.
func (b *Board) end(w http.ResponseWriter, r *http.Request) { http.SetCookie(w, b.cookie(r, "", -1)) }

func (b *Board) cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: b.cookieName(r), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: b.secure(r),
	}
}

// csrf gives the token that a person's forms carry.
func (b *Board) csrf(p *person) string { return b.sealer.mac("csrf", p.key) }

// tokenEnd reads when a token ends by its own account, zero when it does not say. The API server judges; this only keeps
// a session from outliving its token.
func tokenEnd(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 || claims.Exp > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0)
}
