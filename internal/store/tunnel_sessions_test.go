package store_test

import (
	"testing"
	"time"

	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// What a node that died had is ended, a piece at a time, and then the node is forgotten. The sessions and leases of
// others go on.
func TestANodeEndsAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		for _, node := range []string{"node_dead", "node_alive", "node_idle"} {
			writing(t, db, func(tx *store.Tx) error {
				until := tx.Now.Add(time.Minute)
				if node == "node_dead" {
					until = tx.Now.Add(-time.Second)
				}
				_, err := tx.RenewTunnelNode(node, until)
				return err
			})
		}
		subscribed(t, db, "tsess_1", "node_alive", e)
		subscribed(t, db, "tsess_2", "node_dead", e)
		subscribed(t, db, "tsess_3", "node_dead", e)
		lost := func() (lost []store.LostTunnelNode) {
			t.Helper()
			reading(t, db, func(v *store.View) (err error) {
				lost, err = v.LostTunnelNodes("node_alive", v.Now)
				return err
			})
			return lost
		}
		dead := lost()
		if len(dead) != 1 || dead[0].ID != "node_dead" {
			t.Fatalf("%+v are lost", dead)
		}
		for i, want := range []int{2, 1, 1} { // sessions that are left
			writing(t, db, func(tx *store.Tx) error {
				done, err := tx.EndTunnelNode(dead[0], 1)
				if done != (i == 2) {
					t.Errorf("piece %d: done %t", i+1, done)
				}
				return err
			})
			reading(t, db, func(v *store.View) error {
				all, err := v.TunnelConnections(string(e.ID))
				if len(all) != want || all[0].Session.ID != "tsess_1" {
					t.Errorf("piece %d: %+v are left", i+1, all)
				}
				return err
			})
		}
		if lost := lost(); len(lost) != 0 {
			t.Errorf("%+v are lost still", lost)
		}
		writing(t, db, func(tx *store.Tx) error { return tx.ForgetTunnelNode("node_alive") }) // it has a session
		for node, want := range map[string]bool{"node_dead": false, "node_alive": true, "node_idle": true} {
			writing(t, db, func(tx *store.Tx) error {
				held, err := tx.HoldsTunnelLease(node)
				if held != want {
					t.Errorf("%s has its lease: %t", node, held)
				}
				return err
			})
		}
		writing(t, db, func(tx *store.Tx) error { return tx.ForgetTunnelNode("node_idle") })
		for node, want := range map[string]bool{"node_alive": true, "node_idle": false} {
			writing(t, db, func(tx *store.Tx) error {
				held, err := tx.HoldsTunnelLease(node)
				if held != want {
					t.Errorf("once it was given back, %s has a lease: %t", node, held)
				}
				return err
			})
		}
		if gaps := missed(t, db, e); len(gaps) != 0 {
			t.Errorf("a client was there all the time: %+v", gaps)
		}
	})
}
