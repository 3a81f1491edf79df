// Package query is a small language for finding events:
//
//	provider:stripe event:invoice.* -tag:noise after:2h "free text"
//
// docs/query.md describes the language. The package parses queries and matches events against them. The store
// translates what the database can decide to SQL, and a live stream calls [Query.Match] for single events. Both give
// the same answer for the same event.
//
// A Query is immutable and safe for concurrent use.
package query

import "slices"

// Bounds of a query. They bound the SQL statement and the work per event; nobody types more.
const (
	MaxLength = 1000 // characters
	MaxTerms  = 32
)

// Field is what a term tests.
type Field int

// The fields.
const (
	Text        Field = iota // path, query string, headers, body, subject, from, to and envelope
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
	Note                     // written by people
	From                     // of mail
	To                       // of mail
	Subject                  // of mail
	Attachment               // the name of any file of a mail; without a pattern, that there is one beside its HTML
	Received                 // the time of reception
	Size                     // of the body
	Ignored                  // whether it is ignored
	Delivery                 // the state of any delivery to a forwarding target, or that there is none
	Tunnel                   // what became of it on its way to local machines
	ID                       // of the event
)

// Query is a list of terms, all of which a matching event meets. The zero Query matches every event.
type Query struct{ terms []Term }

// Term is one condition on an event. A missing value meets no condition, and therefore meets every negated one.
type Term struct {
	Field Field
	Name  string // of Header (lower case), Parameter and Body: which
	Not   bool
	// Pattern is matched against the text of the field, except for Status, Received, Size and Ignored. A content type
	// is matched with a semicolon appended, so that a pattern can tell where the media type ends.
	Pattern Pattern
	// Min and Max bound Status, Received in microseconds, and Size in bytes. Both are inclusive.
	Min, Max int64
}

// Terms returns the terms. The caller must not modify them.
func (q Query) Terms() []Term { return q.terms }

// Reads reports which parts of the payload the query needs besides the list form. What reads bodies reads the envelope
// of a mail, too.
func (q Query) Reads() (headers, body bool) {
	for _, t := range q.terms {
		switch t.Field {
		case Text:
			return true, true
		case Header:
			headers = true
		case Body, Attachment:
			body = true
		}
	}
	return headers, body
}

// ReadsDeliveries reports whether the query needs the states of the event's deliveries, which neither form has.
func (q Query) ReadsDeliveries() bool { return q.ReadsForwards() || q.ReadsTunnel() }

// ReadsForwards is ReadsDeliveries for deliveries to forwarding targets.
func (q Query) ReadsForwards() bool { return q.mentions(Delivery) }

// ReadsTunnel is ReadsDeliveries for deliveries to local machines.
func (q Query) ReadsTunnel() bool { return q.mentions(Tunnel) }

// Marked reports whether the query depends on marks that are added after an event is stored: its tags, its note, and
// whether it is ignored.
func (q Query) Marked() bool { return q.mentions(Tag) || q.mentions(Note) || q.mentions(Ignored) }

// AtArrival reports whether everything that the query needs is known when an event arrives, before it is answered and
// stored. The status of the answer, marks and deliveries are not, and neither is the age of the event.
func (q Query) AtArrival() bool {
	return !q.Marked() && !q.mentions(Status) && !q.mentions(Received) && !q.ReadsDeliveries()
}

func (q Query) mentions(f Field) bool {
	return slices.ContainsFunc(q.terms, func(t Term) bool { return t.Field == f })
}
