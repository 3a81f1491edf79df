package replay_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/delivery"
	"hookglass/internal/endpoint"
	"hookglass/internal/replay"
	"hookglass/internal/store"
)

// Reliability, row 71.
func TestAReplayIsWhatWasCaptured(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("PUT", "Host: hooks.example.com\r\nx-odd-Case: 1\r\nX-A: caf\xe9\r\nX-a: two\r\nContent-Length: 99\r\nConnection: close\r\n", "\x00\xff body")
		r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url + "/in?b=1&a=%20"})
		must(t, err)
		if r.Response == nil || r.Response.Status != 200 || string(r.Response.Body) != `{"ok":true}` || r.Failure != nil || r.Verdict != "" || r.NewDeliveryID != "" {
			t.Errorf("%+v", r)
		}
		head, body := b.sink.last()
		lines := strings.Split(head, "\r\n")
		if lines[0] != "PUT /in?b=1&a=%20 HTTP/1.1" || body != "\x00\xff body" {
			t.Errorf("%q %q", lines[0], body)
		}
		if !strings.Contains(head, "x-odd-Case: 1\r\nX-A: caf\xe9\r\nX-a: two\r\n") || strings.Contains(head, "User-Agent") || strings.Contains(head, "Accept-Encoding") {
			t.Errorf("%q", head)
		}
		for _, want := range []string{"X-Service-Replay: true\r\n", "X-Service-Original-Request: " + string(e.ID) + "\r\n", "X-Service-Replay-Time: "} {
			if strings.Count(head, want) != 1 {
				t.Errorf("%s is not once in %q", want, head)
			}
		}
	})
}

func TestATargetThatDoesNotAnswerIsAnAttempt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "", "hi")
		send := func(target string) *hookglass.Replay {
			t.Helper()
			r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: target})
			must(t, err)
			return r
		}
		if r := send(nobody); r.Response != nil || r.Failure == nil || r.Failure.Code != "connection_refused" {
			t.Errorf("refused: %+v", r.Failure)
		}
		b.sink.answer("")
		if r := send(b.sink.url); r.Response != nil || r.Failure == nil || r.Failure.Code != "reset" {
			t.Errorf("reset: %+v", r.Failure)
		}
		b.sink.answer("HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n")
		if r := send(b.sink.url); r.Response == nil || r.Response.Status != 302 || r.Response.Headers.Get("Location") == "" {
			t.Errorf("a redirect is reported: %+v", r)
		}
		if r := send(hookglass.TunnelTarget); r.Failure == nil || r.Failure.Code != "no_tunnel" {
			t.Errorf("tunnel: %+v", r.Failure)
		}
	})
}

func TestWhatAReplayIsRefusedFor(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "", "a=b")
		try := func(id string, r replay.Request) error {
			if r.TargetURL == "" {
				r.TargetURL = b.sink.url
			}
			_, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), id, r)
			return err
		}
		id := string(e.ID)
		wantCode(t, try("req_00000000000000000000000000", replay.Request{}), hookglass.CodeNotFound)
		wantCode(t, try(id, replay.Request{Identity: "new"}), hookglass.CodeValidationFailed)
		wantCode(t, try(id, replay.Request{Signature: "keep"}), hookglass.CodeValidationFailed)
		wantCode(t, try(id, replay.Request{Identity: "regenerate"}), hookglass.CodeValidationFailed) // a form
		wantCode(t, try(id, replay.Request{Signature: "resign"}), hookglass.CodeValidationFailed)    // no config
		wantCode(t, try(id, replay.Request{TargetURL: "ftp://example.com"}), hookglass.CodeValidationFailed)
		for _, forbidden := range []string{"http://10.0.0.1/", "http://[::1]/", "http://169.254.169.254/"} {
			wantCode(t, try(id, replay.Request{TargetURL: forbidden}), hookglass.CodeTargetNotAllowed)
		}
		// A name is judged by where it leads.
		err := try(id, replay.Request{TargetURL: "http://private.test/"})
		wantCode(t, err, hookglass.CodeTargetNotAllowed)
		if !strings.Contains(err.Error(), "target_url") {
			t.Error(err)
		}
		b.setPayment(false)
		wantCode(t, try(id, replay.Request{Identity: "regenerate"}), hookglass.CodePaymentMethodRequired)
		wantCode(t, try(id, replay.Request{Signature: "resign"}), hookglass.CodePaymentMethodRequired)
		if b.sink.hits() != 0 {
			t.Errorf("%d requests were sent", b.sink.hits())
		}
		must(t, try(id, replay.Request{Signature: "strip"}))
	})
}

// The modes apply to webhooks only (spec, Replay rule 2), so a mail with them needs nothing of the account.
func TestAMailNeedsNoPaymentMethodForModesThatItIgnores(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.makeMailEndpoint()
		e := b.captureMail()
		b.setPayment(false)
		for _, r := range []replay.Request{{Identity: "regenerate"}, {Signature: "resign"}} {
			r.TargetURL = b.sink.url
			got, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), r)
			must(t, err)
			if got.Response == nil {
				t.Errorf("%+v: %+v", r, got.Failure)
			}
		}
		c := b.newCase(e, func(d *replay.CaseDraft) {
			d.Options = &replay.CaseOptions{Identity: "regenerate", Signature: "resign"}
		})
		if r := b.run(c, "k"); r.State != hookglass.RunPassed {
			t.Errorf("the run of a case: %s %+v", r.State, r.Failure)
		}
		begun := b.newBatch(func(r *replay.BatchRequest) { r.Signature = "resign" })
		b.work(begun.ID)
		if _, items := b.readBatch(begun.ID); items[0].State != hookglass.ItemPassed {
			t.Errorf("a batch: %s %+v", items[0].State, items[0].Failure)
		}
	})
}

func TestTheHistoryComparesWithTheAttemptBefore(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "Authorization: Bearer s3cret\r\nX-A: caf\xe9\r\n", "hi")
		var verdicts []string
		for _, status := range []int{500, 404, 204, 200, 503} {
			b.sink.status(status)
			r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url})
			must(t, err)
			verdicts = append(verdicts, string(r.Verdict))
		}
		if got := strings.Join(verdicts, " "); got != " still_failing fixed still_passing regressed" {
			t.Errorf("verdicts %q", got)
		}
		// Another target is another story.
		r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url + "/other"})
		must(t, err)
		if r.Verdict != "" {
			t.Errorf("%s at another target", r.Verdict)
		}
		history := b.history(e, 0, 4)
		if len(history) != 4 || history[0].ID != r.ID || history[0].Num <= history[3].Num {
			t.Fatalf("%d in the history", len(history))
		}
		sent := history[1].Request
		if sent.Headers.Get("Authorization") != "[redacted]" || sent.Headers.Get("X-A") != "caf\xe9" || string(sent.Body) != "hi" || sent.Method != "POST" {
			t.Errorf("%+v", sent)
		}
		if rest := b.history(e, history[3].Num, 10); len(rest) != 2 || rest[0].Response.Status != 404 {
			t.Errorf("the rest: %+v", rest)
		}
		// It goes with the event.
		must(t, b.db.Update(t.Context(), b.who, func(tx *store.Tx) error { return tx.DeleteEvent(string(b.ep.ID), string(e.ID)) }))
		err = b.db.View(t.Context(), b.who, func(v *store.View) error {
			_, err := v.Replays(string(b.ep.ID), string(e.ID), 0, 10)
			return err
		})
		wantCode(t, err, hookglass.CodeNotFound)
	})
}

func (b *bench) history(e *hookglass.Event, before int64, limit int) (all []*hookglass.Replay) {
	b.t.Helper()
	err := b.db.View(b.t.Context(), b.who, func(v *store.View) (err error) {
		all, err = v.Replays(string(b.ep.ID), string(e.ID), before, limit)
		return err
	})
	must(b.t, err)
	return all
}

// Who is told that a replay failed sends it again.
func TestAReplayThatCanNotBeRememberedIsTold(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "", "hi")
		b.replays.SetRecordTime(50 * time.Millisecond)
		b.sink.play(func(int) string {
			must(t, b.db.Close())
			return "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"
		})
		r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url})
		must(t, err)
		if r.Response == nil || r.Response.Status != 201 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "not in the list") {
			t.Errorf("%+v", r)
		}
	})
}

// That a transaction was committed may not have been heard, so it is done again.
func TestAnAttemptIsRememberedOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "", "hi")
		for range 2 { // the second has a verdict
			_, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url})
			must(t, err)
		}
		kept := b.history(e, 0, 3)
		again := *kept[0]
		again.Num, again.Verdict = 0, ""
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.RecordReplay(&again) }))
		if n := len(b.history(e, 0, 3)); n != 2 || again.Num != kept[0].Num || again.Verdict != hookglass.VerdictStillPassing {
			t.Errorf("%d attempts are remembered; the same again is number %d of %d, %q", n, again.Num, kept[0].Num, again.Verdict)
		}
	})
}

func TestLongBodiesAreBoundedInTheHistoryOnly(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "", strings.Repeat("x", 300<<10))
		b.sink.json(`"` + strings.Repeat("y", 300<<10) + `"`)
		r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url})
		must(t, err)
		if len(r.Response.Body) != 300<<10+2 || r.Response.Truncated {
			t.Errorf("%d bytes answered, truncated %v", len(r.Response.Body), r.Response.Truncated)
		}
		kept := b.history(e, 0, 1)[0]
		if len(kept.Request.Body) != 256<<10 || !kept.Request.Truncated || len(kept.Response.Body) != 256<<10 || !kept.Response.Truncated {
			t.Errorf("%d and %d bytes kept", len(kept.Request.Body), len(kept.Response.Body))
		}
	})
}

func TestATextThatIsCutIsAText(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		euros := "y" + strings.Repeat("€", 400<<10) // 1.2 MB, and no bound falls between two of them
		e := b.capture("POST", "", euros)
		b.sink.json(`"` + euros + `"`)
		r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url})
		must(t, err)
		if n := len(r.Response.Body); !utf8.Valid(r.Response.Body) || !r.Response.Truncated || n > 1<<20 || n <= 1<<20-3 {
			t.Errorf("%d bytes answered, truncated %v, text %v", n, r.Response.Truncated, utf8.Valid(r.Response.Body))
		}
		run := b.run(b.newCase(e, nil), "k")
		kept := b.history(e, 0, 1)[0]
		for name, body := range map[string][]byte{"the request": kept.Request.Body, "the answer": kept.Response.Body, "the answer to a run": run.Response.Body} {
			if n := len(body); !utf8.Valid(body) || n > 256<<10 || n <= 256<<10-3 {
				t.Errorf("%s is kept as %d bytes, text %v", name, n, utf8.Valid(body))
			}
		}
	})
}

// Many senders take compressed answers, and a replay sends their Accept-Encoding.
func TestACompressedAnswerIsShownAsWhatItSays(t *testing.T) {
	compressed := func(body string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := io.WriteString(w, body)
		must(t, err)
		must(t, w.Close())
		return b.String()
	}
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "Accept-Encoding: gzip\r\n", "{}")
		c := b.newCase(e, func(d *replay.CaseDraft) { d.Assertions = &hookglass.Assertions{JSONSubset: []byte(`{"ok":true}`)} })
		for name, test := range map[string]struct {
			sent, shown string
			truncated   bool
			state       hookglass.RunState
		}{
			"JSON":      {compressed(`{"ok":true,"by":"shop"}`), `{"ok":true,"by":"shop"}`, false, hookglass.RunPassed},
			"no gzip":   {`{"ok":true}`, `{"ok":true}`, false, hookglass.RunPassed},
			"broken":    {compressed("yes")[:12] + "!", compressed("yes")[:12] + "!", false, hookglass.RunAssertionFailed},
			"very long": {compressed("yy" + strings.Repeat("€", 400<<10)), "yy" + strings.Repeat("€", (1<<20-2)/3), true, hookglass.RunAssertionFailed},
		} {
			b.sink.answer(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(test.sent), test.sent))
			r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url})
			must(t, err)
			if string(r.Response.Body) != test.shown || r.Response.Truncated != test.truncated || r.Response.Headers.Get("Content-Encoding") != "gzip" {
				t.Errorf("%s: %d bytes shown, truncated %v, %v", name, len(r.Response.Body), r.Response.Truncated, r.Response.Headers)
			}
			run := b.run(c, name)
			if kept := b.history(e, 0, 1)[0].Response; run.State != test.state || !bytes.Equal(run.Response.Body, kept.Body) || !strings.HasPrefix(test.shown, string(kept.Body)) || kept.Truncated != test.truncated {
				t.Errorf("%s: %s, %d and %d bytes kept", name, run.State, len(run.Response.Body), len(kept.Body))
			}
		}
	})
}

func TestASecretThatSendersShowIsNotShown(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		generic, secret := "gitlab", "canary-7f3a9"
		_, err := b.endpoints.CreateSignatureConfig(t.Context(), b.who, string(b.ep.ID), endpoint.SignatureDraft{Provider: &generic, Secret: &secret}, false)
		must(t, err)
		e := b.capture("POST", "X-Gitlab-Event: Push Hook\r\nX-Gitlab-Token: old\r\n", "{}")
		b.sink.play(func(int) string {
			return "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 14\r\n\r\n" + `"canary-7f3a9"`
		})
		asked := replay.Request{TargetURL: b.sink.url, Overrides: delivery.Overrides{Headers: map[string]*string{"X-Gitlab-Token": &secret}}, DryRun: true}
		r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), asked)
		must(t, err)
		if v := r.Request.Headers.Get("X-Gitlab-Token"); v != "[redacted]" {
			t.Errorf("shown of a dry run: %s", v)
		}
		asked.DryRun = false
		r, err = b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), asked)
		must(t, err)
		if head, _ := b.sink.last(); !strings.Contains(head, secret) {
			t.Fatal("the token was not sent")
		}
		if v := r.Request.Headers.Get("X-Gitlab-Token"); v != "[redacted]" {
			t.Errorf("shown: %s", v)
		}
		kept := b.history(e, 0, 1)[0]
		if strings.Contains(string(kept.Response.Body), secret) || kept.Response.Headers.Get("Set-Cookie") != "[redacted]" {
			t.Errorf("kept: %s %v", kept.Response.Body, kept.Response.Headers)
		}
	})
}
