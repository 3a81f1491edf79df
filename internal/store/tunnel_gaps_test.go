package store_test

import (
	"fmt"
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
		for _, c := range []struct {
			hostname string
			reports  bool
			gaps     int
		}{{"laptop", true, 2}, {"laptop", false, 2}, {"another", true, 2}, {"another", false, 1}} {
			hostname, gaps := c.hostname, c.gaps
			e := newEndpoint(t, db)
			node := store.LostTunnelNode{ID: fmt.Sprintf("node_%s_%t", hostname, c.reports)}
			subscribe := func(id, hostname string) {
				t.Helper()
				writing(t, db, func(tx *store.Tx) error {
					s := hookglass.TunnelSession{ID: id, Node: node.ID, Client: hookglass.TunnelClient{ID: "tcl_" + id}}
					if err := tx.CreateTunnelSession(&s); err != nil {
						return err
					}
					_, err := tx.SubscribeTunnel(string(e.ID), &hookglass.TunnelSubscription{SessionNum: s.Num, TargetURL: "http://localhost:3000", Hostname: hostname, Reports: c.reports})
					return err
				})
			}
			subscribe("tsess_1_"+node.ID, "laptop")
			several(t, db, e, 3)
			subscribe("tsess_2_"+node.ID, hostname)
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
				t.Errorf("back as %s, which reports: %t: %d gaps with %d events: %+v", hostname, c.reports, len(found), total, found)
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
