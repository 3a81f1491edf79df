package store

import (
	"encoding/json"
	"time"

	"hookglass"
)

// CreateTunnelTicket stores a ticket under its SHA-256, and its client with the SHA-256 of the credential for its
// reports.
func (tx *Tx) CreateTunnelTicket(t hookglass.TunnelTicket, hash, credential []byte) error {
	client, err := json.Marshal(t.Client)
	if err != nil {
		return err
	}
	if _, err := tx.exec(`INSERT INTO tunnel_tickets (hash, endpoint, account_id, workspace_id, user_id, token, client, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		hash, t.EndpointNum, t.Who.Account, t.Who.Workspace, t.Who.User, t.Who.Token, client, t.ExpiresAt.UnixMicro()); err != nil {
		return err
	}
	_, err = tx.exec(`INSERT INTO tunnel_clients (id, hash, account_id, endpoint, created_at) VALUES ($1, $2, $3, $4, $5)`,
		t.Client.ID, credential, t.Who.Account, t.EndpointNum, tx.Now.UnixMicro())
	return err
}

// HasTunnelTicket reports whether a ticket exists that was not redeemed. It saves the transaction for invalid tickets.
func (v *View) HasTunnelTicket(hash []byte) (bool, error) {
	return v.finds("SELECT endpoint FROM tunnel_tickets WHERE hash = $1", hash)
}

// RedeemTunnelTicket deletes a ticket and returns it, so that only one caller succeeds. It answers not_found. The
// ticket may have expired.
func (tx *Tx) RedeemTunnelTicket(hash []byte) (t hookglass.TunnelTicket, err error) {
	var client []byte
	var expires int64
	err = tx.queryRow("ticket", `DELETE FROM tunnel_tickets WHERE hash = $1 RETURNING endpoint, account_id, workspace_id, user_id, token, client, expires_at`, []any{hash},
		&t.EndpointNum, &t.Who.Account, &t.Who.Workspace, &t.Who.User, &t.Who.Token, &client, &expires)
	if err != nil {
		return t, err
	}
	t.ExpiresAt = time.UnixMicro(expires).UTC()
	err = json.Unmarshal(client, &t.Client)
	return t, err
}

// TunnelCredential returns the SHA-256 of a client's credential, and the owner of the client: an account or, if that is
// 0, an endpoint. It answers not_found.
func (v *View) TunnelCredential(clientID string) (hash []byte, account int64, endpoint hookglass.EndpointID, err error) {
	err = v.queryRow("tunnel client", "SELECT hash, account_id, COALESCE((SELECT e.id FROM endpoints e WHERE e.num = endpoint), '') FROM tunnel_clients WHERE id = $1",
		[]any{clientID}, &hash, &account, &endpoint)
	return hash, account, endpoint, err
}

// UsableTokens returns which of the tokens are valid at a time: neither revoked nor expired, and of members of their
// account.
func (v *View) UsableTokens(ids []int64, at time.Time) (map[int64]bool, error) {
	found, err := queryAll(v, scanNum, `SELECT t.id FROM tokens t WHERE `+v.dialect.among("t.id", "$1")+` AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2) AND `+ofMember, v.dialect.list(ids), at.UnixMicro())
	return setOf(found), err
}

// KeptEndpoints returns those of the endpoints that still exist, with their account and workspace.
func (v *View) KeptEndpoints(nums []int64) (map[int64]hookglass.Endpoint, error) {
	a := &args{}
	found, err := queryAll(v, func(scan func(...any) error) (e hookglass.Endpoint, err error) {
		err = scan(&e.Num, &e.AccountID, &e.WorkspaceID)
		return e, err
	}, `SELECT e.num, coalesce(e.account_id, 0), coalesce(e.workspace_id, 0) FROM endpoints e WHERE `+v.dialect.among("e.num", a.add(v.dialect.list(nums)))+` AND`+v.endpointScope(a), a.all()...)
	kept := make(map[int64]hookglass.Endpoint, len(found))
	for _, e := range found {
		kept[e.Num] = e
	}
	return kept, err
}

func setOf(nums []int64) map[int64]bool {
	set := make(map[int64]bool, len(nums))
	for _, n := range nums {
		set[n] = true
	}
	return set
}

// clientLife is how long the credential of a disconnected client is kept.
const clientLife = 30 * 24 * time.Hour

// purgeTunnels bounds the rows of each kind that one transaction deletes, because captures wait behind it.
const purgeTunnels = 500

// PurgeTunnels deletes expired tickets and commands, clients that have not connected for long, and gaps whose events
// are gone: a session has been back for the retention of the account (of the installation, if the account has none)
// and for rest. It deletes some of each and reports whether there may be more: each row goes by its own age, so what a
// process that dies leaves is deleted by the next purge.
func (tx *Tx) PurgeTunnels(retention, rest time.Duration) (more bool, err error) {
	now := tx.Now.UnixMicro()
	// The durations are subtracted one by one, because their sum could overflow.
	settled := tx.Now.Add(-rest)
	cutoff := "CASE WHEN c.retention > 0 THEN cast($2 AS bigint) - c.retention ELSE cast($3 AS bigint) END"
	for _, s := range []struct {
		table, key, old string
		args            []any
	}{
		{"tunnel_tickets", "hash", "FROM tunnel_tickets WHERE expires_at < $2", []any{now}},
		{"tunnel_commands", "num", "FROM tunnel_commands WHERE expires_at < $2", []any{tx.Now.Add(-10 * time.Minute).UnixMicro()}},
		{"tunnel_clients", "id", "FROM tunnel_clients WHERE created_at < $2 AND NOT EXISTS (SELECT 1 FROM tunnel_sessions s WHERE s.client_id = tunnel_clients.id)", []any{tx.Now.Add(-clientLife).UnixMicro()}},
		{"tunnel_gaps", "num", `FROM tunnel_gaps LEFT JOIN endpoints e ON e.num = tunnel_gaps.endpoint LEFT JOIN accounts c ON c.id = e.account_id
			WHERE tunnel_gaps.state <> 'open' AND tunnel_gaps.reconnected_at < ` + cutoff + `
				AND tunnel_gaps.reconnected_at < (SELECT max(latest) FROM (
					SELECT ` + cutoff + ` AS latest FROM accounts c UNION ALL SELECT cast($3 AS bigint)) AS every)`, // nothing is joined to younger ones
			[]any{settled.UnixMicro(), settled.Add(-retention).UnixMicro()}},
	} {
		picked := tx.dialect.picked(s.key, "SELECT "+s.table+"."+s.key+" "+s.old+" LIMIT $1")
		n, err := tx.exec("DELETE FROM "+s.table+" WHERE "+picked, append([]any{purgeTunnels}, s.args...)...)
		if err != nil {
			return false, err
		}
		more = more || n == purgeTunnels
	}
	return more, nil
}
