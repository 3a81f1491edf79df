package flow

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"hookglass"
)

// grace is how long after a time that counts events may still be committed that were received before it.
const grace = time.Second

// maxMatched bounds the events that a step names.
const maxMatched = 20

// errGone is what loading a payload answers when the event was deleted meanwhile.
var errGone = errors.New("flow: the event is gone")

// machine moves a flow on: events in the order of their capture, and the time. It does no I/O; the same events give the
// same end, in whatever pieces they come.
type machine struct {
	flow  *hookglass.Flow
	steps []*step
	shown bool // something changed that people see
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

// begin makes a new flow watch.
func (m *machine) begin() {
	p := &m.flow.Progress
	p.Steps = make([]hookglass.FlowStepProgress, len(m.steps))
	for i := range p.Steps {
		p.Steps[i].State = hookglass.FlowStepWaiting
	}
	m.turn(m.flow.StartedAt)
	m.settle(m.flow.StartedAt)
}

// turn lets steps watch whose turn has come: in order, all up to and with the first that waits for an event; else, all
// whose references are there.
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
			m.shown = true
		}
		if !m.flow.Plan.AnyTurn && !plan.Never && (p.State == hookglass.FlowStepWatching || p.State == hookglass.FlowStepWaiting) {
			return
		}
	}
}

// timed is from when a step has time that watches since then. Of one that watches since the flow's start that is when
// the flow began: what came before counts where that is asked for, and takes none of the time.
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

// take judges an event. load gives it its payload, when that is needed.
func (m *machine) take(e *hookglass.Event, load func() error) error {
	if m.flow.State.Final() {
		return nil
	}
	taken, r := false, &reader{event: e}
	for i, s := range m.steps {
		p, plan := &m.flow.Progress.Steps[i], &m.flow.Plan.Steps[i]
		if plan.EndpointNum != e.EndpointNum || plan.Never || p.State != hookglass.FlowStepWatching && p.State != hookglass.FlowStepWaiting {
			continue
		}
		if taken || p.State == hookglass.FlowStepWaiting && len(s.refers) > 0 {
			continue
		}
		v, err := s.judge(r, load, m.values())
		if err != nil {
			return ended(err)
		}
		switch {
		case !v.held():
			m.near(p, e, v, "")
		case p.State == hookglass.FlowStepWaiting:
			m.near(p, e, v, "It came before the turn of this step.")
		case e.ReceivedAt.After(p.Until):
			m.near(p, e, v, fmt.Sprintf("It came %s too late.", rounded(e.ReceivedAt.Sub(p.Until))))
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

// ended takes an event that was deleted before it was judged for one that never was.
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

// guard ends the flow when an event that no step took may not come.
func (m *machine) guard(r *reader, load func() error) error {
	e := r.event
	for i, s := range m.steps {
		p, plan := &m.flow.Progress.Steps[i], &m.flow.Plan.Steps[i]
		watches := plan.Never && p.State == hookglass.FlowStepWatching || p.State == hookglass.FlowStepHolding
		if plan.EndpointNum != e.EndpointNum || !watches || e.ReceivedAt.After(p.Until) {
			continue
		}
		v, err := s.judge(r, load, m.values())
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

// settle lets the flow pass when nothing is left to wait for.
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
		return // nothing says how long they are to watch, so it is to the end
	}
	for i := range m.steps {
		if p := &m.flow.Progress.Steps[i]; p.State == hookglass.FlowStepWatching || p.State == hookglass.FlowStepHolding {
			if p.State == hookglass.FlowStepWatching {
				p.Ended = at
			}
			p.State = hookglass.FlowStepPassed
		}
	}
	m.finish(hookglass.FlowPassed, at, "")
}

// guardsAlone reports whether nothing may match any step, and one of them watches still.
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

// tick judges what time decides. All events must have been taken that were there at that time.
func (m *machine) tick(now time.Time) {
	if m.flow.State.Final() {
		return
	}
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

// unseen is said where the events of a flow are more than it can be judged by.
const unseen = "Not all that came was looked at: that takes longer than there is time for."

// giveUp ends a flow that time ends, though not all events were taken that were there at that time: of those nothing is
// known, and so not that none came that may not.
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

// missing says what a step lacks.
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
		text += fmt.Sprintf(": %s should be %q", f.Condition, f.Expected)
		if f.Actual != "" {
			text += fmt.Sprintf(" and was %q", f.Actual)
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

// lose ends the flow because an endpoint is gone, unless all steps there have passed.
func (m *machine) lose(endpointNum int64, at time.Time) {
	m.fail(endpointNum, at, "Its endpoint was deleted.")
}

// fail ends the flow at the first step of an endpoint that has not passed.
func (m *machine) fail(endpointNum int64, at time.Time, message string) {
	for i, s := range m.flow.Plan.Steps {
		if p := &m.flow.Progress.Steps[i]; s.EndpointNum == endpointNum && p.State != hookglass.FlowStepPassed && !m.flow.State.Final() {
			p.State, p.Ended, p.Message = hookglass.FlowStepFailed, at, message
			m.finish(hookglass.FlowFailed, at, fmt.Sprintf("Step %s failed. %s", s.Key, p.Message))
		}
	}
}

// misread ends a flow of which a step cannot be compiled any more.
func (m *machine) misread(at time.Time) {
	for i, s := range m.flow.Plan.Steps {
		_, err := compile(&m.flow.Plan, i, m.flow.StartedAt)
		if err == nil {
			continue
		}
		message := "What it expects is not understood any more."
		var invalid *hookglass.Error
		if errors.As(err, &invalid) && len(invalid.Details) > 0 {
			_, field, _ := strings.Cut(strings.TrimPrefix(invalid.Details[0].Field, "flow.steps."), ".")
			message = fmt.Sprintf("What it expects is not understood any more: %s %s.", field, invalid.Details[0].Message)
		}
		p := &m.flow.Progress.Steps[i]
		p.State, p.Ended, p.Message = hookglass.FlowStepFailed, at, message
		m.finish(hookglass.FlowFailed, at, fmt.Sprintf("Step %s failed. %s", s.Key, message))
		return
	}
}

// due is the next time at which time decides something; zero: nothing is left.
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

// acted reports whether a step goes on at an endpoint for which it matters what actions do to an event.
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

// values are what the steps have taken so far.
func (m *machine) values() func(key, name string) (string, bool) {
	return func(key, name string) (string, bool) {
		for i, s := range m.flow.Plan.Steps {
			if s.Key == key {
				v, ok := m.flow.Progress.Steps[i].Values[name]
				return v, ok
			}
		}
		return "", false
	}
}

// near keeps the event that came nearest to a step: the first of those that met the most conditions.
func (m *machine) near(p *hookglass.FlowStepProgress, e *hookglass.Event, v verdict, reason string) {
	if n := p.NearMiss; v.met == 0 || n != nil && n.Held*v.total >= v.met*n.Total {
		return
	}
	p.NearMiss = &hookglass.FlowNearMiss{
		FlowMatch: hookglass.FlowMatch{EventID: e.ID, ReceivedAt: e.ReceivedAt}, Held: v.met, Total: v.total, Reason: reason, Faults: v.faults,
	}
}

// rounded is a duration as people say it.
func rounded(d time.Duration) string {
	switch {
	case d > time.Minute:
		return d.Round(time.Second).String()
	case d > time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
