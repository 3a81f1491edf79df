package replay_test

import (
	"context"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/replay"
	"hookglass/internal/store"
)

// local is a connected machine that answers as the test says.
type local struct {
	outcome hookglass.TunnelOutcome
	runID   string
	request hookglass.SentRequest
}

func (l *local) Send(_ context.Context, _ int64, runID string, request hookglass.SentRequest, _ time.Duration) hookglass.TunnelOutcome {
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
		c := b.newCase(e, func(d *replay.CaseDraft) { d.TargetURL = ptr("tunnel") })
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
		run := b.run(b.newCase(e, func(d *replay.CaseDraft) { d.TargetURL = ptr("tunnel") }), "k")
		const want = "/caf\xe9?a=\xff"
		if machine.request.URL != want || run.Request == nil || run.Request.URL != want {
			t.Errorf("%q was sent, and the record says %+v", machine.request.URL, run.Request)
		}
	})
}
