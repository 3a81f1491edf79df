package endpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// maxTargets bounds the forwarding targets of an endpoint: each one costs a delivery per event.
const maxTargets = 20

// maxTargetURL bounds the URL of a target, in characters.
const maxTargetURL = 2048

// Targets checks the URL of a target as written. It answers validation_failed and target_not_allowed.
type Targets interface {
	Check(field, rawURL string) error
}

// Through returns the service with different rules on reachable targets. By default only public ones are.
func (s *Service) Through(t Targets) *Service {
	changed := *s
	changed.targets = t
	return &changed
}

// TargetDraft is what a caller sets on a forwarding target. A nil field is not set.
type TargetDraft struct {
	Name           *string
	URL            *string
	When           *string            // empty: all events
	Headers        *map[string]string // all headers that the target adds, by name; a redacted value keeps the stored one
	Enabled        *bool              // update: true also resumes a target that is paused
	Paused         *bool              // update: whether its deliveries wait
	TimeoutSeconds *int64
	RetryCount     *int64
	RateLimit      *int64  // 0: no limit
	RatePeriod     *string // second or minute
	DedupeBy       *string // see [hookglass.DedupeBy]; empty: every event is sent
	DedupeSeconds  *int64
}

// CreateForwardingTarget stores a target. It answers subscription_required, validation_failed and target_not_allowed.
func (s *Service) CreateForwardingTarget(ctx context.Context, who hookglass.Principal, ref string, d TargetDraft) (t hookglass.ForwardingTarget, err error) {
	if err := who.MayManage(); err != nil {
		return t, err
	}
	t = hookglass.ForwardingTarget{Enabled: true, Timeout: hookglass.DefaultForwardTimeout, RetryCount: hookglass.DefaultForwardRetries}
	var faults []hookglass.FieldError
	if d.Name == nil {
		faults = append(faults, targetFault("name", "is required"))
	}
	if d.URL == nil {
		faults = append(faults, targetFault("url", "is required"))
	}
	if err := s.applyTarget(d, &t, faults); err != nil {
		return t, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, err := tx.EndpointToChange(ref) // locked, so that concurrent creations count each other
		if err != nil {
			return err
		}
		if err := mayForward(tx, e); err != nil {
			return err
		}
		n, err := tx.CountForwardingTargets(e.Num)
		if err != nil {
			return err
		}
		if n >= maxTargets {
			return hookglass.Invalid("forwarding_target", "is one too many: an endpoint has %d at most", maxTargets)
		}
		t.EndpointNum, t.EndpointID = e.Num, e.ID
		if d.Headers != nil {
			if err := s.setHeaders(&t, *d.Headers); err != nil {
				return err
			}
		}
		return tx.CreateForwardingTarget(&t)
	})
	return t, err
}

// UpdateForwardingTarget changes the fields that the draft sets. While the account may not forward, a target can only
// be disabled (spec, Actions rule 3, for forward steps).
func (s *Service) UpdateForwardingTarget(ctx context.Context, who hookglass.Principal, ref string, id int64, d TargetDraft) (t hookglass.ForwardingTarget, err error) {
	if err := who.MayManage(); err != nil {
		return t, err
	}
	if d.Enabled != nil && *d.Enabled {
		if err := s.skipWaiting(ctx, who, ref, id); err != nil {
			return t, err
		}
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, err := tx.Endpoint(ref)
		if err != nil {
			return err
		}
		if !d.onlyDisables() {
			if err := mayForward(tx, e); err != nil {
				return err
			}
		}
		t, err = tx.ChangeForwardingTarget(e.Num, id, func(t *hookglass.ForwardingTarget) error {
			if err := s.applyTarget(d, t, nil); err != nil {
				return err
			}
			if d.Headers != nil {
				if err := s.setHeaders(t, *d.Headers); err != nil {
					return err
				}
			}
			if d.resumes() {
				t.Failures, t.FailingFrom, t.PausedAt, t.PauseReason = 0, time.Time{}, time.Time{}, ""
			}
			if d.Paused != nil && *d.Paused {
				return pause(t, tx.Now)
			}
			return nil
		})
		return err
	})
	return t, err
}

// onlyDisables reports whether the draft disables a target and changes nothing else.
func (d TargetDraft) onlyDisables() bool {
	return d.Enabled != nil && !*d.Enabled && d == TargetDraft{Enabled: d.Enabled}
}

// resumes reports whether the draft ends the pause of a target, with the failures that led to it.
func (d TargetDraft) resumes() bool {
	return d.Enabled != nil && *d.Enabled || d.Paused != nil && !*d.Paused
}

// pause makes what is forwarded to a target wait. If it is paused already, its time and reason stay.
func pause(t *hookglass.ForwardingTarget, now time.Time) error {
	if !t.Enabled {
		return hookglass.InvalidFields([]hookglass.FieldError{targetFault("paused", "may not be true for a target that is disabled: nothing waits for it")})
	}
	if t.PausedAt.IsZero() {
		t.PausedAt, t.PauseReason = now, hookglass.PauseManual
	}
	return nil
}

// skipAtOnce bounds the deliveries that one transaction skips, because captures wait behind it.
const skipAtOnce = 500

// skipWaiting skips what waits for a disabled target before it is enabled. That is right also if it is not enabled
// after all: what waits for a disabled target is skipped anyway.
func (s *Service) skipWaiting(ctx context.Context, who hookglass.Principal, ref string, id int64) error {
	t, err := store.Read(ctx, s.db, who, func(v *store.View) (hookglass.ForwardingTarget, error) {
		return v.ForwardingTarget(ref, id)
	})
	if err != nil || t.Enabled {
		return err
	}
	return s.db.UpdateInPieces(ctx, func(tx *store.Tx) (more bool, err error) {
		return tx.SkipForwardsOfDisabled(t.EndpointNum, id, skipAtOnce)
	})
}

// DeleteForwardingTarget deletes a target and its waiting deliveries. It answers not_found.
func (s *Service) DeleteForwardingTarget(ctx context.Context, who hookglass.Principal, ref string, id int64) error {
	if err := who.MayManage(); err != nil {
		return err
	}
	return s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, err := tx.Endpoint(ref)
		if err != nil {
			return err
		}
		return tx.DeleteForwardingTarget(e.Num, id)
	})
}

// ResendDelivery queues the delivery of an event to a target again, with all its retries, and returns it in its new
// state. A delivery that is waiting or being sent stays as it is. It goes out once its target is not paused. It answers
// not_found, subscription_required, and conflict for a disabled target and as [hookglass.Forward.Resend] does.
func (s *Service) ResendDelivery(ctx context.Context, who hookglass.Principal, ref string, id int64, event hookglass.EventID) (f hookglass.Forward, err error) {
	if err := who.MayManage(); err != nil {
		return f, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		t, err := tx.ForwardingTarget(ref, id)
		if err != nil {
			return err
		}
		if f, err = tx.LockForward(t, event); err != nil {
			return err
		}
		if err := mayResend(tx, t); err != nil {
			return err
		}
		put, err := f.Resend()
		if err != nil || !put {
			return err
		}
		if err := tx.ResendForwards([]hookglass.Forward{f}); err != nil {
			return err
		}
		f, err = tx.LockForward(t, event)
		return err
	})
	return f, err
}

// ResendFailed queues a target's failed deliveries again that were created between two times, both excluded; a zero
// time is no bound. It returns the target and how many deliveries it queued. It works in batches, so that captures can
// commit in between. If the context ends, some are queued; a repeated call adds the rest. It answers as ResendDelivery
// does, but skips deliveries for which that answers conflict.
func (s *Service) ResendFailed(ctx context.Context, who hookglass.Principal, ref string, id int64, after, before time.Time) (t hookglass.ForwardingTarget, n int64, err error) {
	if err := who.MayManage(); err != nil {
		return t, 0, err
	}
	for left := (store.FailedRange{After: after, Before: before}); !left.Done; {
		began := time.Now()
		var next store.FailedRange
		var again []hookglass.Forward
		err := s.db.Update(ctx, who, func(tx *store.Tx) (err error) {
			if t, err = tx.ForwardingTarget(ref, id); err != nil {
				return err
			}
			if err := mayResend(tx, t); err != nil {
				return err
			}
			again, next, err = tx.FailedForwards(t, left)
			if err != nil {
				return err
			}
			again = slices.DeleteFunc(again, func(f hookglass.Forward) bool { put, _ := f.Resend(); return !put })
			return tx.ResendForwards(again)
		})
		if err != nil {
			return t, n, err
		}
		n += int64(len(again))
		if left = next; !left.Done {
			fair.Rest(ctx, began)
		}
	}
	return t, n, nil
}

// mayResend answers subscription_required if the target's account may not forward, and conflict for a disabled target,
// whose deliveries would be skipped.
func mayResend(tx *store.Tx, t hookglass.ForwardingTarget) error {
	e, err := tx.EndpointByNum(t.EndpointNum)
	if err != nil {
		return err
	}
	if err := mayForward(tx, e); err != nil {
		return err
	}
	if !t.Enabled {
		return hookglass.Errorf(hookglass.CodeConflict, "The target is disabled, and nothing is sent to it. Enable it first.")
	}
	return nil
}

// mayForward answers subscription_required if the endpoint's account may not forward.
func mayForward(tx *store.Tx, e hookglass.Endpoint) error {
	if e.AccountID == 0 {
		return nil
	}
	account, err := tx.Account(e.AccountID)
	if err != nil {
		return err
	}
	return account.Entitlements().MayForward()
}

// CheckTarget joins the faults that the caller found, of texts that no field of a draft can hold, with those of the
// draft, so that a form shows all of them at once.
func (s *Service) CheckTarget(d TargetDraft, faults []hookglass.FieldError) error {
	return s.applyTarget(d, &hookglass.ForwardingTarget{}, faults)
}

// applyTarget sets the fields of the draft; faults are those already known.
func (s *Service) applyTarget(d TargetDraft, t *hookglass.ForwardingTarget, faults []hookglass.FieldError) error {
	fault := func(field, format string, args ...any) {
		faults = append(faults, targetFault(field, fmt.Sprintf(format, args...)))
	}
	if d.Name != nil {
		switch t.Name = *d.Name; {
		case strings.TrimSpace(t.Name) == "":
			fault("name", "may not be empty")
		case utf8.RuneCountInString(t.Name) > maxName:
			fault("name", "may have %d characters at most", maxName)
		case strings.ContainsFunc(t.Name, unicode.IsControl):
			fault("name", "may not hold control characters")
		}
	}
	if d.TimeoutSeconds != nil {
		if n, most := *d.TimeoutSeconds, int64(hookglass.MaxForwardTimeout/time.Second); n < 1 || n > most {
			fault("timeout_seconds", "must be 1 to %d", most)
		} else {
			t.Timeout = time.Duration(n) * time.Second
		}
	}
	if d.RetryCount != nil {
		if n := *d.RetryCount; n < 0 || n > hookglass.MaxForwardRetries {
			fault("retry_count", "must be 0 to %d", hookglass.MaxForwardRetries)
		} else {
			t.RetryCount = int(n)
		}
	}
	if d.When != nil {
		if t.When = strings.TrimSpace(*d.When); t.When != "" {
			if wrong := conditionFault(t.When); wrong != "" {
				fault("when", "%s", wrong)
			}
		}
	}
	if d.Headers != nil {
		judgeHeaders(*d.Headers, fault)
	}
	applyRate(d, t, fault)
	applyDedupe(d, t, fault)
	if d.Enabled != nil {
		t.Enabled = *d.Enabled
	}
	var wrong error
	if d.URL != nil {
		if t.URL = *d.URL; utf8.RuneCountInString(t.URL) > maxTargetURL {
			fault("url", "may have %d characters at most", maxTargetURL)
		} else {
			wrong = s.targets.Check("forwarding_target.url", t.URL)
		}
	}
	return hookglass.Refusal(faults, wrong)
}

// ratePeriods maps the names of rate periods.
var ratePeriods = map[string]time.Duration{hookglass.PeriodSecond: time.Second, hookglass.PeriodMinute: time.Minute}

// applyRate sets the rate limit of the draft.
func applyRate(d TargetDraft, t *hookglass.ForwardingTarget, fault func(field, format string, args ...any)) {
	rate := t.Rate
	if d.RateLimit != nil {
		switch n := *d.RateLimit; {
		case n == 0:
			rate = hookglass.Rate{}
		case n < 0 || n > hookglass.MaxRateLimit:
			fault("rate_limit", "must be 1 to %d, or null for no limit", hookglass.MaxRateLimit)
			return
		default:
			rate.Limit = int(n)
			if rate.Period == 0 {
				rate.Period = time.Second
			}
		}
	}
	if d.RatePeriod != nil {
		period, known := ratePeriods[*d.RatePeriod]
		switch {
		case !known:
			fault("rate_period", "must be second or minute")
			return
		case rate.Limit == 0:
			fault("rate_period", "needs a rate_limit")
			return
		}
		rate.Period = period
	}
	t.Rate = rate
}

// applyDedupe sets what the draft says about duplicates.
func applyDedupe(d TargetDraft, t *hookglass.ForwardingTarget, fault func(field, format string, args ...any)) {
	dedupe := t.Dedupe
	if d.DedupeBy != nil {
		switch by := hookglass.DedupeBy(*d.DedupeBy); {
		case by == "":
			dedupe = hookglass.Dedupe{}
		case !by.Valid():
			fault("dedupe_by", "must be id, body, header. and the name of a header, or a JSON Pointer, %d characters at most, or null for none", hookglass.MaxDedupeBy)
			return
		default:
			dedupe.By = by
			if dedupe.Window == 0 {
				dedupe.Window = hookglass.DefaultDedupeWindow
			}
		}
	}
	if d.DedupeSeconds != nil {
		least, most := int64(hookglass.MinDedupeWindow/time.Second), int64(hookglass.MaxDedupeWindow/time.Second)
		switch n := *d.DedupeSeconds; {
		case n < least || n > most:
			fault("dedupe_seconds", "must be %d to %d", least, most)
			return
		case !dedupe.On():
			fault("dedupe_seconds", "needs a dedupe_by")
			return
		default:
			dedupe.Window = time.Duration(n) * time.Second
		}
	}
	t.Dedupe = dedupe
}

func targetFault(field, message string) hookglass.FieldError {
	return hookglass.FieldError{Field: "forwarding_target." + field, Message: message}
}
