package blobs

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"gocloud.dev/gcerrors"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestABucketWhoseVolumeIsGoneTakesNothing puts an empty folder where the volume was: who archives there would delete what it
// believes to be safe.
func TestABucketWhoseVolumeIsGoneTakesNothing(t *testing.T) {
	dir := t.TempDir() + "/store"
	s, err := Open(t.Context(), Options{URL: "file://" + dir, PublicURL: "http://127.0.0.1:1/t"})
	if err != nil {
		t.Fatal(err)
	}
	b := s.Bucket()
	if err := b.WriteAll(t.Context(), "rooms/r/messages/1", []byte("old"), nil); err != nil {
		t.Fatal(err)
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(dir, dir+".away")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.WriteAll(t.Context(), "rooms/r/messages/2", []byte("new"), nil); err == nil {
		t.Error("an empty folder in its place takes an object")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("something was written there: %v, %v", entries, err)
	}
	if r, err := b.NewReader(t.Context(), "rooms/r/messages/1", nil); err == nil || gcerrors.Code(err) == gcerrors.NotFound {
		t.Errorf("what is away seems not to be there: %v, %v", r, err)
	}
	if b.Ready() == nil {
		t.Error("the store seems to be ready")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	move(dir+".away", dir)
	if got, err := b.ReadAll(t.Context(), "rooms/r/messages/1"); err != nil || string(got) != "old" {
		t.Errorf("after it came back: %q, %v", got, err)
	}
	if _, err := b.NewReader(t.Context(), "rooms/r/messages/2", nil); gcerrors.Code(err) != gcerrors.NotFound {
		t.Errorf("what never was gives %v", err)
	}
}

// TestMuchThatIsInUseDoesNotHideWhatIsNot gives a room more content in use than one sweep takes up.
func TestMuchThatIsInUseDoesNotHideWhatIsNot(t *testing.T) {
	s, err := Open(t.Context(), Options{URL: "file://" + t.TempDir(), PublicURL: "http://127.0.0.1:1/t"})
	if err != nil {
		t.Fatal(err)
	}
	s.sweepAtOnce = 5
	used := sets.New[string]()
	for i := range 40 {
		hash, err := s.Put(t.Context(), testRoom, fmt.Append(nil, i))
		if err != nil {
			t.Fatal(err)
		}
		if i%10 > 0 {
			used.Insert(hash)
		}
	}
	referenced := func(context.Context) (sets.Set[string], error) { return used, nil }
	stats, err := s.Sweep(t.Context(), testRoom, referenced, SweepOptions{Now: time.Now().Add(2 * DefaultGrace)})
	if err != nil || stats.Trashed != 4 || stats.Kept != 36 || stats.More {
		t.Errorf("the sweep gives %+v, %v, want the four that nobody refers to in the trash and no more to do", stats, err)
	}
}
