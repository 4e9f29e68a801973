package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"time"
)

// writer writes an archive. The same entries give the same bytes.
type writer struct {
	zip   *gzip.Writer
	tar   *tar.Writer
	index Index
}

func newWriter(w io.Writer) (*writer, error) {
	z := gzip.NewWriter(w)
	a := &writer{zip: z, tar: tar.NewWriter(z)}
	if err := a.object(formatEntry, header{Format: formatName, Version: formatVersion}); err != nil {
		return nil, err
	}
	return a, nil
}

// object writes an entry of one JSON document.
func (a *writer) object(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	return a.bytes(name, append(raw, '\n'))
}

func (a *writer) bytes(name string, raw []byte) error {
	return a.stream(name, int64(len(raw)), bytes.NewReader(raw))
}

// stream writes an entry of a size that is known before.
func (a *writer) stream(name string, size int64, r io.Reader) error {
	h := sha256.New()
	if err := a.begin(name, size); err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(a.tar, h), io.LimitReader(r, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	a.index.Entries = append(a.index.Entries, entry{Name: name, Size: size, SHA256: hexOf(h)})
	return nil
}

func (a *writer) begin(name string, size int64) error {
	err := a.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// close writes the index and ends the archive.
func (a *writer) close() (*Index, error) {
	raw, err := encodeIndex(&a.index)
	if err != nil {
		return nil, err
	}
	if err := a.begin(indexEntry, int64(len(raw))); err != nil {
		return nil, err
	}
	if _, err := a.tar.Write(raw); err != nil {
		return nil, fmt.Errorf("writing %s: %w", indexEntry, err)
	}
	if err := a.tar.Close(); err != nil {
		return nil, fmt.Errorf("ending the archive: %w", err)
	}
	if err := a.zip.Close(); err != nil {
		return nil, fmt.Errorf("ending the archive: %w", err)
	}
	return &a.index, nil
}

func hexOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

const (
	// chunkLines is how many lines an entry holds. So one of messages is a segment of the blob store.
	chunkLines = 1000
	// chunkBytes is what the lines of an entry have together, unless a single one has more. Messages are cut by their number
	// alone.
	chunkBytes = 8 << 20
)

// lines writes entries of lines into a folder of the archive.
type lines struct {
	to      *writer
	dir     string
	bounded bool
	n, in   int64
	buffer  bytes.Buffer
}

// add writes one line.
func (l *lines) add(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a line of %s: %w", l.dir, err)
	}
	if l.in == chunkLines || (l.bounded && l.in > 0 && l.buffer.Len()+len(raw) > chunkBytes) {
		if err := l.flush(); err != nil {
			return err
		}
	}
	l.in++
	l.buffer.Write(raw)
	l.buffer.WriteByte('\n')
	return nil
}

// flush ends the entry that is being filled.
func (l *lines) flush() error {
	if l.in == 0 {
		return nil
	}
	l.n, l.in = l.n+1, 0
	err := l.to.bytes(chunkName(l.dir, l.n), l.buffer.Bytes())
	l.buffer.Reset()
	return err
}

// list writes one entry of lines. It is there even when there are none.
func list[T any](a *writer, name string, items []T) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	for i := range items {
		if err := encoder.Encode(items[i]); err != nil {
			return fmt.Errorf("encoding %s: %w", name, err)
		}
	}
	return a.bytes(name, b.Bytes())
}
