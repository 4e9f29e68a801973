package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentrooms/agentrooms/internal/filelock"
)

func TestTryNamesTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := filelock.Try(path)
	if err != nil {
		t.Fatalf("taking a free lock: %v", err)
	}
	_, err = filelock.Try(path)
	held, ok := errors.AsType[*filelock.HeldError](err)
	if !ok {
		t.Fatalf("second Try = %v, want a HeldError", err)
	}
	if held.PID != os.Getpid() || held.Path != path {
		t.Errorf("holder = %+v, want pid %d of %s", held, os.Getpid(), path)
	}
	if err := first.Unlock(); err != nil {
		t.Fatalf("unlocking: %v", err)
	}
	again, err := filelock.Try(path)
	if err != nil {
		t.Fatalf("taking the lock after it was given back: %v", err)
	}
	_ = again.Unlock()
}

func TestAcquireWaitsForTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := filelock.Try(path)
	if err != nil {
		t.Fatalf("taking a free lock: %v", err)
	}
	waits := 0
	second, err := filelock.Acquire(t.Context(), path, func(*filelock.HeldError) {
		waits++
		_ = first.Unlock()
	})
	if err != nil {
		t.Fatalf("acquiring: %v", err)
	}
	defer func() { _ = second.Unlock() }()
	if waits != 1 {
		t.Errorf("told of %d waits, want 1", waits)
	}
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := filelock.Try(path)
	if err != nil {
		t.Fatalf("taking a free lock: %v", err)
	}
	defer func() { _ = first.Unlock() }()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = filelock.Acquire(ctx, path, func(*filelock.HeldError) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire under an ended context = %v, want context.Canceled", err)
	}
}

func TestALockKnowsWhetherItsFileIsStillThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := filelock.Try(path)
	if err != nil {
		t.Fatalf("taking a free lock: %v", err)
	}
	defer func() { _ = first.Unlock() }()
	if err := first.Intact(); err != nil {
		t.Errorf("a lock whose file is there: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if first.Intact() == nil {
		t.Error("a lock whose file was removed is intact")
	}
	second, err := filelock.Try(path)
	if err != nil {
		t.Fatalf("taking the lock on the new file: %v", err)
	}
	defer func() { _ = second.Unlock() }()
	if first.Intact() == nil || second.Intact() != nil {
		t.Errorf("first %v, second %v, want only the second intact", first.Intact(), second.Intact())
	}
}
