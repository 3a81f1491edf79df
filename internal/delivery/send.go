package delivery

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/outbound"
	"hookglass/internal/provider"
	"hookglass/internal/redact"
)

// Client sends requests: outbound.Client, or a test's imitation of a network.
type Client interface {
	// Check validates the spelling of a URL. It answers validation_failed and target_not_allowed.
	Check(field, rawURL string) error
	// Do sends a request once. Its error is a *outbound.Failure.
	Do(ctx context.Context, r outbound.Request) (*outbound.Response, error)
	// Turn waits until a request may be sent; the request's timeout begins after it. Its error is a *outbound.Failure.
	Turn(ctx context.Context, key string, line int64) (*outbound.Turn, error)
}

// Outcome is the result of a request. Exactly one of Response and Failure is set.
type Outcome struct {
	Headers   hookglass.Headers // as sent, or as they would have been
	Response  *hookglass.TargetResponse
	Failure   *hookglass.Failure
	Forbidden error // target_not_allowed or validation_failed; nothing was sent
	MaySent   bool  // with Failure: some of the request may have reached the target
	Duration  time.Duration
}

// Withheld reports whether nothing was sent for a reason within this process: there was no turn, or the process stops.
func (o Outcome) Withheld() bool {
	return o.Failure != nil && !o.MaySent && outbound.Code(o.Failure.Code).Withheld()
}

// Send sends a request once and waits for the answer. key is the tenant whose requests are bounded together. Unless the
// request has a Turn, timeout includes the wait for one.
func Send(ctx context.Context, c Client, key string, timeout time.Duration, r Request) Outcome {
	began := time.Now()
	res, err := c.Do(ctx, outbound.Request{
		Method: r.Method, URL: r.URL, Headers: r.Headers, Body: r.Body, Timeout: timeout, Key: key, Turn: r.Turn,
		MaxResponseBytes: r.MaxResponse, Keep: r.keep,
	})
	if err == nil {
		return Outcome{
			Headers: res.RequestHeaders, Duration: res.Duration,
			Response: &hookglass.TargetResponse{Status: res.Status, Headers: res.Headers, Body: res.Body, Truncated: res.Truncated},
		}
	}
	out := Outcome{Headers: r.Headers, Duration: time.Since(began), MaySent: true}
	var f *outbound.Failure
	if !errors.As(err, &f) {
		// The client promises a Failure; any other error does not show whether something was sent.
		out.Failure = &hookglass.Failure{Code: "unknown_error", Message: "The request failed."}
		return out
	}
	if f.RequestHeaders != nil {
		out.Headers = f.RequestHeaders
	}
	out.Failure, out.MaySent = &hookglass.Failure{Code: string(f.Code), Message: f.Message}, f.Sent != outbound.NotSent
	if refusal, ok := errors.AsType[*hookglass.Error](err); ok && !out.MaySent {
		out.Forbidden = refusal
	}
	return out
}

// Beginning returns the first n bytes of a body, less an incomplete character at the end if the body is text.
func Beginning(body []byte, n int) []byte {
	body = body[:n]
	for i := n - 1; i >= 0 && i > n-utf8.UTFMax; i-- {
		if !utf8.RuneStart(body[i]) {
			continue
		}
		if !utf8.FullRune(body[i:]) && utf8.Valid(body[:i]) {
			return body[:i]
		}
		break
	}
	return body
}

// Readable returns an answer with its body decoded. A target may answer compressed, because the captured event accepts
// that. The headers stay as they came, and so does a body that cannot be decoded.
func Readable(r *hookglass.TargetResponse) *hookglass.TargetResponse {
	if r == nil || coding.Of(r.Headers) == "" {
		return r
	}
	const most = outbound.DefaultMaxResponseBytes
	body, err := coding.Decoded(r.Body, coding.Of(r.Headers), most+1)
	if err != nil && !errors.Is(err, coding.ErrLonger) && (!r.Truncated || len(body) == 0) {
		return r
	}
	plain := *r
	if plain.Body = body; len(body) > most {
		plain.Body, plain.Truncated = Beginning(body, most), true
	}
	return &plain
}

// Secrets returns the redactor of what is kept of a delivery: it knows the secrets of the configs, and the credentials
// in the request, which a target may echo.
func Secrets(configs []provider.Config, sent hookglass.Headers) *redact.Redactor {
	var known []redact.Mask
	for _, c := range configs {
		for _, secret := range c.Secrets {
			known = append(known, redact.Mask{Value: secret})
		}
	}
	return secretsIn(known, sent)
}

// secretsIn is like Secrets, given the texts that are known to be secrets.
func secretsIn(known []redact.Mask, sent hookglass.Headers) *redact.Redactor {
	var all []redact.Mask
	most := math.MaxInt
	add := func(m redact.Mask, least int) {
		if len(m.Value) >= least && len(all) < most && !slices.ContainsFunc(all, func(o redact.Mask) bool { return o.Value == m.Value }) {
			all = append(all, m)
		}
	}
	for _, m := range known {
		add(m, minSecret)
	}
	most = len(all) + maxSecrets
	for _, f := range sent {
		if !redact.Credential(f.Name) {
			continue
		}
		// Whole: its parts may be any words, such as the names of cookies.
		add(redact.Mask{Value: f.Value, Whole: true}, minCredential)
		if strings.EqualFold(f.Name, "Cookie") {
			for pair := range strings.SplitSeq(f.Value, ";") {
				_, value, _ := strings.Cut(pair, "=")
				add(redact.Mask{Value: value, Whole: true}, minCredential)
			}
		} else if _, rest, found := strings.Cut(f.Value, " "); found { // the credentials after the scheme
			add(redact.Mask{Value: rest, Whole: true}, minCredential)
		}
	}
	return redact.New(all...)
}

// Bounds of the secrets that are looked for. A shorter one would redact unrelated text, all the more a credential,
// which senders choose freely.
const (
	minSecret     = 4
	minCredential = 8
	maxSecrets    = 100 // of what a sender wrote: a cookie may have thousands of parts
)

// RedactHeaders returns a copy of headers in which fields that carry credentials by their name, and all secrets, are
// redacted. Signatures stay: they are what a delivery is judged by. When there can be none it returns h itself.
func RedactHeaders(h hookglass.Headers, secrets *redact.Redactor) hookglass.Headers {
	if secrets.Size() == 0 && !slices.ContainsFunc(h, func(f hookglass.Header) bool { return redact.Credential(f.Name) }) {
		return h
	}
	out := make(hookglass.Headers, len(h))
	for i, f := range h {
		out[i] = hookglass.Header{Name: f.Name, Value: hookglass.Redacted}
		if !redact.Credential(f.Name) {
			out[i].Value = secrets.Secrets(f.Value)
		}
	}
	return out
}

// maxPlain is how much of a compressed body is searched for secrets.
const maxPlain = 1 << 20

// RedactBody redacts secrets in a body, also one that was cut within a secret. A compressed body that holds any is kept
// decoded.
func RedactBody(body []byte, h hookglass.Headers, secrets *redact.Redactor) []byte {
	if secrets.Size() == 0 { // as most
		return body
	}
	if coding.Of(h) != "" {
		plain := string(coding.Plain(body, h, maxPlain))
		if blotted := secrets.Cut(plain); blotted != plain {
			return []byte(blotted)
		}
	}
	return []byte(secrets.Cut(string(body)))
}
