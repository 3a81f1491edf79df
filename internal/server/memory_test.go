package server_test

import (
	"testing"

	"hookglass/internal/server"
)

// The less is alive, and the more a process asks for, the rarer a collection, within bounds.
func TestGarbagePercent(t *testing.T) {
	for _, c := range []struct {
		alive uint64
		rate  float64 // bytes a second
		want  int
	}{
		{0, 0, 300}, {10 << 20, 0, 300}, {32 << 20, 0, 200}, {64 << 20, 0, 100}, {100 << 20, 0, 64}, {400 << 20, 0, 50},
		{10 << 20, 10 << 20, 300}, {10 << 20, 40 << 20, 800}, {10 << 20, 1 << 30, 1340}, {72 << 20, 1 << 30, 100}, {100 << 20, 1 << 30, 64}, {400 << 20, 1 << 30, 50}, {0, 1 << 30, 4000},
	} {
		if got := server.GarbagePercent(c.alive, c.rate); got != c.want {
			t.Errorf("with %d MB alive and %.0f MB a second: %d, want %d", c.alive>>20, c.rate/(1<<20), got, c.want)
		}
	}
}

// A collection that follows at once on one that found little alive may find much again, and nobody could settle anything
// between the two: what the first one left must not let the heap grow to a multiple of much.
func TestWhatWasAliveIsRememberedForAWhile(t *testing.T) {
	const much, little, fast = 50 << 20, 10 << 20, 1 << 30
	alive := server.Lately(0, much)
	if alive != much {
		t.Errorf("%d MB alive were taken for %d", much>>20, alive>>20)
	}
	alive = server.Lately(alive, little)
	if goal := much + much/100*server.GarbagePercent(alive, fast); goal > 256<<20 {
		t.Errorf("right after: the heap may grow to %d MB", goal>>20)
	}
	for range 20 {
		alive = server.Lately(alive, little)
	}
	if alive != little {
		t.Errorf("%d MB have been alive twenty times, and were taken for %d", little>>20, alive>>20)
	}
}
