package store

import (
	"time"

	"hookglass"
)

// TaskKind is a kind of work on an event. It is stored, so it must not change.
type TaskKind string

// The kinds of tasks.
const (
	// TaskActions runs the actions of the event's endpoint.
	TaskActions TaskKind = "actions"
	// TaskSignature fetches the key for the event's signature and checks the event again.
	TaskSignature TaskKind = "signature"
	// TaskVerdict checks whether a mail is really from its sender.
	TaskVerdict TaskKind = "verdict"
	// TaskSchema merges the event's body into the schema of its type.
	TaskSchema TaskKind = "schema"
)

// Task is work on a captured event, done at least once. A claimed task is leased, and Claim is a fencing token: an
// outcome with an older one is refused.
type Task struct {
	Num         int64
	Kind        TaskKind
	EndpointNum int64
	EventSeq    int64
	Claim       int64
	Lost        int // earlier claims whose outcome was never reported

	Event *hookglass.Event // set by whoever loads it; without its payload if that is large
	Ended func()           // call it after ending the task in the transaction of its results; nil: not allowed
}

// TaskQueue is the queue of one kind of task at one endpoint.
type TaskQueue struct {
	EndpointNum int64
	AccountID   int64         // 0: of a temporary or deleted endpoint
	Wait        time.Duration // until the first task is due; 0 or less: it is
}

// taskEndpoints is q, the endpoints with tasks of the kind $1, and NULL. It finds each with one index look-up, however
// long its queue is.
const taskEndpoints = `WITH RECURSIVE q (endpoint) AS (
			SELECT (SELECT t.endpoint FROM event_tasks t WHERE t.kind = $1 ORDER BY t.endpoint, t.due_at, t.num LIMIT 1)
			UNION ALL
			SELECT (SELECT t.endpoint FROM event_tasks t WHERE t.kind = $1 AND t.endpoint > q.endpoint ORDER BY t.endpoint, t.due_at, t.num LIMIT 1) FROM q WHERE q.endpoint IS NOT NULL
		)
		`

// TaskQueues lists the endpoints with tasks of a kind.
func (v *View) TaskQueues(kind TaskKind) ([]TaskQueue, error) {
	return queryAll(v, func(scan func(...any) error) (q TaskQueue, err error) {
		var wait int64
		err = scan(&q.EndpointNum, &wait, &q.AccountID)
		q.Wait = time.Duration(wait) * time.Microsecond
		return q, err
	}, taskEndpoints+`SELECT q.endpoint, (SELECT t.due_at FROM event_tasks t WHERE t.kind = $1 AND t.endpoint = q.endpoint ORDER BY t.due_at, t.num LIMIT 1) - `+v.dialect.clock()+`, coalesce((SELECT e.account_id FROM endpoints e WHERE e.num = q.endpoint), 0)
		FROM q WHERE q.endpoint IS NOT NULL ORDER BY q.endpoint`, string(kind))
}

// ClaimTasks leases due tasks of a kind at an endpoint, including those whose lease has expired, in the order of their
// due times.
func (tx *Tx) ClaimTasks(kind TaskKind, endpointNum int64, limit int, lease time.Duration) ([]Task, error) {
	clock := tx.dialect.clock()
	return queryAll(&tx.View, func(scan func(...any) error) (t Task, err error) {
		t.Kind = kind
		err = scan(&t.Num, &t.EndpointNum, &t.EventSeq, &t.Claim, &t.Lost)
		return t, err
	}, `WITH picked AS MATERIALIZED (SELECT num FROM event_tasks WHERE kind = $1 AND endpoint = $2 AND due_at <= `+clock+` ORDER BY due_at, num LIMIT $3`+
		tx.dialect.forUpdate()+tx.dialect.skipLocked()+`)
		UPDATE event_tasks SET due_at = `+clock+` + cast($4 AS bigint), claim = claim + 1, lost = lost + leased, leased = 1
		WHERE `+tx.dialect.picked("num", "SELECT num FROM picked")+` RETURNING num, endpoint, event, claim, lost`, string(kind), endpointNum, limit, lease.Microseconds())
}

// taskWait is longer than any lease or delay of a task: the longest delay is ten minutes. A task that is due later was
// stored before the clock was set back.
const taskWait = 15 * time.Minute

// recalledTasks bounds the tasks that one transaction recalls, because captures wait for it.
const recalledTasks = 500

// LateTasks lists the endpoints with tasks of a kind that are due later than any delay can explain.
func (v *View) LateTasks(kind TaskKind) ([]int64, error) {
	return queryAll(v, scanNum, taskEndpoints+`SELECT q.endpoint FROM q WHERE q.endpoint IS NOT NULL AND
		(SELECT t.due_at FROM event_tasks t WHERE t.kind = $1 AND t.endpoint = q.endpoint ORDER BY t.due_at DESC, t.num DESC LIMIT 1) > `+
		v.dialect.clock()+" + cast($2 AS bigint) ORDER BY q.endpoint", string(kind), taskWait.Microseconds())
}

// RecallTasks makes tasks due that are due later than any delay can explain, some of them if there are many.
func (tx *Tx) RecallTasks(kind TaskKind, endpointNum int64) error {
	clock := tx.dialect.clock()
	_, err := tx.exec("WITH picked AS MATERIALIZED (SELECT num FROM event_tasks WHERE kind = $1 AND endpoint = $2 AND due_at > "+clock+" + cast($3 AS bigint) ORDER BY due_at, num LIMIT $4"+tx.dialect.forUpdate()+tx.dialect.skipLocked()+
		") UPDATE event_tasks SET due_at = "+clock+" WHERE "+tx.dialect.picked("num", "SELECT num FROM picked"), string(kind), endpointNum, taskWait.Microseconds(), recalledTasks)
	return err
}

// ExtendTasks renews the leases of claimed tasks.
func (tx *Tx) ExtendTasks(nums []int64, lease time.Duration) error {
	_, err := tx.exec("UPDATE event_tasks SET due_at = "+tx.dialect.clock()+" + cast($2 AS bigint) WHERE leased = 1 AND "+tx.dialect.among("num", "$1"),
		tx.dialect.list(nums), lease.Microseconds())
	return err
}

// EndTask deletes a finished task in the transaction of its results, so that it is done exactly once. It reports false
// if the claim was lost.
func (tx *Tx) EndTask(t Task) (bool, error) {
	n, err := tx.exec("DELETE FROM event_tasks WHERE num = $1 AND claim = $2", t.Num, t.Claim)
	return n > 0, err
}

// EndTasks deletes finished tasks, except those whose claims were lost.
func (tx *Tx) EndTasks(done []Task) error {
	if len(done) == 0 {
		return nil
	}
	in := input{columns: []inputColumn{{"num", inputInteger}, {"claim", inputInteger}}}
	for _, t := range done {
		in.rows = append(in.rows, []any{t.Num, t.Claim})
	}
	from, args, err := in.from(tx.dialect, "i")
	if err != nil {
		return err
	}
	_, err = tx.exec("DELETE FROM event_tasks WHERE (num, claim) IN (SELECT num, claim FROM "+from+")"+in.lookup(tx.dialect, "num"), args...)
	return err
}

// DeferTask returns a claimed task to the queue, due after a while.
func (tx *Tx) DeferTask(t Task, wait time.Duration) error {
	_, err := tx.exec("UPDATE event_tasks SET leased = 0, due_at = "+tx.dialect.clock()+" + cast($3 AS bigint) WHERE num = $1 AND claim = $2",
		t.Num, t.Claim, wait.Microseconds())
	return err
}
