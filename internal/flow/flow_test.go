package flow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
	"hookglass/internal/flow"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// yard is a database with an account and two endpoints.
type yard struct {
	t    *testing.T
	db   *store.DB
	who  hookglass.Principal
	a, b hookglass.Endpoint
	svc  *flow.Service
}

func each(t *testing.T, test func(t *testing.T, y *yard)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
		must(t, err)
		r, err := account.New(db, slog.New(slog.DiscardHandler)).Register(t.Context(), account.Registration{Email: "ada@example.com"})
		must(t, err)
		y := &yard{t: t, db: db, who: hookglass.Principal{Account: r.Account.ID, User: r.User.ID, Scopes: hookglass.System.Scopes}, svc: flow.New(db, slog.New(slog.DiscardHandler))}
		endpoints := endpoint.New(db, keys)
		for _, e := range []*hookglass.Endpoint{&y.a, &y.b} {
			name := "Shop"
			*e, err = endpoints.Create(t.Context(), y.who, endpoint.Draft{Name: &name})
			must(t, err)
		}
		test(t, y)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// node judges until it is stopped or the test ends.
func (y *yard) node() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	svc := flow.New(y.db, slog.New(slog.DiscardHandler))
	go func() { ended <- svc.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				y.t.Error(err)
			}
		})
	}
	y.t.Cleanup(stop)
	return stop
}

func (y *yard) capture(e hookglass.Endpoint, kind, body string) *hookglass.Event {
	y.t.Helper()
	return y.captureAt(y.db.Now(), e, kind, body)
}

func (y *yard) captureAt(now time.Time, e hookglass.Endpoint, kind, body string) *hookglass.Event {
	y.t.Helper()
	return y.captureWith(now, e, kind, body, store.Work{})
}

func (y *yard) captureWith(now time.Time, e hookglass.Endpoint, kind, body string, work store.Work) *hookglass.Event {
	y.t.Helper()
	ev := &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, now), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook, ReceivedAt: now,
		Method: "POST", Path: "/orders", URL: "http://example.com/", Proto: "HTTP/1.1", Size: int64(len(body)), Provider: "unknown", EventType: kind,
		SignatureStatus: hookglass.SignatureUnchecked, Payload: &hookglass.Payload{Body: []byte(body), Reply: &hookglass.Reply{Status: 200, Source: hookglass.SourceDefault}},
	}
	must(y.t, y.db.CaptureWith(y.t.Context(), y.who.Account, ev, work))
	return ev
}

func step(e hookglass.Endpoint, change func(*flow.StepDraft)) flow.StepDraft {
	d := flow.StepDraft{Endpoint: string(e.ID)}
	if change != nil {
		change(&d)
	}
	return d
}

func (y *yard) begin(d flow.Draft) hookglass.Flow {
	y.t.Helper()
	f, err := y.svc.Create(y.t.Context(), y.who, d, "")
	must(y.t, err)
	return f
}

// read returns a flow as it is stored.
func (y *yard) read(f hookglass.Flow) (now hookglass.Flow) {
	y.t.Helper()
	must(y.t, y.db.View(y.t.Context(), y.who, func(v *store.View) (err error) {
		now, err = v.Flow(f.ID)
		return err
	}))
	return now
}

// wait waits until a flow has ended.
func (y *yard) wait(f hookglass.Flow) hookglass.Flow {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), 2*time.Minute)
	defer cancel()
	f, err := y.svc.Wait(ctx, y.who, f.ID, -1, nil)
	must(y.t, err)
	return f
}

func TestAFlowIsJudgedFromWhatIsCaptured(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		stop := y.node()
		y.node() // a second one does no harm
		y.capture(y.a, "early", "{}")
		f := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{
			step(y.a, func(d *flow.StepDraft) {
				d.Key = "first"
				d.Extract = []hookglass.FlowExtract{{Name: "id", Source: "/id"}}
			}),
			step(y.b, func(d *flow.StepDraft) {
				d.Where = []hookglass.FlowWhere{{Part: "/order", Value: "{{steps.first.id}}"}}
			}),
		}})
		first := y.capture(y.a, "late", `{"id":"ord_1"}`)
		y.capture(y.b, "late", `{"order":"ord_2"}`)
		f, err := y.svc.Wait(t.Context(), y.who, f.ID, 1, nil)
		must(t, err)
		if f.Progress.Steps[0].Matched[0].EventID != first.ID {
			t.Errorf("the first was matched by %v", f.Progress.Steps[0].Matched)
		}
		stop() // the other goes on with it
		second := y.capture(y.b, "late", `{"order":"ord_1"}`)
		if f = y.wait(f); f.State != hookglass.FlowPassed || f.Progress.Steps[1].Matched[0].EventID != second.ID || f.Progress.Steps[1].Count != 1 {
			t.Errorf("it ended as %+v", f)
		}
	})
}

// Tags come from actions, and those run after an event was stored. A flow that names a tag takes nothing before it has
// what it may get, not from another endpoint either, and its time is not over before that.
func TestAFlowThatNamesATagWaitsForActions(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		svc, at := flow.New(y.db, slog.New(slog.DiscardHandler)), y.db.Now()
		round := func(what string, f *hookglass.Flow, want hookglass.FlowState) {
			t.Helper()
			at = at.Add(150 * time.Millisecond) // it looks again in less
			must(t, svc.Round(t.Context(), func() time.Time { return at }))
			must(t, y.db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
				*f, err = v.Flow(f.ID)
				return err
			}))
			if f.State != want {
				t.Errorf("%s: it is %s (%s), want %s", what, f.State, f.Progress.Message, want)
			}
		}
		tagged := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{
			step(y.a, func(d *flow.StepDraft) { d.Query = "tag:paid" }), step(y.b, nil),
		}})
		untagged := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, func(d *flow.StepDraft) { d.Query = "-tag:noise" })}})
		short := y.begin(flow.Draft{Timeout: 30 * time.Second, Steps: []flow.StepDraft{step(y.a, func(d *flow.StepDraft) { d.Query = "tag:paid" })}})
		indifferent := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, nil)}})
		at = y.db.Now()
		waits := y.captureWith(at, y.a, "order", "{}", store.Work{Tasks: []store.TaskKind{store.TaskActions}})
		y.captureWith(y.db.Now(), y.b, "receipt", "{}", store.Work{Tasks: []store.TaskKind{store.TaskActions}}) // of which nothing is named
		round("actions are to run", &indifferent, hookglass.FlowPassed)
		var running []store.Task
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
			running, err = tx.ClaimTasks(store.TaskActions, y.a.Num, 1, time.Minute)
			return err
		}))
		at = at.Add(40 * time.Second)
		for _, f := range []*hookglass.Flow{&tagged, &untagged, &short} {
			round("actions are running", f, hookglass.FlowPending)
		}
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			for _, tag := range []string{"paid", "noise"} {
				if _, err := tx.TagEvent(string(y.a.ID), string(waits.ID), tag); err != nil {
					return err
				}
			}
			return tx.EndTasks(running)
		}))
		round("it has its tags", &tagged, hookglass.FlowPassed)
		round("it has its tags", &short, hookglass.FlowPassed)
		round("it has its tags", &untagged, hookglass.FlowPending)
		if n := untagged.Progress.Steps[0].NearMiss; n != nil {
			t.Errorf("it came near with %+v", n)
		}
		y.captureWith(at.Add(-2*time.Minute), y.a, "order", "{}", store.Work{Tasks: []store.TaskKind{store.TaskActions}})
		y.captureAt(at, y.a, "order", "{}")
		round("one is behind it", &untagged, hookglass.FlowPending)
		round("actions that take longer than a minute are not waited for", &untagged, hookglass.FlowPassed)
	})
}

func TestAFlowExpiresAndTellsWhy(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		f := y.begin(flow.Draft{Timeout: 100 * time.Millisecond, Steps: []flow.StepDraft{step(y.a, func(d *flow.StepDraft) { d.EventType = "paid" })}})
		near := y.captureAt(f.StartedAt, y.a, "refunded", "{}")
		y.node()
		f = y.wait(f)
		if n := f.Progress.Steps[0].NearMiss; f.State != hookglass.FlowExpired || n == nil || n.EventID != near.ID || n.Faults[0].Actual != "refunded" {
			t.Errorf("%+v", f)
		}
	})
}

// Flows that watch one endpoint share what was read of it. What arrives at any moment while the first of them are judged
// is in time for the others, however long that takes.
func TestAFlowWaitsForItsTurnInARound(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		plan := flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.b, nil)}}
		for moment := range 7 {
			y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, nil), step(y.b, nil)}})
			waiting := []hookglass.Flow{y.begin(plan), y.begin(plan)}
			svc, looks, ahead := flow.New(y.db, slog.New(slog.DiscardHandler)), 0, time.Duration(0)
			now := func() time.Time {
				if looks++; looks == 1+moment {
					y.capture(y.b, "late", "{}")
					ahead = 2 * time.Hour
				}
				return y.db.Now().Add(ahead)
			}
			must(t, svc.Round(t.Context(), now))
			must(t, svc.Round(t.Context(), now))
			for i, f := range waiting {
				if f = y.wait(f); f.State != hookglass.FlowPassed {
					t.Errorf("moment %d: flow %d ended as %s: %s", moment, i+1, f.State, f.Progress.Message)
				}
			}
		}
	})
}

// What came before a flow began counts where it is asked for, and what was stored while no node judged counts in any
// case.
func TestNothingIsMissedAroundTheBeginning(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		old := y.capture(y.a, "old", "{}")
		f := y.begin(flow.Draft{Since: y.db.Now().Add(-time.Minute), Steps: []flow.StepDraft{step(y.a, nil), step(y.a, nil)}})
		fresh := y.capture(y.a, "fresh", "{}")
		y.node()
		f = y.wait(f)
		if f.State != hookglass.FlowPassed || f.Progress.Steps[0].Matched[0].EventID != old.ID || f.Progress.Steps[1].Matched[0].EventID != fresh.ID {
			t.Errorf("%+v", f.Progress)
		}
	})
}

// What came before a flow began counts where it is asked for, and takes none of the time that steps have.
func TestReachingBackTakesNoTimeFromSteps(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.node()
		for _, anyTurn := range []bool{false, true} {
			f := y.begin(flow.Draft{Timeout: time.Hour, Since: y.db.Now().Add(-time.Minute), AnyTurn: anyTurn, Steps: []flow.StepDraft{
				step(y.a, func(d *flow.StepDraft) { d.EventType, d.Within = "fresh", 10*time.Minute }),
			}})
			if left := f.Progress.Steps[0].Until.Sub(y.db.Now()); left < 9*time.Minute+30*time.Second || left > 10*time.Minute {
				t.Errorf("any turn %v: the step has %s", anyTurn, left)
			}
			y.capture(y.a, "fresh", "{}")
			if f = y.wait(f); f.State != hookglass.FlowPassed {
				t.Errorf("any turn %v: %+v", anyTurn, f.Progress)
			}
		}
	})
}

// A node that is killed says nothing any more: another goes on when its lease has ended, and an event that was counted
// is not counted again.
func TestAFlowOutlivesItsNode(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		stop := y.node()
		f := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, func(d *flow.StepDraft) { d.Count = 3 })}})
		for version := f.Version; version < 3; {
			y.capture(y.a, "x", "{}")
			got, err := y.svc.Wait(t.Context(), y.who, f.ID, version, nil)
			must(t, err)
			version = got.Version
		}
		stop()
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			_, err := tx.ClaimFlows(10, time.Second) // who is killed now
			return err
		}))
		y.capture(y.a, "x", "{}")
		y.node()
		if f = y.wait(f); f.State != hookglass.FlowPassed || f.Progress.Steps[0].Count != 3 || len(f.Progress.Steps[0].Matched) != 3 {
			t.Errorf("%+v", f.Progress)
		}
	})
}

// What a node wrote after its lease was lost is not kept.
func TestWhoLostAFlowCanNotWrite(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.begin(flow.Draft{Steps: []flow.StepDraft{step(y.a, nil)}})
		claim := func() (held []store.HeldFlow) {
			must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
				held, err = tx.ClaimFlows(10, -time.Second)
				return err
			}))
			return held
		}
		first, second := claim(), claim()
		save := func(h store.HeldFlow) (kept bool) {
			h.State, h.FinishedAt = hookglass.FlowPassed, y.db.Now()
			must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
				kept, err = tx.SaveFlow(h)
				return err
			}))
			return kept
		}
		if save(first[0]) || !save(second[0]) || save(second[0]) {
			t.Error("a flow is written by who holds it, once to its end")
		}
	})
}

func TestTheSameKeyGivesTheSameFlow(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		d := flow.Draft{Name: "one", Steps: []flow.StepDraft{step(y.a, nil)}}
		var ids sync.Map
		var begun sync.WaitGroup
		for range 4 {
			begun.Go(func() {
				f, err := y.svc.Create(t.Context(), y.who, d, "deploy")
				if err != nil {
					t.Error(err)
				}
				ids.Store(f.ID, true)
			})
		}
		begun.Wait()
		n := 0
		ids.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Errorf("%d flows", n)
		}
		d.Name = "two"
		if _, err := y.svc.Create(t.Context(), y.who, d, "deploy"); !hookglass.Is(err, hookglass.CodeIdempotencyConflict) {
			t.Errorf("another flow: %v", err)
		}
		if _, err := y.svc.Create(t.Context(), y.who, d, strings.Repeat("é", 255)); err != nil {
			t.Errorf("255 characters: %v", err)
		}
		for _, key := range []string{strings.Repeat("é", 256), "\xff", "a\x00b"} {
			if _, err := y.svc.Create(t.Context(), y.who, d, key); !hookglass.Is(err, hookglass.CodeValidationFailed) {
				t.Errorf("%q: %v", key, err)
			}
		}
	})
}

// What began is told again whatever has become of what it was begun with.
func TestAKeyGivesAFlowThatCouldNotBeginAnyMore(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		gone := flow.Draft{Steps: []flow.StepDraft{step(y.a, nil), step(y.b, nil)}}
		began, err := y.svc.Create(t.Context(), y.who, gone, "deploy")
		must(t, err)
		must(t, y.db.Update(t.Context(), y.who, func(tx *store.Tx) error { return tx.DeleteEndpoint(&y.b) }))
		if again, err := y.svc.Create(t.Context(), y.who, gone, "deploy"); err != nil || again.ID != began.ID {
			t.Errorf("an endpoint is gone: %s, %v", again.ID, err)
		}
		longAgo := flow.Draft{Since: y.db.Now().Add(-time.Minute), Steps: []flow.StepDraft{step(y.a, nil)}}
		began, err = y.svc.Create(t.Context(), y.who, longAgo, "later")
		must(t, err)
		longAgo.Since = y.db.Now().Add(-2 * time.Hour) // as it is by then
		if again, err := y.svc.Create(t.Context(), y.who, longAgo, "later"); err != nil || again.ID != began.ID {
			t.Errorf("it reaches back too far: %s, %v", again.ID, err)
		}
		gone.Name = "another"
		for key, d := range map[string]flow.Draft{"deploy": gone, "new": gone} {
			if _, err := y.svc.Create(t.Context(), y.who, d, key); !hookglass.Is(err, hookglass.CodeValidationFailed) {
				t.Errorf("another flow under the key %s: %v", key, err)
			}
		}
		stranger := hookglass.Principal{Account: y.who.Account + 1, Scopes: y.who.Scopes}
		if _, err := y.svc.Create(t.Context(), stranger, longAgo, "later"); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("a stranger with the key: %v", err)
		}
	})
}

// A flow of an earlier version may expect what this one does not know.
func TestAFlowThatIsNotUnderstoodAnyMoreFails(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		f := y.begin(flow.Draft{Steps: []flow.StepDraft{step(y.a, nil)}})
		f.ID += "x"
		f.Plan.Steps = append(f.Plan.Steps, f.Plan.Steps[0])
		f.Plan.Steps[1].Key, f.Plan.Steps[1].Extract = "old", []hookglass.FlowExtract{{Name: "id", Source: "regex:("}}
		f.Progress.Steps = append(f.Progress.Steps, hookglass.FlowStepProgress{State: hookglass.FlowStepWaiting})
		must(t, y.db.Update(t.Context(), y.who, func(tx *store.Tx) error { return tx.CreateFlow(&f, "", []byte("x")) }))
		must(t, flow.New(y.db, slog.New(slog.DiscardHandler)).Round(t.Context(), y.db.Now))
		must(t, y.db.View(t.Context(), y.who, func(v *store.View) (err error) {
			f, err = v.Flow(f.ID)
			return err
		}))
		const why = "Step old failed. This version cannot read what it expects: extract has a pattern that is not valid (RE2)."
		if f.State != hookglass.FlowFailed || f.FinishedAt.IsZero() || f.Version != 2 || f.Progress.Message != why ||
			f.Progress.Steps[0].State != hookglass.FlowStepSkipped || f.Progress.Steps[1].State != hookglass.FlowStepFailed {
			t.Errorf("%+v", f)
		}
	})
}

func TestAFlowsNameIsALine(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		for _, name := range []string{"a\nb", "a\x00b", strings.Repeat("x", hookglass.MaxFlowText+1)} {
			d := flow.Draft{Name: name, Steps: []flow.StepDraft{step(y.a, nil)}}
			if _, err := y.svc.Create(t.Context(), y.who, d, ""); !hookglass.Is(err, hookglass.CodeValidationFailed) {
				t.Errorf("%.20q: %v", name, err)
			}
		}
	})
}

func TestAnAccountHasSoManyFlowsThatGoOn(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		d := flow.Draft{Steps: []flow.StepDraft{step(y.a, nil)}}
		var last hookglass.Flow
		for range hookglass.MaxLiveFlows {
			last = y.begin(d)
		}
		if _, err := y.svc.Create(t.Context(), y.who, d, ""); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("one more: %v", err)
		}
		must(t, y.svc.Delete(t.Context(), y.who, last.ID))
		y.node()
		y.begin(d)
		y.capture(y.a, "x", "{}") // one event ends them all
		for passed := 0; passed < hookglass.MaxLiveFlows; {
			must(t, y.db.View(t.Context(), y.who, func(v *store.View) error {
				found, err := v.Flows(hookglass.FlowPassed, 0, 200)
				passed = len(found)
				return err
			}))
		}
	})
}

func TestADeletedEndpointEndsAFlow(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.node()
		f := y.begin(flow.Draft{Steps: []flow.StepDraft{step(y.a, nil), step(y.b, nil)}})
		must(t, y.db.Update(t.Context(), y.who, func(tx *store.Tx) error { return tx.DeleteEndpoint(&y.b) }))
		if f = y.wait(f); f.State != hookglass.FlowFailed || f.Progress.Steps[1].Message != "Its endpoint was deleted." {
			t.Errorf("%+v", f)
		}
	})
}

// It fails once: at the first of its endpoints that is gone.
func TestAFlowAllOfWhoseEndpointsAreDeletedFailsAtTheFirst(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		f := y.begin(flow.Draft{Steps: []flow.StepDraft{step(y.a, nil), step(y.b, nil)}})
		must(t, y.db.Update(t.Context(), y.who, func(tx *store.Tx) error { return errors.Join(tx.DeleteEndpoint(&y.a), tx.DeleteEndpoint(&y.b)) }))
		must(t, flow.New(y.db, slog.New(slog.DiscardHandler)).Round(t.Context(), y.db.Now))
		if f = y.read(f); f.Progress.Message != "Step step1 failed. Its endpoint was deleted." || f.Progress.Steps[1].State != hookglass.FlowStepSkipped {
			t.Errorf("%+v", f)
		}
	})
}

// An endpoint all of whose steps have passed may go: what is captured for the others counts as before.
func TestAnEndpointWhoseStepsHavePassedMayBeDeleted(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.node()
		first := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, nil), step(y.b, func(d *flow.StepDraft) { d.EventType = "last" })}})
		between := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.b, nil), step(y.a, nil), step(y.b, nil)}})
		y.capture(y.b, "first", "{}")
		y.capture(y.a, "second", "{}")
		for _, f := range []hookglass.Flow{first, between} {
			for f.Progress.Steps[len(f.Progress.Steps)-2].State != hookglass.FlowStepPassed {
				var err error
				f, err = y.svc.Wait(t.Context(), y.who, f.ID, f.Version, nil)
				must(t, err)
			}
		}
		must(t, y.db.Update(t.Context(), y.who, func(tx *store.Tx) error { return tx.DeleteEndpoint(&y.a) }))
		y.capture(y.b, "last", "{}")
		for _, f := range []hookglass.Flow{first, between} {
			if f = y.wait(f); f.State != hookglass.FlowPassed {
				t.Errorf("%s: %s", f.State, f.Progress.Message)
			}
		}
	})
}

func TestAFlowIsOfOneWorkspace(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		stranger := hookglass.Principal{Account: y.who.Account + 1, Scopes: y.who.Scopes}
		if _, err := y.svc.Create(t.Context(), stranger, flow.Draft{Steps: []flow.StepDraft{step(y.a, nil)}}, ""); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("an endpoint of another account: %v", err)
		}
		f := y.begin(flow.Draft{Steps: []flow.StepDraft{step(y.a, nil)}})
		if _, err := y.svc.Wait(t.Context(), stranger, f.ID, -1, nil); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("a flow of another account: %v", err)
		}
		if err := y.svc.Delete(t.Context(), stranger, f.ID); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("deleting it: %v", err)
		}
	})
}

// A flood at an endpoint is read in pieces, and none of it is passed over.
func TestManyEventsAreJudged(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		all := step(y.a, func(d *flow.StepDraft) { d.Count = 700 })
		last := step(y.b, func(d *flow.StepDraft) { d.Where = []hookglass.FlowWhere{{Part: "/n", Value: "699"}} })
		flows := []hookglass.Flow{
			y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{all, last}}),
			y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{last, all}, AnyTurn: true}),
		}
		for n := range 700 {
			y.capture(y.a, "x", "{}")
			if n%100 == 99 {
				y.capture(y.b, "x", fmt.Sprintf(`{"n":%d}`, n)) // the last comes when the other step has passed
			}
		}
		y.node()
		for i, f := range flows {
			f = y.wait(f)
			if many := f.Progress.Steps[i]; f.State != hookglass.FlowPassed || many.Count != 700 || len(many.Matched) != 20 {
				t.Errorf("%s: %s, %d", f.State, f.Progress.Message, many.Count)
			}
		}
	})
}

// Events of several endpoints are judged in the order of their capture, whichever endpoint a flow names first.
func TestEventsOfTwoEndpointsAreJudgedInTheirOrder(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		f := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.b, nil), step(y.a, nil)}})
		early := y.capture(y.a, "x", "{}")
		y.capture(y.b, "x", "{}")
		must(t, flow.New(y.db, slog.New(slog.DiscardHandler)).Round(t.Context(), y.db.Now))
		steps := y.read(f).Progress.Steps
		if miss := steps[1].NearMiss; steps[0].State != hookglass.FlowStepPassed || steps[1].State != hookglass.FlowStepWatching || miss == nil || miss.EventID != early.ID {
			t.Errorf("%+v", steps)
		}
	})
}

// What was judged and could not be stored is judged again from what is stored: an event counts once.
func TestAnEventCountsOnceHoweverOftenItIsJudged(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		f := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, func(d *flow.StepDraft) { d.Count = 3 })}})
		node := flow.New(y.db, slog.New(slog.DiscardHandler))
		must(t, node.Round(t.Context(), y.db.Now))
		e := y.capture(y.a, "x", "{}")
		locked, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		lock := sync.OnceFunc(func() { close(locked) })
		go func() {
			ended <- y.db.Update(context.WithoutCancel(t.Context()), y.who, func(tx *store.Tx) error {
				err := tx.DeleteFlow(f.ID)
				lock()
				<-release
				return errors.Join(err, errors.New("it stays"))
			})
		}()
		<-locked
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // it hears of the event a moment later
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			err := node.Round(ctx, y.db.Now)
			cancel()
			if err != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Error("it is stored beside who holds the flow")
				break
			}
		}
		close(release)
		<-ended
		must(t, node.Look(t.Context())) // where the round ended before it heard
		must(t, node.Round(t.Context(), y.db.Now))
		if step := y.read(f).Progress.Steps[0]; step.Count != 1 || len(step.Matched) != 1 || step.Matched[0].EventID != e.ID {
			t.Errorf("%+v", step)
		}
	})
}

// The patterns of some flows, in large bodies, take longer than a view may: they go on piece by piece, and others have
// their turn between.
func TestSlowFlowsHoldUpNoOthers(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		since := y.db.Now().Add(-time.Second)
		for range 5 {
			y.capture(y.a, "slow", strings.Repeat("x", 1<<20))
		}
		slow := flow.Draft{Timeout: time.Hour, Since: since, Steps: []flow.StepDraft{step(y.a, func(d *flow.StepDraft) {
			d.Extract = []hookglass.FlowExtract{{Name: "id", Source: "regex:(x+x?)+(x|z){2,300}y"}}
		})}}
		other, goesOn := y.begin(slow), y.begin(slow)
		quick := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.b, nil)}})
		y.capture(y.b, "quick", "{}")
		svc := flow.New(y.db, slog.New(slog.DiscardHandler))
		round := func() { must(t, svc.Round(t.Context(), y.db.Now)) }
		for rounds := 0; rounds < 10 && quick.State == hookglass.FlowPending; rounds++ { // two, where nothing else runs
			round() // a view that takes too long fails
			quick = y.read(quick)
		}
		if quick.State != hookglass.FlowPassed {
			t.Errorf("the quick one is %s: %s", quick.State, quick.Progress.Message)
		}
		must(t, y.svc.Delete(t.Context(), y.who, other.ID))
		y.capture(y.a, "last", "xxxxy")
		for rounds := 0; rounds < 200 && goesOn.State == hookglass.FlowPending; rounds++ { // a dozen, where nothing else runs
			round()
			must(t, y.db.View(t.Context(), hookglass.System, func(v *store.View) (err error) { goesOn, err = v.Flow(goesOn.ID); return err }))
		}
		if goesOn = y.wait(goesOn); goesOn.State != hookglass.FlowPassed {
			t.Errorf("the slow one is %s: %s", goesOn.State, goesOn.Progress.Message)
		}
	})
}

// Events are read once for all flows of a round. One that comes while they are judged is not passed over by those for
// which it was not among what was read.
func TestAnEventBetweenTwoFlowsOfARoundIsJudgedForBoth(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		heard := y.db.Listen(store.TopicEvents(y.a.Num))
		defer heard.Close()
		for at := 1; at <= 6; at++ { // at which look at the clock the event comes
			flows := []hookglass.Flow{y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, nil)}}), y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, nil)}})}
			svc, looks := flow.New(y.db, slog.New(slog.DiscardHandler)), 0
			comes := func() time.Time {
				if looks++; looks == at {
					y.capture(y.a, "between", "{}")
					<-heard.C
				}
				return y.db.Now()
			}
			must(t, svc.Round(t.Context(), comes))
			passed := func() bool {
				return !slices.ContainsFunc(flows, func(f hookglass.Flow) bool {
					f, err := y.svc.Wait(t.Context(), y.who, f.ID, 0, nil)
					must(t, err)
					return f.State != hookglass.FlowPassed
				})
			}
			for began := time.Now(); !passed(); {
				if time.Since(began) > time.Minute {
					t.Fatalf("an event that came at look %d is not judged for each flow", at)
				}
				<-time.After(5 * time.Millisecond) // for the announcement
				must(t, svc.Round(t.Context(), y.db.Now))
			}
		}
	})
}

// Events may come faster than a flow is judged: it ends at its time, and does not say that none came that may not.
func TestAFlowThatIsBehindEndsAtItsTime(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		waits := step(y.a, func(d *flow.StepDraft) { d.EventType = "paid" })
		guards := step(y.a, func(d *flow.StepDraft) { d.EventType, d.Never, d.Within = "refunded", true, 10*time.Minute })
		f := y.begin(flow.Draft{Timeout: 10 * time.Minute, Steps: []flow.StepDraft{waits}})
		// Of several steps it ends at the one whose time is over and that has not passed.
		second := y.begin(flow.Draft{Timeout: 2 * time.Hour, Steps: []flow.StepDraft{step(y.a, nil), step(y.a, func(d *flow.StepDraft) { d.EventType, d.Within = "paid", 10*time.Minute })}})
		shorter := y.begin(flow.Draft{Timeout: 2 * time.Hour, AnyTurn: true, Steps: []flow.StepDraft{waits, step(y.a, func(d *flow.StepDraft) { d.EventType, d.Within = "paid", 10*time.Minute })}})
		once := y.begin(flow.Draft{Timeout: 2 * time.Hour, Steps: []flow.StepDraft{step(y.b, func(d *flow.StepDraft) { d.Count, d.Exactly, d.Within = 1, true, 10*time.Minute }), waits}})
		y.captureAt(once.StartedAt, y.b, "other", "{}")
		guarded := y.begin(flow.Draft{Timeout: 10 * time.Minute, Steps: []flow.StepDraft{guards, waits}})
		flood := func() {
			for range 250 { // more than are judged at once
				y.captureAt(guarded.StartedAt, y.a, "other", "{}")
			}
		}
		svc := flow.New(y.db, slog.New(slog.DiscardHandler))
		svc.LateFor(0)
		flood()
		must(t, svc.Round(t.Context(), y.db.Now))
		flood()
		must(t, svc.Round(t.Context(), func() time.Time { return y.db.Now().Add(time.Hour) }))
		const unseen = "Not all events could be checked"
		if f = y.wait(f); f.State != hookglass.FlowExpired || !f.FinishedAt.Equal(f.DeadlineAt) || !strings.HasPrefix(f.Progress.Message, "Step step1 expired. Nothing matched within 10m0s.") || !strings.Contains(f.Progress.Message, unseen) {
			t.Errorf("it is %s: %s", f.State, f.Progress.Message)
		}
		for i, f := range []hookglass.Flow{f, second, shorter} {
			if f = y.wait(f); f.Progress.Steps[min(i, 1)].State != hookglass.FlowStepExpired || !strings.HasPrefix(f.Progress.Message, fmt.Sprintf("Step step%d expired. Nothing matched within", min(i, 1)+1)) {
				t.Errorf("flow %d: %s, %+v", i, f.Progress.Message, f.Progress.Steps)
			}
		}
		if once = y.wait(once); once.State != hookglass.FlowExpired || once.Progress.Message != "Step step1 expired. "+unseen+": there were too many for the time that there is." {
			t.Errorf("what came once: %s: %s", once.State, once.Progress.Message)
		}
		if guarded = y.wait(guarded); guarded.State != hookglass.FlowExpired || !strings.HasPrefix(guarded.Progress.Message, "Step step1 expired. "+unseen) {
			t.Errorf("the guarded one is %s: %s", guarded.State, guarded.Progress.Message)
		}
	})
}

// While the storage is away nothing is judged, and a flow is not given up for it as soon as it is back.
func TestAFlowIsNotLateForAStorageThatIsAway(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.begin(flow.Draft{Timeout: 10 * time.Minute, Steps: []flow.StepDraft{step(y.a, nil)}})
		svc := flow.New(y.db, slog.New(slog.DiscardHandler))
		must(t, svc.Round(t.Context(), y.db.Now))
		ctx, away := context.WithCancel(t.Context())
		err := svc.Round(ctx, func() time.Time {
			away()
			return y.db.Now().Add(time.Hour)
		})
		if err == nil || svc.Late() != 0 {
			t.Errorf("late by %s, %v", svc.Late(), err)
		}
	})
}

// What a machine or a storage stood still for is no time in which a flow was judged: it is not given up for that before
// all that came in time was judged.
func TestAFlowIsNotLateForAMachineThatStoodStill(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		f := y.begin(flow.Draft{Timeout: 10 * time.Minute, Steps: []flow.StepDraft{step(y.a, func(d *flow.StepDraft) { d.EventType = "paid" })}})
		for range 201 { // more than are judged at once
			y.captureAt(f.StartedAt, y.a, "other", "{}")
		}
		svc, looks := flow.New(y.db, slog.New(slog.DiscardHandler)), 0
		must(t, svc.Round(t.Context(), func() time.Time {
			if looks++; looks == 2 { // while it is judged
				time.Sleep(300 * time.Millisecond)
			}
			return y.db.Now().Add(time.Hour)
		}))
		if late := svc.Late(); late == 0 || late >= 300*time.Millisecond {
			t.Errorf("late by %s", late)
		}
	})
}

// A step that is over while others go on is told at once, though nothing arrived.
func TestAStepThatPassesByTimeIsTold(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		f := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, func(d *flow.StepDraft) { d.Never, d.Within = true, time.Minute }), step(y.b, nil)}})
		must(t, flow.New(y.db, slog.New(slog.DiscardHandler)).Round(t.Context(), func() time.Time { return y.db.Now().Add(2 * time.Minute) }))
		if now := y.read(f); now.State != hookglass.FlowPending || now.Version != f.Version+1 || now.Progress.Steps[0].State != hookglass.FlowStepPassed {
			t.Errorf("%+v", now)
		}
	})
}

// An announcement may be lost: what was captured is found by looking now and then, and what others were sent is not
// taken for it.
func TestAnEventIsFoundWhoseAnnouncementWasLost(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		svc := flow.New(y.db, slog.New(slog.DiscardHandler))
		at, other := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, nil)}}), y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.b, nil)}})
		round := func() { must(t, svc.Round(t.Context(), y.db.Now)) }
		round()
		svc.Deafen()
		for _, missed := range []struct {
			of hookglass.Endpoint
			by hookglass.Flow
		}{{y.a, at}, {y.b, other}} { // since they were taken, and since it looked
			y.capture(missed.of, "x", "{}")
			if round(); y.read(missed.by).State != hookglass.FlowPending {
				t.Fatal("it was announced")
			}
			must(t, svc.Look(t.Context()))
			if round(); y.read(missed.by).State != hookglass.FlowPassed {
				t.Errorf("it is not found at %s", missed.of.ID)
			}
		}
	})
}

// What came long after a time was stored after all that came before it.
func TestAFlowThatIsBehindEndsAtAnEventThatCameLater(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		f := y.begin(flow.Draft{Timeout: 100 * time.Millisecond, Steps: []flow.StepDraft{step(y.a, func(d *flow.StepDraft) { d.EventType = "paid" })}})
		for range 250 {
			y.captureAt(f.DeadlineAt.Add(time.Minute), y.a, "paid", "{}")
		}
		svc := flow.New(y.db, slog.New(slog.DiscardHandler))
		must(t, svc.Round(t.Context(), func() time.Time { return y.db.Now().Add(time.Hour) }))
		if f = y.wait(f); f.State != hookglass.FlowExpired || f.Progress.Message != "Step step1 expired. Nothing matched within 100ms." {
			t.Errorf("it is %s: %s", f.State, f.Progress.Message)
		}
	})
}
