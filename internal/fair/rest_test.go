package fair_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hookglass/internal/fair"
)

func TestWorkRestsForThreeTimesAsLongAsItTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for _, c := range []struct {
			ctx          context.Context
			took, rested time.Duration
		}{
			{t.Context(), 0, 5 * time.Millisecond}, {t.Context(), 2 * time.Millisecond, 6 * time.Millisecond}, {t.Context(), time.Second, 10 * time.Millisecond}, {gone, time.Second, 0},
		} {
			began := time.Now()
			if fair.Rest(c.ctx, began.Add(-c.took)); time.Since(began) != c.rested {
				t.Errorf("after %v it rested for %v, want %v", c.took, time.Since(began), c.rested)
			}
		}
	})
}

func TestWorkIsWaitedForAsLongAsPatienceLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		began := time.Now()
		fair.Begin(&group, func() { time.Sleep(3 * time.Second) })
		if fair.Await(&group, time.Second) || time.Since(began) != time.Second {
			t.Errorf("what goes on has ended, after %v", time.Since(began))
		}
		if !fair.Await(&group, time.Minute) || time.Since(began) != 3*time.Second {
			t.Errorf("what has ended goes on, after %v", time.Since(began))
		}
	})
}
