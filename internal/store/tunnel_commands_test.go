package store_test

import (
	"slices"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// subscribed opens a session at a node and subscribes it to an endpoint.
func subscribed(t *testing.T, db *store.DB, id, node string, e hookglass.Endpoint) int64 {
	t.Helper()
	s := hookglass.TunnelSession{ID: id, Node: node, Client: hookglass.TunnelClient{ID: "tcl_" + id}}
	writing(t, db, func(tx *store.Tx) error {
		if err := tx.CreateTunnelSession(&s); err != nil {
			return err
		}
		_, err := tx.SubscribeTunnel(string(e.ID), &hookglass.TunnelSubscription{SessionNum: s.Num})
		return err
	})
	return s.Num
}

// command stores a command for an endpoint, which expires after a while.
func command(t *testing.T, db *store.DB, id string, e hookglass.Endpoint, life time.Duration) *hookglass.TunnelCommand {
	t.Helper()
	c := &hookglass.TunnelCommand{ID: id, EndpointNum: e.Num, Request: hookglass.SentRequest{Method: "POST", URL: "/"}, Timeout: time.Second}
	writing(t, db, func(tx *store.Tx) error {
		c.ExpiresAt = tx.Now.Add(life)
		return tx.CreateTunnelCommand(c, tx.Now)
	})
	return c
}

// Many commands are under way together, at one endpoint and at others: each goes to a session of its endpoint, once,
// and what becomes of one says nothing of another.
func TestEachTunnelCommandStandsForItself(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		old, young := subscribed(t, db, "tsess_1", "node", e), subscribed(t, db, "tsess_2", "node", e)
		elsewhere := subscribed(t, db, "tsess_3", "node", other)
		one, two := command(t, db, "tcmd_1", e, time.Minute), command(t, db, "tcmd_2", e, time.Hour)
		three := command(t, db, "tcmd_3", other, time.Hour)
		if one.SessionNum != young || two.SessionNum != young || three.SessionNum != elsewhere {
			t.Fatalf("offered to %d, %d and %d", one.SessionNum, two.SessionNum, three.SessionNum)
		}
		waiting := func(what string, session, after int64, until time.Time, want ...*hookglass.TunnelCommand) {
			t.Helper()
			reading(t, db, func(v *store.View) error {
				found, err := v.WaitingTunnelCommands(session, after, 10, until)
				if !slices.EqualFunc(found, want, func(c hookglass.TunnelCommand, w *hookglass.TunnelCommand) bool {
					return c.Num == w.Num && c.ID == w.ID
				}) {
					t.Errorf("%s: %+v wait", what, found)
				}
				return err
			})
		}
		offer := func(c *hookglass.TunnelCommand, offered ...int64) (session int64, err error) {
			err = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
				session, err = tx.OfferTunnelCommand(c.Num, offered, tx.Now)
				return err
			})
			return session, err
		}
		send := func(c *hookglass.TunnelCommand, session int64, hash string) (mine bool) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) (err error) {
				mine, err = tx.SendTunnelCommand(c.Num, session, []byte(hash), tx.Now)
				return err
			})
			return mine
		}
		answer := func(c *hookglass.TunnelCommand, hash string) error {
			return db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				return tx.AnswerTunnelCommand(c.ID, []byte(hash), hookglass.TunnelResult{StatusCode: 201})
			})
		}
		state := func(c *hookglass.TunnelCommand, wantSent, wantHeld, wantResult bool) {
			t.Helper()
			reading(t, db, func(v *store.View) error {
				sent, held, result, err := v.TunnelCommandState(c.Num)
				if sent != wantSent || held != wantHeld || (result != nil) != wantResult {
					t.Errorf("%s: sent %t, held %t, result %+v", c.ID, sent, held, result)
				}
				return err
			})
		}
		withdraw := func(c *hookglass.TunnelCommand) (unsent bool) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) (err error) {
				unsent, err = tx.WithdrawTunnelCommand(c.ID)
				return err
			})
			return unsent
		}
		refused := func(what string, err error, code hookglass.Code) {
			t.Helper()
			if !hookglass.Is(err, code) {
				t.Errorf("%s: %v", what, err)
			}
		}

		now := time.Now()
		waiting("all of a session", young, 0, now, one, two)
		waiting("the next", young, one.Num, now, two)
		waiting("what expires later", young, 0, one.ExpiresAt, two)
		waiting("of the session elsewhere", elsewhere, 0, now, three)

		if session, err := offer(one, young); session != old || err != nil {
			t.Fatalf("the next session: %d, %v", session, err)
		}
		_, err := offer(three, elsewhere)
		refused("without another session of its endpoint", err, hookglass.CodeNotFound)
		waiting("what was offered on", old, 0, now, one)
		waiting("the rest", young, 0, now, two)
		waiting("elsewhere", elsewhere, 0, now, three)

		if send(one, young, "hash 1") || !send(one, old, "hash 1") || send(one, old, "hash 2") {
			t.Error("a command goes to the session that it is offered to, once")
		}
		waiting("after it was sent", old, 0, now)
		if session, err := offer(one, old); session != 0 || err != nil {
			t.Errorf("what was sent is offered on: %d, %v", session, err)
		}
		state(one, true, true, false)
		state(two, false, true, false)
		state(three, false, true, false)

		if !send(three, elsewhere, "hash 3") {
			t.Error("another's is sent all the same")
		}
		refused("with another's token", answer(three, "hash 1"), hookglass.CodeUnauthorized)
		if err := answer(one, "hash 1"); err != nil {
			t.Error(err)
		}
		refused("again", answer(one, "hash 1"), hookglass.CodeConflict)
		state(one, true, true, true)
		state(two, false, true, false)
		state(three, true, true, false)

		four := command(t, db, "tcmd_4", other, time.Hour)
		if !send(four, elsewhere, "hash 4") {
			t.Error("a fourth is not sent")
		}
		if withdraw(four) {
			t.Error("what was sent is withdrawn as unsent")
		}
		refused("when nobody waits any more", answer(four, "hash 4"), hookglass.CodeConflict)
		if err := answer(three, "hash 3"); err != nil {
			t.Errorf("beside one that was withdrawn: %v", err)
		}

		writing(t, db, func(tx *store.Tx) error { return tx.EndTunnels([]store.TunnelEnd{{Session: young}}) })
		state(two, false, false, false)
		state(one, true, true, true)
		five := command(t, db, "tcmd_5", e, time.Hour)
		for range 2 { // the second time it is not there
			if !withdraw(five) {
				t.Error("what was not sent, or is not there, may have been sent")
			}
		}
		state(two, false, false, false)
	})
}

// The answer comes too late from the moment at which a command expires.
func TestATunnelCommandIsAnsweredBeforeItExpires(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		session := subscribed(t, db, "tsess_1", "node", e)
		for life, code := range map[time.Duration]hookglass.Code{0: hookglass.CodeConflict, time.Microsecond: ""} {
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				c := hookglass.TunnelCommand{ID: hookglass.NewSortableID(hookglass.PrefixTunnelCommand, tx.Now), EndpointNum: e.Num, ExpiresAt: tx.Now.Add(life)}
				if err := tx.CreateTunnelCommand(&c, tx.Now); err != nil {
					return err
				}
				if mine, err := tx.SendTunnelCommand(c.Num, session, []byte("hash"), tx.Now.Add(-time.Second)); !mine || err != nil {
					t.Errorf("sent: %t, %v", mine, err)
				}
				return tx.AnswerTunnelCommand(c.ID, []byte("hash"), hookglass.TunnelResult{StatusCode: 201})
			})
			if code == "" && err != nil || code != "" && !hookglass.Is(err, code) {
				t.Errorf("%v before it expires: %v", life, err)
			}
		}
	})
}

// A session at a node that gave a sign of life since a time comes before a newer one at a node that did not.
func TestATunnelCommandGoesToANodeThatLives(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		seen := func(node string) (at time.Time) {
			writing(t, db, func(tx *store.Tx) error {
				at = tx.Now
				_, err := tx.RenewTunnelNode(node, tx.Now.Add(time.Minute))
				return err
			})
			return at
		}
		seen("node_silent")
		living := subscribed(t, db, "tsess_1", "node_living", e)
		silent := subscribed(t, db, "tsess_2", "node_silent", e)
		sign := seen("node_living")
		for sign, want := range map[time.Time]int64{sign: living, sign.Add(time.Microsecond): silent} {
			writing(t, db, func(tx *store.Tx) error {
				c := hookglass.TunnelCommand{ID: hookglass.NewSortableID(hookglass.PrefixTunnelCommand, tx.Now), EndpointNum: e.Num, ExpiresAt: tx.Now.Add(time.Minute)}
				err := tx.CreateTunnelCommand(&c, sign)
				if c.SessionNum != want {
					t.Errorf("with a sign of life since %v it goes to session %d, want %d", sign, c.SessionNum, want)
				}
				return err
			})
		}
	})
}
