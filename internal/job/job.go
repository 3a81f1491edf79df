// Package job works the queue. It has one small worker per job struct of the root package, which calls one capability,
// and the schedule of periodic jobs. It holds no policy. It hides the queue library, its retries, and how the work of a
// dead process is recovered.
package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"hookglass"
	"hookglass/internal/store"
)

const (
	// jobTimeout ends a job that hangs. The longest is a batch of a bulk replay: 15 s plus one delivery of 30 s.
	jobTimeout = 50 * time.Second
	// rescueAfter is when work counts as orphaned by a dead node, and rescueEvery is how often that is checked: it is
	// taken over within the 60 s of spec: decisions, section 14.
	rescueAfter = jobTimeout + 2*time.Second
	rescueEvery = 3 * time.Second
	// replayWorkers mostly wait for targets. One tenant gets half of them at most, see internal/replay.
	replayWorkers = 64
	// actionWorkers mostly wait for targets, too. One tenant gets half of them at most, see internal/action.
	// actionTimeout bounds a rerun until it ends or is postponed: the longest step takes 300 s.
	actionWorkers = 64
	actionTimeout = hookglass.ActionDeadline + time.Minute
	// purgeEvery meets "at least every minute" (spec: decisions, section 14), even if one run is missed.
	purgeEvery = 25 * time.Second
	// alertEvery bounds how late an alert notices.
	alertEvery = 10 * time.Second
	// retryWithin is how long a job that keeps failing waits at most. The queue's own waits grow to days.
	retryWithin = time.Hour
	// jobsStop is how long running jobs may take when the node stops. Connections may have taken 20 s before, and the
	// process must end within the 30 s of spec: decisions, section 14.
	jobsStop = 8 * time.Second
	// fetchEvery is how often a queue is polled, for postponed jobs and lost announcements. Each poll writes, and makes
	// captures wait on the embedded database.
	fetchEvery = time.Second
)

// Captures is used by the jobs of captured events.
type Captures interface {
	// Purge deletes events past their retention and endpoints past their life.
	Purge(ctx context.Context) error
	// Erase erases a part of what is left of a deleted endpoint or of deleted events, and reports whether that was the
	// last.
	Erase(ctx context.Context, endpointNum int64) (done bool, err error)
}

// Accounts is used by the jobs of accounts.
type Accounts interface {
	// Purge deletes expired sessions, links, tokens and rate limits.
	Purge(ctx context.Context) error
	// Tell logs a change that an administration command made.
	Tell(ctx context.Context, note hookglass.NoteJob)
}

// Alerts is used by the job of alerts.
type Alerts interface {
	// Evaluate rolls up figures and evaluates all alerts. It may run concurrently.
	Evaluate(ctx context.Context) error
}

// Tags is used by the jobs of tags.
type Tags interface {
	// Retag continues the renaming or deletion of a tag for a while, and enqueues a job for the rest.
	Retag(ctx context.Context, j hookglass.RetagJob) error
}

// Replays is used by the jobs of replays.
type Replays interface {
	// ExecuteRun sends a queued case run, once at most, however often it is called. It answers rate_limited if the
	// tenant has too many runs in progress.
	ExecuteRun(ctx context.Context, runID string) error
	// WorkBatch continues a bulk replay for a while and reports whether this worker is done with it.
	WorkBatch(ctx context.Context, batchID string) (done bool, err error)
	// Purge deletes runs and bulk replays past their retention.
	Purge(ctx context.Context) error
}

// Shares is used by the job of share links.
type Shares interface {
	// Purge deletes expired links.
	Purge(ctx context.Context) error
}

// Actions is used by the jobs of actions.
type Actions interface {
	// ExecuteRun starts or continues a rerun, in one place at a time, however often it is called. It answers
	// rate_limited if a step is to be retried later, or if the tenant has too many runs in progress.
	ExecuteRun(ctx context.Context, runID string) error
}

// rerun works reruns of actions. It is a type because it needs its own timeout.
type rerun struct {
	river.WorkerDefaults[hookglass.ActionRunJob]
	db      *store.DB
	actions Actions
}

// Work implements river.Worker.
func (w *rerun) Work(ctx context.Context, j *river.Job[hookglass.ActionRunJob]) error {
	return inTurn(w.db, w.actions.ExecuteRun(ctx, j.Args.RunID))
}

// Timeout implements river.Worker.
func (w *rerun) Timeout(*river.Job[hookglass.ActionRunJob]) time.Duration { return actionTimeout }

// Workers work the job queue on one node.
type Workers struct {
	db      *store.DB
	log     *slog.Logger
	workers store.Workers
	stop    time.Duration

	stopping *atomic.Bool
}

// Capabilities are called by the jobs.
type Capabilities struct {
	Captures Captures
	Accounts Accounts
	Alerts   Alerts
	Tags     Tags
	Replays  Replays
	Shares   Shares
	Actions  Actions
}

// workers returns a worker for each kind of job.
func (do Capabilities) workers(db *store.DB) *river.Workers {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[hookglass.PurgeJob]) error {
		return errors.Join(do.Captures.Purge(ctx), do.Accounts.Purge(ctx), do.Replays.Purge(ctx), do.Shares.Purge(ctx))
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, j *river.Job[hookglass.EraseJob]) error {
		done, err := do.Captures.Erase(ctx, j.Args.EndpointNum)
		if err == nil && !done {
			return snooze(db, 0) // continue after other jobs
		}
		return err
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, j *river.Job[hookglass.NoteJob]) error {
		do.Accounts.Tell(ctx, j.Args)
		return nil
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[hookglass.AlertJob]) error {
		return do.Alerts.Evaluate(ctx)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, j *river.Job[hookglass.RetagJob]) error {
		return do.Tags.Retag(ctx, j.Args)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, j *river.Job[hookglass.ReplayRunJob]) error {
		return inTurn(db, do.Replays.ExecuteRun(ctx, j.Args.RunID))
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, j *river.Job[hookglass.ReplayBatchJob]) error {
		done, err := do.Replays.WorkBatch(ctx, j.Args.BatchID)
		if err == nil && !done {
			return snooze(db, 0)
		}
		return inTurn(db, err)
	}))
	river.AddWorker(workers, &rerun{db: db, actions: do.Actions})
	return workers
}

// New returns workers that are not started.
func New(db *store.DB, do Capabilities, log *slog.Logger) (*Workers, error) {
	return build(db, do, log, fetchEvery)
}

func build(db *store.DB, do Capabilities, log *slog.Logger, fetchEvery time.Duration) (*Workers, error) {
	stopping := new(atomic.Bool)
	w, err := db.NewWorkers(&river.Config{
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 16}, hookglass.ReplayQueue: {MaxWorkers: replayWorkers}, hookglass.ActionQueue: {MaxWorkers: actionWorkers}},
		Workers:              do.workers(db),
		Logger:               slog.New(quiet{log.With("part", "job").Handler(), stopping, new(faults)}),
		JobTimeout:           jobTimeout,
		RescueStuckJobsAfter: 24 * time.Hour, // effectively off: it uses one node's clock, see rescue
		RetryPolicy:          retries{db},
		FetchPollInterval:    fetchEvery,
		FetchCooldown:        100 * time.Millisecond,
		PeriodicJobs: []*river.PeriodicJob{
			river.NewPeriodicJob(river.PeriodicInterval(purgeEvery), func() (river.JobArgs, *river.InsertOpts) {
				return hookglass.PurgeJob{}, periodically(purgeEvery)
			}, &river.PeriodicJobOpts{RunOnStart: true}),
			river.NewPeriodicJob(river.PeriodicInterval(alertEvery), func() (river.JobArgs, *river.InsertOpts) {
				return hookglass.AlertJob{}, periodically(alertEvery)
			}, &river.PeriodicJobOpts{RunOnStart: true}),
		},
		CompletedJobRetentionPeriod: 10 * time.Minute,
		CancelledJobRetentionPeriod: 24 * time.Hour,
		DiscardedJobRetentionPeriod: 7 * 24 * time.Hour,
	})
	if err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	return &Workers{db: db, log: log.With("part", "job"), workers: w, stop: jobsStop, stopping: stopping}, nil
}

// periodically returns how a periodic job is inserted. It is not retried, because the next one comes soon, and two
// concurrent runs gain nothing. One that has ended prevents none: once a clock is set back, periods that it has counted
// come again, and all of their jobs have ended.
func periodically(every time.Duration) *river.InsertOpts {
	unended := []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled}
	return &river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByPeriod: every, ByState: unended}}
}

// inTurn postpones a job whose turn has not come, or that failed because the storage is unavailable. The queue's own
// retries would wait longer after each failure, for minutes after a longer outage.
func inTurn(db *store.DB, err error) error {
	if later, ok := errors.AsType[*hookglass.Error](err); ok && (later.Code == hookglass.CodeRateLimited || later.Code == hookglass.CodeUnavailable) {
		return snooze(db, later.RetryAfter)
	}
	return err
}

// Run works jobs until ctx ends, then lets running ones finish for a while before it cancels them.
func (w *Workers) Run(ctx context.Context) error {
	// The queue's own context must outlive ctx, because its end would cancel jobs at once.
	if started, err := w.start(ctx); !started {
		return err
	}
	w.rescue(ctx)
	w.stopping.Store(true)
	soft, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.stop)
	defer cancel()
	if err := w.workers.Stop(soft); err == nil {
		return nil
	}
	hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := w.workers.StopAndCancel(hard); err != nil {
		return fmt.Errorf("job: stop: %w", err)
	}
	return nil
}

// start starts the workers once the storage is available, and reports whether they run. It is no error if ctx ends
// first.
func (w *Workers) start(ctx context.Context) (started bool, err error) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := w.workers.Start(context.WithoutCancel(ctx))
		if err == nil {
			return true, nil
		}
		if !hookglass.Is(err, hookglass.CodeUnavailable) {
			return false, fmt.Errorf("job: start: %w", err)
		}
		w.log.Warn("jobs are not worked yet: the storage cannot answer now", "error", err, "retry_in", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false, nil
		}
	}
}

// rescue recovers jobs of dead nodes until ctx ends. All nodes do this; each job is recovered by one of them.
func (w *Workers) rescue(ctx context.Context) {
	longer := map[string]time.Duration{hookglass.ActionRunJob{}.Kind(): actionTimeout + rescueAfter - jobTimeout}
	tick := time.NewTicker(rescueEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		switch n, err := w.db.RescueJobs(ctx, rescueAfter, longer); {
		case err != nil && ctx.Err() == nil:
			w.log.Warn("jobs of dead nodes could not be looked for", "error", err)
		case n > 0:
			w.log.Info("jobs were taken over from a dead node", "jobs", n)
		}
	}
}

// snooze postpones a job. The queue adds the duration to this machine's clock and compares the sum with the database's.
func snooze(db *store.DB, wait time.Duration) error {
	own := time.Now()
	return &river.JobSnoozeError{Duration: wait + db.Stamp(own).Sub(own)}
}

// retries is the queue's own policy with a limit, converted to the clock by which it is compared.
type retries struct{ db *store.DB }

// NextRetry implements river.ClientRetryPolicy.
func (r retries) NextRetry(j *rivertype.JobRow) time.Time {
	var own river.DefaultClientRetryPolicy
	at := own.NextRetry(j)
	if latest := time.Now().Add(retryWithin); at.After(latest) {
		at = latest
	}
	return r.db.Stamp(at)
}
