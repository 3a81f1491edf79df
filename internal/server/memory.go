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

	// A collection takes one of two processors for some 8 ms, and whoever is answered meanwhile waits for it. One in
	// collectEvery is met by fewer than one capture in a hundred, so their p99 does not see it. A process that is that
	// busy may let its heap grow to pacedHeap for it; what it leaves goes back to the system once it is quiet.
	collectEvery = 2 * time.Second
	pacedHeap    = 144 << 20
	mostPaced    = 4000 // percent

	startTime = 2 * time.Second // after which what starting took is given back
	quietTime = 20 * time.Second
	quietHeap = 24 << 20 // what a quiet process may keep
	quietRuns = 2        // collections in quietTime: the pings of thousands of sockets make some
)

// tuneMemory lets the heap grow before it is collected, as far as a small machine bears: a rarer collection gains
// captures as much as a faster database driver. After each collection it is settled again, from what is alive, when the
// next is due. The environment's own settings stand above it.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		tuneOnce.Do(func() {
			debug.SetGCPercent(mostGarbage)
			tuneCollector(collected{percent: mostGarbage, asked: allocated(), at: time.Now()})
		})
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimit)
	}
}

// tuneOnce is because a process has one collector, and its tests several servers.
var tuneOnce sync.Once

// collected is what the next collection is settled by: how the last one left GOGC, what the process had asked for in
// its life when it was over, and how much has been alive of late.
type collected struct {
	percent int
	asked   uint64
	at      time.Time
	alive   uint64
}

// tuneCollector settles GOGC after the next collection, and after each that follows last.
func tuneCollector(last collected) {
	sentinel := new([64]byte) // nobody holds it, so the next collection finds it
	runtime.AddCleanup(sentinel, func(last collected) {
		next := collected{percent: last.percent, asked: allocated(), at: time.Now(), alive: lately(last.alive, heapAlive())}
		rate := float64(next.asked-last.asked) / max(next.at.Sub(last.at), time.Millisecond).Seconds()
		percent := garbagePercent(next.alive, rate)
		// Setting it stops the program for a moment.
		if percent < last.percent-last.percent/8 || percent > last.percent+last.percent/8 {
			debug.SetGCPercent(percent)
			next.percent = percent
		}
		tuneCollector(next)
	}, last)
}

// lately is how much is taken to be alive where the last collections took it to be before, and this one found now. It
// falls slowly: a process of which much was alive, then little, collects again at once, which is before a percentage
// that was right for little could be taken back, and the goal after that one would be a multiple of much.
func lately(before, now uint64) uint64 { return max(now, before-before/8) }

// garbagePercent is the GOGC for so many bytes that are alive, in a process that asks for so many a second.
func garbagePercent(alive uint64, rate float64) int {
	paced := uint64(min(rate*collectEvery.Seconds(), pacedHeap))
	paced = min(paced, pacedHeap-min(alive, pacedHeap))
	alive = max(alive, 1)
	paced = paced * 100 / alive
	return int(max(min(max(garbage*100/alive, leastGarbage), mostGarbage), min(paced, mostPaced)))
}

// heapAlive is what the last collection found to be in use, in bytes, and allocated what the process has asked for in
// its life.
func heapAlive() uint64 { return heapMetric("/gc/heap/live:bytes") }
func allocated() uint64 { return heapMetric("/gc/heap/allocs:bytes") }

func heapMetric(name string) uint64 {
	sample := []runtimemetrics.Sample{{Name: name}}
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
