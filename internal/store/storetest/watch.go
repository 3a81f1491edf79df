package storetest

import (
	"sync/atomic"
	"testing"
	"time"
)

// watchTick is how often a watch looks whether the process runs.
const watchTick = 10 * time.Millisecond

// Watch measures time as this process lives it: while it is given no processor, the watch stands still. So a test may
// have a bound for how long something takes, and not fail because other programs ran meanwhile. The watch begins at
// once and ends with the test; elapsed is what it shows.
func Watch(t testing.TB) (elapsed func() time.Duration) {
	var ticks atomic.Int64
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(watchTick) // it leaves out what nobody was there for
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				ticks.Add(1)
			case <-ended:
				return
			}
		}
	}()
	t.Cleanup(func() { close(ended) })
	return func() time.Duration { return time.Duration(ticks.Load()) * watchTick }
}
