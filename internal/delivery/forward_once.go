package delivery

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/outbound"
)

// shownBody is how much of an answer is redacted to be shown: enough that nothing which is shown was cut before.
const shownBody = 16 << 10

// ForwardOnce makes one attempt to forward an event to a URL, and tells how long the target asks to be left alone. What
// is kept of an answer goes through redact first; now is the clock that its time is told by. It reports false where it
// was none: nobody had a turn for it, or the context ended; then it counts for nothing. turn is of the key; nil: it is
// waited for within the timeout.
func ForwardOnce(ctx context.Context, c Client, key string, turn *outbound.Turn, timeout time.Duration, e *hookglass.Event, url string, proxied bool, redact func(string) string, now func() time.Time) (a hookglass.ForwardAttempt, retryAfter time.Duration, made bool) {
	r, failure := buildForward(e, url, proxied, now())
	if failure != nil {
		return hookglass.ForwardAttempt{At: now().UTC(), Failure: failure}, 0, true
	}
	a.At, r.Turn = now().UTC(), turn
	out := Send(ctx, c, key, timeout, r)
	a.Duration = out.Duration
	if out.Failure != nil {
		a.Failure = &hookglass.Failure{Code: out.Failure.Code, Message: redact(out.Failure.Message)}
		return a, 0, !withdrawn(a)
	}
	a.StatusCode = out.Response.Status
	body, longer := said(out.Response, shownBody)
	a.Body, a.Truncated = beginning([]byte(redact(string(body))))
	a.Truncated = a.Truncated || longer
	return a, outbound.RetryAfter(out.Response.Headers, now(), hookglass.MaxForwardWait), true
}

// RenderForward is the request that ForwardOnce would send.
func RenderForward(e *hookglass.Event, url string, proxied bool) (hookglass.SentRequest, *hookglass.Failure) {
	r, failure := buildForward(e, url, proxied, time.Now())
	return r.SentRequest, failure
}
