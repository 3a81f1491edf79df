package delivery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
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
	var refusal *hookglass.Error
	if errors.As(err, &refusal) && !out.MaySent {
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

// Secrets returns the texts to redact in what is kept of a delivery, longest first: the secrets of the configs, and the
// credentials in the request, which a target may echo.
func Secrets(configs []provider.Config, sent hookglass.Headers) (all []string) {
	var known []string
	for _, c := range configs {
		known = append(known, c.Secrets...)
	}
	return secretsIn(known, sent)
}

// secretsIn is like Secrets, given the texts that are known to be secrets.
func secretsIn(known []string, sent hookglass.Headers) (all []string) {
	most := math.MaxInt
	add := func(secret string, least int) {
		if len(secret) < least || len(all) >= most {
			return
		}
		all = append(all, secret)
		for _, quoted := range inJSON(secret) {
			if !slices.Contains(all, quoted) {
				all = append(all, quoted)
			}
		}
	}
	for _, secret := range known {
		add(secret, minSecret)
	}
	most = len(all) + maxSecrets
	for _, f := range sent {
		if !redact.Credential(f.Name) {
			continue
		}
		add(f.Value, minCredential)
		if strings.EqualFold(f.Name, "Cookie") {
			for pair := range strings.SplitSeq(f.Value, ";") {
				_, value, _ := strings.Cut(pair, "=")
				add(value, minCredential)
			}
		} else if _, rest, found := strings.Cut(f.Value, " "); found { // the credentials after the scheme
			add(rest, minCredential)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// inJSON returns the spellings of a text in JSON: with the required escapes only, with those of HTML as well, and in
// ASCII.
func inJSON(text string) []string {
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string can always be written
	quoted := plain.String()[1 : plain.Len()-2]
	var html bytes.Buffer
	json.HTMLEscape(&html, []byte(quoted))
	var ascii strings.Builder
	for _, r := range quoted {
		if r < utf8.RuneSelf {
			ascii.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&ascii, `\u%04x`, unit)
		}
	}
	return []string{quoted, html.String(), ascii.String()}
}

// Bounds of the secrets that are looked for. A shorter one would redact unrelated text, all the more a credential,
// which senders choose freely.
const (
	minSecret     = 4
	minCredential = 8
	maxSecrets    = 100 // of what a sender wrote: a cookie may have thousands of parts
)

// RedactHeaders returns a copy of headers in which fields that carry credentials by their name, and all secrets, are
// redacted. When there can be none it returns h itself.
func RedactHeaders(h hookglass.Headers, secrets []string) hookglass.Headers {
	if len(secrets) == 0 && !slices.ContainsFunc(h, func(f hookglass.Header) bool { return redact.Credential(f.Name) }) {
		return h
	}
	out := make(hookglass.Headers, len(h))
	for i, f := range h {
		out[i] = hookglass.Header{Name: f.Name, Value: RedactSecrets(f.Value, secrets)}
		if redact.Credential(f.Name) {
			out[i].Value = hookglass.Redacted
		}
	}
	return out
}

// RedactSecrets redacts every occurrence of a secret.
func RedactSecrets(s string, secrets []string) string {
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, hookglass.Redacted)
	}
	return s
}

// maxPlain is how much of a compressed body is searched for secrets.
const maxPlain = 1 << 20

// RedactText is RedactSecrets for a text that may have been cut: the beginning of a secret at its end goes too.
func RedactText(s string, secrets []string) string {
	s = RedactSecrets(s, secrets)
	cut := 0
	for _, secret := range secrets {
		cut = max(cut, overlap(s, secret))
	}
	if cut < minCredential {
		return s
	}
	return s[:len(s)-cut] + hookglass.Redacted
}

// overlap returns the length of the longest end of s that is a beginning of secret, but not all of it. Its time is
// linear in secret (Knuth, Morris and Pratt), because strangers may have written both.
func overlap(s, secret string) (n int) {
	if len(secret) <= minCredential {
		return 0
	}
	if s = s[max(0, len(s)-len(secret)+1):]; !strings.Contains(s, secret[:minCredential]) { // as most
		return 0
	}
	border := make([]int, len(secret)) // of each beginning of secret: its longest end that is a shorter beginning
	for i := 1; i < len(secret); i++ {
		for n > 0 && secret[i] != secret[n] {
			n = border[n-1]
		}
		if secret[i] == secret[n] {
			n++
		}
		border[i] = n
	}
	n = 0
	for i := range len(s) {
		for n > 0 && s[i] != secret[n] {
			n = border[n-1]
		}
		if s[i] == secret[n] {
			n++
		}
	}
	return n
}

// RedactBody redacts secrets in a body, also one that was cut within a secret. A compressed body that holds any is kept
// decoded.
func RedactBody(body []byte, h hookglass.Headers, secrets []string) []byte {
	if len(secrets) == 0 { // as most
		return body
	}
	if coding.Of(h) != "" {
		plain := string(coding.Plain(body, h, maxPlain))
		if blotted := RedactText(plain, secrets); blotted != plain {
			return []byte(blotted)
		}
	}
	return []byte(RedactText(string(body), secrets))
}
