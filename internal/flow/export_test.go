package flow

import (
	"context"
	"log/slog"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// Play makes a flow of a plan, gives it events with their payloads in pieces, and lets time pass to the end.
func Play(plan hookglass.FlowPlan, start time.Time, events []*hookglass.Event, end time.Time) (hookglass.Flow, error) {
	f := hookglass.Flow{Plan: plan, State: hookglass.FlowPending, StartedAt: start, DeadlineAt: start.Add(plan.Timeout), Version: 1}
	if err := checkSteps(&f.Plan, start); err != nil {
		return f, err
	}
	m, err := newMachine(&f)
	if err != nil {
		return f, err
	}
	m.begin()
	for _, e := range events {
		m.tick(e.ReceivedAt)
		payload := e.Payload
		e.Payload = nil
		if err := m.take(e, func() error { e.Payload = payload; return nil }); err != nil {
			return f, err
		}
		e.Payload = payload
		if m, err = newMachine(&f); err != nil { // another node goes on with it
			return f, err
		}
	}
	m.tick(end)
	return f, nil
}

// Due makes a flow of a plan, gives it events, and returns when it must be judged.
func Due(plan hookglass.FlowPlan, start time.Time, events []*hookglass.Event) (time.Time, error) {
	f := hookglass.Flow{Plan: plan, State: hookglass.FlowPending, StartedAt: start, DeadlineAt: start.Add(plan.Timeout)}
	m, err := newMachine(&f)
	if err != nil {
		return time.Time{}, err
	}
	m.begin()
	for _, e := range events {
		if err := m.take(e, func() error { return nil }); err != nil {
			return time.Time{}, err
		}
	}
	return m.due(), nil
}

// Panic makes a flow of a plan and gives it an event whose payload cannot be read without a panic.
func Panic(plan hookglass.FlowPlan, e *hookglass.Event, log *slog.Logger) (hookglass.Flow, error) {
	h := &held{HeldFlow: store.HeldFlow{Flow: hookglass.Flow{Plan: plan, State: hookglass.FlowPending, StartedAt: e.ReceivedAt, DeadlineAt: e.ReceivedAt.Add(plan.Timeout)}}}
	if err := checkSteps(&h.Plan, h.StartedAt); err != nil {
		return h.Flow, err
	}
	m, err := newMachine(&h.Flow)
	if err != nil {
		return h.Flow, err
	}
	h.machine = m
	m.begin()
	e.Payload = nil
	err = (&Service{log: log}).take(h, e, func() error { panic("a broken mail") })
	return h.Flow, err
}

// Lease and Grace are what tests wait for.
const (
	Lease = lease
	Grace = grace
)

// Round takes the flows that are nobody's, and judges all that it holds once, by a clock of the test's.
func (s *Service) Round(ctx context.Context, now func() time.Time) error {
	s.now = now
	if err := s.claim(ctx, func() {}); err != nil {
		return err
	}
	_, err := s.round(ctx)
	return err
}

// Deafen makes it hear of nothing more that is captured for the flows that it holds.
func (s *Service) Deafen() {
	for _, h := range s.all() {
		h.close()
	}
}

// Look finds what was captured unheard.
func (s *Service) Look(ctx context.Context) error { return s.look(ctx) }

// Renew keeps the leases of what it holds, and saves how far it has read.
func (s *Service) Renew(ctx context.Context) error { return s.renew(ctx) }

// Leases sets how long a lease lasts and how often leases are renewed. It must be called before Run.
func (s *Service) Leases(last, renewed time.Duration) { s.lease, s.renewEvery = last, renewed }

// Holds is how many flows it holds.
func (s *Service) Holds() int { return len(s.all()) }

// Find looks for a pattern in a text.
func Find(text, in string, within time.Duration) (found string, ok, late bool, err error) {
	p, err := newPattern(text)
	if err != nil {
		return "", false, false, err
	}
	found, ok, late = p.find(in, within)
	return found, ok, late, nil
}

// LateFor bounds the time in which a flow is judged whose time is over.
func (s *Service) LateFor(d time.Duration) { s.lateFor = d }

// Late is for how long the flows that are held were judged since their time was over.
func (s *Service) Late() (d time.Duration) {
	for _, h := range s.all() {
		d += h.late
	}
	return d
}
