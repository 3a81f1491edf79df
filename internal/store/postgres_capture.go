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
	// amongOps is sharedOps among other nodes, which go on while the server works on a group of this one. It is the
	// server that all wait for then, and fewer, larger groups are less work for it.
	amongOps = 4 * sharedOps
	// amongBytes keeps such a group one that is copied.
	amongBytes = copiedBytes / 4 * 3
)

// comeBack is how long such a group waits for senders that were answered a moment ago: about as long as the server
// takes for a group of theirs.
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

// neighbours are other nodes, as the groups of this one meet them.
type neighbours struct {
	left   int    // groups that still expect to meet another
	unseen int    // groups since it was last asked
	sizes  [4]int // of this node's last groups
	groups int
}

const (
	expectedFor = 16 // groups, after one that met another
	lookEvery   = 64 // groups, while none did
)

// expected reports whether the next group may meet one of another node.
func (n *neighbours) expected() bool {
	n.left--
	n.unseen++
	return n.left >= 0 || n.unseen >= lookEvery
}

// near reports whether others were met of late.
func (n *neighbours) near() bool { return n.left > 0 }

func (n *neighbours) asked(met bool) {
	n.unseen = 0
	if met {
		n.left = expectedFor
	}
}

// made notes the size of a group.
func (n *neighbours) made(size int) {
	n.sizes[n.groups%len(n.sizes)] = size
	n.groups++
}

// room is what the next group has room for. Among others it waits for most of what one of the last groups had: senders
// that send again once they are answered come back a few at a time while the server works on a group of another node.
// With one sender nothing is waited for, and with many they are there.
func (n *neighbours) room(comeBack time.Duration) room {
	if !n.near() {
		return room{ops: sharedOps, bytes: sharedBytes}
	}
	return room{ops: amongOps, bytes: amongBytes, worth: min(slices.Max(n.sizes[:])*4/5, sharedOps/2), wait: comeBack}
}

// turnFree returns when no group is under way but one that is past half, and whether one was.
const turnFree = `SELECT CASE WHEN pg_try_advisory_xact_lock_shared($1) THEN false ELSE pg_advisory_xact_lock_shared($2) IS NOT NULL END`

// letPass waits for the group of another node that is under way, and reports whether there was one. What would wait
// for it on the server, a group of a few, waits here instead and grows: fewer and larger groups are less work for the
// server that all nodes share. Half of that group is enough to wait for: then this node's is there when the server has
// committed it (docs/decisions/0040). Nothing is kept from others meanwhile, as by a node that freezes with the turn;
// so another group may come first all the same.
func (e *postgresEngine) letPass() (met bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := e.captures.QueryRow(ctx, turnFree, int64(captureLock), int64(eventsLock)).Scan(&met)
	if noTurn(err) {
		e.makeWay()
	}
	return met && !e.crowding.Load() // whose group may have been ours
}

// runCrowd is a second writer, for when more waits than the group on its way can be followed by: its group travels, and
// waits for the lock, while the first commits. With fewer senders it would only make two small groups out of one. It
// ends where there may be other nodes: its groups would be taken for theirs.
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
	groups := byEndpoint(ops)
	err := e.insert(groups)
	if err != nil && len(ops) > 1 {
		retrySingly(ops, err, func(o *op) error { return e.insert(byEndpoint([]*op{o})) })
	} else if err != nil {
		ops[0].err = err
	}
	settle(e.db, ops, began)
}

// insert commits all captures of the groups in one transaction and one round trip, except for those whose endpoint is
// gone.
func (e *postgresEngine) insert(groups []*endpointGroup) error {
	// Not the context of any one op: the group commits for all of them. The server ends what hangs.
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

// stuckAfter is when a group that still has the lock is one of which the server waits for the rest: its node gave it up
// after 10 s.
const stuckAfter = 11 * time.Second

// makeWay ends what holds the lock of captures and says no more, as when its machine stands still in the middle of a
// group. None of the server's time limits applies while it waits for the rest of a message.
func (e *postgresEngine) makeWay() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	tag, err := e.pool.Exec(ctx, `SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.classid = cast($1 AS bigint) AND l.objid = cast($2 AS bigint) AND l.objsubid = 1
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND a.wait_event = 'ClientRead' AND a.xact_start < clock_timestamp() - cast($3 AS bigint) * interval '1 microsecond'`,
		int64(captureLock)>>32, int64(captureLock)&0xffffffff, e.stuckAfter.Microseconds())
	switch {
	case err != nil:
		e.db.log.Warn("captures wait for a group that does not end, and it could not be ended", "error", err)
	case tag.RowsAffected() > 0:
		e.db.log.Warn("a group of captures that did not end was ended, for the others to go on")
	}
}
