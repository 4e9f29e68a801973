package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"gocloud.dev/blob"
	"k8s.io/apimachinery/pkg/types"
)

// DefaultGrace is how long content without a reference is kept, and how long it lies in the trash after that.
const DefaultGrace = time.Hour

// maxRead bounds a single Read, in bytes: more is streamed.
const maxRead = 64 << 20

// maxLooks bounds the looks for content in its place and in the trash, in turns.
const maxLooks = 3

// octets is the content type of everything that the store writes itself: what is served says its type in the signed URL.
const octets = "application/octet-stream"

// Options says where the content is.
type Options struct {
	// URL is one of
	//   file:///folder
	//   s3://bucket?region=…&endpoint=…&use_path_style=true
	//   gs://bucket
	//   azblob://container
	// with the parameters that gocloud.dev/blob knows. Credentials come from the environment, as each cloud's own tools take them.
	URL string
	// PublicURL is how clients reach the store. For file:// it is where the bridge serves Handler, such as
	// http://host:port/transfer; for s3:// the endpoint that clients use, when it is another than ours. Else it is empty.
	PublicURL string
	// Grace is the time after which content without a reference is collected; zero means DefaultGrace. All who share a
	// bucket have the same. It must be much longer than a request may last, which is a minute.
	Grace time.Duration
}

// Store is a blob store. It is safe for use by many goroutines, and its bucket by many processes.
type Store struct {
	bucket *blob.Bucket
	signer signer
	// local is set for a local folder.
	local *folder
	grace time.Duration
	// now is the clock.
	now func() time.Time
	// sweepAtOnce bounds the objects that one sweep takes up; zero means maxSweep. Tests set it.
	sweepAtOnce int
	// step, if set, is called before each access to the bucket that matters to the order of things. Tests use it.
	step func(what string)
}

// Open opens a store. It makes the folder of a file:// URL; buckets must be there. It does not reach out to a cloud: a
// store that is down at this moment is opened, too.
func Open(ctx context.Context, o Options) (*Store, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, invalid("the URL of the blob store cannot be read: it is like file:///folder or s3://bucket?region=eu-west-1")
	}
	if o.Grace < 0 {
		return nil, invalid("the grace time is %s, it cannot be less than nothing", o.Grace)
	}
	s := &Store{grace: o.Grace, now: time.Now}
	if s.grace == 0 {
		s.grace = DefaultGrace
	}
	switch u.Scheme {
	case "file":
		err = s.openFolder(u, o.PublicURL)
	case "s3":
		err = s.openS3(ctx, u, o.PublicURL)
	case "gs", "azblob":
		err = s.openCloud(ctx, u)
	default:
		err = invalid("the URL of the blob store begins with %.20q, it must begin with file://, s3://, gs:// or azblob://", u.Scheme)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the blob store: %w", err)
	}
	return s, nil
}

// Close ends the use of the store.
func (s *Store) Close() error {
	if err := s.bucket.Close(); err != nil {
		return fmt.Errorf("closing the blob store: %w", err)
	}
	return nil
}

// Bucket gives the bucket, for those who keep other things in it under keys of their own.
func (s *Store) Bucket() *Bucket { return &Bucket{Bucket: s.bucket, store: s} }

// Put stores content and returns its sha256. The same content of a room is stored once. Whoever calls it has to write the
// reference to it within a minute.
func (s *Store) Put(ctx context.Context, room types.UID, content []byte) (sha256hex string, err error) {
	sum := sha256.Sum256(content)
	sha256hex = hex.EncodeToString(sum[:])
	key, err := contentKey(room, sha256hex)
	if err != nil {
		return "", err
	}
	young, err := s.young(ctx, key)
	if err != nil || young {
		return sha256hex, err
	}
	s.at("put: write")
	if err := s.write(ctx, key, content); err != nil {
		return "", s.failed("writing content", err)
	}
	return sha256hex, nil
}

// young says whether an object is there and so new that no sweep can have it in mind.
func (s *Store) young(ctx context.Context, key string) (bool, error) {
	if err := s.ready(); err != nil {
		return false, s.failed("looking for content", err)
	}
	s.at("put: look")
	attrs, err := s.bucket.Attributes(ctx, key)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, s.failed("looking for content", err)
	}
	return s.now().Sub(attrs.ModTime) < s.grace/4, nil
}

// Read returns length bytes of content from an offset, fewer at its end and none beyond it. length is at most 64 MiB.
func (s *Store) Read(ctx context.Context, room types.UID, sha256hex string, offset, length int64) ([]byte, error) {
	key, err := contentKey(room, sha256hex)
	switch {
	case err != nil:
		return nil, err
	case offset < 0:
		return nil, invalid("the offset is %d, it cannot be less than 0", offset)
	case length < 0 || length > maxRead:
		return nil, invalid("the length is %d, it must be from 0 to %d", length, maxRead)
	}
	var content []byte
	err = s.find(ctx, key, func(key string) error {
		content, err = s.readRange(ctx, key, offset, length)
		return err
	})
	return content, err
}

// readRange reads from one object. The stores disagree about ranges that begin at or after the end, so ask for the size then.
func (s *Store) readRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	s.at("read: open")
	reader, err := s.bucket.NewRangeReader(ctx, key, offset, length, nil)
	if err != nil {
		if !missing(err) {
			if attrs, attrsErr := s.bucket.Attributes(ctx, key); attrsErr == nil && offset >= attrs.Size {
				return []byte{}, nil
			}
		}
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	content := make([]byte, max(0, min(length, reader.Size()-offset)))
	if _, err := io.ReadFull(reader, content); err != nil {
		return nil, fmt.Errorf("reading %d bytes: %w", len(content), err)
	}
	return content, nil
}

// NewReader streams content and tells its size. The reader can seek. The caller closes it.
func (s *Store) NewReader(ctx context.Context, room types.UID, sha256hex string) (io.ReadSeekCloser, int64, error) {
	key, err := contentKey(room, sha256hex)
	if err != nil {
		return nil, 0, err
	}
	var reader *blob.Reader
	err = s.find(ctx, key, func(key string) (err error) {
		s.at("read: open")
		reader, err = s.bucket.NewReader(ctx, key, nil)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	size := reader.Size()
	return reader, size, nil
}

// find hands the key of content to read; or, if a sweep has just taken it away, the key in the trash, and puts it back then.
// Between the two looks it may be put back, and even be taken again by another sweep: so it looks more than once.
func (s *Store) find(ctx context.Context, key string, read func(key string) error) error {
	for range maxLooks {
		err := s.failed("reading content", read(key))
		if !IsNotFound(err) {
			return err
		}
		trash, err := s.inTrash(ctx, key)
		if err == nil {
			err = s.failed("reading content", read(trash))
		}
		if err == nil {
			// What could be read is an answer, whether or not it can be put back now: else the next sweep does it.
			s.at("read: put back")
			_ = s.copy(ctx, key, trash)
		}
		if !IsNotFound(err) {
			return err
		}
	}
	return ErrNotFound
}

// inTrash finds content in the trash.
func (s *Store) inTrash(ctx context.Context, key string) (string, error) {
	s.at("read: look into the trash")
	list := s.bucket.List(&blob.ListOptions{Prefix: trashPrefix(key)})
	object, err := list.Next(ctx)
	if errors.Is(err, io.EOF) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", s.failed("reading content", err)
	}
	return object.Key, nil
}

// at marks a step.
func (s *Store) at(what string) {
	if s.step != nil {
		s.step(what)
	}
}

// Grace gives the time after which the store collects content that nobody refers to.
func (s *Store) Grace() time.Duration { return s.grace }
