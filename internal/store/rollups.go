package store

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"hookglass"
)

// Spans of roll-ups in minutes, and how long they are kept: minutes for a little longer than the longest window that
// uses them, hours for as long as anybody asks.
const (
	spanMinute = 1
	spanHour   = 60

	keepMinutes = 49 * time.Hour
	keepHours   = 400 * 24 * time.Hour
	// keepOutcomes is a little longer than the longest window of an alert.
	keepOutcomes = 25 * time.Hour
)

// rollPurge bounds what one transaction deletes of figures: captures wait behind it.
const rollPurge = 1_000

// bucket is a row of figures.
type bucket struct{ endpoint, span, start int64 }

// changes are figures to add to rows.
type changes map[bucket]*hookglass.Figures

// at returns the figures of a minute and of its hour.
func (c changes) at(endpointNum int64, at time.Time) [2]*hookglass.Figures {
	minute := at.Unix() / 60
	var both [2]*hookglass.Figures
	for i, b := range [2]bucket{{endpointNum, spanMinute, minute}, {endpointNum, spanHour, minute - minute%spanHour}} {
		if c[b] == nil {
			c[b] = &hookglass.Figures{}
		}
		both[i] = c[b]
	}
	return both
}

func (c changes) forgetMinute(endpointNum int64, at time.Time) {
	delete(c, bucket{endpointNum, spanMinute, at.Unix() / 60})
}

func (c changes) event(e *hookglass.Event, by int64) {
	for _, f := range c.at(e.EndpointNum, e.ReceivedAt) {
		f.AddEvent(e, by)
	}
}

func (c changes) outcome(o hookglass.Outcome, by int64) {
	for _, f := range c.at(o.EndpointNum, o.At) {
		f.AddOutcome(o, by)
	}
}

// addFigures writes changes. All transactions lock the cursor first and then the rows in the same order.
func (tx *Tx) addFigures(c changes) error {
	buckets := slices.SortedFunc(maps.Keys(c), func(a, b bucket) int {
		return cmp.Or(cmp.Compare(a.endpoint, b.endpoint), cmp.Compare(a.span, b.span), cmp.Compare(a.start, b.start))
	})
	for _, b := range buckets {
		if _, err := tx.exec("INSERT INTO rollups (endpoint, span, start, figures) VALUES ($1, $2, $3, '{}') ON CONFLICT (endpoint, span, start) DO NOTHING", b.endpoint, b.span, b.start); err != nil {
			return err
		}
		f, err := one(&tx.View, "figures", scanFigures, "SELECT figures FROM rollups WHERE endpoint = $1 AND span = $2 AND start = $3"+tx.dialect.forUpdate(),
			&args{[]any{b.endpoint, b.span, b.start}})
		if err != nil {
			return err
		}
		f.Add(*c[b])
		text, err := json.Marshal(f)
		if err != nil {
			return err
		}
		if _, err := tx.exec("UPDATE rollups SET figures = $4 WHERE endpoint = $1 AND span = $2 AND start = $3", b.endpoint, b.span, b.start, string(text)); err != nil {
			return err
		}
	}
	return nil
}

func scanFigures(scan func(...any) error) (f hookglass.Figures, err error) {
	var text string
	if err := scan(&text); err != nil {
		return f, err
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return f, fmt.Errorf("figures: %w", err)
	}
	return f, nil
}

// rollCursor locks the cursor, the seq up to which events are in the figures: exclusively to move it, shared to change
// events that may be counted. So no event changes while it is being counted.
func (tx *Tx) rollCursor(move bool) (seq int64, err error) {
	if _, err := tx.exec("INSERT INTO rollup_cursor (id, seq) VALUES (1, 0) ON CONFLICT (id) DO NOTHING"); err != nil {
		return 0, err
	}
	lock := tx.dialect.forShare()
	if move {
		lock = tx.dialect.forUpdate()
	}
	err = tx.queryRow("cursor", "SELECT seq FROM rollup_cursor WHERE id = 1"+lock, nil, &seq)
	return seq, err
}

const figureColumns = "seq, endpoint, type, received_at, size, provider, event_type, signature_status, status, ignored"

func scanFigured(scan func(...any) error) (*hookglass.Event, error) {
	e := &hookglass.Event{}
	var received int64
	var eventType, ignored sql.NullString
	var status sql.NullInt64
	err := scan(&e.Seq, &e.EndpointNum, &e.Type, &received, &e.Size, &e.Provider, &eventType, &e.SignatureStatus, &status, &ignored)
	e.ReceivedAt, e.EventType, e.Status, e.Ignored = time.UnixMicro(received).UTC(), decodeText(eventType.String), int(status.Int64), ignored.String
	return e, err
}

// alike is a group of events of one minute that the figures do not distinguish.
type alike struct {
	hookglass.Event       // the last of them by Seq; Size is their total
	low             int64 // the Seq of the first
	n               int64
}

// addTo counts the group.
func (a *alike) addTo(f *hookglass.Figures) {
	f.AddEvents(&a.Event, a.n, a.Size)
	f.Place(a.n, a.low, a.Seq)
}

// alikeEvents groups and counts events.
const alikeEvents = `SELECT max(seq), min(seq), endpoint, type, received_at / 60000000 AS minute, cast(sum(size) AS bigint), provider, event_type, signature_status, status,
		CASE WHEN ignored IS NULL THEN '' ELSE 'ignored' END AS hidden, count(*)
		FROM (%s) AS e GROUP BY endpoint, type, minute, provider, event_type, signature_status, status, hidden`

func scanAlike(scan func(...any) error) (a alike, err error) {
	var minute int64
	var eventType sql.NullString
	var status sql.NullInt64
	err = scan(&a.Seq, &a.low, &a.EndpointNum, &a.Type, &minute, &a.Size, &a.Provider, &eventType, &a.SignatureStatus, &status, &a.Ignored, &a.n)
	a.ReceivedAt, a.EventType, a.Status = time.Unix(minute*60, 0).UTC(), decodeText(eventType.String), int(status.Int64)
	return a, err
}

// RollUp counts up to limit events and outcomes that are not in the figures yet, and reports whether there may be more.
// Captures wait behind it.
func (tx *Tx) RollUp(limit int) (more bool, err error) {
	cursor, err := tx.rollCursor(true)
	if err != nil {
		return false, err
	}
	counted, err := queryAll(&tx.View, scanAlike, fmt.Sprintf(alikeEvents, "SELECT "+figureColumns+" FROM events WHERE seq > $1 ORDER BY seq LIMIT $2"), cursor, limit)
	if err != nil {
		return false, err
	}
	c := changes{}
	var events int64
	for _, a := range counted {
		for _, f := range c.at(a.EndpointNum, a.ReceivedAt) {
			a.addTo(f)
		}
		events += a.n
		cursor = max(cursor, a.Seq)
	}
	outcomes, err := queryAll(&tx.View, scanOutcome, "UPDATE outcomes SET rolled = 1 WHERE "+tx.dialect.picked("num", "SELECT num FROM outcomes WHERE rolled = 0 LIMIT $1")+" RETURNING "+outcomeColumns, limit)
	if err != nil {
		return false, err
	}
	hidden, err := tx.ignoredAmong(outcomes)
	if err != nil {
		return false, err
	}
	for _, o := range outcomes {
		if !hidden[o.EventSeq] {
			c.outcome(o, 1)
		}
	}
	if err := tx.forgetErased(c); err != nil {
		return false, err
	}
	if err := tx.addFigures(c); err != nil {
		return false, err
	}
	if events > 0 {
		if _, err := tx.exec("UPDATE rollup_cursor SET seq = $1 WHERE id = 1", cursor); err != nil {
			return false, err
		}
	}
	return events == int64(limit) || len(outcomes) == limit, nil
}

// forgetErased drops the changes of erased endpoints, whose outcomes may be rolled up later than their figures are
// gone.
func (tx *Tx) forgetErased(c changes) error {
	there := make(map[int64]bool)
	for b := range c {
		there[b.endpoint] = false
	}
	if len(there) == 0 {
		return nil
	}
	living, err := queryAll(&tx.View, scanNum, "SELECT num FROM endpoints WHERE "+tx.dialect.among("num", "$1"), tx.dialect.list(slices.Collect(maps.Keys(there))))
	if err != nil {
		return err
	}
	for _, num := range living {
		there[num] = true
	}
	maps.DeleteFunc(c, func(b bucket, _ *hookglass.Figures) bool { return !there[b.endpoint] })
	return nil
}

// ignoredAmong returns which of the outcomes' events are ignored.
func (v *View) ignoredAmong(outcomes []hookglass.Outcome) (map[int64]bool, error) {
	if len(outcomes) == 0 {
		return nil, nil
	}
	seqs := make([]int64, len(outcomes))
	for i, o := range outcomes {
		seqs[i] = o.EventSeq
	}
	// Not by IS NOT NULL, for which the planner may scan the whole partial index of ignored events.
	ignored, err := queryAll(v, scanNum, "SELECT seq FROM events WHERE "+v.dialect.among("seq", "$1")+" AND coalesce(ignored, '') <> ''", v.dialect.list(seqs))
	return setOf(ignored), err
}

// PurgeFigures deletes some of the figures, action totals and outcomes that nobody can ask for any more, and reports
// whether there may be more.
func (tx *Tx) PurgeFigures() (more bool, err error) {
	for _, old := range []struct {
		span int64
		keep time.Duration
	}{{spanMinute, keepMinutes}, {spanHour, keepHours}} {
		n, err := tx.exec("DELETE FROM rollups WHERE "+tx.dialect.pickedRows("FROM rollups x WHERE x.span = $1 AND x.start < $2 LIMIT $3"),
			old.span, tx.Now.Add(-old.keep).Unix()/60, rollPurge)
		if err != nil {
			return false, err
		}
		more = more || n == rollPurge
	}
	n, err := tx.exec("DELETE FROM action_totals WHERE "+tx.dialect.pickedRows("FROM endpoints e"+
		tx.dialect.each("action_totals", "x.endpoint = e.num AND x.hour < cast($1 AS bigint)")+" LIMIT $2"), tx.Now.Add(-keepHours).Unix()/3600, rollPurge)
	if err != nil {
		return false, err
	}
	more = more || n == rollPurge
	// Nums are nearly in the order of times, so only the oldest rows are examined. Outcomes with a future timestamp,
	// from a wrong clock, are deleted too, because they would keep those behind them alive.
	n, err = tx.exec("DELETE FROM outcomes WHERE "+tx.dialect.picked("num", "SELECT num FROM outcomes ORDER BY num LIMIT $1")+" AND rolled = 1 AND (at < $2 OR at > $3)",
		rollPurge, tx.Now.Add(-keepOutcomes).UnixMicro(), tx.Now.Add(keepOutcomes).UnixMicro())
	return more || n == rollPurge, err
}

// changed is an event before and after a change.
type changed struct{ before, after *hookglass.Event }

// recount corrects the figures for changed events, whose rows are locked.
func (tx *Tx) recount(events ...changed) error {
	cursor, err := tx.rollCursor(false)
	if err != nil {
		return err
	}
	c := changes{}
	by := make(map[int64]int64) // 1 or -1: whether an event's outcomes are to be added or taken back
	var seqs []int64
	for _, e := range events {
		if e.after.Seq <= cursor {
			c.event(e.before, -1)
			c.event(e.after, 1)
		}
		if hidden := e.after.Ignored != ""; (e.before.Ignored != "") != hidden {
			by[e.after.Seq] = 1
			if hidden {
				by[e.after.Seq] = -1
			}
			seqs = append(seqs, e.after.Seq)
		}
	}
	if len(seqs) > 0 {
		outcomes, err := queryAll(&tx.View, scanOutcome, "SELECT "+outcomeColumns+" FROM outcomes WHERE "+tx.dialect.among("event", "$1")+" AND rolled = 1", tx.dialect.list(seqs))
		if err != nil {
			return err
		}
		for _, o := range outcomes {
			c.outcome(o, by[o.EventSeq])
		}
	}
	return tx.addFigures(c)
}

// figureErased counts erased events, after adding those that were not rolled up yet: figures are of everything that
// arrived. The outcomes of ignored events are deleted with them.
func (tx *Tx) figureErased(rows []erasedRow, expired map[int64]bool) error {
	if len(rows) == 0 {
		return nil
	}
	cursor, err := tx.rollCursor(false)
	if err != nil {
		return err
	}
	c := changes{}
	var ignored []int64
	for _, r := range rows {
		if r.seq > cursor {
			c.event(r.event, 1)
		}
		if r.event.Ignored != "" {
			ignored = append(ignored, r.seq)
		}
		for i, f := range c.at(r.event.EndpointNum, r.event.ReceivedAt) {
			if f.Erased++; expired[r.seq] {
				f.Expired++
			}
			if i == 0 && tx.Now.Sub(r.event.ReceivedAt) > keepMinutes {
				c.forgetMinute(r.event.EndpointNum, r.event.ReceivedAt) // nobody can ask for it
			}
		}
	}
	if len(ignored) > 0 {
		// Without the event nothing says that these must not count, in later figures and in alerts.
		if _, err := tx.exec("DELETE FROM outcomes WHERE "+tx.dialect.among("event", "$1"), tx.dialect.list(ignored)); err != nil {
			return err
		}
	}
	return tx.addFigures(c)
}

const outcomeColumns = "endpoint, event, source, at, took, status, bad, final"

func scanOutcome(scan func(...any) error) (o hookglass.Outcome, err error) {
	var at, bad int64
	var took, status sql.NullInt64
	var final sql.NullString
	err = scan(&o.EndpointNum, &o.EventSeq, &o.Source, &at, &took, &status, &bad, &final)
	o.At, o.Took, o.StatusCode = time.UnixMicro(at).UTC(), time.Duration(took.Int64)*time.Microsecond, int(status.Int64)
	o.Final = hookglass.OutcomeEnd(final.String)
	o.Earlier = o.Bad() && bad == 0
	return o, err
}

// AddOutcomes stores attempts to deliver events, for figures and alerts. It belongs in the transaction that records the
// attempt.
func (tx *Tx) AddOutcomes(outcomes ...hookglass.Outcome) error {
	in := input{columns: []inputColumn{
		{"endpoint", inputInteger}, {"event", inputInteger}, {"source", inputText}, {"at", inputInteger}, {"took", inputInteger}, {"status", inputInteger},
		{"bad", inputInteger}, {"final", inputText}, {"rolled", inputInteger},
	}}
	for _, o := range outcomes {
		in.rows = append(in.rows, []any{o.EndpointNum, o.EventSeq, string(o.Source), o.At.UnixMicro(), nullInt(o.Took.Microseconds()), nullInt(int64(o.StatusCode)),
			boolInt(o.Bad() && !o.Earlier), nullString(string(o.Final)), 0})
	}
	return tx.insert("outcomes", in, "")
}

// FiguresByStep returns the figures of an endpoint for each step from from to to, both multiples of step; what is not
// rolled up yet is read from the events. A step is whole minutes; beyond two days ago only hours are kept. Empty steps
// are left out.
func (v *View) FiguresByStep(endpointNum int64, from, to time.Time, step time.Duration) (map[time.Time]*hookglass.Figures, error) {
	span := int64(spanMinute)
	if step%time.Hour == 0 && from.Unix()%3600 == 0 {
		span = spanHour
	}
	first, last, per := from.Unix()/60, to.Unix()/60, int64(step/time.Minute)
	found := map[time.Time]*hookglass.Figures{}
	at := func(minute int64) *hookglass.Figures {
		start := time.Unix((first+(minute-first)/per*per)*60, 0).UTC()
		if found[start] == nil {
			found[start] = &hookglass.Figures{}
		}
		return found[start]
	}
	err := v.queryEach(func(scan func(...any) error) error {
		var start int64
		f, err := scanFigures(func(dest ...any) error { return scan(append([]any{&start}, dest...)...) })
		if err == nil {
			at(start).Add(f)
		}
		return err
	}, "SELECT start, figures FROM rollups WHERE endpoint = $1 AND span = $2 AND start >= $3 AND start < $4", endpointNum, span, first, last)
	if err != nil {
		return nil, err
	}
	tail, err := v.notRolled(endpointNum)
	if err != nil {
		return nil, err
	}
	for _, a := range tail {
		if minute := a.ReceivedAt.Unix() / 60; minute >= first && minute < last {
			a.addTo(at(minute))
		}
	}
	fresh, err := queryAll(v, scanOutcome, "SELECT "+outcomeColumns+" FROM outcomes WHERE endpoint = $1 AND rolled = 0", endpointNum)
	if err != nil {
		return nil, err
	}
	hidden, err := v.ignoredAmong(fresh)
	if err != nil {
		return nil, err
	}
	for _, o := range fresh {
		if minute := o.At.Unix() / 60; minute >= first && minute < last && !hidden[o.EventSeq] {
			at(minute).AddOutcome(o, 1)
		}
	}
	return found, nil
}

// notRolled counts the events of an endpoint that are not in its figures yet.
func (v *View) notRolled(endpointNum int64) ([]alike, error) {
	var cursor int64
	if err := v.queryRow("cursor", "SELECT coalesce(max(seq), 0) FROM rollup_cursor", nil, &cursor); err != nil {
		return nil, err
	}
	a := &args{}
	query := fmt.Sprintf(alikeEvents, "SELECT "+figureColumns+" FROM events WHERE "+v.dialect.within(a, endpointNum, cursor, math.MaxInt64))
	return queryAll(v, scanAlike, query, a.all()...)
}

// Refused is a number of arrivals at one endpoint in one minute that were answered with the same error.
type Refused struct {
	EndpointNum int64
	At          time.Time
	Code        hookglass.Code
	N           int64
}

// CountRefused adds refused arrivals to the figures and counters of their endpoints, if these still exist.
func (tx *Tx) CountRefused(rows []Refused) error {
	sums := make(map[int64]int64)
	for _, r := range rows {
		sums[r.EndpointNum] += r.N
	}
	nums := slices.Sorted(maps.Keys(sums))
	live, err := queryAll(&tx.View, scanNum, "SELECT endpoint FROM endpoint_stats WHERE "+tx.dialect.among("endpoint", "$1")+" ORDER BY endpoint", tx.dialect.list(nums))
	if err != nil {
		return err
	}
	c := changes{}
	for _, r := range rows {
		if _, lives := slices.BinarySearch(live, r.EndpointNum); !lives {
			continue
		}
		for _, f := range c.at(r.EndpointNum, r.At) {
			f.AddRefused(r.Code, r.N)
		}
	}
	if err := tx.addFigures(c); err != nil {
		return err
	}
	// The counters come last and in the order in which captures lock them, so that transactions do not deadlock.
	for _, num := range live {
		if _, err := tx.exec(`UPDATE endpoint_stats SET refused_count = refused_count + cast($2 AS bigint) WHERE endpoint = $1`, num, sums[num]); err != nil {
			return err
		}
	}
	return nil
}
