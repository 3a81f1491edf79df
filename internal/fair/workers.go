package fair

import "sync"

// Workers divides places among goroutines that take them by themselves, as workers do that stay with what they do for
// as long as a target takes. Safe for concurrent use.
type Workers struct {
	mu     sync.Mutex
	places *Places
}

// NewWorkers returns places for so many, of which one tenant has perTenant at most.
func NewWorkers(total, perTenant int) *Workers {
	return &Workers{places: NewPlaces(total, perTenant)}
}

// Take takes a place for a line of a tenant and reports whether there was one. give is to be called once.
func (w *Workers) Take(of string, line int64) (give func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.places.Take(of, line) {
		return nil, false
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.places.Give(of, line)
	}, true
}
