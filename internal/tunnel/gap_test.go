package tunnel_test

import (
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/delivery"
	"hookglass/internal/store"
	"hookglass/internal/tunnel"
)

func TestAnOutageIsAGapUntilItsEventsAreDelivered(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n, other := b.node(0, 0), b.node(1, 0)
		b.capture(0, b.ep, 2) // before there ever was a session: nobody misses them
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{Hostname: "ada-laptop"})
		c.subscribe(b.ep)
		b.capture(0, b.ep, 3)
		for _, id := range c.got(3) {
			b.report(n, b.ep, id, 200)
		}
		c.close(false)
		missed := b.capture(1, b.ep, 4)
		open := b.gaps(other, b.ep)
		if len(open) != 1 || open[0].State != hookglass.GapOpen || open[0].Counts != (hookglass.GapCounts{Total: 4, Retained: 4, Pending: 4}) ||
			open[0].TargetURL != "http://localhost:3000/in" || open[0].Hostname != "ada-laptop" || open[0].EndpointName != "Payments" || open[0].EndpointID != b.ep.ID {
			t.Fatalf("%+v", open)
		}
		id := open[0].ID
		recover := func() hookglass.Gap {
			t.Helper()
			g, err := other.Recover(t.Context(), b.who, id, tunnel.Recovery{Outcome: "completed", Attempted: 4, Succeeded: 4})
			must(t, err)
			return g
		}
		recount := func(said string) {
			t.Helper()
			if g, err := other.Recount(t.Context(), b.who, id); err != nil || g.State != hookglass.GapOpen || g.Outcome != said || b.gaps(n, b.ep)[0].Outcome != said {
				t.Errorf("counted again: %+v, %v; the client said %q", g, err, said)
			}
		}
		recount("")
		if g := recover(); g.State != hookglass.GapOpen || g.Outcome != "completed" {
			t.Errorf("a recovery while no session is back: %+v", g)
		}
		recount("completed")
		back := b.connect(other, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		back.subscribe(b.ep)
		later := b.capture(0, b.ep, 1)
		if got := back.got(1); got[0] != later[0] {
			t.Errorf("the session got %v, want what came after it", got)
		}
		if g := b.gaps(n, b.ep); len(g) != 1 || g[0].State != hookglass.GapReconnected || g[0].Counts.Total != 4 || g[0].ReconnectedAt.IsZero() {
			t.Fatalf("%+v", g)
		}
		if g := recover(); g.State != hookglass.GapPartial {
			t.Errorf("a claim of success alone: %s", g.State)
		}
		var found []string
		for after := int64(0); ; {
			page, err := n.InGap(t.Context(), b.who, []string{string(b.ep.ID)}, id, after, 3)
			must(t, err)
			for _, e := range page.Events {
				found = append(found, string(e.ID))
			}
			if after = page.Next; after == 0 {
				break
			}
			b.capture(0, b.ep, 1) // what arrives while it is paged through belongs to the session
		}
		if !slices.Equal(found, missed) {
			t.Errorf("the gap has %v, want %v", found, missed)
		}
		for i, id := range missed {
			if i == 0 {
				b.report(n, b.ep, id, 500)
				if g := b.gaps(n, b.ep); g[0].Counts.Failed != 1 || g[0].Counts.Pending != 3 {
					t.Errorf("%+v", g[0].Counts)
				}
			}
			b.report(n, b.ep, id, 204)
			b.report(n, b.ep, id, 500) // takes nothing back
		}
		if g := b.gaps(n, b.ep); len(g) != 1 || g[0].Counts.Recovered != 4 {
			t.Errorf("without a recovery call: %+v", g)
		}
		if g := recover(); g.State != hookglass.GapRecovered || g.Counts != (hookglass.GapCounts{Total: 4, Retained: 4, Recovered: 4}) {
			t.Errorf("%+v", g)
		}
		if g := b.gaps(n, b.ep); len(g) != 0 {
			t.Errorf("a recovered gap is listed: %+v", g)
		}
	})
}

func TestWhatEndsInOrderLeavesNoGap(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		c.session.Unsubscribe(string(b.ep.ID))
		b.capture(0, b.ep, 1)
		c.close(false) // had no subscription left
		d := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		d.subscribe(b.ep)
		two := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		two.subscribe(b.ep)
		two.close(false) // not the last
		d.close(true)
		b.capture(0, b.ep, 1)
		if g := b.gaps(n, b.ep); len(g) != 0 {
			t.Errorf("%+v", g)
		}
		e := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		e.subscribe(b.ep)
		e.close(false)
		if g := b.gaps(n, b.ep); len(g) != 1 || g[0].Counts.Total != 0 {
			t.Errorf("%+v", g)
		}
		f := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		f.subscribe(b.ep)
		if g := b.gaps(n, b.ep); len(g) != 0 {
			t.Errorf("a gap that no event fell into was not dropped: %+v", g)
		}
	})
}

// An event that was on its way when the client died is in the gap: of a client that reports, what it did not report; of
// any, what its socket never acknowledged.
func TestWhatWasOnItsWayIsInTheGap(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{Capabilities: []string{hookglass.CapabilityEvidence}})
		c.subscribe(b.ep)
		b.capture(0, b.ep, 3)
		ids := c.got(3)
		b.report(n, b.ep, ids[0], 200)
		b.report(n, b.ep, ids[2], 500)
		c.close(false)
		if g := b.gaps(n, b.ep); len(g) != 1 || g[0].Counts != (hookglass.GapCounts{Total: 1, Retained: 1, Pending: 1}) {
			t.Errorf("of a client that reports: %+v", g)
		}
		quiet := b.endpoint("Quiet")
		d := b.connect(n, b.who, string(quiet.ID), hookglass.TunnelClient{})
		d.subscribe(quiet)
		thaw := d.freeze()
		b.capture(0, quiet, 2)
		d.close(false)
		thaw()
		if g := b.gaps(n, quiet); len(g) != 1 || g[0].Counts.Pending != 2 {
			t.Errorf("of a frozen client: %+v", g)
		}
		sent := b.endpoint("Sent")
		s := b.connect(n, b.who, string(sent.ID), hookglass.TunnelClient{})
		s.mu.Lock()
		s.silent = true
		s.mu.Unlock()
		s.subscribe(sent)
		b.capture(0, sent, 2)
		s.got(2)
		s.close(false)
		if g := b.gaps(n, sent); len(g) != 1 || g[0].Counts.Pending != 2 {
			t.Errorf("of a client that answered no ping: %+v", g)
		}
	})
}

// A client that vanished is missed only once it answers no ping. Its outage began when it was last heard of.
func TestAnOutageBeginsWithTheLastSignOfTheClient(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		b.capture(0, b.ep, 1)
		seq := b.newest()
		eventually(t, "the answer to a ping", func() bool { return c.session.Received() == seq })
		heard := b.dbs[0].Now()
		c.mu.Lock()
		c.mute = true
		c.mu.Unlock()
		b.capture(0, b.ep, 1)
		<-c.gone
		c.close(false)
		if g := b.gaps(n, b.ep); len(g) != 1 || g[0].Counts.Pending != 1 || g[0].StartedAt.After(heard) {
			t.Errorf("it was heard of before %v: %+v", heard, g)
		}
	})
}

// What a client has received is known at once where little goes out: it may be lost right behind it. Where much goes
// out, it is not asked for each event.
func TestAClientIsAskedAtOnceWhatItHas(t *testing.T) {
	waits := tunnel.Waits(100)
	for i, wait := range waits[:10] {
		if wait != 0 {
			t.Errorf("event %d is asked for after %v", i, wait)
		}
	}
	if last := waits[99]; last < 10*time.Millisecond {
		t.Errorf("the hundredth in a row is asked for after %v", last)
	}
}

// Somebody comes while a client takes nothing any more, and the socket of that one ends before it is given up for
// silent: what was on its way to it went to nobody.
func TestWhatWasOnItsWayWhenAnotherCameIsInAGap(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n, other := b.node(0, 0), b.node(1, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		thaw := c.freeze()
		missed := b.capture(0, b.ep, 2)
		back := b.connect(other, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		back.subscribe(b.ep)
		third := b.connect(other, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		third.subscribe(b.ep)
		b.capture(0, b.ep, 1)
		back.got(1)
		c.close(false)
		thaw()
		third.close(false) // whatever it had, another has
		g := b.gaps(n, b.ep)
		if len(g) != 1 || g[0].State != hookglass.GapReconnected || g[0].Counts != (hookglass.GapCounts{Total: 2, Retained: 2, Pending: 2}) || g[0].StartedAt.After(g[0].ReconnectedAt) {
			t.Fatalf("%+v", g)
		}
		page, err := other.InGap(t.Context(), b.who, nil, g[0].ID, 0, 10)
		must(t, err)
		if len(page.Events) != 2 || string(page.Events[0].ID) != missed[0] || string(page.Events[1].ID) != missed[1] {
			t.Errorf("the gap has %d events, want %v", len(page.Events), missed)
		}
		if _, err := other.InGap(t.Context(), b.who, []string{string(b.endpoint("Other").ID)}, g[0].ID, 0, 10); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("as a gap of another endpoint: %v", err)
		}
		if _, err := other.InGap(t.Context(), b.who, nil, g[0].ID+"x", 0, 10); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("a gap that is none: %v", err)
		}
	})
}

// A client that reports has received all that there is when another comes, and dies before it has reported it: the other
// is not sent that, so it is in a gap, as it is where no other came.
func TestWhatWasReceivedAndNotReportedWhenAnotherCameIsInAGap(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{Capabilities: []string{hookglass.CapabilityEvidence}})
		c.subscribe(b.ep)
		b.capture(0, b.ep, 3)
		ids := c.got(3)
		b.report(n, b.ep, ids[0], 200)
		eventually(t, "all is known to have been received", func() bool { return c.session.Received() == b.newest() })
		back := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{Capabilities: []string{hookglass.CapabilityEvidence}})
		back.subscribe(b.ep)
		c.close(false)
		g := b.gaps(n, b.ep)
		if len(g) != 1 || g[0].State != hookglass.GapReconnected || g[0].Counts != (hookglass.GapCounts{Total: 2, Retained: 2, Pending: 2}) {
			t.Fatalf("%+v", g)
		}
	})
}

// A node that dies says nothing: the others find out by its lease.
func TestTheSessionsOfADeadNodeAreEndedByAnother(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		// The node had a lease, which is over, and has a session.
		var e hookglass.Endpoint
		must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
			if _, err := tx.RenewTunnelNode("node_dead", tx.Now.Add(-time.Millisecond)); err != nil {
				return err
			}
			s := hookglass.TunnelSession{ID: "tsess_dead", Node: "node_dead"}
			if err := tx.CreateTunnelSession(&s); err != nil {
				return err
			}
			e, err = tx.SubscribeTunnel(string(b.ep.ID), &hookglass.TunnelSubscription{SessionNum: s.Num, TargetURL: "http://localhost:3000"})
			return err
		}))
		b.capture(0, e, 2)
		if !b.active(e) {
			t.Error("tunnel_active is false")
		}
		n := b.node(1, 0)
		eventually(t, "the gap", func() bool { return len(b.gaps(n, e)) == 1 })
		if g := b.gaps(n, e)[0]; g.State != hookglass.GapOpen || g.Counts.Total != 2 || !g.StartedAt.Before(g.DetectedAt) || b.active(e) {
			t.Errorf("%+v, tunnel_active %t", g, b.active(e))
		}
	})
}

// A client is back, on another node, before anybody has found out that its node died: the events in between were
// nobody's.
func TestAnOutageThatIsOverBeforeItIsFoundIsAGapToo(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		var e hookglass.Endpoint
		must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
			if _, err := tx.RenewTunnelNode("node_dead", tx.Now.Add(2*time.Second)); err != nil {
				return err
			}
			s := hookglass.TunnelSession{ID: "tsess_dead", Node: "node_dead"}
			if err := tx.CreateTunnelSession(&s); err != nil {
				return err
			}
			e, err = tx.SubscribeTunnel(string(b.ep.ID), &hookglass.TunnelSubscription{SessionNum: s.Num, TargetURL: "http://localhost:3000"})
			return err
		}))
		b.capture(0, e, 2)
		n := b.node(1, 10*time.Second)
		c := b.connect(n, b.who, string(e.ID), hookglass.TunnelClient{})
		c.subscribe(e)
		b.capture(0, e, 1)
		eventually(t, "the gap", func() bool { return len(b.gaps(n, e)) == 1 })
		if g := b.gaps(n, e)[0]; g.State != hookglass.GapReconnected || g.Counts.Total != 2 || g.Counts.Pending != 2 || g.ReconnectedAt.IsZero() || !b.active(e) {
			t.Errorf("%+v, tunnel_active %t", g, b.active(e))
		}
	})
}

func TestWhatIsErasedIsExpiredUnlessItWasDelivered(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		c.close(false)
		ids := b.capture(0, b.ep, 4)
		b.report(n, b.ep, ids[0], 200)
		erase := func(id string) {
			t.Helper()
			must(t, b.dbs[0].Update(t.Context(), b.who, func(tx *store.Tx) error { return tx.DeleteEvent(string(b.ep.ID), id) }))
		}
		erase(ids[0])
		erase(ids[1])
		if g := b.gaps(n, b.ep)[0]; g.Counts != (hookglass.GapCounts{Total: 4, Retained: 2, Pending: 2, Recovered: 1, Expired: 1}) {
			t.Errorf("%+v", g.Counts)
		}
		must(t, b.dbs[0].Update(t.Context(), b.who, func(tx *store.Tx) error {
			_, err := tx.DeleteAllEvents(string(b.ep.ID))
			return err
		}))
		if g := b.gaps(n, b.ep)[0]; g.Counts != (hookglass.GapCounts{Total: 4, Recovered: 1, Expired: 3}) {
			t.Errorf("unseen and not erased yet: %+v", g.Counts)
		}
		for done := false; !done; {
			must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
				done, err = tx.EraseEvents(b.ep.Num)
				return err
			}))
		}
		if g := b.gaps(n, b.ep)[0]; g.Counts != (hookglass.GapCounts{Total: 4, Recovered: 1, Expired: 3}) {
			t.Errorf("erased: %+v", g.Counts)
		}
	})
}

// Whatever happens in whatever order, the counts balance, and a gap's total never changes once a session is back.
func TestTheCountsOfGapsBalance(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		rounds := 0
		rapid.Check(t, func(r *rapid.T) {
			if rounds++; rounds > 12 { // each takes many commits
				return
			}
			e := b.endpoint(fmt.Sprintf("Round %d", rounds))
			var sockets []*socket
			var ids []string
			totals := make(map[string]int64)
			some := func(of []string) string { return rapid.SampledFrom(of).Draw(r, "event") }
			check := func() {
				for _, g := range b.gaps(n, e) {
					if g.State == hookglass.GapOpen && len(sockets) > 0 {
						r.Fatalf("a gap is open while %d sessions are there", len(sockets))
					}
					if g.State == hookglass.GapOpen {
						continue
					}
					if before, known := totals[g.ID]; known && before != g.Counts.Total || g.Counts.Total == 0 {
						r.Fatalf("the total of %s went from %d to %d", g.ID, before, g.Counts.Total)
					}
					totals[g.ID] = g.Counts.Total
				}
			}
			r.Repeat(map[string]func(*rapid.T){
				"": func(*rapid.T) { check() },
				"capture": func(r *rapid.T) {
					ids = append(ids, b.capture(0, e, rapid.IntRange(1, 3).Draw(r, "events"))...)
				},
				"subscribe": func(*rapid.T) {
					c := b.connect(n, b.who, string(e.ID), hookglass.TunnelClient{})
					c.subscribe(e)
					sockets = append(sockets, c)
				},
				"lose or leave": func(r *rapid.T) {
					if len(sockets) == 0 {
						r.Skip()
					}
					sockets[0].close(rapid.Bool().Draw(r, "own"))
					sockets = sockets[1:]
				},
				"report": func(r *rapid.T) {
					if len(ids) == 0 {
						r.Skip()
					}
					b.report(n, e, some(ids), rapid.SampledFrom([]int{0, 200, 204, 404, 500}).Draw(r, "status"))
				},
				"delete": func(r *rapid.T) {
					if len(ids) == 0 {
						r.Skip()
					}
					id := some(ids)
					ids = slices.DeleteFunc(ids, func(i string) bool { return i == id })
					must(t, b.dbs[0].Update(t.Context(), b.who, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), id) }))
				},
				"recover": func(r *rapid.T) {
					for _, g := range b.gaps(n, e) {
						after, err := n.Recover(t.Context(), b.who, g.ID, tunnel.Recovery{Outcome: "completed", Succeeded: 1 << 20})
						must(t, err)
						if after.State == hookglass.GapRecovered && after.Counts.Pending+after.Counts.Failed != 0 {
							r.Fatalf("%+v", after)
						}
						delete(totals, g.ID)
					}
				},
			})
			for _, c := range sockets {
				c.close(true)
			}
		})
	})
}

// A client that asks for all its endpoints is given them page by page, and no more is read than a page has.
func TestAPageOfManyEndpointsHoldsNoMoreThanItGives(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const many, size = 24, 2 << 20
		n := b.node(0, 0)
		var ids []string
		for i := range many {
			e := b.endpoint(fmt.Sprintf("No. %d", i))
			for range 2 {
				ev := event(e, string(make([]byte, size)))
				must(t, b.dbs[0].Capture(t.Context(), e.AccountID, ev))
				ids = append(ids, string(ev.ID))
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := n.Since(t.Context(), b.who, tunnel.Span{Since: time.Now().Add(-time.Minute), Limit: 1})
		must(t, err)
		runtime.ReadMemStats(&after)
		if len(m.Events) != 1 || string(m.Events[0].ID) != ids[0] || len(m.Events[0].Body) != size || m.Next == 0 {
			t.Fatalf("%d events, next %d", len(m.Events), m.Next)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > many*size/2 {
			t.Errorf("a page of %d bytes took %d", size, taken)
		}
		var found []string
		for cursor := int64(0); ; {
			m, err := n.Since(t.Context(), b.who, tunnel.Span{Since: time.Now().Add(-time.Minute), After: cursor, Limit: 100})
			must(t, err)
			if n := len(m.Events); n*size > 16<<20 {
				t.Fatalf("a page has %d events of 2 MiB, want no more than 16 MiB", n)
			}
			for _, e := range m.Events {
				found = append(found, string(e.ID))
				if len(e.Body) != size {
					t.Fatalf("%s has %d bytes", e.ID, len(e.Body))
				}
			}
			if cursor = m.Next; cursor == 0 {
				break
			}
		}
		if !slices.Equal(found, ids) {
			t.Errorf("%d events in another order, want %d", len(found), len(ids))
		}
	})
}

// A span may not begin before what is retained. One that is being read is read to its end: the bound moves on with time.
func TestOnlyTheFirstPageOfASpanIsHeldToTheRetention(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		span := tunnel.Span{Since: time.Now().Add(-2 * time.Hour), Limit: 10} // events are kept for an hour
		if _, err := n.Since(t.Context(), b.who, span); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("the first page: %v", err)
		}
		span.After = 1
		if _, err := n.Since(t.Context(), b.who, span); err != nil {
			t.Errorf("a later page: %v", err)
		}
	})
}

// Who keeps events for ever says so with the longest duration that there is, to which nothing can be added.
func TestTheLongestRetentionIsNoShortOne(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		s := tunnel.New(b.dbs[0], tunnel.Config{Mail: delivery.MailJSON, Retention: math.MaxInt64, Log: slog.New(slog.DiscardHandler)})
		want := b.capture(0, b.ep, 1)
		m, err := s.Since(t.Context(), b.who, tunnel.Span{Endpoints: []string{string(b.ep.ID)}, Since: time.Now().Add(-time.Hour), Limit: 10, Counted: true})
		must(t, err)
		if len(m.Events) != 1 || string(m.Events[0].ID) != want[0] {
			t.Errorf("missed are %v, want %v", m.Events, want)
		}
	})
}

// A gap is remembered for a week longer than the account keeps events, or the installation where it says nothing.
func TestAGapIsForgottenBehindItsEvents(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{})
		c.subscribe(b.ep)
		c.close(false)
		b.capture(0, b.ep, 1)
		b.connect(n, b.who, string(b.ep.ID), hookglass.TunnelClient{}).subscribe(b.ep)
		const day = 24 * time.Hour
		for _, step := range []struct {
			account, installation, later time.Duration
			left                         int
		}{
			{90 * day, 30 * day, 38 * day, 1},
			{90 * day, time.Hour, 96 * day, 1},
			{0, 30 * day, 36 * day, 1},
			{0, math.MaxInt64, 1000 * day, 1}, // to which nothing can be added
			{math.MaxInt64, time.Hour, 1000 * day, 1},
			{time.Hour, 30 * day, 7*day + 50*time.Minute, 1},
			{time.Hour, 30 * day, 7*day + 70*time.Minute, 0},
		} {
			_, err := b.accounts.SetAccount(t.Context(), b.owner.Account.ID, account.Change{Retention: &step.account})
			must(t, err)
			must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				tx.Now = tx.Now.Add(step.later)
				_, err := tx.PurgeTunnels(step.installation, tunnel.GapRest)
				return err
			}))
			if gaps := b.gaps(n, b.ep); len(gaps) != step.left {
				t.Fatalf("%+v: %d gaps are left", step, len(gaps))
			}
		}
	})
}

// What is deleted at once is bounded: captures stand behind it.
func TestTunnelsArePurgedInPieces(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const all, most = 1_100, 500
		must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			for i := range all {
				err := tx.CreateTunnelTicket(hookglass.TunnelTicket{EndpointNum: b.ep.Num, Client: hookglass.TunnelClient{ID: fmt.Sprint(i)}, ExpiresAt: tx.Now.Add(-time.Minute)}, fmt.Appendf(nil, "%032d", i), []byte("x"))
				if err != nil {
					return err
				}
			}
			return nil
		}))
		pieces := 0
		for more := true; more; pieces++ {
			must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
				more, err = tx.PurgeTunnels(time.Hour, tunnel.GapRest)
				return err
			}))
		}
		if want := (all + most - 1) / most; pieces != want {
			t.Errorf("%d transactions, want %d", pieces, want)
		}
	})
}
