package gctune

import (
	"runtime"
	"testing"
	"time"
)

func TestGrowth(t *testing.T) {
	const mib = 1 << 20
	for _, tc := range []struct {
		live uint64
		want int
	}{
		{0, 2000}, {mib, 2000}, {16 * mib, 400}, {32 * mib, 200}, {64 * mib, 100}, {1024 * mib, 100},
	} {
		if got := growth(tc.live, 64*mib); got != tc.want {
			t.Errorf("with %d MiB alive the heap may grow by %d %%, want %d %%", tc.live/mib, got, tc.want)
		}
	}
}

func TestEachCycleAdjusts(t *testing.T) {
	set := make(chan int, 64)
	p := &pacer{headroom: 64 << 20, percent: standard, set: func(percent int) int { set <- percent; return 0 }}
	p.arm()
	for range 2 { // the second cycle finds the sentinel that the first one left
		runtime.GC()
		select {
		case <-set:
			p.percent = standard
		case <-time.After(10 * time.Second):
			t.Fatal("a cycle of the collector did not adjust the pace")
		}
	}
}
