package fair_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"hookglass/internal/fair"
)

func TestBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		b := fair.NewBodies(64 * mib)
		one, ok := b.Take("a", 20*mib)
		if !ok {
			t.Fatal("there is no room for the first")
		}
		two, ok := b.Take("a", 20*mib)
		if !ok {
			t.Fatal("there is no room for the second")
		}
		if _, ok := b.Take("a", 20*mib); ok {
			t.Error("a tenant takes more than is left to the others")
		}
		if other, ok := b.Take("b", 20*mib); !ok {
			t.Error("another tenant has no room")
		} else {
			other()
		}
		if small, ok := b.Take("a", fair.SmallBody); !ok {
			t.Error("a small body has no room")
		} else {
			small()
		}
		began := time.Now()
		if _, ok := b.Await(t.Context(), "a", 20*mib, time.Second); ok || time.Since(began) != time.Second {
			t.Errorf("waited %v for room that nobody gives back, %t", time.Since(began), ok)
		}
		time.AfterFunc(time.Minute, one)
		three, ok := b.Await(t.Context(), "a", 20*mib, time.Hour)
		if !ok || time.Since(began) != time.Minute+time.Second {
			t.Errorf("waited %v for room that was given back, %t", time.Since(began), ok)
		}
		two()
		three()
		whole, ok := b.Take("a", 100*mib)
		if !ok {
			t.Fatal("what is larger than all goes alone")
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := b.Await(gone, "b", mib, time.Hour); ok {
			t.Error("who went away has room")
		}
		whole()
	})
}

func TestBytesAreSharedToo(t *testing.T) {
	const mb = 1 << 20
	b := fair.NewBodies(96 * mb)
	take := func(of string, n int64) (give func()) {
		t.Helper()
		give, ok := b.Take(of, n)
		if !ok {
			t.Fatalf("no room for %d bytes of %s", n, of)
		}
		return give
	}
	full := func(of string, n int64, why string) {
		t.Helper()
		if _, ok := b.Take(of, n); ok {
			t.Error(why)
		}
	}
	alone := take("a", 200*mb)
	full("b", mb, "what is larger than all goes alone")
	alone()
	all := []func(){take("a", 25*mb), take("a", 10*mb)}
	full("a", 27*mb, "a tenant has up to what is left free")
	all = append(all, take("b", 25*mb)) // something is left for another
	for _, give := range all {
		give()
	}
	take("a", 96*mb)() // nothing of what was given back is gone
}
