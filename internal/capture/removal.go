package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// tempBatch bounds the temporary endpoints that one purge ends.
const tempBatch = 100

// Delete deletes one event. It answers not_found.
func (s *Service) Delete(ctx context.Context, who hookglass.Principal, ref, eventID string) error {
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.DeleteEvent(ref, eventID) })
}

// DeleteRange deletes the endpoint's events received before and after the given times, the zero time being no bound,
// and returns how many they were. Captures go on meanwhile; what they bring stays. When the context ends a part
// may be deleted, and doing it again deletes the rest.
func (s *Service) DeleteRange(ctx context.Context, who hookglass.Principal, ref string, before, after time.Time) (int64, error) {
	if before.IsZero() && after.IsZero() {
		var n int64
		err := s.db.Update(ctx, who, func(tx *store.Tx) (err error) {
			n, err = tx.DeleteAllEvents(ref)
			return err
		})
		return n, err
	}
	left := store.EventRange{After: after, Before: before}
	for !left.Done {
		var next store.EventRange
		err := s.db.Update(ctx, who, func(tx *store.Tx) (err error) {
			next, err = tx.DeleteEvents(ref, left)
			return err
		})
		if err != nil {
			return left.Deleted, err
		}
		left = next
	}
	return left.Deleted, nil
}

// Tag gives the event a tag, making the tag when the workspace has none of the name, and returns the event's tags.
func (s *Service) Tag(ctx context.Context, who hookglass.Principal, ref, eventID, tag string) (tags []string, err error) {
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		tags, err = tx.TagEvent(ref, eventID, tag)
		return err
	})
	return tags, err
}

// Untag takes a tag from the event, if it has it, and returns the event's tags.
func (s *Service) Untag(ctx context.Context, who hookglass.Principal, ref, eventID, tag string) (tags []string, err error) {
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		tags, err = tx.UntagEvent(ref, eventID, tag)
		return err
	})
	return tags, err
}

// SetNote writes a note on the event in place of what was there, "" being none. It answers validation_failed for what
// [hookglass.Note] refuses.
func (s *Service) SetNote(ctx context.Context, who hookglass.Principal, ref, eventID, note string) error {
	note, err := hookglass.Note(note)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.SetNote(ref, eventID, note) })
}

// Ignore hides the event from lists and health figures for one of [hookglass.IgnoreReasons]; "" is the first. It
// answers validation_failed for another.
func (s *Service) Ignore(ctx context.Context, who hookglass.Principal, ref, eventID, reason string) error {
	if reason == "" {
		reason = hookglass.IgnoreReasons[0]
	}
	if !slices.Contains(hookglass.IgnoreReasons, reason) {
		return hookglass.Invalid("reason", "must be one of %s", strings.Join(hookglass.IgnoreReasons, ", "))
	}
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.SetIgnored(ref, eventID, reason) })
}

// Unignore takes Ignore back.
func (s *Service) Unignore(ctx context.Context, who hookglass.Principal, ref, eventID string) error {
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.SetIgnored(ref, eventID, "") })
}

// purgeFor is how long one purge goes on before what else is past its time has its turn, and its job an end. The rest
// is for the next, which comes about then.
const purgeFor = 24 * time.Second

// Purge deletes events and lines of the feed past the retention of their account, with what was counted of attempts,
// and temporary endpoints past their life, for as long as there is time.
func (s *Service) Purge(ctx context.Context) error {
	now := s.db.Now()
	var due []store.PurgeDue
	var expired []int64
	err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		if due, err = v.PurgesDue(now, s.cfg.Retention); err != nil {
			return err
		}
		expired, err = v.EndpointsDue(now, tempBatch)
		return err
	})
	if err != nil {
		return err
	}
	for _, num := range expired {
		if err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.ExpireEndpoint(num) }); err != nil {
			return err
		}
	}
	until := time.Now().Add(s.purgeTime)
	failed := s.purge(ctx, due, until)
	for _, piece := range []func(*store.Tx, time.Time, time.Duration) (bool, error){(*store.Tx).PurgeAttempts, (*store.Tx).PurgeActivity, (*store.Tx).PurgeIncidents} {
		for more := true; more; more = more && time.Now().Before(until) {
			err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
				more, err = piece(tx, now, s.cfg.Retention)
				return err
			})
			if err != nil {
				return errors.Join(failed, err)
			}
		}
	}
	return failed
}

// tendEvery is how often ranges of payloads are looked after.
const tendEvery = time.Minute

// Tend keeps the database's ranges of payloads as they should be, until ctx ends. All nodes try; one does it.
func (s *Service) Tend(ctx context.Context) error {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		if err := s.db.TendPayloads(ctx, s.cfg.Retention); err != nil && ctx.Err() == nil {
			s.log.Warn("ranges of payloads could not be tended", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// purge deletes a piece of each endpoint in turn, so that one of which much is due, or that fails, does not keep the
// others from being purged. When its time is over the rest waits: what has waited for long comes first.
func (s *Service) purge(ctx context.Context, due []store.PurgeDue, until time.Time) (failed error) {
	for len(due) > 0 {
		left := due[:0]
		for _, d := range due {
			var more bool
			err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
				_, more, err = tx.PurgeEvents(d)
				return err
			})
			switch {
			case hookglass.Is(err, hookglass.CodeUnavailable):
				return errors.Join(failed, err) // nor would it for others
			case err == nil && more:
				left = append(left, d)
			case err != nil && !hookglass.Is(err, hookglass.CodeNotFound):
				failed = errors.Join(failed, fmt.Errorf("purge endpoint %d: %w", d.EndpointNum, err))
			}
			if !time.Now().Before(until) {
				return failed
			}
		}
		due = left
	}
	return failed
}

// eraseFor is for how long an erase job takes transactions before others have their turn.
const eraseFor = 5 * time.Second

// Erase removes from the disk a part of what was deleted, and reports whether that was the last.
func (s *Service) Erase(ctx context.Context, endpointNum int64) (done bool, err error) {
	for until := time.Now().Add(eraseFor); time.Now().Before(until); {
		began := time.Now()
		err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
			done, err = tx.EraseEvents(endpointNum)
			return err
		})
		if done || err != nil {
			return done, err
		}
		fair.Rest(ctx, began)
	}
	return false, nil
}
