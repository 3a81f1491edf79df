package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

// targetCommand, with an address, makes this program the target of forwards and replays: a server that answers at once
// and counts what arrives. It is a process of its own, as a target is: what it takes of the load's own would be taken
// for the service's.
const targetCommand = "serve-target"

// countsPath is where a target says what has arrived.
const countsPath = "/counts"

// arrivals are what has arrived at a target.
type arrivals struct {
	Events int64     `json:"events"`
	Hits   int64     `json:"hits"` // with those that came again
	Last   time.Time `json:"last"`
}

func serveTarget(address string) error {
	debug.SetGCPercent(1000)
	var (
		mu   sync.Mutex
		seen = make(map[string]bool)
		all  arrivals
	)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+countsPath, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now := all
		mu.Unlock()
		_ = json.NewEncoder(w).Encode(now) // the asker may be gone
	})
	mux.HandleFunc("POST /", func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // the sender is gone
		}
		mu.Lock()
		defer mu.Unlock()
		if event := r.Header.Get("X-Service-Original-Request"); !seen[event] {
			seen[event] = true
			all.Events++
		}
		all.Hits++
		all.Last = time.Now()
	})
	return http.ListenAndServe(address, mux)
}

// target is a process that runs serveTarget.
type target struct {
	*process
	url string
}

func startTarget(ctx context.Context, dir string) (*target, error) {
	p, err := startOther(ctx, dir, targetCommand, countsPath)
	if err != nil {
		return nil, err
	}
	return &target{process: p, url: p.base + "/"}, nil
}

// arrived asks what has arrived.
func (t *target) arrived(ctx context.Context) (a arrivals, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.base+countsPath, nil)
	if err != nil {
		return a, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&a)
	return a, err
}

// await waits until so many events have arrived and returns when the last did.
func (t *target) await(ctx context.Context, events int64) (time.Time, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; {
		now, err := t.arrived(ctx)
		if err != nil || now.Events >= events {
			return now.Last, err
		}
		if time.Since(began) > forwardLimit {
			return now.Last, fmt.Errorf("%d of %d events arrived within %v", now.Events, events, forwardLimit)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return now.Last, ctx.Err()
		}
	}
}
