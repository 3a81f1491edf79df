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

// saver stores what runs have come to. Those that have something to store at the same time share a transaction and its
// statements, which is most of what a run of local steps costs. After each it rests.
//
// It also knows who computes: who comes to a transaction in a moment, and how many may at a time. A node takes dozens
// of tasks at once, and were they all ready to run, each capture would stand behind them.
type saver struct {
	db    *store.DB
	turn  chan struct{} // held by who writes for all that wait
	seats chan struct{} // of those who compute
	busy  atomic.Int64  // those who compute, or wait for a seat

	mu      sync.Mutex
	waiting []*saving
}

// saving is what one worker stores.
type saving struct {
	ctx   context.Context // of the task: how long it is tried again
	runs  []*store.RunSave
	ended *store.Task // ends with it; nil: none
	err   error
	done  chan struct{}
}

const (
	// savedAtOnce bounds one transaction.
	savedAtOnce = 128
	// gatherTime is how long a transaction waits for workers that compute, looking each gatherLook.
	gatherTime = 2 * time.Millisecond
	gatherLook = 200 * time.Microsecond
	// seatPatience is how long one waits for a seat before one goes without: patterns may take seconds.
	seatPatience = 20 * time.Millisecond
)

// newSaver leaves half of the processors to others.
func newSaver(db *store.DB) *saver {
	return &saver{db: db, turn: make(chan struct{}, 1), seats: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// enter is called by whoever is going to compute.
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
	}
}

// leave is called by whoever has computed.
func (s *saver) leave() {
	s.busy.Add(-1)
	select {
	case <-s.seats:
	default: // it went without
	}
}

// save stores runs, and the end of a task unless ended is nil. It returns when they are on disk. It answers
// errElsewhere when another worker has one of the runs.
func (s *saver) save(ctx context.Context, ended *store.Task, runs ...*store.RunSave) error {
	w := &saving{ctx: ctx, runs: runs, ended: ended, done: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	s.leave()
	defer s.enter()
	select {
	case <-w.done: // another has written it
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

// away does what takes the time of who computes but not the processor's.
func (s *saver) away(fn func()) {
	s.leave()
	defer s.enter()
	fn()
}

// writeAll writes all that waits, and leaves what comes meanwhile to the next. Whoever has the turn calls it.
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

// write stores many in one transaction. If that fails, it stores each in a transaction of its own, because one may have
// made all fail.
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

// transact stores in one transaction, also when the process stops meanwhile, or the storage is away for a moment: a
// request that was sent would count as one of which nobody knows what became of it.
func (s *saver) transact(all []*saving) error {
	// Tasks end together when the process stops, so the time of one is that of all.
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

// saveTimeout is for writing down what was sent.
const saveTimeout = 15 * time.Second
