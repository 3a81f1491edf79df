package store

import (
	"strconv"
	"sync"
	"sync/atomic"
)

// Topics of announcements. They contain no spaces, which separate them when they travel between nodes.
const (
	// TopicEndpoints: an endpoint, its settings or its configs changed.
	TopicEndpoints = "endpoints"
	// TopicJobs: work was enqueued.
	TopicJobs = "jobs"
	// TopicForwards: deliveries to forwarding targets may be due.
	TopicForwards = "forwards"
	// TopicNotifications: messages wait for channels, or a channel changed.
	TopicNotifications = "notifications"
	// TopicSecrets: an action secret was created, changed or deleted.
	TopicSecrets = "secrets"
	// TopicTokens: a token or session was revoked.
	TopicTokens = "tokens"
)

// TopicTasks is the topic of tasks of a kind that may be due.
func TopicTasks(kind TaskKind) string { return "tasks-" + string(kind) }

// TopicEvents is the topic of events captured, changed or deleted at one endpoint.
func TopicEvents(endpointNum int64) string { return "e" + strconv.FormatInt(endpointNum, 10) }

// TopicAccount is the topic of an account's activity, endpoints and settings.
func TopicAccount(id int64) string { return "a" + strconv.FormatInt(id, 10) }

// Subscription receives announcements of topics. C receives a value after an announcement; several announcements may be
// merged into one value. Close it when done.
type Subscription struct {
	C      <-chan struct{}
	c      chan struct{}
	fn     func() // called instead of sending to c
	heard  atomic.Uint64
	hub    *hub
	topics []string
}

// Heard counts the announcements so far. An Update or Capture of this process is counted before it returns: a read that
// is cached with the current count is no older than the caller's own writes.
func (s *Subscription) Heard() uint64 { return s.heard.Load() }

// Close ends the subscription.
func (s *Subscription) Close() { s.hub.remove(s) }

type hub struct {
	mu   sync.Mutex
	subs map[string]map[*Subscription]struct{}
}

func newHub() *hub { return &hub{subs: make(map[string]map[*Subscription]struct{})} }

func (h *hub) subscribe(topics ...string) *Subscription {
	c := make(chan struct{}, 1)
	return h.add(&Subscription{C: c, c: c, hub: h, topics: topics})
}

func (h *hub) add(s *Subscription) *Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range s.topics {
		if h.subs[t] == nil {
			h.subs[t] = make(map[*Subscription]struct{})
		}
		h.subs[t][s] = struct{}{}
	}
	return s
}

func (h *hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range s.topics {
		delete(h.subs[t], s)
		if len(h.subs[t]) == 0 {
			delete(h.subs, t)
		}
	}
}

func (h *hub) publish(topics ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		for s := range h.subs[t] {
			s.wake()
		}
	}
}

// resync wakes all subscribers after announcements may have been lost.
func (h *hub) resync() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, subs := range h.subs {
		for s := range subs {
			s.wake()
		}
	}
}

func (s *Subscription) wake() {
	s.heard.Add(1)
	if s.fn != nil {
		s.fn()
		return
	}
	select {
	case s.c <- struct{}{}:
	default: // a value is waiting already
	}
}
