package query

import (
	"time"

	"hookglass"
)

// MaxLooked bounds how much of a body is looked into, in bytes, while its sender waits.
const MaxLooked = 1 << 20

// Condition is a query that is asked of an event when it comes, for instance by a forwarding target that does not get
// all.
type Condition struct {
	Query
	reads bool // the body
}

// ParseCondition reads a condition. It answers what [Parse] does, and validation_failed for a query that asks for what
// is not known when an event comes ([Query.AtArrival]).
func ParseCondition(when string) (c Condition, err error) {
	if c.Query, err = Parse(when, time.Time{}); err != nil {
		return c, err
	}
	if !c.AtArrival() {
		return c, hookglass.Invalid("q", "may not ask for status, tag, note, ignored, delivery or the time: it is asked before an event has them")
	}
	_, c.reads = c.Reads()
	return c, nil
}

// Means reports whether the condition means an event in the detail form. Of a body it looks into the first MaxLooked
// bytes.
func (c Condition) Means(e *hookglass.Event) bool {
	if c.reads && e.Payload != nil && len(e.Body) > MaxLooked {
		e = beginning(e)
	}
	return c.Match(e)
}

// beginning is an event with the beginning of its body alone.
func beginning(e *hookglass.Event) *hookglass.Event {
	cut, p := *e, *e.Payload
	p.Body = p.Body[:MaxLooked:MaxLooked]
	cut.Payload = &p
	return &cut
}
