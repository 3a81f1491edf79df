package store

import (
	"context"
	"slices"
	"time"

	"hookglass"
)

func (e *postgresEngine) capture(ctx context.Context, c *captureOp) error {
	if len(e.ops) >= sharedOps {
		select {
		case e.crowded <- struct{}{}:
		default:
		}
	}
	return submit(&e.mu, &e.closed, e.ops, &op{ctx: ctx, capture: c, done: make(chan struct{})})
}

func (e *postgresEngine) runCaptures() {
	for first := range e.ops {
		ops := take(e.ops, first, sharedOps)
		if len(ops) > 0 {
			e.group(ops)
		}
	}
	close(e.done)
}

// runCrowd is a second writer, for when more waits than the group on its way can be followed by: its group travels, and
// waits for the lock, while the first commits. With fewer senders it would only make two small groups out of one.
func (e *postgresEngine) runCrowd() {
	for {
		select {
		case <-e.crowded:
		case <-e.done:
			return
		}
		for len(e.ops) >= sharedOps {
			first, open := <-e.ops
			if !open {
				return
			}
			if ops := take(e.ops, first, sharedOps); len(ops) > 0 {
				e.group(ops)
			}
		}
	}
}

func (e *postgresEngine) group(ops []*op) {
	began := time.Now()
	groups := byEndpoint(ops)
	err := e.insert(groups)
	if err != nil && len(ops) > 1 {
		retrySingly(ops, err, func(o *op) error { return e.insert(byEndpoint([]*op{o})) })
	} else if err != nil {
		ops[0].err = err
	}
	settle(e.db, ops, began)
}

// insert commits all captures of the groups in one transaction and one round trip, but for those whose endpoint is gone.
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
		gone, err := sendGroup(ctx, conn.Conn(), groups, e.db.Now())
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
