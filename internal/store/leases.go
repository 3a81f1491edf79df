package store

import (
	"context"

	"hookglass"
)

// taskKinds lists all kinds of tasks.
var taskKinds = []TaskKind{TaskActions, TaskSignature, TaskVerdict, TaskSchema}

// EndLeases makes the deliveries and tasks that a dead process had leased due at once. It is for a process that has
// just opened an embedded database, which nobody else uses. On PostgreSQL it does nothing: other nodes may be working.
func (db *DB) EndLeases(ctx context.Context) error {
	if db.dialect == postgres {
		return nil
	}
	return db.Update(ctx, hookglass.System, func(tx *Tx) error {
		now := tx.Now.UnixMicro()
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
				if _, err := tx.exec("UPDATE event_tasks SET due_at = $3 WHERE kind = $1 AND endpoint = $2 AND due_at > $3 AND leased = 1", string(kind), q.EndpointNum, now); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
