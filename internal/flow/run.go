package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

const (
	// renewEvery is how often leases are extended and cursors stored.
	renewEvery = 5 * time.Second
	// lookEvery is the slow poll behind announcements, which may be lost.
	lookEvery = 2 * time.Second
	// actsEvery is how often a flow checks whether the actions it waits for have run.
	actsEvery = 100 * time.Millisecond
	// pause is the least time between two rounds: under a flood of events, they are read in larger batches.
	pause = 10 * time.Millisecond

	// turnFor is how long one flow is judged before others have their turn, and roundFor how long flows are judged
	// before leases are renewed. The cost of an event depends on its sender and on the flow.
	turnFor  = 250 * time.Millisecond
	roundFor = 2 * time.Second

	// lateFor is how long a flow is judged after its deadline. Events from before it may still be waiting, but if they
	// arrive faster than they are judged, this would never end.
	lateFor = 5 * time.Second

	// keptPayload is the largest payload that is kept in memory while the flows of a round are judged.
	keptPayload = 64 << 10

	readAtOnce  = 200
	purgeEvery  = 10 * time.Minute
	purgeAtOnce = 500
)

// Run judges flows until ctx ends, and then hands them to other nodes.
func (s *Service) Run(ctx context.Context) error {
	begun := s.db.Listen(store.TopicFlows)
	defer begun.Close()
	woken := make(chan struct{}, 1)
	wake := func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
	look, renew, purge := time.NewTicker(lookEvery), time.NewTicker(s.renewEvery), time.NewTicker(purgeEvery)
	defer look.Stop()
	defer renew.Stop()
	defer purge.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	defer s.release()
	for {
		var begins, looks, renews, purges bool
		select {
		case <-begun.C:
			begins = true
		case <-look.C:
			looks = true
		case <-renew.C:
			renews = true
		case <-purge.C:
			purges = true
		case <-woken:
		case <-due.C:
		case <-ctx.Done():
			return nil
		}
		// A round may be long. Afterwards, handle everything that is due, not only what select happened to choose.
		if renews || came(renew.C) {
			s.tell(s.renew(ctx))
		}
		looks = looks || came(look.C)
		if looks || begins || came(begun.C) {
			s.tell(s.claim(ctx, wake))
		}
		if looks {
			s.tell(s.look(ctx))
		}
		if purges || came(purge.C) {
			s.tell(s.purge(ctx))
		}
		next, err := s.round(ctx)
		s.tell(err)
		due.Reset(next)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// came receives from a channel without waiting, and reports whether there was something.
func came[T any](c <-chan T) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// tell logs an error; the work is retried.
func (s *Service) tell(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.Warn("flows could not be judged; this is tried again", "error", err)
	}
}

// look finds events whose announcements were lost, with one query for all flows.
func (s *Service) look(ctx context.Context) error {
	all := s.all()
	if len(all) == 0 {
		s.seen = -1
		return nil
	}
	var endpoints []int64
	first := s.seen < 0 // the query below does not cover what came since the flows were claimed
	err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		endpoints, s.seen, err = v.EndpointsSince(s.seen)
		return err
	})
	for _, h := range all {
		if first || slices.ContainsFunc(endpointsOf(&h.Flow), func(num int64) bool { return slices.Contains(endpoints, num) }) {
			h.dirty.Store(true)
		}
	}
	return err
}

// round judges the flows that have new events or a deadline, and returns when the next is due.
func (s *Service) round(ctx context.Context) (next time.Duration, err error) {
	next = time.Hour
	batches := map[batchKey]*batch{}
	all := s.all()
	lines, wanted := make([]fair.Line, len(all)), make([]bool, len(all))
	for i, h := range all {
		lines[i] = fair.Line{Tenant: strconv.FormatInt(h.AccountID, 10), Num: h.Num}
		// Reset before any event is read: the batches may have been read before a later announcement.
		wanted[i] = h.dirty.Swap(false)
	}
	until := time.Now().Add(roundFor)
	order := s.turns.Order(lines)
	for turn, i := range order {
		h := all[i]
		if ctx.Err() != nil || time.Now().After(until) {
			for _, i := range order[turn:] {
				if wanted[i] {
					all[i].dirty.Store(true)
				}
			}
			return 0, err
		}
		now := s.now()
		due := h.due()
		if wanted[i] || !now.Before(due) {
			s.turns.Took(lines[i])
			e := s.judge(ctx, h, batches)
			if e != nil {
				h.dirty.Store(true)
				err = errors.Join(err, e)
				next = min(next, time.Second)
				continue
			}
		}
		if h.dirty.Load() {
			next = 0
		}
		if due := h.due(); !due.IsZero() {
			next = min(next, max(due.Sub(s.now())+time.Millisecond, 0))
		}
	}
	return next, err
}

// batchKey identifies a batch: flows that watch the same endpoint from the same cursor in the same way share it.
type batchKey struct {
	endpoint, after int64
	acted           bool // only up to the first event whose actions have not run yet
}

// batch is what was read from one endpoint. It is complete as of at.
type batch struct {
	at time.Time
	store.FlowEvents
}

// judge applies the next events to a flow, and then its deadlines.
func (s *Service) judge(ctx context.Context, h *held, batches map[batchKey]*batch) error {
	before := h.Flow
	before.Progress.Steps = clone(h.Progress.Steps)
	due, began := h.machine.due(), time.Now()
	more, asOf, err := s.goOn(ctx, h, batches)
	switch {
	case asOf.Before(due):
		h.late = 0
	case err == nil: // an error does not count: the storage may be away for longer than lateFor, or stand still
		h.late += min(time.Since(began), turnFor)
	}
	switch {
	case err != nil:
	case !more:
		h.machine.tick(asOf)
	case h.late >= s.lateFor:
		h.machine.giveUp(asOf)
	}
	if err == nil && h.machine.shown {
		h.Version++
		err = s.save(ctx, h)
	}
	if err != nil { // start over from what is stored
		h.Flow = before
		h.machine.shown = false
		return err
	}
	h.machine.shown = false
	if more {
		h.dirty.Store(true)
	}
	if h.State.Final() {
		s.drop(h)
	}
	return nil
}

// clone copies progress deeply enough that a machine does not change the copy.
func clone(steps []hookglass.FlowStepProgress) []hookglass.FlowStepProgress {
	all := slices.Clone(steps)
	for i := range all {
		all[i].Matched = slices.Clone(all[i].Matched)
	}
	return all
}

// goOn applies the next events to a flow for a while. more reports whether there may be more. Unless there are,
// everything captured before asOf has been applied.
func (s *Service) goOn(ctx context.Context, h *held, batches map[batchKey]*batch) (more bool, asOf time.Time, err error) {
	r, err := s.read(ctx, h, batches)
	if err != nil {
		return r.more, r.asOf, err
	}
	until := time.Now().Add(turnFor)
	for _, e := range r.events {
		if e.Seq > r.upTo || h.State.Final() {
			break
		}
		if e.ReceivedAt.Before(h.StartedAt) {
			continue // with since, the cursor may start before it
		}
		if ctx.Err() != nil {
			return r.more, r.asOf, ctx.Err()
		}
		h.machine.tick(e.ReceivedAt) // apply earlier deadlines first
		if err := s.take(h, e, func() error { return s.load(ctx, e) }); err != nil {
			return r.more, r.asOf, err
		}
		if e.Size > keptPayload {
			e.Payload = nil // other flows load it again: not all of it fits into memory at once
		}
		if time.Now().After(until) {
			r.more, r.upTo = r.more || e.Seq < r.upTo, e.Seq
		}
	}
	h.Cursor = max(h.Cursor, r.upTo)
	return r.more, r.asOf, nil
}

// reading is what was read for a flow from all its endpoints.
type reading struct {
	events []*hookglass.Event // by number
	upTo   int64              // they are complete up to here; -1: there is no endpoint
	asOf   time.Time          // what was captured before is among them
	more   bool               // there may be others
}

// read reads the next events of a flow. asOf may lie back, because a batch may have been read earlier for another flow.
func (s *Service) read(ctx context.Context, h *held, batches map[batchKey]*batch) (r reading, err error) {
	began := s.now() // taken before the view's snapshot
	r = reading{upTo: -1, asOf: began}
	h.again = time.Time{}
	err = s.db.View(ctx, hookglass.System, func(v *store.View) error {
		for _, num := range endpointsOf(&h.Flow) {
			b, err := batchOf(v, batches, batchKey{num, h.Cursor, h.machine.acted(num)}, began)
			if err != nil {
				return err
			}
			if b.Gone {
				if h.machine.fail(num, s.now(), "Its endpoint was deleted."); h.State.Final() {
					return nil
				}
				continue // its steps have passed
			}
			if !b.Awaits.IsZero() {
				h.again = began.Add(actsEvery)
			}
			r.add(b)
		}
		return nil
	})
	slices.SortFunc(r.events, func(a, b *hookglass.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return r, err
}

// batchOf returns the batch of a key, which is read unless another flow had it read.
func batchOf(v *store.View, batches map[batchKey]*batch, key batchKey, now time.Time) (*batch, error) {
	if b := batches[key]; b != nil {
		return b, nil
	}
	read, err := v.FlowEvents(key.endpoint, key.after, readAtOnce, key.acted)
	if err != nil {
		return nil, err
	}
	b := &batch{at: now, FlowEvents: read}
	if !b.Awaits.IsZero() && b.Awaits.Before(now) {
		b.at = b.Awaits
	}
	batches[key] = b
	return b, nil
}

func (r *reading) add(b *batch) {
	if b.at.Before(r.asOf) {
		r.asOf = b.at
	}
	if r.upTo < 0 || b.UpTo < r.upTo {
		r.upTo = b.UpTo
	}
	r.more = r.more || len(b.Events) == readAtOnce
	r.events = append(r.events, b.Events...)
}

// load loads the payload of an event.
func (s *Service) load(ctx context.Context, e *hookglass.Event) error {
	err := s.db.Glance(ctx, hookglass.System, func(v *store.View) error { return v.LoadPayload(e) })
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return errGone
	}
	return err
}

// take applies an event to a flow. A panic fails that flow, and neither the node nor other flows.
func (s *Service) take(h *held, e *hookglass.Event, load func() error) error {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("a flow failed at an event that could not be judged", "flow", h.ID, "event", e.ID, "error", fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
			h.machine.fail(e.EndpointNum, e.ReceivedAt, fmt.Sprintf("%s could not be judged.", e.ID))
		}
	}()
	return h.machine.take(e, load)
}

func (s *Service) purge(ctx context.Context) error {
	return s.db.UpdateInPieces(ctx, func(tx *store.Tx) (more bool, err error) {
		return tx.PurgeFlows(s.now().Add(-hookglass.FlowKept), purgeAtOnce)
	})
}
