package outbound

import "hookglass"

// Code is the stable word of a Failure.
type Code string

// The codes of a Failure.
const (
	CodeInvalidRequest    Code = "invalid_request"    // the URL, a header or the method cannot be sent
	CodeTargetNotAllowed  Code = "target_not_allowed" // protection forbids the target
	CodeLoopDetected      Code = "loop_detected"      // forwarded too often already; see NextHop
	CodeBusy              Code = "busy"               // no turn came within the time allowed
	CodeDNSError          Code = "dns_error"          // the name has no address, or was not resolved in time
	CodeConnectionRefused Code = "connection_refused" // refused, or unreachable
	CodeTLSError          Code = "tls_error"          // the handshake failed, or the certificate is not valid
	CodeTimeout           Code = "timeout"            // the time allowed passed
	CodeReset             Code = "reset"              // the target closed before its response was complete
	CodeProtocolError     Code = "protocol_error"     // the response is not HTTP/1.1
	CodeResponseTooLarge  Code = "response_too_large" // the head of the response exceeds its bounds
	CodeCanceled          Code = "canceled"           // the caller's context was canceled
)

// Withheld reports whether the failure is no fault of the target and says nothing about it: the request had no turn, or
// its caller canceled.
func (c Code) Withheld() bool { return c == CodeBusy || c == CodeCanceled }

// SentState says whether the target may have seen any of a failed request.
type SentState int

// The sent states.
const (
	NotSent   SentState = iota // failed before the first byte of the request was written
	MaybeSent                  // some of the request may have reached the target
)

func (s SentState) String() string {
	if s == NotSent {
		return "not sent"
	}
	return "maybe sent"
}

// Failure says why a request has no complete response. Its message is one sentence for a person, and safe to show: it
// names no address and quotes nothing of the request.
//
// A Failure for a forbidden target wraps a hookglass.Error with target_not_allowed, and one for a request that cannot
// be sent wraps one with validation_failed: hookglass.CodeOf finds these codes.
type Failure struct {
	Code    Code
	Message string
	Sent    SentState

	// RequestHeaders are those of Response, as sent or as they would have been; nil if the request was not valid.
	RequestHeaders hookglass.Headers

	refusal *hookglass.Error
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Message }

// Unwrap returns the hookglass.Error of a refusal, which the API answers with 422, or nil for other failures.
func (f *Failure) Unwrap() error {
	if f.refusal == nil {
		return nil
	}
	return f.refusal
}

func failed(code Code, message string) *Failure { return &Failure{Code: code, Message: message} }

// forbidden makes the error for a forbidden target. field is the wire name of the field that held the URL.
func forbidden(field string) *hookglass.Error {
	return &hookglass.Error{
		Code:    hookglass.CodeTargetNotAllowed,
		Message: "Outbound protection does not allow this target.",
		Details: []hookglass.FieldError{{Field: field, Message: "is not a public address, or not a port that may be reached"}},
	}
}

// refuse wraps a refusal in a Failure.
func refuse(err *hookglass.Error) *Failure {
	code := CodeInvalidRequest
	if err.Code == hookglass.CodeTargetNotAllowed {
		code = CodeTargetNotAllowed
	}
	return &Failure{Code: code, Message: err.Message, refusal: err}
}
