package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"hookglass"
)

func scanReplay(scan func(...any) error) (*hookglass.Replay, error) {
	var num int64
	var record []byte
	var verdict sql.NullString
	if err := scan(&num, &record, &verdict); err != nil {
		return nil, err
	}
	r := new(hookglass.Replay)
	if err := json.Unmarshal(record, r); err != nil {
		return nil, fmt.Errorf("replay %d: %w", num, err)
	}
	r.Num = num
	if verdict.Valid { // older rows have it only in the record
		r.Verdict = hookglass.Verdict(verdict.String)
	}
	r.Request, r.Response = *exchange(&r.Request, decodeText), answered(r.Response, decodeText)
	return r, nil
}

// exchange and answered return copies with headers, and the URL, passed through change: the record is JSON, which
// cannot hold arbitrary bytes.
func exchange(r *hookglass.SentRequest, change func(string) string) *hookglass.SentRequest {
	if r == nil {
		return nil
	}
	changed := *r
	changed.URL, changed.Headers = change(r.URL), values(r.Headers, change)
	return &changed
}

func answered(r *hookglass.TargetResponse, change func(string) string) *hookglass.TargetResponse {
	if r == nil {
		return nil
	}
	changed := *r
	changed.Headers = values(r.Headers, change)
	return &changed
}

// values returns h with each name and value changed, and never nil. If nothing changes, as is usual, it returns h
// itself.
func values(h hookglass.Headers, change func(string) string) hookglass.Headers {
	if h == nil {
		return hookglass.Headers{}
	}
	changed := h
	for i, f := range h {
		now := hookglass.Header{Name: change(f.Name), Value: change(f.Value)}
		if now == f {
			continue
		}
		if &changed[0] == &h[0] {
			changed = slices.Clone(h)
		}
		changed[i] = now
	}
	return changed
}

// RecordReplay stores an attempt in one statement and sets its Num and Verdict. It stores nothing if the event was
// deleted meanwhile, and changes nothing if the attempt is stored already.
func (tx *Tx) RecordReplay(r *hookglass.Replay) error {
	stored := *r
	stored.Request, stored.Response = *exchange(&r.Request, encodeText), answered(r.Response, encodeText)
	record, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	var verdict sql.NullString
	// The event is locked, so that a concurrent deletion either removes the attempt too or prevents it.
	err = tx.queryRow("request", `WITH e AS (SELECT seq FROM events WHERE seq = $3`+tx.dialect.forUpdate()+`)
		INSERT INTO replays (id, endpoint, event, event_id, target_url, passed, replayed_at, record, verdict)
		SELECT cast($1 AS text), cast($2 AS bigint), e.seq, cast($4 AS text), cast($5 AS text), cast($6 AS bigint), cast($7 AS bigint), cast($8 AS `+tx.dialect.bytes()+`),
			CASE (SELECT passed FROM replays WHERE `+tx.dialect.attempts("e.seq", "cast($5 AS text)")+` ORDER BY event DESC, num DESC LIMIT 1)
				WHEN 1 THEN cast($9 AS text) WHEN 0 THEN cast($10 AS text) END
		FROM e WHERE true ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING num, verdict`,
		[]any{r.ID, r.EndpointNum, r.EventSeq, string(r.EventID), r.TargetURL, boolInt(r.Passed()), r.At.UnixMicro(), record,
			string(hookglass.Compare(true, r.Passed())), string(hookglass.Compare(false, r.Passed()))}, &r.Num, &verdict)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return nil
	}
	r.Verdict = hookglass.Verdict(verdict.String)
	return err
}

// attempts returns the condition that selects the attempts to send an event to a target. Use it with ORDER BY event,
// num. PostgreSQL must not take the target for rare, or it sorts the event's attempts for the newest.
func (d dialect) attempts(event, target string) string {
	return d.rowsOf("event", "num", event, "0", newestNum) + " AND coalesce(target_url = " + target + ", false)"
}

// Replays lists the attempts for an event, newest first. If before is not 0, only those with a smaller Num are listed.
// It answers not_found.
func (v *View) Replays(ref, eventID string, before int64, limit int) ([]*hookglass.Replay, error) {
	_, e, err := v.eventIn(ref, eventID, "")
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT num, record, verdict FROM replays WHERE " + v.dialect.newestOf(a, "event", e.Seq, "num", before, limit)
	return queryAll(v, scanReplay, query, a.all()...)
}
