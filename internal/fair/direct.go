package fair

import "sync"

// beside bounds the work of one key that is handed over while more of it waits in the queue, which needs the other
// places.
const beside = 16

// Direct counts work that is handed directly to workers, by a key such as its endpoint, instead of being found in a
// queue. New work neither waits for a backlog nor holds it up. Except for Await it is not safe for concurrent use: its
// owner locks.
type Direct struct {
	promised sync.WaitGroup
	behind   map[int64]bool
	under    map[int64]int
}

// NewDirect returns a Direct that knows of no backlog.
func NewDirect() *Direct { return &Direct{behind: make(map[int64]bool), under: make(map[int64]int)} }

// Offer takes a place for work that will be handed over, and reports whether there is one. Kept ends the offer, and
// Ended the work.
func (d *Direct) Offer(p *Places, tenant string, line, key int64) bool {
	if d.behind[key] && d.under[key] >= beside || !p.Take(tenant, line) {
		return false
	}
	d.promised.Add(1)
	d.under[key]++
	return true
}

// Kept records that an offer resulted in n pieces of work.
func (d *Direct) Kept(key int64, n int) {
	d.count(key, n-1)
	d.promised.Done()
}

// Ended records that a piece of handed over work has ended.
func (d *Direct) Ended(key int64) { d.count(key, -1) }

func (d *Direct) count(key int64, n int) {
	if d.under[key] += n; d.under[key] == 0 {
		delete(d.under, key)
	}
}

// Behind records that work of a key waits in the queue; IsBehind reports it; Clear resets it for all keys.
func (d *Direct) Behind(key int64)        { d.behind[key] = true }
func (d *Direct) IsBehind(key int64) bool { return d.behind[key] }
func (d *Direct) Clear()                  { clear(d.behind) }

// Inbox passes items to one goroutine without blocking the senders. It is unbounded, but what is sent holds places,
// which are bounded.
type Inbox[T any] struct {
	came  chan struct{} // signals that there may be items
	mu    sync.Mutex
	items []T
}

// NewInbox returns an empty inbox.
func NewInbox[T any]() *Inbox[T] { return &Inbox[T]{came: make(chan struct{}, 1)} }

// Put adds an item.
func (b *Inbox[T]) Put(item T) {
	b.mu.Lock()
	b.items = append(b.items, item)
	b.mu.Unlock()
	select {
	case b.came <- struct{}{}:
	default:
	}
}

// Serve calls fn for each item, in order, until stop is closed and no items are left.
func (b *Inbox[T]) Serve(stop <-chan struct{}, fn func(T)) {
	for open := true; open; {
		select {
		case <-b.came:
		case <-stop:
			open = false
		}
		b.mu.Lock()
		items := b.items
		b.items = nil
		b.mu.Unlock()
		for _, item := range items {
			fn(item)
		}
	}
}
