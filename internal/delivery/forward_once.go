package delivery

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/outbound"
)

// shownBody is how many bytes of an answer are redacted. It is more than is shown, so that no secret is cut in two
// before it is found.
const shownBody = 16 << 10

// Forwarding is what ForwardOnce needs for one attempt to forward an event.
type Forwarding struct {
	Event   *hookglass.Event
	URL     string
	Proxied bool // as in [Order]
	Timeout time.Duration
	Key     string              // as in [Send]
	Turn    *outbound.Turn      // of the key; nil: the timeout includes the wait for one
	Redact  func(string) string // applied to what is kept of an answer
	Now     func() time.Time    // the clock for the attempt's time
}

// ForwardOnce makes one attempt and returns the target's Retry-After. made is false when nothing was sent because there
// was no turn or the context ended: that does not count as an attempt.
func ForwardOnce(ctx context.Context, c Client, f Forwarding) (a hookglass.ForwardAttempt, retryAfter time.Duration, made bool) {
	r, failure := buildForward(f.Event, f.URL, nil, f.Proxied, f.Now())
	if failure != nil {
		return hookglass.ForwardAttempt{At: f.Now().UTC(), Failure: failure}, 0, true
	}
	a.At, r.Turn = f.Now().UTC(), f.Turn
	out := Send(ctx, c, f.Key, f.Timeout, r)
	a.Duration = out.Duration
	if out.Failure != nil {
		a.Failure = &hookglass.Failure{Code: out.Failure.Code, Message: f.Redact(out.Failure.Message)}
		return a, 0, !withdrawn(a)
	}
	a.StatusCode = out.Response.Status
	body, longer := said(out.Response, shownBody)
	a.Body, a.Truncated = beginning([]byte(f.Redact(string(body))))
	a.Truncated = a.Truncated || longer
	return a, outbound.RetryAfter(out.Response.Headers, f.Now(), hookglass.MaxForwardWait), true
}

// RenderForward returns the request that ForwardOnce would send.
func RenderForward(e *hookglass.Event, url string, proxied bool) (hookglass.SentRequest, *hookglass.Failure) {
	r, failure := buildForward(e, url, nil, proxied, time.Now())
	return r.SentRequest, failure
}
