package store

import (
	"database/sql"
	"encoding/json"
	"fmt"

	"hookglass"
)

const releaseColumns = "num, id, endpoint, event, event_id, recipients, status, relay_code, relay_message, failure_code, failure_message, created_at, finished_at"

func scanRelease(scan func(...any) error) (r hookglass.Release, err error) {
	var to string
	var code, created, finished sql.NullInt64
	var message, failed, why sql.NullString
	err = scan(&r.Num, &r.ID, &r.EndpointNum, &r.EventSeq, &r.EventID, &to, &r.Status, &code, &message, &failed, &why, &created, &finished)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(to), &r.To); err != nil {
		return r, fmt.Errorf("recipients of release %s: %w", r.ID, err)
	}
	r.Code, r.Message = int(code.Int64), message.String
	if failed.Valid {
		r.Failure = &hookglass.Failure{Code: failed.String, Message: why.String}
	}
	r.CreatedAt, r.FinishedAt = fromMicros(created), fromMicros(finished)
	return r, nil
}

// BeginRelease records that a mail is about to be handed to the relay, and sets the Num and CreatedAt of the release.
// It answers not_found for a mail that was deleted meanwhile.
func (tx *Tx) BeginRelease(r *hookglass.Release) error {
	to, err := json.Marshal(r.To)
	if err != nil {
		return err
	}
	r.CreatedAt = tx.Now
	// The event is locked, so that a concurrent deletion either removes the release too or prevents it.
	return tx.queryRow("request", `WITH e AS (SELECT seq FROM events WHERE seq = $3`+tx.dialect.forUpdate()+`)
		INSERT INTO releases (id, endpoint, event, event_id, recipients, status, created_at)
		SELECT cast($1 AS text), cast($2 AS bigint), e.seq, cast($4 AS text), cast($5 AS text), cast($6 AS text), cast($7 AS bigint) FROM e RETURNING num`,
		[]any{r.ID, r.EndpointNum, r.EventSeq, string(r.EventID), string(to), string(hookglass.ReleaseUnknown), micros(r.CreatedAt)}, &r.Num)
}

// FinishRelease stores the outcome of a release that has none yet, and sets its FinishedAt. If the release was deleted
// with its mail, nothing is stored.
func (tx *Tx) FinishRelease(r *hookglass.Release) error {
	var failed, why any
	if r.Failure != nil {
		failed, why = r.Failure.Code, r.Failure.Message
	}
	r.FinishedAt = tx.Now
	_, err := tx.exec(`UPDATE releases SET status = $2, relay_code = $3, relay_message = $4, failure_code = $5, failure_message = $6, finished_at = $7
		WHERE num = $1 AND finished_at IS NULL`,
		r.Num, string(r.Status), nullInt(int64(r.Code)), nullString(r.Message), failed, why, micros(r.FinishedAt))
	return err
}

// Releases lists the releases of a mail, newest first. If before is not 0, only those with a smaller Num are listed. It
// answers not_found.
func (v *View) Releases(ref, eventID string, before int64, limit int) ([]hookglass.Release, error) {
	_, e, err := v.eventIn(ref, eventID, "")
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + releaseColumns + " FROM releases WHERE " + v.dialect.newestOf(a, "event", e.Seq, "num", before, limit)
	return queryAll(v, scanRelease, query, a.all()...)
}
