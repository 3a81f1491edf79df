package outbound

import (
	"context"
	"sync"
)

// turns bounds how many requests are under way, in all and for one key. Who waits is served in the order of arrival
// within a key and in rotation between keys, so that a tenant whose targets never answer delays only itself.
type turns struct {
	total, perKey int

	mu    sync.Mutex
	taken int
	keys  map[string]*queue
	ring  []*queue // those with someone waiting, the next to be served first
}

// queue is what one key holds and waits for. It exists while it does either.
type queue struct {
	key     string
	taken   int
	waiting []*waiter
}

type waiter struct{ granted chan struct{} }

func newTurns(total, perKey int) *turns {
	return &turns{total: total, perKey: perKey, keys: map[string]*queue{}}
}

// take waits for a turn until ctx is done. Who took one gives it back.
func (t *turns) take(ctx context.Context, key string) error {
	t.mu.Lock()
	q := t.keys[key]
	if q == nil {
		q = &queue{key: key}
		t.keys[key] = q
	}
	if len(q.waiting) == 0 && q.taken < t.perKey && t.taken < t.total {
		q.taken++
		t.taken++
		t.mu.Unlock()
		return nil
	}
	w := &waiter{make(chan struct{})}
	if q.waiting = append(q.waiting, w); len(q.waiting) == 1 {
		t.ring = append(t.ring, q)
	}
	t.mu.Unlock()

	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.granted: // at the same moment; the turn is passed on
		t.release(q)
	default:
		q.waiting = remove(q.waiting, w)
		if len(q.waiting) == 0 {
			t.ring = remove(t.ring, q)
		}
		t.forget(q)
	}
	return ctx.Err()
}

// give returns a turn.
func (t *turns) give(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.release(t.keys[key])
}

func (t *turns) release(q *queue) {
	q.taken--
	t.taken--
	t.serve()
	t.forget(q)
}

// serve grants the turns that are free.
func (t *turns) serve() {
	for i := 0; i < len(t.ring) && t.taken < t.total; {
		q := t.ring[i]
		if q.taken >= t.perKey {
			i++
			continue
		}
		close(q.waiting[0].granted)
		q.waiting = q.waiting[1:]
		q.taken++
		t.taken++
		t.ring = append(t.ring[:i], t.ring[i+1:]...)
		if len(q.waiting) > 0 {
			t.ring = append(t.ring, q)
		}
	}
}

func (t *turns) forget(q *queue) {
	if q.taken == 0 && len(q.waiting) == 0 {
		delete(t.keys, q.key)
	}
}

func remove[T comparable](list []T, x T) []T {
	for i := range list {
		if list[i] == x {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}
