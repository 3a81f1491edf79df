package action

import (
	"context"

	"hookglass"
	"hookglass/internal/store"
)

// Abandon ends a run as the sweep does with one that it found lost.
func (s *Service) Abandon(ctx context.Context, h store.HeldRun) error {
	return s.abandon(ctx, h, hookglass.FailureOutcomeUnknown, "Lost.")
}
