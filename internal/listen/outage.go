package listen

import (
	"context"
	"maps"
	"slices"
	"sync"

	"hookglass/api"
)

// outcome counts the results of events that were fetched after an outage.
type outcome struct {
	attempted, succeeded, failed, shown, left int

	cut bool // it ended early: some events were not settled, or not even accepted
}

func (o *outcome) add(more outcome) {
	o.attempted += more.attempted
	o.succeeded += more.succeeded
	o.failed += more.failed
	o.shown += more.shown
	o.left += more.left
	o.cut = o.cut || more.cut
}

// missed returns how many events there were.
func (o outcome) missed() int { return o.attempted + o.shown + o.left }

// settled waits for an event and counts it. ok is false if ctx ended before. An event that is already settled counts
// even then: it may be the one that ended ctx, as the last of ExitAfter.
func (o *outcome) settled(ctx context.Context, s *sight) (ok bool) {
	select {
	case <-s.done:
	default:
		select {
		case <-s.done:
		case <-ctx.Done():
			o.cut = true
			return false
		}
	}
	switch {
	case s.shown:
		o.shown++
		return true
	case s.ok:
		o.succeeded++
	default:
		o.failed++
	}
	o.attempted++
	return true
}

// outage is a time without a connection until all its events are caught up on, which may take several connections. Each
// event counts once, however often the server sends it, even if its delivery ends after the connection that brought it.
type outage struct {
	mu    sync.Mutex
	gaps  map[string]api.Gap // gaps that belong to it, as last seen
	taken map[string]*sight  // events, by id
	left  map[string]int     // unwanted events, by gap
}

func newOutage() *outage {
	return &outage{gaps: make(map[string]api.Gap), taken: make(map[string]*sight), left: make(map[string]int)}
}

// found records the server's gaps; the fresh ones belong to this outage.
func (o *outage) found(gaps, fresh []api.Gap) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, g := range fresh {
		o.gaps[g.ID] = g
	}
	for _, g := range gaps {
		if _, mine := o.gaps[g.ID]; mine {
			o.gaps[g.ID] = g
		}
	}
}

// take records an event that is being caught up on. There may be no outage. What was told of an earlier outage was not
// missed in this one, though the server goes on listing what failed or was only shown.
func (o *outage) take(id string, s *sight) {
	if o == nil || s.told.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken[id] = s
}

// leave records how many events of a gap are not wanted. Gaps of earlier outages do not count here.
func (o *outage) leave(g api.Gap, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, mine := o.gaps[g.ID]; mine {
		o.left[g.ID] = max(o.left[g.ID], n)
	}
}

// told records that its events were counted in what was said of it.
func (o *outage) told() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.taken {
		s.told.Store(true)
	}
}

// ended returns its gaps.
func (o *outage) ended() []api.Gap {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.gaps))
}

// total returns the outcome of its events once all accepted ones are settled or ctx ends. With nothing, none were
// caught up on, so all are left.
func (o *outage) total(ctx context.Context, nothing bool) (all outcome) {
	o.mu.Lock()
	taken := slices.Collect(maps.Values(o.taken))
	for id, g := range o.gaps {
		if all.left += o.left[id]; nothing {
			all.left += int(g.Counts.Pending)
		}
	}
	o.mu.Unlock()
	for _, s := range taken {
		if !all.settled(ctx, s) {
			break
		}
	}
	return all
}
