package signin

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestACodeIsGoodOnce(t *testing.T) {
	dir := t.TempDir()
	code, err := Write(dir, "secret", noon)
	if err != nil {
		t.Fatal(err)
	}
	var won atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if token, err := Take(dir, code, noon.Add(time.Minute)); err == nil && token == "secret" {
				won.Add(1)
			} else if err != nil && !errors.Is(err, ErrNoCode) {
				t.Errorf("taking the code: %v", err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d got the token, want one", won.Load())
	}
}

func TestACodeEnds(t *testing.T) {
	dir := t.TempDir()
	code, err := Write(dir, "secret", noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(dir, code, noon.Add(Life)); !errors.Is(err, ErrNoCode) {
		t.Errorf("an old code gave %v", err)
	}
	if _, err := Write(dir, "secret", noon); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(dir, "secret", noon.Add(2*Life)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d codes are left (%v), want the last one", len(entries), err)
	}
}

func TestWhatIsNoCodeIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, code := range []string{"", "../../etc/passwd", "AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		if _, err := Take(dir, code, noon); !errors.Is(err, ErrNoCode) {
			t.Errorf("%q gave %v", code, err)
		}
	}
}

func TestCodesAreBounded(t *testing.T) {
	dir := t.TempDir()
	var last error
	for range maxCodes + 1 {
		_, last = Write(dir, "secret", noon)
	}
	if last == nil {
		t.Error("any number of codes may wait")
	}
}
