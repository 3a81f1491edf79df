package provider_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/provider"
)

// github returns a delivery with the given body whose signature is made over another.
func github(body, signedBody, key string) *provider.Request {
	return &provider.Request{Method: "POST", Body: []byte(body), ReceivedAt: received,
		Headers: fields("X-GitHub-Event: push\nX-Hub-Signature-256: sha256=" + hex.EncodeToString(mac(sha256.New, []byte(key), signedBody)))}
}

func with(r *provider.Request, lines string) *provider.Request {
	r.Headers = append(r.Headers, fields(lines)...)
	return r
}

func TestDiagnose(t *testing.T) {
	pretty := "{\n  \"a\": \"\u00e9/\U0001f600\",\n  \"b\": [\n    1,\n    2\n  ]\n}"
	var compact bytes.Buffer
	must(t, json.Compact(&compact, []byte(pretty)))
	min := compact.String()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write([]byte(min))
	w.Close()
	standard := func(key []byte) *provider.Request {
		return &provider.Request{Method: "POST", Body: []byte("{}"), ReceivedAt: received, Headers: fields("webhook-id: m\nwebhook-timestamp: 1771243200\nwebhook-signature: v1," +
			b64(mac(sha256.New, key, "m.1771243200.{}")))}
	}
	twilio := func(u, signedURL string) *provider.Request {
		return &provider.Request{Method: "POST", URL: u, ReceivedAt: received,
			Headers: fields("X-Forwarded-Host: public.test\nX-Twilio-Signature: " + b64(mac(sha1.New, []byte(secret), signedURL)))}
	}
	slack := func(ts, signedTS string) *provider.Request {
		return &provider.Request{Method: "POST", Body: []byte("{}"), ReceivedAt: received, Headers: fields("X-Slack-Request-Timestamp: " + ts +
			"\nX-Slack-Signature: v0=" + hex.EncodeToString(mac(sha256.New, []byte(secret), "v0:", signedTS, ":{}")))}
	}
	formOf := func(r *provider.Request) *provider.Request {
		return with(r, "Content-Type: application/x-www-form-urlencoded")
	}
	for _, c := range []struct {
		name    string
		r       *provider.Request
		secrets []string
		code    string
		says    string
	}{
		{name: "verified", r: github(min, min, secret), code: "verified"},
		{name: "newline added", r: github(min+"\n", min, secret), code: "body_newline_added"},
		{name: "newline added after another", r: github(min+"\n\n", min+"\n", secret), code: "body_newline_added"},
		{name: "newlines added", r: github(min+"\n\n", min, secret), code: "body_newline_added"},
		{name: "newline lost", r: github(min, min+"\n", secret), code: "body_newline_removed"},
		{name: "CR LF lost", r: github(min, min+"\r\n", secret), code: "body_newline_removed", says: "CR LF"},
		{name: "line ends", r: github(pretty, strings.ReplaceAll(pretty, "\n", "\r\n"), secret), code: "body_line_ends"},
		{name: "line ends, the other way", r: github(strings.ReplaceAll(pretty, "\n", "\r\n"), pretty, secret), code: "body_line_ends"},
		{name: "minified", r: github(min, pretty, secret), code: "body_reencoded", says: "indented by 2"},
		{name: "pretty-printed", r: github(pretty, min, secret), code: "body_reencoded", says: "without blanks"},
		{name: "blanks", r: github(min, "{\"a\": \"\u00e9/\U0001f600\", \"b\": [1, 2]}", secret), code: "body_reencoded", says: "it with a blank after each comma and colon."},
		{name: "minified, and its newline lost", r: github(min, pretty+"\n", secret), code: "body_reencoded", says: "it indented by 2 and with a final newline."},
		{name: "solidus", r: github(min, strings.ReplaceAll(min, "/", `\/`), secret), code: "body_reencoded", says: `\/`},
		{name: "escapes", r: github(min, `{"a":"\u00e9/\ud83d\ude00","b":[1,2]}`, secret), code: "body_reencoded", says: `\u`},
		{name: "escapes undone", r: github(`{"a":"\u00e9\/\ud83d\ude00","b":[1,2]}`, min, secret), code: "body_reencoded", says: "UTF-8"},
		{name: "compressed", r: with(github(zipped.String(), min, secret), "Content-Encoding: gzip"), code: "body_compressed"},
		{name: "empty", r: github(min, "", secret), code: "body_empty"},
		{name: "byte order mark", r: github("\xef\xbb\xbf"+min, min, secret), code: "body_charset"},
		{name: "character set", r: github("{\"a\":\"\u00e9\"}", "{\"a\":\"\xe9\"}", secret), code: "body_charset"},
		{name: "form payload", r: formOf(github("payload="+url.QueryEscape(min), min, secret)), code: "body_form_payload"},
		{name: "form blanks", r: formOf(github("a=1%202", "a=1+2", secret)), code: "body_form_reencoded"},
		{name: "blanks around the secret", r: github(min, min, secret), secrets: []string{" " + secret + "\n"}, code: "secret_blanks"},
		{name: "quotes around the secret", r: github(min, min, secret), secrets: []string{`"` + secret + `"`}, code: "secret_quotes"},
		{name: "newline in the sender's secret", r: github(min, min, secret+"\n"), code: "secret_newline"},
		{name: "decoded secret", r: stripe(min, 0, "0123456789abcdef"), secrets: []string{"whsec_" + b64([]byte("0123456789abcdef"))}, code: "secret_encoding", says: "base64-decoded"},
		{name: "secret not decoded", r: standard([]byte("whsec_" + b64([]byte("0123456789abcdef")))), secrets: []string{"whsec_" + b64([]byte("0123456789abcdef"))}, code: "secret_encoding", says: "text of the secret"},
		{name: "sha1 in the sha256 header", r: &provider.Request{Method: "POST", Body: []byte(min), ReceivedAt: received, Headers: fields("X-GitHub-Event: push\nX-Hub-Signature-256: sha1=" +
			hex.EncodeToString(mac(sha1.New, []byte(secret), min)))}, code: "signature_algorithm", says: "SHA-1"},
		{name: "sha512", r: &provider.Request{Method: "POST", Body: []byte(min), ReceivedAt: received, Headers: fields("X-GitHub-Event: push\nX-Hub-Signature-256: sha256=" +
			hex.EncodeToString(mac(sha512.New, []byte(secret), min)))}, code: "signature_algorithm", says: "SHA-512"},
		{name: "prefix", r: &provider.Request{Method: "POST", Body: []byte(min), ReceivedAt: received, Headers: fields("X-GitHub-Event: push\nX-Hub-Signature-256: " +
			hex.EncodeToString(mac(sha256.New, []byte(secret), min)))}, code: "signature_prefix"},
		{name: "hex for base64", r: &provider.Request{Method: "POST", Body: []byte(min), ReceivedAt: received, Headers: fields("X-Shopify-Hmac-Sha256: " +
			hex.EncodeToString(mac(sha256.New, []byte(secret), min)))}, code: "signature_encoding"},
		{name: "base64 for hex", r: &provider.Request{Method: "POST", Body: []byte(min), ReceivedAt: received, Headers: fields("X-GitHub-Event: push\nX-Hub-Signature-256: sha256=" +
			b64(mac(sha256.New, []byte(secret), min)))}, code: "signature_encoding"},
		{name: "hex for base64, twilio", r: &provider.Request{Method: "POST", URL: target, ReceivedAt: received, Headers: fields("X-Twilio-Signature: " +
			hex.EncodeToString(mac(sha1.New, []byte(secret), target)))}, code: "signature_encoding"},
		{name: "body alone", r: &provider.Request{Method: "POST", Body: []byte(min), ReceivedAt: received, Headers: fields("Stripe-Signature: t=1771243200,v1=" +
			hex.EncodeToString(mac(sha256.New, []byte(secret), min)))}, code: "signature_content"},
		{name: "clock", r: stripe(min, -1000, secret), code: "clock_offset", says: "1000 s before"},
		{name: "clock ahead", r: slack("1771243700", "1771243700"), code: "clock_offset", says: "500 s after"},
		{name: "timestamp changed", r: slack("1771243199", "1771243200"), code: "timestamp_changed", says: "+1 s"},
		{name: "timestamp changed, in a list", r: func() *provider.Request {
			r := stripe(min, 0, secret)
			r.Headers[0].Value = strings.Replace(r.Headers[0].Value, "t=1771243200", "t=1771243260", 1)
			return r
		}(), code: "timestamp_changed", says: "-60 s"},
		{name: "https ended at a proxy", r: twilio("http://in.test/h", "https://in.test/h"), code: "url", says: "https"},
		{name: "another host", r: twilio("http://10.0.0.5:8080/h?a=1", "https://public.test/h?a=1"), code: "url", says: "X-Forwarded-Host"},
		{name: "slash", r: twilio("https://in.test/h?a=1", "https://in.test/h/?a=1"), code: "url", says: "slash"},
		{name: "query", r: twilio("https://in.test/h?a=1", "https://in.test/h"), code: "url", says: "query"},
		{name: "missing, with another's", r: &provider.Request{Method: "POST", ReceivedAt: received, Headers: fields("X-GitHub-Event: push\nStripe-Signature: x")}, code: "missing_signature", says: "Stripe-Signature"},
		{name: "missing", r: &provider.Request{Method: "POST", ReceivedAt: received, Headers: fields("X-GitHub-Event: push")}, code: "missing_signature"},
		{name: "wrong secret", r: github(min, min, "quite another"), code: "no_variant_matches", says: "copy it again from the settings of the webhook at GitHub"},
		{name: "api key of stripe", r: stripe(min, 0, secret), secrets: []string{"sk_live_1"}, code: "no_variant_matches", says: "does not look like a signing secret of Stripe, which begins with whsec_."},
		{name: "client secret of slack", r: slack("1771243200", "1771243200"), secrets: []string{strings.Repeat("0", 31)}, code: "no_variant_matches", says: "of Slack, which is 32 hex digits."},
		{name: "nonsense", r: &provider.Request{Method: "POST", ReceivedAt: received, Headers: fields("X-GitHub-Event: push\nX-Hub-Signature-256: nonsense")}, code: "malformed_signature"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := provider.Detect(c.r)
			secrets := c.secrets
			if secrets == nil {
				secrets = []string{"old", secret}
			}
			before := fmt.Sprint(c.r)
			got := provider.Diagnose(c.r, d, []provider.Config{{ID: 4, Provider: d.Provider, Secrets: secrets}})
			if got.Code != c.code || !strings.Contains(got.Message, c.says) || got.Message == "" {
				t.Errorf("%+v, want %s (%s)", got, c.code, c.says)
			}
			if after := fmt.Sprint(c.r); after != before {
				t.Error("the request was changed")
			}
			for _, s := range append(secrets, secret, strings.TrimSpace(secrets[0])) {
				if strings.Contains(got.Message, s) && s != "old" {
					t.Error("the message holds a secret")
				}
			}
		})
	}
}

func TestDiagnoseConfigs(t *testing.T) {
	r := github("{}", "{}", "of the other")
	d := provider.Detect(r)
	got := provider.Diagnose(r, d, []provider.Config{{ID: 1, Provider: "github", Secrets: []string{secret}}, {ID: 2, Provider: "stripe", Secrets: []string{"x", "of the other"}}})
	if got.Code != "other_secret" || got.ConfigID != 2 {
		t.Errorf("%+v", got)
	}
	// Nobody is detected, but a config is for a provider whose signature is there.
	r = &provider.Request{Method: "POST", Body: []byte("{}\n"), ReceivedAt: received, Headers: fields("X-Hub-Signature-256: sha256=" + hex.EncodeToString(mac(sha256.New, []byte(secret), "{}")))}
	config := []provider.Config{{ID: 1, Provider: "github", Secrets: []string{secret}}}
	if got := provider.Diagnose(r, provider.Detect(r), config); got.Code != "body_newline_added" || got.ConfigID != 1 {
		t.Errorf("%+v", got)
	}
	r.Body = []byte("{}")
	if got := provider.Diagnose(r, provider.Detect(r), config); got.Code != "verified" || strings.Contains(got.Message, "previous") {
		t.Errorf("%+v", got)
	}
	config[0].Secrets = []string{"the new one", secret}
	if got := provider.Diagnose(r, provider.Detect(r), config); got.Code != "verified" || !strings.Contains(got.Message, "previous secret") {
		t.Errorf("of a secret that was kept: %+v", got)
	}
	for name, c := range map[string]struct {
		headers, code string
	}{
		"no config":      {"X-GitHub-Event: push", "no_config"},
		"nobody":         {"X-Foo: bar", "no_config"},
		"not verifiable": {"aeg-event-type: Notification", "not_verifiable"},
	} {
		r := &provider.Request{Method: "POST", Headers: fields(c.headers)}
		if got := provider.Diagnose(r, provider.Detect(r), nil); got.Code != c.code {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The vectors that fail for a reason that can be found.
func TestDiagnoseVectors(t *testing.T) {
	want := map[string]string{
		"github-007-form-signed-over-json": "body_form_payload", "github-013-prefix-missing": "signature_prefix",
		"stripe-007-stale-301s": "clock_offset", "stripe-010-timestamp-swapped": "timestamp_changed",
		"stripe-017-secret-base64-decoded": "secret_encoding", "stripe-019-trailing-newline-stripped": "body_newline_removed",
		"stripe-020-minified-body": "body_reencoded", "shopify-004-hex-instead-of-base64": "signature_encoding",
		"shopify-005-unescaped-slashes": "body_reencoded", "shopify-010-trailing-newline-added": "body_newline_added",
		"slack-008-timestamp-swapped": "timestamp_changed", "slack-017-form-reencoded": "body_form_reencoded",
		"twilio-010-behind-proxy-naive": "url", "twilio-020-trailing-newline-in-form": "body_newline_added",
		"github-011-wrong-secret": "no_variant_matches",
	}
	for _, v := range readVectors(t).Vectors {
		if v.Expected.Status != hookglass.SignatureFailed {
			continue
		}
		r := v.request(t)
		got := provider.Diagnose(r, provider.Detection{Provider: v.Provider}, []provider.Config{v.config()})
		if code, ok := want[v.ID]; ok && got.Code != code {
			t.Errorf("%s: %+v, want %s", v.ID, got, code)
		}
		if strings.Contains(got.Message, v.Secret) {
			t.Errorf("%s: the message holds the secret", v.ID)
		}
	}
}

// A large body is not tried in every spelling, and is answered for soon.
func TestDiagnoseLargeBody(t *testing.T) {
	body := `{"a":"` + strings.Repeat("x", 24<<20) + `"}`
	r := github(body, body+"\n", secret)
	if got := provider.Diagnose(r, provider.Detect(r), []provider.Config{{Provider: "github", Secrets: []string{secret}}}); got.Code != "body_newline_removed" {
		t.Errorf("%+v", got)
	}
}

// Indented, brackets within one another take the square of their number. Whoever may send an unsigned request of a few
// kilobytes must not cost whoever looks at it a minute and the memory of the server.
func TestASmallBodyCostsLittleToDiagnose(t *testing.T) {
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	r := github(deep, "another", secret)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := provider.Diagnose(r, provider.Detect(r), []provider.Config{{ID: 4, Provider: "github", Secrets: []string{secret}}})
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; got.Code != "no_variant_matches" || taken > 64<<20 {
		t.Errorf("%s took %d bytes", got.Code, taken)
	}
}
