package action_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/store/storetest"
)

func TestTryingADraftStoresAndSendsNothing(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		name, tag := "Mark", "made only when it is saved"
		steps := []action.StepDraft{
			{Type: "tag", Config: []byte(`{"tag":"` + tag + `"}`)},
			{Type: "http_request", Config: []byte(`{"url":"https://crm.example.com/","body":"{{ request.method }}"}`)},
		}
		d := action.Draft{Name: &name, Steps: &steps}
		event := b.capture(`{}`)
		p, err := b.actions.Try(t.Context(), b.who, string(b.ep.ID), "", string(event.ID), d)
		must(t, err)
		if len(p.Steps) != 2 || p.Steps[1].Status != hookglass.StepCompleted || !p.Trigger.Matched {
			t.Errorf("%+v", p)
		}
		if len(b.net.requests()) > 0 {
			t.Error("it was sent")
		}

		fields := func(d action.Draft) (names []string) {
			t.Helper()
			_, err := b.actions.Try(t.Context(), b.who, string(b.ep.ID), "", "", d)
			var coded *hookglass.Error
			if !errors.As(err, &coded) {
				t.Fatalf("%v", err)
			}
			for _, f := range coded.Details {
				names = append(names, f.Field)
			}
			return names
		}
		missing := []action.StepDraft{
			{Type: "http_request", Config: []byte(`{"url":"https://crm.example.com/","headers":{"A":"{{ secrets.NONE }}"}}`)},
			{Type: "notify", Config: []byte(`{"channel":"nobody"}`)},
		}
		if got := fields(action.Draft{Name: &name, Steps: &missing}); len(got) != 2 || got[0] != "endpoint_action.steps.0.config.headers.A" || got[1] != "endpoint_action.steps.1.config.channel" {
			t.Errorf("faults of %q", got)
		}
		a := b.create(d)
		if _, err := b.actions.Backtest(t.Context(), b.who, string(b.ep.ID), a.ID, action.BacktestOf{Limit: 1, Draft: &action.Draft{Steps: &missing}}); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("a backtest of a draft that cannot be saved: %v", err)
		}
		if got := fields(action.Draft{}); len(got) != 1 || got[0] != "endpoint_action.name" {
			t.Errorf("faults of %q", got)
		}
		if _, err := b.actions.Try(t.Context(), b.who, string(b.ep.ID), "act_nothing", "", d); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("an action that does not exist: %v", err)
		}
	})
}

// Who asked for more events than came must be able to tell whether there are no others.
func TestABacktestThatEndedByItsTimeSaysSo(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Mark", step("tag", "Mark", `{"tag":"marked"}`)))
		const query = "header.x-wanted:yes"
		for range 600 { // more than are looked at before the time is
			b.capture(`{}`)
		}
		wanted := b.capture(`{}`, func(e *hookglass.Event) {
			e.Headers = append(e.Headers, hookglass.Header{Name: "X-Wanted", Value: "yes"})
		})
		for name, c := range map[string]struct {
			search, rehearse time.Duration
			limit            int64
			events           int
			complete         bool
		}{
			"all were looked at":     {time.Minute, time.Minute, 2, 1, true},
			"the search ended first": {1, time.Minute, 2, 1, false},
			"as many as were wanted": {1, time.Minute, 1, 1, true},
			"no time to rehearse":    {time.Minute, -1, 2, 0, false},
		} {
			b.actions.SetBacktestTimes(c.search, c.rehearse)
			got, err := b.actions.Backtest(t.Context(), b.who, string(b.ep.ID), a.ID, action.BacktestOf{Query: query, Limit: c.limit})
			must(t, err)
			if len(got.Events) != c.events || got.Complete != c.complete {
				t.Errorf("%s: %d events, complete %t", name, len(got.Events), got.Complete)
			}
			if c.events > 0 && got.Events[0].Stored.EventID != wanted.ID {
				t.Errorf("%s: tested on %s", name, got.Events[0].Stored.EventID)
			}
		}
	})
}

// A preview does not send, so what a step would do with the answer is not known: the step is neither failed nor done,
// and what does not look at it is rendered.
// The conditions of an action and those of its steps share the time for patterns (spec, "Limits"), of a preview as of a
// rerun, which runs its steps whatever the trigger says.
func TestTheTimeForPatternsIsOneForTriggerAndSteps(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	slow := "^(?:a+)+$|^/(a+)+(a+)+b"
	d := draft("Slow", step("tag", "Quick", `{"tag":"x"}`, on("request", "/method", "matches", `"^POST$"`)))
	var conditions []action.ConditionDraft
	for range 6 {
		conditions = append(conditions, action.ConditionDraft{Field: "request_path", Operator: "matches", Value: &slow})
	}
	d.Conditions = &conditions
	a := b.create(d)
	e := b.capture(`{}`, func(e *hookglass.Event) { e.Path = "/" + strings.Repeat("a", 50<<10) })
	t.Run("preview", func(t *testing.T) {
		t.Parallel()
		p, err := b.actions.Preview(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID))
		must(t, err)
		if st := p.Steps[0]; st.Status != hookglass.StepFailed || st.Failure.Code != hookglass.FailureCondition {
			t.Errorf("previewed as %s: %v", st.Status, st.Failure)
		}
	})
	t.Run("rerun", func(t *testing.T) {
		t.Parallel()
		r, err := b.actions.Rerun(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID), "")
		must(t, err)
		must(t, b.actions.ExecuteRun(t.Context(), r.ID))
		wantOutcome(t, b.runs(a)[0], "failed quick=failed(condition_error)")
	})
}

func TestAPreviewDoesNotJudgeByAnswersThatItHasNot(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		d := draft("Compose",
			step("http_request", "Ask", `{"url":"https://crm.example.com/"}`),
			step("http_request", "Send", `{"url":"https://crm.example.com/{{steps.ask.output.body.id}}"}`),
			step("transform", "Shape", `{"source":"steps.ask","operations":[{"op":"select","path":"/output/body"}]}`),
			step("transform", "Set", `{"source":"request","operations":[{"op":"set","path":"/a","from":"/steps/ask/output/body"}]}`),
			step("transform", "All", `{"source":"request","operations":[{"op":"set","path":"/a","from":"/steps"}]}`),
			step("transform", "Whole", `{"source":"request","operations":[{"op":"set","path":"/a","from":""}]}`),
			step("http_request", "Then", `{"url":"https://crm.example.com/","body":"{{steps.shape.output}}"}`),
			step("tag", "Known", `{"tag":"known"}`, on("steps.ask", "/output/status_code", "equals", "200")),
			step("tag", "After", `{"tag":"after"}`, on("steps.send", "/status", "equals", `"completed"`)),
			step("tag", "Asked", `{"tag":"asked"}`, on("steps.ask", "/status", "equals", `"completed"`)),
			step("http_request", "Wrong", `{"url":"https://crm.example.com/{{request.body.none}}"}`))
		stop := string(hookglass.FailureStop)
		d.FailurePolicy = &stop
		a := b.create(d)
		p, err := b.actions.Preview(t.Context(), b.who, string(b.ep.ID), a.ID, string(b.capture(`{"password":"swordfish"}`).ID))
		must(t, err)
		got := ""
		for _, st := range p.Steps {
			got += st.ReferenceKey + "=" + string(st.Status)
			if st.Reason != "" {
				got += "(" + st.Reason + ")"
			}
			if st.Failure != nil {
				got += "(" + st.Failure.Code + ")"
			}
			got += " "
		}
		const want = "ask=completed send=skipped(request_not_sent) shape=skipped(request_not_sent) set=skipped(request_not_sent) all=skipped(request_not_sent) " +
			"whole=skipped(request_not_sent) then=skipped(request_not_sent) known=skipped(request_not_sent) after=skipped(request_not_sent) asked=completed wrong=failed(template_error) "
		if got != want {
			t.Errorf("previewed as %s\nwant %s", got, want)
		}
		if len(p.Sensitive) > 0 {
			t.Errorf("blotted out: %v", p.Sensitive)
		}
		if len(b.net.requests()) > 0 {
			t.Error("it was sent")
		}
	})
}
