package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/replay"
)

// Each replay and each run holds its body for as long as its target takes. What does not fit into memory waits for it:
// a run in its queue, a bulk replay before its next event, and who asks for a replay is told so.
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
		bulk := b.newBatch(func(r *replay.BatchRequest) { r.Rate = replay.MaxRate })
		stopped, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer stop()
		if done, err := b.replays.WorkBatch(stopped, bulk.ID); done || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a bulk replay for which there is no room: done %t, %v", done, err)
		}
		if now, _ := b.readBatch(bulk.ID); now.Passed+now.Failed > 0 || now.State != hookglass.BatchRunning {
			t.Errorf("a bulk replay for which there is no room: %+v", now)
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
		b.work(bulk.ID)
		if now, _ := b.readBatch(bulk.ID); now.Passed != 1 || now.State != hookglass.BatchCompleted {
			t.Errorf("the bulk replay: %+v", now)
		}
		check := func(n int) {
			t.Helper()
			b.sink.mu.Lock()
			defer b.sink.mu.Unlock()
			if len(b.sink.bodies) != n {
				t.Fatalf("%d requests were sent", len(b.sink.bodies))
			}
			for i, body := range b.sink.bodies {
				if body != large && body != "small" {
					t.Errorf("request %d has a body of %d bytes", i, len(body))
				}
			}
			b.sink.heads, b.sink.bodies = nil, nil
		}
		check(5)
		for n := range 3 { // together they are larger than the room, which each returns
			must(t, again(e))
			if r := b.run(b.newCase(e, nil), fmt.Sprint(n)); r.State != hookglass.RunPassed {
				t.Errorf("one run after another: %+v", r)
			}
			bulk := b.newBatch(func(r *replay.BatchRequest) { r.Events = []string{string(e.ID)} })
			if done, err := b.replays.WorkBatch(background(t), bulk.ID); !done || err != nil {
				t.Fatalf("one bulk replay after another: done %t, %v", done, err)
			}
			check(3)
		}
	})
}
