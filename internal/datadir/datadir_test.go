package datadir_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/agentrooms/agentrooms/internal/datadir"
)

func open(t *testing.T, path string) *datadir.Dir {
	t.Helper()
	dir, err := datadir.Open(path)
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

func TestASecondHolderIsRefusedWithTheFirstOnesPID(t *testing.T) {
	path := t.TempDir()
	first := open(t, path)
	_, err := datadir.Open(path)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Errorf("opening twice = %v, want an error with pid %d", err, os.Getpid())
	}
	if err := first.Close(); err != nil {
		t.Fatalf("closing: %v", err)
	}
	open(t, path)
}

func TestWriteFileReplacesTheWholeFile(t *testing.T) {
	dir := open(t, t.TempDir())
	for _, content := range []string{"first, and longer", "second"} {
		if err := dir.WriteFile("sub/file", []byte(content), 0o600); err != nil {
			t.Fatalf("writing: %v", err)
		}
		got, err := os.ReadFile(dir.Path("sub", "file"))
		if err != nil || string(got) != content {
			t.Errorf("read %q, %v, want %q", got, err, content)
		}
	}
	entries, err := os.ReadDir(dir.Path("sub"))
	if err != nil || len(entries) != 1 {
		t.Errorf("left beside the file: %v, %v", entries, err)
	}
}

func TestAPortStaysTheSameWhileItIsFree(t *testing.T) {
	path := t.TempDir()
	dir := open(t, path)
	first := port(t, dir, "apiserver")
	if other := port(t, dir, "etcd"); other == first {
		t.Errorf("two names share port %d", first)
	}
	_ = dir.Close()
	dir = open(t, path)
	if again := port(t, dir, "apiserver"); again != first {
		t.Errorf("port = %d after opening again, want %d", again, first)
	}
}

func TestAPortThatIsTakenIsReplaced(t *testing.T) {
	dir := open(t, t.TempDir())
	first := port(t, dir, "apiserver")
	listener, err := net.Listen("tcp", datadir.Loopback(first))
	if err != nil {
		t.Fatalf("listening: %v", err)
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // spares the wait for the port to become free
	if err := datadir.AwaitFree(ctx, first); err == nil {
		t.Errorf("AwaitFree says that a taken port is free")
	}
	second, err := dir.Port(ctx, "apiserver")
	if err != nil || second == first {
		t.Errorf("port = %d, %v, want another one than %d", second, err, first)
	}
	if again := port(t, dir, "apiserver"); again != second {
		t.Errorf("port = %d, want the replacement %d again", again, second)
	}
}

func port(t *testing.T, dir *datadir.Dir, name string) int {
	t.Helper()
	port, err := dir.Port(t.Context(), name)
	if err != nil {
		t.Fatalf("choosing a port: %v", err)
	}
	return port
}
