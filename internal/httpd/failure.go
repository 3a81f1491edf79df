package httpd

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"hookglass"
	"hookglass/api"
)

// Errors that all edges answer alike.
var (
	ErrNowhere  = hookglass.Errorf(hookglass.CodeNotFound, "There is nothing at this address.")
	ErrMethod   = hookglass.Errorf(hookglass.CodeMethodNotAllowed, "This address does not answer to this method.")
	ErrInternal = hookglass.Errorf(hookglass.CodeInternal, "Something went wrong here; it has been recorded.")
)

// defaultRetry is the Retry-After of errors that have none of their own.
const defaultRetry = 5 * time.Second

// statusOf returns the HTTP status of a code (spec, "Errors"; spec: decisions, section 3).
func statusOf(code hookglass.Code) int {
	switch code {
	case hookglass.CodeInvalidJSON:
		return http.StatusBadRequest
	case hookglass.CodeUnauthorized:
		return http.StatusUnauthorized
	case hookglass.CodeInsufficientScope, hookglass.CodeForbidden,
		hookglass.CodePlanRequired, hookglass.CodePaymentMethodRequired, hookglass.CodeSubscriptionRequired:
		return http.StatusForbidden
	case hookglass.CodeNotFound:
		return http.StatusNotFound
	case hookglass.CodeMethodNotAllowed:
		return http.StatusMethodNotAllowed
	case hookglass.CodeConflict, hookglass.CodeStaleLockVersion, hookglass.CodeIdempotencyConflict,
		hookglass.CodeSignatureConfigExists, hookglass.CodeSecretInUse:
		return http.StatusConflict
	case hookglass.CodeGone:
		return http.StatusGone
	case hookglass.CodePayloadTooLarge:
		return http.StatusRequestEntityTooLarge
	case hookglass.CodeUnsupportedMediaType:
		return http.StatusUnsupportedMediaType
	case hookglass.CodeValidationFailed, hookglass.CodeTargetNotAllowed,
		hookglass.CodeReleaseOff, hookglass.CodeRecipientNotAllowed, hookglass.CodeNotAMail, hookglass.CodeNoRawMessage:
		return http.StatusUnprocessableEntity
	case hookglass.CodeUpgradeRequired:
		return http.StatusUpgradeRequired
	case hookglass.CodeRateLimited:
		return http.StatusTooManyRequests
	case hookglass.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// Failure is an error in the form in which it is answered. It is an error itself, with the methods by which the REST
// framework finds its status, headers and media type.
type Failure struct {
	Status int
	Header http.Header
	Body   api.Error
	extra  map[string]any
}

// Fail converts an error to its answer. An error without a code becomes "internal"; only that is logged, here and once,
// and its text is not answered. Unavailable is logged as a warning. Nothing is logged if the error is only that the
// caller has gone.
func Fail(ctx context.Context, err error) *Failure {
	r := From(ctx)
	var e *hookglass.Error
	if !errors.As(err, &e) {
		e = ErrInternal
		if !errors.Is(err, context.Canceled) || ctx.Err() == nil {
			r.log.ErrorContext(ctx, "a request failed", "error", err, "request", r.ID)
		}
	} else if e.Code == hookglass.CodeUnavailable && ctx.Err() == nil {
		r.log.WarnContext(ctx, "a request could not be served", "error", err, "request", r.ID)
	}
	f := &Failure{
		Status: statusOf(e.Code), Header: make(http.Header),
		Body: api.Error{Error: string(e.Code), Message: e.Message}, extra: e.Extra,
	}
	for _, d := range e.Details {
		f.Body.Details = append(f.Body.Details, api.FieldError{Field: d.Field, Message: d.Message})
	}
	switch e.Code {
	case hookglass.CodeUnauthorized:
		f.Header.Set("WWW-Authenticate", "Bearer")
	case hookglass.CodeInsufficientScope:
		f.Header.Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
	case hookglass.CodeRateLimited:
		f.Body.RetryAfter = seconds(e.RetryAfter)
		f.Header.Set("Retry-After", strconv.Itoa(f.Body.RetryAfter))
	case hookglass.CodeUnavailable:
		f.Header.Set("Retry-After", strconv.Itoa(seconds(e.RetryAfter)))
	}
	return f
}

// BrokeOff logs, as [Fail] does, an error after a part of the answer was sent, when it can no longer be answered. If
// the reader has gone it logs nothing.
func BrokeOff(ctx context.Context, err error) {
	if ctx.Err() == nil && !From(ctx).unread.Load() && !errors.Is(err, http.ErrAbortHandler) {
		Fail(ctx, err)
	}
}

// seconds rounds up, so that waiting that long is enough.
func seconds(d time.Duration) int {
	if d <= 0 {
		d = defaultRetry
	}
	return int(math.Ceil(d.Seconds()))
}

// Error implements error.
func (f *Failure) Error() string { return f.Body.Error + ": " + f.Body.Message }

// GetStatus tells the REST framework the status.
func (f *Failure) GetStatus() int { return f.Status }

// GetHeaders tells the REST framework the headers.
func (f *Failure) GetHeaders() http.Header { return f.Header }

// ContentType tells the REST framework the media type, whatever was negotiated.
func (f *Failure) ContentType(string) string { return "application/json" }

// MarshalJSON writes the common members of an error, and then those of its kind.
func (f *Failure) MarshalJSON() ([]byte, error) {
	body, err := api.JSON(f.Body)
	if err != nil || len(f.extra) == 0 {
		return body, err
	}
	extra, err := api.JSON(f.extra)
	if err != nil {
		return nil, err
	}
	return append(append(body[:len(body)-1], ','), extra[1:]...), nil
}

// WriteError answers a request with an error.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	f := Fail(r.Context(), err)
	body, err := api.JSON(f)
	if err != nil {
		From(r.Context()).log.Error("an error could not be written", "error", err)
		body, f.Status = []byte(`{"error":"internal"}`), http.StatusInternalServerError
	}
	h := w.Header()
	for name, values := range f.Header {
		h[name] = values
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(f.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n')) // nobody is left to tell
	}
}
