package blobs

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxToken bounds a token, in bytes.
const maxToken = 4 << 10

// token is what a signed URL of a local folder grants. It travels in the URL, so that every replica can judge it.
type token struct {
	Method   string `json:"m"`
	Key      string `json:"k"`
	Expires  int64  `json:"e"` // Unix time in seconds
	Type     string `json:"t"`
	Length   int64  `json:"l,omitempty"` // bytes, uploads only
	SHA256   string `json:"s"`
	Filename string `json:"f,omitempty"` // downloads only
}

var (
	errTampered = errors.New("this URL was not made by us, or has been changed: ask for a new one, and use it as it is")
	errExpired  = errors.New("this URL has expired: ask for a new one")
)

// encoding is strict, so that a token can be written in one way only.
var encoding = base64.RawURLEncoding.Strict()

// localSigner signs the transfers of a local folder and serves them.
type localSigner struct {
	store  *Store
	base   *url.URL
	secret []byte
	// uploads and downloads bound how many there are at once.
	uploads, downloads chan struct{}
}

// newLocalSigner makes the signer for the URL under which it is served. Without one it serves, and signs nothing.
func newLocalSigner(publicURL string, secret []byte, store *Store) (*localSigner, error) {
	l := &localSigner{
		store: store, secret: secret,
		uploads: make(chan struct{}, maxUploads), downloads: make(chan struct{}, maxDownloads),
	}
	if publicURL == "" {
		return l, nil
	}
	base, err := url.Parse(publicURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return nil, invalid("the public URL of the blob store is like https://rooms.example.com/transfer")
	}
	l.base = base
	return l, nil
}

func (l *localSigner) upload(_ context.Context, key string, e Expect, expires time.Time) (string, map[string]string, error) {
	t := token{Method: http.MethodPut, Key: key, Expires: expires.Unix(), Type: e.ContentType, Length: e.Size, SHA256: e.SHA256}
	signed, err := l.sign(t)
	return signed, map[string]string{"Content-Type": e.ContentType}, err
}

func (l *localSigner) download(_ context.Context, key string, d download, expires time.Time) (string, error) {
	return l.sign(token{
		Method: http.MethodGet, Key: key, Expires: expires.Unix(), Type: d.contentType, SHA256: d.sha256, Filename: d.filename,
	})
}

// sign makes the URL of a token: its JSON and the MAC of that, as the last part of the path.
func (l *localSigner) sign(t token) (string, error) {
	if l.base == nil {
		return "", invalid("there is no public URL under which transfers could be served: set one")
	}
	payload, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("encoding the token: %w", err)
	}
	text := encoding.EncodeToString(payload) + "." + encoding.EncodeToString(l.mac(payload))
	if len(text) > maxToken {
		return "", invalid("the file name or the content type is too long for a URL")
	}
	return l.base.JoinPath(text).String(), nil
}

// verify reads a token that was signed with our secret and has not expired.
func (l *localSigner) verify(text string, now time.Time) (token, error) {
	if len(text) > maxToken {
		return token{}, errTampered
	}
	first, second, _ := strings.Cut(text, ".")
	payload, err := encoding.DecodeString(first)
	if err != nil {
		return token{}, errTampered
	}
	mac, err := encoding.DecodeString(second)
	if err != nil || !hmac.Equal(mac, l.mac(payload)) {
		return token{}, errTampered
	}
	var t token
	if err := json.Unmarshal(payload, &t); err != nil {
		return token{}, errTampered
	}
	if !now.Before(time.Unix(t.Expires, 0)) {
		return token{}, errExpired
	}
	return t, nil
}

func (l *localSigner) mac(payload []byte) []byte {
	h := hmac.New(sha256.New, l.secret)
	h.Write([]byte("agentrooms transfer v1\n"))
	h.Write(payload)
	return h.Sum(nil)
}
