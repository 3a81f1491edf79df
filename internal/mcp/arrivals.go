package mcp

import (
	"context"
	"slices"
	"sync"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// arrivals wakes those who wait for events. However many wait at an endpoint, its new events are read once, when the
// store announces them, and only those are woken whom one concerns.
type arrivals struct {
	db *store.DB
	mu sync.Mutex
	at map[int64]*gathering // by endpoint
}

// gathering is those who wait at one endpoint.
type gathering struct {
	endpoint hookglass.Endpoint
	heard    *store.Subscription
	waiters  map[*waiter]struct{}
	stop     context.CancelFunc // nil: it does not read yet
	done     chan struct{}
}

type waiter struct {
	woken  chan struct{}
	all    *arrivals
	around *gathering
	q      query.Query
}

func newArrivals(db *store.DB) *arrivals { return &arrivals{db: db, at: make(map[int64]*gathering)} }

// join adds a waiter. What is announced from now on is not lost to it once it begins.
func (a *arrivals) join(e hookglass.Endpoint, q query.Query) *waiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.at[e.Num]
	if g == nil {
		g = &gathering{endpoint: e, heard: a.db.Listen(store.TopicEvents(e.Num)), waiters: make(map[*waiter]struct{}), done: make(chan struct{})}
		a.at[e.Num] = g
	}
	w := &waiter{woken: make(chan struct{}, 1), all: a, around: g, q: q}
	g.waiters[w] = struct{}{}
	return w
}

// begin says behind which event nothing was read when the waiter had joined. The first that begins makes its gathering
// read.
func (w *waiter) begin(seq int64) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if g := w.around; g.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		g.stop = stop
		go g.run(ctx, w.all, seq)
	}
}

// leave takes the waiter away. The last one ends the reading and waits for that.
func (w *waiter) leave() {
	a, g := w.all, w.around
	a.mu.Lock()
	delete(g.waiters, w)
	last := len(g.waiters) == 0
	if last {
		delete(a.at, g.endpoint.Num)
	}
	a.mu.Unlock()
	if !last {
		return
	}
	g.heard.Close()
	if g.stop != nil {
		g.stop()
		<-g.done
	}
}

func (g *gathering) run(ctx context.Context, a *arrivals, seq int64) {
	defer close(g.done)
	for {
		select {
		case <-g.heard.C:
			seq = g.read(ctx, a, seq)
		case <-ctx.Done():
			return
		}
	}
}

// read wakes whom new events concern, and everybody when the endpoint is gone. Trouble in the storage waits for the
// next time, and for the last look of each waiter.
func (g *gathering) read(ctx context.Context, a *arrivals, seq int64) int64 {
	for {
		var batch []*hookglass.Event
		err := a.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
			batch, err = v.EventsAfter(string(g.endpoint.ID), seq, readAhead)
			return err
		})
		gone := hookglass.Is(err, hookglass.CodeNotFound)
		if err != nil && !gone {
			return seq
		}
		a.mu.Lock()
		for w := range g.waiters {
			if gone || slices.ContainsFunc(batch, w.q.Match) {
				w.wake()
			}
		}
		a.mu.Unlock()
		if n := len(batch); n > 0 {
			seq = batch[n-1].Seq
		}
		if len(batch) < readAhead {
			return seq
		}
	}
}

func (w *waiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default: // it is awake already
	}
}
