package store

import (
	"database/sql"
	"strings"
	"time"

	"hookglass"
)

const tokenColumns = "t.id, t.user_id, t.account_id, t.workspace_id, t.name, t.level, t.scopes, t.hint, t.created_at, t.expires_at, t.last_used_at, t.revoked_at"

func scanToken(scan func(...any) error) (t hookglass.Token, err error) {
	var workspace, created, expires, used, revoked sql.NullInt64
	var scopes string
	err = scan(&t.ID, &t.UserID, &t.AccountID, &workspace, &t.Name, &t.Level, &scopes, &t.Hint, &created, &expires, &used, &revoked)
	t.WorkspaceID = workspace.Int64
	for _, s := range strings.Fields(scopes) {
		t.Scopes = append(t.Scopes, hookglass.Scope(s))
	}
	t.CreatedAt, t.ExpiresAt, t.LastUsedAt, t.RevokedAt = fromMicros(created), fromMicros(expires), fromMicros(used), fromMicros(revoked)
	return t, err
}

// Token answers not_found for a token that is not the principal's.
func (v *View) Token(id int64) (hookglass.Token, error) {
	var a args
	return one(v, "token", scanToken, "SELECT "+tokenColumns+" FROM tokens t WHERE t.id = "+a.add(id)+
		" AND "+v.accountScope(&a, "t.account_id", "t.workspace_id"), &a)
}

// Tokens lists a user's tokens that the principal may see, newest first, including revoked and expired ones.
func (v *View) Tokens(user int64) ([]hookglass.Token, error) {
	var a args
	// "id + 0" keeps the index on the id out: in its order lie the tokens of all other users.
	query := "SELECT " + tokenColumns + " FROM tokens t WHERE t.user_id = " + a.add(user) +
		" AND " + v.accountScope(&a, "t.account_id", "t.workspace_id") + " ORDER BY t.id + 0 DESC"
	return queryAll(v, scanToken, query, a.all()...)
}

// ofMember is the condition that the user of a token t is a member of its account. A join that PostgreSQL plans while
// there are a few members may read all of them.
const ofMember = "(SELECT m.user_id FROM members m WHERE m.account_id = t.account_id AND m.user_id = t.user_id) IS NOT NULL"

// TokenByHash returns the token with this SHA-256 if its user is a member of its account. It may be revoked or expired.
func (v *View) TokenByHash(hash []byte) (hookglass.Token, error) {
	a := args{[]any{hash}}
	return one(v, "token", scanToken, "SELECT "+tokenColumns+" FROM tokens t WHERE t.hash = $1 AND "+ofMember, &a)
}

// CreateToken stores a new token under the SHA-256 of its text and sets its ID.
func (tx *Tx) CreateToken(t *hookglass.Token, hash []byte) error {
	names := make([]string, len(t.Scopes))
	for i, s := range t.Scopes {
		names[i] = string(s)
	}
	t.CreatedAt = tx.Now
	return tx.queryRow("token", `INSERT INTO tokens (user_id, account_id, workspace_id, name, level, scopes, hash, hint, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id`,
		[]any{t.UserID, t.AccountID, nullInt(t.WorkspaceID), t.Name, string(t.Level), strings.Join(names, " "), hash, t.Hint,
			micros(t.CreatedAt), micros(t.ExpiresAt)}, &t.ID)
}

// RevokeToken revokes a token. Doing so again changes nothing.
func (tx *Tx) RevokeToken(id int64) error {
	var a args
	query := "UPDATE tokens SET revoked_at = COALESCE(revoked_at, " + a.add(micros(tx.Now)) + ") WHERE id = " + a.add(id) +
		" AND " + tx.accountScope(&a, "account_id", "workspace_id")
	tx.Announce(TopicTokens)
	return tx.change("token", query, a.all()...)
}

// TouchToken records that a token was used now.
func (tx *Tx) TouchToken(id int64) error {
	_, err := tx.exec("UPDATE tokens SET last_used_at = $1 WHERE id = $2", micros(tx.Now), id)
	return err
}

// tokenRows bounds the tokens that one transaction purges.
const tokenRows = 500

// PurgeTokens deletes some tokens that were revoked or expired before a time, and reports whether there may be more. It
// scans all tokens.
func (tx *Tx) PurgeTokens(before time.Time) (more bool, err error) {
	n, err := tx.exec("DELETE FROM tokens WHERE "+tx.dialect.picked("id", "SELECT id FROM tokens WHERE revoked_at < $1 OR expires_at < $1 LIMIT $2"), micros(before), tokenRows)
	return n == tokenRows, err
}

// EndpointByTunnelKey returns the temporary endpoint whose key has this SHA-256, unless it has expired at the given
// time.
func (v *View) EndpointByTunnelKey(hash []byte, now time.Time) (id hookglass.EndpointID, err error) {
	err = v.queryRow("endpoint", `SELECT id FROM endpoints WHERE tunnel_key_hash = $1 AND deleted_at IS NULL
		AND (expires_at IS NULL OR expires_at > $2)`, []any{hash, micros(now)}, &id)
	return id, err
}
