package blobs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"gocloud.dev/blob/fileblob"
)

// signingKey is the key of the secret that signs the transfers of a local folder.
const signingKey = "system/signing-key"

// signingKeySize is its length in bytes.
const signingKeySize = 32

// folder is a local folder that holds a bucket.
type folder struct {
	path string
}

// openFolder makes the store of a file:// URL.
func (s *Store) openFolder(u *url.URL, publicURL string) error {
	if u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) {
		return invalid("the URL of a local folder is file:// and an absolute path, as in file:///var/lib/rooms")
	}
	if u.RawQuery != "" {
		return invalid("the URL of a local folder takes no parameters")
	}
	local := &folder{path: filepath.Clean(u.Path)}
	secret, err := local.secret()
	if err != nil {
		return err
	}
	s.bucket, err = fileblob.OpenBucket(local.path, &fileblob.Options{
		DirFileMode: 0o700, NoTempDir: true, Metadata: fileblob.MetadataDontWrite,
	})
	if err != nil {
		return fmt.Errorf("opening the folder: %w", err)
	}
	s.local = local
	s.signer, err = newLocalSigner(publicURL, secret, s)
	return err
}

// secret reads the signing key, or makes it. Of many that make it at once, one wins and the others read what it made.
func (f *folder) secret() ([]byte, error) {
	path := filepath.Join(f.path, signingKey)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder: %w", err)
	}
	secret, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.makeSecret(path); err != nil {
			return nil, fmt.Errorf("making the signing key: %w", err)
		}
		secret, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the signing key: %w", err)
	}
	if len(secret) != signingKeySize {
		return nil, fmt.Errorf("the signing key %s has %d bytes instead of %d: take the file away, and all URLs that were handed out end",
			path, len(secret), signingKeySize)
	}
	return secret, nil
}

// makeSecret writes a new key beside its place and links it there, which fails if there is one already.
func (f *folder) makeSecret(path string) error {
	var secret [signingKeySize]byte
	_, _ = rand.Read(secret[:])                             // never fails
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-") // only the owner may read it
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(secret[:])
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncPath(filepath.Dir(path))
}

// ready says whether the store is where it was. A folder whose volume is gone looks empty: what is missing then is not lost,
// and what would be written then would be.
func (s *Store) ready() error {
	if s.local == nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(s.local.path, signingKey)); err != nil {
		return fmt.Errorf("the folder is not there any more: %w", err)
	}
	return nil
}

// mkdir makes the folder that an object goes into, so that it lasts.
func (f *folder) mkdir(key string) error {
	dir := filepath.Dir(filepath.Join(f.path, filepath.FromSlash(key)))
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for dir != f.path {
		dir = filepath.Dir(dir)
		if err := syncPath(dir); err != nil {
			return err
		}
	}
	return nil
}

// flush makes the rename of an object last.
func (f *folder) flush(key string) error {
	return syncPath(filepath.Dir(filepath.Join(f.path, filepath.FromSlash(key))))
}

// sync makes an object that is in place last.
func (f *folder) sync(key string) error {
	if err := syncPath(filepath.Join(f.path, filepath.FromSlash(key))); err != nil {
		return err
	}
	return f.flush(key)
}

// prune removes empty folders below and including the one of a prefix.
func (f *folder) prune(prefix string) {
	top := filepath.Join(f.path, filepath.FromSlash(prefix))
	entries, _ := os.ReadDir(top)
	for _, entry := range entries {
		if entry.IsDir() {
			_ = os.Remove(filepath.Join(top, entry.Name())) // fails unless it is empty
		}
	}
	_ = os.Remove(top)
}

// syncPath flushes a file, or what a folder says of its files, to the disk.
func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
