package store

import (
	"encoding/json"
	"time"

	"hookglass"
)

// CreateTunnelCommand stores a command, offers it to a session of its endpoint, and sets its Num and SessionNum. See
// OfferTunnelCommand for the choice of the session and for sign. It answers not_found if no session is subscribed.
func (tx *Tx) CreateTunnelCommand(c *hookglass.TunnelCommand, sign time.Time) error {
	session, err := tx.commandSession(c.EndpointNum, nil, sign)
	if err != nil {
		return err
	}
	c.SessionNum = session
	stored := *c
	stored.Request = *exchange(&c.Request, encodeText)
	request, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	tx.Announce(TopicCommands(c.EndpointNum))
	return tx.queryRow("command", "INSERT INTO tunnel_commands (id, endpoint, session, hash, request, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING num",
		[]any{c.ID, c.EndpointNum, session, []byte{}, request, tx.Now.UnixMicro(), c.ExpiresAt.UnixMicro()}, &c.Num)
}

// OfferTunnelCommand offers a command that no client can have received to a session other than the offered ones; the
// last of these loses it. It prefers, in this order, sessions that can replay, sessions at a node with a sign of life
// since sign, sessions at a node other than that of the last one, which may be gone, and newer sessions. It returns 0
// if a client may have received the command by now, and answers not_found if there is no other session.
func (tx *Tx) OfferTunnelCommand(num int64, offered []int64, sign time.Time) (session int64, err error) {
	open, err := queryAll(&tx.View, scanNum, "SELECT endpoint FROM tunnel_commands WHERE num = $1 AND sent_at IS NULL"+tx.dialect.forUpdate(), num)
	if err != nil || len(open) == 0 {
		return 0, err
	}
	if session, err = tx.commandSession(open[0], offered, sign); err != nil {
		return 0, err
	}
	tx.Announce(TopicCommands(open[0]))
	_, err = tx.exec("UPDATE tunnel_commands SET session = $2 WHERE num = $1", num, session)
	return session, err
}

// commandSession chooses the session to which a command is offered next. It answers not_found.
func (v *View) commandSession(endpointNum int64, offered []int64, sign time.Time) (int64, error) {
	var last int64
	if len(offered) > 0 {
		last = offered[len(offered)-1]
	}
	return one(v, "tunnel session", scanNum, `SELECT t.session FROM tunnel_subscriptions t
		JOIN tunnel_sessions s ON s.num = t.session
		LEFT JOIN tunnel_nodes n ON n.id = s.node
		WHERE t.endpoint = $1 AND NOT (`+v.dialect.among("t.session", "$2")+`)
		ORDER BY t.replays DESC,
			CASE WHEN n.seen_at >= $3 THEN 0 ELSE 1 END,
			CASE WHEN s.node = (SELECT node FROM tunnel_sessions WHERE num = $4) THEN 1 ELSE 0 END,
			t.num DESC LIMIT 1`,
		&args{[]any{endpointNum, v.dialect.list(append([]int64{}, offered...)), sign.UnixMicro(), last}})
}

// WaitingTunnelCommands lists commands that are offered to a session, were not sent to it and expire after until,
// oldest first: those with a Num above after, limit at most.
func (v *View) WaitingTunnelCommands(sessionNum, after int64, limit int, until time.Time) ([]hookglass.TunnelCommand, error) {
	a := &args{}
	query := "SELECT num, request FROM tunnel_commands WHERE sent_at IS NULL AND expires_at > " + a.add(until.UnixMicro()) + " AND " +
		v.dialect.oldestOf(a, "session", sessionNum, "num", after, limit)
	return queryAll(v, scanCommand, query, a.all()...)
}

func scanCommand(scan func(...any) error) (c hookglass.TunnelCommand, err error) {
	var num int64
	var request []byte
	if err := scan(&num, &request); err != nil {
		return c, err
	}
	if err := json.Unmarshal(request, &c); err != nil {
		return c, err
	}
	c.Num, c.Request = num, *exchange(&c.Request, decodeText)
	return c, nil
}

// SendTunnelCommand marks a command as possibly sent to its client, and stores the SHA-256 of its result token. It
// reports false if the command was sent before, is withdrawn, is offered to another session by now, or expires before
// until.
func (tx *Tx) SendTunnelCommand(num, sessionNum int64, hash []byte, until time.Time) (bool, error) {
	n, err := tx.exec("UPDATE tunnel_commands SET sent_at = $2, hash = $3 WHERE num = $1 AND session = $4 AND sent_at IS NULL AND expires_at > $5",
		num, tx.Now.UnixMicro(), hash, sessionNum, until.UnixMicro())
	return n > 0, err
}

// AnswerTunnelCommand stores the result of a command, once. It answers unauthorized for a wrong token, and conflict for
// a command that was answered or has expired.
func (tx *Tx) AnswerTunnelCommand(id string, hash []byte, r hookglass.TunnelResult) error {
	r.Evidence = evidence(r.Evidence, encodeText)
	result, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var num, endpoint, over int64
	err = tx.queryRow("command", "SELECT num, endpoint, CASE WHEN answered_at IS NOT NULL OR expires_at <= $3 THEN 1 ELSE 0 END FROM tunnel_commands WHERE id = $1 AND hash = $2 AND sent_at IS NOT NULL"+
		tx.dialect.forUpdate(), []any{id, hash, tx.Now.UnixMicro()}, &num, &endpoint, &over)
	switch {
	case hookglass.Is(err, hookglass.CodeNotFound):
		return hookglass.Errorf(hookglass.CodeUnauthorized, "The result_token is not that of a command.")
	case err != nil:
		return err
	case over != 0:
		return hookglass.Errorf(hookglass.CodeConflict, "The command was answered already, or has expired.")
	}
	tx.Announce(TopicTunnel(endpoint))
	_, err = tx.exec("UPDATE tunnel_commands SET result = $2, answered_at = $3 WHERE num = $1", num, result, tx.Now.UnixMicro())
	return err
}

// TunnelCommandState returns whether a command may have been sent to its client, whether its session still exists, and
// its result, if there is one. It answers not_found.
func (v *View) TunnelCommandState(num int64) (sent, held bool, result *hookglass.TunnelResult, err error) {
	var s, h int64
	var text []byte
	err = v.queryRow("command", `SELECT CASE WHEN c.sent_at IS NULL THEN 0 ELSE 1 END, (SELECT count(*) FROM tunnel_sessions s WHERE s.num = c.session), c.result
		FROM tunnel_commands c WHERE c.num = $1`, []any{num}, &s, &h, &text)
	if err != nil || text == nil {
		return s != 0, h != 0, nil, err
	}
	result = new(hookglass.TunnelResult)
	err = json.Unmarshal(text, result)
	result.Evidence = evidence(result.Evidence, decodeText)
	return true, h != 0, result, err
}

// WithdrawTunnelCommand withdraws a command that nobody waits for any more. It reports whether the client cannot have
// received it, which includes a command that was never stored.
func (tx *Tx) WithdrawTunnelCommand(id string) (unsent bool, err error) {
	n, err := tx.exec("DELETE FROM tunnel_commands WHERE id = $1 AND sent_at IS NULL", id)
	if err != nil || n > 0 {
		return n > 0, err
	}
	n, err = tx.exec("UPDATE tunnel_commands SET answered_at = coalesce(answered_at, cast($2 AS bigint)) WHERE id = $1", id, tx.Now.UnixMicro())
	return n == 0, err
}
