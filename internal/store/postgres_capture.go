package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"hookglass"
)

func (e *postgresEngine) capture(ctx context.Context, c *captureOp) error {
	if len(e.ops) >= sharedOps && !e.others.Load() {
		select {
		case e.crowded <- struct{}{}:
		default:
		}
	}
	return submit(&e.mu, &e.closed, e.ops, &op{ctx: ctx, capture: c, done: make(chan struct{})})
}

const (
	// amongOps is sharedOps if there are other nodes. Their groups keep the server busy while this one's grows, and the
	// server is what all wait for: fewer, larger groups are less work for it.
	amongOps = 4 * sharedOps
	// amongBytes keeps such a group small enough to be copied.
	amongBytes = copiedBytes / 4 * 3
)

// comeBack is how long such a group waits for senders that were just answered: about as long as the server takes for
// one of their groups.
const comeBack = 300 * time.Microsecond

func (e *postgresEngine) runCaptures() {
	var others neighbours
	for first := range e.ops {
		if others.expected() {
			e.others.Store(true)
			if !e.crowding.Load() {
				others.asked(e.letPass())
				e.others.Store(others.near())
			}
		}
		ops := take(e.ops, first, others.room(e.comeBack))
		others.made(len(ops))
		if len(ops) > 0 {
			e.group(ops)
		}
	}
	close(e.done)
}

// neighbours tracks other nodes by the groups of theirs that this node meets.
type neighbours struct {
	left   int    // groups for which another node is still expected
	unseen int    // groups since it was last checked
	sizes  [4]int // of this node's last groups, a ring
	groups int
}

const (
	expectedFor = 16 // groups after one that met another node
	lookEvery   = 64 // groups between checks while none did
)

// expected reports whether the next group may meet one of another node.
func (n *neighbours) expected() bool {
	n.left--
	n.unseen++
	return n.left >= 0 || n.unseen >= lookEvery
}

// near reports whether another node was met recently.
func (n *neighbours) near() bool { return n.left > 0 }

func (n *neighbours) asked(met bool) {
	n.unseen = 0
	if met {
		n.left = expectedFor
	}
}

// made records the size of a group.
func (n *neighbours) made(size int) {
	n.sizes[n.groups%len(n.sizes)] = size
	n.groups++
}

// room returns the capacity of the next group. If there are other nodes, it waits until most of the size of a recent
// group has come: senders that send again once answered come back a few at a time while the server works on another
// node's group. With a single sender nothing is waited for, and with many it is there at once.
func (n *neighbours) room(comeBack time.Duration) room {
	if !n.near() {
		return room{ops: sharedOps, bytes: sharedBytes}
	}
	return room{ops: amongOps, bytes: amongBytes, worth: min(slices.Max(n.sizes[:])*4/5, sharedOps/2), wait: comeBack}
}

// turnFree waits until no group is running, or only one past its halfway point, and returns whether it had to wait.
const turnFree = `SELECT CASE WHEN pg_try_advisory_xact_lock_shared($1) THEN false ELSE pg_advisory_xact_lock_shared($2) IS NOT NULL END`

// letPass waits for the running group of another node and reports whether there was one. A small group that would wait
// on the server waits here instead, and grows: fewer, larger groups are less work for the server that all nodes share.
// It waits only for the first half, so that this node's group arrives when the server has committed that one
// (docs/decisions/0040). It reserves no turn, which a frozen node would keep from the others; so another group may
// still come first.
func (e *postgresEngine) letPass() (met bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := e.captures.QueryRow(ctx, turnFree, captureLock, eventsLock).Scan(&met)
	if noTurn(err) {
		e.makeWay()
	}
	return met && !e.crowding.Load() // otherwise the group may have been our own
}

// letEnd waits for the end of the running group. A node of an early version takes its turn before it counts the events;
// a group that counted them first, and waits for its turn, is in its way.
func (e *postgresEngine) letEnd() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _ = e.captures.Exec(ctx, captureTurn.text, captureLock) // if it does not end, the group learns that itself
}

// runCrowd is a second writer for when the queue holds more than one further group: its group travels, and waits for
// the lock, while the first commits. With fewer senders it would only split one group in two. It stops if there may be
// other nodes, because its groups would be taken for theirs.
func (e *postgresEngine) runCrowd() {
	for {
		select {
		case <-e.crowded:
		case <-e.done:
			return
		}
		for len(e.ops) >= sharedOps && !e.others.Load() {
			first, open := <-e.ops
			if !open {
				return
			}
			e.crowding.Store(true)
			if ops := take(e.ops, first, room{ops: sharedOps, bytes: sharedBytes}); len(ops) > 0 {
				e.group(ops)
			}
		}
		e.crowding.Store(false)
	}
}

func (e *postgresEngine) group(ops []*op) {
	began := time.Now()
	e.db.offer(ops)
	err := e.insert(byEndpoint(ops))
	if inDeadlock(err) {
		e.letEnd()
	}
	if overtaken(err) || inDeadlock(err) {
		err = e.insert(byEndpoint(ops))
	}
	if err != nil && len(ops) > 1 {
		retrySingly(ops, err, func(o *op) error { return e.insert(byEndpoint([]*op{o})) })
	} else if err != nil {
		ops[0].err = err
	}
	settle(e.db, ops, began)
}

// insert commits all captures of the groups in one transaction and one round trip, except those whose endpoint is gone.
func (e *postgresEngine) insert(groups []*endpointGroup) error {
	// Not the context of any single op: the group commits for all of them. The server's timeouts end what hangs.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := e.captures.Acquire(ctx)
	if err != nil {
		return unavailable("connect", err)
	}
	defer conn.Release()
	for _, g := range groups {
		for _, o := range g.ops {
			o.err = nil
		}
	}
	for len(groups) > 0 {
		gone, err := sendGroup(ctx, conn.Conn(), groups, e.db.Now(), e.others.Load())
		if errors.Is(err, errTurn) {
			e.makeWay()
		}
		if err != nil || gone == nil {
			return err
		}
		for _, o := range gone.ops {
			o.err = hookglass.NotFound("endpoint")
		}
		groups = slices.DeleteFunc(groups, func(g *endpointGroup) bool { return g == gone })
	}
	return nil
}

// stuckAfter is the age at which a group that still holds the lock is stuck: its node gave it up after 10 s, and the
// server still waits for the rest of it.
const stuckAfter = 11 * time.Second

// makeWay terminates the session that holds the capture lock and has gone silent, for example because its machine froze
// in the middle of a group. None of the server's timeouts applies while it waits for the rest of a message.
func (e *postgresEngine) makeWay() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	tag, err := e.pool.Exec(ctx, `SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.classid = cast($1 AS bigint) AND l.objid = cast($2 AS bigint) AND l.objsubid = 1
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND a.wait_event = 'ClientRead' AND a.xact_start < clock_timestamp() - cast($3 AS bigint) * interval '1 microsecond'`,
		captureLock>>32, captureLock&0xffffffff, e.stuckAfter.Microseconds())
	switch {
	case err != nil:
		e.db.log.Warn("a transaction of captures hangs and could not be ended; others wait for it", "error", err)
	case tag.RowsAffected() > 0:
		e.db.log.Warn("a hanging transaction of captures was ended, so that others can go on")
	}
}
