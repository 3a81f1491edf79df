package store

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hookglass"
)

const channelColumns = `c.num, c.id, c.workspace_id, w.account_id, c.name, c.kind, c.enabled, c.sealed, c.shown, c.events, c.failures, c.failing_from,
	c.disabled_at, c.disable_reason, c.last_error, c.last_delivered_at, c.created_at, c.updated_at`

const channelTables = ` FROM notification_channels c JOIN workspaces w ON w.id = c.workspace_id`

func scanChannel(scan func(...any) error) (c hookglass.Channel, err error) {
	var enabled, created, updated int64
	var shown, events string
	var failing, disabled, delivered sql.NullInt64
	var reason, last sql.NullString
	if err := scan(&c.Num, &c.ID, &c.WorkspaceID, &c.AccountID, &c.Name, &c.Kind, &enabled, &c.Sealed, &shown, &events, &c.Failures, &failing,
		&disabled, &reason, &last, &delivered, &created, &updated); err != nil {
		return c, err
	}
	c.Enabled, c.FailingFrom, c.DisabledAt, c.LastDeliveredAt = enabled != 0, fromMicros(failing), fromMicros(disabled), fromMicros(delivered)
	c.DisableReason, c.LastError = reason.String, last.String
	c.CreatedAt, c.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	if err := json.Unmarshal([]byte(shown), &c.Shown); err != nil {
		return c, fmt.Errorf("hints of %s: %w", c.ID, err)
	}
	if err := json.Unmarshal([]byte(events), &c.Events); err != nil {
		return c, fmt.Errorf("events of %s: %w", c.ID, err)
	}
	return c, nil
}

// Channels lists notification channels with a Num above after, oldest first, of one workspace unless workspaceID is 0.
// Limit 0 is all.
func (v *View) Channels(workspaceID, after int64, limit int) ([]hookglass.Channel, error) {
	a := &args{}
	query := "SELECT " + channelColumns + channelTables + " WHERE " + v.accountScope(a, "w.account_id", "w.id")
	if workspaceID != 0 {
		query += " AND c.workspace_id = " + a.add(workspaceID)
	}
	query += a.oldestPage("c.num + 0", after, limit) // as for tags
	return queryAll(v, scanChannel, query, a.all()...)
}

// Channel returns one channel. It answers not_found.
func (v *View) Channel(id string) (hookglass.Channel, error) { return v.channel("c.id", id, "") }

func (v *View) channel(column string, value any, lock string) (hookglass.Channel, error) {
	a := &args{}
	query := "SELECT " + channelColumns + channelTables + " WHERE " + column + " = " + a.add(value) + " AND " + v.accountScope(a, "w.account_id", "w.id") + lock
	return one(v, "notification channel", scanChannel, query, a)
}

// ChannelIn returns the channel of a workspace by its id or else by its name. It answers not_found.
func (v *View) ChannelIn(workspaceID int64, ref string) (hookglass.Channel, error) {
	return v.channelIn(workspaceID, ref, "")
}

// RequireChannel is ChannelIn with a lock: the channel cannot be renamed until the transaction ends.
func (tx *Tx) RequireChannel(workspaceID int64, ref string) (hookglass.Channel, error) {
	return tx.channelIn(workspaceID, ref, tx.dialect.forChangeOf("c"))
}

func (v *View) channelIn(workspaceID int64, ref, lock string) (hookglass.Channel, error) {
	a := &args{}
	workspace, of := a.add(workspaceID), a.add(ref)
	query := "SELECT " + channelColumns + channelTables +
		" WHERE c.workspace_id = " + workspace + " AND (c.id = " + of + " OR c.name = " + of + ") AND " + v.accountScope(a, "w.account_id", "w.id") +
		" ORDER BY CASE WHEN c.id = " + of + " THEN 0 ELSE 1 END LIMIT 1" + lock
	return one(v, "notification channel", scanChannel, query, a)
}

// LockChannels makes the creation of channels in a workspace sequential and returns how many it has.
func (tx *Tx) LockChannels(workspaceID int64) (n int64, err error) {
	if err := tx.lockRows(tx.dialect.forUpdate(), "SELECT id FROM workspaces WHERE id = $1", workspaceID); err != nil {
		return 0, err
	}
	err = tx.queryRow("workspace", "SELECT count(*) FROM notification_channels WHERE workspace_id = $1", []any{workspaceID}, &n)
	return n, err
}

// CreateChannel stores a new channel and sets its Num and times. It follows what is captured from now on. It answers
// validation_failed for a name in use.
func (tx *Tx) CreateChannel(c *hookglass.Channel) error {
	shown, events, err := channelJSON(c)
	if err != nil {
		return err
	}
	c.CreatedAt, c.UpdatedAt = tx.Now, tx.Now
	err = tx.queryRow("notification channel", `INSERT INTO notification_channels (id, workspace_id, name, kind, enabled, sealed, shown, events, follows, cursor,
		due_at, leased_until, claim, tries, failures, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, `+newestOfAll+`, 0, 0, 0, 0, 0, $10, $10) RETURNING num`,
		[]any{c.ID, c.WorkspaceID, c.Name, string(c.Kind), boolInt(c.Enabled), c.Sealed, shown, events, boolInt(c.FollowsCaptures()), tx.Now.UnixMicro()}, &c.Num)
	return channelConflict(err)
}

// ChangeChannel loads a channel, applies change and stores the result. If change returns fresh, the channel starts
// over: its failures are reset, waiting messages are deleted, and it follows what is captured from now on. If many
// messages may wait, call [Tx.ForgetMessages] first. It answers not_found.
func (tx *Tx) ChangeChannel(id string, change func(*hookglass.Channel) (fresh bool, err error)) (c hookglass.Channel, err error) {
	if c, err = tx.channel("c.id", id, tx.dialect.forUpdateOf("c")); err != nil {
		return c, err
	}
	followed := c.FollowsCaptures()
	fresh, err := change(&c)
	if err != nil {
		return c, err
	}
	shown, events, err := channelJSON(&c)
	if err != nil {
		return c, err
	}
	c.UpdatedAt = tx.Now
	query := "UPDATE notification_channels SET name = $2, enabled = $3, sealed = $4, shown = $5, events = $6, follows = $7, updated_at = $8"
	if fresh {
		query += ", due_at = 0, tries = 0, failures = 0, failing_from = NULL, disabled_at = NULL, disable_reason = NULL, last_error = NULL"
		query += ", leased_until = 0, claim = claim + 1" // the previous holder's result no longer counts
		c.Failures, c.FailingFrom, c.DisabledAt, c.DisableReason, c.LastError = 0, time.Time{}, time.Time{}, "", ""
	}
	if fresh || !followed {
		query += ", cursor = " + newestOfAll
	}
	tx.Announce(TopicNotifications)
	err = tx.change("notification channel", query+" WHERE num = $1",
		c.Num, c.Name, boolInt(c.Enabled), c.Sealed, shown, events, boolInt(c.FollowsCaptures()), tx.Now.UnixMicro())
	if err == nil && fresh {
		_, err = tx.exec("DELETE FROM notifications WHERE channel = $1", c.Num)
	}
	return c, channelConflict(err)
}

// forgetAtOnce bounds the messages that one transaction deletes: captures wait behind it, and a channel that failed for
// a day can have hundreds of thousands.
const forgetAtOnce = 1_000

// ForgetMessages deletes some of the messages that wait for a channel, if it is disabled or about to be deleted, and
// reports whether there may be more. It answers not_found.
func (tx *Tx) ForgetMessages(id string, deleting bool) (more bool, err error) {
	c, err := tx.channel("c.id", id, tx.dialect.forUpdateOf("c"))
	if err != nil || !deleting && !c.Disabled() {
		return false, err
	}
	n, err := tx.exec("DELETE FROM notifications WHERE "+tx.dialect.picked("num", "SELECT num FROM notifications WHERE channel = $1 ORDER BY num LIMIT $2"), c.Num, forgetAtOnce)
	return n == forgetAtOnce, err
}

// DeleteChannel deletes a channel, its waiting messages and its place in alerts. If many messages may wait, call
// [Tx.ForgetMessages] first. It returns the steps that name the channel, which fail from now on. It answers not_found.
func (tx *Tx) DeleteChannel(id string) ([]hookglass.StepReference, error) {
	c, err := tx.channel("c.id", id, tx.dialect.forUpdateOf("c"))
	if err != nil {
		return nil, err
	}
	steps, err := tx.ChannelReferences(c.WorkspaceID, c.ID, c.Name)
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{
		"DELETE FROM notifications WHERE channel = $1", "DELETE FROM alert_channels WHERE channel = $1", "DELETE FROM notification_channels WHERE num = $1",
	} {
		if _, err := tx.exec(statement, c.Num); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

func channelJSON(c *hookglass.Channel) (shown, events string, err error) {
	s, err := json.Marshal(c.Shown)
	if err != nil {
		return "", "", err
	}
	if c.Events == nil {
		c.Events = []hookglass.ActivityType{}
	}
	e, err := json.Marshal(c.Events)
	return string(s), string(e), err
}

func channelConflict(err error) error {
	if uniqueViolation(err, "name") {
		return hookglass.Invalid("notification_channel.name", "is taken")
	}
	return err
}

// Notify queues a message for a channel, unless the channel is deleted. A message whose key is queued already is
// dropped; an empty key is none.
func (tx *Tx) Notify(channelNum int64, key string, m hookglass.Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	tx.Announce(TopicNotifications)
	_, err = tx.exec("INSERT INTO notifications (id, channel, key, message, created_at) SELECT $1, num, $3, $4, $5 FROM notification_channels WHERE num = $2"+tx.dialect.forKeyShare()+
		" ON CONFLICT (channel, key) WHERE key IS NOT NULL DO NOTHING",
		m.ID, channelNum, nullString(key), body, tx.Now.UnixMicro())
	return err
}

// notifyFollowers queues a line of activity for the channels of the workspace that follow its type.
func (tx *Tx) notifyFollowers(e hookglass.Endpoint, line hookglass.Activity) error {
	if e.WorkspaceID == 0 {
		return nil
	}
	// "num + 0" keeps the index on the number out: in its order lie the channels of all other workspaces.
	channels, err := queryAll(&tx.View, scanNum, `SELECT num FROM notification_channels WHERE workspace_id = $1 AND kind = 'webhook' AND enabled = 1 AND disabled_at IS NULL
		AND events LIKE $2 ORDER BY num + 0`, e.WorkspaceID, `%"`+string(line.Type)+`"%`)
	if err != nil {
		return err
	}
	for _, num := range channels {
		if err := tx.Notify(num, "", pushed(hookglass.NewSortableID(hookglass.PrefixMessage, tx.Now), line)); err != nil {
			return err
		}
	}
	return nil
}

// pushed returns the message about a line of activity.
func pushed(id string, line hookglass.Activity) hookglass.Message {
	return hookglass.Message{ID: id, Type: string(line.Type), At: line.OccurredAt, EndpointID: line.EndpointID, EventID: line.EventID, Data: line.Data}
}

// ChannelDue is a channel that has messages to send.
type ChannelDue struct{ Num, AccountID int64 }

// channelWait is longer than any lease or delay of a channel. A later time was stored before the clock was set back,
// and is ignored.
const channelWait = 2 * time.Hour

// channelFree returns the condition that a channel may be sent to at a time in microseconds: it is enabled, not leased,
// and, after failures, its delay is over.
func channelFree(at string) string {
	passed := func(column string) string {
		return fmt.Sprintf("(%s <= %s OR %s > %s + %d)", column, at, column, at, channelWait.Microseconds())
	}
	return "enabled = 1 AND disabled_at IS NULL AND (failures = 0 OR " + passed("due_at") + ") AND " + passed("leased_until")
}

// passedWithin is how many captures are looked at, at most, to tell where something was captured.
const passedWithin = 5_000

// capturedBetween returns the condition that the endpoint in a column captured something after a seq and up to another
// one, which is passedWithin greater at most. "size >= 0" keeps out the index on the endpoint and the seq, which would
// be read from end to end.
func (d dialect) capturedBetween(a *args, column string, after, upTo int64) string {
	return d.picked(column, "SELECT endpoint FROM events WHERE seq > "+a.add(after)+" AND seq <= "+a.add(upTo)+
		" AND size >= 0 ORDER BY seq LIMIT "+a.add(passedWithin))
}

// movedAtOnce bounds the channels that one transaction moves: captures wait behind it.
const movedAtOnce = 1_000

// ChannelsPassed lists channels that follow captures and have nothing to tell of those that they have not read, up to
// the seq upTo. A channel that fails or is far behind is not listed, nor is one if what it follows was captured
// anywhere in its workspace.
func (v *View) ChannelsPassed() (nums []int64, upTo int64, err error) {
	if upTo, err = v.NewestOfAll(); err != nil {
		return nil, 0, err
	}
	type follower struct {
		num, workspace, cursor int64
		events                 string
	}
	behind, err := queryAll(v, func(scan func(...any) error) (f follower, err error) {
		err = scan(&f.num, &f.workspace, &f.cursor, &f.events)
		return f, err
	}, `SELECT num, workspace_id, cursor, events FROM notification_channels
		WHERE follows = 1 AND cursor >= $1 AND cursor < $2 AND enabled = 1 AND disabled_at IS NULL AND failures = 0
		ORDER BY cursor LIMIT $3`, upTo-passedWithin, upTo, movedAtOnce)
	if err != nil || len(behind) == 0 {
		return nil, upTo, err
	}
	type captures struct {
		workspace int64
		kind      hookglass.EndpointKind
	}
	captured, a := map[captures]bool{}, &args{}
	err = v.queryEach(func(scan func(...any) error) error {
		var c captures
		err := scan(&c.workspace, &c.kind)
		captured[c] = true
		return err
	}, "SELECT DISTINCT workspace_id, kind FROM endpoints WHERE workspace_id IS NOT NULL AND "+
		v.dialect.capturedBetween(a, "num", behind[0].cursor, upTo), a.all()...)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range behind {
		tells := func(kind hookglass.EndpointKind, what hookglass.ActivityType) bool {
			return captured[captures{f.workspace, kind}] && strings.Contains(f.events, `"`+string(what)+`"`)
		}
		if !tells(hookglass.KindWebhook, hookglass.ActivityWebhookReceived) &&
			!tells(hookglass.KindEmail, hookglass.ActivityEmailReceived) {
			nums = append(nums, f.num)
		}
	}
	return nums, upTo, nil
}

// MoveChannels has channels tell only what is captured after a seq.
func (tx *Tx) MoveChannels(nums []int64, upTo int64) error {
	_, err := tx.exec("UPDATE notification_channels SET cursor = cast($2 AS bigint) WHERE cursor < cast($2 AS bigint) AND "+
		tx.dialect.among("num", "$1"), tx.dialect.list(nums), upTo)
	return err
}

// ChannelsDue lists channels that have messages to send, or follow captures and have not read those up to a seq, and
// are not leased: the first of each account, then the second of each, and so on. Within an account the one that waited
// longest since its last turn comes first. Turns in which nothing was sent count too. It finds each channel with
// messages by one index look-up, and reads no others but those that follow captures.
func (v *View) ChannelsDue(at time.Time, upTo int64, limit int) ([]ChannelDue, error) {
	return queryAll(v, func(scan func(...any) error) (d ChannelDue, err error) {
		err = scan(&d.Num, &d.AccountID)
		return d, err
	}, `WITH RECURSIVE q (channel) AS (
			SELECT (SELECT n.channel FROM notifications n ORDER BY n.channel, n.num LIMIT 1)
			UNION ALL
			SELECT (SELECT n.channel FROM notifications n WHERE n.channel > q.channel ORDER BY n.channel, n.num LIMIT 1)
			FROM q WHERE q.channel IS NOT NULL
		)
		SELECT num, account_id FROM (
			SELECT c.num, w.account_id, c.due_at, row_number() OVER (PARTITION BY w.account_id ORDER BY c.due_at, c.num) AS place`+channelTables+`
			WHERE `+channelFree("cast($1 AS bigint)")+" AND "+v.dialect.picked("c.num", `
				SELECT q.channel FROM q WHERE q.channel IS NOT NULL
				UNION SELECT f.num FROM notification_channels f WHERE f.follows = 1 AND f.cursor < cast($2 AS bigint)`)+`
		) AS placed ORDER BY place, due_at, num LIMIT $3`, at.UnixMicro(), upTo, limit)
}

// HeldChannel is a leased channel. Claim is a fencing token: a result with an older one is refused.
type HeldChannel struct {
	hookglass.Channel
	Claim  int64
	Cursor int64
	Tries  int // at the message that is first in line
}

// HoldChannel leases a channel. It answers not_found if another holds it or nothing may be sent.
func (tx *Tx) HoldChannel(num int64, at time.Time, lease time.Duration) (h HeldChannel, err error) {
	err = tx.queryRow("notification channel", `UPDATE notification_channels SET leased_until = $3, claim = claim + 1
		WHERE num = $1 AND `+channelFree("cast($2 AS bigint)")+` RETURNING claim, cursor, tries`,
		[]any{num, at.UnixMicro(), at.Add(lease).UnixMicro()}, &h.Claim, &h.Cursor, &h.Tries)
	if err != nil {
		return h, err
	}
	h.Channel, err = tx.channel("c.num", num, "")
	return h, err
}

// Pending is a message to be sent. For a captured event Num is 0 and Seq is the event's.
type Pending struct {
	Num, Seq int64
	hookglass.Message
}

// Waiting returns the next messages of a channel, limit at most, and the Seq up to which it has read captures.
func (v *View) Waiting(h HeldChannel, limit int) (waiting []Pending, upTo int64, err error) {
	a := &args{}
	query := "SELECT num, message FROM notifications WHERE " + v.dialect.oldestOf(a, "channel", h.Num, "num", 0, limit)
	waiting, err = queryAll(v, func(scan func(...any) error) (p Pending, err error) {
		var body []byte
		if err := scan(&p.Num, &body); err != nil {
			return p, err
		}
		if err := json.Unmarshal(body, &p.Message); err != nil {
			return p, fmt.Errorf("message %d: %w", p.Num, err)
		}
		return p, nil
	}, query, a.all()...)
	if err != nil || !h.FollowsCaptures() {
		return waiting, h.Cursor, err
	}
	captures, upTo, err := v.capturesIn(h.WorkspaceID, h.Events, h.Cursor, limit)
	if err != nil {
		return nil, 0, err
	}
	// Merge captures and other messages by time; each of the two keeps its own order.
	merged := make([]Pending, 0, limit)
	for _, e := range captures {
		line := capture(e)
		for len(waiting) > 0 && waiting[0].At.Before(line.OccurredAt) {
			merged, waiting = append(merged, waiting[0]), waiting[1:]
		}
		if len(merged) >= limit {
			return merged[:limit], lastSeq(merged[:limit], h.Cursor), nil
		}
		_, suffix, _ := strings.Cut(string(e.ID), "_")
		merged = append(merged, Pending{Seq: e.Seq, Message: pushed(hookglass.PrefixMessage+"_"+suffix, line)})
	}
	merged = append(merged, waiting...)
	if len(merged) > limit {
		merged = merged[:limit]
		return merged, lastSeq(merged, h.Cursor), nil
	}
	return merged, upTo, nil
}

// lastSeq returns the Seq of the last capture among the messages, or the cursor if there is none.
func lastSeq(messages []Pending, cursor int64) int64 {
	for _, m := range messages {
		cursor = max(cursor, m.Seq)
	}
	return cursor
}

// capturesIn returns the first events after a Seq of the workspace's endpoints of the followed kinds, and the Seq up to
// which it has read.
func (v *View) capturesIn(workspaceID int64, follows []hookglass.ActivityType, after int64, limit int) ([]*hookglass.Event, int64, error) {
	newest, err := v.NewestOfAll()
	if err != nil || newest <= after {
		return nil, after, err
	}
	a := &args{}
	var kinds []string
	if slices.Contains(follows, hookglass.ActivityWebhookReceived) {
		kinds = append(kinds, a.add(string(hookglass.KindWebhook)))
	}
	if slices.Contains(follows, hookglass.ActivityEmailReceived) {
		kinds = append(kinds, a.add(string(hookglass.KindEmail)))
	}
	// A workspace may have thousands of endpoints: unless the channel is far behind, those that captured something are
	// looked up, and "+ 0" keeps the index on the workspace out.
	var owner, captured string
	if newest-after <= passedWithin {
		owner, captured = "e.workspace_id + 0", v.dialect.capturedBetween(a, "e.num", after, newest)
	} else {
		owner = "e.workspace_id"
		captured = "EXISTS (SELECT 1 FROM events WHERE " +
			v.dialect.between("e.num", "cast("+a.add(after)+" AS bigint)", "cast("+a.add(int64(math.MaxInt64))+" AS bigint)") + ")"
	}
	logs, err := queryAll(v, func(scan func(...any) error) (log eventLog, err error) {
		err = scan(&log.endpoint.Num, &log.endpoint.ID, &log.floor)
		return log, err
	}, "SELECT e.num, e.id, s.floor_seq"+endpointTables+" WHERE "+owner+" = "+a.add(workspaceID)+
		" AND e.kind IN ("+strings.Join(kinds, ", ")+") AND e.deleted_at IS NULL AND "+captured+" ORDER BY e.num", a.all()...)
	if err != nil {
		return nil, 0, err
	}
	var found []*hookglass.Event
	for _, log := range logs {
		events, err := v.eventsOf(log, after, newest+1, oldestFirst, limit)
		if err != nil {
			return nil, 0, err
		}
		found = append(found, events...)
	}
	slices.SortFunc(found, func(a, b *hookglass.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(found) >= limit {
		found = found[:limit]
		newest = found[limit-1].Seq
	}
	return found, newest, nil
}

// ChannelProgress is the outcome of sending to a channel.
type ChannelProgress struct {
	Done        []int64 // Nums of messages that are not to be sent again
	Cursor      int64
	Tries       int
	Failures    int
	FailingFrom time.Time
	DueAt       time.Time // when it may be sent to again; zero: at once
	LastError   string
	DeliveredAt time.Time // zero: nothing was delivered
	Disable     string    // the reason to disable it; the caller then deletes what waits. Empty: it stays enabled
}

// ReleaseChannel stores the outcome of sending and ends the lease. It reports false, and stores nothing, if the claim
// was lost.
func (tx *Tx) ReleaseChannel(h HeldChannel, p ChannelProgress) (bool, error) {
	a := &args{}
	dueAt := p.DueAt
	if dueAt.IsZero() { // at once by any node's clock, but after channels whose last turn is longer ago
		dueAt = tx.Now.Add(-2 * clockAgrees)
	}
	// The cursor never moves back: if the channel began to follow captures meanwhile, it is ahead of the holder's.
	cursor := "cast(" + a.add(p.Cursor) + " AS bigint)"
	query := "UPDATE notification_channels SET leased_until = 0, cursor = CASE WHEN cursor > " + cursor + " THEN cursor ELSE " + cursor + " END, tries = " + a.add(p.Tries) +
		", failures = " + a.add(p.Failures) + ", failing_from = " + a.add(micros(p.FailingFrom)) + ", last_error = " + a.add(nullString(p.LastError)) + ", due_at = " + a.add(dueAt.UnixMicro())
	if !p.DeliveredAt.IsZero() {
		query += ", last_delivered_at = " + a.add(p.DeliveredAt.UnixMicro())
	}
	if p.Disable != "" {
		query += ", disabled_at = " + a.add(tx.Now.UnixMicro()) + ", disable_reason = " + a.add(p.Disable)
	}
	n, err := tx.exec(query+" WHERE num = "+a.add(h.Num)+" AND claim = "+a.add(h.Claim), a.all()...)
	if err != nil || n == 0 {
		return false, err
	}
	if len(p.Done) > 0 {
		if _, err := tx.exec("DELETE FROM notifications WHERE "+tx.dialect.among("num", "$1"), tx.dialect.list(p.Done)); err != nil {
			return false, err
		}
	}
	return true, nil
}
