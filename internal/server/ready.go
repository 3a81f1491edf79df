package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// readiness is the answer of /readyz.
type readiness struct {
	Status  string            `json:"status"` // starting, ready, unavailable, stopping
	Storage map[string]string `json:"storage,omitempty"`
}

func (r readiness) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if r.Status != "ready" {
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(w).Encode(r)
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) { s.readiness(r.Context()).write(w) }

// readiness checks whether this node accepts work: it has started, is not stopping, and its storage takes writes, in
// particular captures: a small test row may fit on a disk that has no room for those.
func (s *Server) readiness(ctx context.Context) readiness {
	ready := readiness{Status: "starting"}
	if s.gate.ready.Load() {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		facts, err := s.db.Health(ctx)
		err = cmp.Or(err, s.captures.Room())
		ready.Storage, ready.Status = facts, "ready"
		if err != nil {
			s.log.Warn("not ready", "error", err)
			ready.Status = "unavailable"
		}
	} else {
		select {
		case <-s.draining:
			ready.Status = "stopping"
		default:
		}
	}
	return ready
}
