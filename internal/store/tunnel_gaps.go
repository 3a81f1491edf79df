package store

import (
	"database/sql"
	"slices"
	"strings"
	"time"

	"hookglass"
)

const gapColumns = `g.num, g.id, g.endpoint, e.id, e.name, coalesce(e.workspace_id, 0), g.state, g.from_seq, coalesce(g.to_seq, 0), g.started_at, g.detected_at,
	g.reconnected_at, g.target_url, g.hostname, g.outcome, g.recovered_gone, g.expired_gone`

const gapTables = ` FROM tunnel_gaps g JOIN endpoints e ON e.num = g.endpoint + 0`

// scanGap sets in Counts only what was erased; countGap adds the rest.
func scanGap(scan func(...any) error) (g hookglass.Gap, err error) {
	var started, detected int64
	var reconnected sql.NullInt64
	var outcome sql.NullString
	err = scan(&g.Num, &g.ID, &g.EndpointNum, &g.EndpointID, &g.EndpointName, &g.WorkspaceID, &g.State, &g.From, &g.To, &started, &detected,
		&reconnected, &g.TargetURL, &g.Hostname, &outcome, &g.Counts.Recovered, &g.Counts.Expired)
	g.StartedAt, g.DetectedAt, g.ReconnectedAt = time.UnixMicro(started).UTC(), time.UnixMicro(detected).UTC(), fromMicros(reconnected)
	g.Outcome = outcome.String
	return g, err
}

// openGap begins an outage of an endpoint after a seq, unless one is open.
func (tx *Tx) openGap(s hookglass.TunnelSubscription, from int64, since time.Time) error {
	if since.IsZero() || since.After(tx.Now) {
		since = tx.Now
	}
	_, err := tx.exec(`INSERT INTO tunnel_gaps (id, endpoint, state, from_seq, started_at, detected_at, target_url, hostname, recovered_gone, expired_gone)
		VALUES ($1, $2, 'open', $3, $4, $5, $6, $7, 0, 0) ON CONFLICT (endpoint) WHERE state = 'open' DO NOTHING`,
		hookglass.NewSortableID(hookglass.PrefixTunnelGap, tx.Now), s.EndpointNum, from, since.UnixMicro(), tx.Now.UnixMicro(), s.TargetURL, s.Hostname)
	return err
}

// livingSubscription is what addPastGap asks of a subscription that goes on.
type livingSubscription struct {
	num, begins, subscribedAt int64
	targetURL, hostname       string
}

func scanLiving(scan func(...any) error) (l livingSubscription, err error) {
	err = scan(&l.num, &l.begins, &l.subscribedAt, &l.targetURL, &l.hostname)
	return l, err
}

// addPastGap records an outage that is discovered after it has ended: the current subscription began after the last
// event that the lost one received, or received but never reported. It records nothing if another subscription received
// everything. What was under way when a node died is unknown. A client that reports is judged by its reports. A client
// that does not is assumed to have received everything until another client came, because it was connected until its
// node died. If the current client is the same one, its return shows that it had been disconnected, which the node knew
// but had not recorded.
func (tx *Tx) addPastGap(s endedSubscription, from int64, current livingSubscription) error {
	if current.begins <= from {
		return nil
	}
	since := s.end.Since
	switch {
	case since.IsZero():
		return nil
	case since.UnixMicro() < current.subscribedAt:
	case !s.end.NodeGone, s.Reports, current.targetURL == s.TargetURL && current.hostname == s.Hostname:
		since = time.UnixMicro(current.subscribedAt)
	default:
		return nil
	}
	id := hookglass.NewSortableID(hookglass.PrefixTunnelGap, tx.Now)
	_, err := tx.exec(`INSERT INTO tunnel_gaps (id, endpoint, state, from_seq, to_seq, started_at, detected_at, reconnected_at, target_url, hostname, recovered_gone, expired_gone)
		VALUES ($1, $2, 'reconnected', $3, $4, $5, $6, $7, $8, $9, 0, 0)`,
		id, s.EndpointNum, from, current.begins, since.UnixMicro(), tx.Now.UnixMicro(), current.subscribedAt, s.TargetURL, s.Hostname)
	if err != nil {
		return err
	}
	added, err := queryAll(&tx.View, scanGap, "SELECT "+gapColumns+gapTables+" WHERE g.id = $1", id)
	if err != nil || len(added) == 0 {
		return err
	}
	if err := tx.countGap(&added[0]); err != nil {
		return err
	}
	if added[0].Counts.Total == 0 {
		_, err = tx.exec("DELETE FROM tunnel_gaps WHERE num = $1", added[0].Num)
	}
	return err
}

// closeGap ends the outage of an endpoint at a seq, and deletes it if it contains no event.
func (tx *Tx) closeGap(endpointNum, to int64) error {
	open, err := queryAll(&tx.View, scanGap, "SELECT "+gapColumns+gapTables+" WHERE g.endpoint = $1 AND g.state = 'open'"+tx.dialect.forUpdateOf("g"), endpointNum)
	if err != nil || len(open) == 0 {
		return err
	}
	g := open[0]
	// At least 1, because 0 means open. If all its events were erased, nothing may tell how far it reached, but later
	// events have greater seqs.
	g.To = max(to, g.From, 1)
	if err := tx.countGap(&g); err != nil {
		return err
	}
	if g.Counts.Total == 0 {
		_, err = tx.exec("DELETE FROM tunnel_gaps WHERE num = $1", g.Num)
		return err
	}
	_, err = tx.exec("UPDATE tunnel_gaps SET state = 'reconnected', to_seq = $2, reconnected_at = $3 WHERE num = $1", g.Num, g.To, tx.Now.UnixMicro())
	return err
}

// countGap completes the counts of a gap: it adds the stored events to the erased ones.
func (v *View) countGap(g *hookglass.Gap) error {
	floor := int64(0)
	if err := v.queryRow("endpoint", "SELECT floor_seq FROM endpoint_stats WHERE endpoint = $1", []any{g.EndpointNum}, &floor); err != nil {
		return err
	}
	below := int64(maxSeq)
	if g.To > 0 {
		below = next(g.To)
	}
	a := &args{}
	from := "(SELECT seq FROM events WHERE " + v.dialect.bounded(a, g.EndpointNum, g.From, below) + ") AS f" +
		v.dialect.with("tunnel_events", "t", "t.event = f.seq") + " WHERE t.event IS NULL OR t.reported_at > " + a.add(g.DetectedAt.UnixMicro())
	hidden := "f.seq <= " + a.add(floor)
	sum := func(condition string) string {
		return "coalesce(sum(CASE WHEN " + condition + " THEN 1 ELSE 0 END), 0)"
	}
	query := "SELECT " + strings.Join([]string{
		sum("t.delivered_at IS NOT NULL"),
		sum("t.delivered_at IS NULL AND " + hidden),
		sum("t.event IS NULL AND NOT " + hidden),
		sum("t.event IS NOT NULL AND t.delivered_at IS NULL AND NOT " + hidden),
		sum("NOT " + hidden),
	}, ", ") + " FROM " + from
	var recovered, expired int64
	c := &g.Counts
	if err := v.queryRow("gap", query, a.all(), &recovered, &expired, &c.Pending, &c.Failed, &c.Retained); err != nil {
		return err
	}
	c.Recovered += recovered
	c.Expired += expired
	c.Total = c.Recovered + c.Failed + c.Pending + c.Expired
	return nil
}

// Gaps lists outages of endpoints that are not recovered, oldest first: those with a Num above after, limit at most.
func (v *View) Gaps(endpointNums []int64, after int64, limit int) ([]hookglass.Gap, error) {
	a := &args{}
	// "num + 0" keeps the index on the number out: in its order lie the outages of all other endpoints.
	where := " WHERE " + v.dialect.among("g.endpoint", a.add(v.dialect.list(endpointNums))) + " AND g.state <> 'recovered' AND" + v.endpointScope(a) + a.oldestPage("g.num + 0", after, limit)
	return v.gaps(where, a.all()...)
}

// gaps reads and counts the gaps of a query that begins with its WHERE.
func (v *View) gaps(where string, args ...any) ([]hookglass.Gap, error) {
	gaps, err := queryAll(v, scanGap, "SELECT "+gapColumns+gapTables+where, args...)
	if err != nil {
		return nil, err
	}
	for i := range gaps {
		if err := v.countGap(&gaps[i]); err != nil {
			return nil, err
		}
	}
	return gaps, nil
}

// Gap returns one outage. It answers not_found.
func (v *View) Gap(id string) (hookglass.Gap, error) { return v.gap(id, "") }

func (v *View) gap(id, lock string) (hookglass.Gap, error) {
	a := &args{}
	g, err := one(v, "gap", scanGap, "SELECT "+gapColumns+gapTables+" WHERE g.id = "+a.add(id)+" AND"+v.endpointScope(a)+lock, a)
	if err != nil {
		return g, err
	}
	err = v.countGap(&g)
	return g, err
}

// RecoverGap records the outcome that a client claims, if any, and sets the gap's state according to its events. It
// answers not_found.
func (tx *Tx) RecoverGap(id, outcome string) (hookglass.Gap, error) {
	// Lock the row before counting the events, so that a concurrent erasure counts exactly once: in the gap's counters
	// or among the events.
	g, err := tx.gap(id, tx.dialect.forUpdateOf("g"))
	if err != nil {
		return g, err
	}
	g.State = g.AfterRecovery()
	if outcome != "" {
		g.Outcome = outcome
	}
	_, err = tx.exec("UPDATE tunnel_gaps SET state = $2, outcome = $3 WHERE num = $1", g.Num, string(g.State), nullString(g.Outcome))
	return g, err
}

// countErased updates the counts of gaps when events are erased: delivered events stay recovered, others become
// expired. Call it after the events are deleted and before their deliveries are. It returns which events are expired.
func (tx *Tx) countErased(endpointNum int64, rows []erasedRow) (gone map[int64]bool, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	seqs := make([]int64, len(rows))
	for i, r := range rows {
		seqs[i] = r.seq
	}
	// Without the bounds, a client that came and went for a year would have all its gaps read for each batch.
	gaps, err := queryAll(&tx.View, scanGap, "SELECT "+gapColumns+gapTables+" WHERE g.endpoint = $1 AND g.from_seq < $2 AND (g.to_seq IS NULL OR g.to_seq >= $3) ORDER BY g.num"+
		tx.dialect.forUpdateOf("g"), endpointNum, slices.Max(seqs), slices.Min(seqs))
	if err != nil || len(gaps) == 0 {
		return nil, err
	}
	type state struct{ reported, delivered int64 }
	states := make(map[int64]state)
	err = tx.queryEach(func(scan func(...any) error) error {
		var seq int64
		var s state
		err := scan(&seq, &s.reported, &s.delivered)
		states[seq] = s
		return err
	}, "SELECT event, reported_at, CASE WHEN delivered_at IS NULL THEN 0 ELSE 1 END FROM tunnel_events WHERE "+tx.dialect.among("event", "$1"), tx.dialect.list(seqs))
	if err != nil {
		return nil, err
	}
	gone = make(map[int64]bool)
	for _, g := range gaps {
		var recovered, expired int64
		for _, seq := range seqs {
			s, reported := states[seq]
			switch {
			case seq <= g.From || g.To > 0 && seq > g.To || reported && s.reported <= g.DetectedAt.UnixMicro():
			case s.delivered != 0:
				recovered++
			default:
				expired++
				gone[seq] = true
			}
		}
		if recovered+expired == 0 {
			continue
		}
		if _, err := tx.exec("UPDATE tunnel_gaps SET recovered_gone = recovered_gone + cast($2 AS bigint), expired_gone = expired_gone + cast($3 AS bigint) WHERE num = $1",
			g.Num, recovered, expired); err != nil {
			return nil, err
		}
	}
	return gone, nil
}
