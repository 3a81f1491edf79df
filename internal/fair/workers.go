package fair

import "sync"

// Workers divides places among goroutines that take them themselves and hold them for as long as a target takes. Safe
// for concurrent use.
type Workers struct {
	mu     sync.Mutex
	places *Places
}

// NewWorkers returns places for total workers, of which one tenant gets at most perTenant.
func NewWorkers(total, perTenant int) *Workers {
	return &Workers{places: NewPlaces(total, perTenant)}
}

// Take takes a place for a line of a tenant and reports whether there was one. Call give once.
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
