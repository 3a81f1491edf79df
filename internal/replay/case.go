package replay

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/delivery"
	"hookglass/internal/jsondoc"
	"hookglass/internal/store"
)

// CaseDraft is what a caller sets on a case. A nil field is left as it is.
type CaseDraft struct {
	SourceID    *string
	Name        *string
	Description *string
	TargetURL   *string
	Options     *CaseOptions
	Assertions  *hookglass.Assertions
	LockVersion *int64 // for updates only, where it is required
}

// CaseOptions are modes as the caller spells them; "" is the default.
type CaseOptions struct{ Identity, Signature string }

// Cases lists the cases of an endpoint, newest first; only those with a Num below before, unless it is 0.
func (s *Service) Cases(ctx context.Context, who hookglass.Principal, ref string, before int64, limit int) (cases []hookglass.ReplayCase, err error) {
	cases, err = store.Read(ctx, s.db, who, func(v *store.View) ([]hookglass.ReplayCase, error) { return v.ReplayCases(ref, before, limit) })
	for i := range cases {
		if err == nil {
			err = s.openCase(&cases[i])
		}
	}
	return cases, err
}

// Case returns one case, or not_found.
func (s *Service) Case(ctx context.Context, who hookglass.Principal, ref, id string) (c hookglass.ReplayCase, err error) {
	c, err = store.Read(ctx, s.db, who, func(v *store.View) (hookglass.ReplayCase, error) { return v.ReplayCase(ref, id) })
	if err == nil {
		err = s.openCase(&c)
	}
	return c, err
}

func (s *Service) openCase(c *hookglass.ReplayCase) error {
	return s.open(c.Sealed, configOf(c.ID), &c.ReplayCaseConfig)
}

// snapshotTimes is how many times its own size an event takes in memory while its snapshot is made; sealedTimes is how
// many times its size a snapshot takes while it is opened: as bytes, as text, and sealed.
const (
	snapshotTimes = 6
	sealedTimes   = 4
)

// CreateCase saves a case with a snapshot of its source. It answers not_found for the endpoint,
// payment_method_required, target_not_allowed, validation_failed, and unavailable if there is no room for a large
// source.
func (s *Service) CreateCase(ctx context.Context, who hookglass.Principal, ref string, d CaseDraft) (c hookglass.ReplayCase, err error) {
	if err := who.MayManage(); err != nil {
		return c, err
	}
	c.Options = hookglass.ReplayOptions{Identity: hookglass.IdentityOriginal, Signature: hookglass.DefaultSignatureMode}
	ctx, done := context.WithCancel(ctx)
	defer done()
	var src source
	_, err = s.Reads.Hold(ctx, who, snapshotTimes, func(v *store.View) (_ *hookglass.Event, err error) {
		if src, err = s.source(v, ref); err != nil {
			return nil, err
		}
		err = s.draft(v, &c, &src, d)
		return src.event, err
	})
	if err != nil {
		return c, err
	}
	if err := s.tryBuild(src, c.ReplayCaseConfig); err != nil {
		return c, err
	}
	c.ID = hookglass.NewSortableID(hookglass.PrefixReplayCase, s.db.Now())
	c.EndpointNum, c.EndpointID, c.SourceID = src.endpoint.Num, src.endpoint.ID, src.event.ID
	snap, err := s.sealCase(&c, src.event)
	if err != nil {
		return c, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		if _, err := tx.EndpointByNum(c.EndpointNum); err != nil {
			return err
		}
		return tx.CreateReplayCase(&c, snap)
	})
	return c, err
}

// UpdateCase changes the fields that the draft sets. It answers stale_lock_version unless the draft carries the case's
// current version.
func (s *Service) UpdateCase(ctx context.Context, who hookglass.Principal, ref, id string, d CaseDraft) (c hookglass.ReplayCase, err error) {
	if err := who.MayManage(); err != nil {
		return c, err
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	var src source
	_, err = s.Reads.Hold(ctx, who, snapshotTimes, func(v *store.View) (_ *hookglass.Event, err error) {
		if c, err = v.ReplayCase(ref, id); err != nil {
			return nil, err
		}
		switch {
		case d.LockVersion == nil:
			return nil, hookglass.Invalid("replay_case.lock_version", "is required")
		case *d.LockVersion != c.LockVersion:
			return nil, hookglass.Errorf(hookglass.CodeStaleLockVersion, "The replay case is at version %d. Read it again and repeat the change.", c.LockVersion)
		}
		if err := s.openCase(&c); err != nil {
			return nil, err
		}
		if src, err = s.source(v, ref); err != nil {
			return nil, err
		}
		err = s.draft(v, &c, &src, d)
		return src.event, err
	})
	if err != nil {
		return c, err
	}
	if src.event != nil {
		c.SourceID, c.SourceAvailable = src.event.ID, true
	}
	if src.event != nil || d.Options != nil {
		with := src
		if with.event == nil {
			if with.event, err = s.snapshotOf(ctx, who, c, src.endpoint); err != nil {
				return c, err
			}
		}
		if err := s.tryBuild(with, c.ReplayCaseConfig); err != nil {
			return c, err
		}
	}
	snap, err := s.sealCase(&c, src.event)
	if err != nil {
		return c, err
	}
	var saved hookglass.ReplayCase
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		saved, err = tx.SaveReplayCase(c, snap)
		return err
	})
	return saved, err
}

// DeleteCase deletes a case, or answers not_found; its runs stay.
func (s *Service) DeleteCase(ctx context.Context, who hookglass.Principal, ref, id string) error {
	if err := who.MayManage(); err != nil {
		return err
	}
	return s.db.Update(ctx, who, func(tx *store.Tx) error {
		c, err := tx.ReplayCase(ref, id)
		if err != nil {
			return err
		}
		return tx.DeleteReplayCase(c.Num)
	})
}

// draft applies what a caller set to the case, reads the source that it names, and validates the result.
func (s *Service) draft(v *store.View, c *hookglass.ReplayCase, src *source, d CaseDraft) error {
	var faults []hookglass.FieldError
	if d.Name != nil {
		c.Name = *d.Name
	}
	if d.Description != nil {
		c.Description = *d.Description
	}
	before := c.TargetURL
	if d.TargetURL != nil {
		c.TargetURL = *d.TargetURL
	}
	if d.Options != nil {
		c.Options, faults = hookglass.ParseReplayOptions("replay_case.options.", d.Options.Identity, d.Options.Signature)
	}
	if d.Assertions != nil {
		c.Assertions = *d.Assertions
	}
	if d.SourceID == nil && c.SourceID == "" {
		faults = append(faults, hookglass.FieldError{Field: "replay_case.source_id", Message: "is required"})
	}
	if d.SourceID != nil && !isSource(*d.SourceID, c.SourceID) {
		e, err := v.Event(string(src.endpoint.ID), *d.SourceID)
		switch {
		case err == nil:
			src.event = e
		case hookglass.Is(err, hookglass.CodeNotFound):
			faults = append(faults, hookglass.FieldError{Field: "replay_case.source_id", Message: "names no request of this endpoint"})
		default:
			return err
		}
	}
	faults = append(faults, c.Faults()...)
	if sub := c.Assertions.JSONSubset; len(sub) > 0 && jsondoc.Check(sub) != nil {
		faults = append(faults, hookglass.FieldError{Field: "replay_case.assertions.json_subset", Message: "must be JSON, nested 128 deep at most"})
	}
	var wrong error
	if c.TargetURL != before || c.TargetURL == "" { // an unchanged target was allowed once, and a run checks it again
		wrong = s.checkTarget("replay_case.target_url", c.TargetURL)
	}
	if err := hookglass.Refusal(faults, wrong); err != nil {
		return err
	}
	return src.permits(c.Options)
}

// isSource reports whether an ID, as the caller spells it, is already the source of the case. Naming it again changes
// nothing: a caller that reads a case and saves all of it does so, even if only the snapshot of the event is left.
func isSource(named string, source hookglass.EventID) bool {
	id, err := hookglass.ParseEventID(named)
	return err == nil && id == source
}

// tryBuild returns the error that a run would be blocked for today: modes that do not fit the event.
func (s *Service) tryBuild(src source, c hookglass.ReplayCaseConfig) error {
	_, err := delivery.Build(s.order(src, c.TargetURL, c.Options, s.db.Now()))
	if e, ok := errors.AsType[*hookglass.Error](err); ok && e.Code == hookglass.CodeValidationFailed {
		inCase := *e
		inCase.Details = nil
		for _, f := range e.Details {
			inCase.Details = append(inCase.Details, hookglass.FieldError{Field: "replay_case.options." + f.Field, Message: f.Message})
		}
		return &inCase
	}
	return err
}

// sealCase seals the configuration and, if there is a new source e, its snapshot.
func (s *Service) sealCase(c *hookglass.ReplayCase, e *hookglass.Event) (snap []byte, err error) {
	if c.Sealed, err = s.seal(c.ReplayCaseConfig, configOf(c.ID)); err != nil || e == nil {
		return nil, err
	}
	plain, err := snapshotOf(e)
	if err != nil {
		return nil, err
	}
	return s.Sealer.Seal(plain, snapshotIn(c.ID))
}

// snapshotOf opens the snapshot of a case, whose room is kept until ctx is done.
func (s *Service) snapshotOf(ctx context.Context, who hookglass.Principal, c hookglass.ReplayCase, e hookglass.Endpoint) (*hookglass.Event, error) {
	size, err := store.Read(ctx, s.db, hookglass.System, func(v *store.View) (int64, error) {
		return v.CaseSnapshotSize(c.Num)
	})
	if err == nil {
		err = s.Reads.RoomFor(ctx, who, sealedTimes*size)
	}
	if err != nil {
		return nil, err
	}
	var sealed []byte
	err = s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		sealed, _, err = v.CaseSnapshot(c.Num)
		return err
	})
	if err != nil {
		return nil, err
	}
	var snap snapshot
	if err := s.open(sealed, snapshotIn(c.ID), &snap); err != nil {
		return nil, err
	}
	return snap.event(e), nil
}

// maxKey bounds an Idempotency-Key, in characters (spec: decisions, section 7).
const maxKey = 255

// RunCase queues a run of the case. If the case has already seen the key, RunCase returns that run at the same version,
// and answers idempotency_conflict at another.
func (s *Service) RunCase(ctx context.Context, who hookglass.Principal, ref, id, key string) (r hookglass.ReplayCaseRun, err error) {
	if err := who.MayManage(); err != nil {
		return r, err
	}
	if n := utf8.RuneCountInString(key); n == 0 || n > maxKey || !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) {
		return r, hookglass.Invalid("Idempotency-Key", "is required and must have 1 to %d characters, none of them a control character", maxKey)
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		c, err := tx.ReplayCase(ref, id)
		if err != nil {
			return err
		}
		if err := s.openCase(&c); err != nil {
			return err
		}
		r = hookglass.ReplayCaseRun{
			ID: hookglass.NewSortableID(hookglass.PrefixReplayCaseRun, tx.Now), CaseNum: c.Num, CaseID: c.ID, EndpointNum: c.EndpointNum,
			CaseLockVersion: c.LockVersion, SnapshotVersion: c.SnapshotVersion, State: hookglass.RunQueued, IdempotencyKey: key,
		}
		if r.Sealed, err = s.seal(c.ReplayCaseConfig, configIn(r.ID)); err != nil {
			return err
		}
		repeated, err := tx.QueueReplayRun(&r)
		if err == nil {
			s.tryResult(ctx, &r)
		}
		if err == nil && repeated && r.CaseLockVersion != c.LockVersion {
			err = hookglass.Errorf(hookglass.CodeIdempotencyConflict, "The Idempotency-Key was used for version %d of the case, which is at %d.", r.CaseLockVersion, c.LockVersion)
		}
		return err
	})
	return r, err
}
