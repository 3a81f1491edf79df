package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/delivery"
	"hookglass/internal/jsondoc"
	"hookglass/internal/store"
)

// slack is what a run may take besides its delivery. A run that began longer than Timeout and slack ago has no worker.
const slack = 10 * time.Second

// ExecuteRun sends a queued run once and checks the response. It does nothing for a run that is no longer queued: its
// worker, or the sweep, finishes it. After an error ExecuteRun may be called again.
func (s *Service) ExecuteRun(ctx context.Context, runID string) error {
	q, err := s.readRun(ctx, runID)
	defer q.give()
	if err != nil {
		return s.unsendable(ctx, q.run, err)
	}
	if q.run.State != hookglass.RunQueued {
		return nil
	}
	out, err := s.prepare(ctx, &q)
	if err != nil {
		return s.unsendable(ctx, q.run, err)
	}
	end, err := s.turn(q.source)
	if err != nil {
		return s.postpone(ctx, q.run, err)
	}
	defer end()
	r := q.run
	request := keepRequest(out.SentRequest, delivery.Secrets(q.configs, out.Headers))
	request.Body = nil // it is in the case
	r.Request = &request
	if err := s.sealResult(&r); err != nil {
		return err
	}
	var begun bool
	err = s.take(ctx, func(tx *store.Tx) error {
		begun, err = tx.BeginReplayRun(&r)
		return err
	})
	if err != nil || !begun {
		return err
	}
	got, blocked := s.send(ctx, q.source, q.target, r.ID, out)
	q.settle(&r, got, blocked)
	return s.finish(ctx, r)
}

// unsendable postpones a run that cannot be sent, or blocks it for good.
func (s *Service) unsendable(ctx context.Context, r hookglass.ReplayCaseRun, why error) error {
	var blocked *hookglass.Error
	switch {
	case hookglass.Is(why, hookglass.CodeUnavailable):
		return why
	case errors.Is(why, errNoRoom):
		return s.postpone(ctx, r, why)
	case errors.As(why, &blocked):
		r.Failure = &hookglass.Failure{Code: string(blocked.Code), Message: blocked.Message}
	default: // waiting would not help
		s.Log.ErrorContext(ctx, "a run of a replay case cannot be sent", "run", r.ID, "error", why)
		r.Failure = &hookglass.Failure{Code: string(hookglass.CodeInternal), Message: "The run could not be prepared; the reason is in the service's log."}
	}
	r.State = hookglass.RunBlocked
	return s.finish(ctx, r)
}

// finish stores the final state, even if the worker was told to stop.
func (s *Service) finish(ctx context.Context, r hookglass.ReplayCaseRun) error {
	if err := s.sealResult(&r); err != nil {
		return err
	}
	return s.db.Persist(ctx, recordTimeout, hookglass.System, func(tx *store.Tx) error {
		_, err := tx.FinishReplayRun(&r)
		return err
	})
}

// CaseRuns lists the runs of an endpoint's cases, newest first; only those with a Num below before, unless it is 0, and
// only those of caseID, if given. It leaves out a result that cannot be opened, for example because its key is missing.
func (s *Service) CaseRuns(ctx context.Context, who hookglass.Principal, ref, caseID string, before int64, limit int) (runs []hookglass.ReplayCaseRun, err error) {
	runs, err = store.Read(ctx, s.db, who, func(v *store.View) ([]hookglass.ReplayCaseRun, error) {
		return v.ReplayRuns(ref, caseID, before, limit)
	})
	for i := range runs {
		s.tryResult(ctx, &runs[i])
	}
	return runs, err
}

// tryResult opens the result of a run, and reports whether it could.
func (s *Service) tryResult(ctx context.Context, r *hookglass.ReplayCaseRun) bool {
	err := s.openResult(r)
	if err != nil {
		s.Log.ErrorContext(ctx, "the result of a run of a replay case cannot be read", "run", r.ID, "error", err)
	}
	return err == nil
}

// CaseRun returns one run, or not_found.
func (s *Service) CaseRun(ctx context.Context, who hookglass.Principal, ref, id string) (r hookglass.ReplayCaseRun, err error) {
	r, err = store.Read(ctx, s.db, who, func(v *store.View) (hookglass.ReplayCaseRun, error) { return v.ReplayRun(ref, id) })
	if err == nil {
		err = s.openResult(&r)
	}
	return r, err
}

// queuedRun is a run with what it sends and the assertions on its response.
type queuedRun struct {
	run hookglass.ReplayCaseRun
	source
	snapshot   []byte // sealed
	target     string
	assertions hookglass.Assertions
	give       func() // returns the room for the body
}

// settle sets the outcome of a run from its delivery; blocked means that nothing was sent.
func (q *queuedRun) settle(r *hookglass.ReplayCaseRun, got delivery.Outcome, blocked bool) {
	r.Duration = got.Duration
	secrets := delivery.Secrets(q.configs, got.Headers)
	r.Request.Headers = delivery.RedactHeaders(got.Headers, secrets)
	switch {
	case got.Forbidden != nil, blocked:
		r.State, r.Failure = hookglass.RunBlocked, got.Failure
		return
	case got.Failure != nil && got.MaySent:
		r.State, r.Failure = hookglass.RunUnknown, got.Failure
		return
	case got.Failure != nil:
		r.State, r.Failure = hookglass.RunTransportFailed, got.Failure
		return
	}
	r.State = hookglass.RunPassed
	var passed bool
	if r.Assertions, passed = Judge(q.assertions, got.Response); !passed {
		r.State = hookglass.RunAssertionFailed
	}
	for i, a := range r.Assertions {
		if secrets.Secrets(string(a.Actual)) != string(a.Actual) {
			r.Assertions[i].Actual = []byte(`"` + hookglass.Redacted + `"`)
		}
	}
	r.Response = keepResponse(delivery.Readable(got.Response), secrets)
}

// postpone keeps a run queued on purpose, so that the sweep does not take its job for lost.
func (s *Service) postpone(ctx context.Context, r hookglass.ReplayCaseRun, why error) error {
	return errors.Join(why, s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.PostponeReplayRun(r.Num) }))
}

// readRun reads a run and, while it is queued, what is needed to send it. An error with a code blocks the run, except
// errNoRoom. The caller must call give, even after an error, when it no longer needs the request.
func (s *Service) readRun(ctx context.Context, runID string) (q queuedRun, err error) {
	q.run.ID, q.give = runID, func() {}
	err = s.db.View(ctx, hookglass.System, func(v *store.View) error {
		r, err := v.ReplayRunByID(runID)
		if hookglass.Is(err, hookglass.CodeNotFound) {
			return nil // its endpoint was deleted
		} else if err != nil {
			return err
		}
		if q.run = r; r.State != hookglass.RunQueued {
			return nil
		}
		if q.endpoint, err = v.EndpointByNum(r.EndpointNum); err != nil {
			return err
		}
		if size, err := v.CaseSnapshotSize(r.CaseNum); err == nil {
			give, ok := s.bodies.Take(q.key(), size)
			if !ok {
				return errNoRoom
			}
			q.give = give
		} else if !hookglass.Is(err, hookglass.CodeNotFound) {
			return err
		}
		var version int64
		switch q.snapshot, version, err = v.CaseSnapshot(r.CaseNum); {
		case hookglass.Is(err, hookglass.CodeNotFound):
			return hookglass.Errorf(hookglass.CodeNotFound, "The replay case was deleted before the run began.")
		case err != nil:
			return err
		case version != r.SnapshotVersion:
			return hookglass.Errorf(hookglass.CodeConflict, "The replay case was given another source before the run began.")
		}
		return s.fill(v, &q.source)
	})
	return q, err
}

// prepare unseals the run and builds its request. An error with a code blocks the run.
func (s *Service) prepare(ctx context.Context, q *queuedRun) (out delivery.Request, err error) {
	var c hookglass.ReplayCaseConfig
	if err := s.open(q.run.Sealed, configIn(q.run.ID), &c); err != nil {
		return out, unreadable(err)
	}
	var snap snapshot
	if err := s.open(q.snapshot, snapshotIn(q.run.CaseID), &snap); err != nil {
		return out, unreadable(err)
	}
	q.event, q.assertions, q.target = snap.event(q.endpoint), c.Assertions, c.TargetURL
	if err := s.judged(ctx, q.endpoint, q.event); err != nil {
		return out, err
	}
	if err := q.permits(c.Options); err != nil {
		return out, err
	}
	if c.TargetURL == hookglass.TunnelTarget && !q.endpoint.TunnelActive {
		return out, &hookglass.Error{Code: hookglass.Code(hookglass.NoTunnel.Code), Message: hookglass.NoTunnel.Message}
	}
	if err := s.checkTarget("target_url", c.TargetURL); err != nil {
		return out, err
	}
	return delivery.Build(s.order(q.source, c.TargetURL, c.Options, s.db.Now()))
}

// judged adds the authentication verdict to a mail whose case was created before the verdict came. The mail must still
// be stored.
func (s *Service) judged(ctx context.Context, e hookglass.Endpoint, mail *hookglass.Event) error {
	if mail.Type != hookglass.EventEmail || mail.Authentication.SPF != hookglass.AuthPending {
		return nil
	}
	return s.db.View(ctx, hookglass.System, func(v *store.View) error {
		kept, err := v.ListedEvent(string(e.ID), string(mail.ID))
		if err == nil {
			mail.Authentication = kept.Authentication
		} else if hookglass.Is(err, hookglass.CodeNotFound) {
			return nil
		}
		return err
	})
}

// unreadable is the error for a case that no key of the keyset opens. It will not open later either.
func unreadable(err error) error {
	return &hookglass.Error{Code: hookglass.CodeInternal, Message: "The replay case cannot be read: its encryption key is missing.", Err: err}
}

// Judge checks a response against assertions. It is pure, and also serves cases that are run outside the server.
func Judge(a hookglass.Assertions, res *hookglass.TargetResponse) (results []hookglass.AssertionResult, passed bool) {
	passed = true
	add := func(r hookglass.AssertionResult) {
		passed = passed && r.Passed
		results = append(results, r)
	}
	status := []byte(strconv.Itoa(res.Status))
	if a.StatusClass != "" {
		add(hookglass.AssertionResult{Kind: "status", Expected: fmt.Appendf(nil, "%q", a.StatusClass), Actual: status, Passed: strings.HasPrefix(string(status), a.StatusClass[:1])})
	}
	if a.StatusCode != 0 {
		add(hookglass.AssertionResult{Kind: "status", Expected: []byte(strconv.Itoa(a.StatusCode)), Actual: status, Passed: res.Status == a.StatusCode})
	}
	if len(a.JSONSubset) == 0 {
		return results, passed
	}
	matched, parts, err := jsondoc.Subset(a.JSONSubset, coding.Plain(res.Body, res.Headers, jsondoc.MaxBytes))
	if err != nil {
		return results, false // not expected: it was validated when it was saved
	}
	passed = passed && matched
	if res.Truncated && len(parts) == 1 { // what was cut is no JSON; nobody should take it for an answer without the value
		parts[0].Actual = fmt.Appendf(nil, `"cut after %d bytes"`, len(res.Body))
	}
	for _, p := range parts {
		add(hookglass.AssertionResult{Kind: "json_subset", Path: p.Path, Expected: p.Expected, Actual: p.Actual, Passed: p.Matched})
	}
	return results, passed
}
