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
	CodeDNSError          Code = "dns_error"          // the name has no address, or none in time
	CodeConnectionRefused Code = "connection_refused" // refused, or no way there
	CodeTLSError          Code = "tls_error"          // the handshake failed, or the certificate is not good
	CodeTimeout           Code = "timeout"            // the time allowed passed
	CodeReset             Code = "reset"              // the target closed before its answer was complete
	CodeProtocolError     Code = "protocol_error"     // what the target answered is not HTTP/1.1
	CodeResponseTooLarge  Code = "response_too_large" // the head of the answer passes its bounds
	CodeCanceled          Code = "canceled"           // the caller's context was canceled
)

// Withheld reports a failure that is no fault of the target, and tells nothing of it: the request had no turn, or its
// caller went away.
func (c Code) Withheld() bool { return c == CodeBusy || c == CodeCanceled }

// SentState says whether the target may have seen anything of a request that failed.
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

// Failure is why a request has no complete answer. Its message is one sentence for a person, and safe to show: it names
// no address and quotes nothing of the request.
//
// A Failure for a forbidden target wraps a hookglass.Error with target_not_allowed, and one for a request that cannot
// be sent wraps one with validation_failed, so that hookglass.CodeOf tells them apart from the rest.
type Failure struct {
	Code    Code
	Message string
	Sent    SentState

	// RequestHeaders are those of Response, as sent or as they would have been; nil for what is no request.
	RequestHeaders hookglass.Headers

	refusal *hookglass.Error
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Message }

// Unwrap returns the refusal that an API answers with 422, if the failure is one.
func (f *Failure) Unwrap() error {
	if f.refusal == nil {
		return nil
	}
	return f.refusal
}

func failed(code Code, message string) *Failure { return &Failure{Code: code, Message: message} }

// forbidden refuses a target. The field is the wire name of what held the URL.
func forbidden(field string) *hookglass.Error {
	return &hookglass.Error{
		Code:    hookglass.CodeTargetNotAllowed,
		Message: "Outbound protection does not allow this target.",
		Details: []hookglass.FieldError{{Field: field, Message: "is not a public address, or not a port that may be reached"}},
	}
}

// refuse makes the failure of a refusal.
func refuse(err *hookglass.Error) *Failure {
	code := CodeInvalidRequest
	if err.Code == hookglass.CodeTargetNotAllowed {
		code = CodeTargetNotAllowed
	}
	return &Failure{Code: code, Message: err.Message, refusal: err}
}
