package fair

import (
	"context"
	"sync"
	"time"

	"hookglass/internal/memory"
)

// SmallBody is the size up to which a body is not counted.
const SmallBody = 64 << 10

// Bodies divides bytes of memory among tenants as Places divides places, for large bodies that are held for some time.
// A body larger than the total is admitted alone. Bodies up to SmallBody are not counted. Safe for concurrent use.
type Bodies struct {
	total int64
	after time.Duration // the minimum time before room is recalled
	pace  int64         // bytes per second; each second's worth adds a second to after

	mu      sync.Mutex
	taken   int64
	tenants map[string]int64
	freed   chan struct{} // closed when bytes are returned
	lent    map[*loan]struct{}
	calmed  time.Time // nothing is recalled before this
}

// loan is room that can be recalled from when it is due.
type loan struct {
	due    time.Time
	recall func() bool
}

// NewBodies returns room for total bytes, or less where memory is short.
func NewBodies(total int64) *Bodies {
	return &Bodies{total: memory.Room(total), after: recallAfter, pace: recallPace, tenants: make(map[string]int64), freed: make(chan struct{}), lent: make(map[*loan]struct{})}
}

// Pace sets how long recallable room is lent: after, plus a second per pace bytes.
func (b *Bodies) Pace(after time.Duration, pace int64) *Bodies {
	b.after, b.pace = after, pace
	return b
}

const (
	// recallAfter and recallPace are the default pace, which a reader at about 2 Mbit/s keeps.
	recallAfter = 20 * time.Second
	recallPace  = 256 << 10
	// recallEvery is how long recalled room is waited for before more is recalled.
	recallEvery = 100 * time.Millisecond
)

type recallKey struct{}

// Recallable returns a context in which Await lends room that is recalled if its holder is slow and others wait. recall
// must not block; it makes the holder return the room soon, or reports false if that would help nobody now.
func Recallable(ctx context.Context, recall func() bool) context.Context {
	return context.WithValue(ctx, recallKey{}, recall)
}

// Take takes room for a tenant's body and reports whether there was any. Call give once.
func (b *Bodies) Take(of string, n int64) (give func(), ok bool) {
	give, _, ok = b.take(of, n, nil)
	return give, ok
}

// Await is Take that waits for room, up to most or until ctx is done. Waiting may recall room from others; see
// [Recallable].
func (b *Bodies) Await(ctx context.Context, of string, n int64, most time.Duration) (give func(), ok bool) {
	over := time.NewTimer(most)
	defer over.Stop()
	recall, _ := ctx.Value(recallKey{}).(func() bool)
	for {
		give, freed, ok := b.take(of, n, recall)
		if ok {
			return give, true
		}
		select {
		case <-freed:
		case <-time.After(b.recall()):
		case <-over.C:
			return nil, false
		case <-ctx.Done():
			return nil, false
		}
	}
}

// recall recalls the loan that is most overdue, and returns how long to wait before trying again.
func (b *Bodies) recall() time.Duration {
	b.mu.Lock()
	var first *loan
	for l := range b.lent {
		if first == nil || l.due.Before(first.due) {
			first = l
		}
	}
	now := time.Now()
	if first == nil {
		b.mu.Unlock()
		return b.after
	}
	if wait := max(first.due.Sub(now), b.calmed.Sub(now)); wait > 0 {
		b.mu.Unlock()
		return wait
	}
	first.due, b.calmed = now.Add(b.after), now.Add(recallEvery)
	b.mu.Unlock()
	if !first.recall() {
		b.mu.Lock()
		b.calmed = now
		b.mu.Unlock()
	}
	return recallEvery
}

func (b *Bodies) take(of string, n int64, recall func() bool) (give func(), freed <-chan struct{}, ok bool) {
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
	var l *loan
	if recall != nil {
		l = &loan{time.Now().Add(b.after + time.Duration(n)*time.Second/time.Duration(b.pace)), recall}
		b.lent[l] = struct{}{}
	}
	return func() { b.give(of, n, l) }, nil, true
}

func (b *Bodies) give(of string, n int64, l *loan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.lent, l)
	b.taken -= n
	if b.tenants[of] -= n; b.tenants[of] == 0 {
		delete(b.tenants, of)
	}
	close(b.freed)
	b.freed = make(chan struct{})
}
