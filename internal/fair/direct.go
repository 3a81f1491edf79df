package fair

import "sync"

// beside is how much of a key's is handed over at a time while more of it waits: the rest of the places is for that.
const beside = 16

// Direct counts work that is handed to who does it, by a key such as its endpoint, where other work is looked for in a
// queue. What is new neither waits for a backlog nor holds it up. It is not safe for concurrent use, except for Await:
// its owner locks.
type Direct struct {
	promised sync.WaitGroup
	behind   map[int64]bool
	under    map[int64]int
}

// NewDirect returns one that knows of no backlog.
func NewDirect() *Direct { return &Direct{behind: make(map[int64]bool), under: make(map[int64]int)} }

// Offer takes a place for work that will be handed over, and reports whether it may be. Kept ends the offer, and Ended
// the work.
func (d *Direct) Offer(p *Places, tenant string, line, key int64) bool {
	if d.behind[key] && d.under[key] >= beside || !p.Take(tenant, line) {
		return false
	}
	d.promised.Add(1)
	d.under[key]++
	return true
}

// Kept says that so many pieces of work came of an offer.
func (d *Direct) Kept(key int64, n int) {
	d.count(key, n-1)
	d.promised.Done()
}

// Ended says that a piece of work that was handed over has ended.
func (d *Direct) Ended(key int64) { d.count(key, -1) }

func (d *Direct) count(key int64, n int) {
	if d.under[key] += n; d.under[key] == 0 {
		delete(d.under, key)
	}
}

// Behind says that work of a key waits in the queue, and IsBehind reports it. Clear forgets it of all.
func (d *Direct) Behind(key int64)        { d.behind[key] = true }
func (d *Direct) IsBehind(key int64) bool { return d.behind[key] }
func (d *Direct) Clear()                  { clear(d.behind) }

// Inbox is what others hand to one goroutine without waiting for it. It has no bound of its own: who hands things over
// has places, which have one.
type Inbox[T any] struct {
	came  chan struct{} // something may be there
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

// Serve calls fn for each item, in the order in which they came, until stop is closed and none is left.
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
