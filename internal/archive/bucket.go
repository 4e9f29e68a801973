package archive

import (
	"context"
	"fmt"

	"gocloud.dev/blob"
)

// Bucket is where the archive is kept: a *blob.Bucket, or one that knows more of its place.
type Bucket interface {
	WriteAll(ctx context.Context, key string, p []byte, opts *blob.WriterOptions) error
	NewReader(ctx context.Context, key string, opts *blob.ReaderOptions) (*blob.Reader, error)
	List(opts *blob.ListOptions) *blob.ListIterator
}

// guarded is a Bucket that can tell whether it is where it was.
type guarded interface {
	// Ready gives an error when the store is not there: what it does not hold then is not gone.
	Ready() error
}

// ready says whether what is missing in a bucket is gone, rather than the bucket itself.
func ready(bucket Bucket) error {
	if g, ok := bucket.(guarded); ok {
		if err := g.Ready(); err != nil {
			return fmt.Errorf("reaching the blob store: %w", err)
		}
	}
	return nil
}
