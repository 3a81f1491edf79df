package provider_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/provider"
)

// FuzzRequest gives requests of any bytes to everything that reads them at reception: nothing panics, a request is
// never verified without knowing the secret, and what is stored as text is text.
func FuzzRequest(f *testing.F) {
	for _, v := range readVectors(f).Vectors {
		h := ""
		for _, field := range v.Request.Headers {
			h += field[0] + ": " + field[1] + "\n"
		}
		f.Add(v.Request.Method, v.Request.URL, h, readBody(f, v.Request.BodyFile))
	}
	f.Add("POST", "https://a.test/h", "X-Signature-Ed25519: 00\nX-Signature-Timestamp: 1", []byte(`{"type":1}`))
	f.Add("GET", "https://a.test/h?hub.mode=subscribe&hub.challenge=x", "", []byte(nil))
	f.Add("POST", "https://a.test/h", "X-Webhook-Signature: eyJ.e30.x\nPlivo: x", []byte(`[{"type":"com.twilio.x","specversion":"1"}]`))
	f.Add("POST", "https://a.test/h", "Content-Encoding: gzip\nx-contentful-signature: 00\nX-Contentful-Topic: x", []byte("\x1f\x8b"))
	f.Add("POST", "https://a.test/h", "Content-Type: application/x-www-form-urlencoded\nX-Plivo-Signature-V3: x", []byte("payload=%7B%22type%22&a=%&=&&b"))
	var configs []provider.Config
	for i, info := range provider.Providers() {
		configs = append(configs, provider.Config{ID: int64(i), Provider: info.ID, Secrets: []string{"\x00nobody knows this", ""}})
	}
	f.Fuzz(func(t *testing.T, method, url, lines string, body []byte) {
		_, query, _ := strings.Cut(url, "?")
		r := &provider.Request{Method: method, URL: url, URLs: []string{url + "#"}, RawQuery: query, Headers: fields(lines), Body: body, ReceivedAt: received}
		d := provider.Detect(r)
		if d != provider.Detect(r) {
			t.Error("detection is not determined")
		}
		for _, s := range []string{d.EventType, d.EventID, d.DeliveryID, d.Inner, d.Flavour, d.Relay} {
			if !utf8.ValidString(s) || len(s) > 512 || strings.ContainsAny(s, "\x00\n\r") {
				t.Errorf("%q", s)
			}
		}
		for _, c := range configs {
			v := provider.Verify(r, provider.Detection{Provider: c.Provider}, []provider.Config{c})
			if v.Status == hookglass.SignatureVerified || v.Status == hookglass.SignatureFailed && (v.Reason == "" || v.Message == "") {
				t.Errorf("%s: %+v", c.Provider, v)
			}
		}
		if a, ok := provider.Handshake(r, d, configs); ok && (a.Status < 200 || a.Status > 599) {
			t.Errorf("%+v", a)
		}
		for _, h := range provider.Strip(d, r.Headers) {
			if h.Name == "" && !strings.Contains(lines, ":") {
				t.Error("a header from nowhere")
			}
		}
	})
}

// FuzzDiagnose tries forensics on requests of any bytes.
func FuzzDiagnose(f *testing.F) {
	f.Add("X-GitHub-Event: x\nX-Hub-Signature-256: sha256="+hex64, []byte(`{"a":"\u00e9\ud83d/","b":[1,{}]}`))
	f.Add("Stripe-Signature: t=1,v1="+hex64, []byte("a=1%20+2"))
	f.Add("X-Twilio-Signature: "+base64ed+"\nHost: x\nContent-Type: application/x-www-form-urlencoded", []byte("payload=%5B%5D"))
	f.Fuzz(func(t *testing.T, lines string, body []byte) {
		if len(body) > 4096 {
			return
		}
		r := &provider.Request{Method: "POST", URL: target, Headers: fields(lines), Body: body, ReceivedAt: received}
		d := provider.Detect(r)
		got := provider.Diagnose(r, d, []provider.Config{{ID: 1, Provider: d.Provider, Secrets: []string{"\x00nobody knows this"}}})
		if got.Code == "" || got.Message == "" || strings.Contains(got.Message, "nobody knows") {
			t.Errorf("%+v", got)
		}
	})
}

// FuzzRegenerate edits any JSON: the result is JSON of the same shape, and nothing but what is reported grew.
func FuzzRegenerate(f *testing.F) {
	for _, v := range readVectors(f).Replay {
		f.Add(v.Provider, readBody(f, v.Input.BodyFile))
	}
	f.Add("unknown", []byte(`[{"id":0},{"\u0069d":-1},{"uuid":"\\"},[{"id":1}],"id"]`))
	f.Add("gocardless", []byte(`{"events":[{"id":"a"},7,{"id":{}}],"meta":{"webhook_id":12}}`))
	f.Fuzz(func(t *testing.T, id string, body []byte) {
		in := provider.Outgoing{Method: "POST", Body: body}
		out, changed, err := provider.Regenerate(in, provider.Detection{Provider: id}, nil, identity)
		if err != nil {
			if json.Valid(body) {
				t.Fatal(err)
			}
			return
		}
		if !json.Valid(out.Body) {
			t.Fatalf("%s became %s", body, out.Body)
		}
		grown := 0
		for _, c := range changed {
			if _, inHeader := c.InHeader(); !inHeader {
				grown++
			}
		}
		if n := len(out.Body) - len(body); n > grown*len(identity.Suffix) || n < grown*len(identity.Digits) {
			t.Errorf("%d bytes more for %q", n, changed)
		}
	})
}

// FuzzGenericOptions signs and verifies with any settings that are accepted.
func FuzzGenericOptions(f *testing.F) {
	f.Add("X-Signature", "sha256", "hex", "sha256=", "{timestamp}.{body}", "X-T", "s", "utf8", "secret", []byte("{}"))
	f.Add("webhook-signature", "", "base64", "v1,", "{id}.{timestamp}.{body}", "webhook-timestamp", "", "base64", "whsec_MfKQ9r8G", []byte(""))
	f.Add("A", "sha1", "", "", "{body}{body}", "", "ms", "hex", "00", []byte("x"))
	f.Fuzz(func(t *testing.T, header, algorithm, encoding, prefix, template, timeHeader, unit, secretEncoding, secret string, body []byte) {
		o := hookglass.GenericOptions{Header: header, Algorithm: algorithm, Encoding: encoding, Prefix: prefix, PayloadTemplate: template,
			TimestampHeader: timeHeader, TimestampUnit: unit, SecretEncoding: secretEncoding}
		c := provider.Config{Provider: provider.GenericHMAC, Secrets: []string{secret}, Options: o}
		if provider.ValidateOptions("", o) != nil {
			return
		}
		out, err := provider.Sign(provider.Outgoing{Method: "POST", Body: body}, c, received)
		if err != nil {
			return
		}
		if strings.ContainsAny(prefix, ", ") || strings.EqualFold(header, timeHeader) || strings.EqualFold(header, "webhook-id") ||
			strings.EqualFold(timeHeader, "webhook-id") || strings.TrimSpace(prefix) != prefix || strings.HasPrefix(prefix, "t=") {
			return // settings at odds with themselves
		}
		r := &provider.Request{Method: "POST", Headers: out.Headers, Body: body, ReceivedAt: received}
		if v := provider.Verify(r, provider.Detect(r), []provider.Config{c}); v.Status != hookglass.SignatureVerified {
			t.Errorf("%+v %v", v, out.Headers)
		}
	})
}
