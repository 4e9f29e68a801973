// Package filelock gives an exclusive advisory lock on a file. The kernel drops the lock when its holder dies, however
// it dies, so a lock is never left behind; the file itself stays.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxReplaced is how many times Try begins anew as the file was replaced while it took the lock.
const maxReplaced = 10

// retryInterval is how often Acquire asks again for a lock that another process holds.
const retryInterval = 100 * time.Millisecond

// HeldError says that another process holds the lock.
type HeldError struct {
	// Path is the file that is locked.
	Path string
	// PID is the process that holds it, or 0 where that is not known.
	PID int
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// Lock is a held lock.
type Lock struct {
	file *os.File
	path string
}

// Try takes the lock on path, or returns a *HeldError at once when another process (or another Lock of this one) has it.
func Try(path string) (*Lock, error) {
	for attempt := 1; ; attempt++ {
		lock, err := try(path)
		if err != nil {
			return nil, err
		}
		// Who locks a file that was just removed shares the path with whoever makes it anew.
		if err = lock.Intact(); err == nil {
			return lock, nil
		}
		_ = lock.Unlock()
		if attempt == maxReplaced {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
	}
}

func try(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = file.Close() }()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &HeldError{Path: path, PID: readPID(file)}
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := writePID(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("writing the holder into %s: %w", path, err)
	}
	return &Lock{file: file, path: path}, nil
}

// Intact gives an error when the file that is locked does not stand under its path any more, so that somebody else may lock what
// does.
func (l *Lock) Intact() error {
	locked, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("looking at the lock: %w", err)
	}
	there, err := os.Stat(l.path)
	if err != nil {
		return fmt.Errorf("looking for the lock file: %w", err)
	}
	if !os.SameFile(locked, there) {
		return fmt.Errorf("%s is another file than the one that was locked", l.path)
	}
	return nil
}

// Acquire takes the lock on path and waits for it until ctx ends. It calls onWait once, with the holder, when it has to wait.
func Acquire(ctx context.Context, path string, onWait func(*HeldError)) (*Lock, error) {
	ticker := time.NewTicker(retryInterval)
	defer ticker.Stop()
	for {
		lock, err := Try(path)
		held, ok := errors.AsType[*HeldError](err)
		if !ok {
			return lock, err
		}
		if onWait != nil {
			onWait(held)
			onWait = nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock: %w", errors.Join(ctx.Err(), held))
		case <-ticker.C:
		}
	}
}

// Unlock gives the lock back.
func (l *Lock) Unlock() error {
	return l.file.Close()
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(file *os.File) int {
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
