package store

import (
	"cmp"
	"database/sql"
	"math"
	"slices"

	"hookglass"
)

// missed is the condition that an event of a table w without a report is to be delivered through the tunnel: it falls
// into an outage, or a current subscription covers it. It is for single events; for many use [ledgerWindow.missedIn].
func missed(endpoint string) string {
	return "(EXISTS (SELECT 1 FROM tunnel_gaps g WHERE g.endpoint = " + endpoint + " AND w.seq > g.from_seq AND (g.to_seq IS NULL OR w.seq <= g.to_seq)) OR " +
		"EXISTS (SELECT 1 FROM tunnel_subscriptions s WHERE s.endpoint = " + endpoint + " AND w.seq > s.begins))"
}

// tunnel counts events by their state at the tunnel; kept is the number of events of each piece.
func (w ledgerWindow) tunnel(l *hookglass.Ledger, kept []int64, expired int64) error {
	c := &hookglass.LedgerConsumer{Kind: hookglass.ConsumerTunnel}
	var used int64
	err := w.v.queryRow("endpoint", `SELECT CASE WHEN EXISTS (SELECT 1 FROM tunnel_events WHERE endpoint = $1) OR EXISTS (SELECT 1 FROM tunnel_gaps WHERE endpoint = $1)
		OR EXISTS (SELECT 1 FROM tunnel_subscriptions WHERE endpoint = $1) THEN 1 ELSE 0 END`, []any{w.log.endpoint.Num}, &used)
	if err != nil || used == 0 && expired == 0 {
		return err
	}
	wanted, err := w.wanted()
	if err != nil {
		return err
	}
	for i, p := range w.pieces {
		a := &args{}
		from, err := w.having(a, "tunnel_events", p, kept[i])
		if err != nil {
			return err
		}
		var delivered, failed int64
		err = w.v.queryRow("endpoint", "SELECT coalesce(sum(CASE WHEN x.delivered_at IS NOT NULL THEN 1 ELSE 0 END), 0), "+
			"coalesce(sum(CASE WHEN x.delivered_at IS NULL THEN 1 ELSE 0 END), 0)"+from, a.all(), &delivered, &failed)
		if err != nil {
			return err
		}
		pending, err := w.missedIn(p, wanted)
		if err != nil {
			return err
		}
		c.Delivered, c.Failed, c.Pending = c.Delivered+delivered, c.Failed+failed, c.Pending+pending
	}
	w.close(l, consumers{0: c})
	own := &l.Consumers[len(l.Consumers)-1]
	own.Expired = expired
	own.Deleted -= expired
	return nil
}

// seqRange is a range of seqs, both bounds excluded.
type seqRange struct{ above, below int64 }

// wanted returns the events that are to be delivered through the tunnel as disjoint ranges. A client that comes and
// goes leaves hundreds of overlapping outages, each of which would be checked per event otherwise.
func (w ledgerWindow) wanted() ([]seqRange, error) {
	all, err := queryAll(w.v, func(scan func(...any) error) (r seqRange, err error) {
		var to sql.NullInt64
		if err = scan(&r.above, &to); to.Valid {
			r.below = next(to.Int64)
		} else {
			r.below = math.MaxInt64
		}
		return r, err
	}, "SELECT from_seq, to_seq FROM tunnel_gaps WHERE endpoint = $1 UNION ALL SELECT begins, NULL FROM tunnel_subscriptions WHERE endpoint = $1", w.log.endpoint.Num)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b seqRange) int { return cmp.Compare(a.above, b.above) })
	var apart []seqRange
	for _, r := range all {
		if n := len(apart); n > 0 && r.above < apart[n-1].below {
			apart[n-1].below = max(apart[n-1].below, r.below)
		} else {
			apart = append(apart, r)
		}
	}
	return apart, nil
}

// missedIn counts the events of a piece that lie in ranges and have no report. Each range is a subquery that looks up
// the report of each of its events: otherwise the server prefers to scan all reports once per range.
func (w ledgerWindow) missedIn(p ledgerPiece, ranges []seqRange) (n int64, err error) {
	in := input{columns: []inputColumn{{"above", inputInteger}, {"below", inputInteger}, {"endpoint", inputInteger}, {"since", inputInteger}, {"until", inputInteger}}}
	for _, r := range ranges {
		if above, below := max(r.above, p.above), min(r.below, p.below); above < below {
			in.rows = append(in.rows, []any{above, below, w.log.endpoint.Num, w.from.UnixMicro(), w.to.UnixMicro()})
		}
	}
	if len(in.rows) == 0 {
		return 0, nil
	}
	from, args, err := in.from(w.v.dialect, "i")
	if err != nil {
		return 0, err
	}
	within := "w.endpoint = i.endpoint AND w.seq > i.above AND w.seq < i.below"
	if !p.whole {
		within += " AND w.received_at >= i.since AND w.received_at < i.until"
	}
	err = w.v.queryRow("endpoint", "SELECT cast(coalesce(sum((SELECT count(*) FROM events w WHERE "+within+
		" AND (SELECT 1 FROM tunnel_events t WHERE t.event = w.seq LIMIT 1) IS NULL)), 0) AS bigint) FROM "+from, args, &n)
	return n, err
}
