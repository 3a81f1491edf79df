package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
)

// Bounds of one group commit. Larger groups would delay the first op and take more memory.
const (
	groupOps   = 512
	groupBytes = 16 << 20

	// sharedOps is the bound if the database is a separate process: while it commits one group, this process serves the
	// senders of others. With groups of everything that waits, the two processes would take turns. Its bytes are
	// bounded because they travel while all nodes wait.
	sharedOps   = 64
	sharedBytes = 4 << 20
)

// queueLen bounds the work that waits for the writer. What exceeds it is answered unavailable at once.
const queueLen = 4096

// change is what an update does in its transaction. It reports whether its commit may be lost; see [Tx.MayBeLost].
type change func(*sql.Tx) (mayBeLost bool, err error)

// op is one piece of work for a writer that commits in groups.
type op struct {
	ctx     context.Context
	update  change // nil for a capture
	capture *captureOp
	state   atomic.Int32 // opWaiting, opTaken or opGivenUp
	lossy   bool         // update reported mayBeLost
	err     error
	done    chan struct{}

	running sync.Mutex // held while update runs
	left    bool       // the caller is gone: update must not touch its variables any more
}

// run runs the update, unless its caller has left.
func (o *op) run(tx *sql.Tx) error {
	o.running.Lock()
	defer o.running.Unlock()
	if o.left {
		return unavailable("write", context.Cause(o.ctx))
	}
	var err error
	o.lossy, err = o.update(tx)
	return err
}

// leave waits until the update is not running and prevents it from running again.
func (o *op) leave() {
	o.running.Lock()
	o.left = true
	o.running.Unlock()
}

const (
	opWaiting = iota
	opTaken
	opGivenUp
)

// submit queues the op and waits for its commit. If the context ends while the op still waits, it is withdrawn; if the
// writer has taken it, the outcome is unknown. In both cases the update no longer runs once submit returns, so the
// caller may use the variables that it writes to.
func submit(mu *sync.RWMutex, closed *bool, ops chan<- *op, o *op) error {
	mu.RLock()
	if *closed {
		mu.RUnlock()
		return unavailable("write", errors.New("the database is closing"))
	}
	select {
	case ops <- o:
		mu.RUnlock()
	default:
		mu.RUnlock()
		return unavailable("write", errors.New("too much waits to be written"))
	}
	select {
	case <-o.done:
		return o.err
	case <-o.ctx.Done():
	}
	if !o.state.CompareAndSwap(opWaiting, opGivenUp) {
		o.leave()
	}
	select {
	case <-o.done:
		return o.err
	default:
		return unavailable("write", context.Cause(o.ctx))
	}
}

// weight estimates the bytes of an event in a group. The reply counts too: it may be larger than the request.
func weight(ev *hookglass.Event) int64 {
	bytes := ev.Size
	if ev.Payload == nil {
		return bytes
	}
	for _, h := range ev.Headers {
		bytes += int64(len(h.Name) + len(h.Value))
	}
	if ev.Reply != nil {
		bytes += int64(len(ev.Reply.Body))
	}
	return bytes
}

// room is the capacity of a group.
type room struct {
	ops   int   // at most
	bytes int64 // the op that reaches them is the last

	worth int           // wait for so many ops
	wait  time.Duration // at most
}

// expect waits until there are so many ops in the queue, or for a while. It polls: being woken by each op would take
// the processor from senders.
func expect(queue <-chan *op, ops int, wait time.Duration) {
	for until := time.Now().Add(wait); len(queue) < ops && time.Now().Before(until); {
		time.Sleep(50 * time.Microsecond)
	}
}

// take returns the first op and those that wait behind it, up to the room of the group. It yields a few times, so that
// senders that were just answered can send their next request; this fills the group and costs a single sender nothing.
func take(queue <-chan *op, first *op, room room) []*op {
	ops := make([]*op, 0, 64)
	var bytes int64
	add := func(o *op) {
		if o.state.CompareAndSwap(opWaiting, opTaken) {
			ops = append(ops, o)
			if o.capture != nil {
				bytes += weight(o.capture.event)
			}
		}
	}
	add(first)
	for yields := 0; len(ops) < room.ops && bytes < room.bytes; {
		select {
		case o, open := <-queue:
			if !open {
				return ops
			}
			add(o)
			continue
		default:
		}
		if yields++; yields <= 3 {
			runtime.Gosched()
			continue
		}
		if len(ops) >= room.worth {
			return ops
		}
		expect(queue, room.worth-len(ops), room.wait)
		room.worth = 0 // take what has come by now
	}
	return ops
}

// retrySingly runs each op in its own transaction after a group failed, because a single op may have broken it for all.
// It stops as soon as the storage itself fails.
func retrySingly(ops []*op, err error, run func(*op) error) {
	for i, o := range ops {
		if err != nil && storageTrouble(err) {
			for _, rest := range ops[i:] {
				rest.err = err
			}
			return
		}
		if err = run(o); err != nil {
			o.err = err
		}
	}
}

// settle answers the ops of a finished group, hands over the work of its captures, and announces the rest.
func settle(db *DB, ops []*op, began time.Time) {
	topics := make(map[string]struct{}, 4)
	var captures int
	var bytes int64
	var take []func()
	for _, o := range ops {
		if o.capture != nil {
			take = append(take, o.capture.handed(o.err == nil)...)
		}
		if c := o.capture; c != nil && o.err == nil {
			captures++
			bytes += c.event.Size
			topics[TopicEvents(c.event.EndpointNum)] = struct{}{}
			if c.account != 0 {
				topics[TopicAccount(c.account)] = struct{}{}
			}
			if c.work.Forward && c.forwards.taker == nil {
				topics[TopicForwards] = struct{}{}
			}
			for i, kind := range c.work.Tasks {
				if c.taskUntil(i).IsZero() {
					topics[TopicTasks(kind)] = struct{}{}
				}
			}
		}
		close(o.done)
	}
	for _, t := range take {
		t()
	}
	if captures == 0 {
		return
	}
	names := make([]string, 0, len(topics))
	for t := range topics {
		names = append(names, t)
	}
	db.announce(names...)
	db.onCapture(captures, bytes, time.Since(began))
}

func hasCaptures(ops []*op) bool {
	return slices.ContainsFunc(ops, func(o *op) bool { return o.capture != nil })
}

type endpointGroup struct {
	endpoint int64
	last     time.Time
	ops      []*op
}

// byEndpoint groups captures by endpoint, each group in the order of reception, in which they may not reach the writer.
// The groups are sorted by endpoint, so that transactions take row locks in the same order.
func byEndpoint(ops []*op) []*endpointGroup {
	var groups []*endpointGroup
	index := make(map[int64]*endpointGroup)
	for _, o := range ops {
		if o.capture == nil {
			continue
		}
		ev := o.capture.event
		g := index[ev.EndpointNum]
		if g == nil {
			g = &endpointGroup{endpoint: ev.EndpointNum}
			index[ev.EndpointNum] = g
			groups = append(groups, g)
		}
		if ev.ReceivedAt.After(g.last) {
			g.last = ev.ReceivedAt
		}
		g.ops = append(g.ops, o)
	}
	slices.SortFunc(groups, func(a, b *endpointGroup) int { return cmp.Compare(a.endpoint, b.endpoint) })
	for _, g := range groups {
		slices.SortStableFunc(g.ops, func(a, b *op) int {
			x, y := a.capture.event, b.capture.event
			return cmp.Or(x.ReceivedAt.Compare(y.ReceivedAt), cmp.Compare(x.ID, y.ID)) // lists sort by id
		})
	}
	return groups
}
