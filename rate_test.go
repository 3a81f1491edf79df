package hookglass_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"hookglass"
)

// Whoever looks when, no window has more requests than the bound allows in it and a second's worth, nor fewer in the
// end than it allows.
func TestABoundHoldsInEveryWindow(t *testing.T) {
	for _, r := range []hookglass.Rate{{1, time.Second}, {2, time.Second}, {5, time.Second}, {7, time.Second}, {100, time.Second}, {1000, time.Second}, {1, time.Minute}, {7, time.Minute}, {90, time.Minute}} {
		began := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
		end := began.Add(20 * max(time.Second, r.Every()))
		var next time.Time
		var sent []time.Time
		for now := began; now.Before(end); {
			n := r.Turns(next, now)
			if n > 0 {
				n = 1 + rand.IntN(n)
				if len(sent)%3 == 0 {
					n = r.Turns(next, now)
				}
				next = r.After(next, now, n)
				for range n {
					sent = append(sent, now)
				}
			}
			now = now.Add(time.Duration(1 + rand.Int64N(int64(min(r.Every(), 20*time.Millisecond)))))
		}
		every := float64(r.Every())
		// The fullest of the windows that end at a request begins where most is sent after less than its time.
		ahead := func(i int) float64 { return float64(i) - float64(sent[i].Sub(began))/every }
		i := 0
		for k := range sent {
			if ahead(k) < ahead(i) {
				i = k
			}
			window := sent[k].Sub(sent[i])
			if most := float64(window)/every + max(1, float64(time.Second)/every); float64(k-i+1) > most+1e-6 {
				t.Fatalf("%v: %d requests in %v", r, k-i+1, window)
			}
		}
		if least := int(float64(end.Sub(began)) / float64(r.Every()+20*time.Millisecond)); len(sent) < least*8/10 {
			t.Errorf("%v: %d requests of %d", r, len(sent), least)
		}
	}
}

func TestATurnThatIsTooFarAheadIsOfAnotherClock(t *testing.T) {
	r, now := hookglass.Rate{Limit: 1, Period: time.Minute}, time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for next, turns := range map[time.Duration]int{time.Minute: 0, time.Second: 0, 0: 1, -time.Hour: 1, time.Hour: 1} {
		if got := r.Turns(now.Add(next), now); got != turns {
			t.Errorf("next turn in %v: %d turns", next, got)
		}
		if ready := r.Ready(now.Add(next), now); ready.After(now) != (turns == 0) {
			t.Errorf("next turn in %v: ready in %v", next, ready.Sub(now))
		}
	}
}
