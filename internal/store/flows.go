package store

import (
	"bytes"
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"hookglass"
)

// TopicFlows is the topic of flows that begin or are deleted.
const TopicFlows = "flows"

// TopicFlow is the topic of one flow's progress.
func TopicFlow(num int64) string { return "w" + strconv.FormatInt(num, 10) }

const flowColumns = "num, id, account_id, workspace_id, state, definition, progress, cursor, version, started_at, deadline_at, finished_at"

func scanFlow(scan func(...any) error) (f hookglass.Flow, err error) {
	var plan, progress []byte
	var started, deadline int64
	var finished sql.NullInt64
	err = scan(&f.Num, &f.ID, &f.AccountID, &f.WorkspaceID, &f.State, &plan, &progress, &f.Cursor, &f.Version, &started, &deadline, &finished)
	if err != nil {
		return f, err
	}
	f.StartedAt, f.DeadlineAt, f.FinishedAt = time.UnixMicro(started).UTC(), time.UnixMicro(deadline).UTC(), fromMicros(finished)
	if err = json.Unmarshal(plan, &f.Plan); err == nil {
		err = json.Unmarshal(progress, &f.Progress)
	}
	if err != nil {
		return f, fmt.Errorf("flow %s: %w", f.ID, err)
	}
	return f, nil
}

// Flow returns a flow. It answers not_found.
func (v *View) Flow(id string) (hookglass.Flow, error) {
	a := &args{}
	return one(v, "flow", scanFlow, "SELECT "+flowColumns+" FROM flows f WHERE f.id = "+a.add(id)+" AND "+v.accountScope(a, "f.account_id", "f.workspace_id"), a)
}

// Flows lists flows, newest first. If before is not 0, only those with a smaller Num are listed; an empty state is any.
func (v *View) Flows(state hookglass.FlowState, before int64, limit int) ([]hookglass.Flow, error) {
	of := &args{}
	workspaces, err := queryAll(v, scanNum, "SELECT w.id FROM workspaces w WHERE "+v.accountScope(of, "w.account_id", "w.id"), of.all()...)
	if err != nil {
		return nil, err
	}
	flows := []hookglass.Flow{}
	for _, workspace := range workspaces {
		a := &args{}
		query := "SELECT " + flowColumns + " FROM flows f WHERE "
		if state != "" {
			query += "f.state = " + a.add(string(state)) + " AND "
		}
		query += v.dialect.newestOf(a, "f.workspace_id", workspace, "f.num", before, limit)
		some, err := queryAll(v, scanFlow, query, a.all()...)
		if err != nil {
			return nil, err
		}
		flows = append(flows, some...)
	}
	slices.SortFunc(flows, func(a, b hookglass.Flow) int { return cmp.Compare(b.Num, a.Num) })
	if limit > 0 {
		flows = flows[:min(len(flows), limit)]
	}
	return flows, nil
}

// FlowByKey returns the flow of a workspace that was created with an idempotency key, and the fingerprint of that
// request. It answers not_found.
func (v *View) FlowByKey(workspaceID int64, key string) (f hookglass.Flow, fingerprint []byte, err error) {
	f, err = one(v, "flow", func(scan func(...any) error) (hookglass.Flow, error) {
		return scanFlow(func(dest ...any) error { return scan(append(dest, &fingerprint)...) })
	}, "SELECT "+flowColumns+", f.fingerprint FROM flows f WHERE f.workspace_id = $1 AND f.idempotency_key = $2", &args{[]any{workspaceID, key}})
	return f, bytes.Clone(fingerprint), err
}

// FlowMadeBefore returns the newest flow that was created with an idempotency key from a draft with this fingerprint,
// in any workspace that the principal may see. It answers not_found.
func (v *View) FlowMadeBefore(key string, fingerprint []byte) (hookglass.Flow, error) {
	a := &args{}
	// Look workspace by workspace, because the index of keys begins with the workspace. A scan of all flows would take
	// longer with each new flow.
	found, err := queryAll(v, scanFlow, "SELECT "+flowColumns+" FROM flows f WHERE "+
		v.dialect.picked("f.workspace_id", "SELECT w.id FROM workspaces w WHERE "+v.accountScope(a, "w.account_id", "w.id"))+
		" AND f.idempotency_key = "+a.add(key)+" AND f.fingerprint = "+a.add(fingerprint), a.all()...)
	if err != nil {
		return hookglass.Flow{}, err
	}
	if len(found) == 0 {
		return hookglass.Flow{}, hookglass.NotFound("flow")
	}
	return slices.MaxFunc(found, func(a, b hookglass.Flow) int { return cmp.Compare(a.Num, b.Num) }), nil
}

// LockLiveFlows returns how many flows of an account are pending. Until the transaction ends, no other transaction can
// create a flow for that account.
func (tx *Tx) LockLiveFlows(accountID int64) (n int64, err error) {
	if err := tx.lockRows(tx.dialect.forUpdate(), "SELECT id FROM accounts WHERE id = $1", accountID); err != nil {
		return 0, err
	}
	err = tx.queryRow("account", "SELECT count(*) FROM flows WHERE account_id = $1 AND finished_at IS NULL", []any{accountID}, &n)
	return n, err
}

// CreateFlow stores a new flow and sets its Num. Nobody holds it yet.
func (tx *Tx) CreateFlow(f *hookglass.Flow, key string, fingerprint []byte) error {
	plan, err := json.Marshal(f.Plan)
	if err != nil {
		return err
	}
	progress, err := json.Marshal(f.Progress)
	if err != nil {
		return err
	}
	tx.Announce(TopicFlows)
	return tx.queryRow("flow", `INSERT INTO flows (id, account_id, workspace_id, name, state, definition, progress, cursor, version, claim, leased_until, idempotency_key,
		fingerprint, started_at, deadline_at, finished_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, $10, $11, $12, $13, $14) RETURNING num`,
		[]any{f.ID, f.AccountID, f.WorkspaceID, encodeText(f.Plan.Name), string(f.State), plan, progress, f.Cursor, f.Version, nullString(key), fingerprint,
			f.StartedAt.UnixMicro(), f.DeadlineAt.UnixMicro(), micros(f.FinishedAt)}, &f.Num)
}

// DeleteFlow deletes a flow, pending or not. It answers not_found.
func (tx *Tx) DeleteFlow(id string) error {
	f, err := tx.Flow(id)
	if err != nil {
		return err
	}
	tx.Announce(TopicFlows, TopicFlow(f.Num))
	return tx.change("flow", "DELETE FROM flows WHERE num = $1", f.Num)
}

// HeldFlow is a leased flow. Claim is a fencing token: a save with an older one is refused.
type HeldFlow struct {
	hookglass.Flow
	Claim int64
}

// ClaimFlows leases pending flows that nobody holds.
func (tx *Tx) ClaimFlows(limit int, lease time.Duration) ([]HeldFlow, error) {
	clock := tx.dialect.clock()
	return queryAll(&tx.View, func(scan func(...any) error) (h HeldFlow, err error) {
		h.Flow, err = scanFlow(func(dest ...any) error { return scan(append(dest, &h.Claim)...) })
		return h, err
	}, `WITH picked AS MATERIALIZED (SELECT num FROM flows WHERE finished_at IS NULL AND leased_until <= `+clock+` ORDER BY leased_until LIMIT $1`+
		tx.dialect.forUpdate()+tx.dialect.skipLocked()+`)
		UPDATE flows AS f SET claim = claim + 1, leased_until = `+clock+` + cast($2 AS bigint) WHERE `+tx.dialect.picked("num", "SELECT num FROM picked")+` RETURNING `+flowColumns+`, claim`,
		limit, lease.Microseconds())
}

// ExtendFlows renews the leases of held flows and returns the Nums of those that are still held.
func (tx *Tx) ExtendFlows(held []HeldFlow, lease time.Duration) ([]int64, error) {
	condition, args, err := tx.heldStill(held)
	if err != nil {
		return nil, err
	}
	until := fmt.Sprintf("%s + %d", tx.dialect.clock(), lease.Microseconds())
	return queryAll(&tx.View, scanNum, "UPDATE flows SET leased_until = "+until+" WHERE finished_at IS NULL AND "+condition+" RETURNING num", args...)
}

// ReleaseFlows ends the leases of held flows.
func (tx *Tx) ReleaseFlows(held []HeldFlow) error {
	if len(held) == 0 {
		return nil
	}
	condition, args, err := tx.heldStill(held)
	if err != nil {
		return err
	}
	tx.Announce(TopicFlows)
	_, err = tx.exec("UPDATE flows SET leased_until = 0 WHERE "+condition, args...)
	return err
}

// heldStill returns the condition that a flow is among those held, with the same claim.
func (tx *Tx) heldStill(held []HeldFlow) (condition string, args []any, err error) {
	in := input{columns: []inputColumn{{"num", inputInteger}, {"claim", inputInteger}}}
	for _, h := range held {
		in.rows = append(in.rows, []any{h.Num, h.Claim})
	}
	from, args, err := in.from(tx.dialect, "i")
	return "(num, claim) IN (SELECT num, claim FROM " + from + ")" + in.lookup(tx.dialect, "num"), args, err
}

// SaveFlow stores the progress of a held flow. It reports false, and stores nothing, if the claim was lost or the flow
// was deleted.
func (tx *Tx) SaveFlow(h HeldFlow) (bool, error) {
	progress, err := json.Marshal(h.Progress)
	if err != nil {
		return false, err
	}
	n, err := tx.exec(`UPDATE flows SET state = $3, progress = $4, cursor = $5, version = $6, finished_at = $7 WHERE num = $1 AND claim = $2 AND finished_at IS NULL`,
		h.Num, h.Claim, string(h.State), progress, h.Cursor, h.Version, micros(h.FinishedAt))
	if n > 0 {
		tx.Announce(TopicFlow(h.Num))
	}
	return n > 0, err
}

// PurgeFlows deletes up to limit flows that ended before a time, and reports whether there may be more.
func (tx *Tx) PurgeFlows(before time.Time, limit int) (more bool, err error) {
	n, err := tx.exec("DELETE FROM flows WHERE "+tx.dialect.picked("num", "SELECT num FROM flows WHERE finished_at < $1 LIMIT $2"), before.UnixMicro(), limit)
	return n == int64(limit), err
}

// FlowEvents is what FlowEvents read of an endpoint.
type FlowEvents struct {
	Events []*hookglass.Event // in list form, in the order of capture
	UpTo   int64              // all events up to this Seq were read, and none will be added there
	Gone   bool               // the endpoint was deleted, and nothing was read
	// Awaits is when the event after UpTo was received whose actions have not run; zero: none.
	Awaits time.Time
}

// FlowEvents reads the next events of an endpoint after a Seq. If acted is set it stops before the first event whose
// actions have not run, but waits a minute at most for each. The view's principal must be the system.
func (v *View) FlowEvents(endpointNum, after int64, limit int, acted bool) (read FlowEvents, err error) {
	if read.UpTo, err = v.NewestOfAll(); err != nil {
		return read, err
	}
	read.UpTo = max(read.UpTo, after)
	log, err := v.eventLogOfNum(endpointNum)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		read.Gone = true
		return read, nil
	}
	if err != nil {
		return read, err
	}
	waiting := int64(math.MaxInt64)
	if acted {
		if waiting, err = v.awaitingActions(endpointNum, after); err != nil {
			return read, err
		}
	}
	if read.Events, err = v.eventsOf(log, after, math.MaxInt64, oldestFirst, limit); err != nil {
		return read, err
	}
	if len(read.Events) == limit {
		read.UpTo = min(read.UpTo, read.Events[limit-1].Seq)
	}
	for i, e := range read.Events {
		if e.Seq > read.UpTo { // stored after the newest Seq was read
			read.Events = read.Events[:i]
			break
		}
		if e.Seq >= waiting && v.unsettled(e) {
			read.Events, read.UpTo, read.Awaits = read.Events[:i], e.Seq-1, e.ReceivedAt
			break
		}
	}
	return read, nil
}

// LoadPayload loads the payload of an event in list form. It answers not_found.
func (v *View) LoadPayload(e *hookglass.Event) error {
	if err := v.loadPayloads([]*hookglass.Event{e}); err != nil {
		return err
	}
	if e.Payload == nil {
		return hookglass.NotFound("request")
	}
	return nil
}

// SeqSince returns a Seq after which all events of an endpoint since a time are.
func (v *View) SeqSince(endpointNum int64, since time.Time) (int64, error) {
	log, err := v.eventLogOfNum(endpointNum)
	if err != nil {
		return 0, err
	}
	return v.seqBefore(log, since)
}

// HasFreeFlows reports whether there are pending flows that nobody holds.
func (v *View) HasFreeFlows() (bool, error) {
	return v.finds("SELECT num FROM flows WHERE finished_at IS NULL AND leased_until <= " + v.dialect.clock() + " LIMIT 1")
}
