package replay_test

import (
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/replay"
)

// Each replay and each run holds its body for as long as its target takes. What does not fit into memory waits for it:
// a run in its queue, and who asks for a replay is told so.
func TestReplaysHoldFewLargeEventsAtATime(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		large := strings.Repeat("x", 20<<20)
		e := b.capture("POST", "", large)
		q, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), b.newCase(e, nil).ID, "k")
		must(t, err)
		b.sink.block()
		b.replays.SetRoomTime(0)
		again := func(e *hookglass.Event) error {
			r, err := b.replays.Replay(t.Context(), b.who, string(b.ep.ID), string(e.ID), replay.Request{TargetURL: b.sink.url})
			if err == nil && r.Failure != nil {
				t.Errorf("%+v", r.Failure)
			}
			return err
		}
		ended := make(chan error, 3)
		for range 2 {
			go func() { ended <- again(e) }()
			<-b.sink.got
		}
		wantCode(t, again(e), hookglass.CodeRateLimited)
		wantCode(t, b.replays.ExecuteRun(t.Context(), q.ID), hookglass.CodeRateLimited)
		if r := b.readRun(q.ID); r.State != hookglass.RunQueued {
			t.Errorf("a run for which there is no room: %+v", r)
		}
		small := b.capture("POST", "", "small")
		go func() { ended <- again(small) }()
		<-b.sink.got // goes on beside them
		b.sink.release()
		for range 3 {
			must(t, <-ended)
		}
		must(t, b.replays.ExecuteRun(t.Context(), q.ID))
		if r := b.readRun(q.ID); r.State != hookglass.RunPassed {
			t.Errorf("the run: %+v", r)
		}
		b.sink.mu.Lock()
		defer b.sink.mu.Unlock()
		if len(b.sink.bodies) != 4 {
			t.Fatalf("%d requests were sent", len(b.sink.bodies))
		}
		for i, body := range b.sink.bodies {
			if body != large && body != "small" {
				t.Errorf("request %d has a body of %d bytes", i, len(body))
			}
		}
	})
}
