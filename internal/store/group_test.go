package store_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// assortment makes so many events that differ in what may be missing.
func assortment(n int, endpoints ...hookglass.Endpoint) (events []*hookglass.Event) {
	for i := range n {
		e := endpoints[i%len(endpoints)]
		ev := newEvent(e, fmt.Sprintf("event %d of %d %s", i, n, strings.Repeat("x", i*100)))
		switch i % 6 {
		case 1:
			ev = mailEvent(e)
			ev.Body, ev.Size, ev.Subject, ev.From = []byte{0, 0xff}, 2, "caf\xe9", "a@b.test"
		case 2:
			ev.Trailers = hookglass.Headers{{Name: "X-Sum", Value: "1"}}
			ev.Path, ev.RawQuery, ev.ContentType = "/a\x00b", "q=\xff", "text/plain"
		case 3:
			ev.Body, ev.Size = []byte{}, 0
			ev.EventType, ev.EventRef, ev.DeliveryID, ev.SignatureReason = "push", "e_1", "d_1", "no_secret"
		case 4:
			ev.Reply = &hookglass.Reply{Source: hookglass.SourceCustom, Delay: time.Second}
		case 5:
			ev.Reply.Status, ev.Reply.Body = 503, []byte("not now")
		}
		events = append(events, ev)
	}
	return events
}

// Events come to the writer as their senders get the processor, and are listed by their numbers, newest first.
func TestAGroupIsNumberedInTheOrderOfReception(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a, b := newEndpoint(t, db), newEndpoint(t, db)
		at := db.Now().UTC().Truncate(time.Microsecond)
		for _, n := range []int{3, 12} { // inserted, and copied
			events := assortment(n, a, b)
			for i, ev := range events {
				ev.ReceivedAt = at.Add(-time.Duration(i) * time.Millisecond)
			}
			for _, err := range db.CaptureGroup(t.Context(), events, store.Work{}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			for i, ev := range events {
				for _, other := range events[:i] {
					if ev.EndpointNum == other.EndpointNum && ev.ReceivedAt.Before(other.ReceivedAt) != (ev.Seq < other.Seq) {
						t.Errorf("of %d: received at %v and %v, numbered %d and %d", n, ev.ReceivedAt, other.ReceivedAt, ev.Seq, other.Seq)
					}
				}
			}
		}
	})
}

// Those that are received in one microsecond are numbered as they are named, so that ids sort as lists do.
func TestAGroupIsNumberedInTheOrderOfItsIDs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		at := db.Now().UTC().Truncate(time.Microsecond)
		for _, n := range []int{3, 12} { // inserted, and copied
			var events []*hookglass.Event
			for range n {
				ev := newEvent(e, "at once")
				ev.ReceivedAt, ev.ID = at, hookglass.NewEventID(hookglass.EventWebhook, at)
				events = append(events, ev)
			}
			slices.Reverse(events)
			for _, err := range db.CaptureGroup(t.Context(), events, store.Work{}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			slices.SortFunc(events, func(a, b *hookglass.Event) int { return cmp.Compare(a.Seq, b.Seq) })
			if !slices.IsSortedFunc(events, func(a, b *hookglass.Event) int { return cmp.Compare(a.ID, b.ID) }) {
				t.Errorf("of %d: the ids in the order of the numbers are not sorted", n)
			}
		}
	})
}

// Groups of PostgreSQL are inserted or copied, by their size.
func TestAGroupIsStoredAsEachEventAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a, b := newEndpoint(t, db), newEndpoint(t, db)
		target := hookglass.ForwardingTarget{EndpointNum: a.Num, Name: "there", URL: "http://127.0.0.1:1/", Enabled: true}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		last, total := int64(0), 0
		for _, n := range []int{1, 3, 4, 7, 2, 64} {
			events := assortment(n, a, b)
			total += n
			for i, err := range db.CaptureGroup(t.Context(), events, store.Work{Forward: true, Tasks: []store.TaskKind{store.TaskActions, store.TaskSchema}}) {
				if err != nil {
					t.Fatalf("%d of %d: %v", i, n, err)
				}
			}
			for i, ev := range events {
				want := *ev
				reading(t, db, func(v *store.View) error {
					got, err := v.Event(string(ev.EndpointID), string(ev.ID))
					if err != nil {
						return err
					}
					if got.Seq != ev.Seq {
						t.Errorf("%d of %d: stored as %d and known as %d", i, n, got.Seq, ev.Seq)
					}
					if !reflect.DeepEqual(got.Headers, want.Headers) || !reflect.DeepEqual(got.Trailers, want.Trailers) || string(got.Body) != string(want.Body) || (got.Reply == nil) != (want.Reply == nil) {
						t.Errorf("%d of %d: %+v", i, n, got.Payload)
					}
					if want.Reply != nil && (got.Reply.Status != want.Reply.Status || got.Reply.Source != want.Reply.Source || got.Reply.Delay != want.Reply.Delay || string(got.Reply.Body) != string(want.Reply.Body)) {
						t.Errorf("%d of %d: %+v", i, n, got.Reply)
					}
					if !reflect.DeepEqual(got.Envelope, want.Envelope) {
						t.Errorf("%d of %d: %+v", i, n, got.Envelope)
					}
					if got.Method != want.Method || got.Path != want.Path || got.RawQuery != want.RawQuery || got.ContentType != want.ContentType || got.URL != want.URL || got.Size != want.Size ||
						got.EventType != want.EventType || got.EventRef != want.EventRef || got.DeliveryID != want.DeliveryID || got.SignatureReason != want.SignatureReason || got.From != want.From || got.Subject != want.Subject {
						t.Errorf("%d of %d: %+v", i, n, got)
					}
					return nil
				})
			}
			// In the order in which they came, each endpoint's for itself.
			before := last
			for _, e := range []hookglass.Endpoint{a, b} {
				seq := before
				for _, ev := range events {
					if ev.EndpointNum != e.Num {
						continue
					}
					if ev.Seq <= seq {
						t.Errorf("of %d: %d after %d", n, ev.Seq, seq)
					}
					seq = ev.Seq
					last = max(last, seq)
				}
			}
		}
		reading(t, db, func(v *store.View) error {
			for query, want := range map[string]int{
				"SELECT count(*) FROM events e JOIN payloads p ON p.seq = e.seq":                                  total,
				"SELECT count(*) FROM event_tasks t JOIN events e ON e.seq = t.event AND e.endpoint = t.endpoint": 2 * total,
				"SELECT count(*) FROM forwards f JOIN events e ON e.seq = f.event AND e.endpoint = f.endpoint":    1 + 2 + 2 + 4 + 1 + 32,
				"SELECT count(DISTINCT event) FROM forwards":                                                      1 + 2 + 2 + 4 + 1 + 32,
				"SELECT count(DISTINCT event) FROM event_tasks":                                                   total,
				"SELECT sum(event_count) FROM endpoint_stats":                                                     total,
			} {
				n, err := v.Ints(query)
				if err != nil {
					return err
				}
				if int(n[0]) != want {
					t.Errorf("%s: %d, not %d", query, n[0], want)
				}
			}
			return nil
		})
	})
}

func TestAGroupWithoutItsSpoiltEventIsStored(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, gone := newEndpoint(t, db), newEndpoint(t, db)
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteEndpoint(&gone) })
		for _, n := range []int{1, 2, 20} {
			twice := newEvent(e, "twice")
			capture(t, db, twice)
			again, late := *twice, newEvent(gone, "late")
			events := append(append(assortment(n, e), &again, late), assortment(n, e)...)
			for i, err := range db.CaptureGroup(t.Context(), events, store.Work{}) {
				switch {
				case events[i] == &again:
					if err == nil {
						t.Errorf("among %d an event was stored twice", n)
					}
				case events[i] == late:
					if !hookglass.Is(err, hookglass.CodeNotFound) {
						t.Errorf("among %d an event of a deleted endpoint: %v", n, err)
					}
				case err != nil:
					t.Errorf("among %d: %v", n, err)
				}
			}
			// Numbers that a failed group took are nobody's, and those after them are right again.
			next := assortment(n+3, e)
			for _, err := range db.CaptureGroup(t.Context(), next, store.Work{}) {
				if err != nil {
					t.Errorf("the group after it, of %d: %v", n+3, err)
				}
			}
			for _, ev := range append(next, events[:n]...) {
				reading(t, db, func(v *store.View) error {
					got, err := v.Event(string(e.ID), string(ev.ID))
					if err == nil && (got.Seq != ev.Seq || string(got.Body) != string(ev.Body)) {
						t.Errorf("%d: %d %q, not %d %q", n, got.Seq, got.Body, ev.Seq, ev.Body)
					}
					return err
				})
			}
		}
	})
}

// slowWire is the address of a PostgreSQL server behind a wire that can be cut off without anybody being told.
type slowWire struct {
	url  string
	left atomic.Int64  // bytes that still go to the server
	over chan struct{} // closed when there are none
	once sync.Once
	cut  func()
}

func newSlowWire(t *testing.T, dsn string) *slowWire {
	t.Helper()
	server, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	q := server.Query()
	socket := filepath.Join(q.Get("host"), ".s.PGSQL.5432")
	q.Del("host")
	server.Host, server.RawQuery = l.Addr().String(), q.Encode()
	w := &slowWire{url: server.String(), over: make(chan struct{})}
	w.left.Store(math.MaxInt64)
	ended := make(chan struct{})
	var wires sync.WaitGroup
	w.cut = sync.OnceFunc(func() {
		close(ended)
		l.Close()
		wires.Wait()
	})
	t.Cleanup(w.cut)
	wires.Go(func() {
		for {
			node, err := l.Accept()
			if err != nil {
				return
			}
			database, err := net.Dial("unix", socket)
			if err != nil {
				t.Error(err)
				node.Close()
				return
			}
			wires.Go(func() { <-ended; node.Close(); database.Close() })
			wires.Go(func() { io.Copy(node, database); node.Close() })
			wires.Go(func() {
				defer database.Close()
				b := make([]byte, 8<<10)
				for {
					n, err := node.Read(b)
					if err != nil {
						return
					}
					if w.left.Add(-int64(n)) < 0 {
						w.once.Do(func() { close(w.over) })
						<-ended
						return
					}
					if _, err := database.Write(b[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	return w
}

// The rows of a large capture travel before the lock is asked for that all nodes' captures stand in line at.
func TestALargeCaptureOnItsWayHoldsUpNoOtherNode(t *testing.T) {
	dsn := storetest.Migrated(t)
	node := storetest.Open(t, store.Config{URL: dsn})
	e := newEndpoint(t, node)
	wire := newSlowWire(t, dsn)
	far, err := store.Open(t.Context(), store.Config{URL: wire.url})
	if err != nil {
		t.Fatal(err)
	}
	capture(t, far, newEvent(e, "arrives"))
	wire.left.Store(1 << 20)
	var sending sync.WaitGroup
	sending.Go(func() {
		if err := far.Capture(t.Context(), 0, newEvent(e, strings.Repeat("x", 4<<20))); !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("a capture that did not reach the server: %v", err)
		}
	})
	<-wire.over
	for i := range 5 { // one that waits for it gives up
		if err := node.Capture(t.Context(), 0, newEvent(e, "beside it")); err != nil {
			t.Errorf("capture %d of another node: %v", i, err)
		}
	}
	wire.cut()
	sending.Wait()
	if err := far.Close(); err != nil {
		t.Error(err)
	}
}

// A machine that stands still in the middle of a group says nothing more and hangs up on nobody.
func TestAGroupThatDoesNotEndIsEnded(t *testing.T) {
	dsn := storetest.Migrated(t)
	db := storetest.Open(t, store.Config{URL: dsn})
	db.StuckAfter(time.Second)
	e := newEndpoint(t, db)
	stuck, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close(context.WithoutCancel(t.Context()))
	half := stuck.PgConn().Frontend()
	half.Send(&pgproto3.Parse{Query: fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", store.CaptureLock)})
	half.Send(&pgproto3.Bind{})
	half.Send(&pgproto3.Execute{})
	if err := half.Flush(); err != nil {
		t.Fatal(err)
	}
	var last error
	for began := time.Now(); time.Since(began) < time.Minute; {
		if last = db.Capture(t.Context(), 0, newEvent(e, "behind it")); last == nil {
			return
		}
		if !hookglass.Is(last, hookglass.CodeUnavailable) {
			t.Errorf("a capture whose turn does not come: %v", last)
		}
	}
	t.Errorf("captures still wait: %v", last)
}

// Who waits for the counters of an endpoint, which another transaction holds, does not keep the turn of all others
// meanwhile.
func TestCapturesOfOthersDoNotWaitForAnEndpointThatIsHeld(t *testing.T) {
	dsn := storetest.Migrated(t)
	db, other := storetest.Open(t, store.Config{URL: dsn}), storetest.Open(t, store.Config{URL: dsn})
	held, free := newEndpoint(t, db), newEndpoint(t, db)
	holder, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.WithoutCancel(t.Context()))
	hold, err := holder.Begin(t.Context())
	if err == nil {
		_, err = hold.Exec(t.Context(), "SELECT FROM endpoint_stats WHERE endpoint = $1 FOR UPDATE", held.Num)
	}
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		err := db.Capture(t.Context(), 0, newEvent(held, "waits"))
		for hookglass.Is(err, hookglass.CodeUnavailable) { // it waits for some seconds
			err = db.Capture(t.Context(), 0, newEvent(held, "waits again"))
		}
		waiting <- err
	}()
	for i := range 20 { // one that waits for the endpoint gives up as well
		if err := other.Capture(t.Context(), 0, newEvent(free, fmt.Sprint(i))); err != nil {
			t.Errorf("capture %d of another endpoint: %v", i, err)
		}
	}
	select {
	case err := <-waiting:
		t.Errorf("a capture of an endpoint that is held: %v", err)
	default:
	}
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Errorf("after it was let go: %v", err)
	}
}

// What a group takes is what its events take, their answers with them.
func TestAGroupIsBoundedByItsAnswersToo(t *testing.T) {
	for name, cfg := range map[string]store.Config{"sqlite": {Path: filepath.Join(t.TempDir(), "hookglass.db")}, "postgres": {URL: storetest.Migrated(t)}} {
		t.Run(name, func(t *testing.T) {
			var most atomic.Int64
			cfg.OnCapture = func(events int, _ int64, _ time.Duration) { most.Store(max(most.Load(), int64(events))) }
			db := storetest.Open(t, cfg)
			e := newEndpoint(t, db)
			answer := bytes.Repeat([]byte("a"), 1<<20)
			var sending sync.WaitGroup
			for i := range 40 {
				sending.Go(func() {
					ev := newEvent(e, fmt.Sprint(i))
					ev.Reply.Body = answer
					if err := db.Capture(t.Context(), 0, ev); err != nil {
						t.Error(err)
					}
				})
			}
			sending.Wait()
			if most.Load() > 20 {
				t.Errorf("%d events with answers of 1 MB in a group", most.Load())
			}
		})
	}
}
