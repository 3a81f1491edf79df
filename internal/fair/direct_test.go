package fair_test

import (
	"fmt"
	"testing"

	"hookglass/internal/fair"
)

func TestWhatIsNewAndWhatWaitsShareThePlaces(t *testing.T) {
	p, d := fair.NewPlaces(192, 64), fair.NewDirect()
	offers := func(key int64) (n int) {
		for d.Offer(p, fmt.Sprint("tenant ", key), key, key) {
			n++
		}
		return n
	}
	d.Behind(1)
	if n, m := offers(1), offers(2); n != 16 || m != 32 {
		t.Errorf("%d where others wait, want 16, and %d where none do, want 32", n, m)
	}
	d.Kept(1, 0) // and the place is given back
	p.Give("tenant 1", 1)
	if n := offers(1); n != 1 {
		t.Errorf("%d after one came to nothing", n)
	}
	d.Kept(1, 2)
	d.Ended(1)
	if p.Give("tenant 1", 1); offers(1) != 0 {
		t.Error("one that became two, of which one ended, left a place")
	}
	d.Clear()
	if n := offers(1); n == 0 || d.IsBehind(1) {
		t.Errorf("%d more when nothing waits any more", n)
	}
}

func TestAnInboxIsServedInOrderToItsEnd(t *testing.T) {
	box, stop := fair.NewInbox[int](), make(chan struct{})
	for i := range 100 {
		box.Put(i)
	}
	close(stop)
	next := 0
	box.Serve(stop, func(i int) {
		if i != next {
			t.Errorf("%d instead of %d", i, next)
		}
		next++
	})
	if next != 100 {
		t.Errorf("%d of 100", next)
	}
}
