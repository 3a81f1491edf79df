package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/httpd"
	"hookglass/internal/ingest"
	"hookglass/internal/smtpd"
)

// gate stands in front of everything that needs the database. Until that is open, senders and callers wait if the
// process has only just begun, and are told to come back otherwise.
type gate struct {
	handler  atomic.Pointer[http.Handler]
	capturer atomic.Pointer[capturer]
	ready    atomic.Bool
	opened   chan struct{}
	refusing time.Time // when those who come are no longer kept waiting
	draining <-chan struct{}
}

// A usual start is over within courtesy, so nobody is refused in it. A start that takes longer may take very long, as
// when PostgreSQL is down: those who come then are not kept waiting for nothing.
const courtesy = 5 * time.Second

// patience is how long a stream of events waits for the service to start, whenever it comes.
const patience = 30 * time.Second

func newGate(draining <-chan struct{}, waits time.Duration) *gate {
	return &gate{opened: make(chan struct{}), refusing: time.Now().Add(waits), draining: draining}
}

// capturer is what HTTP and mail reception need.
type capturer interface {
	ingest.Capturer
	smtpd.Capturer
}

func (g *gate) open(h http.Handler, c capturer) {
	g.handler.Store(&h)
	g.capturer.Store(&c)
	g.ready.Store(true)
	close(g.opened)
}

// wait returns when the gate is open or draining, or the time is over.
func (g *gate) wait(ctx context.Context, most time.Duration) {
	over := time.NewTimer(most)
	defer over.Stop()
	select {
	case <-g.opened:
	case <-g.draining:
	case <-ctx.Done():
	case <-over.C:
	}
}

// admitting returns what captures, nil if the service has not started yet.
func (g *gate) admitting(ctx context.Context) capturer {
	c := g.capturer.Load()
	if c == nil {
		g.wait(ctx, time.Until(g.refusing))
		c = g.capturer.Load()
	}
	if c == nil {
		return nil
	}
	return *c
}

func notYet() error {
	return &hookglass.Error{
		Code: hookglass.CodeUnavailable, Message: "The service is starting.", RetryAfter: 5 * time.Second,
		Err: errors.New("the database is not open yet"),
	}
}

// Admit implements ingest.Capturer.
func (g *gate) Admit(ctx context.Context, ref string) (capture.Target, error) {
	if c := g.admitting(ctx); c != nil {
		return c.Admit(ctx, ref)
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

// Answer implements ingest.Capturer.
func (g *gate) Answer(ctx context.Context, r *hookglass.Reply) *hookglass.Reply {
	if c := g.capturer.Load(); c != nil {
		return (*c).Answer(ctx, r)
	}
	return r
}

// AdmitMailbox implements ingest.Capturer.
func (g *gate) AdmitMailbox(ctx context.Context, ref string) (capture.Target, error) {
	if c := g.admitting(ctx); c != nil {
		return c.AdmitMailbox(ctx, ref)
	}
	return capture.Target{}, notYet()
}

// CapturePosted implements ingest.Capturer.
func (g *gate) CapturePosted(ctx context.Context, t capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
	if c := g.capturer.Load(); c != nil {
		return (*c).CapturePosted(ctx, t, a)
	}
	return nil, notYet()
}

// AdmitMail implements smtpd.Capturer.
func (g *gate) AdmitMail(ctx context.Context, localPart string) (capture.Target, error) {
	if c := g.admitting(ctx); c != nil {
		return c.AdmitMail(ctx, localPart)
	}
	return capture.Target{}, notYet()
}

// AnswerRecipient implements smtpd.Capturer.
func (g *gate) AnswerRecipient(ctx context.Context, t capture.Target, from, to string) (*hookglass.Reply, error) {
	if c := g.capturer.Load(); c != nil {
		return (*c).AnswerRecipient(ctx, t, from, to)
	}
	return nil, notYet()
}

// CaptureMail implements smtpd.Capturer.
func (g *gate) CaptureMail(ctx context.Context, m *capture.Mail) []capture.Delivered {
	if c := g.capturer.Load(); c != nil {
		return (*c).CaptureMail(ctx, m)
	}
	refused := make([]capture.Delivered, len(m.To))
	for i := range refused {
		refused[i].Err = notYet()
	}
	return refused
}

// Refuse implements ingest.Capturer and smtpd.Capturer.
func (g *gate) Refuse(ctx context.Context, t capture.Target) {
	if c := g.capturer.Load(); c != nil {
		(*c).Refuse(ctx, t)
	}
}

// ServeHTTP serves once the database is open. Streams of events wait longest for that: an EventSource that is refused
// does not reconnect by itself (HTML, section 9.2.3), and those that lost a server reconnect just when the next one
// starts.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := g.handler.Load()
	if h == nil {
		most := time.Until(g.refusing)
		if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			most = patience
		}
		g.wait(r.Context(), most)
		h = g.handler.Load()
	}
	if h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	httpd.WriteError(w, r, notYet())
}
