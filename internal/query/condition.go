package query

import (
	"bytes"
	"slices"
	"time"

	"hookglass"
)

// MaxLooked bounds how many bytes of a body are examined while its sender waits.
const MaxLooked = 1 << 20

// Condition is a query that is evaluated when an event arrives, for example to decide whether a forwarding target gets
// it.
type Condition struct{ Query }

// ParseCondition parses a condition. It answers what [Parse] does, and validation_failed for a query on what is not
// known when an event arrives ([Query.AtArrival]).
func ParseCondition(when string) (c Condition, err error) {
	if c.Query, err = Parse(when, time.Time{}); err != nil {
		return c, err
	}
	if !c.AtArrival() {
		return c, hookglass.Invalid("q", "cannot use status, tag, note, ignored, delivery, tunnel or times: it is checked before an event has them")
	}
	return c, nil
}

// Means reports whether an event in detail form meets the condition. It examines the first MaxLooked bytes of the body.
func (c Condition) Means(e *hookglass.Event) bool {
	if _, body := c.Reads(); body && e.Payload != nil && len(e.Body) > MaxLooked {
		e = beginning(e)
	}
	return c.Match(e)
}

// Scalar returns the string or number at an RFC 6901 pointer below the root of an event's JSON body, as written, or the
// same of a form. It returns false if there is none, or an empty string, in the first MaxLooked bytes, or a field of
// the form more than once. The event is in detail form.
func Scalar(e *hookglass.Event, pointer string) (written []byte, ok bool) {
	if len(e.Body) > MaxLooked {
		e = beginning(e)
	}
	body := reader{event: e}
	all, rest := body.documents(pointer)
	documents := slices.Collect(all)
	if len(documents) != 1 {
		return nil, false
	}
	d, ok := enter(documents[0], rest)
	if !ok {
		return nil, false
	}
	kind := d.PeekKind()
	if kind != '"' && kind != '0' {
		return nil, false
	}
	value, err := d.ReadValue()
	if err != nil || string(value) == `""` {
		return nil, false
	}
	written = bytes.Clone(value)                     // the next call overwrites it
	return written, kind == '"' || d.PeekKind() != 0 // a number at the end of what was read may go on
}

// beginning returns a copy of an event with its body cut to MaxLooked bytes.
func beginning(e *hookglass.Event) *hookglass.Event {
	cut, p := *e, *e.Payload
	p.Body = p.Body[:MaxLooked:MaxLooked]
	cut.Payload = &p
	return &cut
}
