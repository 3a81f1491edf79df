// Package provider knows the senders of webhooks: who sent a request, what it announces, whether its signature is valid
// and why not, how to answer a handshake, and how to sign a delivery or give it a new identity.
//
// It is pure: no clock, no network, no storage. Requests go in, verdicts and new requests come out. Six providers
// (github, stripe, shopify, slack, twilio, generic_hmac) have a file each; all others are rows of table.json, whose
// signature schemes are a closed set of algorithms (see scheme.go). To add a provider, add a row and a test vector.
// Everything is safe for concurrent use.
package provider

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
)

// Request is a webhook as it was received.
type Request struct {
	Method   string
	URL      string   // the public URL that the sender presumably used
	URLs     []string // further spellings to try if the URL is signed, in order
	RawQuery string   // as received, without the question mark
	Headers  hookglass.Headers
	Body     []byte // wire bytes, still compressed if there is a Content-Encoding

	ReceivedAt time.Time // timestamps are compared with it, not with the time of viewing
	Hint       string    // the endpoint's provider field: breaks a tie, never overrides

	// Keys returns the key that a sender publishes at a URL, or nil if it is not known. It must not block. It may be
	// nil.
	Keys func(KeyRef) []byte
}

// Received returns a captured webhook as a request, without a hint and keys.
func Received(e *hookglass.Event) *Request {
	return &Request{
		Method: e.Method, URL: e.URL, RawQuery: e.RawQuery,
		Headers: e.Headers, Body: e.Body, ReceivedAt: e.ReceivedAt,
	}
}

// Detection is what a request claims about itself. Nothing in it is proven; see Verify. Empty fields are unknown.
type Detection struct {
	Provider   string // hookglass.UnknownProvider rather than a guess
	EventType  string
	EventID    string // identifies the event; the same in all its deliveries
	DeliveryID string // identifies this delivery
	Relay      string // a tunnel or gateway that relayed the request
	Inner      string // the provider inside an envelope
	Flavour    string // the variant of a provider, for example forgejo
}

// Config is an enabled signature configuration of an endpoint with its secrets in the clear.
type Config struct {
	ID       int64
	Provider string
	Secrets  []string // any may match, for rotation; the first is used to sign
	Options  hookglass.GenericOptions
}

// Verdict is the outcome of a signature check.
type Verdict struct {
	Status      hookglass.SignatureStatus
	Reason      string  // a stable code, when failed, or key_unavailable
	Message     string  // with a Reason: one sentence for the user, without secrets or the expected signature
	ConfigID    int64   // the config that matched
	SecretIndex int     // which of its secrets matched
	Needs       *KeyRef // with key_unavailable: the key that is needed
}

// Finding is the result of Diagnose.
type Finding struct {
	Code     string // stable
	Message  string // one sentence that the user can act on
	ConfigID int64  // the config whose secret matched, 0 when none did
}

// Answer is the reply to a handshake.
type Answer struct {
	Status  int
	Headers hookglass.Headers
	Body    []byte
	// Ordinary marks an answer that a sender expects to each delivery rather than to a handshake; an endpoint's own
	// answer takes precedence.
	Ordinary bool
}

// Outgoing is a request to send: a sample, or a captured request to a target.
type Outgoing struct {
	Method  string
	URL     string // the whole target
	Headers hookglass.Headers
	Body    []byte
}

// Identity is the material of a new delivery identity (see Regenerate).
type Identity struct {
	UUID   string // for delivery-id headers
	Suffix string // for strings in a body: "_rpl_" and 12 hex digits
	Digits string // for integers in a body: 4 digits
}

// Info describes a provider.
type Info struct {
	ID         string
	Name       string
	Verifiable bool // signatures can be checked with a configured secret
	Signable   bool // signatures can be made with a configured secret
}

// SampleEvent names one of the embedded samples.
type SampleEvent struct {
	Provider  string
	Event     string // the name used with Sample
	EventType string // the result of Detect; empty if the sender names none
}

// Known describes the provider with the given id.
func Known(id string) (Info, bool) {
	s := table().byID[id]
	if s == nil {
		return Info{}, false
	}
	return s.info(), true
}

// Identified reports whether the sender's id of an event, that of the delivery or else that of the event, is of no
// other event, apart from further attempts. Some ids are those of what an event is about, or of the first of a batch.
func Identified(e *hookglass.Event) bool {
	s := table().byID[e.Provider]
	switch {
	case e.DeliveryID != "":
		return uncut(e.DeliveryID) && (s == nil || s.SharedID == "" || e.Payload == nil || e.Headers.Get(s.SharedID) != e.DeliveryID)
	case e.Payload != nil && e.Headers.Get("Webhook-Id") != "": // Standard Webhooks
		return true
	}
	return e.EventRef != "" && uncut(e.EventRef) && s != nil && s.EventOnce
}

// uncut reports whether an id is as its sender wrote it, see printable.
func uncut(id string) bool {
	return len(id) <= fieldBytes-utf8.UTFMax && !strings.ContainsRune(id, utf8.RuneError)
}

// Providers describes all providers, by id.
func Providers() []Info {
	var all []Info
	for _, s := range table().all {
		all = append(all, s.info())
	}
	slices.SortFunc(all, func(a, b Info) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (s *sender) info() Info {
	return Info{
		ID: s.ID, Name: s.Name,
		Verifiable: len(s.Signatures) > 0 || s.check != nil || s.ID == GenericHMAC,
		Signable:   s.signable(),
	}
}
