package alert_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/alert"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
)

// Every test judges on three nodes at the same time: what is triggered is triggered once.

func TestMissingWebhookIsTriggeredOnceAndResolvedByWhatArrives(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertMissingWebhook, alert.Settings{WindowMinutes: new(int64(5))})
		y.want("it has not watched for long enough", a, hookglass.AlertOK, 0)
		y.clock.advance(4 * time.Minute)
		y.want("not yet", a, hookglass.AlertOK, 0)
		y.clock.advance(time.Minute)
		y.want("nothing arrived", a, hookglass.AlertTriggered, 1)
		y.want("still nothing", a, hookglass.AlertTriggered, 1)
		hidden := y.capture("noise")
		y.update(func(tx *store.Tx) error { return tx.SetIgnored(string(y.ep.ID), string(hidden.ID), "noise") })
		y.want("what is ignored does not count", a, hookglass.AlertTriggered, 1)
		y.capture("x")
		y.want("something arrived", a, hookglass.AlertOK, 1)
		y.clock.advance(5*time.Minute + time.Second)
		y.want("nothing again", a, hookglass.AlertTriggered, 2)
	})
}

// What an alert has been through goes with the lines of the feed that tell of it: after the retention of the account.
func TestIncidentsGoWithTheActivityThatTellsOfThem(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertMissingWebhook, alert.Settings{WindowMinutes: new(int64(5))})
		const times = 25
		for range times {
			y.clock.advance(5*time.Minute + time.Second)
			y.judge(a)
			y.capture("x")
			y.judge(a)
		}
		y.clock.advance(5*time.Minute + time.Second)
		y.want("it goes on", a, hookglass.AlertTriggered, times+1)
		left := func(retention time.Duration) (n int) {
			y.update(func(tx *store.Tx) error {
				due, err := tx.IncidentsDue(y.clock.now(), retention)
				for err == nil && len(due) > 0 {
					due, err = tx.PurgeIncidents(due)
				}
				if err != nil {
					return err
				}
				found, err := tx.Incidents(string(y.ep.ID), a.ID, 0, 100)
				n = len(found)
				return err
			})
			return n
		}
		if n := left(time.Hour * 24 * 30); n != times+1 {
			t.Errorf("%d are left before the retention is over", n)
		}
		longer := time.Hour * 24 * 365
		if _, err := account.New(y.db, slog.New(slog.DiscardHandler)).SetAccount(t.Context(), y.who.Account, account.Change{Retention: &longer}); err != nil {
			t.Fatal(err)
		}
		y.clock.advance(24 * time.Hour)
		if n := left(time.Hour); n != times+1 {
			t.Errorf("%d are left of an account with a longer retention", n)
		}
		none := time.Duration(0)
		if _, err := account.New(y.db, slog.New(slog.DiscardHandler)).SetAccount(t.Context(), y.who.Account, account.Change{Retention: &none}); err != nil {
			t.Fatal(err)
		}
		if n := left(time.Hour); n != 1 {
			t.Errorf("%d are left, want the one that goes on", n)
		}
	})
}

func TestErrorResponseCountsBadDeliveriesAndHasHysteresis(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertErrorResponse, alert.Settings{Threshold: new(int64(4)), WindowMinutes: new(int64(10))})
		bad := func(e *hookglass.Event, source hookglass.OutcomeSource, status int, earlier bool) {
			y.update(func(tx *store.Tx) error {
				return tx.AddOutcomes(hookglass.Outcome{EndpointNum: y.ep.Num, EventSeq: e.Seq, Source: source, At: y.clock.now(), StatusCode: status, Earlier: earlier})
			})
		}
		bad(y.capture("a"), hookglass.OutcomeTarget, 500, false)
		bad(y.capture("b"), hookglass.OutcomeTarget, 399, false) // is none
		bad(y.capture("c"), hookglass.OutcomeStep, 400, false)
		bad(y.capture("c"), hookglass.OutcomeStep, 400, true) // was counted
		hidden := y.capture("d")
		bad(hidden, hookglass.OutcomeTunnel, 0, false)
		y.update(func(tx *store.Tx) error { return tx.SetIgnored(string(y.ep.ID), string(hidden.ID), "noise") })
		y.clock.advance(5 * time.Minute)
		bad(y.capture("e"), hookglass.OutcomeTunnel, 0, false)
		y.want("three of four", a, hookglass.AlertOK, 0)
		bad(y.capture("f"), hookglass.OutcomeTarget, 404, false)
		y.want("four", a, hookglass.AlertTriggered, 1)
		bad(y.capture("g"), hookglass.OutcomeTarget, 404, false)
		y.clock.advance(5*time.Minute + time.Second)
		y.want("three are more than half", a, hookglass.AlertTriggered, 1)
		y.clock.advance(5 * time.Minute)
		y.want("none is left", a, hookglass.AlertOK, 1)
		must(t, y.db.View(t.Context(), hookglass.System, func(v *store.View) error {
			all, err := v.Incidents(string(y.ep.ID), a.ID, 0, 1)
			if err == nil && all[0].Resolution != "No bad delivery is left in 10 minutes." {
				t.Errorf("it ended with %q", all[0].Resolution)
			}
			return err
		}))
		for _, body := range []string{"h", "i", "j", "k"} { // a target that redirects has not got them
			e := y.capture(body)
			y.update(func(tx *store.Tx) error {
				return tx.AddOutcomes(hookglass.Outcome{EndpointNum: y.ep.Num, EventSeq: e.Seq, Source: hookglass.OutcomeTarget, At: y.clock.now(), StatusCode: 301, Final: hookglass.OutcomeFailed})
			})
		}
		y.want("four that failed", a, hookglass.AlertTriggered, 2)
	})
}

func TestKeywordMatchStaysUntilTenQuietMinutes(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		y.capture("refund before the alert")
		a := y.watch(hookglass.AlertKeywordMatch, alert.Settings{Keyword: new("Refund"), Field: new("body")})
		y.want("what came before", a, hookglass.AlertOK, 0)
		hidden := y.capture("refund")
		y.update(func(tx *store.Tx) error { return tx.SetIgnored(string(y.ep.ID), string(hidden.ID), "noise") })
		y.capture("something else")
		y.want("no match", a, hookglass.AlertOK, 0)
		y.capture("a REFUND")
		y.want("a match", a, hookglass.AlertTriggered, 1)
		y.clock.advance(9 * time.Minute)
		y.capture("refund again")
		y.want("another", a, hookglass.AlertTriggered, 1)
		y.clock.advance(9 * time.Minute)
		y.capture("something else")
		y.want("nine minutes", a, hookglass.AlertTriggered, 1)
		y.clock.advance(time.Minute)
		y.want("ten minutes", a, hookglass.AlertOK, 1)
		y.capture("refund")
		y.want("and once more", a, hookglass.AlertTriggered, 2)
	})
}

// Where there is not the time for all, accounts have their turn one after another, and so have the alerts of each.
func TestAlertsHaveTheirTurns(t *testing.T) {
	for kind, config := range map[hookglass.AlertKind]alert.Settings{
		hookglass.AlertKeywordMatch:   {Keyword: new("refund")},
		hookglass.AlertMissingWebhook: {WindowMinutes: new(int64(1))},
	} {
		t.Run(string(kind), func(t *testing.T) {
			each(t, func(t *testing.T, y *yard) {
				r, err := account.New(y.db, slog.New(slog.DiscardHandler)).Register(t.Context(), account.Registration{Email: "bob@example.com"})
				must(t, err)
				other := *y
				other.who.Account, other.who.User = r.Account.ID, r.User.ID
				name := "Bob's"
				other.ep, err = endpoint.New(y.db, y.keys).Create(t.Context(), other.who, endpoint.Draft{Name: &name})
				must(t, err)
				yards := []*yard{y, y, y, &other}
				var alerts []hookglass.Alert
				for _, of := range yards {
					alerts = append(alerts, of.watch(kind, config))
				}
				y.capture("refund")
				other.capture("refund")
				svc := y.node()
				y.pass(2 * time.Minute)
				svc.NoTime()
				for round, want := range []string{"[true false false false]", "[true false false true]", "[true true false true]", "[true true false true]", "[true true true true]"} {
					must(t, svc.Evaluate(t.Context()))
					var triggered []bool
					must(t, y.db.View(t.Context(), hookglass.System, func(v *store.View) error {
						for i, a := range alerts {
							now, err := v.Alert(string(yards[i].ep.ID), a.ID)
							if err != nil {
								return err
							}
							triggered = append(triggered, now.State == hookglass.AlertTriggered)
						}
						return nil
					}))
					if got := fmt.Sprint(triggered); got != want {
						t.Errorf("round %d: %s, want %s", round+1, got, want)
					}
				}
			})
		})
	}
}

func TestAnAlertThatPanicsHoldsUpNoOther(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		bad, good := y.watch(hookglass.AlertMissingWebhook, alert.Settings{WindowMinutes: new(int64(1))}), y.watch(hookglass.AlertMissingWebhook, alert.Settings{WindowMinutes: new(int64(1))})
		var came []string
		err := y.node().Round(t.Context(), []hookglass.Alert{bad, good}, func(_ context.Context, a hookglass.Alert) error {
			if came = append(came, a.ID); a.ID == bad.ID {
				panic("it does not work")
			}
			return nil
		})
		if !slices.Equal(came, []string{bad.ID, good.ID}) || err == nil || !strings.HasPrefix(err.Error(), "alert "+bad.ID+": panic: it does not work\n") {
			t.Errorf("%v were evaluated, with the error %v", came, err)
		}
	})
}

// An alert would never get beyond an event over which the search panics: it passes over it, says so once, and goes on.
func TestKeywordMatchPassesOverAnEventThatPanics(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertKeywordMatch, alert.Settings{Keyword: new("refund"), Field: new("body")})
		bad, good := y.capture("refund"), y.capture("refund")
		var log bytes.Buffer
		svc := y.node()
		svc.Log = slog.New(slog.NewTextHandler(&log, nil))
		svc.PanicOver(bad.ID)
		for range 2 {
			must(t, svc.Evaluate(t.Context()))
		}
		must(t, y.db.View(t.Context(), hookglass.System, func(v *store.View) error {
			now, err := v.Alert(string(y.ep.ID), a.ID)
			if err != nil {
				return err
			}
			history, err := v.Incidents(string(y.ep.ID), a.ID, 0, 100)
			if now.State != hookglass.AlertTriggered || len(history) != 1 || history[0].EventID != good.ID {
				t.Errorf("it is %s, with the incidents %+v", now.State, history)
			}
			return err
		}))
		if got := log.String(); strings.Count(got, "passed over") != 1 || !strings.Contains(got, a.ID) || !strings.Contains(got, string(bad.ID)) || strings.Contains(got, "refund") {
			t.Errorf("the log says %s", got)
		}
	})
}

// Actions of several events run at the same time, and some wait to be tried again: an alert reads no event before all
// that may hide it has run, whichever of them is due first.
func TestKeywordMatchWaitsForActions(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertKeywordMatch, alert.Settings{Keyword: new("refund"), Field: new("body")})
		hidden := y.captureFor("refund", store.TaskActions)
		y.captureFor("something else", store.TaskActions)
		var running []store.Task
		y.update(func(tx *store.Tx) (err error) {
			running, err = tx.ClaimTasks(store.TaskActions, y.ep.Num, 1, time.Minute)
			return err
		})
		if len(running) != 1 || running[0].EventSeq != hidden.Seq {
			t.Fatalf("%+v is running, want the first", running)
		}
		y.want("the actions of the first are running", a, hookglass.AlertOK, 0)
		y.update(func(tx *store.Tx) error { return tx.DeferTask(running[0], time.Second) })
		y.want("they will be tried again", a, hookglass.AlertOK, 0)
		y.update(func(tx *store.Tx) error {
			if err := tx.SetIgnored(string(y.ep.ID), string(hidden.ID), "noise"); err != nil {
				return err
			}
			return tx.EndTasks(running)
		})
		y.want("they have hidden it", a, hookglass.AlertOK, 0)
		y.capture("refund")
		y.want("another waits for the second", a, hookglass.AlertOK, 0)
		y.update(func(tx *store.Tx) error {
			rest, err := tx.ClaimTasks(store.TaskActions, y.ep.Num, 2, time.Minute)
			if err != nil {
				return err
			}
			return tx.EndTasks(rest)
		})
		y.want("none waits", a, hookglass.AlertTriggered, 1)
	})
}

// Actions of an event that was read long ago, and are tried again and again, hold up nothing that comes later.
func TestKeywordMatchWaitsForNoActionsOfWhatItHasRead(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertKeywordMatch, alert.Settings{Keyword: new("refund"), Field: new("body")})
		y.clock.advance(-2 * time.Minute)
		y.captureFor("something else", store.TaskActions)
		y.clock.advance(2 * time.Minute)
		y.want("it has waited long enough for them", a, hookglass.AlertOK, 0)
		y.update(func(tx *store.Tx) error {
			failing, err := tx.ClaimTasks(store.TaskActions, y.ep.Num, 1, time.Minute)
			if err != nil || len(failing) != 1 {
				return fmt.Errorf("%d tasks: %w", len(failing), err)
			}
			return tx.DeferTask(failing[0], 10*time.Minute)
		})
		y.capture("refund")
		y.want("nothing hides it", a, hookglass.AlertTriggered, 1)
	})
}

func TestVolumeSpikeIsMoreThanBeforeAndMoreThanAFew(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertVolumeSpike, alert.Settings{Factor: new(2.0), WindowMinutes: new(int64(5)), MinCount: new(int64(4))})
		for range 3 {
			y.capture("x")
		}
		y.want("fewer than min_count", a, hookglass.AlertOK, 0)
		hidden := y.capture("noise")
		y.update(func(tx *store.Tx) error { return tx.SetIgnored(string(y.ep.ID), string(hidden.ID), "noise") })
		y.want("what is ignored does not count", a, hookglass.AlertOK, 0)
		y.capture("x")
		y.want("a spike", a, hookglass.AlertTriggered, 1)
		y.clock.advance(7 * time.Minute)
		y.want("it is over", a, hookglass.AlertOK, 1)
		for range 8 {
			y.capture("x") // before were 4 in a window
		}
		y.want("twice as many", a, hookglass.AlertOK, 1)
		y.capture("x")
		y.want("more than that", a, hookglass.AlertTriggered, 2)
	})
}

// What is counted is what arrived within the window, wherever in a minute that begins: as many as ever are no spike.
func TestASteadyRateIsNoSpike(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertVolumeSpike, alert.Settings{Factor: new(1.5), WindowMinutes: new(int64(1)), MinCount: new(int64(8))})
		for range 24 { // six a minute
			y.capture("x")
			y.clock.advance(10 * time.Second)
			y.want("as many as ever", a, hookglass.AlertOK, 0)
		}
		for range 8 {
			y.capture("x")
		}
		y.want("more than twice as many", a, hookglass.AlertTriggered, 1)
	})
}

// What was deleted since arrived all the same: whoever deletes what is done, or keeps little, has spikes too.
func TestASpikeIsNoSmallerForWhatWasDeleted(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertVolumeSpike, alert.Settings{Factor: new(2.0), WindowMinutes: new(int64(1)), MinCount: new(int64(10))})
		now := y.clock.now()
		y.clock.advance(now.Truncate(time.Minute).Add(2*time.Minute + 30*time.Second).Sub(now))
		for range 6 {
			y.capture("x")
		}
		y.want("six are none", a, hookglass.AlertOK, 0)
		y.update(func(tx *store.Tx) error {
			_, err := tx.DeleteAllEvents(string(y.ep.ID))
			return err
		})
		y.clock.advance(40 * time.Second)
		for range 6 {
			y.capture("x")
		}
		y.want("twelve within a minute", a, hookglass.AlertTriggered, 1)
	})
}

func TestAChangedAlertBeginsAnew(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertKeywordMatch, alert.Settings{Keyword: new("a")})
		y.capture("a")
		y.want("a match", a, hookglass.AlertTriggered, 1)
		change := func(d alert.Draft) hookglass.Alert {
			got, err := y.svc.Update(t.Context(), y.who, string(y.ep.ID), a.ID, d)
			must(t, err)
			return got
		}
		if got := change(alert.Draft{Name: new("Another name")}); got.State != hookglass.AlertTriggered {
			t.Errorf("a new name makes it %s", got.State)
		}
		change(alert.Draft{Config: &alert.Settings{Keyword: new("b")}})
		y.want("another keyword", a, hookglass.AlertOK, 1)
		change(alert.Draft{Enabled: new(false)})
		y.capture("b")
		y.want("disabled", a, hookglass.AlertOK, 1)
		change(alert.Draft{Enabled: new(true)})
		y.want("enabled, it looks at what comes", a, hookglass.AlertOK, 1)
		y.capture("b")
		y.want("which comes", a, hookglass.AlertTriggered, 2)
	})
}

// Nor is what arrived before a spike alert.
func TestASpikeBeforeItsAlertIsNone(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		for range 5 {
			y.capture("x")
		}
		a := y.watch(hookglass.AlertVolumeSpike, alert.Settings{Factor: new(2.0), WindowMinutes: new(int64(5)), MinCount: new(int64(4))})
		y.want("it watches from now on", a, hookglass.AlertOK, 0)
		for range 4 {
			y.capture("x")
		}
		y.want("a spike", a, hookglass.AlertTriggered, 1)
		for _, on := range []bool{false, true} {
			_, err := y.svc.Update(t.Context(), y.who, string(y.ep.ID), a.ID, alert.Draft{Enabled: new(on)})
			must(t, err)
		}
		y.want("it watches anew", a, hookglass.AlertOK, 1)
	})
}

// A channel hears of the beginning and the end of an incident, once each.
func TestChannelsOfAnAlertAreTold(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		r := newReceiver(t, always(200))
		kind := hookglass.ChannelSlack
		slack, _, err := y.svc.CreateChannel(t.Context(), y.who, alert.ChannelDraft{Name: new("Slack"), Kind: &kind, Config: &alert.ChannelSettings{WebhookURL: new(r.URL + "/slack")}})
		must(t, err)
		hook := y.webhook("Hook", r.URL+"/hook", "alert.triggered") // follows the type, and is named: it is told once all the same
		a := y.watch(hookglass.AlertKeywordMatch, alert.Settings{Keyword: new("<b>&")}, slack.ID, hook.ID)
		y.capture("<b>&")
		y.want("a match", a, hookglass.AlertTriggered, 1)
		y.clock.advance(10*time.Minute + time.Second)
		y.want("ten minutes", a, hookglass.AlertOK, 1)
		y.run(y.svc)
		y.run(y.node())
		until(t, "four messages", func() bool { return len(r.got()) >= 4 })
		told := map[string]int{}
		for _, h := range r.got() {
			if h.path == "/slack" {
				told[fmt.Sprint(h.body["text"])]++
				continue
			}
			told[fmt.Sprint(h.body["type"])]++
			data := h.body["data"].(map[string]any)
			if data["alert_id"] != a.ID || data["name"] != "Watch" || data["kind"] != "keyword_match" || data["summary"] == "" || h.body["endpoint_id"] != string(y.ep.ID) {
				t.Errorf("the webhook is told %v", h.body)
			}
		}
		for text, n := range map[string]int{
			"alert.triggered": 1, "alert.resolved": 1,
			"Alert \"Watch\" is triggered\n\"&lt;b&gt;&amp;\" was found in the body of a request. (endpoint \"Payments\")": 1,
			"Alert \"Watch\" is resolved\nThere was no match for 10 minutes. (endpoint \"Payments\")":                      1,
		} {
			if told[text] != n {
				t.Errorf("%q was told %d times; all is %v", text, told[text], told)
			}
		}
	})
}

// Nor does a delivery count that failed before somebody asked to be told of such.
func TestWhatFailedBeforeItsAlertDoesNotCount(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		fail := func(n int) {
			for range n {
				e := y.capture("x")
				y.update(func(tx *store.Tx) error {
					return tx.AddOutcomes(hookglass.Outcome{EndpointNum: y.ep.Num, EventSeq: e.Seq, Source: hookglass.OutcomeTarget, At: y.clock.now(), StatusCode: 500})
				})
			}
		}
		fail(4)
		a := y.watch(hookglass.AlertErrorResponse, alert.Settings{Threshold: new(int64(2)), WindowMinutes: new(int64(10))})
		y.want("it watches from now on", a, hookglass.AlertOK, 0)
		fail(1)
		y.want("one of two", a, hookglass.AlertOK, 0)
		fail(1)
		y.want("two", a, hookglass.AlertTriggered, 1)
	})
}

// An alert that was over with the first event less would begin again with the next.
func TestASpikeIsOverWhenHalfOfItIsLeft(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertVolumeSpike, alert.Settings{Factor: new(2.0), WindowMinutes: new(int64(5)), MinCount: new(int64(4))})
		capture := func(n int, then time.Duration) {
			for range n {
				y.capture("x")
			}
			y.clock.advance(then)
		}
		capture(2, 2*time.Minute)
		capture(1, time.Minute)
		capture(2, 0)
		y.want("five where four are a spike", a, hookglass.AlertTriggered, 1)
		y.clock.advance(2*time.Minute + 30*time.Second)
		y.want("three are left", a, hookglass.AlertTriggered, 1)
		y.clock.advance(2 * time.Minute)
		y.want("two are left", a, hookglass.AlertOK, 1)
	})
}

// A spike is measured by what was usual before it, however long it lasts, until it has lasted as long as what it is
// compared with: then it is what is usual.
func TestASpikeThatLastsIsUsualInTheEnd(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		a := y.watch(hookglass.AlertVolumeSpike, alert.Settings{Factor: new(2.0), WindowMinutes: new(int64(5)), MinCount: new(int64(4))})
		windows := func(many, each int) {
			for range many {
				y.clock.advance(5 * time.Minute)
				for range each {
					y.capture("x")
				}
			}
		}
		windows(4, 2)
		windows(1, 10)
		y.want("ten where two are usual", a, hookglass.AlertTriggered, 1)
		windows(12, 10)
		windows(1, 3)
		y.want("three are more than half of what is a spike where two are usual", a, hookglass.AlertTriggered, 1)
		windows(11, 10)
		windows(1, 7)
		y.want("so many are usual by now", a, hookglass.AlertOK, 1)
	})
}
