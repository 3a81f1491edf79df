package action

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// What tests of the pure parts need.
var (
	Cut      = cut
	StandIns = standIns
)

// Sweep looks for runs that nobody holds once.
func (s *Service) Sweep(ctx context.Context) error { return s.sweep(ctx) }

// SetBacktestTimes sets for how long a backtest looks for events, and rehearses.
func (s *Service) SetBacktestTimes(search, rehearse time.Duration) {
	s.backtestSearch, s.backtestTime = search, rehearse
}

// SetDeadline sets how long a run may take.
func (s *Service) SetDeadline(d time.Duration) { s.deadline = d }

// Abandon ends a run as the sweep does with one that it found lost.
func (s *Service) Abandon(ctx context.Context, h store.HeldRun) error {
	return s.abandon(ctx, h, hookglass.FailureOutcomeUnknown, "Lost.")
}

// Seats returns what a worker calls before it computes and after it, with seats for so many.
func Seats(n int) (enter, leave func()) {
	s := &saver{seats: make(chan struct{}, n)}
	return s.enter, s.leave
}
