package store

import (
	"cmp"
	"database/sql"
	"math"
	"slices"
	"strconv"
	"time"

	"hookglass"
	"hookglass/internal/query"
)

// handover is how long after a target was made or changed an event may still be captured by a node that has not heard of it.
const handover = 10 * time.Second

// ledgerWindow selects the events of an endpoint that were received in a time.
type ledgerWindow struct {
	v        *View
	log      eventLog
	below    int64
	from, to time.Time
}

func (v *View) ledgerWindow(ref string, from, to time.Time) (ledgerWindow, error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return ledgerWindow{}, err
	}
	w := ledgerWindow{v: v, log: log, below: math.MaxInt64, from: from, to: to}
	narrow := log
	err = v.bracket(&narrow, &w.below, query.Between(from.Add(-time.Microsecond), to))
	w.log.floor = narrow.floor
	return w, err
}

// among is the condition for the events above a seq.
func (w ledgerWindow) among(a *args, above int64) string {
	return w.v.dialect.within(a, w.log.endpoint.Num, max(above, w.log.floor), w.below) +
		" AND received_at >= " + a.add(w.from.UnixMicro()) + " AND received_at < " + a.add(w.to.UnixMicro())
}

// table is the events as a table w.
func (w ledgerWindow) table(a *args) string {
	return "(SELECT seq, received_at, spf FROM events WHERE " + w.among(a, 0) + ") AS w"
}

// Ledger adds up what became of the events of an endpoint that were received from one time up to another, which is not included. Both are whole
// minutes, and whole hours where figures by minutes are not kept any more. Bodies are not read. It answers not_found.
func (v *View) Ledger(ref string, from, to time.Time) (l hookglass.Ledger, err error) {
	w, err := v.ledgerWindow(ref, from, to)
	if err != nil {
		return l, err
	}
	l = hookglass.Ledger{From: from, To: to, Refused: map[string]int64{}, Answers: map[string]int64{}}
	var expired int64
	for _, part := range []func() error{
		func() (err error) { expired, err = w.arrived(&l); return err },
		func() error { return w.kept(&l) },
		func() error { return w.targets(&l) },
		func() error { return w.actions(&l) },
		func() error { return w.tunnel(&l, expired) },
		func() error { return w.verdicts(&l) },
		func() error { return w.replays(&l) },
	} {
		if err := part(); err != nil {
			return l, err
		}
	}
	return l, nil
}

// arrived reads the figures: what was stored and refused, and what was erased since.
func (w ledgerWindow) arrived(l *hookglass.Ledger) (expired int64, err error) {
	step := time.Minute
	if w.from.Truncate(time.Hour).Equal(w.from) && w.to.Truncate(time.Hour).Equal(w.to) {
		step = time.Hour
	}
	steps, err := w.v.FiguresByStep(w.log.endpoint.Num, w.from, w.to, step)
	if err != nil {
		return 0, err
	}
	var all hookglass.Figures
	for _, f := range steps {
		all.Add(*f)
	}
	l.Stored, l.Deleted = all.Events, all.Erased
	for code, n := range all.Refused {
		l.Refused[code] = n
	}
	// Events at and below the floor are deleted and not erased yet.
	floor, err := w.v.eventLogOf(w.log.endpoint)
	if err != nil {
		return 0, err
	}
	a := &args{}
	var hidden int64
	err = w.v.queryRow("endpoint", "SELECT count(*) FROM events WHERE "+w.v.dialect.within(a, w.log.endpoint.Num, 0, next(floor.floor))+
		" AND received_at >= "+a.add(w.from.UnixMicro())+" AND received_at < "+a.add(w.to.UnixMicro()), a.values, &hidden)
	l.Deleted += hidden
	return all.Expired, err
}

// BooksFrom is from when on what is erased and refused is in the figures; zero: since ever.
func (v *View) BooksFrom() (time.Time, error) {
	var at int64
	err := v.queryRow("cursor", "SELECT coalesce(max(books_at), 0) FROM rollup_cursor", nil, &at)
	if at == 0 {
		return time.Time{}, err
	}
	return time.UnixMicro(at).UTC(), err
}

func (w ledgerWindow) kept(l *hookglass.Ledger) error {
	a := &args{}
	_, err := queryAll(w.v, func(scan func(...any) error) (struct{}, error) {
		var kind string
		var status sql.NullInt64
		var n, ignored int64
		err := scan(&kind, &status, &n, &ignored)
		l.Kept += n
		l.Ignored += ignored
		switch {
		case kind == string(hookglass.EventEmail):
			l.Answers[hookglass.AnswerAccepted] += n
		case status.Int64 == 0:
			l.Answers[hookglass.AnswerNone] += n
		default:
			l.Answers[strconv.FormatInt(status.Int64, 10)] += n
		}
		return struct{}{}, err
	}, "SELECT type, status, count(*), count(ignored) FROM events WHERE "+w.among(a, 0)+" GROUP BY type, status", a.values...)
	return err
}

// tally is a number of rows of one state.
type tally struct {
	num    int64
	id     string
	state  string
	n      int64
	nobody int64 // of n: not final, and due never
}

func scanTally(scan func(...any) error) (t tally, err error) {
	return t, scan(&t.num, &t.id, &t.state, &t.n, &t.nobody)
}

func (w ledgerWindow) targets(l *hookglass.Ledger) error {
	a := &args{}
	rows, err := queryAll(w.v, scanTally, "SELECT f.target, '', f.state, count(*), sum(CASE WHEN f.state IN ('pending', 'sending') AND f.due_at IS NULL THEN 1 ELSE 0 END) FROM "+w.table(a)+
		" JOIN forwards f ON f.event = w.seq GROUP BY f.target, f.state", a.values...)
	if err != nil {
		return err
	}
	known, err := w.v.ForwardingTargets(string(w.log.endpoint.ID), 0, 0)
	if err != nil {
		return err
	}
	a = &args{}
	owed, err := queryAll(w.v, scanTally, "SELECT t.id, '', '', count(*), 0 FROM forwarding_targets t JOIN "+w.table(a)+" ON w.received_at > t.updated_at + cast("+a.add(handover.Microseconds())+
		" AS bigint) WHERE t.endpoint = "+a.add(w.log.endpoint.Num)+" AND t.enabled = 1 AND NOT EXISTS (SELECT 1 FROM forwards f WHERE f.event = w.seq AND f.target = t.id) GROUP BY t.id", a.values...)
	if err != nil {
		return err
	}
	by := map[int64]*hookglass.LedgerConsumer{}
	for _, t := range known {
		by[t.ID] = &hookglass.LedgerConsumer{Kind: hookglass.ConsumerTarget, ID: strconv.FormatInt(t.ID, 10), Name: t.Name}
	}
	for _, r := range rows {
		c := by[r.num]
		if c == nil {
			c = &hookglass.LedgerConsumer{Kind: hookglass.ConsumerTarget, ID: strconv.FormatInt(r.num, 10), Gone: true}
			by[r.num] = c
		}
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
	}
	for _, r := range owed {
		by[r.num].Owed = r.n
	}
	w.close(l, by)
	return nil
}

// close adds consumers in the order of their numbers. Events that a consumer has nothing of are skipped.
func (w ledgerWindow) close(l *hookglass.Ledger, by map[int64]*hookglass.LedgerConsumer) {
	nums := make([]int64, 0, len(by))
	for num := range by {
		nums = append(nums, num)
	}
	slices.SortFunc(nums, cmp.Compare)
	for _, num := range nums {
		c := by[num]
		c.Skipped += max(l.Kept-c.Delivered-c.Failed-c.Skipped-c.Pending, 0)
		c.Deleted = l.Deleted
		l.Consumers = append(l.Consumers, *c)
	}
}

func (w ledgerWindow) actions(l *hookglass.Ledger) error {
	a := &args{}
	rows, err := queryAll(w.v, scanTally, "SELECT r.action, r.action_id, r.status, count(*), sum(CASE WHEN r.status IN ('queued', 'running') AND r.due_at IS NULL AND NOT EXISTS (SELECT 1 FROM event_tasks k WHERE k.kind = 'actions' AND k.endpoint = r.endpoint AND k.event = r.event) THEN 1 ELSE 0 END) FROM "+
		w.table(a)+" JOIN action_runs r ON r.event = w.seq WHERE r.rerun = 0 GROUP BY r.action, r.action_id, r.status", a.values...)
	if err != nil {
		return err
	}
	known, err := w.v.actions(w.log.endpoint.Num, 0, 0)
	if err != nil {
		return err
	}
	var waiting int64
	a = &args{}
	tasks := " FROM event_tasks k JOIN " + w.table(a) + " ON w.seq = k.event"
	own := " WHERE k.kind = 'actions' AND k.endpoint = " + a.add(w.log.endpoint.Num)
	if err := w.v.queryRow("task", "SELECT count(*)"+tasks+own, a.values, &waiting); err != nil {
		return err
	}
	begun, err := queryAll(w.v, scanTally, "SELECT r.action, '', '', count(*), 0"+tasks+" JOIN action_runs r ON r.event = k.event AND r.rerun = 0"+own+" GROUP BY r.action", a.values...)
	if err != nil {
		return err
	}
	by := map[int64]*hookglass.LedgerConsumer{}
	for _, action := range known {
		c := &hookglass.LedgerConsumer{Kind: hookglass.ConsumerAction, ID: action.ID, Name: action.Name}
		by[action.Num] = c
		if action.Enabled {
			c.Pending = waiting
			for _, b := range begun {
				if b.num == action.Num {
					c.Pending -= b.n
				}
			}
		}
	}
	for _, r := range rows {
		c := by[r.num]
		if c == nil {
			c = &hookglass.LedgerConsumer{Kind: hookglass.ConsumerAction, ID: r.id, Gone: true}
			by[r.num] = c
		}
		switch status := hookglass.RunStatus(r.state); {
		case !status.Final():
			c.Pending += r.n
		case status == hookglass.ActionRunCompleted:
			c.Delivered += r.n
		default:
			c.Failed += r.n
		}
		c.Stuck += r.nobody
	}
	w.close(l, by)
	return nil
}

// missed is the condition that an event of a table w without a report is somebody's to deliver through the tunnel: it fell into an outage, or a
// session that is there has it or will get it.
func missed(endpoint string) string {
	return "(EXISTS (SELECT 1 FROM tunnel_gaps g WHERE g.endpoint = " + endpoint + " AND w.seq > g.from_seq AND (g.to_seq IS NULL OR w.seq <= g.to_seq)) OR " +
		"EXISTS (SELECT 1 FROM tunnel_subscriptions s WHERE s.endpoint = " + endpoint + " AND w.seq > s.begins))"
}

func (w ledgerWindow) tunnel(l *hookglass.Ledger, expired int64) error {
	c := &hookglass.LedgerConsumer{Kind: hookglass.ConsumerTunnel}
	var used int64
	err := w.v.queryRow("endpoint", `SELECT CASE WHEN EXISTS (SELECT 1 FROM tunnel_events WHERE endpoint = $1) OR EXISTS (SELECT 1 FROM tunnel_gaps WHERE endpoint = $1)
		OR EXISTS (SELECT 1 FROM tunnel_subscriptions WHERE endpoint = $1) THEN 1 ELSE 0 END`, []any{w.log.endpoint.Num}, &used)
	if err != nil || used == 0 && expired == 0 {
		return err
	}
	a := &args{}
	from := w.table(a) + " LEFT JOIN tunnel_events t ON t.event = w.seq"
	err = w.v.queryRow("endpoint", "SELECT coalesce(sum(CASE WHEN t.delivered_at IS NOT NULL THEN 1 ELSE 0 END), 0), "+
		"coalesce(sum(CASE WHEN t.event IS NOT NULL AND t.delivered_at IS NULL THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN t.event IS NULL AND "+
		missed(a.add(w.log.endpoint.Num))+" THEN 1 ELSE 0 END), 0) FROM "+from, a.values, &c.Delivered, &c.Failed, &c.Pending)
	if err != nil {
		return err
	}
	w.close(l, map[int64]*hookglass.LedgerConsumer{0: c})
	own := &l.Consumers[len(l.Consumers)-1]
	own.Expired = expired
	own.Deleted -= expired
	return nil
}

func (w ledgerWindow) verdicts(l *hookglass.Ledger) error {
	if w.log.endpoint.Kind != hookglass.KindEmail {
		return nil
	}
	c := hookglass.LedgerConsumer{Kind: hookglass.ConsumerVerdict, Deleted: l.Deleted}
	a := &args{}
	from := w.table(a)
	err := w.v.queryRow("endpoint", "SELECT coalesce(sum(CASE WHEN w.spf IS NOT NULL THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN w.spf IS NULL AND "+
		"EXISTS (SELECT 1 FROM event_tasks k WHERE k.kind = 'verdict' AND k.endpoint = "+a.add(w.log.endpoint.Num)+" AND k.event = w.seq) THEN 1 ELSE 0 END), 0) FROM "+from,
		a.values, &c.Delivered, &c.Pending)
	c.Failed = l.Kept - c.Delivered - c.Pending // given up, after processes died with it
	l.Consumers = append(l.Consumers, c)
	return err
}

func (w ledgerWindow) replays(l *hookglass.Ledger) error {
	a := &args{}
	err := w.v.queryRow("endpoint", "SELECT coalesce(sum(CASE WHEN r.passed = 1 THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN r.passed = 1 THEN 0 ELSE 1 END), 0) FROM "+
		w.table(a)+" JOIN replays r ON r.event = w.seq", a.values, &l.Replays.Delivered, &l.Replays.Failed)
	if err != nil {
		return err
	}
	a = &args{}
	return w.v.queryRow("endpoint", "SELECT count(*) FROM replay_batches b JOIN replay_batch_items i ON i.batch = b.num JOIN "+w.table(a)+
		" ON w.seq = i.event WHERE b.endpoint = "+a.add(w.log.endpoint.Num)+" AND b.finished_at IS NULL AND i.finished_at IS NULL", a.values, &l.Replays.Pending)
}
