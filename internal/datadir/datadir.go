// Package datadir manages the folder in which a local system keeps its data: one process at a time holds it, and the
// ports once chosen stay the same as long as they are free.
package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentrooms/agentrooms/internal/filelock"
)

// Default is the folder that is used when none is named.
const Default = ".rooms"

// Dir is a data folder that this process holds.
type Dir struct {
	path string
	lock *filelock.Lock
}

// Open makes the folder if need be and takes it for this process. The error names the process that already has it.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("finding the data folder: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, unwritable(path, err)
	}
	lock, err := filelock.Try(filepath.Join(path, "lock"))
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		return nil, fmt.Errorf("the data folder %s is in use by process %d: stop that one first, "+
			"or choose another folder with --data-dir: %w", path, held.PID, err)
	}
	if err != nil {
		return nil, unwritable(path, err)
	}
	d := &Dir{path: path, lock: lock}
	// The folder holds keys and tokens, and stands in a project's folder by default: keep git away from it.
	if err := d.WriteFile(".gitignore", []byte("*\n"), 0o600); err != nil {
		return nil, errors.Join(unwritable(path, err), d.Close())
	}
	return d, nil
}

func unwritable(path string, err error) error {
	return fmt.Errorf("the data folder %s cannot be used: choose one that you may write to with --data-dir: %w", path, err)
}

// Close gives the folder back.
func (d *Dir) Close() error {
	return d.lock.Unlock()
}

// Path is the path of a file in the folder; without names it is the folder itself.
func (d *Dir) Path(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

// MakeDir makes a folder in the folder and returns its path.
func (d *Dir) MakeDir(names ...string) (string, error) {
	path := d.Path(names...)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("making %s: %w", path, err)
	}
	return path, nil
}

// WriteFile writes a file in the folder, whole or not at all, also when the machine stops. Its own folder is made.
func (d *Dir) WriteFile(name string, content []byte, mode os.FileMode) error {
	path := d.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}
	if err := writeAtomically(path, content, mode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func writeAtomically(path string, content []byte, mode os.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
