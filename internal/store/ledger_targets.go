package store

import (
	"slices"
	"strconv"
	"strings"

	"hookglass"
)

// targets counts events by their state at the forwarding targets; kept is the number of events of each piece.
func (w ledgerWindow) targets(l *hookglass.Ledger, kept []int64) error {
	known, err := w.v.ForwardingTargets(string(w.log.endpoint.ID), 0, 0)
	if err != nil {
		return err
	}
	by := consumers{}
	for _, t := range known {
		by[t.ID] = &hookglass.LedgerConsumer{Kind: hookglass.ConsumerTarget, ID: strconv.FormatInt(t.ID, 10), Name: t.Name}
	}
	for i, p := range w.pieces {
		rows, err := w.forwards(p, kept[i])
		if err != nil {
			return err
		}
		handed := map[int64]int64{}
		for _, r := range rows {
			c := by.of(r.num, hookglass.ConsumerTarget, strconv.FormatInt(r.num, 10))
			switch hookglass.ForwardState(r.state) {
			case hookglass.ForwardDelivered:
				c.Delivered += r.n
			case hookglass.ForwardFailed:
				c.Failed += r.n
			case hookglass.ForwardSkipped:
				c.Skipped += r.n
			default:
				c.Pending += r.n
			}
			c.Stuck += r.nobody
			handed[r.num] += r.n
		}
		for _, t := range known {
			if !t.Enabled || t.When != "" { // events that a condition excludes leave no row
				continue
			}
			owed := kept[i] - handed[t.ID]
			if owed > 0 && !t.UpdatedAt.Add(handover).Before(w.from) { // changed within the window
				if owed, err = w.owed(p, t); err != nil {
					return err
				}
			}
			by[t.ID].Owed += max(owed, 0)
		}
	}
	w.close(l, by)
	return nil
}

// owed counts the events of a piece that arrived since a target was last changed and were not handed over to it.
func (w ledgerWindow) owed(p ledgerPiece, t hookglass.ForwardingTarget) (n int64, err error) {
	since := t.UpdatedAt.Add(handover)
	if p.whole {
		var late ledgerPiece
		late, p = w.since(p, since)
		if n, err = w.notHanded(late, t.ID); err != nil {
			return 0, err
		}
	}
	a := &args{}
	var mixed int64
	err = w.v.queryRow("endpoint", "SELECT count(*) FROM "+w.table(a, p)+" WHERE w.received_at > "+a.add(since.UnixMicro())+
		" AND NOT EXISTS (SELECT 1 FROM forwards f WHERE f.event = w.seq AND f.target = "+a.add(t.ID)+")", a.all(), &mixed)
	return n + mixed, err
}

// notHanded counts the events of a whole piece that have no delivery to a target.
func (w ledgerWindow) notHanded(p ledgerPiece, target int64) (n int64, err error) {
	first, last, err := w.ends(p)
	if err != nil || last == 0 {
		return 0, err
	}
	if n, err = w.count(p); err != nil {
		return 0, err
	}
	handed, err := w.all([]int64{target}, first, last)
	return max(n-handed[target], 0), err
}

// forwards counts the deliveries of a piece by target and state.
func (w ledgerWindow) forwards(p ledgerPiece, kept int64) ([]tally, error) {
	if first, last, dense, err := w.dense(p, kept); err != nil || dense {
		if err != nil {
			return nil, err
		}
		return w.forwardsBetween(first, last)
	}
	a := &args{}
	return queryAll(w.v, scanTally, "SELECT x.target, '', x.state, count(*), sum(CASE WHEN x.state IN ('pending', 'sending') AND x.due_at IS NULL THEN 1 ELSE 0 END) FROM "+w.table(a, p)+
		w.v.dialect.each("forwards", "x.event = w.seq")+" GROUP BY x.target, x.state", a.all()...)
}

// forwardsBetween counts the deliveries of events from one seq to another. It reads only indexes, and the rows of what
// is pending: the rest of all deliveries is delivered.
func (w ledgerWindow) forwardsBetween(first, last int64) ([]tally, error) {
	// Deleted targets are included. This takes one index look-up per target of the installation.
	own, err := queryAll(w.v, scanNum, `WITH RECURSIVE q (target) AS (
			SELECT (SELECT f.target FROM forwards f ORDER BY f.target, f.num LIMIT 1)
			UNION ALL
			SELECT (SELECT f.target FROM forwards f WHERE f.target > q.target ORDER BY f.target, f.num LIMIT 1) FROM q WHERE q.target IS NOT NULL
		)
		SELECT target FROM q WHERE q.target IS NOT NULL
			AND (SELECT f.endpoint FROM forwards f WHERE (f.target, f.num) > (q.target, 0) ORDER BY f.target, f.num LIMIT 1) = $1 ORDER BY target`, w.log.endpoint.Num)
	if err != nil || len(own) == 0 {
		return nil, err
	}
	rest, err := w.all(own, first, last)
	if err != nil {
		return nil, err
	}
	var rows []tally
	// The plus sign keeps SQLite from using an index with which it would read every delivery of the target.
	for _, some := range []struct{ condition, target, nobody string }{
		{"f.due_at IS NULL AND f.state <> 'delivered'", "+f.target", "sum(CASE WHEN f.state IN ('pending', 'sending') THEN 1 ELSE 0 END)"},
		{"f.due_at IS NOT NULL", "f.target", "0"},
	} {
		a := &args{}
		found, err := queryAll(w.v, scanTally, "SELECT f.target, '', f.state, count(*), "+some.nobody+" FROM forwards f WHERE "+some.condition+
			" AND "+w.v.dialect.among(some.target, a.add(w.v.dialect.list(own)))+" AND f.event >= "+a.add(first)+" AND f.event <= "+a.add(last)+" GROUP BY f.target, f.state", a.all()...)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	for _, r := range rows {
		rest[r.num] -= r.n
	}
	for _, target := range own {
		if n := rest[target]; n != 0 {
			rows = append(rows, tally{num: target, state: string(hookglass.ForwardDelivered), n: n})
		}
	}
	return rows, nil
}

// ledgerColumns bounds the columns of a result. Both databases do, PostgreSQL at 1,664. An endpoint may have had any
// number of targets.
const ledgerColumns = 500

// all counts the deliveries to each of some targets, one column each: with GROUP BY, SQLite would sort them.
func (w ledgerWindow) all(targets []int64, first, last int64) (map[int64]int64, error) {
	n := make(map[int64]int64, len(targets))
	for some := range slices.Chunk(targets, ledgerColumns) {
		a := &args{}
		sums, counts, into := make([]string, len(some)), make([]int64, len(some)), make([]any, len(some))
		for i, t := range some {
			sums[i], into[i] = "count(*) FILTER (WHERE target = "+a.add(t)+")", &counts[i]
		}
		err := w.v.queryRow("endpoint", "SELECT "+strings.Join(sums, ", ")+" FROM forwards WHERE event >= "+a.add(first)+" AND event <= "+a.add(last), a.all(), into...)
		if err != nil {
			return nil, err
		}
		for i, t := range some {
			n[t] = counts[i]
		}
	}
	return n, nil
}
