package blobs

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
)

// cloudSigner has Google Cloud Storage or Azure Blob Storage serve the transfers.
type cloudSigner struct {
	bucket *blob.Bucket
	google bool
	now    func() time.Time
}

// openCloud makes the store of a gs:// or azblob:// URL.
func (s *Store) openCloud(ctx context.Context, u *url.URL) error {
	bucket, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return fmt.Errorf("opening the bucket: %w", err)
	}
	s.bucket = bucket
	s.signer = &cloudSigner{bucket: bucket, google: u.Scheme == "gs", now: s.now}
	return nil
}

// upload signs type and length on Google Cloud Storage. Azure signs neither: there Complete alone holds the upload to them.
func (c *cloudSigner) upload(ctx context.Context, key string, e Expect, expires time.Time) (string, map[string]string, error) {
	o := &blob.SignedURLOptions{Method: http.MethodPut, Expiry: expires.Sub(c.now())}
	headers := map[string]string{"Content-Type": e.ContentType}
	if c.google {
		length := strconv.FormatInt(e.Size, 10)
		headers["X-Goog-Content-Length-Range"] = length + "," + length
		o.ContentType = e.ContentType
		o.BeforeSign = func(as func(any) bool) error {
			var options *storage.SignedURLOptions
			if as(&options) {
				options.Scheme = storage.SigningSchemeV4
				options.Headers = []string{"x-goog-content-length-range:" + length + "," + length}
			}
			return nil
		}
	} else {
		headers["X-Ms-Blob-Type"] = "BlockBlob"
	}
	signed, err := c.bucket.SignedURL(ctx, key, o)
	return signed, headers, err
}

// download signs name and type on Google Cloud Storage; Azure serves the content as a plain application/octet-stream.
func (c *cloudSigner) download(ctx context.Context, key string, d download, expires time.Time) (string, error) {
	o := &blob.SignedURLOptions{Method: http.MethodGet, Expiry: expires.Sub(c.now())}
	if c.google {
		o.BeforeSign = func(as func(any) bool) error {
			var options *storage.SignedURLOptions
			if as(&options) {
				options.Scheme = storage.SigningSchemeV4
				options.QueryParameters = url.Values{
					"response-content-disposition": {disposition(d.filename)},
					"response-content-type":        {d.contentType},
				}
			}
			return nil
		}
	}
	return c.bucket.SignedURL(ctx, key, o)
}

// disposition makes the header that has a browser keep content as a file of a name.
func disposition(filename string) string {
	return mime.FormatMediaType("attachment", map[string]string{"filename": filename})
}
