package hookglass

import "time"

// IdentityMode says whether a replayed webhook keeps its delivery identity (spec, "Replay").
type IdentityMode string

// The identity modes.
const (
	IdentityOriginal   IdentityMode = "original"
	IdentityRegenerate IdentityMode = "regenerate"
)

// SignatureMode says what happens to a replayed webhook's signature (spec, "Replay").
type SignatureMode string

// The signature modes.
const (
	SignaturePreserve SignatureMode = "preserve"
	SignatureStrip    SignatureMode = "strip"
	SignatureResign   SignatureMode = "resign"
)

// DefaultSignatureMode applies where a caller names no mode. The specification leaves it open; spec: decisions, section
// 7, settles it.
const DefaultSignatureMode = SignaturePreserve

// ReplayOptions are the modes of a replay. They apply to webhooks; mail ignores them.
type ReplayOptions struct {
	Identity  IdentityMode
	Signature SignatureMode
}

// ParseReplayOptions parses the modes; "" is the default of each. prefix is put before the field names in errors.
func ParseReplayOptions(prefix, identity, signature string) (ReplayOptions, []FieldError) {
	o := ReplayOptions{IdentityMode(identity), SignatureMode(signature)}
	var faults []FieldError
	switch o.Identity {
	case "":
		o.Identity = IdentityOriginal
	case IdentityOriginal, IdentityRegenerate:
	default:
		faults = append(faults, FieldError{prefix + "identity_mode", "must be original or regenerate"})
	}
	switch o.Signature {
	case "":
		o.Signature = DefaultSignatureMode
	case SignaturePreserve, SignatureStrip, SignatureResign:
	default:
		faults = append(faults, FieldError{prefix + "signature_mode", "must be preserve, strip or resign"})
	}
	return o, faults
}

// Plain reports whether the modes need no entitlement.
func (o ReplayOptions) Plain() bool {
	return o.Identity != IdentityRegenerate && o.Signature != SignatureResign
}

// TunnelTarget stands in place of a target URL for the connected local machine (spec: decisions, section 7).
const TunnelTarget = "tunnel"

// Failure says why there was no complete answer: a stable code and a sentence for a person.
type Failure struct{ Code, Message string }

// SentRequest is a request as it went out.
type SentRequest struct {
	Method    string
	URL       string
	Headers   Headers
	Body      []byte
	Truncated bool // Body is the beginning of a longer one
}

// TargetResponse is what a target answered.
type TargetResponse struct {
	Status    int
	Headers   Headers
	Body      []byte
	Truncated bool // Body is the beginning of a longer one
}

// Verdict compares a replay with the attempt before it at the same target.
type Verdict string

// The verdicts. An attempt passes when the target answers 2xx.
const (
	VerdictFixed        Verdict = "fixed"
	VerdictRegressed    Verdict = "regressed"
	VerdictStillFailing Verdict = "still_failing"
	VerdictStillPassing Verdict = "still_passing"
)

// Compare returns the verdict on an attempt, given whether the one before it and this one passed.
func Compare(before, now bool) Verdict {
	switch {
	case before && now:
		return VerdictStillPassing
	case before:
		return VerdictRegressed
	case now:
		return VerdictFixed
	}
	return VerdictStillFailing
}

// Replay is one attempt to deliver a captured event again.
type Replay struct {
	Num           int64 // the row; never shown
	ID            string
	EndpointNum   int64
	EventSeq      int64
	EventID       EventID
	TargetURL     string
	Options       ReplayOptions
	Request       SentRequest
	Response      *TargetResponse // nil: no complete answer came
	Failure       *Failure        // set when Response is nil
	Duration      time.Duration
	At            time.Time
	NewDeliveryID string   // empty: none was made
	Warnings      []string // sentences for a person
	Verdict       Verdict  // empty: the first attempt at this target
	BatchID       string   // empty: made by itself
	TimeShifted   bool     // times were to be moved; TimeChanges lists those that were. Not stored
	TimeChanges   []TimeChange
	DryRun        bool // it was built but not sent
}

// Passed reports whether the target took the event.
func (r *Replay) Passed() bool {
	return r.Response != nil && r.Response.Status >= 200 && r.Response.Status <= 299
}

// Prefixes of ids of replays.
const (
	PrefixReplay        = "rpl"
	PrefixReplayCase    = "rcase"
	PrefixReplayCaseRun = "rrun"
	PrefixReplayBatch   = "rbat"
)
