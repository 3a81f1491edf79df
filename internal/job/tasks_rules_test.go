package job_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/job"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// wait is how long it is until the first task that is left is due: until a lease ends, where it is in hand.
func (b *bench) wait() time.Duration {
	b.t.Helper()
	var wait time.Duration
	err := b.db.View(b.t.Context(), hookglass.System, func(v *store.View) error {
		queues, err := v.TaskQueues(store.TaskActions)
		if err == nil && len(queues) == 0 {
			b.t.Fatal("no task is left")
		}
		wait = queues[0].Wait
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return wait
}

// die has so many processes claim a task of the endpoint and die at once.
func (b *bench) die(times int) {
	b.claim(times, func(*store.Tx, store.Task) error { return nil })
}

func (b *bench) claim(times int, then func(*store.Tx, store.Task) error) {
	b.t.Helper()
	for range times {
		err := b.db.Update(b.t.Context(), hookglass.System, func(tx *store.Tx) error {
			found, err := tx.ClaimTasks(store.TaskActions, b.endpoint.Num, 1, 0)
			if err != nil {
				return err
			}
			if len(found) != 1 {
				return errors.New("the task is not due")
			}
			return then(tx, found[0])
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// Others take a task over when its lease ends, so that a long one would be done twice.
func TestTheLeaseOfATaskInHandIsRenewed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for name, body := range map[string]string{"handed over by its capture": "body", "found in the table": strings.Repeat("b", 64<<10+1)} {
			t.Run(name, func(t *testing.T) {
				b := newBench(t, db)
				begun, end := make(chan struct{}), make(chan struct{})
				var long atomic.Bool
				node := b.tasks(8, 8, func(context.Context, store.Task) error {
					if long.Load() {
						close(begun)
						<-end
					}
					return nil
				})
				node.Renewing(5 * time.Millisecond)
				defer b.runTasks(node)()
				b.capture()
				until(t, "the node is at work", func() bool { return b.left() == 0 })
				long.Store(true)
				b.captureOf(body)
				<-begun
				last := b.wait()
				until(t, "the lease lasts longer than before", func() bool {
					before := last
					last = b.wait()
					return last > before
				})
				close(end)
				until(t, "the task is done", func() bool { return b.left() == 0 })
			})
		}
	})
}

// It may be what kills them; others go on.
func TestATaskThatProcessesDieOfIsGivenUp(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for name, c := range map[string]struct{ deaths, worked int }{"as often as may be": {job.MaxLost, 1}, "once more": {job.MaxLost + 1, 0}} {
			t.Run(name, func(t *testing.T) {
				b := newBench(t, db)
				b.capture()
				b.die(c.deaths)
				var mu sync.Mutex
				worked := 0
				stop := b.run(func(context.Context, store.Task) error {
					mu.Lock()
					defer mu.Unlock()
					worked++
					return nil
				})
				until(t, "the task is forgotten", func() bool { return b.left() == 0 })
				stop()
				if worked != c.worked {
					t.Errorf("it was worked %d times, want %d", worked, c.worked)
				}
			})
		}
	})
}

// A task that fails or panics is tried again after 5 s times the number of times that it was tried, and after no more
// than ten minutes.
func TestATaskThatFailsWaitsTheLongerTheMoreOftenItDid(t *testing.T) {
	fails := func(context.Context, store.Task) error { return errors.New("it does not work") }
	for name, c := range map[string]struct {
		before int
		work   func(context.Context, store.Task) error
		wait   time.Duration
	}{
		"the first time":     {0, fails, 5 * time.Second},
		"a panic":            {0, func(context.Context, store.Task) error { panic("it does not work") }, 5 * time.Second},
		"the fourth time":    {3, fails, 20 * time.Second},
		"time and time over": {199, fails, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				var b *bench
				var at time.Time
				for again := true; again; { // on a busy machine it can be due again before the node is told to stop
					b = newBench(t, db)
					b.capture()
					b.claim(c.before, func(tx *store.Tx, task store.Task) error { return tx.DeferTask(task, 0) })
					var times atomic.Int64
					failed := make(chan time.Time, 1)
					stop := b.run(func(ctx context.Context, task store.Task) error {
						if times.Add(1) > 1 {
							return nil
						}
						defer func() { failed <- time.Now() }()
						return c.work(ctx, task)
					})
					at = <-failed
					stop() // when what became of it is written down
					again = times.Load() > 1
				}
				if wait, past := b.wait(), time.Since(at); wait > c.wait || wait < c.wait-past-time.Second {
					t.Errorf("it waits for %v, %v after it failed; want %v", wait, past, c.wait)
				}
			})
		})
	}
}

func TestATaskThatSaysWhenIsDoneThen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.capture()
		begun := make(chan time.Time)
		stop := b.run(func(context.Context, store.Task) error {
			begun <- time.Now()
			return &hookglass.Error{Code: hookglass.CodeRateLimited, RetryAfter: time.Hour}
		})
		at := <-begun
		stop()
		if wait, past := b.wait(), time.Since(at); wait > time.Hour || wait < time.Hour-past-time.Second {
			t.Errorf("it waits for %v, want an hour", wait)
		}
	})
}

// Nothing tells a node that a lease has ended, or that the time of a task has come.
func TestATaskIsDoneWhenItsTimeComesWithoutBeingTold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.capture()
		const later = 300 * time.Millisecond
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			_, err := tx.ClaimTasks(store.TaskActions, b.endpoint.Num, 1, later) // by a process that dies
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		calls := 0
		stop := b.run(func(context.Context, store.Task) error {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls == 1 {
				return &hookglass.Error{Code: hookglass.CodeRateLimited, RetryAfter: later}
			}
			return nil
		})
		until(t, "the task is done", func() bool { return b.left() == 0 })
		stop()
		if calls != 2 {
			t.Errorf("it was begun %d times, want once when its lease had ended and once when its time had come", calls)
		}
	})
}

func TestATaskOfWhatWentAwayWhileItWasWorkedIsForgotten(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.capture()
		defer b.run(func(context.Context, store.Task) error { return hookglass.NotFound("request") })()
		until(t, "the task is forgotten", func() bool { return b.left() == 0 })
	})
}

// A node with one place does nothing more when it is not given back.
func TestAPlaceIsFreeAgainHoweverItsTaskEnds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		gone := newBench(t, db)
		for range 3 {
			gone.capture()
		}
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEndpoint(&gone.endpoint) })
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t, db)
		var mu sync.Mutex
		begun, tried := 0, make(map[int64]int)
		node := b.tasks(1, 1, func(_ context.Context, task store.Task) error {
			mu.Lock()
			defer mu.Unlock()
			begun++
			tried[task.Num]++
			switch {
			case begun%3 == 0:
				return hookglass.NotFound("request")
			case begun%3 == 1 && tried[task.Num] == 1:
				return &hookglass.Error{Code: hookglass.CodeRateLimited}
			}
			return nil
		})
		defer b.runTasks(node)()
		until(t, "the tasks of deleted events are gone", func() bool { return b.left() == 0 })
		for range 30 {
			b.capture()
			if err := db.CaptureWith(t.Context(), 0, gone.event("body"), store.Work{Tasks: []store.TaskKind{store.TaskActions}}); err == nil {
				t.Fatal("an event of a deleted endpoint was captured")
			}
		}
		until(t, "all tasks are done", func() bool { return b.left() == 0 })
		b.capture()
		until(t, "another is done", func() bool { return b.left() == 0 })
	})
}

// A node takes more places than it then finds tasks for.
func TestPlacesThatNoTaskTookAreFreeAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		var together atomic.Bool
		begun, end := make(chan struct{}, 2), make(chan struct{})
		defer b.runTasks(b.tasks(4, 4, func(ctx context.Context, _ store.Task) error {
			if together.Load() {
				begun <- struct{}{}
				select {
				case <-end:
				case <-ctx.Done():
				}
			}
			return nil
		}))()
		large := strings.Repeat("b", 64<<10+1) // its task is found in the table
		for range 4 {
			b.captureOf(large)
			until(t, "the task is done", func() bool { return b.left() == 0 })
		}
		together.Store(true)
		b.captureOf(large)
		b.captureOf(large)
		until(t, "two are in hand", func() bool { return len(begun) == 2 })
		close(end)
		until(t, "both are done", func() bool { return b.left() == 0 })
	})
}

// A node looks once a second without being told; one that waited for that with each task would need minutes here.
func TestAPlaceThatIsFreeIsTakenAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		for range 150 {
			b.capture()
		}
		defer b.runTasks(b.tasks(1, 1, func(context.Context, store.Task) error { return nil }))()
		until(t, "all tasks are done", func() bool { return b.left() == 0 })
	})
}

func TestAnEndpointWithMuchToDoDoesNotHaveAllPlaces(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b, other := newBench(t, db), newBench(t, db)
		for range 5 {
			b.capture()
		}
		var mu sync.Mutex
		under := 0
		end, done := make(chan struct{}), make(chan struct{}, 1)
		node := b.tasks(5, 4, func(_ context.Context, task store.Task) error {
			if task.EndpointNum == other.endpoint.Num {
				done <- struct{}{}
				return nil
			}
			mu.Lock()
			under++
			mu.Unlock()
			<-end
			mu.Lock()
			under--
			mu.Unlock()
			return nil
		})
		defer b.runTasks(node)()
		defer close(end)
		holds := func() int { mu.Lock(); defer mu.Unlock(); return under }
		until(t, "one endpoint has half of what its tenant may", func() bool { return holds() == 2 })
		for range 5 {
			other.capture()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("the other tenant waits for the first")
			}
			b.capture()
			if n := holds(); n != 2 {
				t.Fatalf("an endpoint has %d tasks under way, want 2 of the 4 that its tenant may", n)
			}
		}
	})
}

// A task that waited in the table for a node to look would be due there.
func TestATaskOfAnEventCapturedHereIsInHandWhenTheEventIsStored(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		var end chan struct{}
		stop := b.run(func(context.Context, store.Task) error {
			if end != nil {
				<-end
			}
			return nil
		})
		b.capture()
		until(t, "the node is at work", func() bool { return b.left() == 0 })
		for range 5 {
			end = make(chan struct{})
			b.capture()
			if wait := b.wait(); wait <= 0 {
				t.Error("the task of an event is in nobody's hand")
			}
			close(end)
			until(t, "the task is done", func() bool { return b.left() == 0 })
		}
		stop()
		b.capture()
		if wait := b.wait(); wait > 0 {
			t.Errorf("a node that has stopped has a task in hand, for %v", wait)
		}
	})
}

func TestASmallBodyComesWithItsTaskAndALargeOneDoesNot(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		came := make(chan *hookglass.Event)
		defer b.run(func(_ context.Context, task store.Task) error { came <- task.Event; return nil })()
		for _, size := range []int{1, 64 << 10, 64<<10 + 1} {
			for range 2 {
				b.captureOf(strings.Repeat("b", size))
				if ev, small := <-came, size <= 64<<10; ev.Size != int64(size) || (ev.Payload != nil) != small || small && len(ev.Body) != size {
					t.Errorf("of %d bytes: %+v", size, ev)
				}
			}
		}
	})
}
