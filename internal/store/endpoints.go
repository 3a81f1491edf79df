package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"hookglass"
)

const endpointColumns = `e.num, e.id, coalesce(e.account_id, 0), coalesce(e.workspace_id, 0), e.name, e.kind, e.custom_id, e.provider,
	e.provider_config, e.email_local_part, e.enabled, e.response, e.expires_at, e.created_at, e.updated_at,
	s.event_count, s.refused_count, s.last_event_at, e.response_script, e.response_rules, e.schema_tracking, CASE WHEN EXISTS (SELECT 1 FROM tunnel_subscriptions u WHERE u.endpoint = e.num) THEN 1 ELSE 0 END`

const endpointTables = ` FROM endpoints e JOIN endpoint_stats s ON s.endpoint = e.num`

func scanEndpoint(scan func(...any) error) (hookglass.Endpoint, error) {
	var e hookglass.Endpoint
	var customID, provider, localPart, response, script, rules sql.NullString
	var enabled, tracking, tunnel int64
	var config string
	var expires, last sql.NullInt64
	var created, updated int64
	err := scan(&e.Num, &e.ID, &e.AccountID, &e.WorkspaceID, &e.Name, &e.Kind, &customID, &provider,
		&config, &localPart, &enabled, &response, &expires, &created, &updated,
		&e.EventCount, &e.RefusedCount, &last, &script, &rules, &tracking, &tunnel)
	if err != nil {
		return e, err
	}
	e.CustomID, e.Provider, e.EmailLocalPart = customID.String, provider.String, localPart.String
	e.Enabled, e.TunnelActive = enabled != 0, tunnel != 0
	e.ResponseScript, e.SchemaTracking = script.String, tracking != 0
	e.ExpiresAt, e.LastEventAt = fromMicros(expires), fromMicros(last)
	e.CreatedAt, e.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	if err := json.Unmarshal([]byte(config), &e.ProviderConfig); err != nil {
		return e, fmt.Errorf("provider_config of %s: %w", e.ID, err)
	}
	if response.Valid {
		e.Response = new(hookglass.Response)
		if err := json.Unmarshal([]byte(response.String), e.Response); err != nil {
			return e, fmt.Errorf("response of %s: %w", e.ID, err)
		}
	}
	if rules.Valid {
		if err := json.Unmarshal([]byte(rules.String), &e.ResponseRules); err != nil {
			return e, fmt.Errorf("response_rules of %s: %w", e.ID, err)
		}
	}
	return e, nil
}

// endpointScope returns the condition on endpoints e that they exist and that the principal may see them.
func (v *View) endpointScope(a *args) string {
	var b strings.Builder
	b.WriteString(" e.deleted_at IS NULL AND (e.expires_at IS NULL OR e.expires_at > " + a.add(v.Now.UnixMicro()) + ")")
	switch {
	case v.who.System:
	case v.who.Endpoint != "":
		b.WriteString(" AND e.id = " + a.add(string(v.who.Endpoint)))
	default:
		b.WriteString(" AND e.account_id = " + a.add(v.who.Account))
		if v.who.Workspace != 0 {
			b.WriteString(" AND e.workspace_id = " + a.add(v.who.Workspace))
		}
	}
	return b.String()
}

// Endpoint returns the endpoint with the id or custom id. It answers not_found.
func (v *View) Endpoint(ref string) (hookglass.Endpoint, error) { return v.endpoint(ref, "") }

// EndpointToChange is Endpoint with a lock, for a caller that will save it: without the lock, concurrent changes would
// overwrite each other.
func (tx *Tx) EndpointToChange(ref string) (hookglass.Endpoint, error) {
	return tx.endpoint(ref, tx.dialect.forUpdateOf("e"))
}

func (v *View) endpoint(ref, lock string) (hookglass.Endpoint, error) {
	column, ok := refColumn(ref)
	if !ok {
		return hookglass.Endpoint{}, hookglass.NotFound("endpoint")
	}
	return v.endpointBy(column, ref, lock)
}

// refColumn returns the column in which an id or custom id is found. It reports false for what is neither.
func refColumn(ref string) (column string, ok bool) {
	if hookglass.IsEndpointID(ref) {
		return "id", true
	}
	return "custom_id", hookglass.ValidCustomID(ref)
}

// endpointNamed returns the condition on endpoints e that it is the one with the id or custom id and that the principal
// may see it. It reports false for what is neither.
func (v *View) endpointNamed(a *args, ref string) (condition string, ok bool) {
	column, ok := refColumn(ref)
	return "e." + column + " = " + a.add(ref) + " AND" + v.endpointScope(a), ok
}

// EndpointByNum returns the endpoint with a row number. It answers not_found.
func (v *View) EndpointByNum(num int64) (hookglass.Endpoint, error) {
	return v.endpointBy("num", num, "")
}

// EndpointByAddress returns the email endpoint with the local part. It answers not_found.
func (v *View) EndpointByAddress(localPart string) (hookglass.Endpoint, error) {
	return v.endpointBy("email_local_part", localPart, "")
}

func (v *View) endpointBy(column string, value any, lock string) (hookglass.Endpoint, error) {
	a := &args{}
	query := `SELECT ` + endpointColumns + endpointTables + ` WHERE e.` + column + ` = ` + a.add(value) + ` AND` + v.endpointScope(a) + lock
	return one(v, "endpoint", scanEndpoint, query, a)
}

// Endpoints lists endpoints with a row number above after, oldest first; limit 0 is all.
func (v *View) Endpoints(after int64, limit int) ([]hookglass.Endpoint, error) {
	a := &args{}
	query := `SELECT e.num FROM endpoints e WHERE` + v.endpointScope(a) + a.oldestPage(v.dialect.ownNum("e.num"), after, limit)
	return v.endpointsAmong(query, a)
}

// endpointsAmong reads the endpoints whose row numbers a query returns, oldest first.
func (v *View) endpointsAmong(query string, a *args) ([]hookglass.Endpoint, error) {
	query = `SELECT ` + endpointColumns + endpointTables + ` WHERE ` + v.dialect.picked("e.num", query) + ` ORDER BY e.num`
	return queryAll(v, scanEndpoint, query, a.all()...)
}

// EndpointsNamed lists endpoints, oldest first, whose name, custom id, id or local part contains each of the words. The
// case of ASCII letters does not matter; limit 0 is all.
func (v *View) EndpointsNamed(words []string, limit int) ([]hookglass.Endpoint, error) {
	a := &args{}
	query := `SELECT e.num FROM endpoints e WHERE` + v.endpointScope(a)
	text := v.dialect.lower(`e.name || ' ' || coalesce(e.custom_id, '') || ' ' || e.id || ' ' || coalesce(e.email_local_part, '')`)
	for _, word := range words {
		pattern := a.add("%" + likeEscaper.Replace(encodeText(word)) + "%")
		query += ` AND ` + text + ` LIKE ` + v.dialect.lower("cast("+pattern+" AS text)") + ` ESCAPE '\'`
	}
	return v.endpointsAmong(query+" ORDER BY "+v.dialect.ownNum("e.num")+a.limit(limit), a)
}

// EndpointsDue lists the row numbers of temporary endpoints that have expired.
func (v *View) EndpointsDue(at time.Time, limit int) ([]int64, error) {
	return queryAll(v, scanNum, `SELECT num FROM endpoints WHERE deleted_at IS NULL AND expires_at <= $1 ORDER BY num LIMIT $2`, at.UnixMicro(), limit)
}

// CreateEndpoint stores a new endpoint and sets its Num and times. tunnelKeyHash is the hash of a temporary endpoint's
// key, or nil. It answers validation_failed for a custom id or local part in use.
func (tx *Tx) CreateEndpoint(e *hookglass.Endpoint, tunnelKeyHash []byte) error {
	spelled, err := endpointJSON(e)
	if err != nil {
		return err
	}
	e.CreatedAt, e.UpdatedAt = tx.Now, tx.Now
	var key any
	if tunnelKeyHash != nil {
		key = tunnelKeyHash
	}
	err = tx.queryRow("endpoint", `INSERT INTO endpoints (id, account_id, workspace_id, name, kind, custom_id, provider, provider_config,
		email_local_part, enabled, response, tunnel_key_hash, expires_at, created_at, updated_at, response_script, schema_tracking, response_rules)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15, $16, $17) RETURNING num`,
		[]any{string(e.ID), nullInt(e.AccountID), nullInt(e.WorkspaceID), e.Name, string(e.Kind), nullString(e.CustomID), nullString(e.Provider), spelled.config,
			nullString(e.EmailLocalPart), boolInt(e.Enabled), spelled.response, key, micros(e.ExpiresAt), tx.Now.UnixMicro(),
			nullString(e.ResponseScript), boolInt(e.SchemaTracking), spelled.rules}, &e.Num)
	if err != nil {
		return endpointConflict(err)
	}
	if _, err := tx.exec(`INSERT INTO endpoint_stats (endpoint, event_count, ignored_count, refused_count, floor_seq) VALUES ($1, 0, 0, 0, 0)`, e.Num); err != nil {
		return err
	}
	tx.AnnounceAtOnce(endpointTopics(e)...)
	return nil
}

// SaveEndpoint stores what people can change of an endpoint.
func (tx *Tx) SaveEndpoint(e *hookglass.Endpoint) error {
	spelled, err := endpointJSON(e)
	if err != nil {
		return err
	}
	e.UpdatedAt = tx.Now
	err = tx.change("endpoint", `UPDATE endpoints SET name = $2, custom_id = $3, provider = $4, provider_config = $5, enabled = $6, response = $7,
		account_id = $8, workspace_id = $9, expires_at = $10, updated_at = $11, response_script = $12, schema_tracking = $13, response_rules = $14, tunnel_key_hash = CASE WHEN cast($8 AS bigint) IS NULL THEN tunnel_key_hash END
		WHERE num = $1 AND deleted_at IS NULL`,
		e.Num, e.Name, nullString(e.CustomID), nullString(e.Provider), spelled.config, boolInt(e.Enabled), spelled.response,
		nullInt(e.AccountID), nullInt(e.WorkspaceID), micros(e.ExpiresAt), tx.Now.UnixMicro(), nullString(e.ResponseScript), boolInt(e.SchemaTracking), spelled.rules)
	if err != nil {
		return endpointConflict(err)
	}
	tx.AnnounceAtOnce(endpointTopics(e)...)
	return nil
}

// DeleteEndpoint hides the endpoint at once and frees its custom id and address; a job erases it and its events. After
// the commit no capture for it succeeds.
func (tx *Tx) DeleteEndpoint(e *hookglass.Endpoint) error {
	if err := tx.dropEndpoint(e.Num); err != nil {
		return err
	}
	tx.AnnounceAtOnce(endpointTopics(e)...)
	return nil
}

// ExpireEndpoint deletes a temporary endpoint that has expired. It is no error if the endpoint is gone already, or was
// claimed since it was found to be due.
func (tx *Tx) ExpireEndpoint(num int64) error {
	err := tx.queryRow("endpoint", `SELECT num FROM endpoints WHERE num = $1 AND deleted_at IS NULL AND expires_at <= $2`+tx.dialect.forUpdate(),
		[]any{num, tx.Now.UnixMicro()}, &num)
	if err == nil {
		err = tx.dropEndpoint(num)
	}
	if err != nil {
		if hookglass.Is(err, hookglass.CodeNotFound) {
			return nil
		}
		return err
	}
	tx.Announce(TopicEndpoints)
	return nil
}

// eraseAfter is how long after its deletion an endpoint is erased on PostgreSQL, where a transaction that has seen it
// can add rows to it after the deletion is committed. By then each of those has ended: it and the deletion have the
// patience of an update.
const eraseAfter = 4 * patience

func (tx *Tx) dropEndpoint(num int64) error {
	if _, err := tx.exec(`DELETE FROM endpoint_stats WHERE endpoint = $1`, num); err != nil {
		return err
	}
	err := tx.change("endpoint", `UPDATE endpoints SET deleted_at = $2, custom_id = NULL, email_local_part = NULL, tunnel_key_hash = NULL WHERE num = $1 AND deleted_at IS NULL`,
		num, tx.Now.UnixMicro())
	if err != nil {
		return err
	}
	var at time.Time
	if tx.dialect == postgres {
		at = tx.Now.Add(eraseAfter)
	}
	tx.enqueueAt(at, hookglass.EraseJob{EndpointNum: num})
	tx.Announce(TopicEvents(num), TopicTunnel(num), TopicTokens)
	return nil
}

func endpointTopics(e *hookglass.Endpoint) []string {
	if e.AccountID == 0 {
		return []string{TopicEndpoints}
	}
	return []string{TopicEndpoints, TopicAccount(e.AccountID)}
}

// endpointColumnsJSON holds the JSON columns of an endpoint; nil is NULL.
type endpointColumnsJSON struct {
	config          string
	response, rules any
}

func endpointJSON(e *hookglass.Endpoint) (spelled endpointColumnsJSON, err error) {
	text := func(v any) string {
		b, e := json.Marshal(v)
		err = errors.Join(err, e)
		return string(b)
	}
	spelled.config = text(e.ProviderConfig)
	if e.Response != nil {
		spelled.response = text(e.Response)
	}
	if len(e.ResponseRules) > 0 {
		spelled.rules = text(e.ResponseRules)
	}
	return spelled, err
}

func endpointConflict(err error) error {
	switch {
	case uniqueViolation(err, "custom_id"):
		return hookglass.Invalid("endpoint.custom_id", "is taken")
	case uniqueViolation(err, "email_local_part"):
		return hookglass.Invalid("endpoint.email_local_part", "is taken")
	}
	return err
}
