package action

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// saver stores runs in batches: workers that store at the same time share a transaction and its statements, which are
// most of the cost of a run of local steps. It rests after each transaction.
//
// It also limits how many workers compute at a time, and knows how many are about to store. A node takes dozens of
// tasks at once; if all of them were runnable, every capture would queue behind them.
type saver struct {
	db       *store.DB
	turn     chan struct{} // held by the worker that writes for all waiting ones
	seats    chan struct{} // one for each worker that computes
	standing atomic.Int64  // workers that compute without a seat
	busy     atomic.Int64  // workers that compute or wait for a seat

	mu      sync.Mutex
	waiting []*saving
}

// saving is what one worker stores.
type saving struct {
	ctx   context.Context // of the task: bounds the retries
	runs  []*store.RunSave
	ended *store.Task // a task to end in the same transaction, or nil
	err   error
	done  chan struct{}
}

const (
	// savedAtOnce bounds one transaction.
	savedAtOnce = 128
	// gatherTime is how long a transaction waits for workers that still compute; gatherLook is how often it looks.
	gatherTime = 2 * time.Millisecond
	gatherLook = 200 * time.Microsecond
	// seatPatience is how long a worker waits for a seat before it computes without one: patterns may take seconds.
	seatPatience = 20 * time.Millisecond
)

// newSaver returns a saver that leaves half of the processors to others.
func newSaver(db *store.DB) *saver {
	return &saver{db: db, turn: make(chan struct{}, 1), seats: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// enter is called before computing.
func (s *saver) enter() {
	s.busy.Add(1)
	select {
	case s.seats <- struct{}{}:
		return
	default:
	}
	patience := time.NewTimer(seatPatience)
	defer patience.Stop()
	select {
	case s.seats <- struct{}{}:
	case <-patience.C:
		s.standing.Add(1)
	}
}

// leave is called after computing. While somebody has no seat, the one that becomes free is theirs.
func (s *saver) leave() {
	s.busy.Add(-1)
	for n := s.standing.Load(); n > 0; n = s.standing.Load() {
		if s.standing.CompareAndSwap(n, n-1) {
			return
		}
	}
	<-s.seats
}

// save stores runs and, unless ended is nil, ends a task. It returns when they are on disk. It answers errElsewhere
// when another worker has one of the runs.
func (s *saver) save(ctx context.Context, ended *store.Task, runs ...*store.RunSave) error {
	w := &saving{ctx: ctx, runs: runs, ended: ended, done: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	s.leave()
	defer s.enter()
	select {
	case <-w.done: // another worker has written it
	case s.turn <- struct{}{}:
		began := time.Now()
		s.writeAll()
		go func() {
			fair.Rest(context.Background(), began)
			<-s.turn
		}()
		<-w.done
	}
	return w.err
}

// away runs fn, which waits rather than computes, without a seat.
func (s *saver) away(fn func()) {
	s.leave()
	defer s.enter()
	fn()
}

// writeAll writes everything that waits; what comes meanwhile is left to the next call. The caller holds the turn.
func (s *saver) writeAll() {
	for began := time.Now(); s.busy.Load() > 0 && time.Since(began) < gatherTime; {
		time.Sleep(gatherLook)
	}
	s.mu.Lock()
	all := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	for chunk := range slices.Chunk(all, savedAtOnce) {
		s.write(chunk)
	}
}

// write stores all in one transaction. If that fails, it stores each in its own, because one may have made all fail.
func (s *saver) write(all []*saving) {
	err := s.transact(all)
	for _, w := range all {
		if w.err = err; err != nil && len(all) > 1 && !hookglass.Is(err, hookglass.CodeUnavailable) {
			w.err = s.transact([]*saving{w})
		}
		if w.err == nil {
			w.err = w.ours()
		}
		close(w.done)
	}
}

func (w *saving) ours() error {
	for _, r := range w.runs {
		if !r.Ours {
			return errElsewhere
		}
	}
	return nil
}

// transact stores in one transaction. It goes on when the process stops, and retries while the storage is briefly away:
// otherwise a request that was sent would end with an unknown outcome.
func (s *saver) transact(all []*saving) error {
	// All tasks end together when the process stops, so the context of one serves for all.
	return s.db.PersistAlong(all[0].ctx, saveTimeout, hookglass.System, func(tx *store.Tx) error {
		var runs []*store.RunSave
		for _, w := range all {
			runs = append(runs, w.runs...)
		}
		if err := tx.SaveActionRuns(runs); err != nil {
			return err
		}
		var ended []store.Task
		for _, w := range all {
			if w.ended != nil && w.ours() == nil {
				ended = append(ended, *w.ended)
			}
		}
		return tx.EndTasks(ended)
	})
}

// saveTimeout bounds storing the outcome of what was sent.
const saveTimeout = 15 * time.Second
