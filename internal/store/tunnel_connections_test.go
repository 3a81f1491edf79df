package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestConnectionsOfAnEndpointAreItsOpenSubscriptions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		s := hookglass.TunnelSession{ID: "tsess_1", Node: "node", Client: hookglass.TunnelClient{ID: "tcl_1", Name: "cli", OS: "linux"}}
		update := func(do func(*store.Tx) error) {
			t.Helper()
			if err := db.Update(t.Context(), hookglass.System, do); err != nil {
				t.Fatal(err)
			}
		}
		update(func(tx *store.Tx) error {
			if err := tx.CreateTunnelSession(&s); err != nil {
				return err
			}
			_, err := tx.SubscribeTunnel(string(e.ID), &hookglass.TunnelSubscription{SessionNum: s.Num, TargetURL: "http://localhost:3000", Hostname: "laptop", Replays: true})
			return err
		})
		third := newEndpoint(t, db)
		elsewhere := hookglass.TunnelSession{ID: "tsess_2", Node: "node", Client: hookglass.TunnelClient{ID: "tcl_2", Name: "another's"}}
		update(func(tx *store.Tx) error {
			if err := tx.CreateTunnelSession(&elsewhere); err != nil {
				return err
			}
			_, err := tx.SubscribeTunnel(string(third.ID), &hookglass.TunnelSubscription{SessionNum: elsewhere.Num})
			return err
		})
		read := func(ref hookglass.EndpointID) (all []hookglass.TunnelConnection, gaps []hookglass.Gap) {
			t.Helper()
			err := db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
				if all, err = v.TunnelConnections(string(ref)); err != nil {
					return err
				}
				gaps, err = v.GapHistory(string(ref), 10)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return all, gaps
		}
		all, _ := read(e.ID)
		if len(all) != 1 || all[0].Session.ID != s.ID || all[0].Session.Client.Name != "cli" || all[0].Hostname != "laptop" || !all[0].Replays || all[0].Reports || all[0].Since.IsZero() {
			t.Errorf("%+v", all)
		}
		if all, gaps := read(other.ID); len(all)+len(gaps) > 0 {
			t.Errorf("of another endpoint: %+v %+v", all, gaps)
		}
		update(func(tx *store.Tx) error {
			return tx.EndTunnels([]store.TunnelEnd{{Session: s.Num, Lost: true, Since: time.Now()}})
		})
		if all, gaps := read(e.ID); len(all) > 0 || len(gaps) != 1 || gaps[0].State != hookglass.GapOpen || gaps[0].Hostname != "laptop" {
			t.Errorf("after it was lost: %+v %+v", all, gaps)
		}
		stranger := hookglass.Principal{Account: 4711, Scopes: hookglass.System.Scopes}
		for _, look := range []func(*store.View) error{
			func(v *store.View) error { _, err := v.TunnelConnections(string(e.ID)); return err },
			func(v *store.View) error { _, err := v.GapHistory(string(e.ID), 10); return err },
		} {
			if err := db.View(t.Context(), stranger, look); !hookglass.Is(err, hookglass.CodeNotFound) {
				t.Errorf("a stranger: %v", err)
			}
		}
	})
}

// When a node is back all its clients are at once, and many of them may listen to one endpoint.
func TestSubscriptionsToOneEndpointBeginBesideOneAnother(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)}) // SQLite has one writer, whose commits are shared
	e := newEndpoint(t, db)
	session := func(id string) (s hookglass.TunnelSession) {
		s = hookglass.TunnelSession{ID: id, Node: "node"}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateTunnelSession(&s) })
		return s
	}
	first, one, two := session("tsess_0"), session("tsess_1"), session("tsess_2")
	subscribe := func(s hookglass.TunnelSession) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			_, err := tx.SubscribeTunnel(string(e.ID), &hookglass.TunnelSubscription{SessionNum: s.Num})
			return err
		}
	}
	writing(t, db, subscribe(first))
	writing(t, db, func(tx *store.Tx) error {
		if err := subscribe(one)(tx); err != nil {
			return err
		}
		writing(t, db, subscribe(two))
		// Who ends waits: it must see all that are left.
		soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := db.Update(soon, hookglass.System, func(tx *store.Tx) error {
			return tx.EndTunnels([]store.TunnelEnd{{Session: first.Num, Lost: true, Since: time.Now()}, {Session: two.Num, Lost: true, Since: time.Now()}})
		})
		if err == nil {
			t.Error("subscriptions end while another begins")
		}
		return nil
	})
	writing(t, db, func(tx *store.Tx) error {
		return tx.EndTunnels([]store.TunnelEnd{{Session: first.Num, Lost: true, Since: time.Now()}, {Session: two.Num, Lost: true, Since: time.Now()}})
	})
	reading(t, db, func(v *store.View) error {
		all, err := v.TunnelConnections(string(e.ID))
		if err != nil {
			return err
		}
		gaps, err := v.GapHistory(string(e.ID), 10)
		if len(all) != 1 || all[0].Session.ID != one.ID || len(gaps) != 0 {
			t.Errorf("%+v, %+v", all, gaps)
		}
		return err
	})
}

// A node writes down how far its clients are while one of them, which watches many endpoints, goes.
func TestWhatIsReceivedIsStoredWhileSubscriptionsEnd(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		update := func(do func(*store.Tx) error) error { return db.Update(t.Context(), hookglass.System, do) }
		ids := []hookglass.EndpointID{}
		for range 40 {
			ids = append(ids, newEndpoint(t, db).ID)
		}
		session := func(id string) (s hookglass.TunnelSession, received map[int64]int64) {
			s, received = hookglass.TunnelSession{ID: id, Node: "node", Client: hookglass.TunnelClient{ID: "tcl_" + id}}, map[int64]int64{}
			err := update(func(tx *store.Tx) error {
				if err := tx.CreateTunnelSession(&s); err != nil {
					return err
				}
				for _, id := range ids {
					sub := hookglass.TunnelSubscription{SessionNum: s.Num}
					if _, err := tx.SubscribeTunnel(string(id), &sub); err != nil {
						return err
					}
					received[sub.Num] = 1_000 + sub.Num
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return s, received
		}
		s, received := session("tsess_1")
		var both sync.WaitGroup
		both.Go(func() {
			if err := update(func(tx *store.Tx) error { return tx.SaveTunnelReceived(received) }); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			if err := update(func(tx *store.Tx) error { return tx.EndTunnels([]store.TunnelEnd{{Session: s.Num}}) }); err != nil {
				t.Error(err)
			}
		})
		both.Wait()

		_, received = session("tsess_2")
		if err := update(func(tx *store.Tx) error { return tx.SaveTunnelReceived(received) }); err != nil {
			t.Fatal(err)
		}
		if err := update(func(tx *store.Tx) error { return tx.SaveTunnelReceived(nil) }); err != nil {
			t.Fatal(err)
		}
		err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
			other, err := v.Ints("SELECT num FROM tunnel_subscriptions WHERE received <> 1000 + num")
			if len(other) > 0 {
				t.Errorf("another number is stored for the subscriptions %v", other)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
