package action_test

import (
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/action"
)

func TestReruns(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Again", step("tag", "Mark", `{"tag":"one"}`)))
		e := b.capture(body)
		b.work(e)
		first := b.runs(a)[0]
		ref := string(b.ep.ID)
		again, err := b.actions.Rerun(t.Context(), b.who, ref, a.ID, string(e.ID), "")
		must(t, err)
		if again.ParentID != first.ID || again.Status != hookglass.ActionRunQueued || !again.Rerun {
			t.Errorf("the rerun is %+v", again)
		}
		// The configuration that is current when it begins, whatever its trigger says.
		value := "other"
		steps := []action.StepDraft{step("tag", "Mark", `{"tag":"two"}`)}
		_, err = b.actions.Update(t.Context(), b.who, ref, a.ID, action.Draft{Steps: &steps, Conditions: &[]action.ConditionDraft{{Field: "event_type", Operator: "equals", Value: &value}}})
		must(t, err)
		for range 2 {
			must(t, b.actions.ExecuteRun(t.Context(), again.ID))
		}
		run := b.runs(a)[0]
		wantOutcome(t, run, "completed mark=completed")
		if run.Trigger.Matched || len(run.Trigger.Conditions) != 1 || strings.Join(b.event(e).Tags, ",") != "one,two" {
			t.Errorf("the trigger is %+v, the tags %v", run.Trigger, b.event(e).Tags)
		}
		if len(b.runs(a)) != 2 {
			t.Errorf("there are %d runs, want 2", len(b.runs(a)))
		}
		alone, err := b.actions.Rerun(t.Context(), b.who, ref, a.ID, "", first.ID)
		if err != nil || alone.EventID != e.ID || alone.ParentID != first.ID {
			t.Errorf("of a parent alone: %+v, %v", alone, err)
		}
		other := b.capture(body)
		for name, c := range map[string]struct {
			event, parent string
			code          hookglass.Code
		}{
			"no such event":  {"req_00000000000000000000000000", "", hookglass.CodeNotFound},
			"no such parent": {string(e.ID), "arun_00000000000000000000000000", hookglass.CodeNotFound},
			"another event":  {string(other.ID), first.ID, hookglass.CodeValidationFailed},
			"nothing":        {"", "", hookglass.CodeValidationFailed},
		} {
			if _, err := b.actions.Rerun(t.Context(), b.who, ref, a.ID, c.event, c.parent); hookglass.CodeOf(err) != c.code {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
		}
	})
}

// A rerun whose action is deleted before it begins says so, and counts for nothing.
func TestARerunEndsWithItsAction(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Gone", step("tag", "Mark", `{"tag":"one"}`), step("tag", "Too", `{"tag":"two"}`)))
		other := b.create(draft("Kept", step("tag", "Mark", `{"tag":"three"}`)))
		e := b.capture(body)
		ref := string(b.ep.ID)
		again, err := b.actions.Rerun(t.Context(), b.who, ref, a.ID, string(e.ID), "")
		must(t, err)
		kept, err := b.actions.Rerun(t.Context(), b.who, ref, other.ID, string(e.ID), "")
		must(t, err)
		must(t, b.actions.Delete(t.Context(), b.who, ref, a.ID))
		for _, r := range []hookglass.ActionRun{again, kept} {
			must(t, b.actions.ExecuteRun(t.Context(), r.ID))
		}
		run := b.runs(a)[0]
		wantOutcome(t, run, "failed mark=failed(not_found) too=stopped")
		if run.FinishedAt.IsZero() || run.Steps[0].Failure.Message != "The action was deleted before the rerun began." {
			t.Errorf("the run is %+v", run)
		}
		wantOutcome(t, b.runs(other)[0], "completed mark=completed")
		if got := b.totals(); got.Runs[hookglass.ActionRunFailed] != 0 || got.Runs[hookglass.ActionRunCompleted] != 1 {
			t.Errorf("the totals are %+v", got)
		}
	})
}

// A run that waits is stored while it runs, one of local steps when it has ended, a rerun before it begins.
func TestARunIsCreatedBeforeItStarts(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		local := b.create(draft("Local", step("tag", "Mark", `{"tag":"one"}`)))
		remote := b.create(draft("Remote", step("http_request", "Send", `{"url":"https://a.example.com/"}`)))
		e := b.capture(body)
		b.work(e)
		again, err := b.actions.Rerun(t.Context(), b.who, string(b.ep.ID), local.ID, string(e.ID), "")
		must(t, err)
		must(t, b.actions.ExecuteRun(t.Context(), again.ID))
		for _, r := range append(b.runs(local), b.runs(remote)...) {
			if r.CreatedAt.After(r.StartedAt) || r.StartedAt.After(r.FinishedAt) || r.CreatedAt.Before(e.ReceivedAt) {
				t.Errorf("a run was created at %v, started at %v and finished at %v, on what was received at %v", r.CreatedAt, r.StartedAt, r.FinishedAt, e.ReceivedAt)
			}
		}
	})
}

// A first run is stored when it has ended, so a rerun can be asked for before there is one to link it to.
func TestARerunIsTheChildOfAFirstRunThatIsStoredLater(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Again", step("tag", "Mark", `{"tag":"one"}`)))
		e := b.capture(body)
		again, err := b.actions.Rerun(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID), "")
		must(t, err)
		if again.ParentID != "" {
			t.Errorf("there is no first run yet, and the rerun is a child of %q", again.ParentID)
		}
		b.work(e)
		must(t, b.actions.ExecuteRun(t.Context(), again.ID))
		parents := make(map[string]string)
		for _, r := range b.runs(a) {
			parents[r.ID] = r.ParentID
		}
		delete(parents, "")
		first := parents[again.ID]
		if parent, stored := parents[first]; len(parents) != 2 || !stored || parent != "" || first == again.ID {
			t.Errorf("the parents are %v; %s is the rerun", parents, again.ID)
		}
	})
}
