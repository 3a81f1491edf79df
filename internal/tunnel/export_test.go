package tunnel

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// SetLease makes a node's lease short enough to be waited for. It must be called before Run.
func (s *Service) SetLease(d time.Duration) { s.lease = d }

// SetTicketLife makes tickets of another life.
func (s *Service) SetTicketLife(d time.Duration) { s.life = d }

// SetBodies sets what room there is for large events. It must be called before a client comes.
func (s *Service) SetBodies(b *fair.Bodies) { s.bodies = b }

// Share lets two nodes use one embedded database, which no two programs can. It must be called before Run.
func (s *Service) Share() { s.alone = false }

// GapRest is how long a gap is remembered beyond its events.
const GapRest = gapRest

// Received is how far the first subscription of a session is known to have received events.
func (x *Session) Received() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.subs[0].received
}

// Local is where a request goes below the address that a client named.
var Local = local

// Waits are how long a new session, whose client answers at once, holds back the question for each of n events that go
// out one behind the other.
func Waits(n int) (waits []time.Duration) {
	now := time.Now()
	f := flow{pinged: now, beat: now}
	for range n {
		f.sent++
		wait := max(f.due().Sub(now), 0)
		now = now.Add(wait)
		f.ask(now)
		f.pinging, f.confirmed = false, f.sent
		waits = append(waits, wait)
	}
	return waits
}

// OfferOn offers a command to the session behind those that it was offered to, and returns all of them.
func (s *Service) OfferOn(ctx context.Context, num int64, offered []int64) ([]int64, error) {
	return s.offerOn(ctx, hookglass.TunnelCommand{Num: num}, offered)
}

// Node is the id of the node.
func (s *Service) Node() string { return s.node }

// Later leaves the end of a session to the keeper, as after an error of the storage.
func (s *Service) Later(x *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, store.TunnelEnd{Session: x.record.Num})
}

// Near reports whether the client was heard of just now.
func (x *Session) Near() bool { return x.near() }
