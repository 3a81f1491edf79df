package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

const (
	rollFor       = 15 * time.Second // for rolling up in one round; then alerts are judged by the figures there are
	rollGently    = 5 * time.Second  // of rollFor: with rests
	rollRows      = 200              // of one transaction: captures wait behind it
	rollBehind    = 1000             // of one transaction after rollGently
	purgeEvery    = 10 * time.Minute
	alertsAtOnce  = 200
	readAtOnce    = 200              // events that keyword_match reads in one transaction
	readFor       = 3 * time.Second  // for one alert in one round; the next continues
	roundFor      = 15 * time.Second // for all that read, and for all others; the next round begins with the rest
	spikeBaseline = 24               // earlier windows whose average a spike is compared with
)

// Evaluate rolls up figures and evaluates every enabled alert: first those on figures and schemas, then those that read
// events, each as far as time allows. It may run on several nodes at once: each change of state is made by one of them.
// An alert that cannot be evaluated does not hold up others.
func (s *Service) Evaluate(ctx context.Context) error {
	failed := s.rollUp(ctx)
	var judged, readers []hookglass.Alert
	for after, more := int64(0), true; more; {
		alerts, err := store.Read(ctx, s.db, hookglass.System, func(v *store.View) ([]hookglass.Alert, error) {
			return v.AlertsEnabled(after, alertsAtOnce)
		})
		if err != nil {
			return errors.Join(failed, err)
		}
		for _, a := range alerts {
			if after = a.Num; a.Kind == hookglass.AlertKeywordMatch {
				readers = append(readers, a)
			} else {
				judged = append(judged, a)
			}
		}
		more = len(alerts) == alertsAtOnce
	}
	return errors.Join(failed, s.judging.round(ctx, judged, s.evaluate), s.reading.round(ctx, readers, s.read))
}

// rounds go over alerts that there may not be the time for.
type rounds struct {
	mu    sync.Mutex // held by the round in progress
	turns fair.Turns // guarded by mu
	time  time.Duration
}

// round does something for each of the alerts, fairly across accounts. Those for which no time is left come first in
// the next round. It does nothing while another round in this process is in progress.
func (r *rounds) round(ctx context.Context, alerts []hookglass.Alert, do func(context.Context, hookglass.Alert) error) (failed error) {
	if !r.mu.TryLock() {
		return nil
	}
	defer r.mu.Unlock()
	lines := make([]fair.Line, len(alerts))
	for i, a := range alerts {
		lines[i] = fair.Line{Tenant: strconv.FormatInt(a.AccountID, 10), Num: a.Num}
	}
	began := time.Now()
	for _, i := range r.turns.Order(lines) {
		r.turns.Took(lines[i])
		failed = errors.Join(failed, faultOf(alerts[i], attempt(ctx, alerts[i], do)))
		if ctx.Err() != nil {
			return errors.Join(failed, ctx.Err())
		}
		if time.Since(began) > r.time {
			break
		}
	}
	return failed
}

// attempt does something for one alert. A panic is an error of that alert.
func attempt(ctx context.Context, a hookglass.Alert, do func(context.Context, hookglass.Alert) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do(ctx, a)
}

// faultOf names the alert in an error, or returns nil when the alert was deleted meanwhile.
func faultOf(a hookglass.Alert, err error) error {
	if err == nil || hookglass.Is(err, hookglass.CodeNotFound) {
		return nil
	}
	return fmt.Errorf("alert %s: %w", a.ID, err)
}

// rollUp adds new events to the figures, and now and then purges old figures. It works in small pieces with rests
// between, so that a round is no burst that captures wait for. When that falls behind, as under thousands of captures a
// second, it takes larger pieces without rests: the backlog must not grow for ever.
func (s *Service) rollUp(ctx context.Context) error {
	began := time.Now()
	s.mu.Lock()
	purge := began.Sub(s.purgedAt) >= purgeEvery
	if purge {
		s.purgedAt = began
	}
	s.mu.Unlock()
	rows := rollRows
	for _, work := range []struct {
		due  bool
		what func(*store.Tx) (bool, error)
	}{{true, func(tx *store.Tx) (bool, error) { return tx.RollUp(rows) }}, {purge, (*store.Tx).PurgeFigures}} {
		for more := work.due; more && time.Since(began) < rollFor; {
			piece := time.Now()
			err := s.db.UpdateAlong(ctx, hookglass.System, func(tx *store.Tx) (err error) {
				more, err = work.what(tx)
				return err
			})
			if err != nil {
				return fmt.Errorf("figures: %w", err)
			}
			if time.Since(began) >= rollGently {
				rows = rollBehind
			} else if more {
				fair.Rest(ctx, piece)
			}
		}
	}
	return nil
}

// evaluate evaluates an alert on figures or schemas, and changes its state when that is due.
func (s *Service) evaluate(ctx context.Context, a hookglass.Alert) error {
	now := s.Now().UTC()
	verdict, err := store.Read(ctx, s.db, hookglass.System, func(v *store.View) (verdict, error) {
		return judge(v, a, now)
	})
	if err != nil || verdict.triggered == (a.State == hookglass.AlertTriggered) {
		return err
	}
	return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return s.turn(tx, a, verdict) })
}

// verdict is the state that an alert should be in. The summary says why it is triggered, or why it no longer is.
type verdict struct {
	triggered bool
	summary   string
	eventID   hookglass.EventID
}

// judge returns the state that an alert on figures or schemas should have.
func judge(v *store.View, a hookglass.Alert, now time.Time) (verdict, error) {
	window := time.Duration(a.Config.WindowMinutes) * time.Minute
	switch a.Kind {
	case hookglass.AlertMissingWebhook:
		since := now.Add(-window)
		if a.ArmedAt.After(since) {
			return verdict{}, nil // it has not been watching for a whole window
		}
		received, err := v.ReceivedSince(a.EndpointNum, since)
		return judgeMissing(a, received), err
	case hookglass.AlertErrorResponse:
		since := now.Add(-window)
		if a.ArmedAt.After(since) {
			since = a.ArmedAt
		}
		n, err := v.BadDeliveries(a.EndpointNum, since, a.Config.Threshold)
		return judgeErrors(a, n), err
	case hookglass.AlertVolumeSpike:
		return judgeSpike(v, a, now, window)
	case hookglass.AlertSchemaDrift:
		found, err := v.SchemaDrifts(a.EndpointNum, a.Config.EventType)
		return judgeDrift(found), err
	}
	return verdict{}, fmt.Errorf("an alert of kind %q", a.Kind)
}

// judgeDrift names places and types only: captured values stay with the events.
func judgeDrift(found []store.SchemaDrift) verdict {
	if len(found) == 0 {
		return verdict{summary: "What arrives is as it was accepted."}
	}
	first := found[0]
	name := cmp.Or(first.EventType, "requests without an event type")
	summary := fmt.Sprintf("The schema of %s (%s) has changed: %s.", name, first.Provider, first.Summary)
	switch more := len(found) - 1; {
	case more == 1:
		summary += " So has that of 1 other event type."
	case more > 1:
		summary += fmt.Sprintf(" So have those of %d other event types.", more)
	}
	return verdict{triggered: true, summary: summary, eventID: first.EventID}
}

func judgeMissing(a hookglass.Alert, received bool) verdict {
	if received {
		return verdict{summary: "Something arrived again."}
	}
	return verdict{triggered: true, summary: "Nothing arrived for " + minutes(a.Config.WindowMinutes) + "."}
}

// judgeErrors resolves an alert only when the window has at most half of what triggered it, so that the alert does not
// flap.
func judgeErrors(a hookglass.Alert, bad int64) verdict {
	c := a.Config
	if a.State == hookglass.AlertTriggered {
		if 2*bad > c.Threshold {
			return verdict{triggered: true}
		}
		return verdict{summary: fmt.Sprintf("%s left in %s.", few(bad, "bad delivery is", "bad deliveries are"), minutes(c.WindowMinutes))}
	}
	return verdict{
		triggered: bad >= c.Threshold,
		summary:   fmt.Sprintf("%d or more deliveries failed or were answered with 400 or more within %s.", c.Threshold, minutes(c.WindowMinutes)),
	}
}

// judgeSpike compares the events of a window with the average of the windows before it, as far back as the endpoint
// exists. While the alert is triggered, the average stays the one from before the spike, until as much time has passed
// as it covers: by then the spike is the normal volume.
func judgeSpike(v *store.View, a hookglass.Alert, now time.Time, window time.Duration) (verdict, error) {
	e, err := v.EndpointByNum(a.EndpointNum)
	if err != nil {
		return verdict{}, err
	}
	began := now.Add(-window).Truncate(time.Minute)
	recent, err := v.FiguresOf(a.EndpointNum, began, now)
	if err != nil {
		return verdict{}, err
	}
	count, c := recent.Counted(), a.Config
	if a.State != hookglass.AlertTriggered && count < c.MinCount {
		return verdict{}, nil
	}
	until := began
	if a.State == hookglass.AlertTriggered && a.ChangedAt.After(now.Add(-spikeBaseline*window)) {
		until = a.ChangedAt.Add(-window).Truncate(time.Minute)
	}
	from := until.Add(-spikeBaseline * window)
	if created := e.CreatedAt.Truncate(time.Minute); from.Before(created) {
		from = created
	}
	before, err := v.FiguresOf(a.EndpointNum, from, until.Add(-time.Minute)) // none if the endpoint is as young as that
	if err != nil {
		return verdict{}, err
	}
	average := float64(before.Counted()) / max(until.Sub(from).Seconds()/window.Seconds(), 1)
	decided := decideSpike(a, count, average)
	if !decided.triggered {
		return decided, nil
	}
	// Figures cover whole minutes, so they may include events from before the window. Count exactly, and not from
	// before the alert began to watch.
	since := now.Add(-window)
	if a.ArmedAt.After(since) {
		since = a.ArmedAt
	}
	if count, err = v.CountedSince(a.EndpointNum, since, now); err != nil {
		return verdict{}, err
	}
	return decideSpike(a, count, average), nil
}

// decideSpike resolves an alert only when the window has at most half of what triggers it, so that the alert does not
// flap.
func decideSpike(a hookglass.Alert, count int64, average float64) verdict {
	c := a.Config
	limit := max(float64(c.MinCount), c.Factor*average)
	if a.State == hookglass.AlertTriggered {
		if 2*float64(count) > limit {
			return verdict{triggered: true}
		}
		return verdict{summary: fmt.Sprintf("%s arrived within %s.", few(count, "event", "events"), minutes(c.WindowMinutes))}
	}
	return verdict{
		triggered: count >= c.MinCount && float64(count) > c.Factor*average,
		summary:   fmt.Sprintf("%s arrived within %s; before it were %.1f on average.", counted(count, "event", "events"), minutes(c.WindowMinutes), average),
	}
}

// read looks for the keyword in the events that arrived since the alert last read.
func (s *Service) read(ctx context.Context, a hookglass.Alert) error {
	m := newMatcher(a.Config)
	for began := time.Now(); ; {
		var events []*hookglass.Event
		upTo := a.Cursor
		err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
			events, upTo, err = v.Unread(a.EndpointNum, a.Cursor, readAtOnce)
			return err
		})
		if err != nil {
			return err
		}
		found, matched := verdict{}, a.MatchedAt
		for _, e := range events {
			where := s.find(a, m, e)
			if where == "" {
				continue
			}
			if !found.triggered {
				found = verdict{true, fmt.Sprintf("%q was found in the %s of a request.", a.Config.Keyword, named(where)), e.ID}
			}
			if e.ReceivedAt.After(matched) {
				matched = e.ReceivedAt
			}
		}
		read := upTo != a.Cursor
		if !read && a.State == hookglass.AlertTriggered && s.Now().Sub(a.MatchedAt) >= hookglass.KeywordQuiet {
			return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
				return s.turn(tx, a, verdict{summary: "There was no match for 10 minutes."})
			})
		}
		if !read {
			return nil
		}
		moved := false
		err = s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
			if moved, err = tx.MoveAlert(a, upTo, matched); err != nil || !moved || !found.triggered || a.State == hookglass.AlertTriggered {
				return err
			}
			return s.turn(tx, a, found)
		})
		if err != nil || !moved || time.Since(began) > readFor {
			return err
		}
		if a.Cursor, a.MatchedAt = upTo, matched; found.triggered {
			a.State = hookglass.AlertTriggered
		}
	}
}

// find returns where an event has the keyword, or "". An event over which the search panics is passed over: the alert
// would never get beyond it.
func (s *Service) find(a hookglass.Alert, m matcher, e *hookglass.Event) (where string) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("panic in an alert's search; the event is passed over", "alert", a.ID, "event", e.ID, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return s.search(m, e)
}

func named(field string) string {
	switch field {
	case hookglass.KeywordEventType:
		return "event type"
	case hookglass.KeywordFrom:
		return "sender"
	case hookglass.KeywordTo:
		return "recipients"
	}
	if field[0] == '/' {
		return "body, at " + field + ","
	}
	return field
}

// turn changes an alert's state once, in one transaction with its incident, the line in the feed, and the messages to
// its channels.
func (s *Service) turn(tx *store.Tx, a hookglass.Alert, v verdict) error {
	incident := hookglass.Incident{ID: hookglass.NewSortableID(hookglass.PrefixIncident, tx.Now), EventID: v.eventID, Summary: v.summary, Resolution: v.summary}
	turned, channels, err := tx.TurnAlert(a, incident)
	if err != nil || !turned {
		return err
	}
	e, err := tx.EndpointByNum(a.EndpointNum)
	if err != nil {
		return err
	}
	data := map[string]any{"alert_id": a.ID, "name": a.Name, "kind": string(a.Kind), "summary": v.summary}
	kind, happened := string(hookglass.ActivityAlertTriggered), "triggered"
	if v.triggered {
		line := hookglass.Activity{Type: hookglass.ActivityAlertTriggered, OccurredAt: tx.Now, EndpointID: a.EndpointID, EventID: v.eventID, Data: data}
		if err := tx.AddActivity(line); err != nil {
			return err
		}
	} else {
		kind, happened = hookglass.MessageAlertResolved, "resolved"
	}
	for _, c := range channels {
		if c.Disabled() || v.triggered && slices.Contains(c.Events, hookglass.ActivityAlertTriggered) {
			continue // channels that follow the feed get its line instead
		}
		err := tx.Notify(c.Num, "", hookglass.Message{
			ID: hookglass.NewSortableID(hookglass.PrefixMessage, tx.Now), Type: kind, At: tx.Now, EndpointID: a.EndpointID, EventID: v.eventID,
			Title: fmt.Sprintf("Alert %q is %s", a.Name, happened), Text: fmt.Sprintf("%s (endpoint %q)", v.summary, e.Name), Data: data,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func minutes(n int64) string { return counted(n, "minute", "minutes") }

// few phrases a low number, or none.
func few(n int64, one, many string) string {
	if n == 0 {
		return "No " + one
	}
	return "Only " + counted(n, one, many)
}

// counted returns a number with the matching form of its noun.
func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
