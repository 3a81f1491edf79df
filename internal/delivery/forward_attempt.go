package delivery

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/outbound"
	"hookglass/internal/redact"
)

// Backoff of deliveries (spec: decisions, section 13, "Forward"). A longer Retry-After is heeded up to
// [hookglass.MaxForwardWait], so that a target cannot park its deliveries.
const (
	firstBackoff = time.Second
	maxBackoff   = time.Minute
)

// keptRunes is how many characters of an answer are kept (spec, "Limits", Forward response body).
const keptRunes = 500

// Codes of failures that no target causes.
const (
	codeAbandoned = "abandoned" // the processes that had it in hand died each time
	codeInternal  = "internal"
	codeHeaders   = "headers_sealed" // retried: a node with the right keys may send it
)

// Delayed chooses the delay of a retry, from zero to the bound.
type Delayed func(bound time.Duration) time.Duration

// own holds the headers that a target adds to every request, by name.
type own map[string]string

// overrides returns the overrides that set the headers on a request.
func (o own) overrides() (v Overrides) {
	if len(o) > 0 {
		v.Headers = make(map[string]*string, len(o))
	}
	for name, value := range o {
		v.Headers[name] = &value
	}
	return v
}

// secrets returns the values to redact in what is kept of an attempt, because a target may echo them. Short values,
// such as "true", are left alone unless the name says that they are a credential. A credential is redacted without its
// scheme too, and so are the values of its parameters or cookies, and for Basic the password alone.
func (o own) secrets() (all []redact.Mask) {
	add := func(secret string) { all = append(all, redact.Mask{Value: secret}) }
	for name, value := range o {
		if !redact.Credential(name) {
			if len(value) >= minCredential {
				all = append(all, redact.Mask{Value: value, Whole: true})
			}
			continue
		}
		add(value)
		rest := value
		if i := strings.IndexAny(value, " \t"); i >= 0 {
			rest = strings.TrimSpace(value[i:])
			add(rest)
			plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(rest, "="))
			if err == nil && strings.EqualFold(value[:i], "Basic") {
				_, password, _ := strings.Cut(string(plain), ":")
				add(string(plain))
				add(password)
			}
		}
		for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ';' }) {
			if _, parameter, named := strings.Cut(part, "="); named {
				add(strings.Trim(parameter, ` "`))
			}
		}
	}
	return all
}

// redact redacts the values of these headers in h, however short they are. It changes h.
func (o own) redact(h hookglass.Headers) {
	for i := range h {
		for name := range o {
			if strings.EqualFold(h[i].Name, name) {
				h[i].Value = hookglass.Redacted
			}
		}
	}
}

// buildForward builds the request that forwards an event to a target, with the headers that the target adds. Its
// failure is final.
func buildForward(e *hookglass.Event, target string, headers own, proxied bool, now time.Time) (Request, *hookglass.Failure) {
	r, err := Build(Order{Event: e, TargetURL: target, Overrides: headers.overrides(), Proxied: proxied, At: now, Unwarned: true})
	r.own = headers
	if err != nil {
		return r, &hookglass.Failure{Code: string(hookglass.CodeOf(err)), Message: "The event cannot be sent as a request."}
	}
	// A forward is the delivery itself, not a replay.
	r.Headers = slices.DeleteFunc(r.Headers, func(h hookglass.Header) bool { return h.Name == headerReplay || h.Name == headerTime })
	var looped *outbound.Failure
	if r.Headers, err = outbound.NextHop(r.Headers); errors.As(err, &looped) {
		return r, &hookglass.Failure{Code: string(looped.Code), Message: looped.Message}
	}
	return r, nil
}

// attempt sends a request. It returns the attempt, the evidence of what was sent and answered, and the target's
// Retry-After.
func (f *Forwarder) attempt(ctx context.Context, s *settled, r Request) (a hookglass.ForwardAttempt, e *hookglass.ForwardEvidence, retryAfter time.Duration) {
	a.At, r.MaxResponse = f.Now().UTC(), readBody
	out := Send(ctx, f.Client, tenant(&s.queue), s.queue.Target.Timeout, r)
	a.Duration = out.Duration
	secrets := secretsIn(r.own.secrets(), out.Headers)
	e = evidenceOf(s.event, r, out, secrets)
	if out.Failure != nil {
		a.Failure = out.Failure
		return a, e, 0
	}
	a.StatusCode = out.Response.Status
	text, longer := said(out.Response, readBody)
	a.Body, a.Truncated = beginning([]byte(secrets.Cut(string(text))))
	a.Truncated = a.Truncated || longer
	return a, e, outbound.RetryAfter(out.Response.Headers, f.Now(), hookglass.MaxForwardWait)
}

// readBody is how much of an answer is read. It is more than is kept, so that few targets see their connection closed
// in mid-answer, and far below a megabyte, because many targets may answer at once.
const readBody = 64 << 10

// keptBody is how much of a body is kept of each attempt. The event holds all of what was sent.
const keptBody = 8 << 10

// evidenceOf returns what is kept of an attempt. A body that equals the event's is not kept a second time.
func evidenceOf(ev *hookglass.Event, r Request, out Outcome, secrets *redact.Redactor) *hookglass.ForwardEvidence {
	sent := r.SentRequest
	e := &hookglass.ForwardEvidence{Request: sent}
	if e.Request.Headers = RedactHeaders(out.Headers, secrets); len(r.own) > 0 {
		e.Request.Headers = slices.Clone(e.Request.Headers)
		r.own.redact(e.Request.Headers)
	}
	if len(sent.Body) > keptBody {
		e.Request.Body, e.Request.Truncated = Beginning(sent.Body, keptBody), true
	}
	if bytes.Equal(sent.Body, ev.Body) {
		e.EventBody, e.Request.Body = len(e.Request.Body), nil
	}
	if res := out.Response; res != nil {
		kept := *res
		kept.Headers, kept.Body = RedactHeaders(res.Headers, secrets), RedactBody(res.Body, res.Headers, secrets)
		if len(kept.Body) > keptBody {
			kept.Body, kept.Truncated = Beginning(kept.Body, keptBody), true
		}
		e.Response = &kept
	}
	return e
}

// said returns the decoded body of an answer, up to most bytes. longer reports whether there is more.
func said(res *hookglass.TargetResponse, most int) (body []byte, longer bool) {
	body, longer = coding.Plain(res.Body, res.Headers, most+1), res.Truncated
	if len(body) > most {
		body, longer = body[:most], true
	}
	return body, longer
}

// beginning returns the first keptRunes characters of a body; bytes that are not UTF-8 are replaced.
func beginning(body []byte) (text string, cut bool) {
	prefix := body[:min(len(body), keptRunes*utf8.UTFMax)]
	text = strings.ToValidUTF8(string(prefix), string(utf8.RuneError))
	n := 0
	for i := range text {
		if n++; n > keptRunes {
			return text[:i], true
		}
	}
	return text, len(prefix) < len(body)
}

// JudgeForward decides the state of a delivery after an attempt: delivered, failed, or pending with the delay of the
// retry. made is the number of attempts so far, retries how many may follow the first.
func JudgeForward(last hookglass.ForwardAttempt, made, retries int, retryAfter time.Duration, delay Delayed) (hookglass.ForwardState, time.Duration) {
	switch {
	case last.Failure == nil && last.StatusCode >= 200 && last.StatusCode <= 299:
		return hookglass.ForwardDelivered, 0
	case made > retries || !retriable(last):
		return hookglass.ForwardFailed, 0
	}
	bound := min(firstBackoff<<min(made-1, 30), maxBackoff)
	return hookglass.ForwardPending, max(delay(bound), retryAfter)
}

// retriable reports whether a retry may help: after connection errors, 408, 425, 429 and 5xx (spec: decisions, section
// 8).
func retriable(a hookglass.ForwardAttempt) bool {
	if a.Failure == nil {
		return a.StatusCode == 408 || a.StatusCode == 425 || a.StatusCode == 429 || a.StatusCode >= 500 && a.StatusCode <= 599
	}
	switch outbound.Code(a.Failure.Code) {
	case codeHeaders, outbound.CodeDNSError, outbound.CodeConnectionRefused, outbound.CodeTLSError, outbound.CodeTimeout, outbound.CodeReset:
		return true
	}
	return false
}

// failedLine returns the activity line of a delivery that has failed for good (spec: decisions, section 8).
func failedLine(t hookglass.ForwardingTarget, e *hookglass.Event, a hookglass.ForwardAttempt, made int) hookglass.Activity {
	data := map[string]any{"target_id": t.ID, "url_host": "", "status_code": nil, "error": nil, "attempts": made}
	if u, err := url.Parse(t.URL); err == nil {
		data["url_host"] = u.Host
	}
	if a.Failure != nil {
		data["error"] = map[string]any{"code": a.Failure.Code, "message": a.Failure.Message}
	} else {
		data["status_code"] = a.StatusCode
	}
	return hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: a.At, EndpointID: e.EndpointID, EventID: e.ID, Data: data}
}
