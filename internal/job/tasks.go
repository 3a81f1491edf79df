package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

const (
	// taskLease is how long a task may be with a silent node before others take it over, within the 60 s of spec:
	// decisions, section 14.
	taskLease = 45 * time.Second
	// taskRenew is how often a node renews its leases.
	taskRenew = 15 * time.Second
	// lookForTasks is how often a node polls, for expired leases and lost announcements.
	lookForTasks = time.Second
	// maxLost is how many processes may die with a task before it is given up: it may be what kills them.
	maxLost = 5
	// againAfter is the delay before a failed task is retried, multiplied by the number of attempts.
	againAfter = 5 * time.Second
	// loadedBody is the size up to which a body is loaded with its task.
	loadedBody = 64 << 10
	// settleFor is how long storing the outcomes of tasks is retried; their leases last longer.
	settleFor = 15 * time.Second
	// settleAtOnce bounds the tasks that one transaction ends.
	settleAtOnce = 128
)

// TaskConfig configures the worker for one kind of task.
type TaskConfig struct {
	Kind      store.TaskKind
	Places    int // tasks in progress on this node
	PerTenant int // of one tenant among them
	// Work does a task. It is called again if it fails, if the process dies and, in rare cases, while another call for
	// the same task is still running elsewhere. If it answers rate_limited, the task is postponed by RetryAfter.
	Work func(ctx context.Context, t store.Task) error
	Log  *slog.Logger
}

// Tasks works the tasks that follow captured events. The table is the queue: a capture inserts a task in its own
// transaction, and each node leases due tasks, fairly among tenants and endpoints. When a node dies, the others take
// over once its leases expire.
type Tasks struct {
	TaskConfig
	db      *store.DB
	freed   chan struct{}
	ended   chan endedTask
	working sync.WaitGroup
	handed  *fair.Inbox[endedTask] // tasks handed over by captures
	renewal time.Duration          // how often leases are renewed

	mu      sync.Mutex
	places  *fair.Places
	held    map[int64]struct{} // tasks whose leases are to be renewed
	starved bool
	direct  *fair.Direct // counts handed over tasks by endpoint
}

type endedTask struct {
	store.Task
	tenant string
	direct bool // it was handed over by a capture
	gone   bool // its work has ended it already
	again  bool
	wait   time.Duration
}

// NewTasks returns a worker of tasks. It does nothing until [Tasks.Run].
func NewTasks(db *store.DB, cfg TaskConfig) *Tasks {
	return &Tasks{
		TaskConfig: cfg, db: db, freed: make(chan struct{}, 1), ended: make(chan endedTask, cfg.Places),
		handed: fair.NewInbox[endedTask](), renewal: taskRenew,
		places: fair.NewPlaces(cfg.Places, cfg.PerTenant), held: make(map[int64]struct{}), direct: fair.NewDirect(),
	}
}

// Run works until ctx ends, then lets running tasks end for a while. It cancels the rest, and returns them to the
// queue.
func (w *Tasks) Run(ctx context.Context) error {
	heard := w.db.Listen(store.TopicTasks(w.Kind))
	defer heard.Close()
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var settling, beginning sync.WaitGroup
	settling.Go(func() { w.settleAll(ctx) })
	stop := make(chan struct{})
	beginning.Go(func() {
		w.handed.Serve(stop, func(e endedTask) { fair.Begin(&w.working, func() { w.work(working, e) }) })
	})
	w.db.HandTasks(w.Kind, taskDesk{w})

	look, renew := time.NewTimer(0), time.NewTicker(w.renewal)
	defer look.Stop()
	defer renew.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-renew.C:
			w.renew(ctx)
			w.recall(ctx)
			continue
		case <-heard.C:
		case <-w.freed:
		case <-look.C:
		}
		began := time.Now()
		wait, err := w.round(ctx, working)
		if err != nil {
			if ctx.Err() == nil {
				w.Log.Warn("tasks could not be claimed", "kind", w.Kind, "error", err)
			}
			wait = lookForTasks
		}
		fair.Rest(ctx, began)
		look.Reset(wait)
	}

	w.db.HandTasks(w.Kind, nil)
	w.direct.Await(softStop) // what is not stored by then is taken over when its lease expires
	close(stop)
	beginning.Wait()
	if !fair.Await(&w.working, softStop) {
		cancel()
		w.working.Wait()
	}
	close(w.ended)
	settling.Wait()
	return nil
}

// softStop is how long running tasks may take when the node stops.
const softStop = 5 * time.Second

// round leases due tasks and starts them. It returns when to look again.
func (w *Tasks) round(ctx, working context.Context) (time.Duration, error) {
	queues, err := store.Read(ctx, w.db, hookglass.System, func(v *store.View) ([]store.TaskQueue, error) { return v.TaskQueues(w.Kind) })
	if err != nil {
		return lookForTasks, err
	}
	wait := lookForTasks
	due := queues[:0]
	for _, q := range queues {
		if q.Wait > 0 {
			wait = min(wait, q.Wait)
		} else {
			due = append(due, q)
		}
	}
	places := w.reserve(due)
	if len(places) == 0 {
		w.note(due, nil, nil)
		return wait, nil
	}
	claimed := make(map[int64][]store.Task)
	more := false
	whole := context.WithoutCancel(ctx) // a claim that is given up may be stored, and then nobody works until its lease ends
	err = w.db.UpdateAlong(whole, hookglass.System, func(tx *store.Tx) error {
		clear(claimed)
		more = false
		for _, q := range due {
			n := places[q.EndpointNum]
			if n == 0 {
				continue
			}
			found, err := tx.ClaimTasks(w.Kind, q.EndpointNum, n, taskLease)
			if err != nil {
				return err
			}
			claimed[q.EndpointNum] = found
			more = more || len(found) == n
		}
		return nil
	})
	if err != nil {
		clear(claimed)
	}
	w.note(due, places, claimed)
	w.begin(working, due, places, claimed)
	if more {
		wait = 0
	}
	return wait, err
}

// reserve takes places for endpoints with due tasks.
func (w *Tasks) reserve(due []store.TaskQueue) (places map[int64]int) {
	lines := make([]fair.Line, len(due))
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, q := range due {
		lines[i] = fair.Line{Tenant: fair.Tenant(q.AccountID, q.EndpointNum), Num: q.EndpointNum}
		if !w.direct.IsBehind(q.EndpointNum) {
			lines[i].Most = fair.Few // captures take the others
		}
	}
	places, w.starved = w.places.Share(lines)
	return places
}

// note records which endpoints may have more waiting tasks: those whose claimed tasks took all their places.
func (w *Tasks) note(due []store.TaskQueue, places map[int64]int, claimed map[int64][]store.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.direct.Clear()
	for _, q := range due {
		if len(claimed[q.EndpointNum]) == places[q.EndpointNum] {
			w.direct.Behind(q.EndpointNum)
		}
	}
}

// begin loads the events of the claimed tasks, starts them, and returns unused places.
func (w *Tasks) begin(working context.Context, due []store.TaskQueue, places map[int64]int, claimed map[int64][]store.Task) {
	var seqs []int64
	w.mu.Lock()
	for _, q := range due {
		tasks := claimed[q.EndpointNum]
		for range places[q.EndpointNum] - len(tasks) {
			w.places.Give(fair.Tenant(q.AccountID, q.EndpointNum), q.EndpointNum)
		}
		// If all places were used, more tasks may be waiting for places.
		w.starved = w.starved || places[q.EndpointNum] > 0 && len(tasks) == places[q.EndpointNum]
		for _, t := range tasks {
			seqs = append(seqs, t.EventSeq)
			w.held[t.Num] = struct{}{}
		}
	}
	w.mu.Unlock()
	if len(seqs) == 0 {
		return
	}
	events, err := store.Read(working, w.db, hookglass.System, func(v *store.View) (map[int64]*hookglass.Event, error) {
		return v.EventsBySeq(seqs, loadedBody)
	})
	for _, q := range due {
		for _, t := range claimed[q.EndpointNum] {
			e := endedTask{Task: t, tenant: fair.Tenant(q.AccountID, q.EndpointNum)}
			e.Event = events[t.EventSeq]
			switch {
			case err != nil:
				e.again, e.wait = true, time.Second
			case e.Event == nil: // deleted meanwhile; the task ends
			default:
				fair.Begin(&w.working, func() { w.work(working, e) })
				continue
			}
			w.ended <- e
		}
	}
}

func (w *Tasks) work(ctx context.Context, e endedTask) {
	defer func() { w.ended <- e }()
	e.Ended = func() { e.gone = true }
	if e.Lost > maxLost {
		w.Log.Error("a task was started several times and never finished: it is given up", "kind", w.Kind, "event", e.Event.ID)
		return
	}
	err := w.try(ctx, e.Task)
	var coded *hookglass.Error
	switch {
	case err == nil:
	case errors.As(err, &coded) && coded.Code == hookglass.CodeRateLimited:
		e.again, e.wait = true, coded.RetryAfter
	case errors.As(err, &coded) && coded.Code == hookglass.CodeNotFound: // the endpoint or the event was deleted
	case ctx.Err() != nil:
		e.again = true
	default:
		// Claim counts the attempts. A task that keeps failing waits longer, up to ten minutes.
		e.again, e.wait = true, min(againAfter*time.Duration(e.Claim), 10*time.Minute)
		w.Log.Warn("a task failed and will be tried again", "kind", w.Kind, "event", e.Event.ID, "again_in", e.wait, "error", err)
	}
}

func (w *Tasks) try(ctx context.Context, t store.Task) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return w.Work(ctx, t)
}

// renew renews the leases of all tasks in hand.
func (w *Tasks) renew(ctx context.Context) {
	w.mu.Lock()
	nums := slices.Sorted(maps.Keys(w.held))
	w.mu.Unlock()
	if len(nums) == 0 {
		return
	}
	err := w.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.ExtendTasks(nums, taskLease) })
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("leases of tasks could not be renewed", "kind", w.Kind, "error", err)
	}
}

// recall makes tasks due that a clock which was set back has put off. It works a piece at a time, after the leases of
// this node's tasks were renewed, which are not late then.
func (w *Tasks) recall(ctx context.Context) {
	late, err := store.Read(ctx, w.db, hookglass.System, func(v *store.View) ([]int64, error) { return v.LateTasks(w.Kind) })
	for _, endpoint := range late {
		if err == nil {
			err = w.db.UpdateAlong(ctx, hookglass.System, func(tx *store.Tx) error { return tx.RecallTasks(w.Kind, endpoint) })
		}
	}
	if err != nil && ctx.Err() == nil && !hookglass.Is(err, hookglass.CodeUnavailable) { // which the next round tells of
		w.Log.Warn("tasks that are due too late could not be looked for", "kind", w.Kind, "error", err)
	}
}

// settleAll stores the outcomes of tasks, all that wait in one transaction. A task whose outcome cannot be stored is
// done again when its lease expires.
func (w *Tasks) settleAll(ctx context.Context) {
	for first := range w.ended {
		batch := []endedTask{first}
		for len(batch) < settleAtOnce && len(w.ended) > 0 {
			batch = append(batch, <-w.ended)
		}
		began := time.Now()
		w.settle(ctx, batch)
		w.give(batch)
		fair.Rest(ctx, began)
	}
}

// settle stores the outcomes of a batch.
func (w *Tasks) settle(ctx context.Context, batch []endedTask) {
	// A fixed lock order, so that transactions do not deadlock.
	slices.SortFunc(batch, func(a, b endedTask) int { return cmp.Compare(a.Num, b.Num) })
	if !slices.ContainsFunc(batch, func(e endedTask) bool { return !e.gone }) {
		return
	}
	err := w.db.PersistAlong(context.WithoutCancel(ctx), settleFor, hookglass.System, func(tx *store.Tx) error {
		tx.MayBeLost() // the tasks would be done again, as after an error
		var done []store.Task
		for _, e := range batch {
			if e.gone {
				continue
			}
			if !e.again {
				done = append(done, e.Task)
			} else if err := tx.DeferTask(e.Task, e.wait); err != nil {
				return err
			}
		}
		return tx.EndTasks(done)
	})
	if err != nil {
		w.Log.Warn("the results of tasks could not be stored; the tasks will run again", "kind", w.Kind, "tasks", len(batch), "error", err)
	}
}

// give returns the places of settled tasks, and triggers another round if tasks may be waiting for them.
func (w *Tasks) give(batch []endedTask) {
	w.mu.Lock()
	defer w.mu.Unlock()
	look := w.starved
	for i := range batch {
		delete(w.held, batch[i].Num)
		if batch[i].direct {
			w.direct.Ended(batch[i].EndpointNum)
		}
		w.places.Give(batch[i].tenant, batch[i].EndpointNum)
		look = look || batch[i].again
	}
	if look {
		w.lookAgain()
	}
}

// lookAgain triggers the next round.
func (w *Tasks) lookAgain() {
	select {
	case w.freed <- struct{}{}:
	default:
	}
}
