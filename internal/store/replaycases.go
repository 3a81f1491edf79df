package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"hookglass"
)

const caseColumns = `c.num, c.id, c.endpoint, e.id, c.source_id, c.lock_version, c.snapshot_version, c.sealed, c.created_at, c.updated_at,
	(SELECT count(*) FROM events v JOIN endpoint_stats s ON s.endpoint = v.endpoint WHERE v.id = c.source_id AND v.endpoint = c.endpoint AND v.seq > s.floor_seq)`

const caseTables = ` FROM replay_cases c JOIN endpoints e ON e.num = c.endpoint + 0`

func scanCase(scan func(...any) error) (c hookglass.ReplayCase, err error) {
	var created, updated, available int64
	err = scan(&c.Num, &c.ID, &c.EndpointNum, &c.EndpointID, &c.SourceID, &c.LockVersion, &c.SnapshotVersion, &c.Sealed, &created, &updated, &available)
	c.CreatedAt, c.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	c.SourceAvailable = available > 0
	return c, err
}

// ReplayCases lists the cases of an endpoint, newest first, with their configuration sealed. If before is not 0, only
// those with a smaller Num are listed.
func (v *View) ReplayCases(ref string, before int64, limit int) ([]hookglass.ReplayCase, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + caseColumns + caseTables + " WHERE " + v.dialect.newestOf(a, "c.endpoint", e.Num, "c.num", before, limit)
	cases, err := queryAll(v, scanCase, query, a.all()...)
	if err != nil {
		return nil, err
	}
	return cases, v.lastRuns(cases)
}

// ReplayCase returns one case of an endpoint. It answers not_found.
func (v *View) ReplayCase(ref, id string) (c hookglass.ReplayCase, err error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return c, err
	}
	return v.replayCase("c.endpoint = $1 AND c.id = $2", e.Num, id)
}

// replayCaseByNum returns the case with a row number. It answers not_found.
func (v *View) replayCaseByNum(num int64) (hookglass.ReplayCase, error) {
	a := &args{}
	condition := "c.num = " + a.add(num) + " AND" + v.endpointScope(a)
	return v.replayCase(condition, a.all()...)
}

func (v *View) replayCase(condition string, values ...any) (c hookglass.ReplayCase, err error) {
	c, err = one(v, "replay case", scanCase, "SELECT "+caseColumns+caseTables+" WHERE "+condition, &args{values})
	if err != nil {
		return c, err
	}
	cases := []hookglass.ReplayCase{c}
	err = v.lastRuns(cases)
	return cases[0], err
}

// lastRuns fills in the newest run of each case.
func (v *View) lastRuns(cases []hookglass.ReplayCase) error {
	nums := make([]int64, len(cases))
	for i, c := range cases {
		nums[i] = c.Num
	}
	runs, err := queryAll(v, scanRun, "SELECT "+runColumns+" FROM replay_case_runs r WHERE "+
		v.dialect.picked("r.num", "SELECT max(num) FROM replay_case_runs WHERE "+v.dialect.among("case_num", "$1")+" GROUP BY case_num"), v.dialect.list(nums))
	if err != nil {
		return err
	}
	for i := range cases {
		for j := range runs {
			if runs[j].CaseNum == cases[i].Num {
				cases[i].LastRun = &runs[j]
			}
		}
	}
	return nil
}

// CaseSnapshot returns the sealed snapshot of a case and its version.
func (v *View) CaseSnapshot(caseNum int64) (sealed []byte, version int64, err error) {
	err = v.queryRow("replay case", "SELECT snapshot, snapshot_version FROM replay_cases WHERE num = $1", []any{caseNum}, &sealed, &version)
	return sealed, version, err
}

// CaseSnapshotSize returns the size of a case's sealed snapshot in bytes, for a caller that is about to load it. It
// answers not_found.
func (v *View) CaseSnapshotSize(caseNum int64) (size int64, err error) {
	err = v.queryRow("replay case", "SELECT octet_length(snapshot) FROM replay_cases WHERE num = $1", []any{caseNum}, &size)
	return size, err
}

// CreateReplayCase stores a new case and sets its Num, versions and times.
func (tx *Tx) CreateReplayCase(c *hookglass.ReplayCase, snapshot []byte) error {
	c.LockVersion, c.SnapshotVersion, c.SourceAvailable = 1, 1, true
	c.CreatedAt, c.UpdatedAt = tx.Now, tx.Now
	return tx.queryRow("replay case", `INSERT INTO replay_cases (id, endpoint, source_id, lock_version, snapshot_version, sealed, snapshot, created_at, updated_at)
		VALUES ($1, $2, $3, 1, 1, $4, $5, $6, $6) RETURNING num`, []any{c.ID, c.EndpointNum, string(c.SourceID), c.Sealed, snapshot, tx.Now.UnixMicro()}, &c.Num)
}

// SaveReplayCase stores a case under the LockVersion with which it was read, and returns it with the next one. A
// snapshot replaces the stored one; nil keeps it. It answers stale_lock_version if the case was changed meanwhile, and
// not_found if it is gone.
func (tx *Tx) SaveReplayCase(c hookglass.ReplayCase, snapshot []byte) (hookglass.ReplayCase, error) {
	a := &args{}
	query := "UPDATE replay_cases SET sealed = " + a.add(c.Sealed) + ", lock_version = lock_version + 1, updated_at = " + a.add(tx.Now.UnixMicro())
	if snapshot != nil {
		query += ", source_id = " + a.add(string(c.SourceID)) + ", snapshot = " + a.add(snapshot) + ", snapshot_version = snapshot_version + 1"
	}
	n, err := tx.exec(query+" WHERE num = "+a.add(c.Num)+" AND lock_version = "+a.add(c.LockVersion), a.all()...)
	if err == nil && n == 0 {
		if _, err = tx.replayCaseByNum(c.Num); err == nil {
			err = hookglass.Errorf(hookglass.CodeStaleLockVersion, "The replay case was changed meanwhile. Read it again and repeat the change.")
		}
	}
	c.LockVersion++
	c.UpdatedAt = tx.Now
	return c, err
}

// DeleteReplayCase deletes a case. Its runs stay; queued ones will be blocked. It answers not_found.
func (tx *Tx) DeleteReplayCase(num int64) error {
	return tx.change("replay case", "DELETE FROM replay_cases WHERE num = $1", num)
}

const runColumns = `r.num, r.id, r.endpoint, r.case_num, r.case_id, r.lock_version, r.snapshot_version, r.idempotency_key, r.state, r.sealed, r.result,
	r.created_at, r.started_at, r.finished_at`

func scanRun(scan func(...any) error) (r hookglass.ReplayCaseRun, err error) {
	var created int64
	var started, finished sql.NullInt64
	var result []byte
	err = scan(&r.Num, &r.ID, &r.EndpointNum, &r.CaseNum, &r.CaseID, &r.CaseLockVersion, &r.SnapshotVersion, &r.IdempotencyKey, &r.State, &r.Sealed, &result,
		&created, &started, &finished)
	if err != nil {
		return r, err
	}
	r.CreatedAt, r.StartedAt, r.FinishedAt = time.UnixMicro(created).UTC(), fromMicros(started), fromMicros(finished)
	if len(result) == 0 {
		return r, nil
	}
	var kept keptResult
	if err := json.Unmarshal(result, &kept); err != nil {
		return r, fmt.Errorf("result of %s: %w", r.ID, err)
	}
	if r.SealedResult = kept.Sealed; len(kept.Sealed) == 0 {
		r.RunResult = kept.RunResult
		r.Request, r.Response = exchange(r.Request, decodeText), answered(r.Response, decodeText)
	}
	return r, nil
}

// keptResult is the result column: sealed or, from earlier versions, in the clear. Earlier versions read a sealed one
// as empty.
type keptResult struct {
	Sealed []byte `json:",omitempty"`
	hookglass.RunResult
}

func sealedResult(sealed []byte) ([]byte, error) {
	if len(sealed) == 0 {
		return nil, nil
	}
	return json.Marshal(struct{ Sealed []byte }{sealed})
}

// ReplayRuns lists the runs of an endpoint's cases, newest first, with their results sealed. If before is not 0, only
// those with a smaller Num are listed; caseID selects one case.
func (v *View) ReplayRuns(ref, caseID string, before int64, limit int) ([]hookglass.ReplayCaseRun, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + runColumns + " FROM replay_case_runs r WHERE "
	if caseID != "" {
		query += "r.case_id = " + a.add(encodeText(caseID)) + " AND "
	}
	query += v.dialect.newestOf(a, "r.endpoint", e.Num, "r.num", before, limit)
	return queryAll(v, scanRun, query, a.all()...)
}

// ReplayRun returns one run of an endpoint with its result sealed. It answers not_found.
func (v *View) ReplayRun(ref, id string) (r hookglass.ReplayCaseRun, err error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return r, err
	}
	return one(v, "replay case run", scanRun, "SELECT "+runColumns+" FROM replay_case_runs r WHERE r.endpoint = $1 AND r.id = $2", &args{[]any{e.Num, id}})
}

// ReplayRunByID returns a run of any endpoint. It answers not_found.
func (v *View) ReplayRunByID(id string) (hookglass.ReplayCaseRun, error) {
	a := &args{}
	query := "SELECT " + runColumns + " FROM replay_case_runs r JOIN endpoints e ON e.num = r.endpoint WHERE r.id = " + a.add(id) + " AND" + v.endpointScope(a)
	return one(v, "replay case run", scanRun, query, a)
}

// QueueReplayRun stores a new run and enqueues its job. If the case already has a run with this idempotency key, it
// reads that one instead and reports true.
func (tx *Tx) QueueReplayRun(r *hookglass.ReplayCaseRun) (repeated bool, err error) {
	r.CreatedAt = tx.Now
	err = tx.queryRow("replay case run", `INSERT INTO replay_case_runs (id, endpoint, case_num, case_id, lock_version, snapshot_version, idempotency_key, state, sealed,
		created_at, enqueued_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10) ON CONFLICT (case_num, idempotency_key) DO NOTHING RETURNING num`,
		[]any{r.ID, r.EndpointNum, r.CaseNum, r.CaseID, r.CaseLockVersion, r.SnapshotVersion, r.IdempotencyKey, string(r.State), r.Sealed, tx.Now.UnixMicro()}, &r.Num)
	if err == nil {
		tx.Enqueue(hookglass.ReplayRunJob{RunID: r.ID})
		return false, nil
	}
	if !hookglass.Is(err, hookglass.CodeNotFound) {
		return false, err
	}
	*r, err = one(&tx.View, "replay case run", scanRun, "SELECT "+runColumns+" FROM replay_case_runs r WHERE r.case_num = $1 AND r.idempotency_key = $2",
		&args{[]any{r.CaseNum, r.IdempotencyKey}})
	return true, err
}

// BeginReplayRun moves a queued run to running, which marks it as possibly sent, and stores the request. It reports
// false if the run is no longer queued: then it must not be sent.
func (tx *Tx) BeginReplayRun(r *hookglass.ReplayCaseRun) (bool, error) {
	result, err := sealedResult(r.SealedResult)
	if err != nil {
		return false, err
	}
	n, err := tx.exec("UPDATE replay_case_runs SET state = 'running', started_at = $2, result = $3 WHERE num = $1 AND state = 'queued'", r.Num, tx.Now.UnixMicro(), result)
	r.State, r.StartedAt = hookglass.RunRunning, tx.Now
	return n > 0, err
}

// FinishReplayRun moves a run to its final State and stores its result. It reports false if the run is final already,
// and then changes nothing.
func (tx *Tx) FinishReplayRun(r *hookglass.ReplayCaseRun) (bool, error) {
	result, err := sealedResult(r.SealedResult)
	if err != nil {
		return false, err
	}
	r.FinishedAt = tx.Now
	n, err := tx.exec("UPDATE replay_case_runs SET state = $2, result = $3, finished_at = $4 WHERE num = $1 AND finished_at IS NULL",
		r.Num, string(r.State), result, tx.Now.UnixMicro())
	return n > 0, err
}

// OrphanedReplayRuns lists runs that began before a time and were not finished.
func (v *View) OrphanedReplayRuns(begunBefore time.Time, limit int) ([]hookglass.ReplayCaseRun, error) {
	return queryAll(v, scanRun, "SELECT "+runColumns+" FROM replay_case_runs r WHERE r.state = 'running' AND r.finished_at IS NULL AND r.started_at < $1 ORDER BY r.num LIMIT $2",
		begunBefore.UnixMicro(), limit)
}

// RequeueReplayRuns enqueues a new job for runs that have been queued since before a time and have none: a node may
// have died with it.
func (tx *Tx) RequeueReplayRuns(before time.Time, limit int) error {
	ids, err := queryAll(&tx.View, scanText, `UPDATE replay_case_runs SET enqueued_at = $1 WHERE `+tx.dialect.picked("num",
		"SELECT num FROM replay_case_runs WHERE state = 'queued' AND finished_at IS NULL AND enqueued_at < $2 AND NOT "+tx.dialect.hasJob(hookglass.ReplayRunJob{}, "RunID", "id")+
			" ORDER BY num LIMIT $3")+" AND state = 'queued' RETURNING id",
		tx.Now.UnixMicro(), before.UnixMicro(), limit)
	for _, id := range ids {
		tx.Enqueue(hookglass.ReplayRunJob{RunID: id})
	}
	return err
}

// PostponeReplayRun records that a queued run has a waiting job.
func (tx *Tx) PostponeReplayRun(num int64) error {
	_, err := tx.exec("UPDATE replay_case_runs SET enqueued_at = $2 WHERE num = $1 AND state = 'queued'", num, tx.Now.UnixMicro())
	return err
}
