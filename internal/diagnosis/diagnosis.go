// Package diagnosis puts together what is known of captured events and has it explained: why a signature fails, what
// became of each delivery and action, how two events differ. It hides where these facts are kept; what they mean is for
// package inspect.
//
// It only reads, and is safe for concurrent use.
package diagnosis

import (
	"cmp"
	"context"

	"hookglass"
	"hookglass/internal/inspect"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// Judge finds out about the signature of a webhook, as the capability that captures can. It answers not_found.
type Judge func(ctx context.Context, who hookglass.Principal, ref string, e *hookglass.Event) (inspect.Signature, error)

// Hold reads events as there is room for so many times their size until ctx is done, as the capability that captures
// can. It answers unavailable.
type Hold func(ctx context.Context, who hookglass.Principal, times int64, read func(*store.View) ([]*hookglass.Event, error)) ([]*hookglass.Event, error)

// eventTimes is how many times its size an event takes while it is explained or compared.
const eventTimes = 3

// Service is the capability.
type Service struct {
	db    *store.DB
	judge Judge
	hold  Hold
}

// New returns the service.
func New(db *store.DB, judge Judge, hold Hold) *Service { return &Service{db, judge, hold} }

// most is how many of each kind of thing are read of one event.
const most = 20

// Diagnose explains what became of an event. It answers not_found and unavailable.
func (s *Service) Diagnose(ctx context.Context, who hookglass.Principal, ref, eventID string) (d hookglass.Diagnosis, err error) {
	var c inspect.Case
	ctx, done := context.WithCancel(ctx)
	defer done()
	held, err := s.hold(ctx, who, eventTimes, func(v *store.View) ([]*hookglass.Event, error) {
		e, err := v.Event(ref, eventID)
		return []*hookglass.Event{e}, err
	})
	if err != nil {
		return d, err
	}
	c.Event = held[0]
	err = s.db.View(ctx, who, func(v *store.View) error {
		targets, err := v.ForwardingTargets(ref, 0, 0)
		if err != nil {
			return err
		}
		if c.Deliveries, c.Unmeant, err = forwards(v, ref, targets, c.Event); err != nil {
			return err
		}
		others, err := deliveries(v, ref, c.Event)
		if err != nil {
			return err
		}
		c.Deliveries = append(c.Deliveries, others...)
		if c.Runs, err = v.EventActionRuns(c.Event.Seq, most); err != nil {
			return err
		}
		actions, err := v.Actions(ref, 0, 0)
		c.Actions = make(map[string]string, len(actions))
		for _, a := range actions {
			c.Actions[a.ID] = a.Name
		}
		return err
	})
	if err != nil {
		return d, err
	}
	if c.Event.Type == hookglass.EventWebhook {
		sig, err := s.judge(ctx, who, ref, c.Event)
		if err != nil {
			return d, err
		}
		c.Signature = &sig
	}
	return inspect.Diagnose(c), nil
}

// Compare tells how two events differ. They may be of different endpoints. It answers not_found and unavailable.
func (s *Service) Compare(ctx context.Context, who hookglass.Principal, ref, eventID, otherRef, otherID string) (c hookglass.Comparison, err error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	both, err := s.hold(ctx, who, eventTimes, func(v *store.View) ([]*hookglass.Event, error) {
		left, err := v.Event(ref, eventID)
		if err != nil {
			return nil, err
		}
		right, err := v.Event(otherRef, otherID)
		return []*hookglass.Event{left, right}, err
	})
	if err != nil {
		return c, err
	}
	return inspect.Compare(both[0], both[1]), nil // which may take a second: others need the connection
}

// forwards are what became of an event on its way to forwarding targets, and those of the targets that it does not go
// to, since they have a condition.
func forwards(v *store.View, ref string, targets []hookglass.ForwardingTarget, e *hookglass.Event) (all []hookglass.Attempted, unmeant []hookglass.ForwardingTarget, err error) {
	for _, t := range targets {
		f, _, err := v.Forward(ref, t.ID, e.ID)
		if hookglass.Is(err, hookglass.CodeNotFound) {
			if when, err := query.ParseCondition(t.When); err == nil && t.Enabled && !when.Means(e) {
				unmeant = append(unmeant, t)
			}
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		a := hookglass.Attempted{Via: "target", To: t.Name, URL: t.URL, State: string(f.State), StatusCode: f.StatusCode, Attempts: len(f.Attempts), NextAt: f.NextAt, SameAs: f.SameAs}
		if !t.PausedAt.IsZero() {
			a.Paused = t.PauseReason
		}
		if n := len(f.Attempts); n > 0 {
			last := f.Attempts[n-1]
			a.At, a.StatusCode, a.Failure = last.At, last.StatusCode, last.Failure
		}
		all = append(all, a)
	}
	return all, unmeant, nil
}

// deliveries are the other ways by which an event went out: through the tunnel, by replays.
func deliveries(v *store.View, ref string, e *hookglass.Event) (all []hookglass.Attempted, err error) {
	reports, err := v.Reports(e.Seq, most)
	if err != nil {
		return nil, err
	}
	for _, r := range reports {
		to := cmp.Or(r.ResolvedURL, r.TargetURL)
		a := hookglass.Attempted{Via: "tunnel", To: to, State: "failed", StatusCode: r.StatusCode, Attempts: 1, At: r.At}
		if r.Delivered() {
			a.State = "delivered"
		} else if r.StatusCode == 0 {
			a.Failure = &hookglass.Failure{Code: r.FailureCategory}
		}
		all = append(all, a)
	}
	replays, err := v.Replays(ref, string(e.ID), 0, most)
	if err != nil {
		return nil, err
	}
	for _, r := range replays {
		a := hookglass.Attempted{Via: "replay", To: r.TargetURL, State: "failed", Failure: r.Failure, Attempts: 1, At: r.At, Verdict: r.Verdict}
		if r.Response != nil {
			a.StatusCode = r.Response.Status
		}
		if r.Passed() {
			a.State = "delivered"
		}
		all = append(all, a)
	}
	return all, nil
}
