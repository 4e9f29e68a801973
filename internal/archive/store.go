package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"k8s.io/apimachinery/pkg/types"
)

// ErrDiffers says that another segment stands in the place of one that is to be written.
var ErrDiffers = errors.New("another segment stands in its place")

// Write puts a segment into the blob store, reads it back and verifies it. It gives the bytes that it has there. One that
// stands there already is taken when it is the same, replaced when it is damaged, and else kept: then the error is
// ErrDiffers, as nobody may write over what may be the only copy.
func Write(ctx context.Context, bucket Bucket, s *Segment) (int64, error) {
	packed, err := Encode(s)
	if err != nil {
		return 0, err
	}
	key := Key(s.Room, s.First)
	if err = put(ctx, bucket, key, packed, true); exists(err) {
		there, readErr := read(ctx, bucket, key)
		if readErr != nil {
			return 0, readErr
		}
		same, sameErr := equal(there, packed, s)
		switch {
		case same:
			return int64(len(there)), nil
		case sameErr == nil:
			return 0, fmt.Errorf("writing %s: %w", key, ErrDiffers)
		}
		err = put(ctx, bucket, key, packed, false)
	}
	if err != nil {
		return 0, fmt.Errorf("writing %s: %w", key, err)
	}
	there, err := read(ctx, bucket, key)
	if err != nil {
		return 0, err
	}
	if _, err := Decode(there, s.Room, s.First); err != nil || !bytes.Equal(there, packed) {
		return 0, fmt.Errorf("reading %s back: %w: %w", key, ErrCorrupt, err)
	}
	return int64(len(there)), nil
}

func put(ctx context.Context, bucket Bucket, key string, packed []byte, fresh bool) error {
	return bucket.WriteAll(ctx, key, packed, &blob.WriterOptions{ //nolint:wrapcheck // the caller judges the store's own error
		ContentType: "application/gzip", IfNotExist: fresh, DisableContentTypeDetection: true,
	})
}

func exists(err error) bool {
	code := gcerrors.Code(err)
	return code == gcerrors.FailedPrecondition || code == gcerrors.AlreadyExists
}

// equal says whether two segments hold the same, whatever compressed them. The error says that what is there is damaged.
func equal(there, wanted []byte, s *Segment) (bool, error) {
	a, _, err := open(there, s.Room, s.First)
	if err != nil {
		return false, err
	}
	b, _, err := open(wanted, s.Room, s.First)
	return err == nil && a.SHA256 == b.SHA256, nil
}

// read gives a blob as it is, if it is not too long.
func read(ctx context.Context, bucket Bucket, key string) ([]byte, error) {
	r, err := bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	defer func() { _ = r.Close() }()
	packed, err := io.ReadAll(io.LimitReader(r, maxPacked+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", key, err)
	case len(packed) > maxPacked:
		return nil, fmt.Errorf("reading %s: %w: it is too long", key, ErrCorrupt)
	}
	return packed, nil
}

// Read gives the segment that begins with a seq.
func Read(ctx context.Context, bucket Bucket, room types.UID, first int64) (*Segment, error) {
	key := Key(room, first)
	packed, err := read(ctx, bucket, key)
	if err != nil {
		return nil, err
	}
	s, err := Decode(packed, room, first)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return s, nil
}
