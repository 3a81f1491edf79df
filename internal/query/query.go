// Package query is the small language in which people look for events:
//
//	provider:stripe event:invoice.* -tag:noise after:2h "free text"
//
// The language is described in docs/query.md. The package knows how a query is written and which
// events it means; the store turns what the database can answer into SQL, and a live stream asks
// [Query.Match] of one event. Both give the same answer for the same event.
//
// A Query is a value that does not change, and is safe for concurrent use.
package query

// Bounds of a query. They keep the statement and the work for one event small; nobody types more.
const (
	MaxLength = 1000 // characters
	MaxTerms  = 32
)

// Field is what a term looks at.
type Field int

// The fields.
const (
	Text        Field = iota // path, query string, headers, body, subject, from and to
	Kind                     // webhook or email
	Provider                 // detected
	EventType                // the provider's
	Signature                // its status
	Method                   // EMAIL for mail
	Status                   // of the answer that the sender was given
	Path                     // as received; the receiving address of mail
	Header                   // any value of the header called Name
	Parameter                // any value of the query parameter called Name
	Body                     // the value at the JSON Pointer Name
	ContentType              // followed by a semicolon, see [Term.Pattern]
	IP                       // of the sender
	Tag                      // any tag
	Note                     // of people
	From                     // of mail
	To                       // of mail
	Subject                  // of mail
	Received                 // when
	Size                     // of the body
	Ignored                  // whether
	Delivery                 // to a forwarding target: the state of any, or that there is none
	ID                       // of the event
)

// Query is a list of terms that all hold for the events it means. The zero Query means every event.
type Query struct{ terms []Term }

// Term is one condition on an event. What an event does not have meets no condition, and so meets a negated one.
type Term struct {
	Field Field
	Name  string // of Header (lower case), Parameter and Body: which
	Not   bool
	// Pattern is what the text of the field is compared with, for every field but Status, Received, Size and Ignored. A
	// content type is compared with a semicolon behind it, so that a pattern can tell where the media type ends.
	Pattern Pattern
	// Min and Max bound Status, Received in microseconds and Size in bytes. Both are included.
	Min, Max int64
}

// Terms returns the terms, which the caller does not change.
func (q Query) Terms() []Term { return q.terms }

// Reads says which parts of a payload decide about an event, besides what the list form has.
func (q Query) Reads() (headers, body bool) {
	for _, t := range q.terms {
		switch t.Field {
		case Text:
			return true, true
		case Header:
			headers = true
		case Body:
			body = true
		}
	}
	return headers, body
}

// ReadsDeliveries reports whether the states of an event's deliveries decide about it, which neither form has.
func (q Query) ReadsDeliveries() bool { return q.mentions(Delivery) }

// Marked reports whether what may be done to an event after it was stored decides about it: its tags, its note, and
// whether it is ignored.
func (q Query) Marked() bool { return q.mentions(Tag) || q.mentions(Note) || q.mentions(Ignored) }

// AtArrival reports whether all that decides about an event is known when it comes, before it is answered and stored:
// not what it is answered, what is made of it and becomes of it later, or how long ago that was.
func (q Query) AtArrival() bool {
	return !q.Marked() && !q.mentions(Status) && !q.mentions(Received) && !q.ReadsDeliveries()
}

func (q Query) mentions(f Field) bool {
	for _, t := range q.terms {
		if t.Field == f {
			return true
		}
	}
	return false
}
