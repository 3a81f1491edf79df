package server_test

import (
	"testing"

	"hookglass/internal/server"
)

// The less is alive, the rarer a collection, within bounds.
func TestGarbagePercent(t *testing.T) {
	for _, c := range []struct {
		alive uint64
		want  int
	}{
		{0, 300}, {10 << 20, 300}, {32 << 20, 200}, {64 << 20, 100}, {100 << 20, 64}, {400 << 20, 50},
	} {
		if got := server.GarbagePercent(c.alive); got != c.want {
			t.Errorf("with %d MB alive: %d, want %d", c.alive>>20, got, c.want)
		}
	}
}
