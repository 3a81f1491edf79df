package store

import (
	"time"

	"hookglass"
)

// A delivery to a target that gets a webhook only once has a row in forward_keys, if something identifies its event. It
// is a duplicate if there is a delivery of an event with a smaller seq and the same key. That order is the same for all
// nodes, and whoever sees an event also sees those before it (see [DB.Capture]). So of two deliveries only the later
// one can be taken for a duplicate, whoever claims them and when.

// sameAtOnce is how many deliveries with one key a look-up reads at most. They are indexed by the reception of their
// events, which is nearly the order of their seqs: that is the order of the commits, and senders send to several nodes
// at once.
const sameAtOnce = 50

// Duplicates returns those of the claimed deliveries that are duplicates, by their numbers: a delivery of the same
// webhook, received within the window that its target has now, arrived or may still arrive. A delivery that failed, was
// skipped or was deleted is none that counts. Nor is one of an event whose signature is wrong: whoever guesses an id
// could otherwise take the place of the webhook that has it.
//
// Single rows are looked up in subqueries: a join that PostgreSQL plans while there are few deliveries reads all of
// them, also once there are many.
func (v *View) Duplicates(forwards []int64) (map[int64]hookglass.Duplicate, error) {
	found := make(map[int64]hookglass.Duplicate)
	err := v.queryEach(func(scan func(...any) error) error {
		var num int64
		var d hookglass.Duplicate
		err := scan(&num, (*string)(&d.Of), &d.Num, (*string)(&d.State))
		found[num] = d
		return err
	}, `WITH asked AS (
			SELECT c.forward, (
				SELECT n.forward FROM (
					SELECT k.forward, k.received_at, (SELECT f.state FROM forwards f WHERE f.num = k.forward) AS state FROM forward_keys k
					WHERE k.target = c.target AND k.key = c.key AND k.key IS NOT NULL AND k.event < c.event
						AND k.received_at > c.received_at - t.dedupe_seconds * 1000000 AND k.received_at < c.received_at + t.dedupe_seconds * 1000000
						AND k.event > (SELECT s.floor_seq FROM endpoint_stats s WHERE s.endpoint = t.endpoint)
						AND (SELECT f.state FROM forwards f WHERE f.num = k.forward) IN ('pending', 'sending', 'delivered')
						AND (SELECT o.signature_status FROM events o WHERE o.endpoint = t.endpoint AND o.seq = k.event) <> 'failed'
					ORDER BY k.received_at LIMIT $2
				) AS n ORDER BY CASE n.state WHEN 'delivered' THEN 0 ELSE 1 END, n.received_at LIMIT 1
			) AS first
			FROM forward_keys c JOIN forwarding_targets t ON t.id = c.target WHERE `+v.dialect.among("c.forward", "$1")+`
		)
		SELECT a.forward, (SELECT e.id FROM events e WHERE e.endpoint = x.endpoint AND e.seq = x.event), x.num, x.state FROM asked a`+v.dialect.each("forwards", "x.num = a.first"), v.dialect.list(forwards), sameAtOnce)
	return found, err
}

// MarkDuplicates stores what the settled deliveries are duplicates of. One that was skipped loses its key: the next of
// the same webhook is a duplicate of the first.
func (tx *Tx) MarkDuplicates(settled []ClaimedForward) error {
	in := input{columns: []inputColumn{{"forward", inputInteger}, {"same_as", inputText}, {"skipped", inputInteger}}}
	for _, c := range settled {
		if c.Duplicate != nil {
			in.rows = append(in.rows, []any{c.Num, string(c.Duplicate.Of), boolInt(c.Duplicate.Skipped())})
		}
	}
	return tx.update("forward_keys", "same_as = i.same_as, key = CASE WHEN i.skipped = 1 THEN NULL ELSE key END", in, "")
}

// Underway returns those of some deliveries that have not ended.
func (v *View) Underway(forwards []int64) ([]int64, error) {
	return queryAll(v, scanNum, "SELECT num FROM forwards WHERE "+v.dialect.among("num", "$1")+" AND state IN ('pending', 'sending')", v.dialect.list(forwards))
}

// WakeDuplicates makes due the next of the duplicates that wait for each of some deliveries, and returns how many these
// are. The next is that with the smallest seq, because any other would wait for it. Call it in the transaction that
// ends these deliveries, and in that which skips a duplicate of them, for those behind it. Captures wait for that, so
// it reads a few rows for each, however many wait. It skips what another transaction has locked.
func (tx *Tx) WakeDuplicates(ended []int64, at time.Time) (int64, error) {
	next := `SELECT (
			SELECT n.forward FROM (
				SELECT k.forward, k.event FROM forward_keys k
				WHERE k.target = c.target AND k.key = c.key AND k.key IS NOT NULL AND k.event > c.event AND k.same_as IS NOT NULL
					AND k.received_at > c.received_at - t.dedupe_seconds * 1000000 AND k.received_at < c.received_at + t.dedupe_seconds * 1000000
					AND (SELECT w.num FROM forwards w WHERE w.num = k.forward AND w.state = 'pending' AND w.attempts IS NULL) IS NOT NULL
				ORDER BY k.received_at LIMIT $3
			) AS n ORDER BY n.event LIMIT 1
		) FROM forward_keys c JOIN forwarding_targets t ON t.id = c.target WHERE ` + tx.dialect.among("c.forward", "$1")
	return tx.exec(`WITH picked AS MATERIALIZED (
			SELECT f.num FROM forwards f WHERE `+tx.dialect.picked("f.num", next)+` AND f.state = 'pending' AND f.attempts IS NULL AND coalesce(f.due_at, 0) > $2
			ORDER BY f.num`+tx.dialect.forUpdateOf("f")+tx.dialect.skipLocked()+`
		) UPDATE forwards SET due_at = $2 WHERE `+tx.dialect.picked("num", "SELECT num FROM picked"), tx.dialect.list(ended), at.UnixMicro(), sameAtOnce)
}

// DropForwardKeys takes the keys of deliveries that failed, or were skipped though they are no duplicates. They are the
// first of nothing, and there may be any number of them with one key, which every look-up would read.
func (tx *Tx) DropForwardKeys(ended []int64) error {
	_, err := tx.exec("UPDATE forward_keys SET key = NULL, same_as = NULL WHERE "+tx.dialect.among("forward", "$1"), tx.dialect.list(ended))
	return err
}
