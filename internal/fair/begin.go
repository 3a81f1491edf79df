package fair

import (
	"runtime"
	"sync"
	"time"
)

// Begin starts work of the group and yields to other goroutines. If many are begun in a row, each takes its turn with
// what arrives meanwhile; otherwise all would run before the next capture.
func Begin(group *sync.WaitGroup, work func()) {
	group.Go(work)
	runtime.Gosched()
}

// Await waits until the group's work has ended, up to patience, and reports whether it has.
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

// Await waits until all offers have ended, up to patience. No further offers may be made meanwhile.
func (d *Direct) Await(patience time.Duration) { Await(&d.promised, patience) }
