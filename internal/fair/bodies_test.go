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
		time.AfterFunc(10*time.Minute, one) // long after the time at which room is recalled that can be
		three, ok := b.Await(t.Context(), "a", 20*mib, time.Hour)
		if !ok || time.Since(began) != 10*time.Minute+time.Second {
			t.Errorf("waited %v for room that was given back, %t", time.Since(began), ok)
		}
		if _, ok := b.Take("a", 20*mib); ok {
			t.Error("a tenant that gave something back has all that it still holds forgotten")
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

func TestRoomIsRecalledFromWhoIsSlowWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		b := fair.NewBodies(64 * mib)
		lend := func(n int64, gives bool) (recalled *int, give func()) {
			recalled, give = new(int), func() {}
			ctx := fair.Recallable(t.Context(), func() bool {
				if *recalled++; gives {
					time.AfterFunc(time.Millisecond, give)
				}
				return gives
			})
			give, ok := b.Await(ctx, "reader", n, time.Second)
			if !ok {
				t.Fatal("there is no room to begin with")
			}
			return recalled, give
		}
		early, _ := lend(10*mib, true)      // due after 20 s and 40 s
		computes, end := lend(5*mib, false) // due before it, and not to blame
		late, _ := lend(15*mib, true)
		time.Sleep(10 * time.Minute)
		if *early != 0 || *late != 0 {
			t.Error("room is recalled while nobody waits")
		}
		began := time.Now()
		give, ok := b.Await(t.Context(), "other", 40*mib, time.Minute)
		if !ok || *early != 1 || *late != 0 || *computes != 1 || time.Since(began) > time.Second {
			t.Errorf("room after %v, %t; recalled %d, %d and %d times", time.Since(began), ok, *early, *late, *computes)
		}
		give()
		end()
	})
}

func TestRoomIsNotRecalledFromWhoKeepsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		b := fair.NewBodies(64 * mib)
		var give func()
		began := time.Now()
		give, _ = b.Await(fair.Recallable(t.Context(), func() bool { go give(); return true }), "reader", 50*mib, time.Second)
		if _, ok := b.Await(t.Context(), "other", 40*mib, 30*time.Second); ok {
			t.Error("room is recalled before its time")
		}
		other, ok := b.Await(t.Context(), "other", 40*mib, time.Hour)
		if took := time.Since(began); !ok || took != 220*time.Second {
			t.Errorf("room after %v, %t", took, ok)
		}
		other()
	})
}

// Who has given its room back is not asked for it in place of who has it now.
func TestRoomThatWasGivenBackIsNotRecalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		b := fair.NewBodies(64 * mib)
		earlier := func() bool { t.Error("room is recalled that nobody has"); return true }
		give, _ := b.Await(fair.Recallable(t.Context(), earlier), "reader", mib, time.Second)
		give()
		var late func()
		late, _ = b.Await(fair.Recallable(t.Context(), func() bool { go late(); return true }), "reader", 50*mib, time.Second)
		time.Sleep(10 * time.Minute)
		other, ok := b.Await(t.Context(), "other", 40*mib, time.Second)
		if !ok {
			t.Fatal("no room is recalled from who has it")
		}
		other()
	})
}
