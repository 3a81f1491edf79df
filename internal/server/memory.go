package server

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"sync"
	"time"

	"hookglass/internal/memory"
)

const (
	// heapLimit is where the garbage collector starts to work harder: the rooms for large bodies that are usually taken
	// (package memory), with copies. The embedded database's own memory is not of this heap.
	heapLimit = 320 << 20

	// garbage is how much garbage may accumulate before the next collection, regardless of the live heap: enough for
	// infrequent collections under a load of captures, which leave much short-lived garbage, and little enough that a
	// burst of large mails is soon collected. It is bounded in percent of the live heap, as GOGC is.
	garbage     = 64 << 20
	mostGarbage = 300
	// leastGarbage keeps a process with a large live heap from collecting all the time.
	leastGarbage = 50

	// A collection occupies one of two processors for some 8 ms and delays whoever is answered then. With one every
	// collectEvery, fewer than one capture in a hundred is affected, so their p99 does not show it. For that, a busy
	// process may let its heap grow to pacedHeap; that memory is returned once it is quiet.
	collectEvery = 2 * time.Second
	pacedHeap    = 144 << 20
	mostPaced    = 4000 // percent

	startTime = 2 * time.Second // then the memory used for starting is returned
	quietTime = 20 * time.Second
	quietHeap = 24 << 20 // what a quiet process may keep
	quietRuns = 2        // collections in quietTime: the pings of thousands of sockets make some
)

// tuneMemory lets the heap grow before it is collected, as far as a small machine allows: rarer collections speed up
// captures as much as a faster database driver would. After each collection it computes from the live heap when the
// next is due. GOGC and GOMEMLIMIT in the environment take precedence.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		tuneOnce.Do(func() {
			debug.SetGCPercent(mostGarbage)
			tuneCollector(collected{percent: mostGarbage, asked: allocated(), at: time.Now()})
		})
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory.Heap(heapLimit))
	}
}

// tuneOnce: a process has one collector, but tests start several servers.
var tuneOnce sync.Once

// collected is the basis for tuning after the next collection: the GOGC that was set, the total bytes allocated by
// then, and the recent live heap.
type collected struct {
	percent int
	asked   uint64
	at      time.Time
	alive   uint64
}

// tuneCollector sets GOGC after the next collection and after each later one.
func tuneCollector(last collected) {
	sentinel := new([64]byte) // unreachable, so the next collection frees it
	runtime.AddCleanup(sentinel, func(last collected) {
		next := collected{percent: last.percent, asked: allocated(), at: time.Now(), alive: lately(last.alive, heapAlive())}
		rate := float64(next.asked-last.asked) / max(next.at.Sub(last.at), time.Millisecond).Seconds()
		percent := garbagePercent(next.alive, rate)
		// Setting it stops the world for a moment, so ignore small changes.
		if percent < last.percent-last.percent/8 || percent > last.percent+last.percent/8 {
			debug.SetGCPercent(percent)
			next.percent = percent
		}
		tuneCollector(next)
	}, last)
}

// lately returns a smoothed live heap from its previous value and the current one. It falls slowly: when a large live
// heap shrinks, a percentage that suits the small heap would let the next goal become a multiple of the large one
// before it could be corrected.
func lately(before, now uint64) uint64 { return max(now, before-before/8) }

// garbagePercent returns GOGC for a live heap and an allocation rate in bytes per second.
func garbagePercent(alive uint64, rate float64) int {
	paced := uint64(min(rate*collectEvery.Seconds(), pacedHeap))
	paced = min(paced, pacedHeap-min(alive, pacedHeap))
	alive = max(alive, 1)
	paced = paced * 100 / alive
	return int(max(min(max(garbage*100/alive, leastGarbage), mostGarbage), min(paced, mostPaced)))
}

// heapAlive returns the live heap at the last collection in bytes, and allocated the total bytes allocated.
func heapAlive() uint64 { return heapMetric("/gc/heap/live:bytes") }
func allocated() uint64 { return heapMetric("/gc/heap/allocs:bytes") }

func heapMetric(name string) uint64 {
	sample := []runtimemetrics.Sample{{Name: name}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}

// returnMemory returns memory to the system after a burst of large bodies, until ctx ends. The runtime waits for its
// next collection with that, and an idle process has none for two minutes. It begins with the memory used for starting.
func returnMemory(ctx context.Context) error {
	select {
	case <-time.After(startTime):
	case <-ctx.Done():
		return nil
	}
	runtime.GC() // in addition to that of FreeOSMemory: a sync.Pool survives one collection
	debug.FreeOSMemory()
	returnProgram()
	tick := time.NewTicker(quietTime)
	defer tick.Stop()
	var m runtime.MemStats
	for collections := uint32(0); ; collections = m.NumGC {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if runtime.ReadMemStats(&m); m.NumGC-collections <= quietRuns && m.HeapSys-m.HeapReleased > quietHeap {
			debug.FreeOSMemory()
		}
	}
}
