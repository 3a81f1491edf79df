package hookglass

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code is the stable word of an error, the "error" of an answer (spec: decisions, section 3).
type Code string

// The codes in use.
const (
	CodeUnauthorized          Code = "unauthorized"
	CodeInsufficientScope     Code = "insufficient_scope"
	CodeForbidden             Code = "forbidden"
	CodePlanRequired          Code = "plan_required"
	CodePaymentMethodRequired Code = "payment_method_required"
	CodeSubscriptionRequired  Code = "subscription_required"
	CodeNotFound              Code = "not_found"
	CodeMethodNotAllowed      Code = "method_not_allowed"
	CodeConflict              Code = "conflict"
	CodeStaleLockVersion      Code = "stale_lock_version"
	CodeIdempotencyConflict   Code = "idempotency_conflict"
	CodeSignatureConfigExists Code = "signature_config_exists"
	CodeSecretInUse           Code = "secret_in_use"
	CodePayloadTooLarge       Code = "payload_too_large"
	CodeUnsupportedMediaType  Code = "unsupported_media_type"
	CodeInvalidJSON           Code = "invalid_json"
	CodeValidationFailed      Code = "validation_failed"
	CodeTargetNotAllowed      Code = "target_not_allowed"
	CodeReleaseOff            Code = "release_off"
	CodeRecipientNotAllowed   Code = "recipient_not_allowed"
	CodeNotAMail              Code = "not_a_mail"
	CodeNoRawMessage          Code = "no_raw_message"
	CodeRateLimited           Code = "rate_limited"
	CodeInternal              Code = "internal"
	CodeUnavailable           Code = "unavailable"

	// CodeUpgradeRequired comes from the tunnel's socket only, for requests that do not open a WebSocket (RFC 9110,
	// section 15.5.22).
	CodeUpgradeRequired Code = "upgrade_required"

	// CodeGone comes from reception only, for a disabled endpoint (spec: decisions, section 4).
	CodeGone Code = "gone"
)

// Error is a failure that the caller may see. Any other error is internal: its text goes to the log, never into an
// answer.
type Error struct {
	Code       Code
	Message    string         // one sentence for a person
	Details    []FieldError   // with validation_failed
	RetryAfter time.Duration  // with rate_limited and unavailable
	Extra      map[string]any // more members of the answer, for example references
	Err        error          // the cause, for the log
}

// FieldError says what is wrong with one field of what was sent.
type FieldError struct {
	Field   string // dotted wire name, for example endpoint.name
	Message string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.Message != "" {
		b.WriteString(": ")
		b.WriteString(e.Message)
	}
	for _, d := range e.Details {
		fmt.Fprintf(&b, "; %s %s", d.Field, d.Message)
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error with a code and a sentence for a person.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// NotFound says that the named kind of thing does not exist for this caller.
func NotFound(kind string) *Error {
	return Errorf(CodeNotFound, "There is no such %s.", kind)
}

// Invalid returns a validation failure of one field.
func Invalid(field, format string, args ...any) *Error {
	return InvalidFields([]FieldError{{field, fmt.Sprintf(format, args...)}})
}

// InvalidFields returns a validation failure of the given fields, or nil if there are none, so that a validator can
// end with it. Check the result for nil before it becomes an error: a nil *Error in an error is not nil.
func InvalidFields(fields []FieldError) *Error {
	if len(fields) == 0 {
		return nil
	}
	msg := "The request is not valid."
	if len(fields) == 1 {
		msg = fields[0].Field + " " + fields[0].Message + "."
	}
	return &Error{Code: CodeValidationFailed, Message: msg, Details: fields}
}

// Refusal joins the faults in fields with err. If err is a validation failure too, the result lists both and keeps
// err's Extra; with any other err, the faults win. Without faults it returns err.
func Refusal(fields []FieldError, err error) error {
	if len(fields) == 0 {
		return err
	}
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeValidationFailed {
		return InvalidFields(fields)
	}
	all := InvalidFields(append(fields[:len(fields):len(fields)], e.Details...))
	all.Extra = e.Extra
	return all
}

// CodeOf returns the code that err carries, or internal.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }
