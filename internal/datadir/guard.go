package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// guardInterval is how often AwaitLoss looks where the system tells it of no changes.
const guardInterval = 5 * time.Second

// CheckSpace gives an error when the disk of a folder has less than need bytes free for this user. The folder need not exist yet.
func CheckSpace(path string, need uint64) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("finding the data folder: %w", err)
	}
	at := path
	for at != filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		at = filepath.Dir(at)
	}
	var stat syscall.Statfs_t
	if err := syscall.Statfs(at, &stat); err != nil {
		return fmt.Errorf("looking how much space the disk of %s has: %w", path, err)
	}
	if free := stat.Bavail * uint64(stat.Bsize); free < need { //nolint:gosec // no block is of negative size
		return fmt.Errorf("the disk of the data folder %s has %d MiB free, and at least %d MiB are needed: "+
			"make room, or choose another folder with --data-dir", path, free>>20, need>>20)
	}
	return nil
}

// Held gives an error when the folder is not this process's any more, as somebody removed or replaced it: another process may
// take what stands under its path now.
func (d *Dir) Held() error {
	if err := d.lock.Intact(); err != nil {
		return fmt.Errorf("the data folder %s was removed or replaced while it was in use, so that what was in it is lost: %w", d.path, err)
	}
	return nil
}

// AwaitLoss waits until Held gives an error, and returns that; it returns nil when ctx ends first. The system wakes it when the
// folder changes. Where it cannot, AwaitLoss looks by itself every few seconds.
func (d *Dir) AwaitLoss(ctx context.Context) error {
	var changes <-chan fsnotify.Event
	var mishaps <-chan error
	var ticks <-chan time.Time
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer func() { _ = watcher.Close() }()
		err = watcher.Add(d.path)
		changes, mishaps = watcher.Events, watcher.Errors
	}
	if err != nil {
		ticker := time.NewTicker(guardInterval)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for {
		if err := d.Held(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-mishaps: //nolint:errcheck // whatever it missed, the folder is looked at again
		case <-ticks:
		}
	}
}
