package mcp

import (
	"context"
	"slices"
	"sync"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// arrivals wakes waiting calls when an event comes. However many wait at an endpoint, its new events are read once when
// the store announces them, and only calls that an event matches are woken.
type arrivals struct {
	db *store.DB
	mu sync.Mutex
	at map[int64]*gathering // by endpoint
}

// gathering is the group of waiters at one endpoint.
type gathering struct {
	endpoint hookglass.Endpoint
	heard    *store.Subscription
	waiters  map[*waiter]struct{}
	stop     context.CancelFunc // nil: reading has not begun
	done     chan struct{}
}

type waiter struct {
	woken  chan struct{}
	all    *arrivals
	around *gathering
	q      query.Query
}

func newArrivals(db *store.DB) *arrivals { return &arrivals{db: db, at: make(map[int64]*gathering)} }

// join adds a waiter. Once it begins, it misses nothing that is announced after join.
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

// begin starts the waiter after an event. The first waiter that begins starts the reading of its gathering.
func (w *waiter) begin(seq int64) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if g := w.around; g.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		g.stop = stop
		go g.run(ctx, w.all, seq)
	}
}

// leave removes the waiter. The last one stops the reading and waits for its end.
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

// read wakes the waiters that new events match, and all of them when the endpoint is gone. An error of the storage is
// left to the next announcement, and to each waiter's final query.
func (g *gathering) read(ctx context.Context, a *arrivals, seq int64) int64 {
	for {
		batch, err := store.Read(ctx, a.db, hookglass.System, func(v *store.View) ([]*hookglass.Event, error) {
			return v.EventsAfter(string(g.endpoint.ID), seq, readAhead)
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
