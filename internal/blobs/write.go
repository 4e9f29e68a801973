package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"os"

	"gocloud.dev/blob"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// MaxSize bounds one object, in bytes: what S3 takes in one request.
	MaxSize = 5 << 30
	// maxContentType bounds a content type, in bytes.
	maxContentType = 255
	// untyped is what S3 says of an object whose type it does not tell.
	untyped = "binary/octet-stream"
	// partSize and partsAtOnce bound the memory of one write to a cloud.
	partSize    = 5 << 20
	partsAtOnce = 2
)

// Expect says what is to come.
type Expect struct {
	// SHA256 is the hash of the bytes, in 64 hexadecimal digits. Only PutStream does without it.
	SHA256 string
	// Size is how many bytes there are; PutStream takes a negative one as unknown.
	Size int64
	// ContentType is the media type that the upload declares, as in text/plain; empty means application/octet-stream.
	ContentType string
}

// Verdict says what became of bytes that were checked.
type Verdict struct {
	// OK says that they are what was declared, and are content now.
	OK bool
	// Missing says that nothing has been uploaded yet.
	Missing bool
	// Reason says, when OK is false, what is wrong.
	Reason string
	// Size and SHA256 are what was found.
	Size   int64
	SHA256 string
}

// valid holds an expectation of an upload to its bounds.
func (e Expect) valid() (Expect, error) {
	if e.ContentType == "" {
		e.ContentType = octets
	}
	if !hashPattern.MatchString(e.SHA256) {
		return e, invalid("%.80q is not a sha256: 64 digits 0-9a-f are", e.SHA256)
	}
	if e.Size < 0 || e.Size > MaxSize {
		return e, invalid("the size is %d bytes, it must be from 0 to %d", e.Size, int64(MaxSize))
	}
	return e, validContentType(e.ContentType)
}

// validContentType refuses what is no media type, or could break a header.
func validContentType(contentType string) error {
	_, _, err := mime.ParseMediaType(contentType)
	if err == nil && len(contentType) <= maxContentType && printable(contentType) {
		return nil
	}
	return invalid("%.80q is not a content type: text/plain is one, of at most %d bytes", contentType, maxContentType)
}

// printable says whether text has only ASCII that a header may have.
func printable(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// PutStream stores what a reader gives, and hashes it on the way. Nothing becomes content unless it is what e says; an
// error of the reader itself is returned as it is.
func (s *Store) PutStream(ctx context.Context, room types.UID, r io.Reader, e Expect) (Verdict, error) {
	prefix, err := roomPrefix(room)
	if err != nil {
		return Verdict{}, err
	}
	if e.SHA256 != "" && !hashPattern.MatchString(e.SHA256) {
		return Verdict{}, invalid("%.80q is not a sha256: 64 digits 0-9a-f are", e.SHA256)
	}
	temp := prefix + tempDir + nonce()
	source := &source{r: r}
	verdict, err := s.ingest(ctx, temp, source, e)
	if source.err != nil {
		return Verdict{}, fmt.Errorf("reading what is to be stored: %w", source.err)
	}
	if err != nil || !verdict.OK {
		return verdict, err
	}
	defer func() { _ = s.bucket.Delete(context.WithoutCancel(ctx), temp) }() // else the sweep does it
	key := prefix + contentDir + verdict.SHA256
	young, err := s.young(ctx, key)
	if err == nil && !young {
		err = s.failed("writing content", s.copy(ctx, key, temp))
	}
	if err != nil {
		return Verdict{}, err
	}
	return verdict, nil
}

// Complete checks what was uploaded against what was declared, and makes it content if it is that. The upload stays, so that
// it can be completed again after a crash, until DropUpload or a sweep.
func (s *Store) Complete(ctx context.Context, room types.UID, uploadID string, e Expect) (Verdict, error) {
	upload, err := uploadKey(room, uploadID)
	if err != nil {
		return Verdict{}, err
	}
	e, err = e.valid()
	if err != nil {
		return Verdict{}, err
	}
	key, err := contentKey(room, e.SHA256)
	if err != nil {
		return Verdict{}, err
	}
	reader, err := s.bucket.NewReader(ctx, upload, nil)
	err = s.failed("reading the upload", err)
	if IsNotFound(err) {
		return Verdict{Missing: true, Reason: "nothing has been uploaded yet: PUT the bytes to the upload URL first"}, nil
	}
	if err != nil {
		return Verdict{}, err
	}
	defer func() { _ = reader.Close() }()
	if reader.Size() != e.Size {
		return Verdict{Reason: wrongSize(reader.Size(), e.Size), Size: reader.Size()}, nil
	}
	if got := reader.ContentType(); s.local == nil && got != untyped && !sameType(got, e.ContentType) {
		return Verdict{Reason: fmt.Sprintf("the content type is %.80q, declared were %.80q", got, e.ContentType), Size: reader.Size()}, nil
	}
	return s.ingest(ctx, key, &source{r: reader}, e)
}

// DropUpload takes an upload away. It is no error when there is none.
func (s *Store) DropUpload(ctx context.Context, room types.UID, uploadID string) error {
	key, err := uploadKey(room, uploadID)
	if err != nil {
		return err
	}
	err = s.failed("deleting the upload", s.bucket.Delete(ctx, key))
	if IsNotFound(err) {
		return nil
	}
	return err
}

// ingest writes a stream to a key and hashes what it writes. Unless that is what is expected, nothing becomes visible: so
// what is under the key has been checked, even if the source changes while it is read.
func (s *Store) ingest(ctx context.Context, key string, from *source, e Expect) (Verdict, error) {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	file, w, err := s.writer(ctx, key)
	if err != nil {
		return Verdict{}, s.failed("writing content", err)
	}
	limit := int64(MaxSize)
	if e.Size >= 0 {
		limit = e.Size
	}
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(from, limit+1))
	verdict := judge(size, sum, e, limit)
	if err != nil || !verdict.OK {
		abort()
		_ = w.Close()
		return verdict, s.failed("writing content", err)
	}
	if err := s.finish(key, file, w); err != nil {
		return Verdict{}, s.failed("writing content", err)
	}
	return verdict, nil
}

// judge compares what came with what was expected.
func judge(size int64, sum hash.Hash, e Expect, limit int64) Verdict {
	v := Verdict{Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}
	switch {
	case size > limit:
		v.Reason = fmt.Sprintf("there are more than the %d bytes that were expected", limit)
	case e.Size >= 0 && size != e.Size:
		v.Reason = wrongSize(size, e.Size)
	case e.SHA256 != "" && v.SHA256 != e.SHA256:
		v.Reason = fmt.Sprintf("the sha256 of the bytes is %s, declared was %s", v.SHA256, e.SHA256)
	default:
		v.OK = true
	}
	return v
}

func wrongSize(got, want int64) string {
	return fmt.Sprintf("there are %d bytes, declared were %d", got, want)
}

// sameType compares media types however they are spelled.
func sameType(a, b string) bool {
	ta, pa, errA := mime.ParseMediaType(a)
	tb, pb, errB := mime.ParseMediaType(b)
	return errA == nil && errB == nil && mime.FormatMediaType(ta, pa) == mime.FormatMediaType(tb, pb)
}

// write stores bytes under a key; they are seen whole or not at all.
func (s *Store) write(ctx context.Context, key string, content []byte) error {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	file, w, err := s.writer(ctx, key)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		abort()
		_ = w.Close()
		return err
	}
	return s.finish(key, file, w)
}

// writer begins to write under a key. For a local folder it gives the file, too. To give up, cancel ctx before Close.
func (s *Store) writer(ctx context.Context, key string) (*os.File, *blob.Writer, error) {
	if err := s.ready(); err != nil {
		return nil, nil, err
	}
	var file *os.File
	options := &blob.WriterOptions{ContentType: octets, BufferSize: partSize, MaxConcurrency: partsAtOnce}
	if s.local != nil {
		if err := s.local.mkdir(key); err != nil {
			return nil, nil, err
		}
		options.BeforeWrite = func(as func(any) bool) error {
			as(&file)
			return nil
		}
	}
	w, err := s.bucket.NewWriter(ctx, key, options)
	return file, w, err
}

// finish flushes a file to the disk and puts it in place.
func (s *Store) finish(key string, file *os.File, w *blob.Writer) error {
	if file == nil {
		return w.Close()
	}
	err := file.Sync()
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return s.local.flush(key)
}

// copy copies an object; the copy is there as a whole or not at all, and lasts.
func (s *Store) copy(ctx context.Context, to, from string) error {
	if s.local == nil {
		return s.bucket.Copy(ctx, to, from, nil)
	}
	if err := s.local.mkdir(to); err != nil {
		return err
	}
	if err := s.bucket.Copy(ctx, to, from, nil); err != nil {
		return err
	}
	return s.local.sync(to)
}

// source remembers the error of a reader, to tell it from those of a writer.
type source struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
