package mcp

import "net/http"

// Waiting is how many wait.
func Waiting(h http.Handler) int {
	a := h.(*service).arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, g := range a.at {
		n += len(g.waiters)
	}
	return n
}

// Decode reads arguments as a tool with arguments of many kinds does.
func Decode(text []byte) error { return decode(text, new(newAction)) }

// Visible and Fence are how captured text is written.
var (
	Visible = visible
	Fence   = fence
)
