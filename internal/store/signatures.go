package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hookglass"
)

const signatureColumns = `c.id, c.endpoint, c.provider, c.enabled, c.options, c.sealed, c.created_at, c.updated_at`

func scanSignatureConfig(scan func(...any) error) (c hookglass.SignatureConfig, err error) {
	var enabled, created, updated int64
	var options string
	if err := scan(&c.ID, &c.EndpointNum, &c.Provider, &enabled, &options, &c.Sealed, &created, &updated); err != nil {
		return c, err
	}
	c.Enabled = enabled != 0
	c.CreatedAt, c.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	if err := json.Unmarshal([]byte(options), &c.Options); err != nil {
		return c, fmt.Errorf("options of signature config %d: %w", c.ID, err)
	}
	return c, nil
}

// SignatureConfigs lists the configs of an endpoint, oldest first; of one that the principal may not see, none. Their
// secrets are sealed.
func (v *View) SignatureConfigs(ref string) ([]hookglass.SignatureConfig, error) {
	a := &args{}
	named, ok := v.endpointNamed(a, ref)
	if !ok {
		return nil, nil
	}
	query := `SELECT ` + signatureColumns + ` FROM signature_configs c JOIN endpoints e ON e.num = c.endpoint WHERE ` + named + ` ORDER BY c.id`
	return queryAll(v, scanSignatureConfig, query, a.all()...)
}

// SignatureConfig returns one config of an endpoint. It answers not_found.
func (v *View) SignatureConfig(ref string, id int64) (hookglass.SignatureConfig, error) {
	configs, err := v.SignatureConfigs(ref)
	if err != nil {
		return hookglass.SignatureConfig{}, err
	}
	for _, c := range configs {
		if c.ID == id {
			return c, nil
		}
	}
	return hookglass.SignatureConfig{}, hookglass.NotFound("signature config")
}

// CreateSignatureConfig stores a new config and sets its id and times. If the provider has one already, it answers
// signature_config_exists or, with force, replaces it.
func (tx *Tx) CreateSignatureConfig(c *hookglass.SignatureConfig, force bool) error {
	options, err := json.Marshal(c.Options)
	if err != nil {
		return err
	}
	query := `INSERT INTO signature_configs (endpoint, provider, enabled, options, sealed, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
		ON CONFLICT (endpoint, provider) DO `
	if force {
		query += `UPDATE SET enabled = excluded.enabled, options = excluded.options, sealed = excluded.sealed, updated_at = excluded.updated_at`
	} else {
		query += `NOTHING`
	}
	query += ` RETURNING id, created_at, updated_at`
	var created, updated int64
	err = tx.queryRow("signature config", query, []any{c.EndpointNum, c.Provider, boolInt(c.Enabled), string(options), c.Sealed, tx.Now.UnixMicro()},
		&c.ID, &created, &updated)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return &hookglass.Error{
			Code: hookglass.CodeSignatureConfigExists, Message: "The endpoint has a signature config for this provider. Use force=true to replace it.",
			Extra: map[string]any{"existing_provider": c.Provider},
		}
	}
	if err != nil {
		return err
	}
	c.CreatedAt, c.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	tx.AnnounceAtOnce(TopicEndpoints)
	return nil
}

// SaveSignatureConfig stores what can change of a config: whether it is enabled, its options and its secrets.
func (tx *Tx) SaveSignatureConfig(c *hookglass.SignatureConfig) error {
	options, err := json.Marshal(c.Options)
	if err != nil {
		return err
	}
	c.UpdatedAt = tx.Now
	tx.AnnounceAtOnce(TopicEndpoints)
	return tx.change("signature config", `UPDATE signature_configs SET enabled = $3, options = $4, sealed = $5, updated_at = $6 WHERE endpoint = $1 AND id = $2`,
		c.EndpointNum, c.ID, boolInt(c.Enabled), string(options), c.Sealed, tx.Now.UnixMicro())
}

// DeleteSignatureConfig deletes a config. It answers not_found.
func (tx *Tx) DeleteSignatureConfig(endpointNum, id int64) error {
	tx.AnnounceAtOnce(TopicEndpoints)
	return tx.change("signature config", `DELETE FROM signature_configs WHERE endpoint = $1 AND id = $2`, endpointNum, id)
}

// SignatureVerdict is the result of checking an event's signature.
type SignatureVerdict struct {
	EndpointNum, EventSeq int64
	Status                hookglass.SignatureStatus
	Reason                string
}

// JudgeSignatures replaces the signature verdicts of events, except for events that are gone.
func (tx *Tx) JudgeSignatures(verdicts ...SignatureVerdict) error {
	// A fixed lock order with the counters last, so that transactions do not deadlock.
	verdicts = slices.SortedFunc(slices.Values(verdicts), func(a, b SignatureVerdict) int { return cmp.Compare(a.EventSeq, b.EventSeq) })
	var judged []changed
	var endpoints []int64
	for _, j := range verdicts {
		// Read the event again under a lock: it may have changed.
		before, err := queryAll(&tx.View, scanFigured, "SELECT "+figureColumns+" FROM events WHERE endpoint = $1 AND seq = $2"+tx.dialect.forUpdate(), j.EndpointNum, j.EventSeq)
		if err != nil {
			return err
		}
		if len(before) == 0 {
			continue
		}
		if _, err := tx.exec(`UPDATE events SET signature_status = $3, signature_reason = $4 WHERE endpoint = $1 AND seq = $2`,
			j.EndpointNum, j.EventSeq, string(j.Status), nullString(j.Reason)); err != nil {
			return err
		}
		after := *before[0]
		after.SignatureStatus = j.Status
		judged = append(judged, changed{before[0], &after})
		endpoints = append(endpoints, j.EndpointNum)
	}
	if len(judged) == 0 {
		return nil
	}
	tx.announceEvents(endpoints)
	return tx.recount(judged...)
}
