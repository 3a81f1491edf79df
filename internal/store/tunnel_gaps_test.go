package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A client was lost and came back to the same node, which died before it could write down that the first connection had
// ended: both end at once, and what was missed in between is known all the same. Where the second is another client's,
// the first was there until its node died; what it had by then is what it reported, if it is one that reports.
func TestAnOutageThatTheNodeTookAlongIsAGap(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for i, c := range []struct {
			hostname string
			port     int
			reports  bool
			gaps     int
		}{{"laptop", 3000, true, 2}, {"laptop", 3000, false, 2}, {"another", 3000, true, 2}, {"another", 3000, false, 1}, {"laptop", 4000, false, 1}} {
			hostname, gaps := c.hostname, c.gaps
			e := newEndpoint(t, db)
			node := store.LostTunnelNode{ID: fmt.Sprintf("node_%d", i)}
			subscribe := func(id, hostname string, port int) {
				t.Helper()
				writing(t, db, func(tx *store.Tx) error {
					s := hookglass.TunnelSession{ID: id, Node: node.ID, Client: hookglass.TunnelClient{ID: "tcl_" + id}}
					if err := tx.CreateTunnelSession(&s); err != nil {
						return err
					}
					_, err := tx.SubscribeTunnel(string(e.ID), &hookglass.TunnelSubscription{SessionNum: s.Num, TargetURL: fmt.Sprintf("http://localhost:%d", port), Hostname: hostname, Reports: c.reports})
					return err
				})
			}
			subscribe("tsess_1_"+node.ID, "laptop", 3000)
			several(t, db, e, 3)
			subscribe("tsess_2_"+node.ID, hostname, c.port)
			several(t, db, e, 1)
			writing(t, db, func(tx *store.Tx) error {
				if _, err := tx.RenewTunnelNode(node.ID, tx.Now.Add(time.Minute)); err != nil {
					return err
				}
				node.SeenAt = tx.Now
				_, err := tx.EndTunnelNode(node, 10)
				return err
			})
			var found []hookglass.Gap
			reading(t, db, func(v *store.View) (err error) {
				found, err = v.GapHistory(string(e.ID), 10)
				return err
			})
			total := int64(0)
			for _, g := range found {
				total += g.Counts.Pending
			}
			if len(found) != gaps || gaps == 2 && total != 4 || gaps == 1 && total != 1 {
				t.Errorf("back as %s:%d, which reports: %t: %d gaps with %d events: %+v", hostname, c.port, c.reports, len(found), total, found)
			}
		}
	})
}

// A node that stops has thousands of sessions, which end together: as if one after the other had ended.
func TestManyTunnelsEndAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		var ends []store.TunnelEnd
		begin := func(id string, on hookglass.Endpoint, end store.TunnelEnd) {
			t.Helper()
			s := hookglass.TunnelSession{ID: id, Node: "node", Client: hookglass.TunnelClient{ID: "tcl_" + id}}
			sub := hookglass.TunnelSubscription{Hostname: id}
			writing(t, db, func(tx *store.Tx) error {
				if err := tx.CreateTunnelSession(&s); err != nil {
					return err
				}
				sub.SessionNum = s.Num
				_, err := tx.SubscribeTunnel(string(on.ID), &sub)
				return err
			})
			if end.Subscription != 0 {
				end.Subscription = sub.Num
			} else {
				end.Session = s.Num
			}
			end.Since = time.Now()
			ends = append(ends, end)
		}
		begin("tsess_own", e, store.TunnelEnd{})
		begin("tsess_lost", e, store.TunnelEnd{Lost: true})
		begin("tsess_unsubscribed", e, store.TunnelEnd{Subscription: 1})
		begin("tsess_last", e, store.TunnelEnd{Lost: true})
		begin("tsess_other", other, store.TunnelEnd{})
		end := func() {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error { return tx.EndTunnels(ends) })
		}
		end()
		several(t, db, e, 2)
		end() // who has ended already does not end again
		reading(t, db, func(v *store.View) error {
			for of, want := range map[hookglass.EndpointID]int{e.ID: 1, other.ID: 0} {
				all, err := v.TunnelConnections(string(of))
				if err != nil {
					return err
				}
				gaps, err := v.GapHistory(string(of), 10)
				if err != nil {
					return err
				}
				if len(all) != 0 || len(gaps) != want {
					t.Errorf("%d subscriptions are left, %d gaps, want %d", len(all), len(gaps), want)
				}
				if len(gaps) == 1 && (gaps[0].State != hookglass.GapOpen || gaps[0].Hostname != "tsess_last" || gaps[0].Counts.Pending != 2) {
					t.Errorf("%+v", gaps[0])
				}
			}
			left, err := v.Ints("SELECT num FROM tunnel_sessions")
			if len(left) != 1 { // of which one subscription ended
				t.Errorf("sessions %v are left", left)
			}
			return err
		})
	})
}

// missed reads the gaps of an endpoint, newest first.
func missed(t *testing.T, db *store.DB, e hookglass.Endpoint) (gaps []hookglass.Gap) {
	t.Helper()
	reading(t, db, func(v *store.View) (err error) {
		gaps, err = v.GapHistory(string(e.ID), 10)
		return err
	})
	return gaps
}

// A client that is back may find another one there. What came before that one is a gap, which began when the client
// was last heard of, unless reports show that it was delivered.
func TestAnOutageThatEndedBeforeItWasKnownIsAGap(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for _, reported := range []int{0, 2, 3} {
			e := newEndpoint(t, db)
			lost := subscribed(t, db, hookglass.NewSortableID("tsess", time.Now()), "node", e)
			heard := time.Now().UTC().Truncate(time.Microsecond)
			events := several(t, db, e, 3)
			subscribed(t, db, hookglass.NewSortableID("tsess", time.Now()), "other", e)
			several(t, db, e, 1)
			writing(t, db, func(tx *store.Tx) error {
				for _, event := range events[:reported] {
					if _, err := tx.RecordReport(string(e.ID), string(event.ID), &hookglass.DeliveryReport{Version: 1, StatusCode: 200}); err != nil {
						return err
					}
				}
				return nil
			})
			writing(t, db, func(tx *store.Tx) error {
				return tx.EndTunnels([]store.TunnelEnd{{Session: lost, Lost: true, Since: heard, NodeGone: true}})
			})
			gaps := missed(t, db, e)
			if reported == len(events) {
				if len(gaps) != 0 {
					t.Errorf("nothing was missed: %+v", gaps)
				}
				continue
			}
			if len(gaps) != 1 || gaps[0].State != hookglass.GapReconnected || !gaps[0].StartedAt.Equal(heard) || gaps[0].Counts.Total != int64(len(events)-reported) {
				t.Errorf("%d of %d were reported: %+v", reported, len(events), gaps)
			}
		}
		var left []hookglass.Gap
		reading(t, db, func(v *store.View) (err error) {
			endpoints, err := v.Endpoints(0, 0)
			for _, e := range endpoints {
				gaps, err := v.GapHistory(string(e.ID), 10)
				if left = append(left, gaps...); err != nil {
					return err
				}
			}
			return err
		})
		if len(left) != 2 { // a gap without events took none along
			t.Errorf("%d gaps are left", len(left))
		}
	})
}

// A process that died may have given its last sign of life before a client came to it. The outage of that client begins
// when it came, at the earliest: after the outage before, so that they are listed oldest first.
func TestAnOutageBeginsAfterItsClientCame(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		heard := time.Now()
		lose := func(session int64, since time.Time, gone bool) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error {
				return tx.EndTunnels([]store.TunnelEnd{{Session: session, Lost: true, Since: since, NodeGone: gone}})
			})
			several(t, db, e, 1)
		}
		lose(subscribed(t, db, "tsess_1", "node", e), time.Now(), false)
		lose(subscribed(t, db, "tsess_2", "node", e), heard, true)
		gaps := missed(t, db, e)
		if len(gaps) != 2 || gaps[0].StartedAt.Before(gaps[1].ReconnectedAt) {
			t.Errorf("%+v", gaps)
		}
	})
}

// The gap of one endpoint says nothing of the events of another, nor does it go when that of another turns out empty.
func TestAGapIsOfItsEndpointAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		first, e := newEndpoint(t, db), newEndpoint(t, db)
		lose := func(session int64, since time.Time) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error {
				return tx.EndTunnels([]store.TunnelEnd{{Session: session, Lost: true, Since: since}})
			})
		}
		lose(subscribed(t, db, "tsess_1", "node", e), time.Now().Add(time.Hour)) // heard of by a clock that is ahead
		several(t, db, e, 2)
		several(t, db, first, 2)
		writing(t, db, func(tx *store.Tx) error {
			_, err := tx.DeleteAllEvents(string(first.ID))
			return err
		})
		lose(subscribed(t, db, "tsess_2", "node", first), time.Now())
		subscribed(t, db, "tsess_3", "node", first) // nothing was missed there
		if gaps := missed(t, db, first); len(gaps) != 0 {
			t.Errorf("a gap without events: %+v", gaps)
		}
		gaps := missed(t, db, e)
		if len(gaps) != 1 || gaps[0].State != hookglass.GapOpen || gaps[0].Counts != (hookglass.GapCounts{Total: 2, Pending: 2, Retained: 2}) || !gaps[0].StartedAt.Equal(gaps[0].DetectedAt) {
			t.Fatalf("%+v", gaps)
		}
		again := subscribed(t, db, "tsess_4", "node", e)
		lose(again, time.Now())
		if gaps := missed(t, db, e); len(gaps) != 2 || gaps[0].State != hookglass.GapOpen || gaps[1].State != hookglass.GapReconnected {
			t.Errorf("the newest first: %+v", gaps)
		}
	})
}

// A client that comes and goes leaves many gaps over a year, and batches of events are erased all the time. Those of a
// batch are counted in the gaps that they lie in, and no other gap is read.
func TestErasedEventsAreCountedInTheirGapsAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		var events []*hookglass.Event
		for i := range 3 {
			session := subscribed(t, db, fmt.Sprintf("tsess_%d", i), "node", e)
			writing(t, db, func(tx *store.Tx) error {
				return tx.EndTunnels([]store.TunnelEnd{{Session: session, Lost: true, Since: time.Now()}})
			})
			events = append(events, several(t, db, e, 2)...)
		}
		for i, event := range events { // the first and the last of each gap
			var read []int64
			writing(t, db, func(tx *store.Tx) error {
				var looks []statement
				recorded := *tx
				recorded.Record(func(text string, args []any) {
					if strings.Contains(text, "FROM tunnel_gaps") {
						looks = append(looks, statement{text, args})
					}
				})
				if err := recorded.DeleteEvent(string(e.ID), string(event.ID)); err != nil {
					return err
				}
				for _, look := range looks {
					n, err := tx.Ints("SELECT count(*) FROM ("+look.text+") AS g", look.args...)
					if read = append(read, n...); err != nil {
						return err
					}
				}
				return nil
			})
			if !slices.Equal(read, []int64{1}) {
				t.Errorf("event %d: %d gaps were read", i, read)
			}
		}
		for _, g := range missed(t, db, e) {
			if g.Counts != (hookglass.GapCounts{Total: 2, Expired: 2}) {
				t.Errorf("%+v", g)
			}
		}
	})
}
