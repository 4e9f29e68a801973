package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/agentrooms/agentrooms/internal/blobs"
)

// blobFlags say where the contents of files and old messages are.
type blobFlags struct {
	url, publicURL string
	grace          time.Duration
}

func (f *blobFlags) add(flags *pflag.FlagSet) {
	f.addURL(flags)
	flags.StringVar(&f.publicURL, "blob-public-url", os.Getenv("AGENTROOMS_BLOB_PUBLIC_URL"),
		"where clients reach the store: for s3:// its endpoint, when they use another than we do; for file:// where clients reach "+
			"this bridge, with /transfer behind it (AGENTROOMS_BLOB_PUBLIC_URL)")
	flags.DurationVar(&f.grace, "blob-grace", blobs.DefaultGrace,
		"how long content that nothing refers to is kept, and how long it lies in the trash after that: the same for all who share "+
			"the store, and much longer than a call may take")
}

// addURL adds the flag that says where the store is, for those who hand out no URLs.
func (f *blobFlags) addURL(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "blob-url", os.Getenv("AGENTROOMS_BLOB_URL"),
		"where the contents of files and old messages are kept: file:///folder, s3://bucket?region=…, gs://bucket or azblob://container; "+
			"without it there are no files, and messages stay in the cluster (AGENTROOMS_BLOB_URL)")
}

// open opens the store, nil when none is wanted.
func (f *blobFlags) open(ctx context.Context) (*blobs.Store, error) {
	if f.url == "" {
		return nil, nil
	}
	store, err := blobs.Open(ctx, blobs.Options{URL: f.url, PublicURL: f.publicURL, Grace: f.grace})
	if err != nil {
		return nil, fmt.Errorf("--blob-url: %w", err)
	}
	return store, nil
}
