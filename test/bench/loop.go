package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// call is one operation, done by a client. n counts the calls of all clients, from 0.
type call func(client, n int) error

// operation is something to measure.
type operation struct {
	// name of the operation.
	name string
	// clients that call at once, each as soon as its last call is answered.
	clients int
	// prepare makes what a run needs, outside the timed part. It gives the call, and how often it can be made: 0 for as
	// often as the time allows.
	prepare func(ctx context.Context, round int) (call, int, error)
}

// sample is what one run gave.
type sample struct {
	// rate of calls a second.
	rate float64
	// p50, p99 and max are how long calls took.
	p50, p99, max time.Duration
	// wall is how long the run took altogether.
	wall time.Duration
	// others is how many cores programs had that are not measured here.
	others float64
	// cpu is what a call costs each process.
	cpu map[string]time.Duration
}

// repose is the time between what an operation needs and its first call.
const repose = 250 * time.Millisecond

// sample runs an operation once.
func (w *world) sample(ctx context.Context, op operation, round int, limit time.Duration) (sample, error) {
	do, count, err := op.prepare(ctx, round)
	if err != nil {
		return sample{}, err
	}
	select { // what the preparation set off comes to rest
	case <-time.After(repose):
	case <-ctx.Done():
	}
	before, busy := w.plane.cpu(), busyCPU()
	took, wall, err := loop(ctx, op.clients, do, count, limit)
	if err != nil {
		return sample{}, err
	}
	after, busyThen := w.plane.cpu(), busyCPU()
	if len(took) == 0 {
		return sample{}, errors.New("not one call was made")
	}
	slices.Sort(took)
	s := sample{
		rate: float64(len(took)) / wall.Seconds(), wall: wall, cpu: map[string]time.Duration{},
		p50: took[len(took)/2], p99: took[len(took)*99/100], max: took[len(took)-1],
	}
	foreign := busyThen - busy
	for process, spent := range after {
		s.cpu[process] = (spent - before[process]) / time.Duration(len(took))
		foreign -= spent - before[process]
	}
	s.others = max(0, foreign.Seconds()/wall.Seconds())
	return s, nil
}

// loop has clients call until the time is up, or until count calls were made.
func loop(ctx context.Context, clients int, do call, count int, limit time.Duration) ([]time.Duration, time.Duration, error) {
	if count > 0 {
		limit = time.Minute
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	start := make(chan struct{})
	var began time.Time
	for client := range clients {
		wg.Go(func() {
			var took []time.Duration
			<-start
			for ctx.Err() == nil && time.Since(began) < limit {
				n := int(next.Add(1)) - 1
				if count > 0 && n >= count {
					break
				}
				at := time.Now()
				if err := do(client, n); err != nil {
					cancel(err)
					break
				}
				took = append(took, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	began = time.Now()
	close(start)
	wg.Wait()
	wall := time.Since(began)
	return all, wall, context.Cause(ctx)
}
