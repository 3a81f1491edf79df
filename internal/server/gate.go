package server

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/ingest"
)

// gate stands before everything that needs the database: the listener answers from the first moment, and
// until the database does as well, senders and callers are told to come back.
type gate struct {
	handler  atomic.Pointer[http.Handler]
	capturer atomic.Pointer[ingest.Capturer]
	ready    atomic.Bool
}

func (g *gate) open(h http.Handler, c ingest.Capturer) {
	g.handler.Store(&h)
	g.capturer.Store(&c)
	g.ready.Store(true)
}

func notYet() error {
	return &hookglass.Error{
		Code: hookglass.CodeUnavailable, Message: "The service is starting.", RetryAfter: 5 * time.Second,
		Err: errors.New("the database is not open yet"),
	}
}

// Admit implements ingest.Capturer.
func (g *gate) Admit(ctx context.Context, ref string) (capture.Target, error) {
	if c := g.capturer.Load(); c != nil {
		return (*c).Admit(ctx, ref)
	}
	return capture.Target{}, notYet()
}

// Capture implements ingest.Capturer.
func (g *gate) Capture(ctx context.Context, t capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
	if c := g.capturer.Load(); c != nil {
		return (*c).Capture(ctx, t, a)
	}
	return nil, notYet()
}

// Refuse implements ingest.Capturer.
func (g *gate) Refuse(ctx context.Context, t capture.Target) {
	if c := g.capturer.Load(); c != nil {
		(*c).Refuse(ctx, t)
	}
}

// ServeHTTP serves what has been opened.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := g.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "5")
	w.WriteHeader(http.StatusServiceUnavailable)
	w.Write([]byte(`{"error":"unavailable","message":"The service is starting."}` + "\n"))
}
