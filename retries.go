package hookglass

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"
)

// IdentityKind says what identifies the attempts of one delivery.
type IdentityKind string

// The kinds, in the order in which they are tried.
const (
	IdentityDelivery IdentityKind = "delivery_id" // the provider's id of the delivery, or the header Webhook-Id
	IdentityEvent    IdentityKind = "event_id"    // the provider's id of the event, and its type
	IdentityBody     IdentityKind = "body"        // the body's bytes, and the event type
	IdentityRequest  IdentityKind = "request"     // of what has no body: method, path and query, and the event type
	IdentityEnvelope IdentityKind = "envelope"    // of mail without a Message-ID: sender, recipients and subject
)

// DeliveryKey identifies a delivery within its endpoint. It is a hash, so that it reveals no content.
type DeliveryKey [16]byte

// DeliveryIdentity returns what the attempts of one delivery have in common. The event needs its headers and body.
func DeliveryIdentity(e *Event) (IdentityKind, DeliveryKey) {
	if e.Type == EventEmail {
		return mailIdentity(e)
	}
	if kind, key, ok := SenderIdentity(e); ok {
		return kind, key
	}
	switch {
	case e.Payload == nil:
		return IdentityBody, deliveryKey(IdentityBody, e.Provider, e.EventType, nil)
	case len(e.Body) == 0:
		return IdentityRequest, deliveryKey(IdentityRequest, e.Provider, e.EventType, []byte(e.Method+" "+e.Path+"?"+e.RawQuery))
	}
	return IdentityBody, deliveryKey(IdentityBody, e.Provider, e.EventType, e.Body)
}

// SenderIdentity is DeliveryIdentity by an id that the sender gave: that of the delivery or of the event, or of a mail
// its Message-ID. ok is false if there is none.
func SenderIdentity(e *Event) (kind IdentityKind, key DeliveryKey, ok bool) {
	if e.Type == EventEmail {
		kind, key = mailIdentity(e)
		return kind, key, kind == IdentityEvent
	}
	id := e.DeliveryID
	if id == "" && e.Payload != nil {
		id = e.Headers.Get("Webhook-Id") // Standard Webhooks, which senders of any provider may use
	}
	switch {
	case id != "":
		return IdentityDelivery, deliveryKey(IdentityDelivery, e.Provider, "", []byte(id)), true
	case e.EventRef != "":
		return IdentityEvent, deliveryKey(IdentityEvent, e.Provider, e.EventType, []byte(e.EventRef)), true
	}
	return "", key, false
}

// EventIdentity identifies the event of a webhook whose delivery has another id: attempts to send one event may each
// have an id of their own. ok is false if there is no such id.
func EventIdentity(e *Event) (key DeliveryKey, ok bool) {
	kind, _, _ := SenderIdentity(e)
	if kind != IdentityDelivery || e.Type == EventEmail || e.EventRef == "" || e.EventRef == e.DeliveryID {
		return key, false
	}
	return deliveryKey(IdentityEvent, e.Provider, e.EventType, []byte(e.EventRef)), true
}

// mailIdentity identifies a mail by its Message-ID and recipients, because one mail may be sent to each recipient
// separately. Without a payload, only the first recipient is known, and the sender only by the header.
func mailIdentity(e *Event) (IdentityKind, DeliveryKey) {
	from, to := e.From, []string{e.Path}
	if e.Payload != nil && e.Envelope != nil {
		from, to = e.Envelope.From, e.Envelope.To
	}
	to = slices.Clone(to)
	for i := range to {
		to[i] = strings.ToLower(to[i])
	}
	slices.Sort(to)
	recipients := strings.Join(to, "\n")
	if e.EventRef != "" {
		return IdentityEvent, deliveryKey(IdentityEvent, "", recipients, []byte(e.EventRef))
	}
	return IdentityEnvelope, deliveryKey(IdentityEnvelope, strings.ToLower(from), recipients, []byte(e.Subject))
}

// RecipientIdentity identifies attempts to send mail from one sender to one recipient: nothing else is known before the
// mail is sent.
func RecipientIdentity(from, to string) DeliveryKey {
	return deliveryKey("recipient", strings.ToLower(from), strings.ToLower(to), nil)
}

func deliveryKey(kind IdentityKind, provider, eventType string, what []byte) (k DeliveryKey) {
	h := sha256.New()
	for _, part := range []string{string(kind), provider, eventType} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	h.Write(what)
	copy(k[:], h.Sum(nil))
	return k
}

// RetryProfile describes how senders retried what an endpoint captured: the deliveries with their attempts, and a
// summary.
type RetryProfile struct {
	Events    int // how many of the newest events were examined
	More      bool
	Groups    []AttemptGroup // the newest first, those with several attempts before the others
	Summary   RetrySummary
	Providers []SenderFacts // what their providers document, ordered by name
}

// GroupState is what became of a delivery.
type GroupState string

// The states. That a sender gave up can only be inferred: it was silent for three times its longest gap.
const (
	GroupDelivered GroupState = "delivered" // an attempt was answered with 2xx
	GroupWaiting   GroupState = "waiting"   // none was, and another attempt may come
	GroupGivenUp   GroupState = "given_up"  // none was, and no attempt came for a long time
)

// AttemptGroup is a delivery with its attempts, oldest first.
type AttemptGroup struct {
	Key          DeliveryKey
	Kind         IdentityKind
	Provider     string
	EventType    string
	DeliveryID   string // of the last attempt; empty: none
	State        GroupState
	Attempts     []Attempt
	Total        int // attempts, including those beyond the bound of Attempts
	AfterSuccess int // attempts after one that was answered with 2xx
}

// Attempt is one attempt of a delivery.
type Attempt struct {
	EventID    EventID
	At         time.Time
	Gap        time.Duration // since the attempt before; 0 for the first
	Status     int           // that it was answered; 0: none
	Held       time.Duration // without a status: how long it was held
	RetryAfter time.Duration // that it was told; 0: none
	Changes    []AttemptChange
	MoreChange bool // there may be more than are listed
}

// Answer returns what the attempt was answered, as a response script spells it.
func (a Attempt) Answer() string {
	if a.Status != 0 {
		a.Held = 0
	}
	return ScriptedAnswer{Status: a.Status, Delay: a.Held, Times: 1}.String()
}

// Success reports whether the attempt was answered with 2xx.
func (a Attempt) Success() bool { return a.Status >= 200 && a.Status <= 299 }

// AttemptChange is a part in which an attempt differs from the one before it. It holds names, never values.
type AttemptChange struct {
	Part string // header, query, body
	Name string // the header, or the JSON Pointer into the body; empty: the whole
	Kind string // added, removed, changed
	Role ChangeRole
}

// ChangeRole is the purpose of a part that changes, as far as its name and value tell.
type ChangeRole string

// The roles.
const (
	RoleSignature ChangeRole = "signature"
	RoleTimestamp ChangeRole = "timestamp"
	RoleDelivery  ChangeRole = "delivery_id"
	RoleEvent     ChangeRole = "event_id"
	RoleCounter   ChangeRole = "attempt_counter"
	RoleBody      ChangeRole = "body"
	RoleOther     ChangeRole = ""
)

// RetrySummary is what deliveries have in common.
type RetrySummary struct {
	Deliveries   int
	Retried      int // with more than one attempt
	Delivered    int
	Waiting      int
	GivenUp      int
	AfterSuccess int   // attempts after one that was answered with 2xx
	GaveUpAfter  []int // attempts of those that were given up, in order
	MaxAttempts  int
	Schedule     []RetryStep
	Answers      []AnswerFigure
	RetryAfter   RetryAfterFigure
	Renewed      map[ChangeRole]Renewal // of signature, timestamp, delivery_id, event_id and body
	Counter      string                 // a header that counts attempts; empty: none was seen
}

// RetryStep is the wait before one attempt, over all deliveries that had it.
type RetryStep struct {
	Attempt          int // 2 or more
	N                int
	Median, Min, Max time.Duration
	Jitter           float64       // (Max - Min) / Median; 0 where N is 1
	Documented       time.Duration // -1: the sender does not say, or there are several senders
}

// AnswerFigure is what senders did after an answer.
type AnswerFigure struct {
	Answer   string // as a response script spells it
	Attempts int    // that were given it
	Retried  int    // of them, those that another attempt followed
}

// RetryAfterFigure counts how senders followed Retry-After.
type RetryAfterFigure struct {
	Given    int // answers with it
	Honoured int // the next attempt came no earlier, give or take half a second
	Early    int // it came earlier
	None     int // no other attempt came
}

// Renewal is whether a part changes from attempt to attempt.
type Renewal string

// The renewals.
const (
	RenewalAbsent    Renewal = "absent"    // no attempt had it, or none followed another
	RenewalKept      Renewal = "kept"      // it was the same in all attempts of a delivery
	RenewalChanged   Renewal = "changed"   // each attempt had another
	RenewalSometimes Renewal = "sometimes" // some had another, some had not
)
