package action

import (
	"strconv"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/fair"
)

const (
	// largeBytes bounds the bodies over smallBody that runs hold at a time: a run holds its event for as long as its
	// targets take to answer, and there are hundreds of runs.
	largeBytes = 64 << 20
	// smallBody is a body that counts for nothing.
	smallBody = 64 << 10
	// roomAgain is how soon a run is due again for whose event there was no room.
	roomAgain = time.Second
)

// large divides largeBytes among tenants.
type large struct {
	mu   sync.Mutex
	room *fair.Room
}

// take takes room for an event of so many bytes at an endpoint. It answers rate_limited where there is none.
func (l *large) take(e hookglass.Endpoint, size int64) (give func(), err error) {
	if size <= smallBody {
		return func() {}, nil
	}
	of := "account " + strconv.FormatInt(e.AccountID, 10)
	if e.AccountID == 0 {
		of = "endpoint " + strconv.FormatInt(e.Num, 10)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.room.Take(of, size) {
		return nil, later(roomAgain)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.room.Give(of, size)
	}, nil
}
