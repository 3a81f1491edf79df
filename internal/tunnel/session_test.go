package tunnel_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/fair"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
	"hookglass/internal/tunnel"
)

// Reliability, row 80: fifty at once over two nodes, and again.
func TestATicketOpensOneSocketWhoeverTries(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		nodes := []*node{b.node(0, 0), b.node(1, 0)}
		g, err := nodes[0].Connect(t.Context(), b.who, string(b.ep.ID), hookglass.TunnelClient{})
		must(t, err)
		var opened atomic.Int32
		var all sync.WaitGroup
		try := func(n *node) {
			c := &socket{t: t, changed: make(chan struct{}), gone: make(chan struct{}), end: func(bool) {}}
			s, err := n.Open(t.Context(), g.Ticket, c)
			switch {
			case err == nil:
				opened.Add(1)
				s.End(true)
			case !hookglass.Is(err, hookglass.CodeUnauthorized):
				t.Error(err)
			}
		}
		for i := range 50 {
			all.Go(func() { try(nodes[i%2]) })
		}
		all.Wait()
		try(nodes[1])
		if n := opened.Load(); n != 1 {
			t.Errorf("%d sockets were opened with one ticket", n)
		}
	})
}

func TestATicketEndsWithItsTimeAndWithItsRight(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		refused := func(what, ticket string) {
			t.Helper()
			c := &socket{t: t, changed: make(chan struct{}), gone: make(chan struct{}), end: func(bool) {}}
			if _, err := n.Open(t.Context(), ticket, c); !hookglass.Is(err, hookglass.CodeUnauthorized) {
				t.Errorf("%s: %v", what, err)
			}
		}
		ticket := func(who hookglass.Principal, ref string) string {
			t.Helper()
			g, err := n.Connect(t.Context(), who, ref, hookglass.TunnelClient{})
			must(t, err)
			return g.Ticket
		}
		refused("none", "")
		refused("junk", "tt_00000000000000000000000000")

		n.SetTicketLife(time.Microsecond)
		refused("after its life", ticket(b.who, string(b.ep.ID)))
		n.SetTicketLife(tunnel.TicketLife)

		deleted := b.endpoint("Short")
		gone := ticket(b.who, string(deleted.ID))
		_, err := b.endpoints.Delete(t.Context(), b.who, string(deleted.ID))
		must(t, err)
		refused("of a deleted endpoint", gone)

		_, key, err := b.endpoints.CreateTemporary(t.Context())
		must(t, err)
		anonymous, err := b.accounts.Authenticate(t.Context(), key)
		must(t, err)
		claimed := ticket(anonymous, "")
		_, err = b.endpoints.Claim(t.Context(), b.who, anonymous, nil, nil)
		must(t, err)
		refused("of a claimed endpoint's key", claimed)

		revoked := ticket(b.who, string(b.ep.ID))
		must(t, b.accounts.RevokeToken(t.Context(), hookglass.System, b.who.Token))
		refused("of a revoked token", revoked)
	})
}

// Reliability, row 91: an event lands on one node, the tunnels are on the other and on both.
func TestEveryEventReachesEverySessionInOrder(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		one, two := b.node(0, 0), b.node(1, 0)
		before := b.capture(0, b.ep, 1)
		sockets := []*socket{
			b.connect(one, b.who, string(b.ep.ID), hookglass.TunnelClient{}), b.connect(two, b.who, string(b.ep.ID), hookglass.TunnelClient{}),
			b.connect(two, b.who, string(b.ep.ID), hookglass.TunnelClient{}),
		}
		for _, c := range sockets {
			c.subscribe(b.ep)
		}
		if !b.active(b.ep) {
			t.Error("tunnel_active is false")
		}
		other := b.endpoint("Other")
		sockets[0].subscribe(other)
		var want []string
		var mu sync.Mutex
		var senders sync.WaitGroup
		for i := range 2 {
			senders.Go(func() {
				ids := b.capture(i, b.ep, 100)
				mu.Lock()
				want = append(want, ids...)
				mu.Unlock()
			})
		}
		others := b.capture(1, other, 5)
		senders.Wait()
		order := sockets[1].got(200)
		for _, c := range sockets[2:] {
			if got := c.got(200); !slices.Equal(got, order) {
				t.Error("two sessions got the events in different orders")
			}
		}
		first := sockets[0].got(205)
		if mine := slices.DeleteFunc(slices.Clone(first), func(id string) bool { return slices.Contains(others, id) }); !slices.Equal(mine, order) {
			t.Error("a session with two endpoints got the events of one in another order")
		}
		slices.Sort(want)
		if got := slices.Sorted(slices.Values(order)); !slices.Equal(got, want) || slices.Contains(order, before[0]) {
			t.Error("events are missing, or came twice, or were there before")
		}
		m := sockets[1].messages[0]
		if m.Type != "webhook_request" || m.EndpointID != string(b.ep.ID) || m.Method != "POST" || m.Path != "/orders" || m.BodyEncoding != "base64" || m.QueryString != "a=1&a=2" ||
			m.HeaderList[0] != [2]string{"X-A", "1"} || m.Respond {
			t.Errorf("%+v", m)
		}
		for _, c := range sockets {
			c.close(true)
		}
		if b.active(b.ep) {
			t.Error("tunnel_active is true with no session")
		}
	})
}

func TestSubscriptionsAreForWhatIsTheirs(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		e, key, err := b.endpoints.CreateTemporary(t.Context())
		must(t, err)
		anonymous, err := b.accounts.Authenticate(t.Context(), key)
		must(t, err)
		c := b.connect(n, anonymous, "", hookglass.TunnelClient{})
		c.subscribe(b.ep)
		c.subscribe(e)
		c.subscribe(e) // the same key again is nothing new
		c.session.Unsubscribe("unknown")
		mine := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		mine.subscribe(e)
		mine.subscribe(b.ep)
		kind, name := hookglass.KindEmail, "Mail"
		mail, err := b.endpoints.Create(t.Context(), b.who, endpoint.Draft{Name: &name, Kind: &kind})
		must(t, err)
		mine.subscribe(mail)
		must(t, mine.session.Subscribe("nul", tunnel.Wish{Endpoint: string(b.ep.ID), TargetURL: "http://localhost:3000/\x00"}))
		for _, got := range []struct {
			c    *socket
			want []string
		}{
			{c, []string{"reject " + string(b.ep.ID), "confirm " + string(e.ID)}},
			{mine, []string{"reject " + string(e.ID), "confirm " + string(b.ep.ID), "confirm " + string(mail.ID), "reject nul"}},
		} {
			if !slices.Equal(got.c.words, got.want) {
				t.Errorf("got %q, want %q", got.c.words, got.want)
			}
		}
	})
}

// Spec: decisions, section 14: within 5 s, on all nodes.
func TestRightsThatEndEndTheirSockets(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(1, 0)
		first, second := b.endpoint("First"), b.endpoint("Second")
		alone := b.connect(n, b.who, string(first.ID), hookglass.TunnelClient{})
		alone.subscribe(first)
		both := b.connect(n, b.who, string(first.ID), hookglass.TunnelClient{})
		both.subscribe(first)
		both.subscribe(second)
		elapsed := storetest.Watch(t)
		_, err := b.endpoints.Delete(t.Context(), b.who, string(first.ID))
		must(t, err)
		alone.await("the end", func() bool { return slices.Contains(alone.words, "disconnect unauthorized false") })
		both.await("the rejection", func() bool { return slices.Contains(both.words, "reject "+string(first.ID)) })
		if took := elapsed(); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		id := b.capture(0, second, 1)
		if got := both.got(1); got[0] != id[0] {
			t.Errorf("the socket's other endpoint is not served any more: %v", got)
		}
		temporary := func() (*socket, hookglass.Principal, hookglass.Endpoint) {
			e, key, err := b.endpoints.CreateTemporary(t.Context())
			must(t, err)
			who, err := b.accounts.Authenticate(t.Context(), key)
			must(t, err)
			return b.connect(n, who, "", hookglass.TunnelClient{}), who, e
		}
		claimed, who, mine := temporary()
		claimed.subscribe(mine)
		gone, _, short := temporary() // and is subscribed to nothing
		elapsed = storetest.Watch(t)
		_, err = b.endpoints.Claim(t.Context(), b.who, who, nil, nil)
		must(t, err)
		_, err = b.endpoints.Delete(t.Context(), hookglass.System, string(short.ID))
		must(t, err)
		for _, c := range []*socket{claimed, gone} {
			c.await("the end of a key", func() bool { return slices.Contains(c.words, "disconnect unauthorized false") })
		}
		if took := elapsed(); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		elapsed = storetest.Watch(t)
		must(t, b.accounts.RevokeToken(t.Context(), hookglass.System, b.who.Token))
		both.await("the end", func() bool { return slices.Contains(both.words, "disconnect unauthorized false") })
		if took := elapsed(); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Rights are checked over and over while a machine comes and goes: what it subscribes to meanwhile is its own.
func TestACheckOfRightsSparesWhatIsNew(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		stop, stopped := context.WithCancel(t.Context())
		var checks sync.WaitGroup
		checks.Go(func() {
			for stop.Err() == nil {
				_ = b.dbs[0].Update(stop, hookglass.System, func(tx *store.Tx) error {
					tx.Announce(store.TopicTokens)
					return nil
				})
			}
		})
		defer checks.Wait()
		defer stopped()
		var ends []hookglass.Endpoint
		for i := range 10 {
			ends = append(ends, b.endpoint(fmt.Sprintf("Endpoint %d", i)))
		}
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		for range 20 {
			for _, e := range ends {
				c.subscribe(e)
			}
			for _, e := range ends {
				c.session.Unsubscribe(string(e.ID))
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, word := range c.words {
			if !strings.HasPrefix(word, "confirm ") {
				t.Fatalf("after %d answers it was told %q", len(c.words), word)
			}
		}
	})
}

func TestAnEndThatCouldNotBeStoredIsStoredLater(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, time.Second)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		n.Later(c.session)
		eventually(t, "the end on record", func() bool { return !b.active(b.ep) })
	})
}

// Reliability, row 85: one that takes nothing costs no other anything, and loses nothing itself.
func TestASocketThatStandsStillHoldsUpNobody(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		slow := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		slow.subscribe(b.ep)
		quick := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		quick.subscribe(b.ep)
		thaw := slow.freeze()
		want := b.capture(0, b.ep, 1500)
		if got := quick.got(1500); !slices.Equal(got, want) {
			t.Error("the other session did not get all in order")
		}
		if len(slow.messages) != 0 {
			t.Errorf("a frozen socket took %d", len(slow.messages))
		}
		thaw()
		if got := slow.got(1500); !slices.Equal(got, want) {
			t.Error("after it moved again, it did not get all in order")
		}
	})
}

// What one endpoint has waiting, more than a client takes at once, does not hold up the events of another.
func TestEndpointsOfOneSocketTakeTurns(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.connect(b.node(0, 0), b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		quiet := b.endpoint("Quiet")
		c.subscribe(quiet)
		thaw := c.freeze()
		large := strings.Repeat("x", 4<<20) // as much as is under way at most
		for range 8 {
			must(t, b.dbs[0].Capture(t.Context(), b.ep.AccountID, event(b.ep, large)))
		}
		id := b.capture(0, quiet, 1)[0]
		thaw()
		if at := slices.Index(c.got(9), id); at < 0 || at > 3 {
			t.Errorf("it came behind %d of 8 large ones of another endpoint", at)
		}
	})
}

// A client that is refused an endpoint leaves it for good, and one that is disconnected comes again.
func TestASubscriptionThatStorageFailsIsNotRefused(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.connect(b.node(0, 0), b.who, string(b.ep.ID), hookglass.TunnelClient{})
		must(t, b.dbs[0].Close())
		c.subscribe(b.ep)
		c.await("the end of the socket", func() bool { return len(c.words) > 0 })
		if want := []string{"disconnect server_restart true"}; !slices.Equal(c.words, want) {
			t.Errorf("it was told %q, want %q", c.words, want)
		}
	})
}

// A client takes a server that is silent for two beats for gone.
func TestASocketIsShownThatTheServerIsThereWhileTheStorageHangs(t *testing.T) {
	url := storetest.Migrated(t)
	b := newBench(t, storetest.Open(t, store.Config{URL: url}))
	c := b.connect(b.node(0, 0), b.who, string(b.ep.ID), hookglass.TunnelClient{})
	c.subscribe(b.ep)
	b.capture(0, b.ep, 1)
	c.got(1)

	db, err := sql.Open("pgx", url)
	must(t, err)
	defer db.Close()
	lock, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	defer lock.Rollback()
	_, err = lock.ExecContext(t.Context(), "LOCK TABLE events")
	must(t, err)
	must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		tx.Announce(store.TopicEvents(b.ep.Num))
		return nil
	}))
	c.mu.Lock()
	before, elapsed := c.beats, storetest.Watch(t)
	c.mu.Unlock()
	c.await("signs of life", func() bool { return c.beats >= before+2 })
	if took := elapsed(); took > 11*time.Second { // a client waits for 12 s
		t.Errorf("two signs of life in %v", took)
	}
	must(t, lock.Rollback())
	b.capture(0, b.ep, 1)
	c.got(2)
}

// A client that comes back asks for what came since a sign of life: its time is that of events, not the machine's.
func TestASignOfLifeTellsTheTimeOfEvents(t *testing.T) {
	ahead := func() time.Time { return time.Now().Add(time.Hour) }
	db := storetest.Open(t, store.Config{Path: filepath.Join(t.TempDir(), "hookglass.db"), Clock: ahead})
	b := newBench(t, db, db)
	c := b.connect(b.node(0, 0), b.who, string(b.ep.ID), hookglass.TunnelClient{})
	c.subscribe(b.ep)
	c.await("a sign of life", func() bool { return c.beats > 0 })
	if off := time.Until(c.clock); off < 59*time.Minute {
		t.Errorf("it tells a time %v ahead, where events are stored an hour ahead", off)
	}
}

func TestAServerThatStopsTellsItsClientsToComeBack(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n, other := b.node(0, 0), b.node(1, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		n.stop()
		if !slices.Contains(c.words, "disconnect server_restart true") {
			t.Errorf("it was told %q", c.words)
		}
		b.capture(1, b.ep, 2)
		if gaps := b.gaps(other, b.ep); len(gaps) != 1 || gaps[0].State != hookglass.GapOpen || gaps[0].Counts.Total != 2 {
			t.Errorf("%+v", gaps)
		}
	})
}

// A server that is stopped before it has its lease waits for no socket that waits for that.
func TestAServerThatStopsAsItStartsEnds(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		s := tunnel.New(b.dbs[0], tunnel.Config{Retention: time.Hour, Log: slog.New(slog.DiscardHandler)})
		opened := make(chan error, 1)
		if !s.Hold(func() {
			_, err := s.Open(context.Background(), "ticket", nil)
			opened <- err
		}) {
			t.Fatal("it takes no socket")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		must(t, s.Run(ctx))
		if err := <-opened; !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("the socket was told %v", err)
		}
	})
}

// One event that nobody thought of must not end the node, nor, as it is in the table, each node that comes after it.
func TestAPanicOverAnEventEndsItsSocketAlone(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.nodeWith(0, 0, func(*hookglass.Event) []byte { panic("over a mail") })
		other := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		other.subscribe(b.ep)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		mail := event(b.ep, "From: ada@example.com\r\n\r\nHi\r\n")
		kind, name := hookglass.KindEmail, "Mail"
		box, err := b.endpoints.Create(t.Context(), b.who, endpoint.Draft{Name: &name, Kind: &kind})
		must(t, err)
		c.subscribe(box)
		mail.ID, mail.Type, mail.Method = hookglass.NewEventID(hookglass.EventEmail, mail.ReceivedAt), hookglass.EventEmail, "EMAIL"
		mail.EndpointNum, mail.EndpointID, mail.Status, mail.Reply = box.Num, box.ID, 0, nil
		must(t, b.dbs[0].Capture(t.Context(), box.AccountID, mail))
		select {
		case <-c.gone:
		case <-time.After(patience):
			t.Fatal("the socket goes on")
		}
		ids := b.capture(0, b.ep, 1)
		if got := other.got(1); !slices.Equal(got, ids) {
			t.Errorf("another socket got %q, want %q", got, ids)
		}
		back := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		back.subscribe(box)
		back.subscribe(b.ep)
		if ids, got := b.capture(0, b.ep, 1), back.got(1); !slices.Equal(got, ids) {
			t.Errorf("who came back got %q, want %q", got, ids)
		}
	})
}

// Slow clients hold few large events in memory at a time, and end when others wait for their room; nothing is lost.
func TestLargeEventsAreSentAsRoomAllows(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		n.SetBodies(fair.NewBodies(64<<20).Pace(100*time.Millisecond, 1<<40))
		var sockets []*socket
		var thaws []func()
		for range 3 {
			c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
			c.subscribe(b.ep)
			sockets, thaws = append(sockets, c), append(thaws, c.freeze())
		}
		must(t, b.dbs[0].Capture(t.Context(), b.ep.AccountID, event(b.ep, strings.Repeat("x", 12<<20)))) // two are more than half
		ended := make(chan *socket, len(sockets))
		for _, c := range sockets {
			go func() { <-c.gone; ended <- c }()
		}
		<-ended // one that had the room, for the next
		<-ended
		for i, c := range sockets {
			select {
			case <-c.gone:
			default:
				thaws[i]()
				c.got(1)
			}
		}
	})
}

// A socket is held under what its client calls its subscriptions, which takes only so much memory.
func TestTheKeysOfASocketHaveABound(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		wish := tunnel.Wish{Endpoint: string(b.ep.ID)}
		key := func(i, size int) string { return fmt.Sprintf("%06d%s", i, strings.Repeat("x", size-6)) }
		must(t, c.session.Subscribe(key(0, 64<<10+1), wish))
		for i := range 33 {
			must(t, c.session.Subscribe(key(i, 64<<10), wish))
		}
		c.session.Unsubscribe(key(7, 64<<10))
		must(t, c.session.Subscribe(key(40, 64<<10), wish))
		c.await("what is said of each", func() bool { return len(c.words) == 35 })
		for i, word := range c.words {
			said, _, _ := strings.Cut(word, " ")
			want := "confirm"
			if i == 0 || i == 33 {
				want = "reject"
			}
			if said != want {
				t.Errorf("subscription %d: %s, want %s", i, said, want)
			}
		}
	})
}
