package tunnel_test

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
	"hookglass/internal/tunnel"
)

// canReplay is a client that says it can replay.
var canReplay = hookglass.TunnelClient{Capabilities: []string{hookglass.CapabilityReplay}}

// dead leaves what a node leaves that was killed: a lease that lasts, and sessions that nobody serves.
func (b *bench) dead(node string, lease time.Duration, sessions int) (nums []int64) {
	b.t.Helper()
	must(b.t, b.dbs[0].Update(b.t.Context(), hookglass.System, func(tx *store.Tx) error {
		if _, err := tx.RenewTunnelNode(node, tx.Now.Add(lease)); err != nil {
			return err
		}
		for range sessions {
			s := hookglass.TunnelSession{ID: hookglass.NewSortableID(hookglass.PrefixTunnelSession, tx.Now), Node: node}
			if err := tx.CreateTunnelSession(&s); err != nil {
				return err
			}
			if _, err := tx.SubscribeTunnel(string(b.ep.ID), &hookglass.TunnelSubscription{SessionNum: s.Num, Replays: true}); err != nil {
				return err
			}
			nums = append(nums, s.Num)
		}
		return nil
	}))
	return nums
}

// answer says that a command was run, with a status.
func (b *bench) answer(n *node, c api.TunnelReplayCommand, status int64) {
	b.t.Helper()
	must(b.t, n.Finish(b.t.Context(), api.TunnelReplayResult{CommandID: c.CommandID, ResultToken: c.ResultToken, StatusCode: api.Some(status)}))
}

// A node was killed and its lease lasts: what is offered to its sessions, which are the newest, goes on to one that
// lives, at another node before the others of the dead one.
func TestARequestThatADeadNodeDoesNotTakeGoesToALivingOne(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), canReplay)
		c.subscribe(b.ep)
		b.dead("node_dead", time.Hour, 50)
		must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) error { // it was heard of just before
			tx.Now = tx.Now.Add(time.Hour)
			_, err := tx.RenewTunnelNode("node_dead", tx.Now.Add(time.Hour))
			return err
		}))
		out := b.send(t.Context(), n, patience)
		c.await("the command", func() bool { return len(c.commands) == 1 })
		// The first that was asked had 2 s for it; so all the dead ones would have had 100 s.
		if command := c.commands[0]; command.TimeoutMS > 115_000 || command.TimeoutMS < 60_000 {
			t.Errorf("the client is given %d ms of 117 s", command.TimeoutMS)
		}
		b.answer(n, c.commands[0], 201)
		if got := <-out; got.Response == nil || got.Response.Status != 201 {
			t.Errorf("%+v", got)
		}
	})
}

// A node that has not renewed its lease in time is asked last, though its sessions are the newest.
func TestASilentNodeIsAskedLast(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), canReplay)
		c.subscribe(b.ep)
		dead := b.dead("node_dead", time.Hour, 1)[0]
		var silent time.Time
		asked := func(sign time.Time) (session int64) {
			must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				silent = cmp.Or(silent, tx.Now)
				command := hookglass.TunnelCommand{ID: hookglass.NewSortableID(hookglass.PrefixTunnelCommand, tx.Now), EndpointNum: b.ep.Num, ExpiresAt: tx.Now}
				err := tx.CreateTunnelCommand(&command, sign)
				session = command.SessionNum
				return err
			}))
			return session
		}
		if first := asked(time.Time{}); first != dead {
			t.Errorf("where both count as alive %d is asked first, not the newest", first)
		}
		eventually(t, "the living node to be asked first", func() bool { return asked(silent) != dead })
	})
}

// A client that does not answer is not given what nobody else could be given then: the next one gets it, and it never
// does, whenever it is back.
func TestARequestIsGivenToAClientThatIsThere(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		older := b.connect(n, b.who, string(b.ep.ID), canReplay)
		older.subscribe(b.ep)
		newer := b.connect(n, b.who, string(b.ep.ID), canReplay)
		newer.subscribe(b.ep)
		thaw := newer.freeze()
		eventually(t, "the newer client to be silent for a while", func() bool { return !newer.session.Near() })
		out := b.send(t.Context(), n, patience)
		older.await("the command", func() bool { return len(older.commands) == 1 })
		thaw()
		eventually(t, "the newer client to be back", newer.session.Near)
		b.answer(n, older.commands[0], 200)
		if got := <-out; got.Response == nil {
			t.Errorf("%+v", got)
		}
		if len(newer.commands) != 0 {
			t.Error("both clients got the command")
		}
		b.send(t.Context(), n, patience)
		newer.await("the next command", func() bool { return len(newer.commands) == 1 })
	})
}

// Where there is no other client, the one that is silent gets the request when it is back, and nobody when it is not:
// then it is known that it was not made.
func TestARequestWaitsForTheOnlyClient(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		c := b.connect(n, b.who, string(b.ep.ID), canReplay)
		c.subscribe(b.ep)
		thaw := c.freeze()
		eventually(t, "the client to be silent for a while", func() bool { return !c.session.Near() })
		first, out := b.send(t.Context(), n, 4*time.Second), b.send(t.Context(), n, patience)
		if got := <-first; !got.Blocked || got.MaySent || got.Failure == nil || got.Failure.Code != "no_tunnel" {
			t.Errorf("while the client is silent: %+v", got)
		}
		thaw()
		c.await("the command", func() bool { return len(c.commands) == 1 })
		b.answer(n, c.commands[0], 200)
		if got := <-out; got.Response == nil {
			t.Errorf("%+v", got)
		}
	})
}

// A client that comes back, at another node, gets what was waiting for its former session.
func TestARequestFollowsAClientThatComesBack(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(1, 0)
		b.dead("node_dead", time.Hour, 1)
		out := b.send(t.Context(), n, patience)
		c := b.connect(n, b.who, string(b.ep.ID), canReplay)
		c.subscribe(b.ep)
		c.await("the command", func() bool { return len(c.commands) == 1 })
		b.answer(n, c.commands[0], 200)
		if got := <-out; got.Response == nil {
			t.Errorf("%+v", got)
		}
	})
}

// Its last client is gone, and no other there: nobody waits for the end of its time. Where all have been asked, the first
// is asked again: it may only have been busy.
func TestARequestIsOfferedToAllAndGivenUpWithTheLast(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, 0)
		dead := b.dead("node_dead", time.Hour, 2)
		out := b.send(t.Context(), n, patience)
		var num int64
		eventually(t, "the request", func() bool {
			must(t, b.dbs[0].View(t.Context(), hookglass.System, func(v *store.View) error {
				waiting, err := v.WaitingTunnelCommands(dead[1], 0, 1, v.Now)
				if len(waiting) > 0 {
					num = waiting[0].Num
				}
				return err
			}))
			return num != 0
		})
		offered, err := []int64{dead[1]}, error(nil)
		for _, want := range [][]int64{{dead[1], dead[0]}, {dead[0], dead[1]}, {dead[1], dead[0]}} {
			if offered, err = n.OfferOn(t.Context(), num, offered); err != nil || !slices.Equal(offered, want) {
				t.Errorf("it was offered to %v, want %v; %v", offered, want, err)
			}
		}
		must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			return tx.EndTunnels([]store.TunnelEnd{{Session: dead[0]}, {Session: dead[1]}})
		}))
		if got := <-out; !got.Blocked || got.MaySent || got.Failure == nil || got.Failure.Code != "no_tunnel" || got.Duration > patience/2 {
			t.Errorf("%+v", got)
		}
	})
}

// Sessions are asked one after another, and the marker counts for all of them: one that is late finds nothing.
func TestACommandIsOfferedToOneSessionAtATime(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.dead("node_other", time.Hour, 1)
		nums := b.dead("node_dead", time.Hour, 2)
		other := nums[0] - 1
		must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			sign := tx.Now.Add(-time.Second)
			command := hookglass.TunnelCommand{ID: "tcmd_x", EndpointNum: b.ep.Num, ExpiresAt: tx.Now.Add(time.Minute)}
			must(t, tx.CreateTunnelCommand(&command, sign))
			offered := []int64{command.SessionNum}
			for {
				next, err := tx.OfferTunnelCommand(command.Num, offered, sign)
				if hookglass.Is(err, hookglass.CodeNotFound) {
					break
				}
				must(t, err)
				offered = append(offered, next)
			}
			if len(offered) != 3 || offered[0] != nums[1] || offered[1] != other || offered[2] != nums[0] {
				t.Errorf("offered to %v; %d and %v are there", offered, other, nums)
			}
			send := func(session int64, until time.Time) bool {
				sent, err := tx.SendTunnelCommand(command.Num, session, []byte("hash"), until)
				must(t, err)
				return sent
			}
			if send(nums[1], tx.Now) || send(other, tx.Now) {
				t.Error("a session that it is offered to no longer was given it")
			}
			if send(nums[0], tx.Now.Add(time.Minute)) {
				t.Error("it was given although there is no time left")
			}
			if !send(nums[0], tx.Now) || send(nums[0], tx.Now) {
				t.Error("it was not given once")
			}
			if next, err := tx.OfferTunnelCommand(command.Num, offered[:1], sign); next != 0 || err != nil {
				t.Errorf("it was given, and is offered to %d, %v", next, err)
			}
			return nil
		}))
	})
}

// A node that stood still is being taken for dead when it goes on: the clients whose sessions another node has ended are
// sent away, and find their gap when they come back.
func TestANodeThatWasTakenForDeadSendsItsClientsAway(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, time.Second)
		c := b.connect(n, b.who, string(b.ep.ID), canReplay)
		c.subscribe(b.ep)
		spared := b.connect(n, b.who, string(b.ep.ID), canReplay)
		must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			nodes, err := tx.LostTunnelNodes("", tx.Now.Add(time.Hour))
			if err != nil {
				return err
			}
			_, err = tx.EndTunnelNode(nodes[0], 1)
			return err
		}))
		c.await("the goodbye", func() bool { return slices.Contains(c.words, "disconnect server_restart true") })
		b.capture(0, b.ep, 1)
		if spared.subscribe(b.ep); spared.words[0] != "confirm "+string(b.ep.ID) {
			t.Errorf("the client whose session goes on is told %q", spared.words)
		}
		if g := b.gaps(n, b.ep); len(g) != 1 || g[0].Counts.Pending != 1 {
			t.Errorf("%+v", g)
		}
	})
}

// An embedded database has one node: what another holds there is of a process that was killed, whatever its lease says.
func TestWhatAKilledProcessHeldEndsWithTheNextStart(t *testing.T) {
	db := storetest.SQLite(t)
	b := newBench(t, db, db)
	b.dead("node_killed", 14*time.Second, 1)
	s := tunnel.New(db, tunnel.Config{Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	elapsed := storetest.Watch(t)
	go func() { defer close(ended); _ = s.Run(ctx) }()
	defer func() { stop(); <-ended }()
	eventually(t, "the end of the tunnel", func() bool { return !b.active(b.ep) })
	if took := elapsed(); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A node that stood still for longer than its lease begins no session before it has one again: were it to die then,
// nobody would end the session.
func TestANodeWithoutALeaseBeginsNoSession(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		n := b.node(0, time.Hour) // which it renews after a long time
		b.connect(n, b.who, string(b.ep.ID), canReplay).close(true)
		must(t, b.dbs[0].Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.ForgetTunnelNode(n.Node()) }))
		g, err := n.Connect(t.Context(), b.who, string(b.ep.ID), canReplay)
		must(t, err)
		if _, err := n.Open(t.Context(), g.Ticket, &socket{t: t}); !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("opened: %v", err)
		}
		b.open(b.node(1, 0), g.Ticket) // the ticket is good, elsewhere
	})
}
