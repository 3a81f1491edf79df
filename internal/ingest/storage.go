package ingest

import (
	"context"
	"net/http"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/capture"
)

// storage measures the time that one arrival may take in the capturer, not counting the time for its body.
type storage struct {
	front  *Front
	mail   bool // the reference is to a mailbox
	ctx    context.Context
	cancel context.CancelFunc
	since  time.Time
	used   time.Duration
}

func (f *Front) newStorage(now time.Time, mail bool) storage {
	s := storage{front: f, mail: mail, since: now}
	s.ctx, s.cancel = context.WithTimeout(context.Background(), f.cfg.CaptureTimeout)
	return s
}

// resume continues measuring after the body was read.
func (s *storage) resume() {
	s.cancel()
	s.ctx, s.cancel = context.WithTimeout(context.Background(), s.front.cfg.CaptureTimeout-s.used)
}

func (s *storage) admit(a *capture.Arrival, ref string) (t capture.Target, err error) {
	switch {
	case s.mail && a.Method != http.MethodPost:
		return t, errMailMethod
	case !slices.Contains(hookglass.Methods, a.Method):
		return t, errMethod
	case ref == "" || s.mail && a.Path != "/":
		return t, errNotFound
	case s.mail:
		t, err = s.front.capturer.AdmitMailbox(s.ctx, ref)
	default:
		t, err = s.front.capturer.Admit(s.ctx, ref)
	}
	s.used = time.Since(s.since)
	return t, s.told(err)
}

func (s *storage) capture(t capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
	keep := s.front.capturer.Capture
	if s.mail {
		keep = s.front.capturer.CapturePosted
	}
	if len(a.Body) >= turnsFrom {
		turn := s.front.turns.Lease()
		defer turn.Release()
		if err := turn.Grow(int64(len(a.Body)), s.front.cfg.BudgetWait); err != nil {
			s.front.queued.Tell(s.front.log.Warn, "large webhooks are refused: those before them are not stored in time", "bytes", turnsFrom)
			return nil, err
		}
		s.resume()
	}
	a.At = time.Now()
	reply, err := keep(s.ctx, t, a)
	if err == nil {
		s.front.stored.Store(time.Now().UnixNano())
	}
	return reply, s.told(err)
}

// told logs internal errors, which the sender must not see, and treats a timeout as unavailable storage.
func (s *storage) told(err error) error {
	if err == nil {
		return nil
	}
	late := s.ctx.Err() != nil
	if late && s.front.silent() {
		s.front.budget.RefuseWaiting()
		s.front.turns.RefuseWaiting()
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

// silent reports whether the storage has stopped answering. One that is only too slow for somebody has stored something
// meanwhile, and those that wait for room need not be refused.
func (f *Front) silent() bool {
	return time.Since(time.Unix(0, f.stored.Load())) > f.cfg.CaptureTimeout/3
}
