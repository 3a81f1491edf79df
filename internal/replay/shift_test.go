package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/provider"
	"hookglass/internal/replay"
)

// captureStripe stores a signed event as it came so long ago, at an endpoint that knows its secret.
func (b *bench) captureStripe(ago time.Duration) (*hookglass.Event, provider.Config) {
	b.t.Helper()
	secret, name := "whsec_for_tests", "stripe"
	_, err := b.endpoints.CreateSignatureConfig(b.t.Context(), b.who, string(b.ep.ID), endpoint.SignatureDraft{Provider: &name, Secret: &secret}, false)
	must(b.t, err)
	c := provider.Config{Provider: name, Secrets: []string{secret}}
	at := time.Now().Add(-ago).UTC().Truncate(time.Second)
	out, err := provider.Sign(provider.Outgoing{
		Method: "POST", URL: "https://hooks.example.com/", Body: []byte(`{ "id":"evt_1", "created":` + fmt.Sprint(at.Unix()) + `, "amount":1700000000 }`),
		Headers: hookglass.Headers{{Name: "Date", Value: at.Format("Mon, 02 Jan 2006 15:04:05 GMT")}, {Name: "Stripe-Signature", Value: ""}},
	}, c, at)
	must(b.t, err)
	e := b.prepared("POST", string(out.Headers.AppendWire(nil)), string(out.Body))
	e.ReceivedAt, e.Provider = at, name
	must(b.t, b.db.Capture(b.t.Context(), b.owner.Account.ID, e))
	return e, c
}

// An old capture passes a receiver that checks how fresh it is, and nothing but its times has changed.
func TestATimeShiftedReplayIsFresh(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e, c := b.captureStripe(72 * time.Hour)
		r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url, TimeShift: "now"})
		must(t, err)
		if !r.Passed() || r.Options.Signature != hookglass.SignatureResign || len(r.Warnings) != 0 {
			t.Fatalf("%+v", r)
		}
		_, lines, _ := strings.Cut(b.sink.heads[0], "\r\n")
		head, body := hookglass.ParseWire([]byte(lines)), b.sink.bodies[0]
		verdict := provider.Verify(&provider.Request{Method: "POST", Headers: head, Body: []byte(body), ReceivedAt: time.Now()}, provider.Detection{Provider: "stripe"}, []provider.Config{c})
		if verdict.Status != hookglass.SignatureVerified {
			t.Errorf("%s: %s\n%s", verdict.Reason, body, head.AppendWire(nil))
		}
		var places []string
		for _, change := range r.TimeChanges {
			places = append(places, change.Header+change.Pointer)
		}
		if strings.Join(places, " ") != "Date /created" {
			t.Errorf("%+v", r.TimeChanges)
		}
		if want := strings.Replace(string(e.Body), r.TimeChanges[1].From, r.TimeChanges[1].To, 1); body != want {
			t.Errorf("%s, want %s", body, want)
		}
		at, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", head.Get("Date"))
		if err != nil || time.Since(at).Abs() > time.Minute {
			t.Errorf("Date: %q", head.Get("Date"))
		}
	})
}

func TestADryRunSendsNothingAndIsNotRemembered(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e, _ := b.captureStripe(time.Hour)
		r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url, TimeShift: "+3h", DryRun: true})
		must(t, err)
		if !r.DryRun || r.ID != "" || r.Response != nil || len(r.TimeChanges) != 2 || !strings.Contains(string(r.Request.Body), r.TimeChanges[1].To) {
			t.Errorf("%+v", r)
		}
		if n := b.sink.hits(); n != 0 || len(b.history(e, 0, 10)) != 0 {
			t.Errorf("%d hits, %d remembered", n, len(b.history(e, 0, 10)))
		}
	})
}

func TestWhatBecomesOfTheSignatureWhenTimesAreMoved(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e, _ := b.captureStripe(time.Hour)
		try := func(r replay.Request) *hookglass.Replay {
			t.Helper()
			r.TargetURL, r.DryRun = b.sink.url, true
			done, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), r)
			must(t, err)
			return done
		}
		if r := try(replay.Request{TimeShift: "now", Signature: "preserve"}); r.Options.Signature != hookglass.SignaturePreserve || len(r.Warnings) != 1 || r.Request.Headers.Get("Stripe-Signature") != e.Headers.Get("Stripe-Signature") {
			t.Errorf("preserve: %+v", r)
		}
		if r := try(replay.Request{TimeShift: "now", Signature: "strip"}); r.Request.Headers.Has("Stripe-Signature") || len(r.Warnings) != 0 {
			t.Errorf("strip: %+v", r)
		}
		if r := try(replay.Request{TimeShift: "0"}); r.Options.Signature != hookglass.SignaturePreserve || len(r.TimeChanges) != 0 {
			t.Errorf("no shift: %+v", r)
		}
		// It is signed at the time of the capture, moved like every other.
		if r := try(replay.Request{TimeShift: "-1d"}); !strings.HasPrefix(r.Request.Headers.Get("Stripe-Signature"), "t="+fmt.Sprint(e.ReceivedAt.Add(-24*time.Hour).Unix())+",") {
			t.Errorf("-1d: %s", r.Request.Headers.Get("Stripe-Signature"))
		}
		b.setPayment(false)
		if r := try(replay.Request{TimeShift: "now"}); r.Options.Signature != hookglass.SignaturePreserve || len(r.Warnings) != 1 {
			t.Errorf("without the right: %+v", r)
		}
		_, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url, TimeShift: "soon"})
		wantCode(t, err, hookglass.CodeValidationFailed)
	})
}

// What came just now has nothing to be moved, so its signature still fits.
func TestWhereNoTimeIsMovedNothingIsWarnedOf(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e, _ := b.captureStripe(0)
		r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url, DryRun: true, TimeShift: "now", Signature: "preserve"})
		must(t, err)
		if len(r.TimeChanges) == 0 && len(r.Warnings) != 0 {
			t.Errorf("%q", r.Warnings)
		}
	})
}
