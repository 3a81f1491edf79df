package store

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"hookglass"
)

// RunSave is the progress of a run, to be stored together with what its steps change.
type RunSave struct {
	*HeldRun
	New     bool              // the run has no row yet
	Lease   time.Duration     // how long to hold it from now, unless it is final
	Effects []func(*Tx) error // further changes; they must not lock events, figures or counters
	Mark    EventMark

	// Ours is the result. It is false, and nothing of the save is stored, if somebody else holds the run, it is final
	// or deleted, the action has run on the event already, or the event is deleted.
	Ours bool
}

// SaveActionRuns stores many runs at once and counts those that have ended.
func (tx *Tx) SaveActionRuns(saves []*RunSave) error {
	// A fixed lock order, so that transactions do not deadlock.
	saves = slices.Clone(saves)
	slices.SortStableFunc(saves, func(a, b *RunSave) int {
		return cmp.Or(cmp.Compare(a.EventSeq, b.EventSeq), cmp.Compare(a.ActionNum, b.ActionNum))
	})
	err := tx.lockMarked(saves)
	if err != nil {
		return err
	}
	var ended []*RunSave
	for _, s := range saves {
		switch {
		case s.New && s.Status.Final():
			ended = append(ended, s)
		case s.New:
			s.Ours, err = tx.InsertActionRun(s.HeldRun, s.Lease)
		default:
			s.Ours, err = tx.SaveActionRun(s.HeldRun, s.Lease)
		}
		if err != nil {
			return err
		}
	}
	if err := tx.insertEnded(ended); err != nil {
		return err
	}
	var marks []EventMark
	var counted []*hookglass.ActionRun
	for _, s := range saves {
		if !s.Ours {
			continue
		}
		if s.Status.Final() {
			counted = append(counted, &s.ActionRun)
		}
		for _, effect := range s.Effects {
			if err := effect(tx); err != nil {
				return err
			}
		}
		if s.marks() {
			marks = append(marks, s.Mark)
		}
	}
	if err := tx.CountActionRuns(counted...); err != nil {
		return err
	}
	return tx.MarkEvents(marks) // last, because it locks the counters
}

// lockMarked locks the events that are to be marked if one of their runs has a row already: deleting an event locks it
// before its runs, so a save must do the same.
func (tx *Tx) lockMarked(saves []*RunSave) error {
	var seqs []int64
	stored := false
	for _, s := range saves {
		if s.marks() {
			seqs, stored = append(seqs, s.EventSeq), stored || !s.New
		}
	}
	if !stored {
		return nil
	}
	return tx.lockRows(tx.dialect.forUpdate(), "SELECT seq FROM events WHERE "+tx.dialect.among("seq", "$1")+" ORDER BY seq", tx.dialect.list(seqs))
}

// marks reports whether the save changes the event.
func (s *RunSave) marks() bool { return len(s.Mark.Tags) > 0 || s.Mark.Ignore != "" }

// DeleteOrphanRuns examines up to limit runs with a Num above the given one and deletes those whose event is gone. On
// PostgreSQL a run can be stored while another transaction deletes its event, because neither sees the other. It
// returns the last Num examined, or 0 at the end.
func (tx *Tx) DeleteOrphanRuns(above int64, limit int) (reached int64, err error) {
	type row struct{ num, event int64 }
	rows, err := queryAll(&tx.View, func(scan func(...any) error) (r row, err error) {
		var event sql.NullInt64
		err = scan(&r.num, &event)
		r.event = event.Int64
		return r, err
	}, "SELECT r.num, (SELECT v.seq FROM events v WHERE v.seq = r.event) FROM action_runs r WHERE r.num > $1 ORDER BY r.num LIMIT $2", above, limit)
	if err != nil {
		return above, err
	}
	var orphans []int64
	for _, r := range rows {
		if r.event == 0 {
			orphans = append(orphans, r.num)
		}
	}
	if len(orphans) > 0 {
		if _, err := tx.exec("DELETE FROM action_runs WHERE "+tx.dialect.among("num", "$1"), tx.dialect.list(orphans)); err != nil {
			return above, err
		}
	}
	if len(rows) < limit {
		return 0, nil
	}
	return rows[limit-1].num, nil
}

// insertEnded stores, in one statement, ended runs that have no row yet.
func (tx *Tx) insertEnded(saves []*RunSave) error {
	if len(saves) == 0 {
		return nil
	}
	in := input{columns: []inputColumn{
		{"id", inputText}, {"endpoint", inputInteger}, {"action", inputInteger}, {"action_id", inputText}, {"event", inputInteger}, {"event_id", inputText},
		{"status", inputText}, {"trace", inputBytes}, {"created_at", inputInteger}, {"started_at", inputInteger}, {"finished_at", inputInteger},
	}}
	byID := make(map[string]*RunSave, len(saves))
	for _, s := range saves {
		trace, err := json.Marshal(s.Trace)
		if err != nil {
			return err
		}
		s.CreatedAt, s.Claim, s.Ours = tx.createdAt(s.HeldRun), 1, false
		byID[s.ID] = s
		in.rows = append(in.rows, []any{
			s.ID, s.EndpointNum, s.ActionNum, s.ActionID, s.EventSeq, string(s.EventID), string(s.Status), trace,
			s.CreatedAt.UnixMicro(), micros(s.StartedAt), micros(s.FinishedAt),
		})
	}
	from, args, err := in.from(tx.dialect, "i")
	if err != nil {
		return err
	}
	return tx.queryEach(func(scan func(...any) error) error {
		var num int64
		var id string
		if err := scan(&num, &id); err != nil {
			return err
		}
		byID[id].Num, byID[id].Ours = num, true
		tx.announceBad(byID[id].HeldRun)
		return nil
	}, `INSERT INTO action_runs (id, endpoint, action, action_id, event, event_id, rerun, status, trace, claim, created_at, started_at, finished_at)
		SELECT id, endpoint, action, action_id, event, event_id, 0, status, trace, 1, created_at, started_at, finished_at FROM `+from+" WHERE "+eventLives+`
		ON CONFLICT (event, action) WHERE rerun = 0 DO NOTHING RETURNING num, id`, args...)
}
