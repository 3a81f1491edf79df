package action

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// totals counts runs until the counts are written down: many runs a second of one endpoint must not wait for one row.
type totals struct {
	mu     sync.Mutex
	counts map[totalsOf]*hookglass.ActionTotals
}

// totalsOf is what counts are of.
type totalsOf struct {
	endpointNum int64
	hour        int64
}

// add counts a run that has ended.
func (t *totals) add(r *hookglass.ActionRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[totalsOf]*hookglass.ActionTotals)
	}
	of := totalsOf{r.EndpointNum, r.FinishedAt.Unix() / 3600}
	c := t.counts[of]
	if c == nil {
		c = &hookglass.ActionTotals{Runs: map[hookglass.RunStatus]int64{}, Steps: map[hookglass.StepType]map[hookglass.StepStatus]int64{}, Failures: map[string]int64{}}
		t.counts[of] = c
	}
	c.Runs[r.Status]++
	truncated := false
	for _, st := range r.Steps {
		if c.Steps[st.Type] == nil {
			c.Steps[st.Type] = map[hookglass.StepStatus]int64{}
		}
		c.Steps[st.Type][st.Status]++
		truncated = truncated || st.Truncated
		switch st.Status {
		case hookglass.StepFailed:
			if st.Failure != nil {
				c.Failures[st.Failure.Code]++
			}
			fallthrough
		case hookglass.StepCompleted:
			c.TimedSteps++
			c.StepTime += st.Duration
		case hookglass.StepSkipped:
			if st.Reason == hookglass.ReasonConditionFalse {
				c.ConditionFalse++
			}
		}
	}
	if truncated {
		c.TruncatedTraces++
	}
}

func (t *totals) take() map[totalsOf]*hookglass.ActionTotals {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := t.counts
	t.counts = nil
	return counts
}

// count counts a run that has ended. When nobody writes totals down any more, it does.
func (s *Service) count(ctx context.Context, r *hookglass.ActionRun) {
	s.totals.add(r)
	if s.stopping.Load() {
		s.writeTotals(ctx)
	}
}

// totalsTimeout is for writing down what was counted.
const totalsTimeout = 5 * time.Second

// writeTotals writes down what was counted, also when the process stops. What the storage does not take is lost: it is
// a figure, not a record.
func (s *Service) writeTotals(ctx context.Context) {
	counts := s.totals.take()
	if len(counts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), totalsTimeout)
	defer cancel()
	order := slices.SortedFunc(maps.Keys(counts), func(a, b totalsOf) int {
		return cmp.Or(cmp.Compare(a.endpointNum, b.endpointNum), cmp.Compare(a.hour, b.hour))
	})
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
		for _, of := range order {
			if err := tx.AddActionTotals(of.endpointNum, time.Unix(of.hour*3600, 0), *counts[of]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.Log.Warn("figures on runs of actions were lost", "error", err)
	}
}
