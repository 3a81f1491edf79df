package server

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"sync"
	"time"
)

const (
	// heapLimit is where the collector begins to work harder. Bodies under way take up to 160 MiB (ingest), and
	// what copies and the embedded database's own memory add has to stay below 512 MB together with it.
	heapLimit = 320 << 20

	// garbage is how much may lie about until the next collection, whatever is alive: enough for a rare collection
	// under a load of captures, which leave much that is short-lived, and little enough that a burst of large mails
	// does not leave its mark. Bounds on it, in percent of what is alive, are those of GOGC.
	garbage     = 64 << 20
	mostGarbage = 300
	// leastGarbage keeps a process with much that is alive from doing nothing but collecting.
	leastGarbage = 50

	startTime = 2 * time.Second // after which what starting took is given back
	quietTime = 20 * time.Second
	quietHeap = 24 << 20 // what a quiet process may keep
	quietRuns = 2        // collections in quietTime: the pings of thousands of sockets make some
)

// tuneMemory lets the heap grow before it is collected, as far as a small machine bears: a rarer collection gains
// captures as much as a faster database driver. After each collection it is settled anew, from what is alive, when the
// next is due. The environment's own settings stand above it.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		tuneOnce.Do(func() {
			debug.SetGCPercent(mostGarbage)
			tuneCollector(mostGarbage)
		})
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimit)
	}
}

// tuneOnce is because a process has one collector, and its tests several servers.
var tuneOnce sync.Once

// tuneCollector settles GOGC after the next collection, and after each that follows.
func tuneCollector(percent int) {
	sentinel := new([64]byte) // nobody holds it, so the next collection finds it
	runtime.AddCleanup(sentinel, func(before int) {
		next := garbagePercent(heapAlive())
		if next < before-before/8 || next > before+before/8 { // setting it stops the program for a moment
			debug.SetGCPercent(next)
		} else {
			next = before
		}
		tuneCollector(next)
	}, percent)
}

// garbagePercent is the GOGC for so many bytes that are alive.
func garbagePercent(alive uint64) int {
	return int(min(max(garbage*100/max(alive, 1), leastGarbage), mostGarbage))
}

// heapAlive is what the last collection found to be in use, in bytes.
func heapAlive() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}

// returnMemory gives back to the system what a burst of large bodies has left behind, until ctx ends. The runtime waits
// with that for its next collection, and a process in which little happens has none for two minutes. What starting took
// goes first.
func returnMemory(ctx context.Context) error {
	select {
	case <-time.After(startTime):
	case <-ctx.Done():
		return nil
	}
	runtime.GC() // once more than FreeOSMemory does: a pool survives the first collection
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
