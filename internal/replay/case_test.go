package replay_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
	"hookglass/internal/outbound"
	"hookglass/internal/replay"
	"hookglass/internal/store"
)

// newCase saves a case of the event that wants a 2xx.
func (b *bench) newCase(e *hookglass.Event, change func(*replay.CaseDraft)) hookglass.ReplayCase {
	b.t.Helper()
	d := b.draft(e)
	if change != nil {
		change(&d)
	}
	c, err := b.replays.CreateCase(b.t.Context(), b.who, string(b.ep.ID), d)
	must(b.t, err)
	return c
}

func (b *bench) draft(e *hookglass.Event) replay.CaseDraft {
	return replay.CaseDraft{SourceID: new(string(e.ID)), Name: new("Paid"), TargetURL: new(b.sink.url), Assertions: &hookglass.Assertions{StatusClass: "2xx"}}
}

// run runs the case by a worker and returns the run as it ends.
func (b *bench) run(c hookglass.ReplayCase, key string) hookglass.ReplayCaseRun {
	b.t.Helper()
	r, err := b.replays.RunCase(b.t.Context(), b.who, string(b.ep.ID), c.ID, key)
	must(b.t, err)
	must(b.t, b.replays.ExecuteRun(b.t.Context(), r.ID))
	return b.readRun(r.ID)
}

func (b *bench) readRun(id string) hookglass.ReplayCaseRun {
	b.t.Helper()
	r, err := b.replays.CaseRun(b.t.Context(), b.who, string(b.ep.ID), id)
	must(b.t, err)
	return r
}

func TestACaseOutlivesItsSource(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("PUT", "X-A: caf\xe9\r\n", "\xffbody")
		c := b.newCase(e, nil)
		if c.LockVersion != 1 || !c.SourceAvailable || c.SourceID != e.ID || !strings.HasPrefix(c.ID, "rcase_") {
			t.Errorf("%+v", c)
		}
		must(t, b.db.Update(t.Context(), b.who, func(tx *store.Tx) error { return tx.DeleteEvent(string(b.ep.ID), string(e.ID)) }))
		r := b.run(c, "k")
		if r.State != hookglass.RunPassed || r.Failure != nil || r.Response.Status != 200 || r.CaseLockVersion != 1 || r.StartedAt.IsZero() || r.FinishedAt.IsZero() {
			t.Errorf("%+v", r)
		}
		head, body := b.sink.last()
		if body != "\xffbody" || !strings.HasPrefix(head, "PUT / ") || !strings.Contains(head, "X-A: caf\xe9\r\n") || !strings.Contains(head, "X-Service-Original-Request: "+string(e.ID)) {
			t.Errorf("%q %q", head, body)
		}
		read, err := b.replays.Case(t.Context(), b.who, string(b.ep.ID), c.ID)
		must(t, err)
		if read.SourceAvailable || read.Name != "Paid" || read.LastRun == nil || read.LastRun.ID != r.ID || read.LastRun.State != hookglass.RunPassed {
			t.Errorf("%+v", read)
		}
	})
}

// A case of a mail that is made before the mail was authenticated tells the verdict once there is one.
func TestACaseOfAMailTellsTheVerdictThatCameLater(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		mail := b.captureMail()
		c := b.newCase(mail, nil)
		told := func(key, want string) {
			t.Helper()
			if r := b.run(c, key); r.State != hookglass.RunPassed {
				t.Errorf("%+v", r)
			}
			if _, body := b.sink.last(); !strings.Contains(body, `"authentication":`+want) {
				t.Errorf("%s: %s, want %s", key, body, want)
			}
		}
		told("at once", `{"spf":"pending","dkim":"pending","dmarc":"pending"}`)
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			return tx.SetVerdicts([]store.Verdict{{EndpointNum: mail.EndpointNum, EventSeq: mail.Seq, Results: hookglass.Authentication{SPF: "pass", DKIM: "fail", DMARC: "none"}, Details: []byte("{}")}})
		}))
		told("later", `{"spf":"pass","dkim":"fail","dmarc":"none"}`)
		must(t, b.db.Update(t.Context(), b.who, func(tx *store.Tx) error { return tx.DeleteEvent(string(b.ep.ID), string(mail.ID)) }))
		told("without the mail", `{"spf":"pending","dkim":"pending","dmarc":"pending"}`)
	})
}

// A run outlives the event, whose credentials its target may answer with.
func TestARunKeepsNoCredentialOfItsEvent(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		answer := `{"headers":{"Authorization":"Bearer canary-4711-canary"},"token":"canary-4711-canary"}`
		b.sink.play(func(int) string {
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Echo: canary-4711-canary\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
		})
		e := b.capture("POST", "Authorization: Bearer canary-4711-canary\r\n", "{}")
		d := b.draft(e)
		d.Assertions = &hookglass.Assertions{JSONSubset: []byte(`{"token":"x"}`)}
		c, err := b.replays.CreateCase(t.Context(), b.who, string(b.ep.ID), d)
		must(t, err)
		r := b.run(c, "k")
		if head, _ := b.sink.last(); !strings.Contains(head, "canary-4711-canary") {
			t.Fatal("the credential was not sent")
		}
		kept := string(r.Request.Headers.AppendWire(nil)) + string(r.Response.Headers.AppendWire(nil)) + string(r.Response.Body)
		for _, a := range r.Assertions {
			kept += string(a.Actual)
		}
		if r.State != hookglass.RunAssertionFailed || len(r.Assertions) == 0 || strings.Contains(kept, "canary") {
			t.Errorf("%s: %s", r.State, kept)
		}
	})
}

func TestWhatACaseMayNotBe(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "", "{}")
		for name, c := range map[string]struct {
			change func(*replay.CaseDraft)
			field  string
		}{
			"no source":         {func(d *replay.CaseDraft) { d.SourceID = nil }, "replay_case.source_id"},
			"unknown source":    {func(d *replay.CaseDraft) { d.SourceID = new("req_1") }, "replay_case.source_id"},
			"no name":           {func(d *replay.CaseDraft) { d.Name = nil }, "replay_case.name"},
			"blank name":        {func(d *replay.CaseDraft) { d.Name = new(" \t ") }, "replay_case.name"},
			"a name with NUL":   {func(d *replay.CaseDraft) { d.Name = new("a\x00") }, "replay_case.name"},
			"no assertions":     {func(d *replay.CaseDraft) { d.Assertions = nil }, "replay_case.assertions"},
			"empty assertions":  {func(d *replay.CaseDraft) { d.Assertions = &hookglass.Assertions{} }, "replay_case.assertions"},
			"class":             {func(d *replay.CaseDraft) { d.Assertions = &hookglass.Assertions{StatusClass: "6xx"} }, "replay_case.assertions.status.class"},
			"code":              {func(d *replay.CaseDraft) { d.Assertions = &hookglass.Assertions{StatusCode: 600} }, "replay_case.assertions.status.code"},
			"no target":         {func(d *replay.CaseDraft) { d.TargetURL = nil }, "replay_case.target_url"},
			"a target":          {func(d *replay.CaseDraft) { d.TargetURL = new("nonsense") }, "replay_case.target_url"},
			"a mode":            {func(d *replay.CaseDraft) { d.Options = &replay.CaseOptions{Identity: "x"} }, "replay_case.options.identity_mode"},
			"resign, no config": {func(d *replay.CaseDraft) { d.Options = &replay.CaseOptions{Signature: "resign"} }, "replay_case.options.signature_mode"},
			"deep": {func(d *replay.CaseDraft) {
				d.Assertions.JSONSubset = []byte(strings.Repeat("[", 200) + strings.Repeat("]", 200))
			}, "replay_case.assertions.json_subset"},
		} {
			d := b.draft(e)
			c.change(&d)
			_, err := b.replays.CreateCase(t.Context(), b.who, string(b.ep.ID), d)
			if !hookglass.Is(err, hookglass.CodeValidationFailed) || !strings.Contains(err.Error(), c.field) {
				t.Errorf("%s: %v, want %s", name, err, c.field)
			}
		}
		_, err := b.replays.CreateCase(t.Context(), b.who, string(b.ep.ID), replay.CaseDraft{})
		for _, field := range []string{"source_id", "name", "target_url", "assertions"} {
			if err == nil || !strings.Contains(err.Error(), "replay_case."+field) {
				t.Errorf("a case of nothing: %v, want %s too", err, field)
			}
		}
		d := b.draft(e)
		d.TargetURL = new("http://192.168.0.1/")
		_, err = b.replays.CreateCase(t.Context(), b.who, string(b.ep.ID), d)
		wantCode(t, err, hookglass.CodeTargetNotAllowed)
		b.setPayment(false)
		d = b.draft(e)
		d.Options = &replay.CaseOptions{Identity: "regenerate"}
		_, err = b.replays.CreateCase(t.Context(), b.who, string(b.ep.ID), d)
		wantCode(t, err, hookglass.CodePaymentMethodRequired)
	})
}

func TestAChangeNeedsTheVersionItWasMadeFrom(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "", "one")
		c := b.newCase(e, nil)
		change := func(d replay.CaseDraft) (hookglass.ReplayCase, error) {
			return b.replays.UpdateCase(t.Context(), b.who, string(b.ep.ID), c.ID, d)
		}
		_, err := change(replay.CaseDraft{Name: new("x")})
		wantCode(t, err, hookglass.CodeValidationFailed)
		_, err = change(replay.CaseDraft{Name: new("x"), LockVersion: new(int64(2))})
		wantCode(t, err, hookglass.CodeStaleLockVersion)
		_, err = change(replay.CaseDraft{Options: &replay.CaseOptions{Identity: "regenerate"}, LockVersion: new(int64(1))}) // the source has no JSON
		wantCode(t, err, hookglass.CodeValidationFailed)
		after, err := change(replay.CaseDraft{Description: new("d"), LockVersion: new(int64(1))})
		must(t, err)
		if after.LockVersion != 2 || after.Name != "Paid" || after.Description != "d" {
			t.Errorf("%+v", after)
		}
		_, err = change(replay.CaseDraft{Name: new("x"), LockVersion: new(int64(1))})
		wantCode(t, err, hookglass.CodeStaleLockVersion)

		// Of many at once one is first.
		var group sync.WaitGroup
		var mu sync.Mutex
		won, lost := 0, 0
		for range 10 {
			group.Go(func() {
				_, err := b.node().UpdateCase(background(t), b.who, string(b.ep.ID), c.ID, replay.CaseDraft{Name: new("y"), LockVersion: new(int64(2))})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else if hookglass.Is(err, hookglass.CodeStaleLockVersion) {
					lost++
				}
			})
		}
		group.Wait()
		if won != 1 || lost != 9 {
			t.Errorf("%d won, %d lost", won, lost)
		}

		// Another source is another snapshot.
		two := b.capture("POST", "", "two")
		_, err = change(replay.CaseDraft{SourceID: new(string(two.ID)), LockVersion: new(int64(3))})
		must(t, err)
		b.run(c, "k")
		if _, body := b.sink.last(); body != "two" {
			t.Errorf("sent %q", body)
		}
	})
}

// An answer passes where each assertion holds, whichever comes last.
func TestEveryAssertionMustHold(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   bool
	}{{200, `{"a":1,"b":2}`, true}, {500, `{"a":1}`, false}, {201, `{"a":1}`, false}, {200, `{"a":2}`, false}, {200, `x`, false}} {
		a := hookglass.Assertions{StatusClass: "2xx", StatusCode: 200, JSONSubset: []byte(`{"a":1}`)}
		if results, passed := replay.Judge(a, &hookglass.TargetResponse{Status: c.status, Body: []byte(c.body)}); passed != c.want {
			t.Errorf("%d %s: %t, %+v", c.status, c.body, passed, results)
		}
	}
}

// Of an answer from the other end of the tunnel there are 64 KiB at most.
func TestAnAssertionOnAnAnswerThatWasCutSaysSo(t *testing.T) {
	a := hookglass.Assertions{JSONSubset: []byte(`{"a":1}`)}
	results, passed := replay.Judge(a, &hookglass.TargetResponse{Status: 200, Body: []byte(`{"a":1,"b":"cu`), Truncated: true})
	if passed || len(results) != 1 || string(results[0].Actual) != `"cut after 14 bytes"` {
		t.Errorf("%t, %+v", passed, results)
	}
}

func TestTheStatesOfARun(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "", `{"id":"a"}`)
		subset := func(d *replay.CaseDraft) {
			d.Assertions = &hookglass.Assertions{StatusCode: 200, JSONSubset: []byte(`{"data":{"id":1}}`)}
		}
		b.sink.json(`{"data":{"id":1.0,"more":true}}`)
		if r := b.run(b.newCase(e, subset), "k"); r.State != hookglass.RunPassed || len(r.Assertions) != 2 {
			t.Errorf("passed: %+v", r)
		}
		b.sink.json("\ufeff" + `{"data":{"id":1}}`)
		if r := b.run(b.newCase(e, subset), "k"); r.State != hookglass.RunPassed {
			t.Errorf("behind a byte order mark: %+v", r)
		}
		b.sink.json(`{"data":{"id":2}}`)
		r := b.run(b.newCase(e, subset), "k")
		if r.State != hookglass.RunAssertionFailed || len(r.Assertions) != 2 || !r.Assertions[0].Passed {
			t.Fatalf("assertion_failed: %+v", r)
		}
		if a := r.Assertions[1]; a.Kind != "json_subset" || a.Path != "/data/id" || string(a.Expected) != "1" || string(a.Actual) != "2" || a.Passed {
			t.Errorf("%+v", a)
		}
		b.sink.status(500)
		if r := b.run(b.newCase(e, nil), "k"); r.State != hookglass.RunAssertionFailed || r.Response.Status != 500 || string(r.Assertions[0].Expected) != `"2xx"` {
			t.Errorf("status: %+v", r)
		}
		refused := b.newCase(e, func(d *replay.CaseDraft) { d.TargetURL = new(nobody) })
		if r := b.run(refused, "k"); r.State != hookglass.RunTransportFailed || r.Failure.Code != "connection_refused" || r.Response != nil {
			t.Errorf("transport_failed: %+v", r)
		}
		b.sink.answer("")
		if r := b.run(b.newCase(e, nil), "k"); r.State != hookglass.RunUnknown || r.Failure.Code != "reset" {
			t.Errorf("unknown: %+v", r)
		}
		hits := b.sink.hits()
		tunnel := b.newCase(e, func(d *replay.CaseDraft) { d.TargetURL = new("tunnel") })
		if r := b.run(tunnel, "k"); r.State != hookglass.RunBlocked || r.Failure.Code != "no_tunnel" || !r.StartedAt.IsZero() {
			t.Errorf("blocked: %+v", r)
		}
		forbidden := b.newCase(e, func(d *replay.CaseDraft) { d.TargetURL = new("http://private.test/") }) // its name tells when it is looked up
		if r := b.run(forbidden, "k"); r.State != hookglass.RunBlocked || r.Failure.Code != "target_not_allowed" {
			t.Errorf("blocked by where its name leads: %+v", r)
		}
		lapsed := b.newCase(e, func(d *replay.CaseDraft) { d.Options = &replay.CaseOptions{Identity: "regenerate"} })
		b.setPayment(false)
		if r := b.run(lapsed, "k"); r.State != hookglass.RunBlocked || r.Failure.Code != "payment_method_required" {
			t.Errorf("lapsed: %+v", r)
		}
		gone := b.newCase(e, nil)
		q, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), gone.ID, "k")
		must(t, err)
		must(t, b.replays.DeleteCase(t.Context(), b.who, string(b.ep.ID), gone.ID))
		must(t, b.replays.ExecuteRun(t.Context(), q.ID))
		if r := b.readRun(q.ID); r.State != hookglass.RunBlocked {
			t.Errorf("of a deleted case: %+v", r)
		}
		if b.sink.hits() != hits {
			t.Error("what is blocked was sent")
		}
	})
}

// A client saves the whole of what it read, its source too.
func TestTheSourceOfACaseMayBeNamedAgain(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "", "one")
		c := b.newCase(e, nil)
		r, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, "k")
		must(t, err)
		change := func(source string, version int64) error {
			_, err := b.replays.UpdateCase(t.Context(), b.who, string(b.ep.ID), c.ID, replay.CaseDraft{SourceID: &source, Name: new("y"), LockVersion: &version})
			return err
		}
		must(t, change(string(e.ID), 1))
		must(t, b.replays.ExecuteRun(t.Context(), r.ID))
		if r := b.readRun(r.ID); r.State != hookglass.RunPassed {
			t.Errorf("the queued run: %+v", r)
		}
		must(t, b.db.Update(t.Context(), b.who, func(tx *store.Tx) error { return tx.DeleteEvent(string(b.ep.ID), string(e.ID)) }))
		must(t, change(string(e.ID), 2))
		must(t, change("wr_"+strings.TrimPrefix(string(e.ID), "req_"), 3))
		wantCode(t, change("req_00000000000000000000000000", 4), hookglass.CodeValidationFailed)
		read, err := b.replays.Case(t.Context(), b.who, string(b.ep.ID), c.ID)
		must(t, err)
		if read.SourceAvailable || read.SourceID != e.ID || read.Name != "y" {
			t.Errorf("%+v", read)
		}
		b.run(c, "after")
		if _, body := b.sink.last(); body != "one" {
			t.Errorf("sent %q", body)
		}
	})
}

// Where the operator no longer lets a case's target be reached, all else of the case can still be changed, whoever
// names the target again changes nothing, and no run reaches it.
func TestACaseWhoseTargetWasShutCanBeChanged(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.newCase(b.capture("POST", "", "x"), nil)
		cfg := b.config()
		cfg.Client = outbound.New(outbound.Config{Resolver: names{}})
		shut := replay.New(b.db, cfg)
		version := int64(1)
		change := func(d replay.CaseDraft) error {
			d.LockVersion = &version
			changed, err := shut.UpdateCase(t.Context(), b.who, string(b.ep.ID), c.ID, d)
			if err == nil {
				version = changed.LockVersion
			}
			return err
		}
		must(t, change(replay.CaseDraft{Name: new("y")}))
		must(t, change(replay.CaseDraft{Description: new("whole"), TargetURL: &c.TargetURL}))
		wantCode(t, change(replay.CaseDraft{TargetURL: new(c.TargetURL + "/new")}), hookglass.CodeTargetNotAllowed)
		wantCode(t, change(replay.CaseDraft{TargetURL: new("")}), hookglass.CodeValidationFailed)
		r, err := shut.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, "k")
		must(t, err)
		must(t, shut.ExecuteRun(t.Context(), r.ID))
		if r := b.readRun(r.ID); r.State != hookglass.RunBlocked || b.sink.hits() > 0 {
			t.Errorf("%+v, %d sent", r, b.sink.hits())
		}
	})
}

// A run is of the version it was queued at, whatever becomes of the case.
func TestAQueuedRunKeepsItsTarget(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.newCase(b.capture("POST", "", "x"), nil)
		r, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, "k")
		must(t, err)
		_, err = b.replays.UpdateCase(t.Context(), b.who, string(b.ep.ID), c.ID, replay.CaseDraft{TargetURL: new(b.sink.url + "/new"), LockVersion: new(int64(1))})
		must(t, err)
		must(t, b.replays.ExecuteRun(t.Context(), r.ID))
		if head, _ := b.sink.last(); !strings.HasPrefix(head, "POST / ") {
			t.Errorf("%q", head)
		}
	})
}

// Reliability, rows 67 and 78.
func TestAKeyIsOneRunAndOneHit(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.newCase(b.capture("POST", "Idempotency-Key: captured\r\n", "x"), nil)
		other := b.node()
		var group sync.WaitGroup
		var mu sync.Mutex
		ids := map[string]int{}
		for i := range 50 {
			node := b.replays
			if i%2 == 1 {
				node = other
			}
			group.Go(func() {
				ctx := background(t)
				r, err := node.RunCase(ctx, b.who, string(b.ep.ID), c.ID, "deploy-1")
				if err != nil {
					t.Error(err)
					return
				}
				if err := node.ExecuteRun(ctx, r.ID); err != nil && !hookglass.Is(err, hookglass.CodeRateLimited) {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[r.ID]++
			})
		}
		group.Wait()
		if len(ids) != 1 || b.sink.hits() != 1 {
			t.Errorf("%d runs, %d hits", len(ids), b.sink.hits())
		}
		_, err := b.replays.UpdateCase(t.Context(), b.who, string(b.ep.ID), c.ID, replay.CaseDraft{Name: new("new"), LockVersion: new(int64(1))})
		must(t, err)
		_, err = b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, "deploy-1")
		wantCode(t, err, hookglass.CodeIdempotencyConflict)
		// The key belongs to its case.
		if r := b.run(b.newCase(b.capture("POST", "", "x"), nil), "deploy-1"); ids[r.ID] != 0 {
			t.Error("another case got the run")
		}
		for _, key := range []string{"", strings.Repeat("k", 256), "a\nb", "\xff"} {
			_, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, key)
			wantCode(t, err, hookglass.CodeValidationFailed)
		}
		_, err = b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, strings.Repeat("é", 255))
		must(t, err)
	})
}

// Reliability, row 69, within one process: the worker is gone after the marker, and nothing sends again.
func TestARunWhoseWorkerDiedIsUnknownAndNotRepeated(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.newCase(b.capture("POST", "", "x"), nil)
		r, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, "k")
		must(t, err)
		// A worker that leaves the marker and dies.
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			run, err := tx.ReplayRunByID(r.ID)
			if err != nil {
				return err
			}
			begun, err := tx.BeginReplayRun(&run)
			if err == nil && !begun {
				err = fmt.Errorf("it did not begin")
			}
			return err
		}))
		must(t, b.replays.ExecuteRun(t.Context(), r.ID)) // the job, given out again
		if got := b.readRun(r.ID); got.State != hookglass.RunRunning || b.sink.hits() != 0 {
			t.Errorf("%s, %d hits", got.State, b.sink.hits())
		}
		must(t, b.replays.Sweep(t.Context(), time.Now().Add(-time.Minute)))
		if got := b.readRun(r.ID); got.State != hookglass.RunRunning {
			t.Errorf("it may still be under way, and is %s", got.State)
		}
		must(t, b.replays.Sweep(t.Context(), time.Now().Add(time.Second)))
		got := b.readRun(r.ID)
		if got.State != hookglass.RunUnknown || got.Failure.Code != "interrupted" || got.FinishedAt.IsZero() {
			t.Errorf("%+v", got)
		}
		must(t, b.replays.ExecuteRun(t.Context(), r.ID))
		if b.sink.hits() != 0 || b.readRun(r.ID).State != hookglass.RunUnknown {
			t.Error("a final state was left")
		}
	})
}

func TestARunThatIsCutOffWhileTheTargetHoldsItIsUnknown(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.newCase(b.capture("POST", "", "x"), nil)
		r, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, "k")
		must(t, err)
		b.sink.block()
		ctx, cancel := context.WithCancel(background(t))
		ended := make(chan error, 1)
		go func() { ended <- b.replays.ExecuteRun(ctx, r.ID) }()
		<-b.sink.got
		if got := b.readRun(r.ID); got.State != hookglass.RunRunning || got.Request == nil || got.Request.Method != "POST" {
			t.Errorf("while it is held: %+v", got)
		}
		cancel()
		must(t, <-ended)
		if got := b.readRun(r.ID); got.State != hookglass.RunUnknown || b.sink.hits() != 1 {
			t.Errorf("%+v, %d hits", got, b.sink.hits())
		}
	})
}

// A worker that is told to stop at any moment before something has left says what came of the run, or has not begun it:
// the sweep would call it unknown though nothing was sent. That the moment of the commit is met is a matter of luck.
func TestARunThatIsCutOffWhileItBeginsHasAnEnd(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.newCase(b.capture("POST", "", "x"), nil)
		for i := range 300 {
			r, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, fmt.Sprint(i))
			must(t, err)
			ctx, cancel := context.WithTimeout(background(t), time.Duration(i)*20*time.Microsecond)
			err = b.replays.ExecuteRun(ctx, r.ID)
			cancel()
			switch got := b.readRun(r.ID); {
			case got.State == hookglass.RunRunning:
				t.Fatalf("cut off after %d µs it is %s: %v", i*20, got.State, err)
			case got.State == hookglass.RunQueued && err == nil:
				t.Fatalf("cut off after %d µs it is %s, and nobody was told", i*20, got.State)
			}
		}
	})
}

func TestPagesOfCasesAndRunsAreStable(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "", "x")
		want := map[string]bool{}
		for range 5 {
			c := b.newCase(e, nil)
			want[c.ID] = true
			_, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, "k")
			must(t, err)
		}
		got, before := 0, int64(0)
		for {
			page, err := b.replays.Cases(t.Context(), b.who, string(b.ep.ID), before, 2)
			must(t, err)
			if len(page) == 0 {
				break
			}
			for _, c := range page {
				if want[c.ID] {
					got++
				}
				if c.LastRun == nil && want[c.ID] {
					t.Errorf("%s has no last run", c.ID)
				}
				before = c.Num
			}
			b.newCase(e, nil) // comes in between and moves nothing
		}
		if got != 5 {
			t.Errorf("%d of 5", got)
		}
		var runs []hookglass.ReplayCaseRun
		must(t, b.db.View(t.Context(), b.who, func(v *store.View) (err error) {
			runs, err = v.ReplayRuns(string(b.ep.ID), "", 0, 100)
			return err
		}))
		if len(runs) != 5 || runs[0].Num < runs[4].Num {
			t.Errorf("%d runs", len(runs))
		}
	})
}

// What people wrote is encrypted, and cannot be moved to another row.
func TestACaseIsSealed(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const canary = "canary-2b1c"
		e := b.capture("POST", "", canary)
		c := b.newCase(e, func(d *replay.CaseDraft) { d.Description = new(canary) })
		var sealed, snapshot []byte
		must(t, b.db.View(t.Context(), b.who, func(v *store.View) (err error) {
			stored, err := v.ReplayCase(string(b.ep.ID), c.ID)
			sealed = stored.Sealed
			snapshot, _, _ = v.CaseSnapshot(c.Num)
			return err
		}))
		if strings.Contains(string(sealed)+string(snapshot), canary) || len(snapshot) == 0 {
			t.Error("it stands in the clear")
		}
		if _, err := b.keys.Open(sealed, "replay_cases:config:rcase_other"); err == nil {
			t.Error("it opens in another row")
		}
	})
}

// Reliability, row 77, for runs: targets of one tenant that do not answer leave the others their turn.
func TestATenantHasItsShareOfTurns(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		c := b.newCase(b.capture("POST", "", "x"), nil)
		queue := func(key string) string {
			r, err := b.replays.RunCase(background(t), b.who, string(b.ep.ID), c.ID, key)
			must(t, err)
			return r.ID
		}
		b.sink.block()
		var held sync.WaitGroup
		for i := range 16 {
			id := queue(fmt.Sprint(i))
			held.Go(func() {
				if err := b.replays.ExecuteRun(background(t), id); err != nil {
					t.Error(err)
				}
			})
		}
		for range 16 {
			<-b.sink.got
		}
		waiting := queue("one more")
		wantCode(t, b.replays.ExecuteRun(t.Context(), waiting), hookglass.CodeRateLimited)
		if got := b.readRun(waiting); got.State != hookglass.RunQueued || b.sink.hits() != 16 {
			t.Errorf("%s, %d hits", got.State, b.sink.hits())
		}
		batch := b.newBatch(nil)
		_, err := b.replays.WorkBatch(t.Context(), batch.ID)
		wantCode(t, err, hookglass.CodeRateLimited)
		b.sink.release()
		held.Wait()
		must(t, b.replays.ExecuteRun(t.Context(), waiting))
		if got := b.readRun(waiting); got.State != hookglass.RunPassed {
			t.Errorf("%+v", got)
		}
		for range 17 { // each look at a bulk replay gives its turn back
			_, err := b.replays.WorkBatch(t.Context(), batch.ID)
			must(t, err)
		}
	})
}

// However many tenants have targets that do not answer, another finds a turn.
func TestTenantsTogetherLeaveATurnToAnother(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.sink.block()
		var held sync.WaitGroup
		// fill has a new tenant begin as many runs as there are turns for, at most so many.
		fill := func(name string, most int) (n int) {
			t.Helper()
			var err error
			b.owner, err = b.accounts.Register(t.Context(), account.Registration{Email: name + "@example.com"})
			must(t, err)
			b.who = hookglass.Principal{Account: b.owner.Account.ID, User: b.owner.User.ID, Scopes: hookglass.System.Scopes}
			b.ep, err = b.endpoints.Create(t.Context(), b.who, endpoint.Draft{Name: &name})
			must(t, err)
			c := b.newCase(b.capture("POST", "", "x"), nil)
			for ; n < most; n++ {
				r, err := b.replays.RunCase(background(t), b.who, string(b.ep.ID), c.ID, fmt.Sprint(n))
				must(t, err)
				refused := make(chan struct{})
				held.Go(func() {
					if err := b.replays.ExecuteRun(background(t), r.ID); hookglass.Is(err, hookglass.CodeRateLimited) {
						close(refused)
					} else if err != nil {
						t.Error(err)
					}
				})
				select {
				case <-b.sink.got:
				case <-refused:
					return n
				}
			}
			return n
		}
		for i := range 4 {
			fill(fmt.Sprint("stuck", i), 20)
		}
		if n := fill("another", 2); n != 2 {
			t.Errorf("there are %d turns left for a fifth tenant", n)
		}
		b.sink.release()
		held.Wait()
	})
}
