package store

import (
	"encoding/json"
	"fmt"

	"hookglass"
)

func scanReplay(scan func(...any) error) (*hookglass.Replay, error) {
	var num int64
	var record []byte
	if err := scan(&num, &record); err != nil {
		return nil, err
	}
	r := new(hookglass.Replay)
	if err := json.Unmarshal(record, r); err != nil {
		return nil, fmt.Errorf("replay %d: %w", num, err)
	}
	r.Num = num
	r.Request, r.Response = *exchange(&r.Request, decodeText), answered(r.Response, decodeText)
	return r, nil
}

// exchange and answered return copies whose header values went through change: JSON holds text, and headers any bytes.
func exchange(r *hookglass.SentRequest, change func(string) string) *hookglass.SentRequest {
	if r == nil {
		return nil
	}
	changed := *r
	changed.Headers = values(r.Headers, change)
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

func values(h hookglass.Headers, change func(string) string) hookglass.Headers {
	changed := make(hookglass.Headers, len(h))
	for i, f := range h {
		changed[i] = hookglass.Header{Name: change(f.Name), Value: change(f.Value)}
	}
	return changed
}

// RecordReplay stores an attempt and sets its Num and Verdict. Of an event that was deleted meanwhile nothing is kept.
func (tx *Tx) RecordReplay(r *hookglass.Replay) error {
	// The event is locked, so that its deletion sees the attempt or the attempt sees the deletion.
	if _, err := one(&tx.View, "request", scanNum, "SELECT seq FROM events WHERE seq = $1"+tx.dialect.forUpdate(), &args{[]any{r.EventSeq}}); err != nil {
		if hookglass.Is(err, hookglass.CodeNotFound) {
			return nil
		}
		return err
	}
	before, err := queryAll(&tx.View, scanNum, "SELECT passed FROM replays WHERE event = $1 AND target_url = $2 ORDER BY num DESC LIMIT 1", r.EventSeq, r.TargetURL)
	if err != nil {
		return err
	}
	if len(before) > 0 {
		r.Verdict = hookglass.Compare(before[0] != 0, r.Passed())
	}
	stored := *r
	stored.Request, stored.Response = *exchange(&r.Request, encodeText), answered(r.Response, encodeText)
	record, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	return tx.queryRow("replay", `INSERT INTO replays (id, endpoint, event, event_id, target_url, passed, replayed_at, record)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING num`,
		[]any{r.ID, r.EndpointNum, r.EventSeq, string(r.EventID), r.TargetURL, boolInt(r.Passed()), r.At.UnixMicro(), record}, &r.Num)
}

// Replays lists the attempts for an event, newest first, those with a Num below before where it is not 0. It answers not_found.
func (v *View) Replays(ref, eventID string, before int64, limit int) ([]*hookglass.Replay, error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return nil, err
	}
	e, err := v.event(log, eventID, "")
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT num, record FROM replays WHERE event = " + a.add(e.Seq)
	if before > 0 {
		query += " AND num < " + a.add(before)
	}
	return queryAll(v, scanReplay, query+" ORDER BY num DESC LIMIT "+a.add(limit), a.values...)
}
