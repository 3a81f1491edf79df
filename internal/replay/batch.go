package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// Bounds of a bulk replay. It sends one event after another, oldest first, so the rate is an upper bound.
const (
	maxBatch     = 10_000 // events
	maxPicked    = 1_000  // events, if the request names them
	defaultRate  = 10     // events a second
	MaxRate      = 100
	collectPage  = 500
	collectTime  = 20 * time.Second // for finding the events, while a person waits
	shiftTime    = 15 * time.Second // of one job, besides the delivery in progress at its end
	stillMoving  = Timeout + slack  // after so long without progress a batch has no worker
	queuedTooOld = 20 * time.Second // a run that waits so long may have lost its job
	sweepRows    = 100
)

// BatchRequest describes a bulk replay.
type BatchRequest struct {
	Query         string   // the search language; ignored events are left out unless it asks for them
	Events        []string // if not nil, the IDs of the events, instead of a query
	WhatIsLeft    bool     // skip the IDs in Events that name no event instead of refusing them
	TargetURL     string
	Identity      string
	Signature     string
	Rate          int // events a second; 0: 10
	StopOnFailure bool
	DryRun        bool // only return what would be replayed
}

// CreateBatch finds the events that the query matches now and starts to replay them. A dry run stores nothing: its
// batch has a Total and no ID.
func (s *Service) CreateBatch(ctx context.Context, who hookglass.Principal, ref string, r BatchRequest) (b hookglass.ReplayBatch, err error) {
	if err := who.MayManage(); err != nil {
		return b, err
	}
	r.Rate = cmp.Or(r.Rate, defaultRate)
	options, q, err := s.readBatch(r)
	if err != nil {
		return b, err
	}
	src, err := store.Read(ctx, s.db, who, func(v *store.View) (source, error) { return s.source(v, ref) })
	if err != nil {
		return b, err
	}
	if err := src.permits(options); err != nil {
		return b, err
	}
	var seqs []int64
	if len(r.Events) > 0 {
		seqs, err = s.picked(ctx, who, ref, r)
	} else {
		seqs, err = s.collect(ctx, who, ref, q)
	}
	if err != nil {
		return b, err
	}
	b = hookglass.ReplayBatch{
		EndpointNum: src.endpoint.Num, Query: r.Query, TargetURL: r.TargetURL, Options: options, Rate: r.Rate, StopOnFailure: r.StopOnFailure,
		State: hookglass.BatchRunning, Total: int64(len(seqs)),
	}
	if r.DryRun {
		return b, nil
	}
	b.ID = hookglass.NewSortableID(hookglass.PrefixReplayBatch, s.db.Now())
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		if _, err := tx.EndpointByNum(b.EndpointNum); err != nil {
			return err
		}
		return tx.CreateReplayBatch(&b, seqs)
	})
	return b, err
}

// readBatch parses a request, or returns all that is wrong with it.
func (s *Service) readBatch(r BatchRequest) (options hookglass.ReplayOptions, q query.Query, err error) {
	options, faults := hookglass.ParseReplayOptions("", r.Identity, r.Signature)
	if r.Rate < 1 || r.Rate > MaxRate {
		faults = append(faults, hookglass.FieldError{Field: "rate", Message: "must be from 1 to 100"})
	}
	if r.Events != nil && len(r.Events) == 0 {
		faults = append(faults, hookglass.FieldError{Field: "request_ids", Message: "must name at least one request"})
	}
	if len(r.Events) > 0 && r.Query != "" {
		faults = append(faults, hookglass.FieldError{Field: "request_ids", Message: "or query may be given, and not both"})
	}
	q, err = query.Filter{Q: r.Query}.Parse(s.db.Now())
	var invalid *hookglass.Error
	if errors.As(err, &invalid) {
		for _, f := range invalid.Details {
			faults = append(faults, hookglass.FieldError{Field: "query", Message: f.Message})
		}
	} else if err != nil {
		return options, q, err
	}
	err = hookglass.Refusal(faults, s.checkTarget("target_url", r.TargetURL))
	var refused *hookglass.Error
	if invalid != nil && errors.As(err, &refused) {
		refused.Extra = invalid.Extra
	}
	return options, q, err
}

// picked finds the events that a bulk replay names, each once.
func (s *Service) picked(ctx context.Context, who hookglass.Principal, ref string, r BatchRequest) (seqs []int64, err error) {
	if len(r.Events) > maxPicked {
		return nil, hookglass.Invalid("request_ids", "may name 1,000 requests at most")
	}
	err = s.db.View(ctx, who, func(v *store.View) error {
		var gone []int
		if seqs, gone, err = v.EventSeqs(ref, r.Events); err != nil || r.WhatIsLeft {
			return err
		}
		var faults []hookglass.FieldError
		for _, i := range gone {
			faults = append(faults, hookglass.FieldError{Field: fmt.Sprintf("request_ids.%d", i), Message: "names no request of this endpoint; it may have been deleted"})
		}
		return hookglass.Refusal(faults, nil)
	})
	return seqs, err
}

// collect finds the events that the query of a bulk replay matches.
func (s *Service) collect(ctx context.Context, who hookglass.Principal, ref string, q query.Query) (seqs []int64, err error) {
	for before, until := int64(0), time.Now().Add(collectTime); ; {
		err = s.db.View(ctx, who, func(v *store.View) error {
			page, err := v.Events(ref, store.EventList{Query: q, Limit: collectPage, Before: before})
			before = page.Next
			for _, e := range page.Events {
				seqs = append(seqs, e.Seq)
			}
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case len(seqs) > maxBatch:
			return nil, hookglass.Invalid("query", "matches more than 10,000 requests; narrow it")
		case before == 0:
			return seqs, nil
		case !time.Now().Before(until):
			return nil, hookglass.Invalid("query", "takes too long; narrow it, for example by received times")
		}
	}
}

// Pause pauses a bulk replay. Like Resume and Cancel it lets the event in progress finish, answers not_found, answers
// conflict in a state that does not allow the change, and changes nothing if the batch is in the new state already.
func (s *Service) Pause(ctx context.Context, who hookglass.Principal, ref, id string) (hookglass.ReplayBatch, error) {
	return s.move(ctx, who, ref, id, hookglass.BatchPaused, hookglass.BatchRunning)
}

// Resume continues a paused bulk replay.
func (s *Service) Resume(ctx context.Context, who hookglass.Principal, ref, id string) (hookglass.ReplayBatch, error) {
	return s.move(ctx, who, ref, id, hookglass.BatchRunning, hookglass.BatchPaused)
}

// Cancel ends a bulk replay for good.
func (s *Service) Cancel(ctx context.Context, who hookglass.Principal, ref, id string) (hookglass.ReplayBatch, error) {
	return s.move(ctx, who, ref, id, hookglass.BatchCanceled, hookglass.BatchRunning, hookglass.BatchPaused)
}

func (s *Service) move(ctx context.Context, who hookglass.Principal, ref, id string, to hookglass.BatchState, from ...hookglass.BatchState) (b hookglass.ReplayBatch, err error) {
	if err := who.MayManage(); err != nil {
		return b, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		if b, err = tx.LockReplayBatch(ref, id); err != nil {
			return err
		}
		switch {
		case b.State == to:
			return nil // asked for twice
		case !slices.Contains(from, b.State):
			return hookglass.Errorf(hookglass.CodeConflict, "The bulk replay is %s.", b.State)
		}
		_, err = tx.MoveReplayBatch(&b, b.State, to)
		return err
	})
	return b, err
}

// WorkBatch replays events of a bulk replay one after another, for shiftTime or until Run ends. done is false while
// there is more to do. It answers rate_limited while too many replays of the tenant are in progress.
func (s *Service) WorkBatch(ctx context.Context, id string) (done bool, err error) {
	var src source
	var b hookglass.ReplayBatch
	err = s.db.View(ctx, hookglass.System, func(v *store.View) error {
		if b, err = v.ReplayBatchByID(id); err != nil {
			return err
		}
		src.endpoint, err = v.EndpointByNum(b.EndpointNum)
		return err
	})
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return true, nil // its endpoint was deleted
	} else if err != nil {
		return false, err
	}
	give, err := s.turn(src)
	if err != nil {
		return false, errors.Join(err, s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.PostponeReplayBatch(b.Num) }))
	}
	defer give()
	for until := time.Now().Add(shiftTime); time.Now().Before(until); {
		select {
		case <-s.leaving: // the next event would be cut off while it is sent
			return false, nil
		default:
		}
		more, wait, err := s.workOne(ctx, id)
		if err != nil || !more {
			return err == nil, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.leaving:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
	}
	return false, nil
}

// batchStep is the event of a bulk replay that is in progress.
type batchStep struct {
	batch hookglass.ReplayBatch
	item  hookglass.BatchItem
	began time.Time
}

// workOne replays the next event and returns how long to wait before the one after it. more is false if this worker is
// done: no event is left, or another worker has one in progress and goes on with the rest. So a bulk replay that was
// resumed while its worker waited for a response soon has one worker again.
func (s *Service) workOne(ctx context.Context, id string) (more bool, wait time.Duration, err error) {
	st, wait, err := s.beginItem(ctx, id)
	switch {
	case hookglass.Is(err, hookglass.CodeNotFound), hookglass.Is(err, hookglass.CodeConflict):
		return false, 0, nil // gone, or with another worker
	case err != nil:
		return false, 0, err
	case wait > 0:
		return true, wait, nil
	case st.item.Num == 0:
		return false, 0, nil // not running, or nothing left
	}
	made, err := s.sendItem(ctx, st)
	interval := time.Second / time.Duration(st.batch.Rate)
	if made.withheld || hookglass.Is(err, hookglass.CodeUnavailable) {
		// Nothing was sent, and the event is not to blame: it will be sent later.
		back := func(tx *store.Tx) error { return tx.ReturnBatchItem(st.item.Num, st.began) }
		return true, interval, errors.Join(err, s.db.Persist(ctx, recordTimeout, hookglass.System, back))
	}
	if err == nil {
		st.attempted(ctx, made.kept)
	} else {
		s.unsent(ctx, st, err)
	}
	settle := func(tx *store.Tx) error {
		if made.kept != nil {
			if err := tx.RecordReplay(made.kept); err != nil {
				return err
			}
		}
		return finish(tx, &st.batch, st.item)
	}
	err = s.db.Persist(ctx, recordTimeout, hookglass.System, settle)
	return true, min(interval, interval-s.db.Now().Sub(st.began)), err // at most interval, even if the clock goes back
}

// beginItem marks the next event of a bulk replay as begun, or completes a bulk replay that has no event left. It
// returns how long to wait if it is too early for the next event, and an item with no Num if there is nothing to send.
func (s *Service) beginItem(ctx context.Context, id string) (st *batchStep, wait time.Duration, err error) {
	st = new(batchStep)
	err = s.take(ctx, func(tx *store.Tx) error {
		if st.batch, err = tx.ReplayBatchByID(id); err != nil {
			return err
		}
		st.began = tx.Now
		if st.item, wait, err = tx.BeginBatchItem(&st.batch); hookglass.Is(err, hookglass.CodeNotFound) {
			return complete(tx, &st.batch)
		}
		return err
	})
	return st, wait, err
}

// sendItem replays the event once there is room for its body.
func (s *Service) sendItem(ctx context.Context, st *batchStep) (made attempted, err error) {
	b := &st.batch
	var src source
	var size int64
	err = s.db.View(ctx, hookglass.System, func(v *store.View) error {
		if src.endpoint, err = v.EndpointByNum(b.EndpointNum); err != nil {
			return err
		}
		if err := s.fill(v, &src); err != nil {
			return err
		}
		size, err = v.EventSize(string(st.item.EventID))
		return err
	})
	if err != nil {
		return made, err
	}
	// The event counts as begun while it waits, so the wait must be shorter than slack.
	give, ok := s.bodies.Await(ctx, src.key(), size, min(s.roomTime, slack/2))
	if !ok {
		return attempted{withheld: true}, nil
	}
	defer give()
	err = s.db.View(ctx, hookglass.System, func(v *store.View) error {
		src.event, err = v.Event(string(src.endpoint.ID), string(st.item.EventID))
		return err
	})
	if err != nil {
		return made, err
	}
	if err := src.permits(b.Options); err != nil {
		return made, err
	}
	return s.attempt(ctx, src, b.TargetURL, s.order(src, b.TargetURL, b.Options, s.db.Now()))
}

// attempted sets the result of an event that was sent.
func (st *batchStep) attempted(ctx context.Context, a *hookglass.Replay) {
	item := &st.item
	a.BatchID, item.ReplayID, item.Failure = st.batch.ID, a.ID, a.Failure
	if a.Response != nil {
		item.StatusCode = a.Response.Status
	}
	switch {
	case a.Passed():
		item.State = hookglass.ItemPassed
	case ctx.Err() != nil && a.Failure != nil: // stopped while it was sent
		item.State = hookglass.ItemUnknown
	default:
		item.State = hookglass.ItemFailed
	}
}

// unsent sets the failure of an event that could not be sent.
func (s *Service) unsent(ctx context.Context, st *batchStep, err error) {
	st.item.State = hookglass.ItemFailed
	if refusal, ok := errors.AsType[*hookglass.Error](err); ok {
		st.item.Failure = &hookglass.Failure{Code: string(refusal.Code), Message: refusal.Message}
		return
	}
	st.item.Failure = &hookglass.Failure{Code: string(hookglass.CodeInternal), Message: "The event could not be read."}
	s.Log.ErrorContext(ctx, "an event of a bulk replay failed", "batch", st.batch.ID, "error", err)
}

// finish stores the result of an event, and stops the bulk replay after a failure if it has StopOnFailure. It also
// stops one that was paused meanwhile: resuming must not skip the failure.
func finish(tx *store.Tx, b *hookglass.ReplayBatch, item hookglass.BatchItem) error {
	if err := tx.FinishBatchItem(b.Num, item); err != nil {
		return err
	}
	if !b.StopOnFailure || item.State == hookglass.ItemPassed {
		return nil
	}
	for _, state := range []hookglass.BatchState{hookglass.BatchRunning, hookglass.BatchPaused} {
		if moved, err := tx.MoveReplayBatch(b, state, hookglass.BatchStopped); err != nil || moved {
			return err
		}
	}
	return nil
}

// complete completes a bulk replay that has no event left.
func complete(tx *store.Tx, b *hookglass.ReplayBatch) error {
	left, err := tx.BatchItemsLeft(b.Num)
	if err != nil || left > 0 {
		return err
	}
	_, err = tx.MoveReplayBatch(b, hookglass.BatchRunning, hookglass.BatchCompleted)
	return err
}

// Run finishes what dead processes left behind, until ctx ends. Then the bulk replays of this process stop after the
// event in progress, and other processes continue them.
func (s *Service) Run(ctx context.Context) error {
	defer s.leave()
	// With an embedded database this is the only process, so whatever began before now has no worker.
	cutoff := s.db.Now() // the clock that markers are written by, shared by all nodes
	if s.db.Postgres() {
		cutoff = cutoff.Add(-stillMoving)
	}
	every := time.NewTicker(10 * time.Second)
	defer every.Stop()
	for {
		if err := s.Sweep(ctx, cutoff); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "interrupted replays could not be looked for", "error", err)
		}
		select {
		case <-every.C:
			cutoff = s.db.Now().Add(-stillMoving)
		case <-ctx.Done():
			return nil
		}
	}
}

// Purge deletes case runs and bulk replays that ended longer ago than their account's retention, and cancels bulk
// replays that have been paused for as long.
func (s *Service) Purge(ctx context.Context) error {
	canceled := s.db.UpdateInPieces(ctx, func(tx *store.Tx) (more bool, err error) { return tx.CancelReplayBatches(s.Retention) })
	for {
		due, err := store.Read(ctx, s.db, hookglass.System, func(v *store.View) (store.OverdueReplays, error) {
			return v.ReplaysDue(s.db.Now(), s.Retention)
		})
		if err == nil && !due.None() {
			err = s.db.UpdateInPieces(ctx, func(tx *store.Tx) (more bool, err error) { return tx.PurgeReplays(due) })
		}
		if err != nil || due.None() {
			return errors.Join(canceled, err)
		}
	}
}

// lost is the failure of a request that was in progress when its process died.
var lost = hookglass.Failure{Code: "interrupted", Message: "The service stopped while the request was under way, so it is not known whether the target received it."}

// Sweep marks runs and events as unknown that began before begunBefore and have no result, and enqueues new jobs for
// those that lost theirs.
func (s *Service) Sweep(ctx context.Context, begunBefore time.Time) error {
	return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
		runs, err := tx.OrphanedReplayRuns(begunBefore, sweepRows)
		if err != nil {
			return err
		}
		for _, r := range runs {
			r.State = hookglass.RunUnknown
			if s.tryResult(ctx, &r) { // a result that cannot be read now is not overwritten
				r.Failure = &lost
				if err := s.sealResult(&r); err != nil {
					return err
				}
			}
			if _, err := tx.FinishReplayRun(&r); err != nil {
				return err
			}
		}
		orphans, err := tx.OrphanedBatchItems(begunBefore, sweepRows)
		if err != nil {
			return err
		}
		for _, o := range orphans {
			o.Item.State, o.Item.Failure = hookglass.ItemUnknown, &lost
			if err := finish(tx, &o.Batch, o.Item); err != nil {
				return err
			}
			if o.Batch.State == hookglass.BatchRunning {
				tx.Enqueue(hookglass.ReplayBatchJob{BatchID: o.Batch.ID}) // its job gave up: the event was in progress
			}
		}
		if err := tx.RequeueReplayRuns(tx.Now.Add(-queuedTooOld), sweepRows); err != nil {
			return err
		}
		return tx.RequeueReplayBatches(tx.Now.Add(-stillMoving), sweepRows)
	})
}
