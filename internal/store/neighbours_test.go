package store_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// turn is another node's hold on the turn to store a group of captures.
type turn struct {
	t    *testing.T
	conn *pgx.Conn
}

func newTurn(t *testing.T, dsn string) turn {
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return turn{t, conn}
}

func (o turn) take() { o.run("SELECT pg_advisory_lock($1)") }
func (o turn) give() { o.run("SELECT pg_advisory_unlock($1)") }

func (o turn) run(query string) {
	if _, err := o.conn.Exec(o.t.Context(), query, int64(store.CaptureLock)); err != nil {
		o.t.Fatal(err)
	}
}

// waiter is the mode in which the turn is waited for: shared by who has not made its group yet.
func (o turn) waiter() (mode string) {
	for began := time.Now(); mode == "" && time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
		err := o.conn.QueryRow(o.t.Context(), `SELECT coalesce(min(mode), '') FROM pg_locks
			WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&mode)
		if err != nil {
			o.t.Fatal(err)
		}
	}
	return mode
}

// meet captures events one by one until a group has met the turn in other hands, and returns how many.
func (o turn) meet(capture func()) int {
	for kept := 1; kept <= 200; kept++ {
		var captured sync.WaitGroup
		o.take()
		captured.Go(capture)
		met := o.waiter() == "ShareLock"
		o.give()
		captured.Wait()
		if met {
			return kept
		}
	}
	o.t.Fatal("200 groups all stood in line")
	return 0
}

// sizes are those of the groups of a node, as they are committed.
type sizes struct {
	mu   sync.Mutex
	list []int
}

func (s *sizes) add(captures int, _ int64, _ time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, captures)
}

func (s *sizes) all() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// Where there are other nodes a group is put together when theirs have ended, of all that came until then but for what
// was given up, more than a node that is alone puts into one.
func TestAGroupIsMadeWhenThoseOfOtherNodesHaveEnded(t *testing.T) {
	dsn := storetest.Postgres(t)
	var groups sizes
	db := storetest.Open(t, store.Config{URL: dsn, OnCapture: groups.add})
	e := newEndpoint(t, db)
	other := newTurn(t, dsn)
	var captures sync.WaitGroup
	send := func() {
		captures.Go(func() {
			if err := db.Capture(context.WithoutCancel(t.Context()), 0, newEvent(e, "kept")); err != nil {
				t.Error(err)
			}
		})
	}
	kept := other.meet(func() {
		send()
		captures.Wait()
	})
	other.take()
	ctx, giveUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- db.Capture(ctx, 0, newEvent(e, "given up")) }()
	if mode := other.waiter(); mode != "ShareLock" {
		t.Errorf("the next group has a lock of mode %q", mode)
	}
	giveUp()
	if err := <-gone; !hookglass.Is(err, hookglass.CodeUnavailable) {
		t.Errorf("given up: %v", err)
	}
	for range 100 {
		send()
	}
	for began := time.Now(); db.Queued() < 100 && time.Since(began) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	other.give()
	captures.Wait()
	if last := groups.all()[len(groups.all())-1]; last != 100 {
		t.Errorf("the last group is of %d captures, want 100", last)
	}
	if _, rows := counted(t, db, e); rows != int64(kept)+100 {
		t.Errorf("%d events, want %d", rows, kept+100)
	}
}

// Among other nodes, senders that were answered together send together again, a few at a time: the group waits for most
// of them, but not for long.
func TestAGroupAmongOtherNodesWaitsForSendersThatComeBack(t *testing.T) {
	for _, c := range []struct {
		name        string
		wait        time.Duration
		again, want int // who sends after the first, and how many are in its group
	}{
		{"all but a fifth come", 10 * time.Second, 15, 16},
		{"one comes", time.Millisecond, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(store.SetComeBack(c.wait))
			dsn := storetest.Postgres(t)
			var groups sizes
			db := storetest.Open(t, store.Config{URL: dsn, OnCapture: groups.add})
			e := newEndpoint(t, db)
			capture := func() {
				if err := db.Capture(context.WithoutCancel(t.Context()), 0, newEvent(e, "kept")); err != nil {
					t.Error(err)
				}
			}
			other := newTurn(t, dsn)
			met := other.meet(capture)
			var captures sync.WaitGroup
			other.take()
			for range 20 {
				captures.Go(capture)
			}
			other.waiter()
			for began := time.Now(); db.Queued() < 19 && time.Since(began) < 10*time.Second; {
				time.Sleep(time.Millisecond)
			}
			other.give()
			captures.Wait()
			alone := make(chan struct{})
			captures.Go(func() {
				capture()
				close(alone)
			})
			select {
			case <-alone:
			case <-time.After(200 * time.Millisecond): // none of the others is there by chance
			}
			for range c.again {
				captures.Go(capture)
			}
			captures.Wait()
			if got := groups.all()[met:]; !slices.Equal(got, []int{20, c.want}) {
				t.Errorf("groups of %v captures, want 20 and %d", got, c.want)
			}
		})
	}
}

// A node with so many senders that two of its groups are under way at a time notices other nodes all the same.
func TestACrowdedNodeNoticesOthers(t *testing.T) {
	dsn := storetest.Postgres(t)
	var full, groups atomic.Int64
	db := storetest.Open(t, store.Config{URL: dsn, OnCapture: func(captures int, _ int64, _ time.Duration) {
		if groups.Add(1); captures >= 64 {
			full.Add(1)
		}
	}})
	e := newEndpoint(t, db)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	var senders sync.WaitGroup
	var sent atomic.Int64
	for range 400 {
		senders.Go(func() {
			for ctx.Err() == nil {
				if err := db.Capture(context.WithoutCancel(ctx), 0, newEvent(e, "kept")); err != nil {
					t.Error(err)
					return
				}
				sent.Add(1)
			}
		})
	}
	other := newTurn(t, dsn)
	noticed := false
	for range 1000 { // the node looks for others now and then, and has to while the turn is taken
		for before := groups.Load(); groups.Load() < before+20; { // it is crowded again
			time.Sleep(time.Millisecond)
		}
		other.take()
		noticed = noticed || other.waiter() == "ShareLock"
		other.give()
		if noticed {
			break
		}
	}
	stop()
	senders.Wait()
	if !noticed {
		t.Error("the groups of 1000 turns all stood in line")
	}
	if full.Load() == 0 {
		t.Error("it never was crowded: nothing was tried")
	}
	if _, rows := counted(t, db, e); rows != sent.Load() {
		t.Errorf("%d events, want %d", rows, sent.Load())
	}
}
