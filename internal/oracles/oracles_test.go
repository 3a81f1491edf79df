package oracles_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/provider"

	"github.com/google/go-github/v74/github"
	"github.com/slack-go/slack"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stripe/stripe-go/v84/webhook"
	twilio "github.com/twilio/twilio-go/client"
)

const target = "https://in.example.test/hooks/ep_1?team=ops"

// bodies are what an HMAC must not care about.
var bodies = []string{
	"", "{}", "{\"a\": \"\u00e9 \\u00e9 \\/\"}\r\n", "\x00\xff\xfe not text", strings.Repeat("x", 100_000),
}

// verify checks what was sent as the product does.
func verify(t *testing.T, id, secret, rawURL string, h hookglass.Headers, body []byte, at time.Time) provider.Verdict {
	t.Helper()
	_, query, _ := strings.Cut(rawURL, "?")
	r := &provider.Request{Method: "POST", URL: rawURL, RawQuery: query, Headers: h, Body: body, ReceivedAt: at}
	return provider.Verify(r, provider.Detection{Provider: id}, []provider.Config{{Provider: id, Secrets: []string{secret}}})
}

// sign makes what the product would send.
func sign(t *testing.T, id, secret string, h hookglass.Headers, body []byte, at time.Time) provider.Outgoing {
	t.Helper()
	o, err := provider.Sign(provider.Outgoing{Method: "POST", URL: target, Headers: h, Body: body}, provider.Config{Provider: id, Secrets: []string{secret}}, at)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func netHeader(h hookglass.Headers) http.Header {
	n := http.Header{}
	for _, f := range h {
		n.Add(f.Name, f.Value)
	}
	return n
}

// agree fails unless the library and the product say the same of a request.
func agree(t *testing.T, what string, libraryErr error, v provider.Verdict) {
	t.Helper()
	if (libraryErr == nil) != (v.Status == hookglass.SignatureVerified) {
		t.Errorf("%s: the library says %v, we say %s %s", what, libraryErr, v.Status, v.Reason)
	}
}

// flips returns the header and copies of it with one character changed here and there. Blanks at the ends and commas
// too many are left out: HTTP takes the first away, and of the second the libraries of one sender disagree among
// themselves.
func flips(value string) []string {
	all := []string{value, "", value + "0", value[:len(value)-1]}
	for i := 0; i < len(value); i += 7 {
		b := []byte(value)
		b[i] ^= 1
		all = append(all, string(b))
	}
	return all
}

func TestGitHub(t *testing.T) {
	const secret = "It's a Secret to Everybody"
	for _, body := range bodies {
		o := sign(t, "github", secret, nil, []byte(body), time.Now())
		for _, value := range flips(o.Headers.Get("X-Hub-Signature-256")) {
			err := github.ValidateSignature(value, []byte(body), []byte(secret))
			v := verify(t, "github", secret, target, hookglass.Headers{{Name: "X-Hub-Signature-256", Value: value}}, []byte(body), time.Now())
			agree(t, fmt.Sprintf("%.20q %q", body, value), err, v)
		}
	}
	form := "payload=" + url.QueryEscape(`{"a":1}`)
	o := sign(t, "github", secret, nil, []byte(form), time.Now())
	r, _ := http.NewRequest("POST", target, strings.NewReader(form))
	r.Header = netHeader(o.Headers)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if payload, err := github.ValidatePayload(r, []byte(secret)); err != nil || string(payload) != `{"a":1}` {
		t.Error(string(payload), err)
	}
}

func TestStripe(t *testing.T) {
	const secret = "whsec_9sK2mQ7vXb4Rf1Lp8Zt6Yc3Wd5Ng0HaE"
	now := time.Now()
	for _, body := range bodies {
		for _, off := range []time.Duration{0, -280 * time.Second, -320 * time.Second, time.Hour} {
			p := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body), Secret: secret, Timestamp: now.Add(off)})
			mine := sign(t, "stripe", secret, nil, []byte(body), now.Add(off)).Headers.Get("Stripe-Signature")
			if mine != p.Header {
				t.Errorf("signed %s, the library %s", mine, p.Header)
			}
			for _, value := range flips(p.Header) {
				err := webhook.ValidatePayload([]byte(body), value, secret)
				agree(t, fmt.Sprintf("%v %q", off, value), err, verify(t, "stripe", secret, target, hookglass.Headers{{Name: "Stripe-Signature", Value: value}}, []byte(body), now))
			}
		}
	}
}

func TestSlack(t *testing.T) {
	const secret = "8f742231b10e8888abcd99yyyzzz85a5"
	now := time.Now()
	for _, body := range bodies {
		for _, off := range []time.Duration{0, -280 * time.Second, -320 * time.Second, 280 * time.Second, 320 * time.Second} {
			o := sign(t, "slack", secret, nil, []byte(body), now.Add(off))
			for _, value := range flips(o.Headers.Get("X-Slack-Signature")) {
				h := hookglass.Headers{{Name: "X-Slack-Request-Timestamp", Value: o.Headers.Get("X-Slack-Request-Timestamp")}, {Name: "X-Slack-Signature", Value: value}}
				sv, err := slack.NewSecretsVerifier(netHeader(h), secret)
				if err == nil {
					io.WriteString(&sv, body)
					err = sv.Ensure()
				}
				agree(t, fmt.Sprintf("%v %q", off, value), err, verify(t, "slack", secret, target, h, []byte(body), now))
			}
		}
	}
}

func TestTwilio(t *testing.T) {
	const secret = "2f6d8b1c4e7a90355a1f8c3e6b9d2074"
	v := twilio.NewRequestValidator(secret)
	form := hookglass.Headers{{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}}
	for _, body := range []string{"", "b=2&a=1", "Body=+a%26b%3D+&Empty=&From=%2B1415", "a=%F0%9F%98%80", "Z=1&a=2&B=3&_=4"} {
		params := map[string]string{}
		values, _ := url.ParseQuery(body)
		for name := range values {
			params[name] = values.Get(name)
		}
		o := sign(t, "twilio", secret, form, []byte(body), time.Now())
		if !v.Validate(target, params, o.Headers.Get("X-Twilio-Signature")) {
			t.Errorf("%q: the library refuses our signature", body)
		}
		for _, u := range []string{target, "https://in.example.test:443/hooks/ep_1?team=ops", "http://in.example.test/hooks/ep_1?team=ops", "https://in.example.test/hooks/ep_1"} {
			for _, value := range flips(o.Headers.Get("X-Twilio-Signature")) {
				h := append(form[:1:1], hookglass.Header{Name: "X-Twilio-Signature", Value: value})
				var err error
				if !v.Validate(u, params, value) {
					err = fmt.Errorf("refused")
				}
				agree(t, fmt.Sprintf("%q %s %q", body, u, value), err, verify(t, "twilio", secret, u, h, []byte(body), time.Now()))
			}
		}
	}
	body := []byte(`[{"type":"com.twilio.messaging.message.sent"}]`)
	o := sign(t, "twilio", secret, hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}, body, time.Now())
	if !v.ValidateBody(o.URL, body, o.Headers.Get("X-Twilio-Signature")) {
		t.Error("the library refuses our signature of a JSON body")
	}
	for _, other := range []string{"{}", "", string(body)} {
		var err error
		if !v.ValidateBody(o.URL, []byte(other), o.Headers.Get("X-Twilio-Signature")) {
			err = fmt.Errorf("refused")
		}
		if other == "" {
			continue // nothing was sent that could be changed: we ask for the URL alone
		}
		agree(t, other, err, verify(t, "twilio", secret, o.URL, o.Headers, []byte(other), time.Now()))
	}
}

func TestStandardWebhooks(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := standardwebhooks.NewWebhookRaw([]byte("client-secret"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, body := range bodies {
		for _, off := range []time.Duration{0, -280 * time.Second, -320 * time.Second, 280 * time.Second, 320 * time.Second} {
			for id, s := range map[string]struct {
				secret string
				wh     *standardwebhooks.Webhook
			}{"standard_webhooks": {secret, wh}, "openai": {secret, wh}, "replicate": {secret, wh}, "gitlab": {secret, wh}, "bigcommerce": {"client-secret", raw}} {
				at := now.Add(off)
				value, err := s.wh.Sign("msg_1", at, []byte(body))
				if err != nil {
					t.Fatal(err)
				}
				h := hookglass.Headers{{Name: "webhook-id", Value: "msg_1"}, {Name: "webhook-timestamp", Value: strconv.FormatInt(at.Unix(), 10)}, {Name: "webhook-signature", Value: value}}
				if mine := sign(t, id, s.secret, h, []byte(body), at).Headers.Get("webhook-signature"); mine != value {
					t.Errorf("%s: signed %s, the library %s", id, mine, value)
				}
				for _, presented := range append(flips(value), "v1,x "+value, "v1a,x "+value+" v1,y") {
					h[2].Value = presented
					agree(t, fmt.Sprintf("%s %v %q", id, off, presented), s.wh.Verify([]byte(body), netHeader(h)), verify(t, id, s.secret, target, h, []byte(body), now))
				}
			}
		}
	}
}

// Samples signed by the product pass the receivers' own libraries.
func TestSamples(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	now := time.Now()
	for _, s := range provider.Samples() {
		o, err := provider.Sample(s.Provider, s.Event, target)
		if err != nil {
			t.Fatal(err)
		}
		if o, err = provider.Sign(o, provider.Config{Provider: s.Provider, Secrets: []string{secret}}, now); err != nil {
			t.Fatal(err)
		}
		h := netHeader(o.Headers)
		switch s.Provider {
		case "github":
			err = github.ValidateSignature(h.Get("X-Hub-Signature-256"), o.Body, []byte(secret))
		case "stripe":
			err = webhook.ValidatePayload(o.Body, h.Get("Stripe-Signature"), secret)
		case "slack":
			var sv slack.SecretsVerifier
			if sv, err = slack.NewSecretsVerifier(h, secret); err == nil {
				sv.Write(o.Body)
				err = sv.Ensure()
			}
		case "twilio":
			v := twilio.NewRequestValidator(secret)
			params := map[string]string{}
			if strings.HasPrefix(h.Get("Content-Type"), "application/x-www-form-urlencoded") {
				values, _ := url.ParseQuery(string(o.Body))
				for name := range values {
					params[name] = values.Get(name)
				}
			}
			ok := v.Validate(o.URL, params, h.Get("X-Twilio-Signature"))
			if bytes.HasPrefix(o.Body, []byte("[")) {
				ok = v.ValidateBody(o.URL, o.Body, h.Get("X-Twilio-Signature"))
			}
			if !ok {
				err = fmt.Errorf("refused")
			}
		}
		if err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
}
