package store

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"hookglass"
)

// Bounds of a page of the ledger. Bodies are read, because their hashes are listed.
const (
	ledgerBytes    = 32 << 20
	ledgerAttempts = 20 // the newest reports and replays of one event
)

// LedgerLines lists what became of each event of an endpoint received from from until before to, oldest first, starting
// after a Seq. next is the Seq to continue after, or 0 at the end. Pages may be short before the end, because large
// bodies take time. It answers not_found.
func (v *View) LedgerLines(ref string, from, to time.Time, after int64, limit int) (lines []hookglass.LedgerLine, next int64, err error) {
	w, _, err := v.ledgerWindow(ref, from, to)
	if err != nil {
		return nil, 0, err
	}
	a := &args{}
	events, err := queryAll(v, w.log.scan, "SELECT "+listColumns+" FROM events WHERE "+w.listed(a, w.hull(), after)+oldestFirst+" LIMIT "+a.add(limit+1), a.all()...)
	if err != nil || len(events) == 0 {
		return nil, 0, err
	}
	n := min(len(events), limit)
	var bytes int64
	for i, e := range events[:n] {
		if bytes += e.Size; i > 0 && bytes > ledgerBytes {
			n = i
			break
		}
	}
	if n < len(events) {
		next = events[n-1].Seq
	}
	lines = make([]hookglass.LedgerLine, n)
	at := make(map[int64]*hookglass.LedgerLine, n)
	seqs := make([]int64, n)
	for i, e := range events[:n] {
		lines[i].Event, at[e.Seq], seqs[i] = e, &lines[i], e.Seq
	}
	for rest := events[:n]; len(rest) > 0; {
		some := rest[:batch(rest, payloadBytes)]
		rest = rest[len(some):]
		if err := v.hashBodies(some, at); err != nil {
			return nil, 0, err
		}
	}
	for _, fill := range []func(ledgerWindow, map[int64]*hookglass.LedgerLine, any) error{
		v.lineForwards, v.lineRuns, v.lineTasks, v.lineTunnel, v.lineReports, v.lineReplays,
	} {
		if err := fill(w, at, v.dialect.list(seqs)); err != nil {
			return nil, 0, err
		}
	}
	return lines, next, nil
}

// hashBodies loads payloads, hashes them and lets go of them.
func (v *View) hashBodies(events []*hookglass.Event, at map[int64]*hookglass.LedgerLine) error {
	if err := v.loadPayloads(events); err != nil {
		return err
	}
	for _, e := range events {
		if e.Payload == nil {
			continue
		}
		sum := sha256.Sum256(e.Body)
		line := at[e.Seq]
		if line.SHA256 = hex.EncodeToString(sum[:]); e.Reply != nil {
			line.Source = e.Reply.Source
		}
		e.Payload = nil
	}
	return nil
}

func (v *View) lineForwards(_ ledgerWindow, at map[int64]*hookglass.LedgerLine, seqs any) error {
	found, err := queryAll(v, forwardOf(hookglass.ForwardingTarget{}), "SELECT "+forwardColumns+" FROM forwards f JOIN events e ON e.seq = f.event WHERE "+
		v.dialect.among("f.event", "$1")+" AND "+v.dialect.among("e.seq", "$1")+" ORDER BY f.event, f.target", seqs)
	for _, f := range found {
		line := at[f.EventSeq]
		line.Forwards = append(line.Forwards, f)
	}
	return err
}

func (v *View) lineRuns(_ ledgerWindow, at map[int64]*hookglass.LedgerLine, seqs any) error {
	found, err := queryAll(v, scanActionRun, `SELECT r.num, r.id, r.endpoint, (SELECT e.id FROM endpoints e WHERE e.num = r.endpoint), r.action, r.action_id, r.event, r.event_id, r.parent_id, r.rerun, r.status, NULL,
		r.created_at, r.started_at, r.finished_at FROM action_runs r WHERE `+v.dialect.among("r.event", "$1")+" ORDER BY r.event, r.num", seqs)
	for _, r := range found {
		line := at[r.EventSeq]
		line.Runs = append(line.Runs, r)
	}
	return err
}

func (v *View) lineTasks(w ledgerWindow, at map[int64]*hookglass.LedgerLine, seqs any) error {
	type task struct {
		event int64
		kind  TaskKind
	}
	tasks, err := queryAll(v, func(scan func(...any) error) (t task, err error) { err = scan(&t.event, &t.kind); return t, err },
		"SELECT event, kind FROM event_tasks WHERE kind IN ('actions', 'verdict') AND endpoint = $2 AND "+v.dialect.among("event", "$1"), seqs, w.log.endpoint.Num)
	for _, line := range at {
		if e := line.Event; e.Type == hookglass.EventEmail {
			if line.Verdict = hookglass.StateFailed; e.Authentication.SPF != hookglass.AuthPending {
				line.Verdict = hookglass.StateDelivered
			}
		}
	}
	for _, t := range tasks {
		switch line := at[t.event]; {
		case t.kind == TaskActions:
			line.Waiting = true
		case t.kind == TaskVerdict && line.Verdict == hookglass.StateFailed:
			line.Verdict = hookglass.StatePending
		}
	}
	return err
}

func (v *View) lineTunnel(w ledgerWindow, at map[int64]*hookglass.LedgerLine, _ any) error {
	type standing struct {
		event int64
		state hookglass.ConsumerState
	}
	in := input{columns: []inputColumn{{"seq", inputInteger}, {"endpoint", inputInteger}}}
	for seq := range at {
		in.rows = append(in.rows, []any{seq, w.log.endpoint.Num})
	}
	from, args, err := in.from(v.dialect, "w")
	if err != nil {
		return err
	}
	found, err := queryAll(v, func(scan func(...any) error) (s standing, err error) { err = scan(&s.event, &s.state); return s, err },
		"SELECT w.seq, CASE WHEN t.delivered_at IS NOT NULL THEN 'delivered' WHEN t.event IS NOT NULL THEN 'failed' WHEN "+missed("w.endpoint")+
			" THEN 'pending' ELSE 'skipped' END FROM "+from+" LEFT JOIN tunnel_events t ON t.event = w.seq"+in.lookup(v.dialect, "t.event"), args...)
	for _, s := range found {
		at[s.event].Tunnel = s.state
	}
	return err
}

func (v *View) lineReports(_ ledgerWindow, at map[int64]*hookglass.LedgerLine, seqs any) error {
	found, err := queryAll(v, func(scan func(...any) error) (t hookglass.TunnelAttempt, err error) {
		var when int64
		err = scan(&t.EventSeq, &when, &t.StatusCode)
		t.At = time.UnixMicro(when).UTC()
		return t, err
	}, "SELECT event, reported_at, status FROM tunnel_reports WHERE "+v.dialect.among("event", "$1")+" ORDER BY event, num", seqs)
	for _, t := range found {
		line := at[t.EventSeq]
		line.Reports = latest(line.Reports, t)
	}
	return err
}

func (v *View) lineReplays(_ ledgerWindow, at map[int64]*hookglass.LedgerLine, seqs any) error {
	found, err := queryAll(v, func(scan func(...any) error) (r hookglass.ReplayAttempt, err error) {
		var when, passed int64
		err = scan(&r.EventSeq, &r.ID, &when, &passed)
		r.At, r.Delivered = time.UnixMicro(when).UTC(), passed != 0
		return r, err
	}, "SELECT event, id, replayed_at, passed FROM replays WHERE "+v.dialect.among("event", "$1")+" ORDER BY event, num", seqs)
	for _, r := range found {
		line := at[r.EventSeq]
		line.Replays = latest(line.Replays, r)
	}
	return err
}

// latest appends to a list and drops the oldest item beyond what a page shows.
func latest[T any](list []T, item T) []T {
	if list = append(list, item); len(list) > ledgerAttempts {
		list = list[1:]
	}
	return list
}
