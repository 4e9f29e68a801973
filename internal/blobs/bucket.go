package blobs

import (
	"context"
	"fmt"

	"gocloud.dev/blob"
)

// Bucket is the bucket of a Store. What is written through it is held to what the Store promises: a folder whose volume is gone
// takes nothing and seems to hold nothing less, and what was acknowledged lasts.
type Bucket struct {
	*blob.Bucket

	store *Store
}

// Ready gives an error when the store is not there.
func (b *Bucket) Ready() error { return b.store.ready() }

// WriteAll writes an object as a whole. In a local folder it is on the disk when this returns.
func (b *Bucket) WriteAll(ctx context.Context, key string, p []byte, opts *blob.WriterOptions) error {
	if err := b.Ready(); err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	local := b.store.local
	if local != nil {
		if err := local.mkdir(key); err != nil {
			return fmt.Errorf("making the folder of %s: %w", key, err)
		}
	}
	if err := b.Bucket.WriteAll(ctx, key, p, opts); err != nil {
		return err //nolint:wrapcheck // callers tell the bucket's errors apart
	}
	if local != nil {
		if err := local.sync(key); err != nil {
			return fmt.Errorf("flushing %s: %w", key, err)
		}
	}
	return b.Ready()
}

// NewReader reads an object. That it is not there is said only by a store that is.
func (b *Bucket) NewReader(ctx context.Context, key string, opts *blob.ReaderOptions) (*blob.Reader, error) {
	r, err := b.Bucket.NewReader(ctx, key, opts)
	if missing(err) {
		if gone := b.Ready(); gone != nil {
			return nil, gone
		}
	}
	return r, err //nolint:wrapcheck // callers tell the bucket's errors apart
}
