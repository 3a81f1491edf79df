package flow

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"hookglass"
)

// grace is how long to wait after a deadline before it is applied: events that were received in time may be committed a
// little later.
const grace = time.Second

// maxMatched bounds the matched events that a step lists.
const maxMatched = 20

// errGone is the error of loading a payload whose event was deleted meanwhile.
var errGone = errors.New("flow: the event is gone")

// machine is the state machine of a flow, driven by events in the order of their capture and by time. It does no I/O.
// The same events give the same result, however they are split into batches.
type machine struct {
	flow  *hookglass.Flow
	steps []*step
	shown bool // a visible change that is to be stored
}

// newMachine compiles a flow, which must be valid.
func newMachine(f *hookglass.Flow) (*machine, error) {
	m := &machine{flow: f}
	for i := range f.Plan.Steps {
		s, err := compile(&f.Plan, i, f.StartedAt)
		if err != nil {
			return nil, err
		}
		m.steps = append(m.steps, s)
	}
	return m, nil
}

// begin puts a new flow into its initial state.
func (m *machine) begin() {
	p := &m.flow.Progress
	p.Steps = make([]hookglass.FlowStepProgress, len(m.steps))
	for i := range p.Steps {
		p.Steps[i].State = hookglass.FlowStepWaiting
	}
	m.turn(m.flow.StartedAt)
}

// turn activates the steps whose turn it is: in order, all up to and including the first that waits for an event; with
// AnyTurn, all whose references are resolved.
func (m *machine) turn(at time.Time) {
	for i := range m.steps {
		p := &m.flow.Progress.Steps[i]
		plan := &m.flow.Plan.Steps[i]
		if p.State == hookglass.FlowStepWaiting && m.resolved(i) {
			p.State, p.Since, p.Until = hookglass.FlowStepWatching, at, m.flow.DeadlineAt
			if m.flow.Plan.AnyTurn {
				p.Since = m.flow.StartedAt
			}
			if until := m.timed(p.Since).Add(plan.Within); plan.Within > 0 && until.Before(p.Until) {
				p.Until = until
			}
		}
		if !m.flow.Plan.AnyTurn && !plan.Never && p.State == hookglass.FlowStepWatching {
			return
		}
	}
}

// timed returns the time from which a step's own limit counts, for a step that has been watching since then. A step
// that watches from the start has its full limit from the flow's creation: with since, the flow's start lies before
// that.
func (m *machine) timed(since time.Time) time.Time {
	if since.Equal(m.flow.StartedAt) {
		return m.flow.DeadlineAt.Add(-m.flow.Plan.Timeout)
	}
	return since
}

// resolved reports whether the steps that a step refers to have their values.
func (m *machine) resolved(i int) bool {
	for _, k := range m.steps[i].refers {
		if len(m.flow.Progress.Steps[k].Values) == 0 {
			return false
		}
	}
	return true
}

// take applies an event. load loads its payload when that is needed.
func (m *machine) take(e *hookglass.Event, load func() error) error {
	taken, r := false, &reader{event: e}
	for i, s := range m.steps {
		p, plan := &m.flow.Progress.Steps[i], &m.flow.Plan.Steps[i]
		if plan.EndpointNum != e.EndpointNum || plan.Never || p.State != hookglass.FlowStepWatching && p.State != hookglass.FlowStepWaiting {
			continue
		}
		if taken || p.State == hookglass.FlowStepWaiting && len(s.refers) > 0 {
			continue
		}
		v, err := s.judge(r, load, m.value)
		if err != nil {
			return ended(err)
		}
		switch {
		case !v.held():
			near(p, e, v, "")
		case p.State == hookglass.FlowStepWaiting:
			near(p, e, v, "It came before the turn of this step.")
		case e.ReceivedAt.After(p.Until):
			near(p, e, v, fmt.Sprintf("It came %s too late.", rounded(e.ReceivedAt.Sub(p.Until))))
		default:
			taken = true
			m.match(i, e, v)
		}
	}
	if !taken {
		if err := m.guard(r, load); err != nil {
			return ended(err)
		}
	}
	m.settle(e.ReceivedAt)
	return nil
}

// ended treats an event that was deleted before it could be judged as if it had never been.
func ended(err error) error {
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// match counts an event for a step.
func (m *machine) match(i int, e *hookglass.Event, v verdict) {
	p, plan := &m.flow.Progress.Steps[i], &m.flow.Plan.Steps[i]
	m.shown = true
	if p.Count++; len(p.Matched) < maxMatched {
		p.Matched = append(p.Matched, hookglass.FlowMatch{EventID: e.ID, ReceivedAt: e.ReceivedAt})
	}
	if p.Count == 1 && len(v.values) > 0 {
		p.Values = v.values
	}
	if p.Count < plan.Count {
		return
	}
	p.State, p.Ended, p.NearMiss = hookglass.FlowStepPassed, e.ReceivedAt, nil
	if plan.Exactly {
		p.State = hookglass.FlowStepHolding
	}
	m.turn(e.ReceivedAt)
}

// guard fails the flow when an event that no step took matches one that must not match, or not again.
func (m *machine) guard(r *reader, load func() error) error {
	e := r.event
	for i, s := range m.steps {
		p, plan := &m.flow.Progress.Steps[i], &m.flow.Plan.Steps[i]
		watches := plan.Never && p.State == hookglass.FlowStepWatching || p.State == hookglass.FlowStepHolding
		if plan.EndpointNum != e.EndpointNum || !watches || e.ReceivedAt.After(p.Until) {
			continue
		}
		v, err := s.judge(r, load, m.value)
		if err != nil {
			return err
		}
		if !v.held() {
			continue
		}
		p.Count++
		p.Matched = append(p.Matched, hookglass.FlowMatch{EventID: e.ID, ReceivedAt: e.ReceivedAt})
		p.Message = fmt.Sprintf("%s matches, and nothing may.", e.ID)
		if !plan.Never {
			p.Message = fmt.Sprintf("%s is one too many: exactly %d may match.", e.ID, plan.Count)
		}
		p.State, p.Ended = hookglass.FlowStepFailed, e.ReceivedAt
		m.finish(hookglass.FlowFailed, e.ReceivedAt, fmt.Sprintf("Step %s failed. %s", plan.Key, p.Message))
		return nil
	}
	return nil
}

// settle passes the flow when there is nothing left to wait for.
func (m *machine) settle(at time.Time) {
	if m.flow.State.Final() {
		return
	}
	for i := range m.steps {
		p, plan := &m.flow.Progress.Steps[i], &m.flow.Plan.Steps[i]
		switch p.State {
		case hookglass.FlowStepWaiting:
			return
		case hookglass.FlowStepWatching:
			if !plan.Never || plan.Within > 0 {
				return
			}
		case hookglass.FlowStepHolding:
			if plan.Within > 0 {
				return
			}
		}
	}
	if m.guardsAlone() {
		return // without a limit of their own, they watch until the flow's deadline
	}
	for i := range m.steps {
		if p := &m.flow.Progress.Steps[i]; p.State == hookglass.FlowStepWatching {
			p.State, p.Ended = hookglass.FlowStepPassed, at
		}
	}
	m.finish(hookglass.FlowPassed, at, "")
}

// guardsAlone reports whether all steps have never set, and one of them still watches.
func (m *machine) guardsAlone() bool {
	watching := false
	for i, s := range m.flow.Plan.Steps {
		if !s.Never {
			return false
		}
		watching = watching || m.flow.Progress.Steps[i].State == hookglass.FlowStepWatching
	}
	return watching
}

// tick applies deadlines up to now. All events captured by then must have been taken.
func (m *machine) tick(now time.Time) {
	at := now.Add(-grace)
	for i := range m.steps {
		p, plan := &m.flow.Progress.Steps[i], &m.flow.Plan.Steps[i]
		if p.State != hookglass.FlowStepWatching && p.State != hookglass.FlowStepHolding || !at.After(p.Until) {
			continue
		}
		if plan.Never || p.State == hookglass.FlowStepHolding {
			if plan.Never {
				p.Ended = p.Until
			}
			p.State = hookglass.FlowStepPassed
			m.shown = true
			continue
		}
		p.State, p.Ended = hookglass.FlowStepExpired, p.Until
		p.Message = m.missing(i)
		m.finish(hookglass.FlowExpired, p.Until, fmt.Sprintf("Step %s expired. %s", plan.Key, p.Message))
		return
	}
	if at.After(m.flow.DeadlineAt) {
		at = m.flow.DeadlineAt
	}
	m.settle(at)
}

// unseen is the message when a flow has more events than can be judged in time.
const unseen = "Not all events could be checked: there were too many for the time that there is."

// giveUp ends a flow at a deadline although not all earlier events have been taken. Nothing is known about those, so
// not even a step with never passes.
func (m *machine) giveUp(now time.Time) {
	for i, s := range m.flow.Plan.Steps {
		p := &m.flow.Progress.Steps[i]
		if p.State != hookglass.FlowStepWatching && p.State != hookglass.FlowStepHolding || !now.Add(-grace).After(p.Until) {
			continue
		}
		if p.Message = unseen; !s.Never && p.State == hookglass.FlowStepWatching {
			p.Message = m.missing(i) + " " + unseen
		}
		p.State, p.Ended = hookglass.FlowStepExpired, p.Until
		m.finish(hookglass.FlowExpired, p.Until, fmt.Sprintf("Step %s expired. %s", s.Key, p.Message))
		return
	}
}

// missing describes what a step lacks.
func (m *machine) missing(i int) string {
	p, plan := &m.flow.Progress.Steps[i], &m.flow.Plan.Steps[i]
	text := fmt.Sprintf("Nothing matched within %s.", rounded(p.Until.Sub(p.Since)))
	if plan.Count > 1 {
		text = fmt.Sprintf("Only %d of %d matched within %s.", p.Count, plan.Count, rounded(p.Until.Sub(p.Since)))
	}
	n := p.NearMiss
	if n == nil {
		return text
	}
	if n.Reason != "" {
		return fmt.Sprintf("%s %s matched, but did not count: %s", text, n.EventID, n.Reason)
	}
	text += fmt.Sprintf(" The nearest was %s, which met %d of %d conditions", n.EventID, n.Held, n.Total)
	if len(n.Faults) > 0 {
		f := n.Faults[0]
		switch {
		case strings.HasPrefix(f.Condition, extractPrefix):
			text += fmt.Sprintf(": %s found nothing by %q", f.Condition, f.Expected)
		case f.Actual != "":
			text += fmt.Sprintf(": %s should be %q and was %q", f.Condition, f.Expected, f.Actual)
		default:
			text += fmt.Sprintf(": %s should be %q", f.Condition, f.Expected)
		}
	}
	return text + "."
}

// finish ends the flow.
func (m *machine) finish(state hookglass.FlowState, at time.Time, message string) {
	m.flow.State, m.flow.FinishedAt, m.flow.Progress.Message = state, at, message
	m.shown = true
	for i := range m.flow.Progress.Steps {
		switch p := &m.flow.Progress.Steps[i]; p.State {
		case hookglass.FlowStepWaiting, hookglass.FlowStepWatching:
			p.State = hookglass.FlowStepSkipped
		case hookglass.FlowStepHolding:
			p.State = hookglass.FlowStepPassed
		}
	}
}

// fail fails the flow at the first step of an endpoint that has not passed; if all have, it does nothing.
func (m *machine) fail(endpointNum int64, at time.Time, message string) {
	for i, s := range m.flow.Plan.Steps {
		if p := &m.flow.Progress.Steps[i]; s.EndpointNum == endpointNum && p.State != hookglass.FlowStepPassed {
			p.State, p.Ended, p.Message = hookglass.FlowStepFailed, at, message
			m.finish(hookglass.FlowFailed, at, fmt.Sprintf("Step %s failed. %s", s.Key, p.Message))
			return
		}
	}
}

// misread fails a flow with a step that no longer compiles.
func (m *machine) misread(at time.Time) {
	for i, s := range m.flow.Plan.Steps {
		_, err := compile(&m.flow.Plan, i, m.flow.StartedAt)
		if err == nil {
			continue
		}
		message := "This version cannot read what it expects."
		if invalid, ok := errors.AsType[*hookglass.Error](err); ok && len(invalid.Details) > 0 {
			_, field, _ := strings.Cut(strings.TrimPrefix(invalid.Details[0].Field, "flow.steps."), ".")
			message = fmt.Sprintf("This version cannot read what it expects: %s %s.", field, invalid.Details[0].Message)
		}
		p := &m.flow.Progress.Steps[i]
		p.State, p.Ended, p.Message = hookglass.FlowStepFailed, at, message
		m.finish(hookglass.FlowFailed, at, fmt.Sprintf("Step %s failed. %s", s.Key, message))
		return
	}
}

// due returns the next deadline that is to be applied; zero: there is none.
func (m *machine) due() (at time.Time) {
	for _, p := range m.flow.Progress.Steps {
		if p.State != hookglass.FlowStepWatching && p.State != hookglass.FlowStepHolding {
			continue
		}
		if t := p.Until.Add(grace); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// acted reports whether an unfinished step at an endpoint depends on what actions do to an event.
func (m *machine) acted(endpointNum int64) bool {
	for i, s := range m.steps {
		if !s.marked || m.flow.Plan.Steps[i].EndpointNum != endpointNum {
			continue
		}
		switch m.flow.Progress.Steps[i].State {
		case hookglass.FlowStepWaiting, hookglass.FlowStepWatching, hookglass.FlowStepHolding:
			return true
		}
	}
	return false
}

// value returns a value that a step has extracted; a step watches only when those that it refers to are there.
func (m *machine) value(key, name string) string {
	for i, s := range m.flow.Plan.Steps {
		if s.Key == key {
			return m.flow.Progress.Steps[i].Values[name]
		}
	}
	return ""
}

// near keeps the nearest miss of a step: the first of the events that met the largest share of conditions.
func near(p *hookglass.FlowStepProgress, e *hookglass.Event, v verdict, reason string) {
	if n := p.NearMiss; n != nil && n.Held*v.total >= v.met*n.Total {
		return
	}
	p.NearMiss = &hookglass.FlowNearMiss{
		FlowMatch: hookglass.FlowMatch{EventID: e.ID, ReceivedAt: e.ReceivedAt}, Held: v.met, Total: v.total, Reason: reason, Faults: v.faults,
	}
}

// rounded formats a duration for people.
func rounded(d time.Duration) string {
	switch {
	case d > time.Minute:
		return d.Round(time.Second).String()
	case d > time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
