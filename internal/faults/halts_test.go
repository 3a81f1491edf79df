//go:build linux

package faults_test

import (
	"sync"
	"testing"
	"time"
)

// halts knows when this process did not run although it should have: the machine stood still, or others had its
// processors. The nodes did not run then either, so that time is not theirs.
var halts = watchHalts()

type halting struct {
	mu     sync.Mutex
	pauses []pause
}

type pause struct{ from, to time.Time }

// haltGrain is what a process may be late by on a machine that runs.
const haltGrain = 200 * time.Millisecond

func watchHalts() *halting {
	h := new(halting)
	go func() {
		last := time.Now()
		for {
			time.Sleep(20 * time.Millisecond)
			now := time.Now()
			h.ran(last, now)
			last = now
		}
	}()
	return h
}

// ran notes that this process ran at two moments, and not in between.
func (h *halting) ran(last, now time.Time) {
	if now.Sub(last) > haltGrain {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.pauses = append(h.pauses, pause{last, now})
	}
}

// between is for how long the process did not run between two moments.
func (h *halting) between(from, to time.Time) (d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.pauses {
		begin, end := p.from, p.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		d += max(0, end.Sub(begin))
	}
	return d
}

// passed is how long it is from one moment to another, without the time in which nothing ran.
func passed(from, to time.Time) time.Duration { return to.Sub(from) - halts.between(from, to) }

func TestTimeInWhichNothingRanIsNotCounted(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	h := new(halting)
	h.ran(at(0), at(200)) // late, and no more
	h.ran(at(1000), at(3000))
	h.ran(at(5000), at(5500))
	for _, c := range []struct{ from, to, want int }{
		{0, 1000, 0}, {0, 4000, 2000}, {2000, 4000, 1000}, {2000, 2500, 500}, {0, 6000, 2500}, {3000, 5000, 0}, {5250, 9000, 250},
	} {
		if got := h.between(at(c.from), at(c.to)); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("between %d and %d ms nothing ran for %v, want %d ms", c.from, c.to, got, c.want)
		}
	}
}
