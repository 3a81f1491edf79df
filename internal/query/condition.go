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

// ParseCondition reads a condition. Errors are those of [Parse]. Whether a query can be one says [Query.AtArrival].
func ParseCondition(when string) (c Condition, err error) {
	if c.Query, err = Parse(when, time.Time{}); err == nil {
		_, c.reads = c.Reads()
	}
	return c, err
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
