package fair

import (
	"runtime"
	"sync"
)

// Begin starts work of the group, and lets others run before it returns. Of many begun in a row each has its turn among what came meanwhile; begun at
// once, they would all be ahead of the next capture.
func Begin(group *sync.WaitGroup, work func()) {
	group.Go(work)
	runtime.Gosched()
}
