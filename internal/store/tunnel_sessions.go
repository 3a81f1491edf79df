package store

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"hookglass"
)

// TopicTunnel is the topic of reports about an endpoint's events, of their deletion, and of answers to commands.
func TopicTunnel(endpointNum int64) string { return "t" + TopicEvents(endpointNum) }

// TopicCommands is the topic of commands for an endpoint's sessions.
func TopicCommands(endpointNum int64) string { return "c" + TopicEvents(endpointNum) }

// RenewTunnelNode renews the lease of a process that holds sockets. It reports false if the lease was lost: then its
// sessions were ended, and it must start over.
func (tx *Tx) RenewTunnelNode(node string, until time.Time) (held bool, err error) {
	n, err := tx.exec("UPDATE tunnel_nodes SET seen_at = $2, lease_until = $3 WHERE id = $1", node, tx.Now.UnixMicro(), until.UnixMicro())
	if err != nil || n > 0 {
		return n > 0, err
	}
	_, err = tx.exec("INSERT INTO tunnel_nodes (id, seen_at, lease_until) VALUES ($1, $2, $3)", node, tx.Now.UnixMicro(), until.UnixMicro())
	return false, err
}

// ForgetTunnelNode ends the lease of a process without sessions.
func (tx *Tx) ForgetTunnelNode(node string) error {
	_, err := tx.exec("DELETE FROM tunnel_nodes WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM tunnel_sessions WHERE node = $1)", node)
	return err
}

// LostTunnelNode is a process whose lease has expired.
type LostTunnelNode struct {
	ID     string
	SeenAt time.Time // its last sign of life
}

// LostTunnelNodes lists the processes whose lease expired before a time, except one.
func (v *View) LostTunnelNodes(but string, at time.Time) ([]LostTunnelNode, error) {
	return queryAll(v, func(scan func(...any) error) (n LostTunnelNode, err error) {
		var seen int64
		err = scan(&n.ID, &seen)
		n.SeenAt = time.UnixMicro(seen).UTC()
		return n, err
	}, "SELECT id, seen_at FROM tunnel_nodes WHERE id <> $1 AND lease_until < $2", but, at.UnixMicro())
}

// EndTunnelNode ends some of the sessions of a process as lost, and deletes the process once it has none. It reports
// whether it is done.
func (tx *Tx) EndTunnelNode(n LostTunnelNode, limit int) (done bool, err error) {
	// Another process may be doing the same, or the process may be back: the row decides.
	held, err := queryAll(&tx.View, scanNum, "SELECT seen_at FROM tunnel_nodes WHERE id = $1"+tx.dialect.forUpdate(), n.ID)
	if err != nil || len(held) == 0 || held[0] != n.SeenAt.UnixMicro() {
		return true, err
	}
	sessions, err := queryAll(&tx.View, scanNum, "SELECT num FROM tunnel_sessions WHERE node = $1 ORDER BY num LIMIT $2", n.ID, limit)
	if err != nil {
		return false, err
	}
	if len(sessions) == 0 {
		_, err = tx.exec("DELETE FROM tunnel_nodes WHERE id = $1", n.ID)
		return true, err
	}
	return false, tx.EndTunnelSessions(sessions, TunnelEnd{Lost: true, Since: n.SeenAt, NodeGone: true})
}

// HoldsTunnelLease reports whether a process still has its lease, and keeps it until the transaction ends. If a process
// without a lease died, nobody would end its sessions.
func (tx *Tx) HoldsTunnelLease(node string) (bool, error) {
	held, err := queryAll(&tx.View, scanNum, "SELECT seen_at FROM tunnel_nodes WHERE id = $1"+tx.dialect.forShare(), node)
	return len(held) > 0, err
}

// CreateTunnelSession stores a session and sets its Num.
func (tx *Tx) CreateTunnelSession(s *hookglass.TunnelSession) error {
	client, err := json.Marshal(s.Client)
	if err != nil {
		return err
	}
	s.ConnectedAt = tx.Now
	return tx.queryRow("session", "INSERT INTO tunnel_sessions (id, node, client_id, client, connected_at) VALUES ($1, $2, $3, $4, $5) RETURNING num",
		[]any{s.ID, s.Node, s.Client.ID, client, tx.Now.UnixMicro()}, &s.Num)
}

// SubscribeTunnel stores a subscription to the endpoint with an id or custom id and sets its Num, endpoint and
// Received: it receives the events after that. An open gap of the endpoint ends there. It answers not_found, also if
// the session has ended.
func (tx *Tx) SubscribeTunnel(ref string, s *hookglass.TunnelSubscription) (hookglass.Endpoint, error) {
	e, err := tx.Endpoint(ref)
	if err != nil {
		return e, err
	}
	if _, err := one(&tx.View, "session", scanNum, "SELECT num FROM tunnel_sessions WHERE num = $1"+tx.dialect.forUpdate(), &args{[]any{s.SessionNum}}); err != nil {
		return e, err
	}
	// Many may subscribe concurrently, as when a node is back; the gap's own row serializes what they do to it.
	others, err := tx.lockTunnels(e.Num, tx.dialect.forShare())
	if err != nil {
		return e, err
	}
	log, err := tx.eventLogOf(e)
	if err != nil {
		return e, err
	}
	newest, err := tx.newestSeq(log)
	if err != nil {
		return e, err
	}
	s.EndpointNum, s.EndpointID, s.Received = e.Num, e.ID, max(newest, log.floor)
	if err := tx.closeGap(e.Num, s.Received); err != nil {
		return e, err
	}
	if others == 0 {
		tx.announceEndpoint(&e)
	}
	return e, tx.queryRow("subscription", `INSERT INTO tunnel_subscriptions (session, endpoint, begins, received, target_url, hostname, reports, replays, subscribed_at)
		VALUES ($1, $2, $3, $3, $4, $5, $6, $7, $8) RETURNING num`,
		[]any{s.SessionNum, e.Num, s.Received, s.TargetURL, s.Hostname, boolInt(s.Reports), boolInt(s.Replays), tx.Now.UnixMicro()}, &s.Num)
}

// lockTunnels serializes the ending of subscriptions to an endpoint, with each other and with their beginning, which
// shares the lock. It returns how many subscriptions there are, counted up to 2.
func (tx *Tx) lockTunnels(endpointNum int64, lock string) (n int64, err error) {
	if lock != "" {
		if _, err := queryAll(&tx.View, scanNum, "SELECT num FROM endpoints WHERE num = $1"+lock, endpointNum); err != nil {
			return 0, err
		}
	}
	err = tx.queryRow("endpoint", "SELECT count(*) FROM (SELECT 1 FROM tunnel_subscriptions WHERE endpoint = $1 LIMIT 2) AS few", []any{endpointNum}, &n)
	return n, err
}

// TunnelEnd says how a subscription ended.
type TunnelEnd struct {
	Lost     bool            // not on the client's request
	Since    time.Time       // Lost: the last sign of life of the client
	NodeGone bool            // Lost: its node died, and Since is the node's last sign of life
	Received map[int64]int64 // up to where each subscription has received, if more than is stored
}

// EndTunnelSessions ends sessions and their subscriptions. If the last subscription of an endpoint is lost, a gap
// opens.
func (tx *Tx) EndTunnelSessions(nums []int64, end TunnelEnd) error {
	// Sessions are locked before endpoints, as in SubscribeTunnel.
	if lock := tx.dialect.forUpdate(); lock != "" {
		if _, err := queryAll(&tx.View, scanNum, "SELECT num FROM tunnel_sessions WHERE "+tx.dialect.among("num", "$1")+" ORDER BY num"+lock, tx.dialect.list(nums)); err != nil {
			return err
		}
	}
	found, err := queryAll(&tx.View, scanNum, "SELECT num FROM tunnel_subscriptions WHERE "+tx.dialect.among("session", "$1"), tx.dialect.list(nums))
	if err != nil {
		return err
	}
	if err := tx.EndTunnelSubscriptions(found, end); err != nil {
		return err
	}
	_, err = tx.exec("DELETE FROM tunnel_sessions WHERE "+tx.dialect.among("num", "$1"), tx.dialect.list(nums))
	return err
}

// EndTunnelSubscriptions ends subscriptions, except those that have ended already.
func (tx *Tx) EndTunnelSubscriptions(nums []int64, end TunnelEnd) error {
	if len(nums) == 0 {
		return nil
	}
	subs, err := queryAll(&tx.View, func(scan func(...any) error) (s hookglass.TunnelSubscription, err error) {
		var reports int64
		err = scan(&s.Num, &s.EndpointNum, &s.Begins, &s.Received, &s.TargetURL, &s.Hostname, &reports)
		s.Reports = reports != 0
		return s, err
	}, "SELECT num, endpoint, begins, received, target_url, hostname, reports FROM tunnel_subscriptions WHERE "+tx.dialect.among("num", "$1"), tx.dialect.list(nums))
	if err != nil {
		return err
	}
	// In the order of their endpoints, so that transactions do not deadlock.
	slices.SortFunc(subs, func(a, b hookglass.TunnelSubscription) int {
		return cmp.Or(cmp.Compare(a.EndpointNum, b.EndpointNum), cmp.Compare(a.Num, b.Num))
	})
	for _, s := range subs {
		if err := tx.endSubscription(s, end); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) endSubscription(s hookglass.TunnelSubscription, end TunnelEnd) error {
	all, err := tx.lockTunnels(s.EndpointNum, tx.dialect.forUpdate())
	if err != nil {
		return err
	}
	n, err := tx.exec("DELETE FROM tunnel_subscriptions WHERE num = $1", s.Num)
	if err != nil || n == 0 || all > 1 && !end.Lost {
		return err
	}
	system := View{ctx: tx.ctx, q: tx.q, dialect: tx.dialect, who: hookglass.System, Now: tx.Now}
	e, err := system.EndpointByNum(s.EndpointNum)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return nil // the endpoint was deleted, so nothing can be missed
	}
	if err != nil {
		return err
	}
	if all == 1 {
		tx.announceEndpoint(&e)
	}
	if !end.Lost {
		return nil
	}
	s.Received = max(s.Received, end.Received[s.Num])
	from, err := system.firstMissed(e, s)
	if err != nil {
		return err
	}
	if all == 1 {
		return tx.openGap(s, from, end.Since)
	}
	return tx.addPastGap(s, from, end)
}

// looksBack bounds how many received events are checked for missing reports.
const looksBack = 1000

// firstMissed returns the seq after which a lost subscription may have missed events. Received events count as
// delivered, except that a client that reports may have died with those that it did not report.
func (v *View) firstMissed(e hookglass.Endpoint, s hookglass.TunnelSubscription) (int64, error) {
	log, err := v.eventLogOf(e)
	if err != nil {
		return 0, err
	}
	log.floor = max(log.floor, s.Begins)
	low, _, err := v.nthBelow(log, next(s.Received), looksBack, "")
	if err != nil {
		return 0, err
	}
	a := &args{}
	of := "(SELECT seq FROM events WHERE " + v.dialect.bounded(a, e.Num, low-1, next(s.Received)) + ") AS f LEFT JOIN tunnel_events t ON t.event = f.seq"
	var reported, first int64
	if err := v.queryRow("event", "SELECT count(t.event), coalesce(min(CASE WHEN t.event IS NULL THEN f.seq END), 0) FROM "+of, a.values, &reported, &first); err != nil {
		return 0, err
	}
	if first > 0 && (s.Reports || reported > 0) {
		return first - 1, nil
	}
	return s.Received, nil
}

// SaveTunnelReceived stores up to where subscriptions are known to have received, except for those that have ended.
func (tx *Tx) SaveTunnelReceived(received map[int64]int64) error {
	if len(received) == 0 {
		return nil
	}
	if lock := tx.dialect.forUpdate(); lock != "" { // in the order in which subscriptions are ended
		nums := tx.dialect.list(slices.Collect(maps.Keys(received)))
		if _, err := queryAll(&tx.View, scanNum, "SELECT num FROM tunnel_subscriptions WHERE "+tx.dialect.among("num", "$1")+" ORDER BY endpoint, num"+lock, nums); err != nil {
			return err
		}
	}
	in := input{columns: []inputColumn{{"num", inputInteger}, {"seq", inputInteger}}}
	for num, seq := range received {
		in.rows = append(in.rows, []any{num, seq})
	}
	from, args, err := in.from(tx.dialect, "i")
	if err != nil {
		return err
	}
	_, err = tx.exec("UPDATE tunnel_subscriptions SET received = i.seq FROM "+from+" WHERE tunnel_subscriptions.num = i.num"+in.lookup(tx.dialect, "tunnel_subscriptions.num"), args...)
	return err
}

// EndpointsSince returns the endpoints with events after a seq, and the newest Seq of all. For a negative seq it
// returns no endpoints. It makes up for lost announcements.
func (v *View) EndpointsSince(seq int64) (endpoints []int64, newest int64, err error) {
	if newest, err = v.NewestOfAll(); err != nil || seq < 0 || newest <= seq {
		return nil, max(newest, seq), err
	}
	endpoints, err = queryAll(v, scanNum, "SELECT DISTINCT endpoint FROM events WHERE seq > $1 AND seq <= $2", seq, newest)
	return endpoints, newest, err
}

// TunnelEvents returns the next events of an endpoint after a seq in detail form, oldest first, as many as may be
// loaded at once. It answers not_found.
func (v *View) TunnelEvents(endpointNum, seq int64) (hookglass.Endpoint, []*hookglass.Event, error) {
	e, err := v.EndpointByNum(endpointNum)
	if err != nil {
		return e, nil, err
	}
	log, err := v.eventLogOf(e)
	if err != nil {
		return e, nil, err
	}
	a := &args{}
	query := "SELECT " + listColumns + " FROM events WHERE " + v.dialect.within(a, e.Num, max(seq, log.floor), maxSeq) + oldestFirst + " LIMIT " + a.add(payloadRows)
	events, err := queryAll(v, log.scan, query, a.values...)
	if err != nil || len(events) == 0 {
		return e, nil, err
	}
	events = events[:batch(events, payloadBytes)]
	if err := v.loadPayloads(events); err != nil {
		return e, nil, err
	}
	return e, events, nil
}
