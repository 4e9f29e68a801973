package blobs

import (
	"context"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// DefaultTTL is how long a transfer URL is good for.
	DefaultTTL = 15 * time.Minute
	// MaxTTL is the most that can be asked for.
	MaxTTL = time.Hour
	// maxFilename bounds the name that a download proposes, in bytes.
	maxFilename = 255
)

// Transfer is a URL with which one object can be sent or fetched, for a while, by whoever has it.
type Transfer struct {
	// URL is good for one method on one object: PUT for uploads, GET for downloads.
	URL string
	// Headers must be sent along as they are; they are part of what is signed.
	Headers map[string]string
	// ExpiresAt is when the URL ends.
	ExpiresAt time.Time
}

// signer makes transfer URLs.
type signer interface {
	upload(ctx context.Context, key string, e Expect, expires time.Time) (url string, headers map[string]string, err error)
	download(ctx context.Context, key string, d download, expires time.Time) (url string, err error)
}

// download is what is signed of a download.
type download struct {
	sha256, filename, contentType string
}

// UploadURL makes a URL that takes one PUT of the bytes that e declares. ttl is at most an hour; zero means 15 minutes. What
// was uploaded becomes content by Complete.
func (s *Store) UploadURL(ctx context.Context, room types.UID, uploadID string, e Expect, ttl time.Duration) (Transfer, error) {
	key, err := uploadKey(room, uploadID)
	if err != nil {
		return Transfer{}, err
	}
	e, err = e.valid()
	if err != nil {
		return Transfer{}, err
	}
	expires, err := s.expiry(ttl)
	if err != nil {
		return Transfer{}, err
	}
	url, headers, err := s.signer.upload(ctx, key, e, expires)
	if err != nil {
		return Transfer{}, s.failed("signing the upload", err)
	}
	return Transfer{URL: url, Headers: headers, ExpiresAt: expires}, nil
}

// DownloadURL makes a URL that gives content by GET, as a file of that name and type. ttl is at most an hour; zero means 15
// minutes. Content that is not there is ErrNotFound at once.
func (s *Store) DownloadURL(ctx context.Context, room types.UID, sha256hex, filename, contentType string, ttl time.Duration) (Transfer, error) {
	key, err := contentKey(room, sha256hex)
	if err != nil {
		return Transfer{}, err
	}
	if contentType == "" {
		contentType = octets
	}
	if err := validContentType(contentType); err != nil {
		return Transfer{}, err
	}
	expires, err := s.expiry(ttl)
	if err != nil {
		return Transfer{}, err
	}
	// The store itself serves the URL, and does not look into the trash.
	err = s.find(ctx, key, func(key string) error {
		_, err := s.bucket.Attributes(ctx, key)
		return err
	})
	if err != nil {
		return Transfer{}, err
	}
	d := download{sha256: sha256hex, filename: safeFilename(filename), contentType: contentType}
	url, err := s.signer.download(ctx, key, d, expires)
	if err != nil {
		return Transfer{}, s.failed("signing the download", err)
	}
	return Transfer{URL: url, Headers: map[string]string{}, ExpiresAt: expires}, nil
}

// Handler serves the transfers of a local folder, wherever PublicURL leads; nil for a store that serves its own.
func (s *Store) Handler() http.Handler {
	if local, ok := s.signer.(*localSigner); ok {
		return local
	}
	return nil
}

func (s *Store) expiry(ttl time.Duration) (time.Time, error) {
	if ttl == 0 {
		ttl = DefaultTTL
	}
	if ttl < time.Second || ttl > MaxTTL {
		return time.Time{}, invalid("the URL is to last %s, it must be from 1s to %s", ttl, MaxTTL)
	}
	return s.now().Add(ttl).Truncate(time.Second).UTC(), nil
}

// safeFilename makes a name of what might be a path, without anything that a shell, a header or a file system could take amiss.
func safeFilename(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune(`"*:<>?|`, r) {
			return '_'
		}
		return r
	}, name)
	for len(name) > maxFilename {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if name = strings.Trim(name, ". "); name == "" {
		return "file"
	}
	return name
}
