package memory_test

import (
	"testing"

	"hookglass/internal/memory"
)

const mib = 1 << 20

func TestWhatIsHeldFitsTheMemoryThatThereIs(t *testing.T) {
	const most = 320 * mib
	for _, c := range []struct {
		name        string
		limit       uint64
		rooms, heap int64 // at most
	}{
		{"nothing is known", 0, most, most},
		{"a machine with enough", 64 << 30, most, most},
		{"no limit, in numbers", 1<<64 - 1, most, most},
		{"just enough", 1024 * mib, most, most},
		{"a small container", 512 * mib, 140 * mib, 270 * mib},
		{"a very small one", 256 * mib, 40 * mib, 80 * mib},
		{"less than the program needs", 64 * mib, 20 * mib, 20 * mib},
	} {
		if got := memory.RoomWithin(most, c.limit); got > c.rooms || got < c.rooms*3/4 {
			t.Errorf("%s: a room of %d MiB", c.name, got/mib)
		}
		if got := memory.HeapWithin(most, c.limit); got > c.heap || got < c.heap*3/4 {
			t.Errorf("%s: a heap of %d MiB", c.name, got/mib)
		}
	}
}

func TestTheMemoryOfThisMachineIsKnown(t *testing.T) {
	if limit := memory.Usable(); limit < 64*mib || limit > 1<<50 {
		t.Errorf("this process may use %d bytes", limit)
	}
}
