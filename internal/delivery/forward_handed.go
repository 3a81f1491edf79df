package delivery

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// A delivery of an event that this node captured begins at once, without a look into the table: the capture asks for a place before it stores
// the event, and then the deliveries are the node's own from the start (see [store.Taker]).

// handedBehind is how many deliveries of an endpoint are handed over at a time while others of it wait in the table: the rest of the places is theirs.
const handedBehind = 16

// forwardDesk is where captures hand deliveries over.
type forwardDesk struct{ f *Forwarder }

// Offer takes a place for the endpoint, because its targets are not known here.
func (d forwardDesk) Offer(account int64, ev *hookglass.Event) (lease time.Duration) {
	f := d.f
	if ev.Size > smallBody {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.behind[ev.EndpointNum] && f.direct[ev.EndpointNum] >= handedBehind || !f.shares.Take(tenantOf(account, ev.EndpointNum), -ev.EndpointNum) {
		return 0
	}
	f.promised.Add(1)
	f.direct[ev.EndpointNum]++
	return leaseSlack
}

// Take gives the endpoint's place to its targets. One that gets none goes back to the table.
func (d forwardDesk) Take(account int64, ev *hookglass.Event, handed []store.HandedForward) {
	f := d.f
	defer f.promised.Done()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shares.Give(tenantOf(account, ev.EndpointNum), -ev.EndpointNum)
	f.countDirect(ev.EndpointNum, -1)
	for _, h := range handed {
		s := &settled{queue: h.Queue, ClaimedForward: h.ClaimedForward, event: ev, placed: f.shares.Take(tenant(&h.Queue), h.TargetID), direct: true}
		if f.direct[ev.EndpointNum]++; !s.placed {
			f.behind[ev.EndpointNum] = true
		}
		f.handed.Put(s)
	}
	if len(handed) == 0 && f.starved {
		f.lookAgain()
	}
}

// countDirect counts deliveries of an endpoint that were handed over and have not ended.
func (f *Forwarder) countDirect(endpointNum int64, n int) {
	if f.direct[endpointNum] += n; f.direct[endpointNum] == 0 {
		delete(f.direct, endpointNum)
	}
}

// beginHanded begins what is handed over until stop is closed and nothing of it is left.
func (f *Forwarder) beginHanded(sends context.Context, stop <-chan struct{}) {
	for open := true; open; {
		select {
		case <-f.handed.Came:
		case <-stop:
			open = false
		}
		for _, s := range f.handed.Take() {
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
	}
}
