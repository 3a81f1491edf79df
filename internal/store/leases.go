package store

import (
	"context"

	"hookglass"
)

// taskKinds lists all kinds of tasks.
var taskKinds = []TaskKind{TaskActions, TaskSignature, TaskVerdict, TaskSchema}

// EndLeases makes what a dead process had leased due at once: deliveries, tasks, jobs with the reruns that they work,
// flows, notification channels and the lead of the job queue. It is for a process that has just opened an embedded
// database, which nobody else uses. On PostgreSQL it does nothing: other nodes may be working.
func (db *DB) EndLeases(ctx context.Context) error {
	if db.dialect == postgres {
		return nil
	}
	return db.Update(ctx, hookglass.System, func(tx *Tx) error {
		now, clock := tx.Now.UnixMicro(), tx.dialect.clock() // tasks and runs go by the latter, which is up to a millisecond behind
		forwards, err := tx.ForwardQueues()
		if err != nil {
			return err
		}
		for _, q := range forwards {
			if _, err := tx.exec("UPDATE forwards SET due_at = $2 WHERE target = $1 AND due_at > $2 AND state = 'sending'", q.TargetID, now); err != nil {
				return err
			}
		}
		for _, kind := range taskKinds {
			tasks, err := tx.TaskQueues(kind)
			if err != nil {
				return err
			}
			for _, q := range tasks {
				if _, err := tx.exec("UPDATE event_tasks SET due_at = "+clock+" WHERE kind = $1 AND endpoint = $2 AND due_at > "+clock+" AND leased = 1", string(kind), q.EndpointNum); err != nil {
					return err
				}
			}
		}
		// A job that finds its rerun held does nothing. A rerun that waits for its turn has a job that does not run.
		if _, err := tx.exec("UPDATE action_runs SET due_at = "+clock+" WHERE due_at > "+clock+" AND rerun = 1 AND id IN (SELECT json_extract(args, '$.RunID') FROM river_job WHERE state = 'running' AND kind = $1)",
			hookglass.ActionRunJob{}.Kind()); err != nil {
			return err
		}
		if _, err := tx.requeueJobs(""); err != nil {
			return err
		}
		// Without a leader no periodic job is enqueued and no postponed one begun. A dead one leads until its time is
		// over, which is hours ahead if the clock was.
		if _, err := tx.exec("DELETE FROM river_leader"); err != nil {
			return err
		}
		if _, err := tx.exec("UPDATE flows SET leased_until = $1 WHERE finished_at IS NULL AND leased_until > $1", now); err != nil {
			return err
		}
		_, err = tx.exec("UPDATE notification_channels SET leased_until = 0 WHERE leased_until > $1", now)
		return err
	})
}
