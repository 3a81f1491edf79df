package store

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hookglass"
)

// A rerun without a parent is a child of the first run. The parent is looked up on reading: the first run is stored
// when it has ended, which may be after the rerun was.
const actionRunColumns = `r.num, r.id, r.endpoint, e.id, r.action, r.action_id, r.event, r.event_id, CASE WHEN r.rerun = 0 THEN NULL ELSE
	coalesce(r.parent_id, (SELECT f.id FROM action_runs f WHERE f.event = r.event AND f.action = r.action AND f.rerun = 0)) END, r.rerun, r.status, r.trace,
	r.created_at, r.started_at, r.finished_at`

const actionRunTables = ` FROM action_runs r JOIN endpoints e ON e.num = r.endpoint + 0`

func scanActionRun(scan func(...any) error) (r hookglass.ActionRun, err error) {
	var parent sql.NullString
	var rerun, created int64
	var started, finished sql.NullInt64
	var trace []byte
	err = scan(&r.Num, &r.ID, &r.EndpointNum, &r.EndpointID, &r.ActionNum, &r.ActionID, &r.EventSeq, &r.EventID, &parent, &rerun, &r.Status, &trace,
		&created, &started, &finished)
	if err != nil {
		return r, err
	}
	r.ParentID, r.Rerun = parent.String, rerun != 0
	r.CreatedAt, r.StartedAt, r.FinishedAt = time.UnixMicro(created).UTC(), fromMicros(started), fromMicros(finished)
	err = readTrace(&r, trace)
	return r, err
}

// readTrace decodes the trace column.
func readTrace(r *hookglass.ActionRun, trace []byte) error {
	r.Trace = hookglass.Trace{}
	if len(trace) == 0 {
		return nil
	}
	if err := json.Unmarshal(trace, &r.Trace); err != nil {
		return fmt.Errorf("trace of %s: %w", r.ID, err)
	}
	return nil
}

// ActionRuns lists the runs of an action, deleted or not, newest first. If before is not empty, only those with a
// smaller id are listed. It answers not_found.
//
// Ids are in the order of creation. Numbers are in the order of storing: a run may be stored when it has ended, long
// after one that began later.
func (v *View) ActionRuns(ref, actionID, before string, limit int) ([]hookglass.ActionRun, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	var num int64
	if action, err := v.action(e.Num, actionID); err == nil {
		num = action.Num
	} else if !hookglass.Is(err, hookglass.CodeNotFound) {
		return nil, err
	} else if num, err = one(v, "action", scanNum, "SELECT action FROM action_runs WHERE endpoint = $1 AND action_id = $2 LIMIT 1", &args{[]any{e.Num, actionID}}); err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + actionRunColumns + actionRunTables + " WHERE " + v.dialect.newestRuns(a, "r.action", num, before, limit)
	return queryAll(v, scanActionRun, query, a.all()...)
}

// EndpointActionRuns lists the runs of all actions of an endpoint, deleted ones included, as ActionRuns does.
func (v *View) EndpointActionRuns(ref, before string, limit int) ([]hookglass.ActionRun, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + actionRunColumns + actionRunTables + " WHERE " + v.dialect.newestRuns(a, "r.endpoint", e.Num, before, limit)
	return queryAll(v, scanActionRun, query, a.all()...)
}

// newestRuns is newestOf for runs, by their ids.
func (d dialect) newestRuns(a *args, owner string, of int64, before string, limit int) string {
	if before == "" {
		before = "z" // above all ids
	}
	id := d.byBytes("r.id")
	return d.rowsOf(owner, id, a.add(of), "''", a.add(before)) + " ORDER BY " + owner + " DESC, " + id + " DESC" + a.limit(limit)
}

// ActionRun returns one run of an endpoint; its action may be deleted. It answers not_found.
func (v *View) ActionRun(ref, id string) (r hookglass.ActionRun, err error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return r, err
	}
	return v.actionRun("r.endpoint = $1 AND r.id = $2", e.Num, id)
}

func (v *View) actionRun(condition string, values ...any) (hookglass.ActionRun, error) {
	return one(v, "action run", scanActionRun, "SELECT "+actionRunColumns+actionRunTables+" WHERE "+condition, &args{values})
}

// FirstActionRun returns the run of an action on an event that is not a rerun. It answers not_found.
func (v *View) FirstActionRun(actionNum, eventSeq int64) (hookglass.ActionRun, error) {
	return v.actionRun("r.action = $1 AND r.event = $2 AND r.rerun = 0", actionNum, eventSeq)
}

// HeldRun is a run and the lease on it. Claim is a fencing token: a save with an older one is refused.
type HeldRun struct {
	hookglass.ActionRun
	Claim      int64
	Checkpoint []byte // sealed state from which the run can continue; nil: not begun
}

const selectHeldRuns = "SELECT " + actionRunColumns + ", r.claim, r.checkpoint" + actionRunTables

func scanHeldRun(scan func(...any) error) (h HeldRun, err error) {
	h.ActionRun, err = scanActionRun(func(dest ...any) error { return scan(append(dest, &h.Claim, &h.Checkpoint)...) })
	return h, err
}

// FirstActionRuns lists the runs on an event that are not reruns.
func (v *View) FirstActionRuns(eventSeq int64) ([]HeldRun, error) {
	return queryAll(v, scanHeldRun, selectHeldRuns+" WHERE r.event = $1 AND r.rerun = 0", eventSeq)
}

// HeldActionRun returns a run by its id, with its claim and checkpoint. It answers not_found.
func (v *View) HeldActionRun(id string) (HeldRun, error) {
	a := &args{}
	query := selectHeldRuns + " WHERE r.id = " + a.add(id) + " AND" + v.endpointScope(a)
	return one(v, "action run", scanHeldRun, query, a)
}

// InsertActionRun stores a new run and, unless it is final, leases it to the caller. It reports false, and stores
// nothing, if the action has run on the event already or the event is deleted.
func (tx *Tx) InsertActionRun(h *HeldRun, lease time.Duration) (bool, error) {
	trace, err := json.Marshal(h.Trace)
	if err != nil {
		return false, err
	}
	h.CreatedAt, h.Claim = tx.createdAt(h), 1
	in := input{columns: []inputColumn{
		{"id", inputText}, {"endpoint", inputInteger}, {"action", inputInteger}, {"action_id", inputText}, {"event", inputInteger}, {"event_id", inputText},
		{"parent_id", inputText}, {"rerun", inputInteger}, {"status", inputText}, {"trace", inputBytes}, {"checkpoint", inputBytes},
		{"lease", inputInteger}, {"created_at", inputInteger}, {"started_at", inputInteger}, {"finished_at", inputInteger},
	}, rows: [][]any{{
		h.ID, h.EndpointNum, h.ActionNum, h.ActionID, h.EventSeq, string(h.EventID), nullString(h.ParentID), boolInt(h.Rerun), string(h.Status), trace, checkpoint(h),
		leaseOf(h, lease), h.CreatedAt.UnixMicro(), micros(h.StartedAt), micros(h.FinishedAt),
	}}}
	from, args, err := in.from(tx.dialect, "i")
	if err != nil {
		return false, err
	}
	err = tx.queryRow("action run", `INSERT INTO action_runs (id, endpoint, action, action_id, event, event_id, parent_id, rerun, status, trace, checkpoint, claim, due_at,
			created_at, started_at, finished_at)
		SELECT id, endpoint, action, action_id, event, event_id, parent_id, rerun, status, trace, checkpoint, 1, `+tx.dialect.clock()+` + lease,
			created_at, started_at, finished_at FROM `+from+" WHERE "+eventLives+" ON CONFLICT (event, action) WHERE rerun = 0 DO NOTHING RETURNING num", args, &h.Num)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return false, nil
	}
	return err == nil, err
}

// eventLives is the condition that the event of an input row i is not deleted. A run is deleted with its event, even
// one in progress. The event is looked up for each row in a subquery: a join that PostgreSQL plans while there are few
// events scans all of them, also once there are many.
const eventLives = "(SELECT v.seq FROM events v WHERE v.endpoint = i.endpoint AND v.seq = i.event) > (SELECT s.floor_seq FROM endpoint_stats s WHERE s.endpoint = i.endpoint)"

// leaseOf returns the lease of a run in microseconds, or nil for a final run, which needs none.
func leaseOf(h *HeldRun, lease time.Duration) any {
	if h.Status.Final() {
		return nil
	}
	return lease.Microseconds()
}

// createdAt returns the creation time of a run: its start if it is first stored after it began.
func (tx *Tx) createdAt(h *HeldRun) time.Time {
	if !h.StartedAt.IsZero() && h.StartedAt.Before(tx.Now) {
		return h.StartedAt
	}
	return tx.Now
}

// checkpoint returns the value of the checkpoint column.
func checkpoint(h *HeldRun) any {
	if h.Status.Final() || h.Checkpoint == nil {
		return nil
	}
	return h.Checkpoint
}

// due returns the expression for when the run's lease ends.
func (tx *Tx) due(a *args, h *HeldRun, lease time.Duration) string {
	if h.Status.Final() {
		return "NULL"
	}
	return tx.dialect.clock() + " + cast(" + a.add(lease.Microseconds()) + " AS bigint)"
}

// TakeActionRun takes over the lease of a run that is not final: from then on only the new Claim may save it. Without
// force it does so only if the lease has expired. It updates h with the stored state, because the previous holder may
// have made progress since h was read. It reports false if it could not take the lease.
func (tx *Tx) TakeActionRun(h *HeldRun, lease time.Duration, force bool) (bool, error) {
	a := &args{}
	query := "UPDATE action_runs SET claim = claim + 1, due_at = " + tx.due(a, h, lease) + " WHERE num = " + a.add(h.Num) + " AND finished_at IS NULL"
	if !force {
		query += " AND due_at <= " + tx.dialect.clock()
	}
	var started sql.NullInt64
	var trace []byte
	err := tx.queryRow("action run", query+" RETURNING claim, status, trace, checkpoint, started_at", a.all(), &h.Claim, &h.Status, &trace, &h.Checkpoint, &started)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h.StartedAt = fromMicros(started)
	return true, readTrace(&h.ActionRun, trace)
}

// SaveActionRun stores the progress of a leased run and, unless the run is final now, renews the lease. It reports
// false, and stores nothing, if the claim is no longer valid, or the run is final or deleted. A run in progress counts
// as deleted with its endpoint, whose rows are erased later.
func (tx *Tx) SaveActionRun(h *HeldRun, lease time.Duration) (bool, error) {
	trace, err := json.Marshal(h.Trace)
	if err != nil {
		return false, err
	}
	a := &args{}
	query := "UPDATE action_runs SET status = " + a.add(string(h.Status)) + ", trace = " + a.add(trace) + ", checkpoint = " + a.add(checkpoint(h)) +
		", due_at = " + tx.due(a, h, lease) + ", started_at = " + a.add(micros(h.StartedAt)) + ", finished_at = " + a.add(micros(h.FinishedAt)) +
		" WHERE num = " + a.add(h.Num) + " AND claim = " + a.add(h.Claim) + " AND finished_at IS NULL"
	if !h.Status.Final() {
		query += " AND EXISTS (SELECT 1 FROM endpoints e WHERE e.num = action_runs.endpoint AND e.deleted_at IS NULL)"
	}
	n, err := tx.exec(query, a.all()...)
	if n > 0 {
		tx.announceBad(h)
	}
	return n > 0, err
}

// announceBad announces a run that ended badly, which lists of events show.
func (tx *Tx) announceBad(h *HeldRun) {
	if h.Status.Final() && h.Status != hookglass.ActionRunCompleted {
		tx.Announce(TopicEvents(h.EndpointNum))
	}
}

// BeginQueuedRun leases a rerun that nobody has begun. It reports false if it could not.
func (tx *Tx) BeginQueuedRun(h *HeldRun, lease time.Duration) (bool, error) {
	a := &args{}
	now := "cast(" + a.add(tx.Now.UnixMicro()) + " AS bigint)"
	started := "CASE WHEN created_at > " + now + " THEN created_at ELSE " + now + " END"
	err := tx.queryRow("action run", "UPDATE action_runs SET claim = claim + 1, status = 'running', started_at = "+started+", due_at = "+tx.due(a, h, lease)+
		" WHERE num = "+a.add(h.Num)+" AND (status = 'queued' OR checkpoint IS NULL AND finished_at IS NULL AND due_at <= "+tx.dialect.clock()+") RETURNING claim", a.all(), &h.Claim)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return false, nil
	}
	return err == nil, err
}

// RequeueActionRun enqueues a job for a rerun whose lease expired at least since ago and that has no job. It does
// nothing if the run has ended or was resumed after it was listed.
func (tx *Tx) RequeueActionRun(num int64, id string, since time.Duration) error {
	n, err := tx.exec("UPDATE action_runs SET due_at = "+tx.dialect.clock()+" WHERE num = $1 AND finished_at IS NULL AND due_at <= "+tx.dialect.clock()+" - cast($2 AS bigint) AND NOT "+
		tx.dialect.hasRunJob("id"), num, since.Microseconds())
	if err == nil && n > 0 {
		tx.Enqueue(hookglass.ActionRunJob{RunID: id})
	}
	return err
}

// QueuedActionRuns lists the reruns of an action that have not begun.
func (v *View) QueuedActionRuns(actionNum int64) ([]HeldRun, error) {
	return queryAll(v, scanHeldRun, selectHeldRuns+" WHERE r.due_at IS NOT NULL AND r.action = $1 AND r.status = 'queued' ORDER BY r.num", actionNum)
}

// LostActionRuns lists runs that are not final and whose lease expired at least since ago. A first run is lost only if
// its event has no task left that would continue it, a rerun only if it has no job.
func (v *View) LostActionRuns(since time.Duration, limit int) ([]HeldRun, error) {
	return queryAll(v, scanHeldRun, selectHeldRuns+
		" WHERE r.due_at <= "+v.dialect.clock()+" - cast($1 AS bigint) AND CASE WHEN r.rerun = 1 THEN NOT "+v.dialect.hasRunJob("r.id")+" ELSE NOT EXISTS "+
		"(SELECT 1 FROM event_tasks t WHERE t.kind = 'actions' AND t.endpoint = r.endpoint AND t.event = r.event) END ORDER BY r.due_at LIMIT $2",
		since.Microseconds(), limit)
}

// EventActionRuns lists the runs of actions on an event, newest first.
func (v *View) EventActionRuns(eventSeq int64, limit int) ([]hookglass.ActionRun, error) {
	a := &args{}
	query := "SELECT " + actionRunColumns + actionRunTables + " WHERE " + v.dialect.newestOf(a, "r.event", eventSeq, "r.num", 0, limit)
	runs, err := queryAll(v, scanActionRun, query, a.all()...)
	slices.SortFunc(runs, func(a, b hookglass.ActionRun) int { return cmp.Compare(b.ID, a.ID) })
	return runs, err
}
