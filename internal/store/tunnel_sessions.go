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

// RenewTunnelNode renews the lease of a process that holds sockets. It returns its sessions: if the lease had ended,
// other processes may have ended some of them or all.
func (tx *Tx) RenewTunnelNode(node string, until time.Time) (sessions map[int64]bool, err error) {
	_, err = tx.exec("INSERT INTO tunnel_nodes (id, seen_at, lease_until) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, lease_until = excluded.lease_until",
		node, tx.Now.UnixMicro(), until.UnixMicro())
	if err != nil {
		return nil, err
	}
	found, err := queryAll(&tx.View, scanNum, "SELECT num FROM tunnel_sessions WHERE node = $1", node)
	return setOf(found), err
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
	ends := make([]TunnelEnd, len(sessions))
	for i, num := range sessions {
		ends[i] = TunnelEnd{Session: num, Lost: true, Since: n.SeenAt, NodeGone: true}
	}
	return false, tx.EndTunnels(ends)
}

// HoldsTunnelLease reports whether a process still has its lease, and keeps it until the transaction ends. If a process
// without a lease died, nobody would end its sessions.
func (tx *Tx) HoldsTunnelLease(node string) (bool, error) {
	return tx.finds("SELECT seen_at FROM tunnel_nodes WHERE id = $1"+tx.dialect.forShare(), node)
}

// CreateTunnelSession stores a session and sets its Num.
func (tx *Tx) CreateTunnelSession(s *hookglass.TunnelSession) error {
	client, err := json.Marshal(s.Client)
	if err != nil {
		return err
	}
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
	if err := tx.lockTunnels(e.Num, tx.dialect.forShare()); err != nil {
		return e, err
	}
	var first bool
	if err := tx.queryRow("endpoint", "SELECT NOT EXISTS (SELECT 1 FROM tunnel_subscriptions WHERE endpoint = $1)", []any{e.Num}, &first); err != nil {
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
	if first {
		tx.Announce(endpointTopics(&e)...)
	}
	return e, tx.queryRow("subscription", `INSERT INTO tunnel_subscriptions (session, endpoint, begins, received, target_url, hostname, reports, replays, subscribed_at)
		VALUES ($1, $2, $3, $3, $4, $5, $6, $7, $8) RETURNING num`,
		[]any{s.SessionNum, e.Num, s.Received, s.TargetURL, s.Hostname, boolInt(s.Reports), boolInt(s.Replays), tx.Now.UnixMicro()}, &s.Num)
}

// lockTunnels serializes the ending of subscriptions to an endpoint, with each other and with their beginning, which
// shares the lock.
func (tx *Tx) lockTunnels(endpointNum int64, lock string) error {
	return tx.lockRows(lock, "SELECT num FROM endpoints WHERE num = $1", endpointNum)
}

// TunnelEnd is the end of a session with its subscriptions, or of one subscription.
type TunnelEnd struct {
	Session      int64 // or
	Subscription int64
	Lost         bool            // not on the client's request
	Since        time.Time       // Lost: the last sign of life of the client
	NodeGone     bool            // Lost: its node died, and Since is the node's last sign of life
	Received     map[int64]int64 // up to where each subscription has received, if more than is stored
}

// EndTunnels ends sessions and subscriptions, except those that have ended already. If the last subscription of an
// endpoint is lost, a gap opens.
func (tx *Tx) EndTunnels(ends []TunnelEnd) error {
	var sessions, subscriptions []int64
	ofSession, ofSubscription := make(map[int64]TunnelEnd), make(map[int64]TunnelEnd)
	for _, end := range ends {
		if end.Subscription != 0 {
			subscriptions = append(subscriptions, end.Subscription)
			ofSubscription[end.Subscription] = end
		} else {
			sessions = append(sessions, end.Session)
			ofSession[end.Session] = end
		}
	}
	// Sessions are locked before endpoints, as in SubscribeTunnel.
	if len(sessions) > 0 {
		err := tx.lockRows(tx.dialect.forUpdate(), "SELECT num FROM tunnel_sessions WHERE "+tx.dialect.among("num", "$1")+" ORDER BY num", tx.dialect.list(sessions))
		if err != nil {
			return err
		}
	}
	lost := make(map[int64][]endedSubscription) // by endpoint
	for column, nums := range map[string][]int64{"session": sessions, "num": subscriptions} {
		if len(nums) == 0 {
			continue
		}
		found, err := queryAll(&tx.View, scanEnded, "SELECT num, session, endpoint, begins, received, target_url, hostname, reports, subscribed_at FROM tunnel_subscriptions WHERE "+
			tx.dialect.among(column, "$1"), tx.dialect.list(nums))
		if err != nil {
			return err
		}
		for _, s := range found {
			end, own := ofSubscription[s.Num]
			if !own {
				end = ofSession[s.SessionNum]
			}
			s.end, s.Received = end, max(s.Received, end.Received[s.Num])
			if began := time.UnixMicro(s.subscribedAt); !end.Since.IsZero() && end.Since.Before(began) {
				s.end.Since = began // a process that died may have given its last sign of life before this one came
			}
			lost[s.EndpointNum] = append(lost[s.EndpointNum], s)
		}
	}
	for _, endpoint := range slices.Sorted(maps.Keys(lost)) { // in order, so that transactions do not deadlock
		if err := tx.endSubscriptions(endpoint, lost[endpoint]); err != nil {
			return err
		}
	}
	if len(sessions) == 0 {
		return nil
	}
	_, err := tx.exec("DELETE FROM tunnel_sessions WHERE "+tx.dialect.among("num", "$1"), tx.dialect.list(sessions))
	return err
}

// endedSubscription is a subscription that ends, and how.
type endedSubscription struct {
	hookglass.TunnelSubscription
	subscribedAt int64
	end          TunnelEnd
}

func scanEnded(scan func(...any) error) (s endedSubscription, err error) {
	var reports int64
	err = scan(&s.Num, &s.SessionNum, &s.EndpointNum, &s.Begins, &s.Received, &s.TargetURL, &s.Hostname, &reports, &s.subscribedAt)
	s.Reports = reports != 0
	return s, err
}

// endSubscriptions ends subscriptions to an endpoint one after another, with a few statements for all of them: a node
// may have had thousands.
func (tx *Tx) endSubscriptions(endpointNum int64, subs []endedSubscription) error {
	if err := tx.lockTunnels(endpointNum, tx.dialect.forUpdate()); err != nil {
		return err
	}
	// One more than end: one of these is left whenever any is.
	others, err := queryAll(&tx.View, scanLiving, "SELECT num, begins, subscribed_at, target_url, hostname FROM tunnel_subscriptions WHERE endpoint = $1 ORDER BY begins, num LIMIT $2",
		endpointNum, len(subs)+1)
	if err != nil {
		return err
	}
	nums := make([]int64, len(subs))
	for i, s := range subs {
		nums[i] = s.Num
	}
	ended, err := queryAll(&tx.View, scanNum, "DELETE FROM tunnel_subscriptions WHERE "+tx.dialect.among("num", "$1")+" RETURNING num", tx.dialect.list(nums))
	if err != nil || len(ended) == 0 {
		return err
	}
	e, err := tx.as(hookglass.System).EndpointByNum(endpointNum)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return nil // the endpoint was deleted, so nothing can be missed
	}
	if err != nil {
		return err
	}
	subs = slices.DeleteFunc(subs, func(s endedSubscription) bool { return !slices.Contains(ended, s.Num) })
	slices.SortFunc(subs, func(a, b endedSubscription) int { return cmp.Compare(a.Num, b.Num) })
	return tx.missBetween(e, slices.CompactFunc(subs, func(a, b endedSubscription) bool { return a.Num == b.Num }), others)
}

// missBetween opens or records the gaps that the ends of subscriptions leave, one after another. others are those that
// were there before, of which the ended ones are taken off.
func (tx *Tx) missBetween(e hookglass.Endpoint, subs []endedSubscription, others []livingSubscription) (err error) {
	known := make(map[received]int64)
	for _, s := range subs {
		others = slices.DeleteFunc(others, func(o livingSubscription) bool { return o.num == s.Num })
		if len(others) == 0 {
			tx.Announce(endpointTopics(&e)...)
		}
		if !s.end.Lost {
			continue
		}
		same := received{s.Begins, s.Received, s.Reports}
		from, ok := known[same]
		if !ok {
			if from, err = tx.firstMissed(e, s.TunnelSubscription); err != nil {
				return err
			}
			known[same] = from
		}
		if len(others) == 0 {
			err = tx.openGap(s.TunnelSubscription, from, s.end.Since)
		} else {
			err = tx.addPastGap(s, from, others[0])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// received is what firstMissed depends on.
type received struct {
	begins, received int64
	reports          bool
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
	if err := v.queryRow("event", "SELECT count(t.event), coalesce(min(CASE WHEN t.event IS NULL THEN f.seq END), 0) FROM "+of, a.all(), &reported, &first); err != nil {
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
	// In the order in which subscriptions are ended. "+ 0" keeps the index out that has all in this order.
	err := tx.lockRows(tx.dialect.forUpdate(), "SELECT num FROM tunnel_subscriptions WHERE "+tx.dialect.among("num", "$1")+" ORDER BY endpoint + 0, num",
		tx.dialect.list(slices.Collect(maps.Keys(received))))
	if err != nil {
		return err
	}
	in := input{columns: []inputColumn{{"num", inputInteger}, {"seq", inputInteger}}}
	for num, seq := range received {
		in.rows = append(in.rows, []any{num, seq})
	}
	return tx.update("tunnel_subscriptions", "received = i.seq", in, "")
}

// EndpointsSince returns the endpoints with events after a seq, and the newest Seq of all. For a negative seq it
// returns no endpoints, and with an error seq itself, from which to look again. It makes up for lost announcements.
func (v *View) EndpointsSince(seq int64) (endpoints []int64, newest int64, err error) {
	if newest, err = v.NewestOfAll(); err == nil && seq >= 0 && newest > seq {
		endpoints, err = queryAll(v, scanNum, "SELECT DISTINCT endpoint FROM events WHERE seq > $1 AND seq <= $2", seq, newest)
	}
	if err != nil {
		return nil, seq, err
	}
	return endpoints, max(newest, seq), nil
}

// TunnelEvents returns the next events of an endpoint after a seq in detail form, oldest first, as many as may be
// loaded at once. It answers not_found.
func (v *View) TunnelEvents(endpointNum, seq int64) (hookglass.Endpoint, []*hookglass.Event, error) {
	log, err := v.eventLogOfNum(endpointNum)
	if err != nil {
		return log.endpoint, nil, err
	}
	events, err := v.eventsOf(log, seq, maxSeq, oldestFirst, payloadRows)
	if err != nil || len(events) == 0 {
		return log.endpoint, nil, err
	}
	events = events[:batch(events, payloadBytes)]
	return log.endpoint, events, v.loadPayloads(events)
}
