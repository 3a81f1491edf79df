package replay_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/delivery"
	"hookglass/internal/endpoint"
	"hookglass/internal/outbound"
	"hookglass/internal/provider"
	"hookglass/internal/replay"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func (b *bench) newBatch(change func(*replay.BatchRequest)) hookglass.ReplayBatch {
	b.t.Helper()
	r := replay.BatchRequest{TargetURL: b.sink.url, Rate: 100}
	if change != nil {
		change(&r)
	}
	batch, err := b.replays.CreateBatch(b.t.Context(), b.who, string(b.ep.ID), r)
	must(b.t, err)
	return batch
}

func (b *bench) work(id string) {
	b.t.Helper()
	for done := false; !done; {
		var err error
		done, err = b.replays.WorkBatch(background(b.t), id)
		must(b.t, err)
	}
}

func (b *bench) readBatch(id string) (batch hookglass.ReplayBatch, items []hookglass.BatchItem) {
	b.t.Helper()
	must(b.t, b.db.View(b.t.Context(), b.who, func(v *store.View) (err error) {
		if batch, err = v.ReplayBatch(string(b.ep.ID), id); err != nil {
			return err
		}
		items, err = v.BatchItems(string(b.ep.ID), id, 0, 100)
		return err
	}))
	return batch, items
}

func TestABatchReplaysWhatAQueryMeansOldestFirst(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, body := range []string{"keep 1", "other", "keep 2", "keep 3"} {
			b.capture("POST", "", body)
		}
		keep := func(r *replay.BatchRequest) { r.Query = "keep" }
		if dry := b.newBatch(func(r *replay.BatchRequest) { keep(r); r.DryRun = true }); dry.Total != 3 || dry.ID != "" {
			t.Errorf("dry %+v", dry)
		}
		batch := b.newBatch(keep)
		if batch.Total != 3 || batch.State != hookglass.BatchRunning {
			t.Errorf("%+v", batch)
		}
		b.capture("POST", "", "keep 4") // came later
		b.sink.play(func(n int) string {
			status := "200 OK"
			if n == 2 {
				status = "500 X"
			}
			return "HTTP/1.1 " + status + "\r\nContent-Length: 0\r\n\r\n"
		})
		b.work(batch.ID)
		got, items := b.readBatch(batch.ID)
		if got.State != hookglass.BatchCompleted || got.Passed != 2 || got.Failed != 1 || got.FinishedAt.IsZero() {
			t.Errorf("%+v", got)
		}
		if bodies := strings.Join(b.sink.bodies, ","); bodies != "keep 1,keep 2,keep 3" {
			t.Errorf("sent %s", bodies)
		}
		if len(items) != 3 || items[1].State != hookglass.ItemFailed || items[1].StatusCode != 500 || items[0].ReplayID == "" {
			t.Errorf("%+v", items)
		}
	})
}

func TestABatchNamesEachEventOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := string(b.capture("POST", "", "x").ID)
		name := "Other"
		other, err := b.endpoints.Create(t.Context(), b.who, endpoint.Draft{Name: &name})
		must(t, err)
		elsewhere := b.prepared("POST", "", "y")
		elsewhere.EndpointNum, elsewhere.EndpointID = other.Num, other.ID
		must(t, b.db.Capture(t.Context(), b.owner.Account.ID, elsewhere))
		gone := b.capture("POST", "", "z")
		must(t, b.db.Update(t.Context(), b.who, func(tx *store.Tx) error { return tx.DeleteEvent(string(b.ep.ID), string(gone.ID)) }))
		older := "wr" + strings.TrimPrefix(e, "req") // the other prefix of the same
		named := func(r *replay.BatchRequest) {
			r.Events, r.WhatIsLeft = []string{e, older, e, string(elsewhere.ID), string(gone.ID), "req_", "x\x00", ""}, true
		}
		dry, batch := b.newBatch(func(r *replay.BatchRequest) { named(r); r.DryRun = true }), b.newBatch(named)
		if dry.Total != 1 || batch.Total != 1 {
			t.Errorf("dry %d, real %d", dry.Total, batch.Total)
		}
		if none := b.newBatch(func(r *replay.BatchRequest) { r.Events, r.WhatIsLeft = []string{"req_"}, true }); none.Total != 0 {
			t.Errorf("of what names no event: %+v", none)
		}
		for _, dry := range []bool{false, true} {
			r := replay.BatchRequest{TargetURL: b.sink.url, DryRun: dry}
			named(&r)
			r.WhatIsLeft = false
			_, err := b.replays.CreateBatch(t.Context(), b.who, string(b.ep.ID), r)
			var refused *hookglass.Error
			if !errors.As(err, &refused) || refused.Code != hookglass.CodeValidationFailed {
				t.Fatalf("dry %t: %v", dry, err)
			}
			var fields []string
			for _, f := range refused.Details {
				fields = append(fields, f.Field)
			}
			if want := []string{"request_ids.3", "request_ids.4", "request_ids.5", "request_ids.6", "request_ids.7"}; !slices.Equal(fields, want) {
				t.Errorf("dry %t: faults in %q, want %q", dry, fields, want)
			}
		}
		must(t, b.db.Update(t.Context(), b.who, func(tx *store.Tx) error { _, err := tx.DeleteAllEvents(string(b.ep.ID)); return err }))
		if none := b.newBatch(named); none.Total != 0 {
			t.Errorf("when all events are deleted: %+v", none)
		}
	})
}

// A query may match more than is read at a time.
func TestABatchHasAllThatItsQueryMatches(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const many = 501
		var capturing sync.WaitGroup
		for range 3 {
			capturing.Go(func() {
				for range many / 3 {
					if err := b.db.Capture(t.Context(), b.owner.Account.ID, b.prepared("POST", "", "x")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		capturing.Wait()
		if dry := b.newBatch(func(r *replay.BatchRequest) { r.DryRun = true }); dry.Total != many {
			t.Errorf("%d of %d events", dry.Total, many)
		}
	})
}

// That the target refuses the connection is known, so the event failed.
func TestAnEventOfABatchFailsWhereNobodyListens(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.capture("POST", "", "x")
		batch := b.newBatch(func(r *replay.BatchRequest) { r.TargetURL = nobody })
		b.work(batch.ID)
		if got, items := b.readBatch(batch.ID); got.State != hookglass.BatchCompleted || got.Failed != 1 || items[0].State != hookglass.ItemFailed || items[0].Failure == nil || items[0].StatusCode != 0 {
			t.Errorf("%+v, %+v", got, items[0])
		}
	})
}

func TestABatchStopsOnFailure(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for range 3 {
			b.capture("POST", "", "x")
		}
		b.sink.status(500)
		batch := b.newBatch(func(r *replay.BatchRequest) { r.StopOnFailure = true })
		b.work(batch.ID)
		if got, _ := b.readBatch(batch.ID); got.State != hookglass.BatchStopped || got.Failed != 1 || b.sink.hits() != 1 {
			t.Errorf("%+v, %d hits", got, b.sink.hits())
		}
		_, err := b.replays.Resume(t.Context(), b.who, string(b.ep.ID), batch.ID)
		wantCode(t, err, hookglass.CodeConflict)
	})
}

func TestABatchIsPausedResumedAndCanceled(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for range 3 {
			b.capture("POST", "", "x")
		}
		batch := b.newBatch(nil)
		move := func(fn func(context.Context, hookglass.Principal, string, string) (hookglass.ReplayBatch, error), want hookglass.BatchState) {
			t.Helper()
			got, err := fn(t.Context(), b.who, string(b.ep.ID), batch.ID)
			must(t, err)
			if got.State != want {
				t.Errorf("%s, want %s", got.State, want)
			}
		}
		move(b.replays.Pause, hookglass.BatchPaused)
		b.work(batch.ID)
		if b.sink.hits() != 0 {
			t.Error("a paused one was sent")
		}
		move(b.replays.Pause, hookglass.BatchPaused) // once more changes nothing
		move(b.replays.Resume, hookglass.BatchRunning)
		b.sink.play(func(n int) string { // is canceled while the first is under way
			move(b.replays.Cancel, hookglass.BatchCanceled)
			return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
		})
		b.work(batch.ID)
		_, err := b.replays.Pause(t.Context(), b.who, string(b.ep.ID), batch.ID)
		wantCode(t, err, hookglass.CodeConflict)
		if got, _ := b.readBatch(batch.ID); got.State != hookglass.BatchCanceled || got.Passed != 1 || b.sink.hits() != 1 {
			t.Errorf("%+v, %d hits", got, b.sink.hits())
		}
	})
}

func TestABatchIsMovedByMoreThanOneAtOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.capture("POST", "", "x")
		atOnce := func(id string, moves ...func(context.Context, hookglass.Principal, string, string) (hookglass.ReplayBatch, error)) {
			var moving sync.WaitGroup
			for range 4 {
				for _, move := range moves {
					moving.Go(func() {
						if _, err := move(t.Context(), b.who, string(b.ep.ID), id); err != nil {
							t.Error(err)
						}
					})
				}
			}
			moving.Wait()
		}
		for range 5 {
			batch := b.newBatch(nil)
			atOnce(batch.ID, b.replays.Pause) // what is asked for twice is done once
			atOnce(batch.ID, b.replays.Resume)
			atOnce(batch.ID, b.replays.Pause, b.replays.Resume)
			atOnce(batch.ID, b.replays.Cancel)
			if got, _ := b.readBatch(batch.ID); got.State != hookglass.BatchCanceled {
				t.Errorf("%+v", got)
			}
		}
	})
}

func TestABatchWhoseWorkerDiedGoesOnWithoutSendingTwice(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for range 3 {
			b.capture("POST", "", "x")
		}
		batch := b.newBatch(nil)
		b.begin(&batch)
		b.work(batch.ID) // one that comes for it while it may be under way leaves it alone
		if got, _ := b.readBatch(batch.ID); got.State != hookglass.BatchRunning || got.Passed != 0 || b.sink.hits() != 0 {
			t.Errorf("%+v, %d hits", got, b.sink.hits())
		}
		jobs := b.db.Listen(store.TopicJobs)
		defer jobs.Close()
		must(t, b.replays.Sweep(t.Context(), time.Now().Add(time.Second)))
		if jobs.Heard() == 0 {
			t.Error("no job for the rest")
		}
		b.work(batch.ID)
		got, items := b.readBatch(batch.ID)
		if got.State != hookglass.BatchCompleted || got.Passed != 2 || got.Failed != 1 || items[0].State != hookglass.ItemUnknown || b.sink.hits() != 2 {
			t.Errorf("%+v, %+v, %d hits", got, items[0], b.sink.hits())
		}
	})
}

// Its worker may die between the cancellation and the answer: nothing else would say what is known of that event.
func TestTheEventUnderWayInACanceledBatchHasAnEnd(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for range 2 {
			b.capture("POST", "", "x")
		}
		batch := b.newBatch(nil)
		b.begin(&batch)
		_, err := b.replays.Cancel(t.Context(), b.who, string(b.ep.ID), batch.ID)
		must(t, err)
		must(t, b.replays.Sweep(t.Context(), time.Now().Add(-time.Minute)))
		if _, items := b.readBatch(batch.ID); items[0].State != hookglass.ItemSending {
			t.Errorf("it may be under way still, and is %s", items[0].State)
		}
		for range 2 { // the second time changes nothing
			must(t, b.replays.Sweep(t.Context(), time.Now().Add(time.Second)))
			got, items := b.readBatch(batch.ID)
			if got.State != hookglass.BatchCanceled || got.Failed != 1 || items[0].State != hookglass.ItemUnknown || items[1].State != hookglass.ItemPending {
				t.Errorf("%+v, %+v", got, items)
			}
		}
	})
}

// A batch is not complete while its last event is under way, with a worker that may have died.
func TestABatchEndsWithItsLastEvent(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.capture("POST", "", "x")
		batch := b.newBatch(nil)
		b.begin(&batch)
		b.work(batch.ID)
		if got, _ := b.readBatch(batch.ID); got.State != hookglass.BatchRunning || !got.FinishedAt.IsZero() {
			t.Errorf("while its event is under way: %+v", got)
		}
		must(t, b.replays.Sweep(t.Context(), time.Now().Add(time.Second)))
		b.work(batch.ID)
		if got, _ := b.readBatch(batch.ID); got.State != hookglass.BatchCompleted || got.Failed != 1 {
			t.Errorf("when it has an end: %+v", got)
		}
	})
}

// A node that starts on an embedded database is the only one: whatever is under way there has no worker. Beside other
// nodes that is so only of what began long ago.
func TestANodeThatStartsLeavesToOthersWhatTheyHave(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.capture("POST", "", "x")
		old, fresh := b.newBatch(nil), b.newBatch(nil)
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			tx.Now = tx.Now.Add(-time.Hour)
			_, _, err := tx.BeginBatchItem(&old)
			return err
		}))
		b.begin(&fresh)
		state := func(batch hookglass.ReplayBatch) hookglass.ItemState {
			_, items := b.readBatch(batch.ID)
			return items[0].State
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.node().Run(ctx) }()
		for deadline := time.Now().Add(time.Minute); state(old) != hookglass.ItemUnknown && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		}
		stop()
		must(t, <-ended)
		want := hookglass.ItemUnknown
		if b.db.Postgres() {
			want = hookglass.ItemSending
		}
		if state(old) != hookglass.ItemUnknown || state(fresh) != want {
			t.Errorf("what began an hour ago is %s; what has just begun is %s, want %s", state(old), state(fresh), want)
		}
	})
}

// begin leaves the marker of a worker that dies.
func (b *bench) begin(batch *hookglass.ReplayBatch) {
	b.t.Helper()
	must(b.t, b.db.Update(b.t.Context(), hookglass.System, func(tx *store.Tx) error {
		_, _, err := tx.BeginBatchItem(batch)
		return err
	}))
}

func TestABatchThatStopsOnFailureStopsWhereItsWorkerDied(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for range 2 {
			b.capture("POST", "", "x")
		}
		batch := b.newBatch(func(r *replay.BatchRequest) { r.StopOnFailure = true })
		b.begin(&batch)
		must(t, b.replays.Sweep(t.Context(), time.Now().Add(time.Second)))
		b.work(batch.ID)
		if got, _ := b.readBatch(batch.ID); got.State != hookglass.BatchStopped || b.sink.hits() != 0 {
			t.Errorf("%+v, %d hits", got, b.sink.hits())
		}
	})
}

// once fails the first time that it is asked.
type once struct {
	delivery.Client
	verifiers        replay.Verifiers
	sending, reading error
}

func (o *once) Do(ctx context.Context, r outbound.Request) (*outbound.Response, error) {
	if err := o.sending; err != nil {
		o.sending = nil
		return nil, err
	}
	return o.Client.Do(ctx, r)
}

func (o *once) Verifiers(v *store.View, ref string) ([]provider.Config, error) {
	if err := o.reading; err != nil {
		o.reading = nil
		return nil, err
	}
	return o.verifiers.Verifiers(v, ref)
}

func TestABatchDoesNotCountWhatNeverLeft(t *testing.T) {
	for name, trouble := range map[string]once{
		"no turn":         {sending: &outbound.Failure{Code: outbound.CodeBusy}},
		"stopped":         {sending: &outbound.Failure{Code: outbound.CodeCanceled}},
		"storage is away": {reading: hookglass.Errorf(hookglass.CodeUnavailable, "The storage cannot answer now.")},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bench) {
				for range 2 {
					b.capture("POST", "", "x")
				}
				batch := b.newBatch(func(r *replay.BatchRequest) { r.StopOnFailure = true })
				cfg := b.config()
				o := trouble // each database has its own
				o.Client, o.verifiers = cfg.Client, cfg.Verifiers
				cfg.Client, cfg.Verifiers = &o, &o
				node := replay.New(b.db, cfg)
				for done := false; !done; {
					var err error
					if done, err = node.WorkBatch(background(t), batch.ID); err != nil && !hookglass.Is(err, hookglass.CodeUnavailable) {
						t.Fatal(err)
					}
				}
				got, _ := b.readBatch(batch.ID)
				if got.State != hookglass.BatchCompleted || got.Passed != 2 || got.Failed != 0 || b.sink.hits() != 2 {
					t.Errorf("%+v, %d hits", got, b.sink.hits())
				}
			})
		})
	}
}

// A node that stops lets what is under way end, for a while: an event that it began then would be cut off.
func TestABatchIsLeftToOthersWhereTheNodeStops(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for range 3 {
			b.capture("POST", "", "x")
		}
		b.sink.block()
		batch := b.newBatch(nil)
		node := b.node()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- node.Run(ctx) }()
		worked := make(chan bool, 1)
		go func() {
			done, err := node.WorkBatch(background(t), batch.ID)
			worked <- done || err != nil
		}()
		<-b.sink.got // the first is under way
		stop()
		must(t, <-ended)
		b.sink.release()
		if <-worked {
			t.Error("there is nothing left, or it failed")
		}
		if got, _ := b.readBatch(batch.ID); got.State != hookglass.BatchRunning || got.Passed != 1 || got.Failed != 0 || b.sink.hits() != 1 {
			t.Errorf("%+v, %d hits", got, b.sink.hits())
		}
		// A job that the queue had given out before it stopped comes late.
		if done, err := node.WorkBatch(background(t), batch.ID); done || err != nil || b.sink.hits() != 1 {
			t.Errorf("after the end: done %t, %v, %d hits", done, err, b.sink.hits())
		}
		b.work(batch.ID)
		if got, _ := b.readBatch(batch.ID); got.State != hookglass.BatchCompleted || got.Passed != 3 || b.sink.hits() != 3 {
			t.Errorf("%+v, %d hits", got, b.sink.hits())
		}
	})
}

// What the target makes of a request that is cut off is not known, and it is not sent again.
func TestAnEventOfABatchThatIsCutOffWhileTheTargetHoldsItIsUnknown(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.capture("POST", "", "x")
		b.sink.block()
		batch := b.newBatch(nil)
		ctx, cancel := context.WithCancel(t.Context())
		worked := make(chan error, 1)
		go func() { _, err := b.replays.WorkBatch(ctx, batch.ID); worked <- err }()
		<-b.sink.got
		cancel()
		<-worked
		b.sink.release()
		b.work(batch.ID)
		if got, items := b.readBatch(batch.ID); got.State != hookglass.BatchCompleted || items[0].State != hookglass.ItemUnknown || b.sink.hits() != 1 {
			t.Errorf("%s, %+v, %d hits", got.State, items[0], b.sink.hits())
		}
	})
}

func TestAResumedBatchHasOneSender(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for range 6 {
			b.capture("POST", "", "x")
		}
		b.sink.status(500)
		b.sink.block()
		batch := b.newBatch(func(r *replay.BatchRequest) { r.StopOnFailure = true })
		ended := make(chan error, 1)
		go func() {
			_, err := b.replays.WorkBatch(background(t), batch.ID)
			ended <- err
		}()
		<-b.sink.got // the first is under way
		for range 4 {
			_, err := b.replays.Pause(t.Context(), b.who, string(b.ep.ID), batch.ID)
			must(t, err)
			_, err = b.replays.Resume(t.Context(), b.who, string(b.ep.ID), batch.ID)
			must(t, err)
			if done, err := b.node().WorkBatch(background(t), batch.ID); err != nil || !done { // what the resumption's job does
				t.Errorf("%v %v", done, err)
			}
		}
		_, err := b.replays.Pause(t.Context(), b.who, string(b.ep.ID), batch.ID)
		must(t, err)
		b.sink.release()
		must(t, <-ended)
		_, err = b.replays.Resume(t.Context(), b.who, string(b.ep.ID), batch.ID)
		wantCode(t, err, hookglass.CodeConflict)
		b.work(batch.ID)
		if got, _ := b.readBatch(batch.ID); got.State != hookglass.BatchStopped || got.Failed != 1 || b.sink.hits() != 1 {
			t.Errorf("%+v, %d hits", got, b.sink.hits())
		}
	})
}

func TestWorkersOfABatchKeepItsOrderAndItsRateTogether(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const rate = 40
		var want []string
		for i := range 6 {
			want = append(want, strconv.Itoa(i))
			b.capture("POST", "", want[i])
		}
		var last time.Time
		b.sink.play(func(int) string {
			last = time.Now()
			return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
		})
		batch := b.newBatch(func(r *replay.BatchRequest) { r.Rate = rate })
		began := time.Now()
		var working sync.WaitGroup
		for range 4 {
			node := b.node()
			working.Go(func() {
				for done := false; !done; { // each works for some seconds
					var err error
					if done, err = node.WorkBatch(background(t), batch.ID); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		working.Wait()
		got, _ := b.readBatch(batch.ID)
		if got.State != hookglass.BatchCompleted || got.Passed != 6 || !slices.Equal(b.sink.bodies, want) {
			t.Errorf("%+v, sent %v", got, b.sink.bodies)
		}
		if took := last.Sub(began); took < 5*time.Second/rate { // the first not before, the others each so much later
			t.Errorf("six in %v", took)
		}
	})
}

func TestABatchOutlivesADeletedEvent(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		e := b.capture("POST", "", "x")
		b.capture("POST", "", "y")
		batch := b.newBatch(nil)
		must(t, b.db.Update(t.Context(), b.who, func(tx *store.Tx) error { return tx.DeleteEvent(string(b.ep.ID), string(e.ID)) }))
		b.work(batch.ID)
		got, items := b.readBatch(batch.ID)
		if got.State != hookglass.BatchCompleted || got.Passed != 1 || got.Failed != 1 || items[0].Failure == nil || items[0].Failure.Code != "not_found" {
			t.Errorf("%+v %+v", got, items)
		}
	})
}

func TestWhatABatchMayNotBe(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		event := b.capture("POST", "", "x")
		for name, r := range map[string]replay.BatchRequest{
			"rate":        {TargetURL: b.sink.url, Rate: 101},
			"below":       {TargetURL: b.sink.url, Rate: -1},
			"query":       {TargetURL: b.sink.url, Rate: 1, Query: "status:nonsense"},
			"target_url":  {Rate: 1},
			"identity":    {TargetURL: b.sink.url, Rate: 1, Identity: "x"},
			"request_ids": {TargetURL: b.sink.url, Rate: 1, Events: []string{}},
			"both":        {TargetURL: b.sink.url, Rate: 1, Events: []string{string(event.ID)}, Query: "x"},
			"too many":    {TargetURL: b.sink.url, Rate: 1, Events: slices.Repeat([]string{string(event.ID)}, 1001)},
		} {
			_, err := b.replays.CreateBatch(t.Context(), b.who, string(b.ep.ID), r)
			if !hookglass.Is(err, hookglass.CodeValidationFailed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, times := range []int{1, 1000} {
			right := replay.BatchRequest{TargetURL: b.sink.url, Rate: 1, Events: slices.Repeat([]string{string(event.ID)}, times)}
			if _, err := b.replays.CreateBatch(t.Context(), b.who, string(b.ep.ID), right); err != nil {
				t.Errorf("what is right: %v", err)
			}
		}
		_, err := b.replays.CreateBatch(t.Context(), b.who, string(b.ep.ID), replay.BatchRequest{TargetURL: "http://10.0.0.1"})
		wantCode(t, err, hookglass.CodeTargetNotAllowed)
		begun := b.newBatch(func(r *replay.BatchRequest) { r.Identity = "regenerate" })
		b.setPayment(false)
		_, err = b.replays.CreateBatch(t.Context(), b.who, string(b.ep.ID), replay.BatchRequest{TargetURL: b.sink.url, Identity: "regenerate"})
		wantCode(t, err, hookglass.CodePaymentMethodRequired)
		b.work(begun.ID) // the right may end in between
		if _, items := b.readBatch(begun.ID); items[0].State != hookglass.ItemFailed || items[0].Failure == nil || items[0].Failure.Code != string(hookglass.CodePaymentMethodRequired) || b.sink.hits() != 0 {
			t.Errorf("without the right it sends %d requests: %+v", b.sink.hits(), items[0])
		}
	})
}

// What nodes write down for one another goes by the database's clock (decision 0025).
func TestABatchGoesByTheDatabasesClock(t *testing.T) {
	ahead := func() time.Time { return time.Now().Add(time.Hour) }
	b := newBench(t, storetest.Open(t, store.Config{Path: filepath.Join(t.TempDir(), "hookglass.db"), Clock: ahead}))
	e := b.capture("POST", "", "x")
	b.work(b.newBatch(nil).ID)
	if all := b.history(e, 0, 1); len(all) != 1 || all[0].At.Sub(b.db.Now()).Abs() > time.Minute {
		t.Errorf("replayed at %v, which is %v", all[0].At, b.db.Now())
	}
}
