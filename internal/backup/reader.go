package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Verify reads an archive to its end and gives its index, when all of it is as it was written. Errors are ErrFormat for what is
// no archive of a version that can be read, ErrDamaged, or those of the reader.
func Verify(r io.Reader) (*Index, error) {
	var found []entry
	var index *Index
	err := walk(r, func(name string, size int64, r io.Reader) error {
		if index != nil {
			return fmt.Errorf("%w: something stands behind its index", ErrDamaged)
		}
		if name == indexEntry {
			raw, err := whole(name, size, r)
			if err != nil {
				return err
			}
			index, err = decodeIndex(raw)
			return err
		}
		if len(found) == maxEntries {
			return fmt.Errorf("%w: it has more than %d entries", ErrDamaged, maxEntries)
		}
		e, err := measure(name, size, r)
		found = append(found, e)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case index == nil:
		return nil, fmt.Errorf("%w: it has no index, so it was cut off", ErrDamaged)
	case !slices.Equal(found, index.Entries):
		return nil, fmt.Errorf("%w: %s", ErrDamaged, differ(found, index.Entries))
	}
	return index, ordered(found)
}

// ordered refuses an archive that does not begin with what everything else belongs to, or has an entry twice.
func ordered(entries []entry) error {
	if len(entries) < 2 || entries[0].Name != formatEntry || entries[1].Name != roomEntry {
		return fmt.Errorf("%w: its second entry must be %s", ErrDamaged, roomEntry)
	}
	names := sets.New[string]()
	for _, e := range entries {
		if names.Has(e.Name) {
			return fmt.Errorf("%w: it has %q twice", ErrDamaged, e.Name)
		}
		names.Insert(e.Name)
	}
	return nil
}

// measure reads an entry and gives what the index should say of it.
func measure(name string, size int64, r io.Reader) (entry, error) {
	hash, isContent := contentHash(name)
	if !isContent && size > maxEntry {
		return entry{}, fmt.Errorf("%w: %q has %d bytes", ErrDamaged, name, size)
	}
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return entry{}, broken(err)
	}
	e := entry{Name: name, Size: size, SHA256: hexOf(h)}
	if isContent && e.SHA256 != hash {
		return entry{}, fmt.Errorf("%w: %q is not what its name says", ErrDamaged, name)
	}
	return e, nil
}

// differ says where the entries are not those of the index.
func differ(found, want []entry) string {
	for i := range want {
		if i >= len(found) || found[i].Name != want[i].Name {
			return fmt.Sprintf("%q is missing", want[i].Name)
		}
		if found[i] != want[i] {
			return fmt.Sprintf("%q was changed", want[i].Name)
		}
	}
	return fmt.Sprintf("%q is not in its index", found[len(want)].Name)
}

// walk visits the entries of an archive but the first, which it checks. visit need not read an entry to its end.
func walk(r io.Reader, visit func(name string, size int64, r io.Reader) error) error {
	z, err := gzip.NewReader(bufio.NewReaderSize(r, 1<<20))
	if err != nil {
		return fmt.Errorf("%w: it is not compressed as one is: %w", ErrFormat, err)
	}
	t := tar.NewReader(z)
	for first := true; ; first = false {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF) && !first:
			return ended(z)
		case errors.Is(err, io.EOF), first && (err != nil || h.Name != formatEntry):
			return fmt.Errorf("%w: it does not begin as an archive of a room does", ErrFormat)
		case err != nil:
			return broken(err)
		case h.Typeflag != tar.TypeReg:
			return fmt.Errorf("%w: %q is no file", ErrDamaged, h.Name)
		}
		var body io.Reader = t
		if first {
			if body, err = begins(h.Size, t); err != nil {
				return err
			}
		}
		if err := visit(h.Name, h.Size, body); err != nil {
			return err
		}
	}
}

// begins checks the first entry, and gives it to be read again.
func begins(size int64, r io.Reader) (io.Reader, error) {
	raw, err := whole(formatEntry, size, r)
	if err != nil {
		return nil, err
	}
	var h header
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, fmt.Errorf("%w: %s cannot be read", ErrFormat, formatEntry)
	}
	return bytes.NewReader(raw), h.check()
}

// whole reads an entry that is not too long for that.
func whole(name string, size int64, r io.Reader) ([]byte, error) {
	if size > maxEntry {
		return nil, fmt.Errorf("%w: %q has %d bytes", ErrDamaged, name, size)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, broken(err)
	}
	return raw, nil
}

// decode reads an entry of one JSON document.
func decode[T any](name string, size int64, r io.Reader) (*T, error) {
	raw, err := whole(name, size, r)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("%w: reading %q: %w", ErrDamaged, name, err)
	}
	return v, nil
}

// decodeLines reads an entry of lines of JSON.
func decodeLines[T any](name string, size int64, r io.Reader) ([]T, error) {
	raw, err := whole(name, size, r)
	if err != nil {
		return nil, err
	}
	limit := chunkLines
	if !strings.Contains(name, "/") {
		limit = maxListed
	}
	var items []T
	for line := range bytes.Lines(raw) {
		if len(items) == limit {
			return nil, fmt.Errorf("%w: %q has more than %d lines", ErrDamaged, name, limit)
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("%w: reading %q: %w", ErrDamaged, name, err)
		}
		items = append(items, v)
	}
	return items, nil
}

// ended reads the rest of the compressed stream, where its checksum is.
func ended(z io.Reader) error {
	if _, err := io.Copy(io.Discard, z); err != nil {
		return broken(err)
	}
	return nil
}

func broken(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }
