package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"hookglass"
)

const alertColumns = `a.num, a.id, coalesce(e.account_id, 0), a.endpoint, e.id, a.name, a.kind, a.enabled, a.config, a.state, a.changed_at, a.armed_at,
	a.version, a.cursor, a.matched_at, a.created_at, a.updated_at`

const alertTables = ` FROM alerts a JOIN endpoints e ON e.num = a.endpoint + 0`

func scanAlert(scan func(...any) error) (a hookglass.Alert, err error) {
	var enabled, changed, armed, created, updated int64
	var matched sql.NullInt64
	var config string
	if err := scan(&a.Num, &a.ID, &a.AccountID, &a.EndpointNum, &a.EndpointID, &a.Name, &a.Kind, &enabled, &config, &a.State, &changed, &armed,
		&a.Version, &a.Cursor, &matched, &created, &updated); err != nil {
		return a, err
	}
	a.Enabled, a.ChangedAt, a.ArmedAt, a.MatchedAt = enabled != 0, time.UnixMicro(changed).UTC(), time.UnixMicro(armed).UTC(), fromMicros(matched)
	a.CreatedAt, a.UpdatedAt, a.ChannelIDs = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC(), []string{}
	if err := json.Unmarshal([]byte(config), &a.Config); err != nil {
		return a, fmt.Errorf("config of %s: %w", a.ID, err)
	}
	return a, nil
}

// Alerts lists the alerts of an endpoint, oldest first, those with a Num above after; limit 0 is all.
func (v *View) Alerts(ref string, after int64, limit int) ([]hookglass.Alert, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + alertColumns + alertTables + " WHERE " + v.dialect.oldestOf(a, "a.endpoint", e.Num, "a.num", after, limit)
	alerts, err := queryAll(v, scanAlert, query, a.all()...)
	if err != nil {
		return nil, err
	}
	return alerts, v.loadChannelIDs(alerts)
}

// Alert returns one alert of an endpoint. It answers not_found.
func (v *View) Alert(ref, id string) (hookglass.Alert, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return hookglass.Alert{}, err
	}
	return v.alert(e.Num, id, "")
}

func (v *View) alert(endpointNum int64, id, lock string) (hookglass.Alert, error) {
	a, err := one(v, "alert", scanAlert, "SELECT "+alertColumns+alertTables+" WHERE a.endpoint = $1 AND a.id = $2"+lock, &args{[]any{endpointNum, id}})
	if err != nil {
		return a, err
	}
	all := []hookglass.Alert{a}
	err = v.loadChannelIDs(all)
	return all[0], err
}

// AlertsEnabled lists the enabled alerts with a Num above after.
func (v *View) AlertsEnabled(after int64, limit int) ([]hookglass.Alert, error) {
	a := &args{}
	query := "SELECT " + alertColumns + alertTables + " WHERE a.enabled = 1 AND" + v.endpointScope(a) + a.oldestPage("a.num", after, limit)
	return queryAll(v, scanAlert, query, a.all()...)
}

func (v *View) loadChannelIDs(alerts []hookglass.Alert) error {
	index := make(map[int64]int, len(alerts))
	nums := make([]int64, len(alerts))
	for i, a := range alerts {
		index[a.Num], nums[i] = i, a.Num
	}
	return v.queryEach(func(scan func(...any) error) error {
		var num int64
		var id string
		err := scan(&num, &id)
		if err == nil {
			alerts[index[num]].ChannelIDs = append(alerts[index[num]].ChannelIDs, id)
		}
		return err
		// "channel + 0" keeps the index on the channel out: in its order lie the channels of all other alerts.
	}, "SELECT l.alert, c.id FROM alert_channels l JOIN notification_channels c ON c.num = l.channel + 0 WHERE "+v.dialect.among("l.alert", "$1")+" ORDER BY l.alert, c.num",
		v.dialect.list(nums))
}

// CountAlerts counts the alerts of an endpoint.
func (v *View) CountAlerts(endpointNum int64) (n int64, err error) {
	err = v.queryRow("endpoint", "SELECT count(*) FROM alerts WHERE endpoint = $1", []any{endpointNum}, &n)
	return n, err
}

// CreateAlert stores a new alert with its channels and sets its Num and times. It watches what comes from now on.
func (tx *Tx) CreateAlert(a *hookglass.Alert, channels []int64) error {
	config, err := json.Marshal(a.Config)
	if err != nil {
		return err
	}
	a.State, a.ChangedAt, a.ArmedAt, a.CreatedAt, a.UpdatedAt = hookglass.AlertOK, tx.Now, tx.Now, tx.Now, tx.Now
	err = tx.queryRow("alert", `INSERT INTO alerts (id, endpoint, name, kind, enabled, config, state, changed_at, armed_at, version, cursor, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, 0, `+newestOfAll+`, $8, $8) RETURNING num, cursor`,
		[]any{a.ID, a.EndpointNum, a.Name, string(a.Kind), boolInt(a.Enabled), string(config), string(a.State), tx.Now.UnixMicro()}, &a.Num, &a.Cursor)
	if err != nil {
		return err
	}
	return tx.setAlertChannels(a.Num, channels)
}

// ChangeAlert loads an alert, applies change and stores the result; nil channels stay as they are. If there is a
// reason, the alert watches from now on and an open incident is resolved with it. It answers not_found.
func (tx *Tx) ChangeAlert(endpointNum int64, id string, change func(*hookglass.Alert) (channels []int64, reason string, err error)) (a hookglass.Alert, err error) {
	if a, err = tx.alert(endpointNum, id, tx.dialect.forUpdateOf("a")); err != nil {
		return a, err
	}
	channels, reason, err := change(&a)
	if err != nil {
		return a, err
	}
	config, err := json.Marshal(a.Config)
	if err != nil {
		return a, err
	}
	a.UpdatedAt = tx.Now
	query := "UPDATE alerts SET name = $2, enabled = $3, config = $4, updated_at = $5, version = version + 1"
	if reason != "" {
		if a.State == hookglass.AlertTriggered {
			a.State, a.ChangedAt = hookglass.AlertOK, tx.Now
			if err := tx.resolveIncident(a.Num, reason); err != nil {
				return a, err
			}
		}
		a.ArmedAt, a.MatchedAt = tx.Now, time.Time{}
		query += ", state = 'ok', changed_at = CASE WHEN state = 'ok' THEN changed_at ELSE $5 END, armed_at = $5, matched_at = NULL, cursor = " + newestOfAll
	}
	if err := tx.change("alert", query+" WHERE num = $1", a.Num, a.Name, boolInt(a.Enabled), string(config), tx.Now.UnixMicro()); err != nil {
		return a, err
	}
	if channels == nil {
		return a, nil
	}
	if err := tx.setAlertChannels(a.Num, channels); err != nil {
		return a, err
	}
	return tx.alert(endpointNum, id, "")
}

func (tx *Tx) setAlertChannels(num int64, channels []int64) error {
	// The channels are locked before their places in alerts, as by their deletion: transactions must not deadlock.
	kept, err := queryAll(&tx.View, scanNum, "SELECT num FROM notification_channels WHERE "+tx.dialect.among("num", "$1")+" ORDER BY num"+tx.dialect.forKeyShare(),
		tx.dialect.list(append([]int64{}, channels...)))
	if err != nil {
		return err
	}
	if _, err := tx.exec("DELETE FROM alert_channels WHERE alert = $1", num); err != nil {
		return err
	}
	for _, c := range kept {
		if _, err := tx.exec("INSERT INTO alert_channels (alert, channel) VALUES ($1, $2)", num, c); err != nil {
			return err
		}
	}
	return nil
}

// DeleteAlert deletes an alert with its history. It answers not_found.
func (tx *Tx) DeleteAlert(endpointNum int64, id string) error {
	a, err := tx.alert(endpointNum, id, tx.dialect.forUpdateOf("a"))
	if err != nil {
		return err
	}
	for _, statement := range []string{"DELETE FROM alert_channels WHERE alert = $1", "DELETE FROM alert_incidents WHERE alert = $1", "DELETE FROM alerts WHERE num = $1"} {
		if _, err := tx.exec(statement, a.Num); err != nil {
			return err
		}
	}
	return nil
}

// TurnAlert moves an alert to the other state and opens or resolves its incident. It reports false, and stores nothing,
// if the alert was turned or changed since it was read. It returns the channels to notify.
func (tx *Tx) TurnAlert(a hookglass.Alert, incident hookglass.Incident) (turned bool, channels []hookglass.Channel, err error) {
	to, from := hookglass.AlertTriggered, hookglass.AlertOK
	if a.State == hookglass.AlertTriggered {
		to, from = from, to
	}
	n, err := tx.exec("UPDATE alerts SET state = $3, changed_at = $4 WHERE num = $1 AND version = $2 AND state = $5 AND enabled = 1",
		a.Num, a.Version, string(to), tx.Now.UnixMicro(), string(from))
	if err != nil || n == 0 {
		return false, nil, err
	}
	if to == hookglass.AlertTriggered {
		_, err = tx.exec("INSERT INTO alert_incidents (id, alert, event_id, summary, started_at) VALUES ($1, $2, $3, $4, $5)",
			incident.ID, a.Num, nullString(string(incident.EventID)), incident.Summary, tx.Now.UnixMicro())
	} else {
		err = tx.resolveIncident(a.Num, incident.Resolution)
	}
	if err != nil {
		return false, nil, err
	}
	channels, err = queryAll(&tx.View, scanChannel, "SELECT "+channelColumns+channelTables+" JOIN alert_channels l ON l.channel + 0 = c.num WHERE l.alert = $1 ORDER BY c.num", a.Num)
	return true, channels, err
}

func (tx *Tx) resolveIncident(alertNum int64, reason string) error {
	_, err := tx.exec("UPDATE alert_incidents SET resolved_at = $2, resolution = $3 WHERE alert = $1 AND resolved_at IS NULL", alertNum, tx.Now.UnixMicro(), reason)
	return err
}

// MoveAlert records how far a keyword alert has read and when its last match was received. It reports false if the
// alert was moved or changed since it was read.
func (tx *Tx) MoveAlert(a hookglass.Alert, cursor int64, matched time.Time) (bool, error) {
	n, err := tx.exec("UPDATE alerts SET cursor = $3, matched_at = $4 WHERE num = $1 AND version = $2 AND cursor = $5", a.Num, a.Version, cursor, micros(matched), a.Cursor)
	return n > 0, err
}

// Incidents lists the incidents of an alert, newest first. If before is not 0, only those with a smaller Num are
// listed. It answers not_found.
func (v *View) Incidents(ref, id string, before int64, limit int) ([]hookglass.Incident, error) {
	alert, err := v.Alert(ref, id)
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT num, id, event_id, summary, resolution, started_at, resolved_at FROM alert_incidents WHERE " +
		v.dialect.newestOf(a, "alert", alert.Num, "num", before, limit)
	return queryAll(v, func(scan func(...any) error) (i hookglass.Incident, err error) {
		var event, resolution sql.NullString
		var started int64
		var resolved sql.NullInt64
		err = scan(&i.Num, &i.ID, &event, &i.Summary, &resolution, &started, &resolved)
		i.EventID, i.Resolution = hookglass.EventID(event.String), resolution.String
		i.StartedAt, i.ResolvedAt = time.UnixMicro(started).UTC(), fromMicros(resolved)
		return i, err
	}, query, a.all()...)
}

// countedLooks is how many of an endpoint's newest events are searched for one that is not ignored.
const countedLooks = 200

// ReceivedSince reports whether an endpoint received an event that is not ignored since a time. If the newest events
// are all ignored, it asks the figures. These have a resolution of a minute, so the answer may stay true for up to a
// minute too long.
func (v *View) ReceivedSince(endpointNum int64, since time.Time) (bool, error) {
	e, err := v.EndpointByNum(endpointNum)
	if err != nil || e.LastEventAt.Before(since) {
		return false, err
	}
	a := &args{}
	query := "SELECT received_at, CASE WHEN ignored IS NULL THEN 0 ELSE 1 END FROM events WHERE " + v.dialect.within(a, endpointNum, 0, math.MaxInt64) + newestFirst + " LIMIT " + a.add(countedLooks)
	counts := false
	if err := v.queryEach(func(scan func(...any) error) error {
		var received, ignored int64
		err := scan(&received, &ignored)
		counts = counts || ignored == 0 && received >= since.UnixMicro()
		return err
	}, query, a.all()...); err != nil || counts {
		return counts, err
	}
	f, err := v.FiguresOf(endpointNum, since, v.Now)
	return f.Counted() > 0, err
}

// FiguresOf adds up the figures of an endpoint from the minute of from to the minute of to, both included. It reads
// whole hours by the hour.
func (v *View) FiguresOf(endpointNum int64, from, to time.Time) (all hookglass.Figures, err error) {
	first, end := from.Truncate(time.Minute), to.Truncate(time.Minute).Add(time.Minute)
	wholeFrom, wholeTo := first.Add(time.Hour-1).Truncate(time.Hour), end.Truncate(time.Hour)
	if !wholeFrom.Before(wholeTo) {
		wholeFrom, wholeTo = end, end
	}
	if end.Sub(first) > keepMinutes-time.Hour {
		first = first.Truncate(time.Hour) // older minutes are not kept
		wholeFrom = first
	}
	for _, part := range []struct {
		from, to time.Time
		step     time.Duration
	}{{first, wholeFrom, time.Minute}, {wholeFrom, wholeTo, time.Hour}, {wholeTo, end, time.Minute}} {
		if !part.from.Before(part.to) {
			continue
		}
		steps, err := v.FiguresByStep(endpointNum, part.from, part.to, part.step)
		if err != nil {
			return all, err
		}
		for _, f := range steps {
			all.Add(*f)
		}
	}
	return all, nil
}

// CountedSince counts the events of an endpoint in a period that are not ignored, including those deleted since. It
// counts the first minute from the events and the rest from the figures. Deleted events of the first minute are taken
// to be spread evenly over it, because their times are gone.
func (v *View) CountedSince(endpointNum int64, since, now time.Time) (n int64, err error) {
	log, err := v.eventLogOfNum(endpointNum)
	if err != nil {
		return 0, err
	}
	newest, err := v.newestSeq(log)
	if err != nil {
		return 0, err
	}
	minute := since.Truncate(time.Minute)
	next := minute.Add(time.Minute)
	var seqs [3]int64
	for i, at := range []time.Time{minute, since, next} {
		if seqs[i], err = v.seqAt(log, at.UnixMicro(), newest); err != nil {
			return 0, err
		}
	}
	a := &args{}
	query := "SELECT count(*), count(CASE WHEN seq > " + a.add(seqs[1]) + " THEN 1 END) FROM events WHERE " + v.dialect.bounded(a, endpointNum, seqs[0], seqs[2]+1) + " AND ignored IS NULL"
	var left int64
	if err := v.queryRow("endpoint", query, a.all(), &left, &n); err != nil {
		return 0, err
	}
	whole, err := v.FiguresOf(endpointNum, minute, minute)
	if err != nil {
		return 0, err
	}
	end := next
	if now.Before(next) {
		end = now
	}
	if gone := whole.Counted() - left; gone > 0 && end.After(since) {
		n += int64(float64(gone) * end.Sub(since).Seconds() / end.Sub(minute).Seconds())
	}
	if now.Before(next) {
		return n, nil
	}
	f, err := v.FiguresOf(endpointNum, next, now)
	return n + f.Counted(), err
}

// BadDeliveries counts the deliveries of an endpoint since a time that failed or were answered with 400 or more, up to
// most. Deliveries of ignored events do not count.
func (v *View) BadDeliveries(endpointNum int64, since time.Time, most int64) (n int64, err error) {
	err = v.queryRow("endpoint", `SELECT count(*) FROM (SELECT 1 FROM outcomes o LEFT JOIN events v ON v.seq = o.event
		WHERE o.endpoint = $1 AND o.at >= $2 AND o.bad = 1 AND v.ignored IS NULL LIMIT $3) AS bad`, []any{endpointNum, since.UnixMicro(), most}, &n)
	return n, err
}

// settling bounds how long alerts and flows leave an event unread because its actions, which may ignore or tag it, have
// not run.
const settling = time.Minute

// unsettled reports whether alerts and flows still wait for the event's actions.
func (v *View) unsettled(e *hookglass.Event) bool { return v.Now.Sub(e.ReceivedAt) < settling }

// awaitingActions returns the Seq of the endpoint's first event after a Seq whose actions have not run, or
// math.MaxInt64. It may leave out events that are no longer [View.unsettled].
func (v *View) awaitingActions(endpointNum, after int64) (seq int64, err error) {
	// The order of due times is not that of the events: a task that is running or failed is due later than those of
	// newer events. But no task is due before its event arrived, so the bound on due_at keeps the scan short; and old
	// tasks, which may be retried for days, hold nothing up.
	err = v.queryRow("task", "SELECT coalesce(min(event), $4) FROM event_tasks WHERE kind = $1 AND endpoint = $2 AND due_at >= $3 AND event > $5",
		[]any{string(TaskActions), endpointNum, v.Now.Add(-2 * settling).UnixMicro(), int64(math.MaxInt64), after}, &seq)
	return seq, err
}

// Unread returns the next events of an endpoint after a Seq that are not ignored, oldest first, with payloads, and the
// Seq up to which it has read. It stops at events whose actions have not run.
func (v *View) Unread(endpointNum, after int64, limit int) (events []*hookglass.Event, upTo int64, err error) {
	log, err := v.eventLogOfNum(endpointNum)
	if err != nil {
		return nil, 0, err
	}
	waiting, err := v.awaitingActions(endpointNum, after)
	if err != nil {
		return nil, 0, err
	}
	found, err := v.eventsOf(log, after, math.MaxInt64, oldestFirst, limit)
	if err != nil {
		return nil, 0, err
	}
	upTo = after
	for _, e := range found {
		if e.Seq >= waiting && v.unsettled(e) {
			break
		}
		if upTo = e.Seq; e.Ignored == "" {
			events = append(events, e)
		}
	}
	if n := batch(events, payloadBytes); n > 0 && n < len(events) {
		upTo, events = events[n-1].Seq, events[:n]
	}
	if len(events) == 0 {
		return nil, upTo, nil
	}
	return events, upTo, v.loadPayloads(events)
}
