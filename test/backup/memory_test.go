package backup_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/test/harness"
)

const (
	// manyMessages have about 90 MB as lines of JSON.
	manyMessages = 200_000
	largeFile    = 200 << 20
	// memory is what either command may take at most: half of the file, and as much as an idle one and some segments do.
	memory = 160 << 20
)

// testMemoryDoesNotGrowWithTheRoom takes a long history, half of it in the blob store, and a large file to another plane.
func testMemoryDoesNotGrowWithTheRoom(t *testing.T) {
	if os.Getenv("BACKUP_MEMORY") == "" || runtime.GOOS != "linux" {
		t.Skip("BACKUP_MEMORY is not set: this takes some minutes, and asks Linux how much memory was used")
	}
	w, _ := room(t, manyMessages, 100_000)
	upload(t, w)
	file, second := filepath.Join(t.TempDir(), "a.tar.gz"), filepath.Join(t.TempDir(), "b.tar.gz")
	measured(t, command(t, from, "export", "lab", "-n", w.Namespace, "-o", file))
	v := accounts(t, to, "cc", "dd", "decider")
	measured(t, command(t, to, "import", file, "-n", v.Namespace))
	measured(t, command(t, to, "export", "lab", "-n", v.Namespace, "-o", second))
	if !bytes.Equal(content(t, file), content(t, second)) {
		t.Error("the archive of the restored room is another one")
	}
}

// upload puts a large file into the room, as an upload does.
func upload(t *testing.T, w *harness.World) {
	t.Helper()
	store, err := blobs.Open(context.Background(), blobs.Options{URL: blobURL(w.Plane)})
	if err != nil {
		t.Fatal(err)
	}
	lab := theRoom(t, w)
	random := io.LimitReader(rand.NewChaCha8([32]byte{}), largeFile)
	verdict, err := store.PutStream(context.Background(), lab.UID, random, blobs.Expect{Size: largeFile})
	if err != nil || !verdict.OK {
		t.Fatalf("storing the file: %v, %+v", err, verdict)
	}
	w.Create(&v1alpha1.File{
		ObjectMeta: metav1.ObjectMeta{Name: ids.FileName("lab", lab.UID, files.Look("large"))},
		Spec: v1alpha1.FileSpec{RoomRef: v1alpha1.RoomReference{Name: "lab"}, Path: "large", Versions: []v1alpha1.FileVersion{{
			Version: 1, FileContent: v1alpha1.FileContent{
				SHA256: verdict.SHA256, Size: verdict.Size, ContentType: "application/octet-stream",
				By: v1alpha1.TaskCreator{Plate: w.Plates["cc"]}, At: metav1.NowMicro(),
			},
		}}},
	})
}

// measured runs a command and holds the memory that it has taken to its bound.
func measured(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd.Args[1], err, out)
	}
	taken := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	t.Logf("%s took %d MiB and %s", cmd.Args[1], taken>>20, cmd.ProcessState.UserTime())
	if taken > memory {
		t.Errorf("%s took %d MiB of memory, want at most %d", cmd.Args[1], taken>>20, memory>>20)
	}
}
