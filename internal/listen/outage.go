package listen

import (
	"context"
	"maps"
	"slices"
	"sync"

	"hookglass/api"
)

// outcome counts what became of events that were caught up on.
type outcome struct {
	attempted, succeeded, failed, shown, left int

	cut bool // there are more: it ended before each was settled, or was taken at all
}

func (o *outcome) add(more outcome) {
	o.attempted += more.attempted
	o.succeeded += more.succeeded
	o.failed += more.failed
	o.shown += more.shown
	o.left += more.left
	o.cut = o.cut || more.cut
}

// missed is how many events there were.
func (o outcome) missed() int { return o.attempted + o.shown + o.left }

// settled waits for an event and counts it. ok is false if ctx ended before: the last of as many events as are wanted
// ends it, and that one is settled.
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

// outage is a time without a connection until all of it is caught up on, which may take more than one connection. An
// event counts once, however often the server gives it, and also where its delivery ended after the connection that
// had brought it.
type outage struct {
	mu    sync.Mutex
	gaps  map[string]api.Gap // that ended with it, as they were seen last
	taken map[string]*sight  // events, by id
	left  map[string]int     // events that are not wanted, by gap
}

func newOutage() *outage {
	return &outage{gaps: make(map[string]api.Gap), taken: make(map[string]*sight), left: make(map[string]int)}
}

// found notes the gaps that the server tells; those that are fresh belong to this outage.
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

// take notes an event that is caught up on. There may be no outage.
func (o *outage) take(id string, s *sight) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken[id] = s
}

// leave notes how many events of a gap are not wanted. Those of another gap were left before.
func (o *outage) leave(g api.Gap, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, mine := o.gaps[g.ID]; mine {
		o.left[g.ID] = max(o.left[g.ID], n)
	}
}

// ended are its gaps.
func (o *outage) ended() []api.Gap {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.gaps))
}

// total is what became of its events, once each that was taken is settled or ctx ends. Where nothing is caught up on,
// all of them are left.
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
