package fair

import "sync"

// Inbox is what others hand to one goroutine without waiting for it. It has no bound of its own: who hands things over has places, which have one.
type Inbox[T any] struct {
	Came chan struct{} // something may be there

	mu    sync.Mutex
	items []T
}

// NewInbox returns an empty inbox.
func NewInbox[T any]() *Inbox[T] { return &Inbox[T]{Came: make(chan struct{}, 1)} }

// Put adds items.
func (b *Inbox[T]) Put(items ...T) {
	if len(items) == 0 {
		return
	}
	b.mu.Lock()
	b.items = append(b.items, items...)
	b.mu.Unlock()
	select {
	case b.Came <- struct{}{}:
	default:
	}
}

// Take takes all that is there, in the order in which it came.
func (b *Inbox[T]) Take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = nil
	return items
}
