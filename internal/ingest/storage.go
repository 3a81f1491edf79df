package ingest

import (
	"context"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/capture"
)

// storage is the time that one arrival may ask of the capturer, which is not the time that its body takes.
type storage struct {
	front  *Front
	ctx    context.Context
	cancel context.CancelFunc
	since  time.Time
	used   time.Duration
}

func (f *Front) newStorage(now time.Time) storage {
	s := storage{front: f, since: now}
	s.ctx, s.cancel = context.WithTimeout(context.Background(), f.cfg.CaptureTimeout)
	return s
}

func (s *storage) end() { s.cancel() }

// resume starts counting again after the body was read.
func (s *storage) resume() {
	s.cancel()
	s.ctx, s.cancel = context.WithTimeout(context.Background(), s.front.cfg.CaptureTimeout-s.used)
}

func (s *storage) admit(method, ref string) (capture.Target, error) {
	if !slices.Contains(hookglass.Methods, method) {
		return capture.Target{}, errMethod
	}
	if ref == "" {
		return capture.Target{}, errNotFound
	}
	t, err := s.front.capturer.Admit(s.ctx, ref)
	s.used = time.Since(s.since)
	return t, s.told(err)
}

func (s *storage) capture(t capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
	reply, err := s.front.capturer.Capture(s.ctx, t, a)
	return reply, s.told(err)
}

// told logs what the sender is not told, and takes an end of the time for storage that can not answer.
func (s *storage) told(err error) error {
	if err == nil {
		return nil
	}
	late := s.ctx.Err() != nil
	if late {
		s.front.budget.RefuseWaiting()
	}
	if !hookglass.Is(err, hookglass.CodeInternal) {
		return err
	}
	if late {
		return &hookglass.Error{Code: hookglass.CodeUnavailable, Err: err}
	}
	s.front.log.Error("an arrival was not captured", "error", err)
	return err
}
