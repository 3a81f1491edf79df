// Package memory fits what the process holds at a time to the memory that it may use.
package memory

import (
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	mib = 1 << 20
	// whole is the memory with which nothing is made smaller. A process whose rooms are all taken, by senders and
	// readers of large bodies at once, was measured to take 640 MB.
	whole = 1024 * mib
	// fixed is what the process takes besides its rooms and its heap: the program, its stacks, and what the embedded
	// database needs for bodies of 10 MiB.
	fixed = 160 * mib
	// least is the smallest part of a size that is left, 1 of least.
	least = 16
)

// usable returns how many bytes of memory the process may use: what its control group allows, or the machine has. It is
// 0 if neither is known.
var usable = sync.OnceValue(func() uint64 {
	machine, err := memlimit.FromSystem()
	if err != nil {
		machine = 0
	}
	group, err := memlimit.FromCgroup()
	if err != nil || machine > 0 && group > machine {
		return machine
	}
	return group
})

// Room returns how many bytes there may be in a room or a cache that is meant for n: fewer in a process that may use
// less than 1 GiB, which the system would end when all of them are full.
func Room(n int64) int64 { return room(n, usable()) }

func room(n int64, limit uint64) int64 {
	if limit == 0 || limit >= whole {
		return n
	}
	return max(n/((whole-fixed)/mib)*(spare(limit)/mib), n/least)
}

// Heap returns how many bytes the heap may have before the garbage collector works harder: most, or fewer where the
// process may use little memory.
func Heap(most int64) int64 { return heap(most, usable()) }

func heap(most int64, limit uint64) int64 {
	if limit == 0 {
		return most
	}
	return max(min(most, spare(limit)/4*3), most/least)
}

func spare(limit uint64) int64 { return max(int64(min(limit, 1<<50))-fixed, 0) }
