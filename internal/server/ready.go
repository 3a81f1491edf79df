package server

import (
	"encoding/json"
	"net/http"
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
