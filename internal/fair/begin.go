package fair

import (
	"runtime"
	"sync"
	"time"
)

// Begin starts work of the group, and lets others run before it returns. Of many begun in a row each has its turn among
// what came meanwhile; begun at once, they would all be ahead of the next capture.
func Begin(group *sync.WaitGroup, work func()) {
	group.Go(work)
	runtime.Gosched()
}

// Await waits until the group's work has ended, but no longer than so long, and reports whether it has.
func Await(group *sync.WaitGroup, patience time.Duration) bool {
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	select {
	case <-ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// Await waits until each offer has ended, but no longer than so long. No other is made meanwhile.
func (d *Direct) Await(patience time.Duration) { Await(&d.promised, patience) }
