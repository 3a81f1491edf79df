package action_test

import (
	"testing"

	"hookglass"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

// Figures are written with the runs that they are of, by nothing else that a process might not come to.
func TestTotals(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.create(draft("Counted", step("tag", "Mark", `{"tag":"t"}`), step("http_request", "Bad", `{"url":"https://a.example.com/{{request.nothing}}"}`),
			step("tag", "Never", `{"tag":"t"}`, on("request", "/body/none", "exists", ""))))
		for range 3 {
			b.work(b.capture(body))
		}
		got := b.totals()
		if got.Runs[hookglass.ActionRunFailed] != 3 || got.Steps[hookglass.StepTag][hookglass.StepCompleted] != 3 || got.Steps[hookglass.StepRequest][hookglass.StepFailed] != 3 ||
			got.Failures[hookglass.FailureTemplate] != 3 || got.ConditionFalse != 3 || got.TimedSteps != 6 || got.TruncatedTraces != 0 {
			t.Errorf("the totals are %+v", got)
		}
	})
}

// A run that ends while the node stops counts too.
func TestTotalsOfANodeThatStops(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.create(draft("Counted", step("http_request", "Send", `{"url":"https://a.example.com/"}`), step("tag", "Mark", `{"tag":"t"}`)))
		b.net.respond = func(int, outbound.Request) (*outbound.Response, error) {
			b.stop()
			return answer(200, `{}`), nil
		}
		b.work(b.capture(body))
		if got := b.totals(); got.Runs[hookglass.ActionRunCompleted] != 1 || got.Steps[hookglass.StepTag][hookglass.StepCompleted] != 1 {
			t.Errorf("the totals are %+v", got)
		}
	})
}

// Every node looks for runs that are lost, and all may find the same.
func TestALostRunCountsOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(int, outbound.Request) (*outbound.Response, error) { return answer(503, "later"), nil }
		a := b.create(draft("Lost", step("forward", "On", `{"url":"https://app.example.com/x","retry_count":5}`)))
		e := b.capture(body)
		if err := b.actions.Work(t.Context(), task(e, 1)); !hookglass.Is(err, hookglass.CodeRateLimited) {
			t.Fatal(err)
		}
		var held []store.HeldRun
		must(t, b.db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
			held, err = v.FirstActionRuns(e.Seq)
			return err
		}))
		for range 2 {
			must(t, b.actions.Abandon(t.Context(), held[0]))
		}
		wantOutcome(t, b.runs(a)[0], "failed on=failed(outcome_unknown)")
		if got := b.totals(); got.Runs[hookglass.ActionRunFailed] != 1 {
			t.Errorf("the totals are %+v", got)
		}
	})
}

// stop has the node stop.
func (b *bench) stop() {
	ctx, stop := contextOf(b.t)
	stop()
	if err := b.actions.Run(ctx); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) totals() (got hookglass.ActionTotals) {
	b.t.Helper()
	must(b.t, b.db.View(b.t.Context(), b.who, func(v *store.View) (err error) {
		f, err := v.WindowFigures(string(b.ep.ID), "2h", "1h")
		got = f.Actions
		return err
	}))
	return got
}
