package outbound

import (
	"context"
	"slices"
	"sync"
)

// turns bounds how many requests are in flight, in all and per key. Waiters are served in order of arrival within a
// line of a key, and in rotation between lines and between keys, so that a tenant whose targets never answer delays
// only itself.
//
// A key may take another turn while it holds fewer than are free, and a line of a key, such as an endpoint of a tenant,
// while it holds fewer than the key has left, as in package fair. So those that never let go leave some to the others.
// Line 0 stands for no line: it may take all that the key has.
type turns struct {
	total, perKey int

	mu    sync.Mutex
	taken int
	keys  map[string]*queue
	ring  []*queue // those with waiters, the next to be served first
}

// queue holds the turns and waiters of one key, and exists while there are any.
type queue struct {
	key   string
	taken int
	lines map[int64]*file
	ring  []*file // those with waiters, the next to be served first
}

// file holds the turns and waiters of one line of a key, and exists while there are any.
type file struct {
	line    int64
	taken   int
	waiting []chan struct{} // each closed when its turn is granted
}

func newTurns(total, perKey int) *turns {
	return &turns{total: total, perKey: perKey, keys: map[string]*queue{}}
}

// take waits for a turn until ctx is done. The caller returns it with give.
func (t *turns) take(ctx context.Context, key string, line int64) error {
	t.mu.Lock()
	q := t.keys[key]
	if q == nil {
		q = &queue{key: key, lines: map[int64]*file{}}
		t.keys[key] = q
	}
	f := q.lines[line]
	if f == nil {
		f = &file{line: line}
		q.lines[line] = f
	}
	if len(f.waiting) == 0 && t.free(q, f) {
		t.grant(q, f)
		t.mu.Unlock()
		return nil
	}
	granted := make(chan struct{})
	if f.waiting = append(f.waiting, granted); len(f.waiting) == 1 {
		if q.ring = append(q.ring, f); len(q.ring) == 1 {
			t.ring = append(t.ring, q)
		}
	}
	t.mu.Unlock()

	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-granted: // at the same moment: pass the turn on
		t.release(q, f)
	default:
		if f.waiting = remove(f.waiting, granted); len(f.waiting) == 0 {
			if q.ring = remove(q.ring, f); len(q.ring) == 0 {
				t.ring = remove(t.ring, q)
			}
		}
		t.forget(q, f)
	}
	return ctx.Err()
}

// give returns a turn.
func (t *turns) give(key string, line int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.keys[key]
	t.release(q, q.lines[line])
}

// free reports whether the line may take a turn.
func (t *turns) free(q *queue, f *file) bool {
	free, left := t.total-t.taken, t.perKey-q.taken
	return q.taken < free && left > 0 && (f.line == 0 || f.taken < left)
}

func (t *turns) grant(q *queue, f *file) {
	t.taken++
	q.taken++
	f.taken++
}

func (t *turns) release(q *queue, f *file) {
	t.taken--
	q.taken--
	f.taken--
	t.serve()
	t.forget(q, f)
}

// serve grants free turns to waiters.
func (t *turns) serve() {
	for i := 0; i < len(t.ring) && t.taken < t.total; {
		q := t.ring[i]
		f := t.next(q)
		if f == nil {
			i++
			continue
		}
		close(f.waiting[0])
		f.waiting = f.waiting[1:]
		t.grant(q, f)
		if q.ring = remove(q.ring, f); len(f.waiting) > 0 {
			q.ring = append(q.ring, f)
		}
		if t.ring = slices.Delete(t.ring, i, i+1); len(q.ring) > 0 {
			t.ring = append(t.ring, q)
		}
	}
}

// next returns the line of a key to serve next, or nil if no waiting line may take a turn.
func (t *turns) next(q *queue) *file {
	for _, f := range q.ring {
		if t.free(q, f) {
			return f
		}
	}
	return nil
}

func (t *turns) forget(q *queue, f *file) {
	if f.taken == 0 && len(f.waiting) == 0 {
		delete(q.lines, f.line)
	}
	if len(q.lines) == 0 {
		delete(t.keys, q.key)
	}
}

func remove[T comparable](list []T, x T) []T {
	if i := slices.Index(list, x); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
