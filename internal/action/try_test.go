package action_test

import (
	"errors"
	"testing"

	"hookglass"
	"hookglass/internal/action"
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
		if _, err := b.actions.Backtest(t.Context(), b.who, string(b.ep.ID), a.ID, "", 1, &action.Draft{Steps: &missing}); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("a backtest of a draft that can not be saved: %v", err)
		}
		if got := fields(action.Draft{}); len(got) != 1 || got[0] != "endpoint_action.name" {
			t.Errorf("faults of %q", got)
		}
		if _, err := b.actions.Try(t.Context(), b.who, string(b.ep.ID), "act_nothing", "", d); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("an action that does not exist: %v", err)
		}
	})
}
