package delivery

import (
	"testing"
	"time"

	"hookglass"
)

// A backlog leaves some places to what is new, and what is new leaves the others to the backlog.
func TestWhatIsNewAndWhatWaitsShareThePlaces(t *testing.T) {
	f := NewForwarder(nil, ForwardConfig{Now: time.Now})
	desk, busy, other := forwardDesk{f}, &hookglass.Event{EndpointNum: 1}, &hookglass.Event{EndpointNum: 2}
	offered := func(e *hookglass.Event) (n int) {
		for desk.Offer(0, e) > 0 {
			n++
		}
		return n
	}
	f.behind[busy.EndpointNum] = true
	if n, m := offered(busy), offered(other); n != handedBehind || m != 32 {
		t.Errorf("%d where others wait, want %d, and %d where none do, want 32", n, handedBehind, m)
	}
	desk.Take(0, busy, nil)
	if n := offered(busy); n != 1 {
		t.Errorf("%d after one has ended", n)
	}
	f.behind[busy.EndpointNum] = false
	if n := offered(busy); n != 16 {
		t.Errorf("%d more when nothing waits any more", n)
	}
	for range 32 {
		desk.Take(0, busy, nil)
		desk.Take(0, other, nil)
	}
	if len(f.direct) != 0 {
		t.Errorf("left behind: %v", f.direct)
	}
}
