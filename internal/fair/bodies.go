package fair

import (
	"context"
	"sync"
	"time"
)

// SmallBody is a body that counts for nothing.
const SmallBody = 64 << 10

// Bodies is Room for bodies that are in memory while a target takes its time, safe for concurrent use. Bodies of up to
// SmallBody take none.
type Bodies struct {
	mu    sync.Mutex
	room  *Room
	freed chan struct{} // closed when room is given back
}

// NewBodies returns room for so many bytes.
func NewBodies(total int64) *Bodies {
	return &Bodies{room: NewRoom(total), freed: make(chan struct{})}
}

// Take takes room for a tenant's body and reports whether there was any. give is to be called once.
func (b *Bodies) Take(of string, n int64) (give func(), ok bool) {
	give, _, ok = b.take(of, n)
	return give, ok
}

// Await is Take that waits so long for room, or until ctx is done.
func (b *Bodies) Await(ctx context.Context, of string, n int64, most time.Duration) (give func(), ok bool) {
	over := time.NewTimer(most)
	defer over.Stop()
	for {
		give, freed, ok := b.take(of, n)
		if ok {
			return give, true
		}
		select {
		case <-freed:
		case <-over.C:
			return nil, false
		case <-ctx.Done():
			return nil, false
		}
	}
}

func (b *Bodies) take(of string, n int64) (give func(), freed <-chan struct{}, ok bool) {
	if n <= SmallBody {
		return func() {}, nil, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.room.Take(of, n) {
		return nil, b.freed, false
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.room.Give(of, n)
		close(b.freed)
		b.freed = make(chan struct{})
	}, nil, true
}
