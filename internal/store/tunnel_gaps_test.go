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
