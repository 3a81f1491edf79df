// Package provider knows the senders of webhooks: who sent a request, what it announces, whether it is genuine
// and why not, how a sender's handshake is answered, and how a delivery is signed or given a new identity.
//
// It is pure: no clock, no network, no storage. Requests go in, verdicts and new requests come out. Six providers
// (github, stripe, shopify, slack, twilio, generic_hmac) have a file each; all others are rows of table.json, whose
// signature schemes are a closed set of algorithms (see scheme.go). A contributor adds a provider by adding a row
// and a vector. Everything is safe for concurrent use.
package provider

import (
	"slices"
	"strings"
	"time"

	"hookglass"
)

// Request is a webhook as it was received.
type Request struct {
	Method   string
	URL      string   // the configured public form, as the sender is believed to have used it
	URLs     []string // further spellings to try where the URL is signed, in order
	Path     string
	RawQuery string // as received, without the question mark
	Headers  hookglass.Headers
	Body     []byte // wire bytes, still compressed where Content-Encoding says so

	ReceivedAt time.Time // timestamps are judged against it, never against the time of viewing
	Hint       string    // the endpoint's provider field: breaks a tie, never overrides

	// Keys returns what a sender publishes at an address, nil when that is not known. It must not wait. Without it no
	// such key is known.
	Keys func(KeyRef) []byte
}

// Detection is what a request says about itself. Nothing in it is proven; see Verify. Empty: not known.
type Detection struct {
	Provider   string // hookglass.UnknownProvider rather than a guess
	EventType  string
	EventID    string // names the event, equal in every delivery of it
	DeliveryID string // names this delivery
	Relay      string // a tunnel or gateway that passed the request on
	Inner      string // the provider inside an envelope
	Flavour    string // the variant of a provider, for example forgejo
}

// Config is an enabled signature configuration of an endpoint with its secrets in the clear.
type Config struct {
	ID       int64
	Provider string
	Secrets  []string // any may match while a secret is being rotated; the first signs
	Options  hookglass.GenericOptions
}

// Verdict is the outcome of a signature check.
type Verdict struct {
	Status      hookglass.SignatureStatus
	Reason      string  // a stable code, when failed, or key_unavailable
	Message     string  // one sentence for a person, where there is a reason; holds neither secret nor expected signature
	ConfigID    int64   // the config that matched
	SecretIndex int     // which of its secrets matched
	Needs       *KeyRef // with key_unavailable: the key to judge with
}

// Finding is what Diagnose found out about a signature.
type Finding struct {
	Code        string // stable; see the Finding constants
	Message     string // one sentence that a person can act on
	ConfigID    int64  // the config whose secret matched, 0 when none did
	SecretIndex int
}

// Answer is the reply to a handshake.
type Answer struct {
	Status  int
	Headers hookglass.Headers
	Body    []byte
	// Ordinary marks the answer that a sender wants for each delivery rather than for a question: an endpoint's own
	// answer goes before it.
	Ordinary bool
}

// Outgoing is a request to be sent: a sample, or a captured request on its way to a target.
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
	ID               string
	Name             string
	FirstClass       bool
	Verifiable       bool     // signatures can be checked with a configured secret
	Signable         bool     // signatures can be made with a configured secret
	SignatureHeaders []string // what Strip removes
}

// SampleEvent names one of the embedded samples.
type SampleEvent struct {
	Provider  string
	Event     string // the name used with Sample
	EventType string // what Detect will say; empty where the sender names none
}

// Known describes the provider with the given id.
func Known(id string) (Info, bool) {
	s := table().byID[id]
	if s == nil {
		return Info{}, false
	}
	return s.info(), true
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
		ID: s.ID, Name: s.Name, FirstClass: s.firstClass, SignatureHeaders: slices.Clone(s.Strip),
		Verifiable: len(s.Signatures) > 0 || s.check != nil || s.ID == GenericHMAC,
		Signable:   s.signable(),
	}
}
