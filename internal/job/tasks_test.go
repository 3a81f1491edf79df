package job_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/job"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// bench is an endpoint whose events have tasks.
type bench struct {
	t        *testing.T
	db       *store.DB
	endpoint hookglass.Endpoint
}

func newBench(t *testing.T, db *store.DB) *bench {
	b := &bench{t: t, db: db, endpoint: hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "test", Kind: hookglass.KindWebhook}}
	err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.CreateEndpoint(&b.endpoint, nil) })
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) capture() int64 { return b.captureOf("body") }

func (b *bench) captureOf(body string) int64 {
	b.t.Helper()
	ev := b.event(body)
	if err := b.db.CaptureWith(b.t.Context(), 0, ev, store.Work{Tasks: []store.TaskKind{store.TaskActions}}); err != nil {
		b.t.Fatal(err)
	}
	return ev.Seq
}

func (b *bench) event(body string) *hookglass.Event {
	at := time.Now().UTC()
	return &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, at), EndpointNum: b.endpoint.Num, EndpointID: b.endpoint.ID, Type: hookglass.EventWebhook, ReceivedAt: at,
		Method: "POST", Path: "/", Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked, Size: int64(len(body)),
		Payload: &hookglass.Payload{Body: []byte(body)},
	}
}

// run works tasks until the returned function is called.
func (b *bench) run(work func(context.Context, store.Task) error) (stop func()) {
	return b.runTasks(b.tasks(8, 8, work))
}

func (b *bench) tasks(places, perTenant int, work func(context.Context, store.Task) error) *job.Tasks {
	return job.NewTasks(b.db, job.TaskConfig{Kind: store.TaskActions, Places: places, PerTenant: perTenant, Work: work, Log: slog.New(slog.DiscardHandler)})
}

func (b *bench) runTasks(tasks *job.Tasks) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := tasks.Run(ctx); err != nil {
			b.t.Error(err)
		}
	}()
	return func() { cancel(); <-ended }
}

func (b *bench) left() int {
	b.t.Helper()
	n := 0
	err := b.db.View(b.t.Context(), hookglass.System, func(v *store.View) error {
		queues, err := v.TaskQueues(store.TaskActions)
		n = len(queues)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// until waits for a condition that other goroutines bring about.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func TestEveryTaskIsDoneAndForgotten(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		var mu sync.Mutex
		done := make(map[int64]int)
		work := func(_ context.Context, task store.Task) error {
			mu.Lock()
			defer mu.Unlock()
			if task.Event == nil || task.Event.Seq != task.EventSeq || string(task.Event.Body) != "body" {
				t.Errorf("a task without its event: %+v", task)
			}
			done[task.EventSeq]++
			return nil
		}
		first := b.capture() // before anybody works
		defer b.run(work)()
		defer b.run(work)() // a second node
		for range 50 {
			b.capture()
		}
		until(t, "all tasks are done", func() bool { return b.left() == 0 })
		mu.Lock()
		defer mu.Unlock()
		if len(done) != 51 || done[first] == 0 {
			t.Errorf("done: %v", done)
		}
		for seq, n := range done {
			if n != 1 {
				t.Errorf("task of event %d was done %d times", seq, n)
			}
		}
	})
}

func TestATaskThatIsGivenBackOrFailsIsDoneAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.capture()
		var mu sync.Mutex
		calls := 0
		stop := b.run(func(context.Context, store.Task) error {
			mu.Lock()
			defer mu.Unlock()
			switch calls++; calls {
			case 1:
				return &hookglass.Error{Code: hookglass.CodeRateLimited, RetryAfter: 10 * time.Millisecond}
			case 2:
				return &hookglass.Error{Code: hookglass.CodeRateLimited}
			}
			return nil
		})
		defer stop()
		until(t, "the task is done", func() bool { return b.left() == 0 })
		mu.Lock()
		defer mu.Unlock()
		if calls != 3 {
			t.Errorf("%d calls", calls)
		}
	})
}

func TestATaskInHandIsHandedBackWhenTheNodeStops(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.capture()
		begun := make(chan struct{})
		stop := b.run(func(ctx context.Context, _ store.Task) error {
			close(begun)
			<-ctx.Done()
			return errors.New("cut off")
		})
		<-begun
		stop()
		again := make(chan struct{})
		defer b.run(func(_ context.Context, task store.Task) error {
			if task.Lost != 0 {
				t.Error("a task that was handed back counts as lost")
			}
			close(again)
			return nil
		})()
		select {
		case <-again:
		case <-time.After(time.Minute):
			t.Error("nobody took it")
		}
	})
}

func TestATaskOfADeletedEventIsForgotten(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.capture()
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEndpoint(&b.endpoint) })
		if err != nil {
			t.Fatal(err)
		}
		defer b.run(func(context.Context, store.Task) error { t.Error("it was worked"); return nil })()
		until(t, "the task is gone", func() bool { return b.left() == 0 })
	})
}

// What captures hand over beyond the places of this node waits in the table, and is done all the same, once.
func TestTasksThatComeTogetherAreEachDoneOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		var mu sync.Mutex
		done, under, most := make(map[int64]int), 0, 0
		stop := b.run(func(_ context.Context, task store.Task) error {
			mu.Lock()
			under++
			most = max(most, under)
			mu.Unlock()
			time.Sleep(2 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			under--
			if task.Event == nil || task.Event.Seq != task.EventSeq || string(task.Event.Body) != "body" || task.Claim == 0 {
				t.Errorf("%+v", task)
			}
			done[task.EventSeq]++
			return nil
		})
		defer stop()
		const n = 200
		var captures sync.WaitGroup
		for range n {
			captures.Go(func() { b.capture() })
		}
		captures.Wait()
		until(t, "all tasks are done", func() bool { return b.left() == 0 })
		mu.Lock()
		defer mu.Unlock()
		if len(done) != n || most > 8 {
			t.Errorf("%d of %d tasks done, %d at once", len(done), n, most)
		}
		for seq, times := range done {
			if times != 1 {
				t.Errorf("the task of event %d was done %d times", seq, times)
			}
		}
	})
}

// A task waits ten minutes at most. One that is due later was put off before the clock was set back.
func TestATaskDoesNotWaitForAClockThatWasSetBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.capture()
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			claimed, err := tx.ClaimTasks(store.TaskActions, b.endpoint.Num, 1, time.Minute)
			if err != nil {
				return err
			}
			return tx.DeferTask(claimed[0], 2*time.Hour)
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		tasks := b.tasks(1, 1, func(context.Context, store.Task) error { close(done); return nil })
		tasks.Renewing(5 * time.Millisecond)
		defer b.runTasks(tasks)()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("it was not done within a minute")
		}
	})
}
