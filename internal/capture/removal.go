package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// tempBatch bounds the temporary endpoints that one purge expires.
const tempBatch = 100

// Delete deletes one event. It answers not_found.
func (s *Service) Delete(ctx context.Context, who hookglass.Principal, ref, eventID string) error {
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.DeleteEvent(ref, eventID) })
}

// DeleteRange deletes the endpoint's events received between two times, both excluded, and returns how many. A zero
// time is no bound. Events captured meanwhile stay. If the context ends, a part may have been deleted; a repeated call
// deletes the rest.
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

// purgeFor bounds the purging of events in one job, so that other expired data gets its turn and the job ends. The next
// job, which comes about then, continues.
const purgeFor = 24 * time.Second

// Purge deletes events and lines of the feed past the retention of their account, together with attempt counters and
// incidents, and expired temporary endpoints, as far as time permits.
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
	var failed error
	for _, num := range expired {
		err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return s.expire(tx, num) })
		switch {
		case hookglass.Is(err, hookglass.CodeUnavailable):
			return errors.Join(failed, err) // it would fail for the others, too
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("expire endpoint %d: %w", num, err))
		}
	}
	until := time.Now().Add(s.purgeTime)
	failed = errors.Join(failed, s.purge(ctx, due, until))
	for _, kind := range []struct {
		due   func(*store.View, time.Time, time.Duration) ([]store.Overdue, error)
		purge func(*store.Tx, []store.Overdue) ([]store.Overdue, error)
	}{
		{(*store.View).AttemptsDue, (*store.Tx).PurgeAttempts},
		{(*store.View).ActivityDue, (*store.Tx).PurgeActivity},
		{(*store.View).IncidentsDue, (*store.Tx).PurgeIncidents},
	} {
		left, err := store.Read(ctx, s.db, hookglass.System, func(v *store.View) ([]store.Overdue, error) {
			return kind.due(v, now, s.cfg.Retention)
		})
		for more := len(left) > 0; more && err == nil; more = len(left) > 0 && time.Now().Before(until) {
			err = s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
				left, err = kind.purge(tx, left) // what a repeated transaction passes over is due next time
				return err
			})
		}
		if err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

// tendEvery is how often the ranges of payloads are maintained.
const tendEvery = time.Minute

// Tend maintains the database's ranges of payloads until ctx ends. All nodes try; one at a time does it.
func (s *Service) Tend(ctx context.Context) error {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		if err := s.db.TendPayloads(ctx, s.cfg.Retention); err != nil && ctx.Err() == nil {
			s.log.Warn("payload ranges could not be maintained", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// purge deletes a batch from each endpoint in turn, so that an endpoint with much to delete, or one that fails, does
// not keep the others from being purged. When its time is over the rest waits; the most overdue come first next time.
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
				return errors.Join(failed, err) // it would fail for the others, too
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

// eraseFor is how long an erase job runs before other jobs get their turn.
const eraseFor = 5 * time.Second

// Erase erases a part of what was deleted and reports whether that was the last.
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
