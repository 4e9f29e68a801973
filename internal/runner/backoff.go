package runner

import "time"

// Backoff says how long to wait after failures: each one doubles the wait, from First up to Max.
type Backoff struct {
	First, Max time.Duration
}

// Delay gives the wait after a number of failures in a row, at least one. Chance in [0, 1) spreads it over the upper half, so
// that many who failed together do not come again together.
func (b Backoff) Delay(failures int, chance float64) time.Duration {
	d := b.First
	for i := 1; i < failures && d < b.Max; i++ {
		d *= 2
	}
	return jitter(min(d, b.Max), chance)
}

// jitter gives between half of a duration and all of it.
func jitter(d time.Duration, chance float64) time.Duration {
	return d/2 + time.Duration(chance*float64(d/2))
}

// Every gives the pause of something that is done again and again about once in d, by chance up to half of it sooner.
func Every(d time.Duration, chance float64) time.Duration { return jitter(d, chance) }
