package datadir_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentrooms/agentrooms/internal/datadir"
)

func TestTooLittleSpaceIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not", "there", "yet")
	if err := datadir.CheckSpace(path, 1); err != nil {
		t.Errorf("one byte is too much: %v", err)
	}
	err := datadir.CheckSpace(path, math.MaxUint64)
	if err == nil || !strings.Contains(err.Error(), "MiB free, and at least 17592186044415 MiB are needed") || !strings.Contains(err.Error(), path) {
		t.Errorf("more than there is = %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("looking makes the folder")
	}
}

func TestAFolderThatCannotBeWrittenIsSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A file, a path below a file, and a folder in which nobody may make a file, not even root.
	for _, path := range []string{file, filepath.Join(file, "below"), "/proc/self"} {
		_, err := datadir.Open(path)
		if err == nil || !strings.Contains(err.Error(), "the data folder "+path+" cannot be used: choose one that you may write to with --data-dir") {
			t.Errorf("opening %s = %v", path, err)
		}
	}
}

func TestTheLossOfAFolderIsNoticed(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"removed": os.RemoveAll,
		"renamed": func(path string) error { return os.Rename(path, path+"-old") },
		"emptied": func(path string) error { return os.Remove(filepath.Join(path, "lock")) },
		"taken by another": func(path string) error {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			other, err := datadir.Open(path)
			if err == nil {
				t.Cleanup(func() { _ = other.Close() })
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data")
			dir := open(t, path)
			lost := make(chan error, 1)
			go func() { lost <- dir.AwaitLoss(t.Context()) }()
			if err := dir.WriteFile("file", []byte("x"), 0o600); err != nil || dir.Held() != nil {
				t.Fatalf("writing: %v, held: %v", err, dir.Held())
			}
			if err := lose(path); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-lost:
				if err == nil || !strings.Contains(err.Error(), "the data folder "+path+" was removed or replaced") {
					t.Errorf("lost: %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("nobody noticed")
			}
		})
	}
	t.Run("not at all", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := open(t, t.TempDir()).AwaitLoss(ctx); err != nil {
			t.Errorf("lost: %v", err)
		}
	})
}
