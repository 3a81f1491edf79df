package query

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
)

// Filter holds the filters of lists, exports and streams (spec: decisions, section 6) by their wire names, as they were
// sent; empty means not sent. An event must match all of them, and Q.
type Filter struct {
	Type, Method, Provider, EventType, SignatureStatus, Status, Tag, ContentType, Before, After string
	Ignored                                                                                     string // false (default), true or any
	Q                                                                                           string
}

// Parse combines the filters into one query. It answers validation_failed naming every wrong filter. Ignored events are
// left out unless Ignored asks for them or, if Ignored is not given, an is: in Q does.
func (f Filter) Parse(now time.Time) (Query, error) {
	q, err := Parse(f.Q, now)
	var inQ *hookglass.Error
	if err != nil && !errors.As(err, &inQ) {
		return Query{}, err
	}
	var faults []hookglass.FieldError
	terms := q.terms[:len(q.terms):len(q.terms)]
	for _, given := range []struct {
		field Field
		name  string
		value string
	}{
		{Kind, "type", f.Type}, {Method, "method", f.Method}, {Provider, "provider", f.Provider}, {EventType, "event_type", f.EventType},
		{Signature, "signature_status", f.SignatureStatus}, {Status, "status", f.Status}, {Tag, "tag", f.Tag},
		{ContentType, "content_type", f.ContentType}, {Received, "before", f.Before}, {Received, "after", f.After},
	} {
		if given.value == "" {
			continue
		}
		if utf8.RuneCountInString(given.value) > MaxLength {
			faults = append(faults, hookglass.FieldError{Field: given.name, Message: fmt.Sprintf("may have %d characters at most", MaxLength)})
			continue
		}
		t := Term{Field: given.field}
		v := operand{text: given.value, parts: strings.Split(given.value, "*")}
		if wrong := t.compare(given.name, v, now); wrong != nil {
			faults = append(faults, hookglass.FieldError{Field: given.name, Message: "must be " + strings.TrimPrefix(wrong.expected, "expected ")})
		}
		terms = append(terms, t)
	}
	switch f.Ignored {
	case "":
		if !q.mentions(Ignored) {
			terms = append(terms, Term{Field: Ignored, Not: true})
		}
	case "false":
		terms = append(terms, Term{Field: Ignored, Not: true})
	case "true":
		terms = append(terms, Term{Field: Ignored})
	case "any":
	default:
		faults = append(faults, hookglass.FieldError{Field: "ignored", Message: "must be false, true or any"})
	}
	if inQ != nil {
		refused := hookglass.InvalidFields(append(inQ.Details, faults...))
		refused.Extra = inQ.Extra
		return Query{}, refused
	}
	if err := hookglass.InvalidFields(faults); err != nil {
		return Query{}, err
	}
	return Query{terms}, nil
}

// Named is an error of Parse for a query that its caller gave in another field than q.
func Named(field string, err error) error {
	refused, ok := errors.AsType[*hookglass.Error](err)
	if !ok || len(refused.Details) == 0 {
		return err
	}
	named := hookglass.Invalid(field, "%s", refused.Details[0].Message)
	named.Extra = refused.Extra
	return named
}

// Between matches the events received between two times, both excluded; a zero time is no bound.
func Between(after, before time.Time) Query { return Query{[]Term{between(after, before)}} }

func between(after, before time.Time) Term {
	t := Term{Field: Received, Min: math.MinInt64, Max: math.MaxInt64}
	if !after.IsZero() {
		t.Min = after.UnixMicro() + 1
	}
	if !before.IsZero() {
		t.Max = before.Add(time.Microsecond-1).UnixMicro() - 1 // rounded up to whole microseconds first
	}
	return t
}
