// Package gctune paces the garbage collector of processes with a small heap. By default a cycle starts when the heap has
// doubled, which for a heap of 20 MiB that allocates 100 MiB a second is five times a second. With some headroom it is once.
package gctune

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// standard is the growth in percent at which Go starts a cycle by default. It is never less.
	standard = 100
	// most bounds the growth of a heap that holds next to nothing.
	most = 2000
)

// Headroom lets the heap grow by at least so many bytes before a cycle starts. Whoever sets GOGC decides for themselves.
func Headroom(bytes uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	p := &pacer{headroom: bytes, percent: standard, set: debug.SetGCPercent}
	p.adjust(live())
	p.arm()
}

// pacer adjusts the growth after each cycle.
type pacer struct {
	headroom uint64
	percent  int
	set      func(percent int) int
}

// arm has the next cycle adjust the growth.
func (p *pacer) arm() {
	sentinel := &struct{ p *pacer }{p}
	runtime.SetFinalizer(sentinel, func(*struct{ p *pacer }) {
		p.adjust(live())
		p.arm()
	})
}

// adjust sets the growth for a heap of which so many bytes live, when that makes a difference.
func (p *pacer) adjust(live uint64) {
	percent := growth(live, p.headroom)
	if diff := percent - p.percent; diff > -p.percent/10 && diff < p.percent/10 {
		return
	}
	p.percent = percent
	p.set(percent)
}

// growth gives the percentage by which a heap may grow.
func growth(live, headroom uint64) int {
	if live == 0 {
		return most
	}
	return int(max(standard, min(most, headroom*100/live))) //nolint:gosec // bounded
}

// live gives how many bytes were marked in the last cycle.
func live() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
