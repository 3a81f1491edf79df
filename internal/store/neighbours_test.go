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

// turn is another node's hold on the turn to store a group of captures, the first half of which is not stored yet.
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

func (o turn) take() {
	o.run("SELECT pg_advisory_lock($1)", store.CaptureLock)
	o.run("SELECT pg_advisory_lock($1)", store.EventsLock)
}

// half says that half of the group is stored.
func (o turn) half() { o.run("SELECT pg_advisory_unlock($1)", store.EventsLock) }

func (o turn) give() { o.run("SELECT pg_advisory_unlock_all()") }

func (o turn) run(query string, args ...any) {
	if _, err := o.conn.Exec(o.t.Context(), query, args...); err != nil {
		o.t.Fatal(err)
	}
}

// waiter is the mode in which the group's end is waited for: shared by who has not made its group yet.
func (o turn) waiter() string { return o.waiterOtherThan("") }

// waiterOtherThan waits until nobody waits in that mode any more, but somebody in another.
func (o turn) waiterOtherThan(last string) (mode string) {
	for began := time.Now(); (mode == "" || mode == last) && time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
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

// of are all there are, once there are so many: a capture is answered before its group is told of.
func (s *sizes) of(groups int) (all []int) {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		all = slices.Clone(s.list)
		s.mu.Unlock()
		if len(all) >= groups || time.Since(began) > time.Minute {
			return all
		}
	}
}

// Where there are other nodes a group is put together when half of theirs is stored, of all that came until then but for
// what was given up, more than a node that is alone puts into one. It is stored when theirs has ended.
func TestAGroupIsMadeWhenThoseOfOtherNodesAreHalfStored(t *testing.T) {
	dsn := storetest.Migrated(t)
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
	for began := time.Now(); db.Queued() < 100 && time.Since(began) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	other.half()
	if mode := other.waiterOtherThan("ShareLock"); mode != "ExclusiveLock" {
		t.Errorf("when half of a group is stored, the next waits for a lock of mode %q", mode)
	}
	if made := groups.of(kept); len(made) != kept {
		t.Errorf("%d groups have been stored before the turn was given back, want %d", len(made), kept)
	}
	other.give()
	captures.Wait()
	if made := groups.of(kept + 1); !slices.Equal(made[kept:], []int{100}) {
		t.Errorf("groups of %d captures, want one of 100", made[kept:])
	}
	if _, rows := counted(t, db, e); rows != int64(kept)+100 {
		t.Errorf("%d events, want %d", rows, kept+100)
	}
}

// A node that has met others tells them when half of its group is stored, and is not waited for when its group fails.
func TestAGroupTellsOtherNodesWhenItIsHalfStored(t *testing.T) {
	dsn := storetest.Migrated(t)
	db := storetest.Open(t, store.Config{URL: dsn})
	e := newEndpoint(t, db)
	first := newEvent(e, "first")
	capture(t, db, first)
	other := newTurn(t, dsn)
	const before, after = 1, 2 // locks of ours, on which the server waits before it stores an event, and before it commits
	other.run(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		PERFORM pg_advisory_xact_lock(TG_ARGV[0]::bigint); RETURN NEW; END $$`)
	other.run(`CREATE TRIGGER before BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION wait(1)`)
	other.run(`CREATE CONSTRAINT TRIGGER after AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait(2)`)
	other.meet(func() { capture(t, db, newEvent(e, "met")) })
	for _, events := range [][]*hookglass.Event{assortment(20, e), {newEvent(e, "alone")}} {
		other.run("SELECT pg_advisory_lock($1)", before)
		other.run("SELECT pg_advisory_lock($1)", after)
		var captures sync.WaitGroup
		captures.Go(func() {
			for _, err := range db.CaptureGroup(context.WithoutCancel(t.Context()), events, store.Work{}) {
				if err != nil {
					t.Error(err)
				}
			}
		})
		other.waiter()
		if turn, making := other.held(store.CaptureLock), other.held(store.EventsLock); !turn || !making {
			t.Errorf("while %d events are stored: the turn is held %t, others wait %t", len(events), turn, making)
		}
		other.run("SELECT pg_advisory_unlock($1)", before)
		if made, turn := other.givenBack(store.EventsLock), other.held(store.CaptureLock); !turn || !made {
			t.Errorf("before %d events are committed: the turn is held %t, others wait %t", len(events), turn, !made)
		}
		other.give()
		captures.Wait()
	}
	for _, n := range []int{0, 20} {
		twice := *first
		failed := 0
		for _, err := range db.CaptureGroup(t.Context(), append(assortment(n, e), &twice), store.Work{}) {
			if err != nil {
				failed++
			}
		}
		if made := other.givenBack(store.EventsLock); failed != 1 || !made {
			t.Errorf("among %d: %d events failed, want 1; others wait %t", n, failed, !made)
		}
	}
}

// held reports whether a node has the advisory lock.
func (o turn) held(lock int64) (held bool) {
	err := o.conn.QueryRow(o.t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
		AND classid = cast($1 AS bigint) AND objid = cast($2 AS bigint) AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`,
		lock>>32, lock&0xffffffff).Scan(&held)
	if err != nil {
		o.t.Fatal(err)
	}
	return held
}

// givenBack reports whether no node has the advisory lock after a while.
func (o turn) givenBack(lock int64) bool {
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		if !o.held(lock) {
			return true
		}
	}
	return false
}

// Among other nodes, senders that were answered together send together again, a few at a time: the group waits for most
// of them, but not for long.
func TestAGroupAmongOtherNodesWaitsForSendersThatComeBack(t *testing.T) {
	for _, c := range []struct {
		name        string
		wait        time.Duration
		again, want int // who sends after the first, and how many are in its group
	}{
		{"all but a fifth come", time.Minute, 15, 16},
		{"one comes", time.Millisecond, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := storetest.Migrated(t)
			var groups sizes
			db := storetest.Open(t, store.Config{URL: dsn, OnCapture: groups.add})
			db.ComeBack(c.wait)
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
			for began := time.Now(); db.Queued() < 19 && time.Since(began) < time.Minute; {
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
			if got := groups.of(met + 2)[met:]; !slices.Equal(got, []int{20, c.want}) {
				t.Errorf("groups of %v captures, want 20 and %d", got, c.want)
			}
		})
	}
}

// A node with so many senders that two of its groups are under way at a time notices other nodes all the same.
func TestACrowdedNodeNoticesOthers(t *testing.T) {
	dsn := storetest.Migrated(t)
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
		for before := groups.Load(); groups.Load() < before+5; { // it is crowded again
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
