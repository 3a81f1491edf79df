package listen

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"hookglass/client"
)

// sight is an event that was seen.
type sight struct {
	done  chan struct{} // closed when it is settled
	ok    bool          // it was delivered
	shown bool          // it was only shown, having no target
	told  atomic.Bool   // it was counted in what was said of an outage

	attempt string // whose report was left to the socket; "": the server has it, or there is none
}

// memory remembers what was seen last, such as events, by id. Unsettled entries are never dropped.
type memory struct {
	limit int
	order []string
	byID  map[string]*sight
}

// maxID bounds the ids that are remembered.
const maxID = 255

// nameable reports whether an id from the server is fit to be remembered.
func nameable(id string) bool { return id != "" && len(id) <= maxID }

func newMemory(limit int) *memory { return &memory{limit: limit, byID: make(map[string]*sight)} }

// note returns the entry of an event, and whether it is new.
func (m *memory) note(id string) (s *sight, fresh bool) {
	if s := m.byID[id]; s != nil {
		return s, false
	}
	s = &sight{done: make(chan struct{})}
	m.byID[id] = s
	m.order = append(m.order, id)
	for len(m.order) > m.limit {
		oldest := m.byID[m.order[0]]
		select {
		case <-oldest.done:
		default:
			return s, true
		}
		delete(m.byID, m.order[0])
		m.order = m.order[1:]
	}
	return s, true
}

// see records something that needs no settling, and reports whether it is new.
func (m *memory) see(id string) (fresh bool) {
	s, fresh := m.note(id)
	if fresh {
		close(s.done)
	}
	return fresh
}

// forget removes an event that is left for later, so that it counts as new again.
func (m *memory) forget(id string) {
	if m.byID[id] == nil {
		return
	}
	delete(m.byID, id)
	for i := len(m.order) - 1; i >= 0; i-- { // most often it is the last
		if m.order[i] == id {
			m.order = slices.Delete(m.order, i, i+1)
			return
		}
	}
}

const (
	firstPause = 500 * time.Millisecond
	lastPause  = 10 * time.Second // the server's tightest limit allows 10 connects a minute
	steady     = 20 * time.Second // a session that lasted this long resets the backoff
	patience   = 5 * time.Minute  // the longest Retry-After that is heeded
)

// backoff spaces attempts to connect.
type backoff struct{ pause time.Duration }

func newBackoff() *backoff { return &backoff{firstPause} }

// asked extends a wait to the server's Retry-After, within bounds.
func asked(wait time.Duration, err error) time.Duration {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		wait = max(wait, min(refused.RetryAfter, patience))
	}
	return wait
}

// next returns the next wait: a random time between half of the pause and all of it, so that clients do not return all
// at once. The pause doubles each time.
func (b *backoff) next(good bool) time.Duration {
	if good {
		b.pause = firstPause
	}
	wait := b.pause/2 + rand.N(b.pause/2+1)
	b.pause = min(2*b.pause, lastPause)
	return wait
}
