package delivery

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// Deliveries of an event that this node captures begin at once, without a look into the table: the capture reserves a
// place before it stores the event, and the deliveries are leased to this node from the start (see [store.Taker]).

// forwardDesk is where captures hand deliveries over.
type forwardDesk struct{ f *Forwarder }

// Offer reserves a place for the endpoint as a whole, because its targets are not known here.
func (d forwardDesk) Offer(account int64, ev *hookglass.Event) (until time.Time) {
	f := d.f
	if ev.Size > fair.SmallBody {
		return until
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.direct.Offer(f.shares, tenantOf(account, ev.EndpointNum), -ev.EndpointNum, ev.EndpointNum) {
		return until
	}
	return f.Now().Add(forwardLease)
}

// Take passes the endpoint's place on to its targets. A target that gets no place goes back to the table.
func (d forwardDesk) Take(account int64, ev *hookglass.Event, handed []store.HandedForward) {
	f := d.f
	f.mu.Lock()
	defer f.mu.Unlock()
	sent := 0
	defer func() { f.direct.Kept(ev.EndpointNum, sent) }()
	f.shares.Give(tenantOf(account, ev.EndpointNum), -ev.EndpointNum)
	for _, h := range handed {
		if h.Claim == 0 {
			f.comesInLine(h.Queue.TargetID)
			continue
		}
		s := &settled{queue: h.Queue, ClaimedForward: h.ClaimedForward, event: ev, direct: true}
		if s.placed = f.shares.Take(tenant(&h.Queue), h.TargetID); !s.placed {
			f.direct.Behind(ev.EndpointNum)
		}
		sent++
		f.handed.Put(s)
	}
	if sent == 0 && f.starved {
		f.lookAgain()
	}
}

// beginHanded starts a delivery that was handed over.
func (f *Forwarder) beginHanded(sends context.Context, s *settled) {
	switch {
	case !s.placed:
		f.later(s, 0)
		f.hand(s)
	case s.queue.AccountID != 0 && s.queue.Entitlements.MayForward() != nil:
		s.State, s.FinishedAt = hookglass.ForwardSkipped, f.Now()
		f.hand(s)
	default:
		f.begin(sends, s)
	}
}
