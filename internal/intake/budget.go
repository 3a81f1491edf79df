package intake

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
)

// FreeBytes is the size up to which bodies use the spare part of the budget, so that ordinary webhooks do not wait
// unless thousands are half-sent.
const FreeBytes = 64 << 10

// errBusy is the error if there is no memory for a body in time.
var errBusy = &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "Too many large bodies are being received.", RetryAfter: 5 * time.Second}

// Budget shares memory among large bodies, first come, first served.
//
// A body takes its share step by step as its bytes arrive, so that an announced but unsent body holds next to nothing.
// Alone, this could deadlock: all bodies hold some memory and wait for more. So the first one that waits may exceed the
// budget, one body at a time. When it ends, it releases everything it holds to the others, and the next one may. The
// budget is therefore exceeded by one body at most.
type Budget struct {
	spare atomic.Int64 // for bodies of at most FreeBytes

	mu    sync.Mutex
	free  int64
	over  *Lease // the one that may exceed the budget
	queue []*claim
}

// Lease is what one body holds. It is for one goroutine at a time.
type Lease struct {
	budget *Budget
	spared int64 // taken from spare
	held   int64 // taken from free
	size   int64 // the total, including what exceeds the budget
}

type claim struct {
	lease *Lease
	n     int64
	done  chan error // buffered
}

// NewBudget returns a budget of at most n bytes, including one body of the given size that may exceed its share.
func NewBudget(n, body int64) *Budget {
	b := &Budget{free: max(n-body-n/4, 0)}
	b.spare.Store(n / 4)
	return b
}

// NewTurns returns a budget of n bytes, and one body of any size beside them, for turns with something but memory.
func NewTurns(n int64) *Budget { return &Budget{free: n} }

// Lease returns a lease that holds nothing yet.
func (b *Budget) Lease() Lease { return Lease{budget: b} }

// Grow raises what the lease holds to size, waiting up to wait. It answers unavailable.
func (l *Lease) Grow(size int64, wait time.Duration) error {
	n := size - l.size
	if n <= 0 {
		return nil
	}
	if size <= FreeBytes {
		if l.budget.spare.Add(-n) >= 0 {
			l.spared += n
			l.size += n
			return nil
		}
		l.budget.spare.Add(n)
	}
	c := &claim{l, n, make(chan error, 1)}
	l.budget.ask(c)
	select {
	case err := <-c.done:
		return err
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case err := <-c.done:
		return err
	case <-timer.C:
		l.budget.withdraw(c)
		return <-c.done
	}
}

// Release returns everything. The lease can be used again.
func (l *Lease) Release() {
	if l.size == 0 {
		return
	}
	b := l.budget
	b.spare.Add(l.spared)
	l.spared, l.size = 0, l.size-l.spared
	if l.size == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += l.held
	if b.over == l {
		b.over = nil
	}
	l.held, l.size = 0, 0
	b.advance()
}

func (b *Budget) ask(c *claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over == c.lease {
		b.grantOver(c) // not queued: those before it could be waiting for it
		return
	}
	b.queue = append(b.queue, c)
	b.advance()
}

// advance grants claims in order while the first one can be granted.
func (b *Budget) advance() {
	for len(b.queue) > 0 {
		c := b.queue[0]
		switch {
		case c.n <= b.free:
			b.free -= c.n
			c.lease.held += c.n
			c.lease.size += c.n
			c.done <- nil
		case b.over == nil:
			b.grantOver(c)
		default:
			return
		}
		b.queue = slices.Delete(b.queue, 0, 1)
	}
}

func (b *Budget) grantOver(c *claim) {
	b.over = c.lease
	c.lease.size += c.n
	c.done <- nil
}

// withdraw refuses a claim unless it was granted meanwhile.
func (b *Budget) withdraw(c *claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queue, c); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
		c.done <- errBusy
		b.advance()
	}
}

// RefuseWaiting refuses all waiting claims. It is called when the storage has stopped answering: those that wait would
// be refused anyway, only later.
func (b *Budget) RefuseWaiting() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.queue {
		c.done <- errBusy
	}
	b.queue = nil
}
