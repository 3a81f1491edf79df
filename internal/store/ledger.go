package store

import (
	"database/sql"
	"maps"
	"slices"
	"strconv"
	"time"

	"hookglass"
)

// handover is how long after a change of a target a node may still capture events without knowing of it.
const handover = 10 * time.Second

// Ledger computes the ledger of an endpoint for events received from from until before to. Both are whole minutes, or
// whole hours where figures by the minute are no longer kept. It reads no bodies. It answers not_found.
func (v *View) Ledger(ref string, from, to time.Time) (l hookglass.Ledger, err error) {
	w, all, err := v.ledgerWindow(ref, from, to)
	if err != nil {
		return l, err
	}
	l = hookglass.Ledger{From: from, To: to, Stored: all.Events, Deleted: all.Erased, Refused: map[string]int64{}}
	for code, n := range all.Refused {
		l.Refused[code] = n
	}
	hidden, err := w.hidden()
	if err != nil {
		return l, err
	}
	l.Deleted += hidden
	kept, err := w.keep(&l)
	if err == nil && l.Kept+l.Deleted != l.Stored {
		w.checkEach()
		kept, err = w.keep(&l)
	}
	if err != nil {
		return l, err
	}
	for _, part := range []func() error{
		func() error { return w.targets(&l, kept) },
		func() error { return w.actions(&l, kept) },
		func() error { return w.tunnel(&l, kept, all.Expired) },
		func() error { return w.verdicts(&l) },
		func() error { return w.replays(&l, kept) },
	} {
		if err := part(); err != nil {
			return l, err
		}
	}
	return l, nil
}

// hidden counts the events that are deleted but not yet erased: those up to the floor.
func (w ledgerWindow) hidden() (n int64, err error) {
	log, err := w.v.eventLogOf(w.log.endpoint)
	if err != nil || log.floor == 0 {
		return 0, err
	}
	a := &args{}
	err = w.v.queryRow("endpoint", "SELECT count(*) FROM events WHERE "+w.among(a, ledgerPiece{below: next(log.floor)}), a.all(), &n)
	return n, err
}

// BooksFrom returns since when the figures count erased and refused arrivals; zero: always.
func (v *View) BooksFrom() (time.Time, error) {
	var at int64
	err := v.queryRow("cursor", "SELECT coalesce(max(books_at), 0) FROM rollup_cursor", nil, &at)
	if at == 0 {
		return time.Time{}, err
	}
	return time.UnixMicro(at).UTC(), err
}

func (w ledgerWindow) count(p ledgerPiece) (n int64, err error) {
	a := &args{}
	err = w.v.queryRow("endpoint", "SELECT count(*) FROM events WHERE "+w.among(a, p), a.all(), &n)
	return n, err
}

// keep counts the events that are kept, in all and in each piece, and the answers to their senders.
func (w ledgerWindow) keep(l *hookglass.Ledger) (kept []int64, err error) {
	l.Kept, l.Ignored, l.Answers = 0, 0, map[string]int64{}
	kept = make([]int64, len(w.pieces))
	for i, p := range w.pieces {
		if kept[i], err = w.kept(l, p); err != nil {
			return nil, err
		}
		l.Kept += kept[i]
	}
	return kept, nil
}

// kept counts the events of a piece and the answers to their senders. In a whole piece, 200 is counted as the rest: the
// other answers have a partial index.
func (w ledgerWindow) kept(l *hookglass.Ledger, p ledgerPiece) (all int64, err error) {
	usual, condition, ignored := int64(0), "", "count(ignored)"
	if p.whole {
		if usual, err = w.count(p); err != nil {
			return 0, err
		}
		a := &args{}
		var n int64
		if err := w.v.queryRow("endpoint", "SELECT count(*) FROM events WHERE "+w.among(a, p)+" AND ignored IS NOT NULL", a.all(), &n); err != nil {
			return 0, err
		}
		l.Ignored += n
		all, condition, ignored = usual, " AND (status IS NULL OR status <> 200)", "0"
	}
	a := &args{}
	err = w.v.queryEach(func(scan func(...any) error) error {
		var kind string
		var status sql.NullInt64
		var n, ignored int64
		err := scan(&kind, &status, &n, &ignored)
		if p.whole {
			usual -= n
		} else {
			all += n
		}
		l.Ignored += ignored
		switch {
		case kind == string(hookglass.EventEmail) && (!status.Valid || status.Int64 == 250):
			l.Answers[hookglass.AnswerAccepted] += n
		case status.Int64 == 0:
			l.Answers[hookglass.AnswerNone] += n
		default:
			l.Answers[strconv.FormatInt(status.Int64, 10)] += n
		}
		return err
	}, "SELECT type, status, count(*), "+ignored+" FROM events WHERE "+w.among(a, p)+condition+" GROUP BY type, status", a.all()...)
	if usual != 0 {
		l.Answers["200"] += usual
	}
	return all, err
}

// tally is a count of rows in one state.
type tally struct {
	num    int64
	id     string
	state  string
	n      int64
	nobody int64 // of n: not final, but never due
}

func scanTally(scan func(...any) error) (t tally, err error) {
	err = scan(&t.num, &t.id, &t.state, &t.n, &t.nobody)
	return t, err
}

// consumers are those of one kind, by their numbers.
type consumers map[int64]*hookglass.LedgerConsumer

// of returns the consumer with a number. One that is not known is gone: only records of it are left.
func (cs consumers) of(num int64, kind hookglass.ConsumerKind, id string) *hookglass.LedgerConsumer {
	if cs[num] == nil {
		cs[num] = &hookglass.LedgerConsumer{Kind: kind, ID: id, Gone: true}
	}
	return cs[num]
}

// close adds the consumers in the order of their numbers. Events without any record at a consumer count as skipped.
func (w ledgerWindow) close(l *hookglass.Ledger, by consumers) {
	for _, num := range slices.Sorted(maps.Keys(by)) {
		c := by[num]
		c.Skipped += max(l.Kept-c.Delivered-c.Failed-c.Skipped-c.Pending, 0)
		c.Deleted = l.Deleted
		l.Consumers = append(l.Consumers, *c)
	}
}

func (w ledgerWindow) actions(l *hookglass.Ledger, kept []int64) error {
	known, err := w.v.actions(w.log.endpoint.Num, 0, 0)
	if err != nil {
		return err
	}
	tasked, err := w.has("event_tasks WHERE kind = 'actions' AND endpoint = $1")
	if err != nil {
		return err
	}
	var waiting int64          // events whose actions have not run
	begun := map[int64]int64{} // of these, how many each action has begun
	var rows []tally
	for i, p := range w.pieces {
		runs, err := w.runs(p, kept[i])
		if err != nil {
			return err
		}
		rows = append(rows, runs...)
		if !tasked {
			continue
		}
		n, at, err := w.actionTasks(p)
		if err != nil {
			return err
		}
		waiting += n
		for _, t := range at {
			begun[t.num] += t.n
		}
	}
	by := consumers{}
	for _, action := range known {
		c := &hookglass.LedgerConsumer{Kind: hookglass.ConsumerAction, ID: action.ID, Name: action.Name}
		if by[action.Num] = c; action.Enabled {
			c.Pending = waiting - begun[action.Num]
		}
	}
	for _, r := range rows {
		c := by.of(r.num, hookglass.ConsumerAction, r.id)
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

// actionTasks counts the events of a piece whose actions have not run, and how many of these each action has begun.
func (w ledgerWindow) actionTasks(p ledgerPiece) (waiting int64, begun []tally, err error) {
	a := &args{}
	count := "sum(CASE WHEN w.seq IN (" + w.tasked(a, TaskActions) + ") THEN 1 ELSE 0 END)"
	from := " FROM " + w.table(a, p)
	if err := w.v.queryRow("task", "SELECT coalesce("+count+", 0)"+from, a.all(), &waiting); err != nil || waiting == 0 {
		return 0, nil, err
	}
	begun, err = queryAll(w.v, scanTally, "SELECT x.action, '', '', "+count+", 0"+from+w.v.dialect.each("action_runs", "x.event = w.seq")+" AND x.rerun = 0 GROUP BY x.action", a.all()...)
	return waiting, begun, err
}

// tasked selects all events of the endpoint that have a task of a kind. It reads them once, because no index leads from
// an event to its tasks: while many wait, a look-up per event would scan them all each time.
func (w ledgerWindow) tasked(a *args, kind TaskKind) string {
	return "SELECT k.event FROM event_tasks k WHERE k.kind = " + a.add(string(kind)) + " AND k.endpoint = " + a.add(w.log.endpoint.Num)
}

// has reports whether the endpoint, $1, has a row in a table.
func (w ledgerWindow) has(rows string) (has bool, err error) {
	var n int64
	err = w.v.queryRow("endpoint", "SELECT CASE WHEN EXISTS (SELECT 1 FROM "+rows+") THEN 1 ELSE 0 END", []any{w.log.endpoint.Num}, &n)
	return n == 1, err
}

// runs counts the runs of each action by state.
func (w ledgerWindow) runs(p ledgerPiece, kept int64) ([]tally, error) {
	if has, err := w.has("action_runs WHERE endpoint = $1"); err != nil || !has {
		return nil, err
	}
	a := &args{}
	from, err := w.having(a, "action_runs", p, kept)
	if err != nil {
		return nil, err
	}
	return queryAll(w.v, scanTally, "SELECT x.action, x.action_id, x.status, count(*), sum(CASE WHEN x.status IN ('queued', 'running') AND x.due_at IS NULL AND x.event NOT IN ("+w.tasked(a, TaskActions)+") THEN 1 ELSE 0 END)"+
		from+" AND x.rerun = 0 GROUP BY x.action, x.action_id, x.status", a.all()...)
}

func (w ledgerWindow) verdicts(l *hookglass.Ledger) error {
	if w.log.endpoint.Kind != hookglass.KindEmail {
		return nil
	}
	c := hookglass.LedgerConsumer{Kind: hookglass.ConsumerVerdict, Deleted: l.Deleted}
	for _, p := range w.pieces {
		a := &args{}
		from := w.table(a, p)
		var delivered, pending int64
		err := w.v.queryRow("endpoint", "SELECT coalesce(sum(CASE WHEN w.spf IS NOT NULL THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN w.spf IS NULL AND "+
			"w.seq IN ("+w.tasked(a, TaskVerdict)+") THEN 1 ELSE 0 END), 0) FROM "+from,
			a.all(), &delivered, &pending)
		if err != nil {
			return err
		}
		c.Delivered, c.Pending = c.Delivered+delivered, c.Pending+pending
	}
	c.Failed = l.Kept - c.Delivered - c.Pending // given up after processes died during the check
	l.Consumers = append(l.Consumers, c)
	return nil
}

func (w ledgerWindow) replays(l *hookglass.Ledger, kept []int64) error {
	made, err := w.has("replays WHERE endpoint = $1")
	if err != nil {
		return err
	}
	batched, err := w.has("replay_batches WHERE endpoint = $1")
	if err != nil {
		return err
	}
	for i, p := range w.pieces {
		var delivered, failed, pending int64
		if a := (&args{}); made {
			from, err := w.having(a, "replays", p, kept[i])
			if err != nil {
				return err
			}
			err = w.v.queryRow("endpoint", "SELECT coalesce(sum(CASE WHEN x.passed = 1 THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN x.passed = 1 THEN 0 ELSE 1 END), 0)"+
				from, a.all(), &delivered, &failed)
			if err != nil {
				return err
			}
		}
		if a := (&args{}); batched {
			err := w.v.queryRow("endpoint", "SELECT count(*) FROM replay_batches b JOIN replay_batch_items i ON i.batch = b.num JOIN "+w.table(a, p)+
				" ON w.seq = i.event WHERE b.endpoint = "+a.add(w.log.endpoint.Num)+" AND b.finished_at IS NULL AND i.finished_at IS NULL", a.all(), &pending)
			if err != nil {
				return err
			}
		}
		l.Replays.Delivered, l.Replays.Failed, l.Replays.Pending = l.Replays.Delivered+delivered, l.Replays.Failed+failed, l.Replays.Pending+pending
	}
	return nil
}
