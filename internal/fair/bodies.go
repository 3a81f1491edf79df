package fair

import (
	"context"
	"sync"
	"time"
)

// SmallBody is a body that counts for nothing.
const SmallBody = 64 << 10

// Bodies divides bytes as Places does places, for large bodies that are in memory while something takes its time. What
// is larger than all of it goes alone; bodies of up to SmallBody take none. Safe for concurrent use.
type Bodies struct {
	total int64

	mu      sync.Mutex
	taken   int64
	tenants map[string]int64
	freed   chan struct{} // closed when bytes are given back
}

// NewBodies returns room for so many bytes.
func NewBodies(total int64) *Bodies {
	return &Bodies{total: total, tenants: make(map[string]int64), freed: make(chan struct{})}
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
	if b.taken > 0 && b.tenants[of]+n > b.total-b.taken {
		return nil, b.freed, false
	}
	b.taken += n
	b.tenants[of] += n
	return func() { b.give(of, n) }, nil, true
}

func (b *Bodies) give(of string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= n
	if b.tenants[of] -= n; b.tenants[of] == 0 {
		delete(b.tenants, of)
	}
	close(b.freed)
	b.freed = make(chan struct{})
}
