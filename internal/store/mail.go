package store

import (
	"database/sql"
	"encoding/json"

	"hookglass"
)

// resultOf reads a column of a mail's authentication.
func resultOf(column sql.NullString) string {
	if !column.Valid {
		return hookglass.AuthPending
	}
	return column.String
}

// storedEnvelope is a hookglass.Envelope as it is stored; the names are in the database.
type storedEnvelope struct {
	From     string   `json:"from"`
	To       []string `json:"to"`
	Helo     string   `json:"helo,omitempty"`
	Protocol string   `json:"protocol"`
	Composed bool     `json:"composed,omitempty"`
}

// encodeEnvelope makes the column of an envelope; "" stands for none.
func encodeEnvelope(e *hookglass.Envelope) string {
	if e == nil {
		return ""
	}
	text, _ := json.Marshal(storedEnvelope(*e)) // strings alone: it can not fail
	return encodeText(string(text))
}

func decodeEnvelope(column string) (*hookglass.Envelope, error) {
	if column == "" {
		return nil, nil
	}
	var e storedEnvelope
	if err := json.Unmarshal([]byte(decodeText(column)), &e); err != nil {
		return nil, err
	}
	return (*hookglass.Envelope)(&e), nil
}

// SetVerdict stores the results of a mail's authentication and, as JSON, what they rest on. An event that is gone is left alone.
func (tx *Tx) SetVerdict(endpointNum, seq int64, results hookglass.Authentication, verdict []byte) error {
	n, err := tx.exec("UPDATE events SET spf = $3, dkim = $4, dmarc = $5 WHERE endpoint = $1 AND seq = $2", endpointNum, seq, results.SPF, results.DKIM, results.DMARC)
	if err != nil || n == 0 {
		return err
	}
	_, err = tx.exec("INSERT INTO mail_verdicts (event, verdict) VALUES ($1, $2) ON CONFLICT (event) DO UPDATE SET verdict = excluded.verdict", seq, string(verdict))
	return err
}
