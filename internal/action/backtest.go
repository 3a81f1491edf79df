package action

import (
	"cmp"
	"context"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/jsondoc"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// Bounds of a backtest.
const (
	MaxBacktest      = 100 // events
	defaultBacktest  = 25
	backtestFor      = 20 * time.Second
	backtestDiffs    = 50 // of one event
	backtestDiffSize = 1 << 10
)

// Backtest is what an action would have done with past events, and what another configuration of it would have.
type Backtest struct {
	Events   []BacktestEvent
	Complete bool // false: the time for it, or for the search, ended first
}

// BacktestEvent is one event of a backtest.
type BacktestEvent struct {
	Stored      PreviewResult
	Submitted   *PreviewResult // nil: no other configuration was given
	Differences []BacktestDifference
	More        bool // there are more differences
}

// BacktestDifference is a place where what a step makes differs. A side that is nil has nothing there.
type BacktestDifference struct {
	Step, Path        string
	Stored, Submitted []byte // JSON
}

// BacktestOf says what an action is rehearsed on.
type BacktestOf struct {
	Query string // the events that are meant, in the query language; "": all
	Limit int64  // how many of them, 1 to [MaxBacktest]; 0: the default
	Draft *Draft // a configuration to rehearse beside the stored one; nil: none
}

// Backtest rehearses an action on the latest events that a query matches, newest first, and beside it what a draft
// would make of the action. Nothing is sent, and nothing is stored. It answers not_found, plan_required,
// subscription_required and validation_failed.
func (s *Service) Backtest(ctx context.Context, who hookglass.Principal, ref, actionID string, of BacktestOf) (b Backtest, err error) {
	if err := who.MayManage(); err != nil {
		return b, err
	}
	limit := cmp.Or(of.Limit, defaultBacktest)
	if limit < 1 || limit > MaxBacktest {
		return b, hookglass.Invalid("limit", "must be 1 to %d", MaxBacktest)
	}
	q, err := query.Filter{Q: of.Query, Ignored: "any"}.Parse(s.db.Now())
	if err != nil {
		return b, query.Named("query", err)
	}
	var a hookglass.Action
	var pl plan
	var page store.EventPage
	err = s.db.View(ctx, who, func(v *store.View) (err error) {
		if a, err = v.Action(ref, actionID); err != nil {
			return err
		}
		if pl.endpoint, pl.rights, err = permitted(v, ref); err != nil {
			return err
		}
		page, err = v.Events(ref, store.EventList{Query: q, Limit: int(limit), Patience: s.backtestSearch})
		return err
	})
	if err != nil {
		return b, err
	}
	stored, err := compile(a)
	if err != nil {
		return b, err
	}
	submitted, err := s.submitted(ctx, who, pl, a, of.Draft)
	if err != nil {
		return b, err
	}
	until := time.Now().Add(s.backtestTime)
	for _, listed := range page.Events {
		if time.Now().After(until) || ctx.Err() != nil {
			return b, ctx.Err()
		}
		tested, err := s.backtestOn(ctx, who, pl, listed.ID, stored, submitted)
		if hookglass.Is(err, hookglass.CodeNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return b, err
		}
		b.Events = append(b.Events, tested)
	}
	b.Complete = page.Next == 0 || len(page.Events) == int(limit) // the search may have ended by its own time
	return b, nil
}

// backtestOn rehearses on one event, which is held until then. submitted is nil where no draft was given.
func (s *Service) backtestOn(ctx context.Context, who hookglass.Principal, pl plan, id hookglass.EventID, stored, submitted *program) (t BacktestEvent, err error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	event, err := s.Hold(ctx, who, rehearsalTimes, func(v *store.View) (*hookglass.Event, error) {
		return v.Event(string(pl.endpoint.ID), string(id))
	})
	if err != nil {
		return t, err
	}
	sc := pl.scene(event)
	t.Stored = s.rehearse(sc, stored)
	if submitted != nil {
		other := s.rehearse(sc, submitted)
		t.Submitted = &other
		t.Differences, t.More = differences(t.Stored, other)
	}
	return t, nil
}

// submitted is what a draft makes of an action; nil without a draft.
func (s *Service) submitted(ctx context.Context, who hookglass.Principal, pl plan, a hookglass.Action, d *Draft) (*program, error) {
	if d == nil {
		return nil, nil
	}
	var changed hookglass.Action
	err := s.db.View(ctx, who, func(v *store.View) error {
		changed = a
		return s.apply(v, pl, *d, &changed)
	})
	if err != nil {
		return nil, err
	}
	return compile(changed)
}

// differences compares what the steps of two previews make, by reference key.
func differences(stored, submitted PreviewResult) (all []BacktestDifference, more bool) {
	var keys []string
	for _, st := range slices.Concat(stored.Steps, submitted.Steps) {
		if !slices.Contains(keys, st.ReferenceKey) {
			keys = append(keys, st.ReferenceKey)
		}
	}
	made := func(p PreviewResult, key string) *jsondoc.Value {
		for i := range p.Steps {
			if st := &p.Steps[i]; st.ReferenceKey == key && (st.Output != nil || st.Rendered != nil) {
				return &st.shown
			}
		}
		return nil
	}
	for _, key := range keys {
		left, right := made(stored, key), made(submitted, key)
		if left == nil && right == nil {
			continue
		}
		if left == nil || right == nil {
			all = append(all, BacktestDifference{Step: key, Stored: side(left), Submitted: side(right)})
			continue
		}
		found, rest := jsondoc.Diff(*left, *right, backtestDiffs-min(len(all), backtestDiffs))
		for _, d := range found {
			all = append(all, BacktestDifference{Step: key, Path: d.Path, Stored: side(d.Left), Submitted: side(d.Right)})
		}
		more = more || rest
	}
	return all, more
}

// side is one side of a difference, cut when it is long.
func side(v *jsondoc.Value) []byte {
	if v == nil {
		return nil
	}
	text := v.Bytes()
	if len(text) > backtestDiffSize {
		part, _ := cut(string(text), backtestDiffSize)
		return jsondoc.Text(part).Bytes()
	}
	return text
}
