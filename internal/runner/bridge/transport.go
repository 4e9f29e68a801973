package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// maxTokenBytes bounds a token, as the bridge does.
	maxTokenBytes = 16 << 10
	// maxAnswerBytes bounds an answer, and all that a stream says.
	maxAnswerBytes = 64 << 20
	// headerTimeout is how long an answer may take to begin. The longest call takes 50 s.
	headerTimeout = time.Minute
	// silence is how long an answer may say nothing once it has begun. A stream says something every 20 s.
	silence = time.Minute
	// dialTimeout is how long a connection may take to be made.
	dialTimeout = 10 * time.Second
)

// errSilent says that an answer stopped in the middle.
var errSilent = errors.New("the bridge has fallen silent")

// roundTripper shows the token, which it reads anew for each request since others replace it in time, and bounds the answers.
type roundTripper struct {
	base      http.RoundTripper
	tokenFile string
}

func newHTTPClient(tokenFile string) *http.Client {
	return &http.Client{
		Transport: &roundTripper{tokenFile: tokenFile, base: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: headerTimeout,
			IdleConnTimeout:       90 * time.Second,
			MaxIdleConnsPerHost:   4,
		}},
		// A token is for the bridge, and for nobody to whom somebody sends us on.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// readToken reads the token as it is now.
func readToken(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxTokenBytes+1))
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := bytes.TrimSpace(raw)
	switch {
	case len(raw) > maxTokenBytes:
		return "", fmt.Errorf("reading the token: %s is too large to be one", file)
	case len(token) == 0:
		return "", fmt.Errorf("reading the token: %s is empty", file)
	case bytes.ContainsAny(token, " \t\r\n\x00"):
		return "", fmt.Errorf("reading the token: %s holds more than a token", file)
	}
	return string(token), nil
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := readToken(t.tokenFile)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	r = r.Clone(ctx)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		cancel(nil)
		return nil, err //nolint:wrapcheck // http.Client says which request
	}
	resp.Body = newBody(resp.Body, cancel)
	return resp, nil
}

// body is an answer that may be neither too long nor silent for long.
type body struct {
	io.ReadCloser

	cancel context.CancelCauseFunc
	timer  *time.Timer
	left   int64
	once   sync.Once
}

func newBody(inner io.ReadCloser, cancel context.CancelCauseFunc) *body {
	b := &body{ReadCloser: inner, cancel: cancel, left: maxAnswerBytes}
	b.timer = time.AfterFunc(silence, func() { cancel(errSilent) })
	return b
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxAnswerBytes)
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if n > 0 {
		b.timer.Reset(silence)
	}
	return n, err //nolint:wrapcheck // io.EOF must stay what it is
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.once.Do(func() {
		b.timer.Stop()
		b.cancel(nil)
	})
	return b.ReadCloser.Close() //nolint:wrapcheck // nobody looks
}
