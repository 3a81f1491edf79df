package ingest

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hookglass"
)

// Codes of refusals that are specific to HTTP, in addition to those of spec: decisions, section 3.
const (
	codeBadRequest      hookglass.Code = "bad_request"
	codeRequestTimeout  hookglass.Code = "request_timeout"
	codeURITooLong      hookglass.Code = "uri_too_long"
	codeExpectation     hookglass.Code = "expectation_failed"
	codeHeadersTooLarge hookglass.Code = "headers_too_large"
)

// defaultRetry is the Retry-After of 503.
const defaultRetry = 5 * time.Second

var (
	errNotFound        = refuse(http.StatusNotFound, hookglass.CodeNotFound, "There is no such endpoint.")
	errMethod          = refuse(http.StatusMethodNotAllowed, hookglass.CodeMethodNotAllowed, "An endpoint does not accept this method.")
	errMailMethod      = &refusal{status: http.StatusMethodNotAllowed, code: hookglass.CodeMethodNotAllowed, message: "Mail is sent here by POST.", allow: http.MethodPost}
	errTooLarge        = refuse(http.StatusRequestEntityTooLarge, hookglass.CodePayloadTooLarge, "The body is larger than this service accepts.")
	errURITooLong      = &refusal{status: http.StatusRequestURITooLong, code: codeURITooLong, message: "The request line is too long.", close: true}
	errHeadersTooLarge = &refusal{status: http.StatusRequestHeaderFieldsTooLarge, code: codeHeadersTooLarge, message: "The headers are too large or too many.", close: true}
	errExpectation     = refuse(http.StatusExpectationFailed, codeExpectation, "The only expectation understood is 100-continue.")
	errSlow            = &refusal{status: http.StatusRequestTimeout, code: codeRequestTimeout, message: "The request did not come in time.", close: true}
	errCutShort        = malformed("The body ended before its length was reached.")
	errStopping        = refuse(http.StatusServiceUnavailable, hookglass.CodeUnavailable, "The service is stopping.")
	errInternal        = &refusal{status: http.StatusInternalServerError, code: hookglass.CodeInternal, message: "Something went wrong here; it has been recorded.", close: true}
)

// refusal is an answer other than a reply. It is an error, so that a body's reader can return it.
type refusal struct {
	status     int
	code       hookglass.Code
	message    string
	retryAfter time.Duration
	allow      string // with 405; empty: the methods of webhooks
	close      bool   // nothing more can be read from the connection
}

func (r *refusal) Error() string { return string(r.code) + ": " + r.message }

func refuse(status int, code hookglass.Code, message string) *refusal {
	return &refusal{status: status, code: code, message: message}
}

func malformed(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: codeBadRequest, message: message, close: true}
}

// refusalOf converts an error of the capturer to a refusal. Everything that is not found gets the same message.
func refusalOf(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	var e *hookglass.Error
	if !errors.As(err, &e) {
		e = &hookglass.Error{Code: hookglass.CodeInternal}
	}
	switch e.Code {
	case hookglass.CodeNotFound:
		return errNotFound
	case hookglass.CodeGone:
		return refuse(http.StatusGone, e.Code, cmp.Or(e.Message, "This endpoint is disabled."))
	case hookglass.CodePayloadTooLarge:
		return errTooLarge
	case hookglass.CodeUnsupportedMediaType:
		return refuse(http.StatusUnsupportedMediaType, e.Code, e.Message)
	case hookglass.CodeInvalidJSON:
		return refuse(http.StatusBadRequest, e.Code, e.Message)
	case hookglass.CodeValidationFailed:
		return refuse(http.StatusUnprocessableEntity, e.Code, e.Message)
	case hookglass.CodeRateLimited:
		return &refusal{status: http.StatusTooManyRequests, code: e.Code, message: cmp.Or(e.Message, "Too many requests."), retryAfter: cmp.Or(e.RetryAfter, time.Second)}
	case hookglass.CodeUnavailable:
		return &refusal{status: http.StatusServiceUnavailable, code: e.Code, message: cmp.Or(e.Message, "The webhook could not be stored now."), retryAfter: e.RetryAfter}
	}
	return errInternal
}

// reply returns the refusal in the format of spec: decisions, section 3.
func (r *refusal) reply() *hookglass.Reply {
	retry := r.retryAfter
	if r.status == http.StatusServiceUnavailable {
		retry = cmp.Or(retry, defaultRetry)
	}
	seconds := int64(math.Ceil(retry.Seconds()))
	body, _ := json.Marshal(struct {
		Error      hookglass.Code `json:"error"`
		Message    string         `json:"message"`
		RetryAfter int64          `json:"retry_after,omitempty"`
	}{r.code, r.message, seconds}) // strings and a number: it cannot fail
	headers := hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}
	if r.status == http.StatusMethodNotAllowed {
		headers = append(headers, hookglass.Header{Name: "Allow", Value: cmp.Or(r.allow, strings.Join(hookglass.Methods, ", "))})
	}
	if seconds > 0 {
		headers = append(headers, hookglass.Header{Name: "Retry-After", Value: strconv.FormatInt(seconds, 10)})
	}
	return &hookglass.Reply{Status: r.status, Headers: headers, Body: body}
}
