package store

import (
	"database/sql"
	"encoding/json"

	"hookglass"
)

// resultOf decodes a result column of a mail's authentication.
func resultOf(column sql.NullString) string {
	if !column.Valid {
		return hookglass.AuthPending
	}
	return column.String
}

// storedEnvelope is a hookglass.Envelope as it is stored. Its JSON names are part of the schema.
type storedEnvelope struct {
	From     string   `json:"from"`
	To       []string `json:"to"`
	Helo     string   `json:"helo,omitempty"`
	Protocol string   `json:"protocol"`
	Composed bool     `json:"composed,omitempty"`
}

// encodeEnvelope encodes an envelope as a column; "" is none.
func encodeEnvelope(e *hookglass.Envelope) string {
	if e == nil {
		return ""
	}
	text, _ := json.Marshal(storedEnvelope(*e)) // only strings and a bool: it cannot fail
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

// Verdict is the outcome of a mail's authentication.
type Verdict struct {
	EndpointNum, EventSeq int64
	Results               hookglass.Authentication
	Details               []byte // the evidence, as JSON
}

// SetVerdicts stores verdicts, except for events that are gone.
func (tx *Tx) SetVerdicts(verdicts []Verdict) error {
	results, err := tx.sqlTx.PrepareContext(tx.ctx, "UPDATE events SET spf = $3, dkim = $4, dmarc = $5 WHERE endpoint = $1 AND seq = $2")
	if err != nil {
		return err
	}
	defer results.Close()
	details, err := tx.sqlTx.PrepareContext(tx.ctx, "INSERT INTO mail_verdicts (event, verdict) VALUES ($1, $2) ON CONFLICT (event) DO UPDATE SET verdict = excluded.verdict")
	if err != nil {
		return err
	}
	defer details.Close()
	for _, v := range verdicts {
		found, err := results.ExecContext(tx.ctx, v.EndpointNum, v.EventSeq, v.Results.SPF, v.Results.DKIM, v.Results.DMARC)
		if err != nil {
			return err
		}
		n, err := found.RowsAffected()
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if _, err := details.ExecContext(tx.ctx, v.EventSeq, string(v.Details)); err != nil {
			return err
		}
	}
	return nil
}
