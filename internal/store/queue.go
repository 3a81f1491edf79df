package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"hookglass"
)

// maxAttempts is for years: a job is what was promised in the transaction that enqueued it, such as the deletion of
// events, and nothing else would keep the promise.
const maxAttempts = 10_000

// queue inserts jobs; internal/job works them.
type queue struct {
	insert     func(ctx context.Context, tx *sql.Tx, params []river.InsertManyParams) error
	insertPgx  func(ctx context.Context, tx pgx.Tx, params []river.InsertManyParams) error
	migrate    func(ctx context.Context) error
	newWorkers func(*river.Config) (Workers, error)
}

// Workers is a set of job workers; see internal/job.
type Workers interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
}

// NewWorkers returns workers on this database's queue. Only internal/job calls it. Start answers unavailable if the
// storage is away, and can then be called again.
func (db *DB) NewWorkers(cfg *river.Config) (Workers, error) {
	w, err := db.queue.newWorkers(cfg)
	return startedWorkers{w, db.engine}, err
}

// startedWorkers translates the errors of Start.
type startedWorkers struct {
	Workers
	engine engine
}

// Start implements Workers.
func (w startedWorkers) Start(ctx context.Context) error {
	err := w.Workers.Start(ctx)
	for w.engine.makeRoom(err) {
		err = w.Workers.Start(ctx)
	}
	return classify(err)
}

func sqliteQueue(db *sql.DB, announced *hub) (*queue, error) {
	driver := riversqlite.New(db)
	client, err := river.NewClient(driver, &river.Config{MaxAttempts: maxAttempts})
	if err != nil {
		return nil, fmt.Errorf("store: job queue: %w", err)
	}
	return &queue{
		insert:  inserter(client),
		migrate: func(ctx context.Context) error { return migrateQueue(ctx, driver) },
		newWorkers: func(cfg *river.Config) (Workers, error) {
			return river.NewClient(announcedDriver{Driver: driver, hub: announced, queues: slices.Sorted(maps.Keys(cfg.Queues))}, cfg)
		},
	}, nil
}

func postgresQueue(pool *pgxpool.Pool, clock *clock) (*queue, error) {
	agreed := river.TestConfig{Time: queueClock{clock}}
	client, err := river.NewClient(riverdatabasesql.New(nil), &river.Config{Test: agreed, MaxAttempts: maxAttempts})
	if err != nil {
		return nil, fmt.Errorf("store: job queue: %w", err)
	}
	driver := riverpgxv5.New(pool)
	pgxClient, err := river.NewClient(driver, &river.Config{Test: agreed, MaxAttempts: maxAttempts})
	if err != nil {
		return nil, fmt.Errorf("store: job queue: %w", err)
	}
	return &queue{
		insert:    inserter(client),
		insertPgx: inserter(pgxClient),
		migrate:   func(ctx context.Context) error { return migrateQueue(ctx, driver) },
		newWorkers: func(cfg *river.Config) (Workers, error) {
			cfg.Test = agreed
			return river.NewClient(driver, cfg)
		},
	}, nil
}

// inserter returns the function by which a client inserts jobs in a transaction.
func inserter[T any](client *river.Client[T]) func(context.Context, T, []river.InsertManyParams) error {
	return func(ctx context.Context, tx T, params []river.InsertManyParams) error {
		_, err := client.InsertManyFastTx(ctx, tx, params)
		return err
	}
}

// queueClock makes the queue use the database's clock. By this machine's clock, jobs could be stamped in the database's
// future, and would wait.
type queueClock struct{ *clock }

// NowUTC implements rivertype.TimeGenerator.
func (c queueClock) NowUTC() time.Time { return c.now() }

// NowUTCOrNil implements rivertype.TimeGenerator.
func (c queueClock) NowUTCOrNil() *time.Time { at := c.now(); return &at }

// RescueJobs returns jobs to the queue that began so long ago that their worker must be dead; longer lists kinds with
// times of their own. It uses the database's clock, unlike the queue library's own rescue. It returns how many there
// were.
func (db *DB) RescueJobs(ctx context.Context, after time.Duration, longer map[string]time.Duration) (n int64, err error) {
	err = db.Update(ctx, hookglass.System, func(tx *Tx) error {
		a, d := &args{}, tx.dialect
		began := " AND attempted_at < CASE kind WHEN '' THEN " + d.jobTime(0)
		for kind, late := range longer {
			began += " WHEN " + a.add(kind) + " THEN " + d.jobTime(late)
		}
		n, err = tx.requeueJobs(began+" ELSE "+d.jobTime(after)+" END", a.all()...)
		return err
	})
	return n, err
}

// requeueJobs returns to the queue the running jobs that meet a further condition. A job without attempts left is given
// up.
func (tx *Tx) requeueJobs(and string, values ...any) (int64, error) {
	d := tx.dialect
	return tx.exec("UPDATE river_job SET state = cast(CASE WHEN attempt < max_attempts THEN 'available' ELSE 'discarded' END AS "+d.jobState()+"), scheduled_at = "+d.jobTime(0)+
		", finalized_at = CASE WHEN attempt < max_attempts THEN NULL ELSE "+d.jobTime(0)+" END WHERE state = 'running'"+and, values...)
}

// jobBegins is longer than a job takes to claim what it is about, or to be postponed.
const jobBegins = 10 * time.Second

// hasJob returns the condition that a job for an id, which its arguments hold in member, exists and will get to it: it
// waits or has just begun. A job that began longer ago without claiming may be with a node that died.
func (d dialect) hasJob(job hookglass.Queued, member, id string) string {
	names := "json_extract(args, '$." + member + "')"
	if d == postgres {
		names = "args->>'" + member + "'"
	}
	return id + " IN (SELECT " + names + " FROM river_job WHERE queue = '" + job.Queue() + "' AND kind = '" + job.Kind() +
		"' AND state IN ('available', 'retryable', 'running', 'scheduled') AND (state <> 'running' OR attempted_at > " + d.jobTime(jobBegins) + "))"
}

// hasRunJob is hasJob for a rerun of an action.
func (d dialect) hasRunJob(id string) string { return d.hasJob(hookglass.ActionRunJob{}, "RunID", id) }

func insertParams(at time.Time, jobs []hookglass.Job) []river.InsertManyParams {
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		opts := &river.InsertOpts{ScheduledAt: at}
		if q, ok := j.(hookglass.Queued); ok {
			opts.Queue = q.Queue()
		}
		params[i] = river.InsertManyParams{Args: j, InsertOpts: opts}
	}
	return params
}

func migrateQueue[T any](ctx context.Context, driver riverdriver.Driver[T]) error {
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return fmt.Errorf("store: migrate job queue: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("store: migrate job queue: %w", err)
	}
	return nil
}
