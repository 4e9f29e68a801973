package blobs

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob/s3blob"
)

// s3Signer has S3 itself serve the transfers.
type s3Signer struct {
	// uploads sign their headers, downloads have none.
	uploads, downloads *s3.PresignClient
	bucket             string
	now                func() time.Time
}

// openS3 makes the store of an s3:// URL. A client of its own signs, since the host that clients see is part of what is signed.
func (s *Store) openS3(ctx context.Context, u *url.URL, publicURL string) error {
	// What is stored is known by its hash. Not every S3 server sends checksums, and asking for them is part of what is signed.
	query := u.Query()
	if !query.Has("response_checksum_validation") {
		query.Set("response_checksum_validation", "when_required")
		u.RawQuery = query.Encode()
	}
	bucket, err := new(s3blob.URLOpener).OpenBucketURL(ctx, u)
	if err != nil {
		return fmt.Errorf("opening the S3 bucket: %w", err)
	}
	var client *s3.Client
	if !bucket.As(&client) {
		return fmt.Errorf("opening the S3 bucket: it has no S3 client")
	}
	if publicURL != "" {
		public, err := url.Parse(publicURL)
		if err != nil || public.Scheme != "http" && public.Scheme != "https" || public.Host == "" {
			return invalid("the public URL of an S3 store is the endpoint as clients reach it, like https://s3.example.com")
		}
		client = s3.New(client.Options(), func(o *s3.Options) {
			o.EndpointResolver = nil //nolint:staticcheck // gocloud.dev sets it for the endpoint parameter, and it would win over BaseEndpoint
			o.BaseEndpoint = aws.String(publicURL)
		})
	}
	client = s3.New(client.Options(), func(o *s3.Options) {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
	s.bucket = bucket
	// What is to be sent stays in headers and is signed as such: a checksum in the query binds nobody.
	signer := v4.NewSigner(func(o *v4.SignerOptions) {
		o.DisableHeaderHoisting = true
		o.DisableURIPathEscaping = true
	})
	s.signer = &s3Signer{
		bucket: u.Host, now: s.now, downloads: s3.NewPresignClient(client),
		uploads: s3.NewPresignClient(client, func(o *s3.PresignOptions) { o.Presigner = signer }),
	}
	return nil
}

func (s *s3Signer) upload(ctx context.Context, key string, e Expect, expires time.Time) (string, map[string]string, error) {
	sum, err := hex.DecodeString(e.SHA256)
	if err != nil {
		return "", nil, invalid("%.80q is not a sha256", e.SHA256)
	}
	signed, err := s.uploads.PresignPutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(s.bucket), Key: aws.String(key),
		ContentType: aws.String(e.ContentType), ContentLength: aws.Int64(e.Size),
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum)),
	}, s3.WithPresignExpires(expires.Sub(s.now())))
	if err != nil {
		return "", nil, err
	}
	return signed.URL, sendable(signed.SignedHeader), nil
}

func (s *s3Signer) download(ctx context.Context, key string, d download, expires time.Time) (string, error) {
	signed, err := s.downloads.PresignGetObject(ctx, &s3.GetObjectInput{
		Bucket: aws.String(s.bucket), Key: aws.String(key),
		ResponseContentDisposition: aws.String(disposition(d.filename)),
		ResponseContentType:        aws.String(d.contentType),
		ResponseCacheControl:       aws.String("private, no-store"),
	}, s3.WithPresignExpires(expires.Sub(s.now())))
	if err != nil {
		return "", err
	}
	return signed.URL, nil
}

// sendable gives the signed headers that a client has to set. Host and Content-Length are set by every HTTP client itself.
func sendable(signed http.Header) map[string]string {
	headers := map[string]string{}
	for name, values := range signed {
		name = http.CanonicalHeaderKey(name)
		if name != "Host" && name != "Content-Length" {
			headers[name] = strings.Join(values, ",")
		}
	}
	return headers
}
