package server

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	// heapLimit is where the collector begins to work harder. Bodies under way take up to 160 MiB (ingest), and
	// what copies and the embedded database's own memory add has to stay below 512 MB together with it.
	heapLimit = 320 << 20
	startTime = 2 * time.Second // after which what starting took is given back
	quietTime = 20 * time.Second
	quietHeap = 24 << 20 // what a quiet process may keep
	quietRuns = 2        // collections in quietTime: the pings of thousands of sockets make some
)

// tuneMemory lets the heap grow before it is collected, as far as a small machine bears: captures leave much
// short-lived garbage, and a rarer collection gains as much as a faster database driver. The environment's own
// settings stand above it.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimit)
	}
}

// returnMemory gives back to the system what a burst of large bodies has left behind, until ctx ends. The runtime
// waits with that for its next collection, and a process in which little happens has none for two minutes. What starting took goes first.
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
