package blobs

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// childDir names the folder to a child process that is there to be killed.
const childDir = "BLOBS_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child puts content, says what was acknowledged, and stands still when it has written content that is not in place yet.
func child(dir string) error {
	ctx := context.Background()
	s, err := Open(ctx, Options{URL: "file://" + dir})
	if err != nil {
		return err
	}
	for i := range 20 {
		hash, err := s.Put(ctx, testRoom, []byte(strings.Repeat("x", i*10_000)))
		if err != nil {
			return err
		}
		fmt.Println("acknowledged", hash)
	}
	content := []byte(strings.Repeat("half", 50_000))
	sum := sha256.Sum256(content)
	key, err := contentKey(testRoom, hex.EncodeToString(sum[:]))
	if err != nil {
		return err
	}
	_, w, err := s.writer(ctx, key)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	fmt.Println("half", hex.EncodeToString(sum[:]))
	select {}
}

func TestKilledWriterLeavesNoHalfContent(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting the child: %v", err)
	}
	var acknowledged []string
	var half string
	for scanner := bufio.NewScanner(out); half == "" && scanner.Scan(); {
		what, hash, _ := strings.Cut(scanner.Text(), " ")
		switch what {
		case "acknowledged":
			acknowledged = append(acknowledged, hash)
		case "half":
			half = hash
		default:
			t.Errorf("the child says: %s", scanner.Text())
		}
	}
	_ = cmd.Process.Kill() // SIGKILL
	_ = cmd.Wait()
	s, err := Open(t.Context(), Options{URL: "file://" + dir})
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	for _, hash := range acknowledged {
		content, err := s.Read(t.Context(), testRoom, hash, 0, 1<<20)
		if sum := sha256.Sum256(content); err != nil || hex.EncodeToString(sum[:]) != hash {
			t.Errorf("what was acknowledged: %d bytes, %v", len(content), err)
		}
	}
	if _, err := s.Read(t.Context(), testRoom, half, 0, 1); len(acknowledged) != 20 || !IsNotFound(err) {
		t.Errorf("%d acknowledged; the half: %v, want it not found", len(acknowledged), err)
	}
	left := func() []string {
		files, _ := filepath.Glob(filepath.Join(dir, "rooms", string(testRoom), "content", half+"*"))
		return files
	}
	if len(left()) != 1 {
		t.Errorf("beside its place: %v, want what was written so far", left())
	}
	stats, err := s.Sweep(t.Context(), testRoom, func(context.Context) (sets.Set[string], error) {
		return sets.New(acknowledged...), nil
	}, SweepOptions{Now: time.Now().Add(2 * time.Hour)})
	if err != nil || stats.Deleted != 1 || stats.Trashed != 0 || len(left()) != 0 {
		t.Errorf("sweeping: %+v, %v, left %v", stats, err, left())
	}
}
