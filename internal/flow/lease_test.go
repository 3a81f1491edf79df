package flow_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/flow"
	"hookglass/internal/store"
)

// cursor is how far a flow is known to have been read.
func (y *yard) cursor(f hookglass.Flow) int64 { return y.read(f).Cursor }

// free reports whether there are flows that are nobody's.
func (y *yard) free() (free bool) {
	y.t.Helper()
	must(y.t, y.db.View(y.t.Context(), hookglass.System, func(v *store.View) (err error) {
		free, err = v.HasFreeFlows()
		return err
	}))
	return free
}

// ofAnotherType is a step that events of the type x do not mean.
func ofAnotherType(y *yard) flow.Draft {
	return flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, func(d *flow.StepDraft) { d.EventType = "never" })}}
}

// Who holds a flow keeps it by renewing its lease, and writes down how far it has read, which another would read again.
// What another has taken since is that one's.
func TestARenewedLeaseKeepsAFlow(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		f := y.begin(ofAnotherType(y))
		first, second := flow.New(y.db, slog.New(slog.DiscardHandler)), flow.New(y.db, slog.New(slog.DiscardHandler))
		const over = -time.Second // a lease that has ended when it begins
		first.Leases(over, time.Hour)
		must(t, first.Round(t.Context(), y.db.Now))
		if first.Holds() != 1 || !y.free() {
			t.Fatalf("it holds %d; nobody's: %t", first.Holds(), y.free())
		}
		first.Leases(flow.Lease, time.Hour)
		must(t, first.Renew(t.Context()))
		must(t, second.Round(t.Context(), y.db.Now))
		if first.Holds() != 1 || second.Holds() != 0 || y.free() {
			t.Errorf("renewed: %d and %d are held; nobody's: %t", first.Holds(), second.Holds(), y.free())
		}

		e := y.capture(y.a, "x", "{}")
		for deadline := time.Now().Add(time.Minute); y.cursor(f) < e.Seq; time.Sleep(time.Millisecond) { // it hears of the event a moment later
			before := y.cursor(f)
			must(t, first.Round(t.Context(), y.db.Now))
			if seq := y.cursor(f); seq != before {
				t.Errorf("what says nothing to a flow is written down at once: %d", seq)
			}
			must(t, first.Renew(t.Context()))
			if time.Now().After(deadline) {
				t.Fatalf("renewed, it is known to have been read to %d; want %d", y.cursor(f), e.Seq)
			}
		}

		first.Leases(over, time.Hour)
		must(t, first.Renew(t.Context()))
		must(t, second.Round(t.Context(), y.db.Now))
		if first.Holds() != 1 || second.Holds() != 1 {
			t.Fatalf("%d and %d are held of a flow whose lease was over", first.Holds(), second.Holds())
		}
		must(t, first.Renew(t.Context()))
		if first.Holds() != 0 || y.free() {
			t.Errorf("who lost its flow holds %d; nobody's: %t", first.Holds(), y.free())
		}
		must(t, second.Renew(t.Context()))
		if second.Holds() != 1 {
			t.Error("who took it lost it")
		}
	})
}

// Who lost a flow unawares learns of it at the latest when there is something to write down.
func TestWhoLostAFlowLetsGoOfItWhenItWrites(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		f := y.begin(flow.Draft{Timeout: time.Hour, Steps: []flow.StepDraft{step(y.a, func(d *flow.StepDraft) { d.Count = 2 })}})
		first, second := flow.New(y.db, slog.New(slog.DiscardHandler)), flow.New(y.db, slog.New(slog.DiscardHandler))
		first.Leases(-time.Second, time.Hour)
		must(t, first.Round(t.Context(), y.db.Now))
		must(t, second.Round(t.Context(), y.db.Now))
		y.capture(y.a, "x", "{}")
		for deadline := time.Now().Add(time.Minute); first.Holds() > 0; time.Sleep(time.Millisecond) { // it hears of the event a moment later
			must(t, first.Round(t.Context(), y.db.Now))
			if time.Now().After(deadline) {
				t.Fatal("it holds what it lost")
			}
		}
		if steps := y.read(f).Progress.Steps; second.Holds() != 1 || steps[0].Count != 0 {
			t.Errorf("%d are held by who took it; what the other wrote is kept: %+v", second.Holds(), steps[0])
		}
	})
}

// A node that runs renews by itself, while nothing is captured that says anything to its flows.
func TestANodeRenewsItsLeases(t *testing.T) {
	each(t, func(t *testing.T, y *yard) {
		f := y.begin(ofAnotherType(y))
		e := y.capture(y.a, "x", "{}")
		node := flow.New(y.db, slog.New(slog.DiscardHandler))
		node.Leases(flow.Lease, 20*time.Millisecond)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- node.Run(ctx) }()
		for deadline := time.Now().Add(time.Minute); y.cursor(f) < e.Seq; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Error("leases are not renewed")
				break
			}
		}
		stop()
		must(t, <-ended)
		if !y.free() {
			t.Error("a node that stops keeps its flows")
		}
	})
}
