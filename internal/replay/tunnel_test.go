package replay_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/provider"
	"hookglass/internal/replay"
	"hookglass/internal/store"
)

// local is a connected machine that answers as the test says.
type local struct {
	outcome hookglass.TunnelOutcome
	runID   string
	request hookglass.SentRequest
}

func (l *local) Send(_ context.Context, _ *hookglass.Event, runID string, request hookglass.SentRequest, _ time.Duration) hookglass.TunnelOutcome {
	l.runID, l.request = runID, request
	return l.outcome
}

// connected makes the endpoint one with a session.
func (b *bench) connected() {
	b.t.Helper()
	must(b.t, b.db.Update(b.t.Context(), hookglass.System, func(tx *store.Tx) error {
		s := hookglass.TunnelSession{ID: "tsess_x", Node: "node_x"}
		if err := tx.CreateTunnelSession(&s); err != nil {
			return err
		}
		_, err := tx.SubscribeTunnel(string(b.ep.ID), &hookglass.TunnelSubscription{SessionNum: s.Num})
		return err
	}))
}

func TestAReplayGoesToTheConnectedMachine(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		machine := &local{outcome: hookglass.TunnelOutcome{Response: &hookglass.TargetResponse{Status: 201, Body: []byte(`{"ok":true}`)}, Duration: time.Millisecond}}
		b.replays.Tunnel = machine
		e := b.capture("POST", "X-A: 1\r\n", `{}`)
		r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: "tunnel"})
		must(t, err)
		if r.Response == nil || r.Response.Status != 201 || machine.request.URL != "/" || machine.request.Method != "POST" || machine.request.Headers.Get("X-Service-Replay") != "true" {
			t.Errorf("%+v, sent %+v", r, machine.request)
		}
		b.connected()
		c := b.newCase(e, func(d *replay.CaseDraft) { d.TargetURL = new("tunnel") })
		for state, outcome := range map[hookglass.RunState]hookglass.TunnelOutcome{
			hookglass.RunPassed:          machine.outcome,
			hookglass.RunUnknown:         {Failure: &hookglass.Failure{Code: "tunnel_timeout"}, MaySent: true},
			hookglass.RunTransportFailed: {Failure: &hookglass.Failure{Code: "connection_refused"}},
			hookglass.RunBlocked:         {Failure: &hookglass.Failure{Code: "no_tunnel"}, Blocked: true},
		} {
			machine.outcome = outcome
			run := b.run(c, string(state))
			if run.State != state || machine.runID != run.ID {
				t.Errorf("the run is %s, want %s; %+v", run.State, state, run.Failure)
			}
		}
	})
}

// A path is sent as the bytes that came, and the record of a run says so.
func TestARunKeepsAnAddressThatIsNoText(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		machine := &local{outcome: hookglass.TunnelOutcome{Response: &hookglass.TargetResponse{Status: 200}, Duration: time.Millisecond}}
		b.replays.Tunnel = machine
		b.connected()
		e := b.prepared("POST", "X-A: 1\r\n", `{}`)
		e.Path, e.RawQuery, e.URL = "/caf\xe9", "a=\xff", "https://hooks.example.com/caf\xe9?a=\xff"
		must(t, b.db.Capture(t.Context(), b.owner.Account.ID, e))
		run := b.run(b.newCase(e, func(d *replay.CaseDraft) { d.TargetURL = new("tunnel") }), "k")
		const want = "/caf\xe9?a=\xff"
		if machine.request.URL != want || run.Request == nil || run.Request.URL != want {
			t.Errorf("%q was sent, and the record says %+v", machine.request.URL, run.Request)
		}
	})
}

// Who signs the URL signs the one that events come to, and a handler behind the tunnel checks what it is given against
// that, live and replayed.
func TestWhatASenderSignsOfTheURLIsThePublicOneThroughTheTunnel(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		machine := &local{outcome: hookglass.TunnelOutcome{Response: &hookglass.TargetResponse{Status: 200}, Duration: time.Millisecond}}
		b.replays.Tunnel = machine
		b.connected()
		_, err := b.endpoints.CreateSignatureConfig(t.Context(), b.who, string(b.ep.ID), endpoint.SignatureDraft{Provider: new("twilio"), Secret: new("12345")}, false)
		must(t, err)
		const public = "https://hooks.example.com/hooks/ep_x/sms"
		valid := func() {
			t.Helper()
			r := &provider.Request{
				Method: "POST", URL: strings.Replace(machine.request.URL, "/sms", public, 1), Headers: machine.request.Headers, Body: machine.request.Body,
			}
			_, r.RawQuery, _ = strings.Cut(r.URL, "?")
			got := provider.Verify(r, provider.Detection{Provider: "twilio"}, []provider.Config{{Provider: "twilio", Secrets: []string{"12345"}}})
			if got.Status != hookglass.SignatureVerified {
				t.Errorf("%s at %s is %+v", r.Headers.Get("X-Twilio-Signature"), machine.request.URL, got)
			}
		}
		form := b.prepared("POST", "Content-Type: application/x-www-form-urlencoded\r\nX-Twilio-Signature: old\r\n", "Body=hi&From=%2B1")
		form.Provider, form.Path, form.RawQuery, form.URL = "twilio", "/sms", "a=%20b", public+"?a=%20b"
		must(t, b.db.Capture(t.Context(), b.owner.Account.ID, form))
		body := b.prepared("POST", "Content-Type: application/json\r\nX-Twilio-Signature: old\r\n", `{"a":1}`)
		body.Provider, body.Path, body.URL = "twilio", "/sms", public
		must(t, b.db.Capture(t.Context(), b.owner.Account.ID, body))
		for _, e := range []*hookglass.Event{form, body} {
			_, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: "tunnel", Signature: "resign"})
			must(t, err)
			valid()
			c := b.newCase(e, func(d *replay.CaseDraft) {
				d.TargetURL, d.Options = new("tunnel"), &replay.CaseOptions{Signature: "resign"}
			})
			if run := b.run(c, "k"); run.State != hookglass.RunPassed {
				t.Errorf("the run is %s: %+v", run.State, run.Failure)
			}
			valid()
		}
	})
}
