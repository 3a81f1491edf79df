package tunnel

import (
	"time"

	"hookglass/internal/fair"
)

// SetLease makes a node's lease short enough to be waited for. It must be called before Run.
func (s *Service) SetLease(d time.Duration) { s.lease = d }

// SetTicketLife makes tickets of another life.
func (s *Service) SetTicketLife(d time.Duration) { s.life = d }

// SetBodies sets what room there is for large events. It must be called before a client comes.
func (s *Service) SetBodies(b *fair.Bodies) { s.bodies = b }

// Share lets two nodes use one embedded database, which no two programs can. It must be called before Run.
func (s *Service) Share() { s.alone = false }

// SettledBefore is since when a session must be back for a gap to be forgotten.
func (s *Service) SettledBefore(now time.Time) time.Time { return s.settledBefore(now) }

// Local is where a request goes below the address that a client named.
var Local = local
