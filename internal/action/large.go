package action

import (
	"strconv"
	"time"

	"hookglass"
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
	give, ok := s.bodies.Take(tenantOf(e), size)
	if !ok {
		return nil, later(roomAgain)
	}
	return give, nil
}

// tenantOf is whose runs are bounded together.
func tenantOf(e hookglass.Endpoint) string {
	if e.AccountID == 0 {
		return "endpoint " + strconv.FormatInt(e.Num, 10)
	}
	return "account " + strconv.FormatInt(e.AccountID, 10)
}
