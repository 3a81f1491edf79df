package action

import (
	"time"

	"hookglass"
	"hookglass/internal/fair"
)

const (
	// largeBytes bounds the large bodies that runs hold at a time: a run holds its event for as long as its targets
	// take to answer, and there are hundreds of runs.
	largeBytes = 64 << 20
	// roomAgain is how soon a run is due again for whose event there was no room.
	roomAgain = time.Second
)

// hold takes room for an event of so many bytes at an endpoint. It answers rate_limited where there is none.
func (s *Service) hold(e hookglass.Endpoint, size int64) (give func(), err error) {
	give, ok := s.bodies.Take(fair.Tenant(e.AccountID, e.Num), size)
	if !ok {
		return nil, later(roomAgain)
	}
	return give, nil
}
