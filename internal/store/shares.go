package store

import (
	"database/sql"
	"time"

	"hookglass"
)

const shareColumns = "num, endpoint, event, event_id, created_by, created_at, expires_at"

func scanShare(scan func(...any) error) (s hookglass.Share, err error) {
	var by, created, expires sql.NullInt64
	err = scan(&s.ID, &s.EndpointNum, &s.EventSeq, &s.EventID, &by, &created, &expires)
	s.CreatedBy, s.CreatedAt, s.ExpiresAt = by.Int64, fromMicros(created), fromMicros(expires)
	return s, err
}

// ShareList selects links of an endpoint.
type ShareList struct {
	Event  string // links to this event; "": to any
	Before int64  // links created before this one; 0: from the newest
	Limit  int    // 0: all
}

// Shares lists the links that work at the given time, newest first: not expired, and to events that exist. It answers
// not_found for an endpoint or event that the principal may not see.
func (v *View) Shares(ref string, wanted ShareList, now time.Time) ([]hookglass.Share, error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + shareColumns + " FROM shares WHERE expires_at > " + a.add(micros(now)) + " AND "
	if wanted.Event == "" {
		query += "event > " + a.add(log.floor) + " AND EXISTS (SELECT 1 FROM events WHERE events.seq = shares.event AND events.endpoint = shares.endpoint) AND " +
			v.dialect.newestOf(a, "endpoint", log.endpoint.Num, "num", wanted.Before, wanted.Limit)
	} else {
		e, err := v.event(log, wanted.Event, "")
		if err != nil {
			return nil, err
		}
		query += "endpoint = " + a.add(log.endpoint.Num) + " AND " + v.dialect.newestOf(a, "event", e.Seq, "num", wanted.Before, wanted.Limit)
	}
	return queryAll(v, scanShare, query, a.all()...)
}

// ShareByHash returns the link whose secret has this SHA-256, unless it has expired at the given time.
func (v *View) ShareByHash(hash []byte, now time.Time) (hookglass.Share, error) {
	a := args{[]any{hash, micros(now)}}
	return one(v, "shared request", scanShare, "SELECT "+shareColumns+" FROM shares WHERE hash = $1 AND expires_at + 0 > $2", &a)
}

// CreateShare stores a link to an event by the SHA-256 of its secret and sets its ID.
func (tx *Tx) CreateShare(s *hookglass.Share, hash []byte) error {
	s.CreatedAt = tx.Now
	return tx.queryRow("share link", `INSERT INTO shares (endpoint, event, event_id, hash, created_by, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING num`,
		[]any{s.EndpointNum, s.EventSeq, string(s.EventID), hash, nullInt(s.CreatedBy), micros(s.CreatedAt), micros(s.ExpiresAt)}, &s.ID)
}

// DeleteShare ends a link of an endpoint at once.
func (tx *Tx) DeleteShare(ref string, id int64) error {
	e, err := tx.Endpoint(ref)
	if err != nil {
		return err
	}
	return tx.change("share link", "DELETE FROM shares WHERE num = $1 AND endpoint = $2", id, e.Num)
}

// purgeShares bounds the links that one transaction purges.
const purgeShares = 500

// PurgeShares deletes some of the links that have expired, and reports whether there may be more.
func (tx *Tx) PurgeShares() (more bool, err error) {
	n, err := tx.exec("DELETE FROM shares WHERE "+tx.dialect.picked("num", "SELECT num FROM shares WHERE expires_at <= $1 LIMIT $2"), micros(tx.Now), purgeShares)
	return n == purgeShares, err
}
