package provider_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/provider"
)

var identity = provider.Identity{UUID: "0d9c8b7a-6f5e-4d3c-9b2a-190817263544", Suffix: "_rpl_7f3a9c1e5b20", Digits: "4821"}

// Reference: providers.md section 5.
func TestRegenerate(t *testing.T) {
	const uuid = "0d9c8b7a-6f5e-4d3c-9b2a-190817263544"
	generic := []provider.Config{{Provider: provider.GenericHMAC, Options: hookglass.GenericOptions{IDHeader: "X-Acme-Delivery"}}}
	for _, c := range []struct {
		name, provider, headers, body string
		configs                       []provider.Config
		wantHeaders, wantBody         string
		changed                       []string
	}{
		// A: a delivery-id header.
		{name: "github adds what is missing", provider: "github", headers: "X-GitHub-Event: push", body: `{"id":1}`,
			wantHeaders: "X-GitHub-Event: push\nX-GitHub-Delivery: " + uuid, changed: []string{"header:X-GitHub-Delivery"}},
		{name: "shopify", provider: "shopify", headers: "X-Shopify-Event-Id: e\nx-shopify-webhook-id: w", body: `{"id":1}`,
			wantHeaders: "X-Shopify-Event-Id: e\nx-shopify-webhook-id: " + uuid, changed: []string{"header:x-shopify-webhook-id"}},
		{name: "shopify preview", provider: "shopify", headers: "shopify-event-id: e\nshopify-webhook-id: w", body: `{}`,
			wantHeaders: "shopify-event-id: e\nshopify-webhook-id: " + uuid, changed: []string{"header:shopify-webhook-id"}},
		{name: "twilio json", provider: "twilio", headers: "I-Twilio-Idempotency-Token: t", body: `[{"id":"EZ1"}]`,
			wantHeaders: "I-Twilio-Idempotency-Token: " + uuid, changed: []string{"header:I-Twilio-Idempotency-Token"}},
		{name: "gitlab where present", provider: "gitlab", headers: "Idempotency-Key: k\nwebhook-id: k\nX-Gitlab-Webhook-UUID: w", body: `{}`,
			wantHeaders: "Idempotency-Key: " + uuid + "\nwebhook-id: " + uuid + "\nX-Gitlab-Webhook-UUID: w", changed: []string{"header:Idempotency-Key", "header:webhook-id"}},
		{name: "gitlab without", provider: "gitlab", headers: "X-Gitlab-Event: Push Hook", body: `{"id":"1"}`, wantHeaders: "X-Gitlab-Event: Push Hook"},
		{name: "gitea, one for all", provider: "gitea", headers: "X-Gitea-Delivery: a\nX-Gogs-Delivery: a\nX-GitHub-Delivery: a", body: `{}`,
			wantHeaders: "X-Gitea-Delivery: " + uuid + "\nX-Gogs-Delivery: " + uuid + "\nX-GitHub-Delivery: " + uuid,
			changed:     []string{"header:X-Gitea-Delivery", "header:X-Gogs-Delivery", "header:X-GitHub-Delivery"}},
		{name: "bigcommerce", provider: "bigcommerce", headers: "webhook-id: m", body: `{"hash":"h"}`, wantHeaders: "webhook-id: " + uuid, changed: []string{"header:webhook-id"}},
		{name: "bigcommerce of old", provider: "bigcommerce", body: `{"hash":"h","data":{"id":"d"}}`, wantBody: `{"hash":"h_rpl_7f3a9c1e5b20","data":{"id":"d"}}`, changed: []string{"body:/hash"}},
		{name: "sns without", provider: "aws_sns", body: `{"MessageId":"m"}`},
		{name: "generic with an id header", provider: "unknown", headers: "X-Acme-Delivery: 1", body: `{"id":"x"}`, configs: generic,
			wantHeaders: "X-Acme-Delivery: " + uuid, changed: []string{"header:X-Acme-Delivery"}},
		{name: "cloudevents binary", provider: "cloudevents", headers: "ce-id: 1", body: `{"id":"keep"}`, wantHeaders: "ce-id: " + uuid, changed: []string{"header:ce-id"}},
		// B: in the body.
		{name: "cloudevents structured", provider: "cloudevents", body: `{"id":"a"}`, wantBody: `{"id":"a_rpl_7f3a9c1e5b20"}`, changed: []string{"body:/id"}},
		{name: "cloudevents batch", provider: "cloudevents", body: `[{"id":"a"},{"id":"b"}]`, wantBody: `[{"id":"a_rpl_7f3a9c1e5b20"},{"id":"b_rpl_7f3a9c1e5b20"}]`, changed: []string{"body:/0/id", "body:/1/id"}},
		{name: "stripe", provider: "stripe", body: "{\n \"data\":{\"object\":{\"id\":\"pi\"}},\"request\":{\"id\":\"r\"},\"id\" : \"evt_1\"}\n",
			wantBody: "{\n \"data\":{\"object\":{\"id\":\"pi\"}},\"request\":{\"id\":\"r\"},\"id\" : \"evt_1_rpl_7f3a9c1e5b20\"}\n", changed: []string{"body:/id"}},
		{name: "heroku, two places", provider: "heroku", body: `{"webhook_metadata":{"delivery":{"id":"d"}},"id":"i","data":{"id":"k"}}`,
			wantBody: `{"webhook_metadata":{"delivery":{"id":"d_rpl_7f3a9c1e5b20"}},"id":"i_rpl_7f3a9c1e5b20","data":{"id":"k"}}`, changed: []string{"body:/webhook_metadata/delivery/id", "body:/id"}},
		{name: "gocardless, elements", provider: "gocardless", body: `{"events":[{"id":"a","links":{"id":"k"}},{"id":"b"}],"meta":{"webhook_id":"w"}}`,
			wantBody: `{"events":[{"id":"a_rpl_7f3a9c1e5b20","links":{"id":"k"}},{"id":"b_rpl_7f3a9c1e5b20"}],"meta":{"webhook_id":"w_rpl_7f3a9c1e5b20"}}`,
			changed:  []string{"body:/events/0/id", "body:/events/1/id", "body:/meta/webhook_id"}},
		{name: "hubspot, integers", provider: "hubspot", body: `[{"eventId":7,"objectId":1}]`, wantBody: `[{"eventId":74821,"objectId":1}]`, changed: []string{"body:/0/eventId"}},
		{name: "telegram", provider: "telegram", body: `{"update_id":10000,"message":{"message_id":1}}`, wantBody: `{"update_id":100004821,"message":{"message_id":1}}`, changed: []string{"body:/update_id"}},
		{name: "sendgrid", provider: "sendgrid", body: `[{"sg_event_id":"e","sg_message_id":"m"}]`, wantBody: `[{"sg_event_id":"e_rpl_7f3a9c1e5b20","sg_message_id":"m"}]`, changed: []string{"body:/0/sg_event_id"}},
		{name: "xero, where elements have one", provider: "xero", body: `{"events":[{"eventId":"e","resourceId":"r","tenantId":"t"},{"resourceId":"r"}],"entropy":"S"}`,
			wantBody: `{"events":[{"eventId":"e_rpl_7f3a9c1e5b20","resourceId":"r","tenantId":"t"},{"resourceId":"r"}],"entropy":"S"}`, changed: []string{"body:/events/0/eventId"}},
		{name: "adyen's platforms", provider: "adyen", body: `{"type":"t","id":"i","data":{"id":"d"}}`, wantBody: `{"type":"t","id":"i_rpl_7f3a9c1e5b20","data":{"id":"d"}}`, changed: []string{"body:/id"}},
		{name: "adyen's payments", provider: "adyen", body: `{"live":"false","notificationItems":[{"NotificationRequestItem":{"pspReference":"p"}}]}`},
		// N: nothing is safe.
		{name: "zoom", provider: "zoom", body: `{"id":"x","event":"y"}`},
		// Unknown senders.
		{name: "elements of an array", provider: "unknown", body: `[{"id":"a"},{"n":1},{"id":5,"uuid":"u"}]`, wantBody: `[{"id":"a_rpl_7f3a9c1e5b20"},{"n":1},{"id":5,"uuid":"u_rpl_7f3a9c1e5b20"}]`, changed: []string{"body:/0/id", "body:/2/uuid"}},
		{name: "an integer", provider: "unknown", body: `{ "id": 42 }`, wantBody: `{ "id": 424821 }`, changed: []string{"body:/id"}},
		{name: "a negative integer", provider: "unknown", body: `{"id":-42}`, wantBody: `{"id":-424821}`, changed: []string{"body:/id"}},
		{name: "null, empty, booleans, objects and fractions", provider: "unknown", body: `{"id":null,"event_id":"","eventId":true,"uuid":{"id":"x"},"guid":["y"],"message_id":1.0,"messageId":1e3,"requestId":0,"request_id":-0}`},
		{name: "an empty string is no identity", provider: "unknown", body: `{"event_id":"","id":7}`, wantBody: `{"event_id":"","id":74821}`, changed: []string{"body:/id"}},
		{name: "escapes before the end", provider: "unknown", body: `{"id":"a\\\"\u00e9"}`, wantBody: `{"id":"a\\\"\u00e9_rpl_7f3a9c1e5b20"}`, changed: []string{"body:/id"}},
		{name: "an escaped name", provider: "unknown", body: `{"\u0069d":"a"}`, wantBody: `{"\u0069d":"a_rpl_7f3a9c1e5b20"}`, changed: []string{"body:/id"}},
		{name: "other names stay", provider: "unknown", body: `{"ID":"a","order_id":"b","data":{"id":"c"}}`},
		{name: "scalars", provider: "unknown", body: ` "id" `},
		{name: "any content type", provider: "unknown", headers: "Content-Type: text/plain", body: `{"id":"a"}`, wantHeaders: "Content-Type: text/plain", wantBody: `{"id":"a_rpl_7f3a9c1e5b20"}`, changed: []string{"body:/id"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := provider.Outgoing{Method: "POST", Headers: fields(c.headers), Body: []byte(c.body)}
			got, changed, err := provider.Regenerate(in, provider.Detection{Provider: c.provider}, c.configs, identity)
			must(t, err)
			if want := or(c.wantBody, c.body); string(got.Body) != want {
				t.Errorf("body %s\nwant %s", got.Body, want)
			}
			if want := fields(or(c.wantHeaders, c.headers)); !slices.Equal(got.Headers, want) {
				t.Errorf("headers %v\nwant %v", got.Headers, want)
			}
			if places := places(changed); !slices.Equal(places, c.changed) {
				t.Errorf("changed %q, want %q", places, c.changed)
			}
			if string(in.Body) != c.body || !slices.Equal(in.Headers, fields(c.headers)) {
				t.Error("the captured request was changed")
			}
		})
	}
	for _, body := range []string{"", " ", "a=1", `{"id":"a"} {}`, `{"id":"a",}`, "\xef\xbb\xbf{}"} {
		_, _, err := provider.Regenerate(provider.Outgoing{Body: []byte(body)}, provider.Detection{Provider: "github"}, nil, identity)
		if !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// places are where changes stand.
func places(changed []provider.Change) []string {
	var list []string
	for _, c := range changed {
		list = append(list, c.Place)
	}
	return list
}

// The new values are told as they read, escapes undone.
func TestRegenerateTellsTheNewValues(t *testing.T) {
	in := provider.Outgoing{Body: []byte(`[{"id":"a\u0062/"},{"id":7}]`), Headers: fields("X-GitHub-Delivery: d")}
	for detected, want := range map[string][]string{"unknown": {"ab/" + identity.Suffix, "7" + identity.Digits}, "github": {identity.UUID}} {
		_, changed, err := provider.Regenerate(in, provider.Detection{Provider: detected}, nil, identity)
		must(t, err)
		var got []string
		for _, c := range changed {
			got = append(got, c.Value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", detected, got, want)
		}
	}
}

// Integers grow up to 2^53-1 and no further.
func TestRegenerateSafeIntegers(t *testing.T) {
	for digits, want := range map[string]string{"0991": `{"id":9007199254740991}`, "0992": `{"id":900719925474}`} {
		id := provider.Identity{Digits: digits}
		got, _, err := provider.Regenerate(provider.Outgoing{Body: []byte(`{"id":900719925474}`)}, provider.Detection{Provider: "unknown"}, nil, id)
		must(t, err)
		if string(got.Body) != want {
			t.Errorf("%s: %s", digits, got.Body)
		}
	}
}

func TestNewIdentity(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12} _rpl_[0-9a-f]{12} [0-9]{4}$`)
	a, b := provider.NewIdentity(), provider.NewIdentity()
	for _, id := range []provider.Identity{a, b} {
		if s := id.UUID + " " + id.Suffix + " " + id.Digits; !form.MatchString(s) {
			t.Error(s)
		}
	}
	if a.UUID == b.UUID || a.Suffix == b.Suffix {
		t.Error("two identities are one")
	}
}

// Whatever can be signed verifies afterwards, with the time of signing, over what is sent; and what cannot says so.
func TestSignEveryProvider(t *testing.T) {
	at := time.Unix(1800000000, 0)
	secrets := map[string]string{"adyen": hex64, "airtable": b64([]byte(secret))}
	inBody := map[string]string{"mailgun": `{"signature" : {"token":"tok", "signature":"00", "timestamp": 1},"event-data":{"event":"opened"}}`}
	for _, info := range provider.Providers() {
		t.Run(info.ID, func(t *testing.T) {
			config := provider.Config{ID: 1, Provider: info.ID, Secrets: []string{"", or(secrets[info.ID], secret), "old"}}
			if info.ID == provider.GenericHMAC {
				config.Options = hookglass.GenericOptions{PayloadTemplate: "{id}.{timestamp}.{body}", TimestampHeader: "X-T", IDHeader: "X-I", ToleranceSeconds: 1}
			}
			captured := provider.Outgoing{Method: "POST", URL: target, Headers: fields("Content-Type: application/json\nX-Kept: 1"), Body: []byte(`{"webhookTimestamp":1800000000000}`)}
			if body := inBody[info.ID]; body != "" {
				captured.Body = []byte(body)
			}
			got, err := provider.Sign(captured, config, at)
			if !info.Signable {
				if !hookglass.Is(err, hookglass.CodeValidationFailed) {
					t.Fatal(err)
				}
				return
			}
			must(t, err)
			r := &provider.Request{Method: got.Method, URL: got.URL, Headers: got.Headers, Body: got.Body, ReceivedAt: at}
			v := provider.Verify(r, provider.Detection{Provider: info.ID}, []provider.Config{config})
			if v.Status != hookglass.SignatureVerified || v.SecretIndex != 1 {
				t.Errorf("%+v\n%s", v, got.Headers.AppendWire(nil))
			}
			again, err := provider.Sign(got, config, at.Add(time.Hour))
			must(t, err)
			if len(again.Headers) != len(got.Headers) {
				t.Errorf("signing twice adds headers:\n%s", again.Headers.AppendWire(nil))
			}
			if got.Headers[1].Value != "1" || len(captured.Headers) != 2 {
				t.Error("other headers were touched")
			}
			if stripped := provider.Strip(provider.Detection{Provider: info.ID}, got.Headers, config); len(provider.Strip(provider.Detection{Provider: "unknown"}, stripped, config)) != len(stripped) {
				t.Errorf("signature headers are left: %v", stripped)
			}
			for _, bad := range [][]string{nil, {""}} {
				config.Secrets = bad
				if _, err := provider.Sign(captured, config, at); !hookglass.Is(err, hookglass.CodeValidationFailed) {
					t.Errorf("secrets %q: %v", bad, err)
				}
			}
		})
	}
	for _, id := range []string{"discord", "paypal", "sendgrid", "telnyx", "plaid", "aws_sns", "travis", "dockerhub", "postmark", "azure_event_grid", "ms_graph", "supabase", "cloudevents", "nobody"} {
		if info, _ := provider.Known(id); info.Signable {
			t.Errorf("%s is signable", id)
		}
		if _, err := provider.Sign(provider.Outgoing{}, provider.Config{Provider: id, Secrets: []string{"x"}}, at); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestSignReplacesWhatWasCaptured(t *testing.T) {
	at := time.Unix(1800000000, 0)
	sign := func(id, headers, url, body string, secrets ...string) provider.Outgoing {
		o, err := provider.Sign(provider.Outgoing{Method: "POST", URL: url, Headers: fields(headers), Body: []byte(body)}, provider.Config{Provider: id, Secrets: secrets}, at)
		must(t, err)
		return o
	}
	names := func(h hookglass.Headers) string {
		var n []string
		for _, f := range h {
			n = append(n, f.Name)
		}
		return strings.Join(n, " ")
	}
	for _, c := range []struct{ id, headers, want string }{
		{"github", "X-GitHub-Event: push", "X-GitHub-Event X-Hub-Signature-256"},
		{"github", "x-hub-signature: sha1=0\nX-GitHub-Event: push", "x-hub-signature X-GitHub-Event X-Hub-Signature-256"},
		{"github", "X-HUB-SIGNATURE-256: 0\nX-Hub-Signature: 0\nX-Hub-Signature-256: 1", "X-HUB-SIGNATURE-256 X-Hub-Signature"},
		{"gitea", "X-Gogs-Signature: 0\nX-Gitea-Signature: 0\nX-Hub-Signature-256: 0", "X-Gogs-Signature X-Gitea-Signature X-Hub-Signature-256"},
		{"shopify", "shopify-hmac-sha256: 0", "shopify-hmac-sha256"},
		{"shopify", "X-Shopify-Topic: orders/create", "X-Shopify-Topic X-Shopify-Hmac-Sha256"},
		{"shopify", "shopify-topic: Product", "shopify-topic shopify-hmac-sha256"},
		{"shopify", "X-Shopify-Topic: a\nshopify-topic: b", "X-Shopify-Topic shopify-topic X-Shopify-Hmac-Sha256"},
		{"docusign", "X-DocuSign-Signature-1: 0\nX-DocuSign-Signature-2: 0", "X-DocuSign-Signature-1"},
		{"gitlab", "X-Gitlab-Event: Push Hook", "X-Gitlab-Event X-Gitlab-Token"},
		{"slack", "X-Slack-Signature: 0\nA: b", "X-Slack-Signature A X-Slack-Request-Timestamp"},
		{"standard_webhooks", "webhook-id: m\nwebhook-signature: v1,x\nwebhook-timestamp: 1", "webhook-id webhook-signature webhook-timestamp"},
	} {
		if got := names(sign(c.id, c.headers, target, "{}", secret).Headers); got != c.want {
			t.Errorf("%s: %s, want %s", c.id, got, c.want)
		}
	}
	if got := sign("gitlab", "X-Gitlab-Event: Push Hook", target, "{}", "whsec_"+b64([]byte(secret))); !got.Headers.Has("webhook-signature") {
		t.Errorf("gitlab with a signing token: %v", got.Headers)
	}
	// Coinbase's newer signature names the headers that it covers, and takes the place of the one that names none.
	for captured, want := range map[string]string{
		"": "t=1800000000,v0=", "t=1,v0=00": "t=1800000000,v0=", "t=1,h=x-b x-a,v1=00": "t=1800000000,h=x-b x-a,v1=", "t=1,v0=00,h=x-a,v1=00": "t=1800000000,h=x-a,v1=",
	} {
		headers := "X-A: 1\nX-B: 2"
		if captured != "" {
			headers += "\nX-Hook0-Signature: " + captured
		}
		got := sign("coinbase_cdp", headers, target, "{}", secret)
		r := &provider.Request{Method: "POST", Headers: got.Headers, Body: got.Body, ReceivedAt: at}
		v := provider.Verify(r, provider.Detect(r), []provider.Config{{Provider: "coinbase_cdp", Secrets: []string{secret}}})
		if text := got.Headers.Get("X-Hook0-Signature"); !strings.HasPrefix(text, want) || strings.Count(text, "v") != 1 || v.Status != hookglass.SignatureVerified {
			t.Errorf("coinbase_cdp %q: %s %+v", captured, text, v)
		}
	}
	// HubSpot's header says which of its two older versions the signature is of.
	for version, payload := range map[string]string{"": "POST" + target + "{}", "v1": "{}", "V1": "{}", "v2": "POST" + target + "{}", "v9": "POST" + target + "{}"} {
		headers := "X-HubSpot-Signature: 00"
		if version != "" {
			headers += "\nX-HubSpot-Signature-Version: " + version
		}
		sum := sha256.Sum256([]byte(secret + payload))
		if got := sign("hubspot", headers, target, "{}", secret).Headers.Get("X-HubSpot-Signature"); got != hex.EncodeToString(sum[:]) {
			t.Errorf("hubspot, version %q: %s", version, got)
		}
	}
	// Twilio binds a JSON body to the URL.
	hash := "bodySHA256=44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
	for url, want := range map[string]string{
		"https://a.test/h":                      "https://a.test/h?" + hash,
		"https://a.test/h?x=%20&y#frag":         "https://a.test/h?x=%20&y&" + hash,
		"https://a.test/h?bodySHA256=old&x=1":   "https://a.test/h?x=1&" + hash,
		"https://a.test/h?x=1&bodySHA256=old":   "https://a.test/h?x=1&" + hash,
		"https://a.test/h?xbodySHA256=1&y=2&&z": "https://a.test/h?xbodySHA256=1&y=2&z&" + hash,
		"https://a.test":                        "https://a.test/?" + hash,
		"https://a.test?a=/":                    "https://a.test/?a=/&" + hash,
	} {
		if got := sign("twilio", "Content-Type: application/json", url, "{}", secret); got.URL != want {
			t.Errorf("%s: %s, want %s", url, got.URL, want)
		}
	}
	// Its header says with which hash.
	settings := "X-Twilio-Webhooks-Signature-Settings: key=k1,algorithm="
	if got := sign("twilio", settings+"HMAC_SHA256", target, "", secret).Headers.Get("X-Twilio-Signature"); got != b64(mac(sha256.New, []byte(secret), target)) {
		t.Errorf("twilio with SHA-256: %s", got)
	}
	if _, err := provider.Sign(provider.Outgoing{Method: "POST", URL: target, Headers: fields(settings + "HMAC_SHA3")}, provider.Config{Provider: "twilio", Secrets: []string{secret}}, at); !hookglass.Is(err, hookglass.CodeValidationFailed) {
		t.Errorf("twilio with an unknown hash: %v", err)
	}
}

// A request to a host alone is one for its root, and its receiver can know of no other URL.
func TestSignForAHostAlone(t *testing.T) {
	config := func(id string) provider.Config {
		return provider.Config{ID: 1, Provider: id, Secrets: []string{secret}}
	}
	for _, id := range []string{"twilio", "square", "hubspot", "trello", "mandrill", "plivo", "contentful"} {
		for to, seen := range map[string]string{"https://a.test": "https://a.test/", "http://a.test:81?x=/#f": "http://a.test:81/?x=/", "https://a.test/#f": "https://a.test/"} {
			got, err := provider.Sign(provider.Outgoing{Method: "POST", URL: to, Headers: fields(form), Body: []byte("a=1")}, config(id), received)
			must(t, err)
			_, query, _ := strings.Cut(seen, "?")
			r := &provider.Request{Method: "POST", URL: seen, RawQuery: query, Headers: got.Headers, Body: got.Body, ReceivedAt: received}
			if v := provider.Verify(r, provider.Detection{Provider: id}, []provider.Config{config(id)}); v.Status != hookglass.SignatureVerified {
				t.Errorf("%s, %s: %+v", id, to, v)
			}
		}
	}
}

// Signatures that stand in the body are exchanged in place: nothing else of it changes. Contentful's list of signed
// headers names what there is.
func TestSignInTheBody(t *testing.T) {
	at := time.Unix(1800000000, 0)
	mailgun := hex.EncodeToString(mac(sha256.New, []byte(secret), "1800000000tok"))
	key, _ := hex.DecodeString(hex64)
	adyen := func(psp string) string { return b64(mac(sha256.New, key, psp+"::::1130:EUR:AUTHORISATION:true")) }
	item := func(psp, signature string) string {
		return `{"NotificationRequestItem": {"amount":{"value":1130,"currency":"EUR"},"pspReference":"` + psp + `","additionalData":{"hmacSignature":` + signature + `},"eventCode":"AUTHORISATION","success":"true"}}`
	}
	for _, c := range []struct{ name, provider, headers, body, secret, want string }{
		{"mailgun", "mailgun", "", "{ \"event-data\":{\"id\":\"\\u00e9\"},\n\"signature\":{\"timestamp\":\"1\",\"token\":\"tok\",\"signature\":\"00\"}}\n", secret,
			"{ \"event-data\":{\"id\":\"\\u00e9\"},\n\"signature\":{\"timestamp\":\"1800000000\",\"token\":\"tok\",\"signature\":\"" + mailgun + "\"}}\n"},
		{"mailgun, by curl -d", "mailgun", "Content-Type: application/x-www-form-urlencoded", `{"signature":{"timestamp":"1","token":"tok","signature":"00"}}`, secret,
			`{"signature":{"timestamp":"1800000000","token":"tok","signature":"` + mailgun + `"}}`},
		{"mailgun form", "mailgun", "Content-Type: application/x-www-form-urlencoded", "a=%20b&signature=00&timestamp=1&token=tok&c", secret, "a=%20b&signature=" + mailgun + "&timestamp=1800000000&token=tok&c"},
		{"adyen", "adyen", "", `{"live":"false", "notificationItems":[` + item("1", `"00"`) + "," + item("2", `"x"`) + `]}`, hex64,
			`{"live":"false", "notificationItems":[` + item("1", `"`+adyen("1")+`"`) + "," + item("2", `"`+adyen("2")+`"`) + `]}`},
	} {
		got, err := provider.Sign(provider.Outgoing{Method: "POST", URL: target, Headers: fields(c.headers), Body: []byte(c.body)}, provider.Config{Provider: c.provider, Secrets: []string{c.secret}}, at)
		if err != nil || string(got.Body) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got.Body, c.want)
		}
	}
	for _, c := range []struct{ provider, body, secret string }{
		{"linear", `{"action":"create"}`, secret}, // whose time stands in the body
		{"mailgun", `{"event-data":{}}`, secret}, {"mailgun", `{"signature":{"timestamp":"1","token":"t","signature":"0"}`, secret},
		{"mailgun", `{"signature":{"timestamp":"1","token":"t","signature":"0","signature":"1"}}`, secret}, {"adyen", `{"notificationItems":[` + item("1", `"00"`) + `]}`, "no hex"},
	} {
		if _, err := provider.Sign(provider.Outgoing{Method: "POST", Body: []byte(c.body)}, provider.Config{Provider: c.provider, Secrets: []string{c.secret}}, at); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("%s %s: %v", c.provider, c.body, err)
		}
	}
	got, err := provider.Sign(provider.Outgoing{Method: "POST", URL: target, Body: []byte("{}"), Headers: fields("X-Contentful-Topic: a\nx-contentful-signature: 00\nx-contentful-signed-headers: Host,X-Contentful-Topic,X-Contentful-CRN,x-gone\nX-Contentful-CRN: c")},
		provider.Config{Provider: "contentful", Secrets: []string{secret}}, at)
	must(t, err)
	if names := got.Headers.Get("x-contentful-signed-headers"); names != "x-contentful-crn,x-contentful-signed-headers,x-contentful-timestamp,x-contentful-topic" {
		t.Errorf("signed headers %q", names)
	}
}

// Reference: providers.md section 6.
func TestStrip(t *testing.T) {
	all := fields("Authorization: Bearer x\nX-Hub-Signature-256: 1\nStripe-Signature: 1\nX-SLACK-request-timestamp: 1\nwebhook-signature: 1\nwebhook-id: 1\n" +
		"X-DocuSign-Signature-17: 1\nX-Acme-Signature: 1\nX-Acme-Time: 1\nContent-Type: application/json")
	generic := provider.Config{Provider: provider.GenericHMAC, Options: hookglass.GenericOptions{Header: "X-Acme-Signature", TimestampHeader: "X-Acme-Time"}}
	for _, c := range []struct {
		provider string
		configs  []provider.Config
		gone     []string
	}{
		{"stripe", nil, []string{"Stripe-Signature"}},
		{"slack", nil, []string{"X-SLACK-request-timestamp"}},
		{"postmark", nil, []string{"Authorization"}},
		{"dockerhub", nil, nil},
		{"unknown", nil, []string{"X-Hub-Signature-256", "Stripe-Signature", "X-SLACK-request-timestamp", "webhook-signature", "X-DocuSign-Signature-17"}},
		{"stripe", []provider.Config{generic}, []string{"Stripe-Signature", "X-Acme-Signature", "X-Acme-Time"}},
	} {
		before := slices.Clone(all)
		got := provider.Strip(provider.Detection{Provider: c.provider}, all, c.configs...)
		want := slices.DeleteFunc(slices.Clone(all), func(h hookglass.Header) bool { return slices.Contains(c.gone, h.Name) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.provider, got, want)
		}
		if !slices.Equal(all, before) {
			t.Fatal("the captured headers were changed")
		}
	}
}

// Every sample is what it says, verifies once signed, and has no two names.
func TestSamples(t *testing.T) {
	secrets := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	seen := map[provider.SampleEvent]bool{}
	sampled := map[string]bool{}
	for _, s := range provider.Samples() {
		if seen[s] {
			t.Errorf("%v is there twice", s)
		}
		seen[s], sampled[s.Provider] = true, true
		o, err := provider.Sample(s.Provider, s.Event, target)
		must(t, err)
		config := provider.Config{Provider: s.Provider, Secrets: []string{secrets}}
		if o, err = provider.Sign(o, config, received); err != nil {
			t.Fatal(err)
		}
		_, query, _ := strings.Cut(o.URL, "?")
		r := &provider.Request{Method: o.Method, URL: o.URL, RawQuery: query, Headers: o.Headers, Body: o.Body, ReceivedAt: received}
		d := provider.Detect(r)
		if want := s.Provider; want != provider.GenericHMAC && d.Provider != want || d.EventType != s.EventType {
			t.Errorf("%v: detected %+v", s, d)
		}
		if v := provider.Verify(r, d, []provider.Config{config}); v.Status != hookglass.SignatureVerified {
			t.Errorf("%v: %+v", s, v)
		}
		if !strings.Contains(o.URL, "team=ops") || strings.HasSuffix(o.URL, "&") {
			t.Errorf("%v: %s", s, o.URL)
		}
	}
	if got := slices.Sorted(maps.Keys(sampled)); !slices.Equal(got, firstClass) {
		t.Errorf("there are samples of %v", got)
	}
	for _, name := range [][2]string{{"github", "push"}, {"github", "pull_request.opened"}, {"github", "pull_request"}, {"shopify", "orders/create"}, {"shopify", "orders-create"},
		{"stripe", "invoice.payment_failed"}, {"slack", "app_mention"}, {"slack", "slash_command"}, {"twilio", "message.received"}, {"twilio", ""}} {
		if _, err := provider.Sample(name[0], name[1], target); err != nil {
			t.Errorf("%v: %v", name, err)
		}
	}
	for name, events := range map[string]string{ // what most handlers are written for
		"github":  "ping push pull_request issues issue_comment pull_request_review release workflow_run",
		"stripe":  "payment_intent.succeeded payment_intent.payment_failed charge.succeeded charge.refunded checkout.session.completed customer.created customer.subscription.created customer.subscription.updated customer.subscription.deleted invoice.paid invoice.payment_succeeded invoice.payment_failed",
		"shopify": "orders/create orders/updated orders/paid orders/fulfilled orders/cancelled refunds/create products/create products/update customers/create app/uninstalled customers/data_request customers/redact shop/redact",
		"slack":   "message app_mention reaction_added app_home_opened slash_command block_actions view_submission",
		"twilio":  "message.received message.delivered call.ringing call.completed recording.completed",
	} {
		for event := range strings.FieldsSeq(events) {
			if o, err := provider.Sample(name, event, target); err != nil || o.Headers.Has("X-Slack-Retry-Num") {
				t.Errorf("%s.%s is no sample of a first delivery: %v %v", name, event, o.Headers, err)
			}
		}
	}
	for name, want := range map[[2]string]string{
		{"github", "nothing"}: "event_type is no sample event; it must be one of ping, push, ", {"nobody", "push"}: "provider has no sample events; it must be one of github, ",
		{"linear", ""}: "provider has no sample events; ",
	} {
		if _, err := provider.Sample(name[0], name[1], target); !hookglass.Is(err, hookglass.CodeValidationFailed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s…", name, err, want)
		}
	}
}

// Reference: providers.md section 4.
func TestHandshake(t *testing.T) {
	zoom := []provider.Config{{Provider: "zoom", Secrets: []string{"", secret}}}
	x := []provider.Config{{Provider: "x_twitter", Secrets: []string{secret}}}
	xero := []provider.Config{{Provider: "xero", Secrets: []string{secret}}}
	discord := []provider.Config{{Provider: "discord", Secrets: []string{hex64}}}
	hmacOf := func(text string) []byte { return mac(sha256.New, []byte(secret), text) }
	for _, c := range []struct {
		name, method, query, headers, body string
		configs                            []provider.Config
		status                             int // 0: no handshake
		want, header                       string
	}{
		{name: "slack", body: `{"type":"url_verification","token":"t","challenge":"c<1>"}`, status: 200, want: "c<1>", header: "Content-Type: text/plain"},
		{name: "slack, known by nothing but the question", body: `{"challenge":"c","type":"url_verification"}`, status: 200, want: "c"},
		{name: "slack, by curl -d", headers: "Content-Type: application/x-www-form-urlencoded", body: `{"token":"t","challenge":"c","type":"url_verification"}`, status: 200, want: "c"},
		{name: "slack, behind a byte order mark", body: "\xef\xbb\xbf" + `{"challenge":"c","type":"url_verification"}`, status: 200, want: "c"},
		{name: "zoom, known by nothing but the question", body: `{"payload":{"plainToken":"p"},"event":"endpoint.url_validation"}`, configs: zoom, status: 200,
			want: `{"encryptedToken":"` + hex.EncodeToString(hmacOf("p")) + `","plainToken":"p"}`},
		{name: "event grid, known by nothing but the question", body: `[{"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","data":{"validationCode":"512d"}}]`, status: 200, want: `{"validationResponse":"512d"}`},
		{name: "a body that speaks of the question", body: `{"type":"message","text":"url_verification","challenge":"c"}`},
		{name: "a body too long for a question", body: `{"challenge":"c","type":"url_verification","pad":"` + strings.Repeat("x", 16<<10) + `"}`},
		{name: "slack without a challenge", headers: "X-Slack-Signature: x", body: `{"type":"url_verification"}`},
		{name: "a body that speaks of zoom's question", body: `{"event":"message","text":"endpoint.url_validation","payload":{"plainToken":"p"}}`, configs: zoom},
		{name: "a body that speaks of event grid's question", body: `[{"eventType":"Other","subject":"SubscriptionValidationEvent","data":{"validationCode":"512d"}}]`},
		{name: "meta", method: "GET", query: "hub.mode=subscribe&hub.verify_token=t&hub.challenge=42%2B1", status: 200, want: "42+1", header: "X-Content-Type-Options: nosniff"},
		{name: "websub", method: "GET", query: "hub.topic=x&hub.mode=unsubscribe&hub.challenge=42", status: 200, want: "42"},
		{name: "zoom", headers: "x-zm-signature: v0=x", body: `{"event":"endpoint.url_validation","payload":{"plainToken":"p"}}`, configs: zoom, status: 200,
			want: `{"encryptedToken":"` + hex.EncodeToString(hmacOf("p")) + `","plainToken":"p"}`, header: "Content-Type: application/json"},
		{name: "zoom without a secret", headers: "x-zm-signature: v0=x", body: `{"event":"endpoint.url_validation","payload":{"plainToken":"p"}}`},
		{name: "zoom without a token", headers: "x-zm-signature: v0=x", body: `{"event":"endpoint.url_validation","payload":{}}`, configs: zoom},
		{name: "microsoft graph", query: "validationToken=Validation%3a+Testing", status: 200, want: "Validation: Testing", header: "Content-Type: text/plain"},
		{name: "microsoft graph by get", method: "GET", query: "validationToken=a+b", status: 200, want: "a b", header: "X-Content-Type-Options: nosniff"},
		{name: "event grid", headers: "aeg-event-type: SubscriptionValidation", body: `[{"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","data":{"validationCode":"512d"}}]`, status: 200, want: `{"validationResponse":"512d"}`},
		{name: "cloudevents", method: "OPTIONS", headers: "WebHook-Request-Origin: eventemitter.example.com\nWebHook-Request-Rate: 120", status: 200, header: "WebHook-Allowed-Origin: eventemitter.example.com"},
		{name: "cloudevents, as often", method: "OPTIONS", headers: "WebHook-Request-Origin: a.test\nWebHook-Request-Rate: 120", status: 200, header: "WebHook-Allowed-Rate: 120"},
		{name: "cloudevents, however often", method: "OPTIONS", headers: "WebHook-Request-Origin: a.test", status: 200, header: "WebHook-Allowed-Rate: *"},
		{name: "cloudevents, as often as can not be said", method: "OPTIONS", headers: "WebHook-Request-Origin: a.test\nWebHook-Request-Rate: 1\x7f", status: 200, header: "WebHook-Allowed-Rate: *"},
		{name: "cloudevents of a name for no header", method: "OPTIONS", headers: "WebHook-Request-Origin: a\x1f.test"},
		{name: "cloudevents of a name too long", method: "OPTIONS", headers: "WebHook-Request-Origin: " + strings.Repeat("x", 4097)},
		{name: "event grid without a code", headers: "aeg-event-type: SubscriptionValidation", body: `[{"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","data":{}}]`},
		{name: "a preflight is none", method: "OPTIONS", headers: "Origin: https://a.test"},
		{name: "dropbox", method: "GET", query: "challenge=abc", status: 200, want: "abc", header: "X-Content-Type-Options: nosniff"},
		{name: "a query that happens to have one", method: "GET", query: "challenge=abc&page=2"},
		{name: "asana", headers: "X-Hook-Secret: hs", status: 200, header: "X-Hook-Secret: hs"},
		{name: "twitch", headers: "Twitch-Eventsub-Message-Type: webhook_callback_verification", body: `{"challenge":"tc","subscription":{}}`, status: 200, want: "tc"},
		{name: "twitch, an event", headers: "Twitch-Eventsub-Message-Type: notification", body: `{"challenge":"tc","subscription":{}}`},
		{name: "xero, right", headers: "x-xero-signature: " + b64(hmacOf(`{"events":[ ],"entropy":"e"}`)), body: `{"events":[ ],"entropy":"e"}`, configs: xero, status: 200},
		{name: "xero, wrong", headers: "x-xero-signature: " + base64ed, body: `{"events":[],"entropy":"e"}`, configs: xero, status: 401},
		{name: "xero, an event", headers: "x-xero-signature: " + base64ed, body: `{"events":[{}],"entropy":"e"}`, configs: xero},
		{name: "xero, no list", headers: "x-xero-signature: " + base64ed, body: `{"events":"]","entropy":"e"}`, configs: xero},
		{name: "xero, a digit", headers: "x-xero-signature: " + base64ed, body: `{"events":7,"entropy":"e"}`, configs: xero},
		{name: "x", method: "GET", query: "crc_token=tok&nonce=1", configs: x, status: 200, want: `{"response_token":"sha256=` + b64(hmacOf("tok")) + `"}`},
		{name: "x without a secret", method: "GET", query: "crc_token=tok"},
		{name: "x with another's secret", method: "GET", query: "crc_token=tok", configs: zoom},
		{name: "x with a token too long", method: "GET", query: "crc_token=" + strings.Repeat("x", 4097), configs: x},
		{name: "discord event ping", headers: "X-Signature-Ed25519: 00\nX-Signature-Timestamp: 1", body: `{"version":1,"application_id":"1","type":0}`, status: 204},
		{name: "discord interaction ping", headers: "X-Signature-Ed25519: 00\nX-Signature-Timestamp: 1", body: `{"application_id":"1","type":1}`, status: 200, want: `{"type":1}`},
		{name: "discord probes with a bad signature", headers: "X-Signature-Ed25519: 00\nX-Signature-Timestamp: 1", body: `{"application_id":"1","type":1}`, configs: discord, status: 401, want: "invalid request signature"},
		{name: "discord event", headers: "X-Signature-Ed25519: 00\nX-Signature-Timestamp: 1", body: `{"application_id":"1","type":0,"event":{}}`},
		{name: "discord ping that names no event", headers: "X-Signature-Ed25519: 00\nX-Signature-Timestamp: 1", body: `{"application_id":"1","type":0,"event":null}`, status: 204},
		{name: "discord command", headers: "X-Signature-Ed25519: 00\nX-Signature-Timestamp: 1", body: `{"application_id":"1","type":2}`},
		{name: "discord ping to nobody", headers: "X-Signature-Ed25519: 00\nX-Signature-Timestamp: 1", body: `{"type":1}`},
		{name: "discord event of its type", headers: "X-Signature-Ed25519: 00\nX-Signature-Timestamp: 1", body: `{"version":1,"application_id":"1","type":1,"event":{"type":"ENTITLEMENT_CREATE"}}`, configs: discord},
		{name: "adyen", body: `{"live":"false","notificationItems":[{"NotificationRequestItem":{"eventCode":"AUTHORISATION"}}]}`, status: 200, want: "[accepted]"},
		{name: "adyen, another kind", headers: "HmacSignature: x", body: `{"type":"balancePlatform.payment.created"}`},
		{name: "an ordinary delivery", headers: "X-GitHub-Event: ping", body: `{"challenge":"x"}`},
		{name: "a challenge too long to echo", method: "GET", query: "challenge=" + strings.Repeat("x", 4097)},
		{name: "the longest", method: "GET", query: "challenge=" + strings.Repeat("x", 4096), status: 200, want: strings.Repeat("x", 4096)},
		{name: "head", method: "HEAD", query: "challenge=x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &provider.Request{Method: or(c.method, "POST"), RawQuery: c.query, Headers: fields(c.headers), Body: []byte(c.body), ReceivedAt: received}
			got, ok := provider.Handshake(r, provider.Detect(r), c.configs)
			if ok != (c.status != 0) || ok && got.Status != c.status {
				t.Fatalf("%v %d", ok, got.Status)
			}
			if ok && c.want != "" && string(got.Body) != c.want {
				t.Errorf("body %q, want %q", got.Body, c.want)
			}
			if name, value, has := strings.Cut(c.header, ": "); has && got.Headers.Get(name) != value {
				t.Errorf("headers %v", got.Headers)
			}
			if strings.HasPrefix(string(got.Body), "{") && !json.Valid(got.Body) {
				t.Errorf("not JSON: %s", got.Body)
			}
		})
	}
}

// Zoom validates addresses again and again, with the secret that it has: while one is exchanged that is the old one.
func TestZoomIsAnsweredWithTheSecretThatItSignedWith(t *testing.T) {
	const body = `{"event":"endpoint.url_validation","payload":{"plainToken":"p"}}`
	configs := []provider.Config{
		{ID: 6, Provider: "slack", Secrets: []string{"slack's"}}, {ID: 7, Provider: "zoom", Secrets: []string{"new", "old"}}, {ID: 8, Provider: "zoom", Secrets: []string{"newer", "older"}},
	}
	for _, key := range []string{"new", "old", "newer", "older"} {
		ts := fmt.Sprint(stamp)
		r := &provider.Request{Method: "POST", Body: []byte(body), ReceivedAt: received, Headers: fields("x-zm-request-timestamp: " + ts +
			"\nx-zm-signature: v0=" + hex.EncodeToString(mac(sha256.New, []byte(key), "v0:", ts, ":", body)))}
		answer, ok := provider.Handshake(r, provider.Detect(r), configs)
		want := hex.EncodeToString(mac(sha256.New, []byte(key), "p"))
		if !ok || !strings.Contains(string(answer.Body), want) {
			t.Errorf("signed with the %s secret: %v %s, want %s", key, ok, answer.Body, want)
		}
	}
}

func TestValuesArePutIntoASample(t *testing.T) {
	o, err := provider.Sample("stripe", "invoice.paid", target)
	must(t, err)
	set, err := o.Set([]byte(`{"/type":"invoice.voided","/data/object/amount_paid":1.50,"/data/object/metadata":{"b":[],"a":null},"/data/object/metadata/c":true}`))
	must(t, err)
	if !bytes.HasPrefix(set.Body, []byte(`{"id":"`)) || !bytes.Contains(set.Body, []byte(`"type":"invoice.voided"`)) || !bytes.Contains(set.Body, []byte(`"amount_paid":1.50,`)) ||
		!bytes.Contains(set.Body, []byte(`"metadata":{"b":[],"a":null,"c":true}`)) || bytes.Equal(o.Body, set.Body) {
		t.Errorf("%s", set.Body)
	}
	form, err := provider.Sample("github", "push-form-encoded", target)
	must(t, err)
	many := `{"/a0":0`
	for i := range 100 {
		many += fmt.Sprintf(`,"/a%d":0`, i+1)
	}
	for values, of := range map[string]provider.Outgoing{
		`{"/a":1}`: form, `[]`: o, `{"a":1}`: o, `{"/data/nothing/a":1}`: o, `{"/type/a":1}`: o, `{"/a":1,"/a":2}`: o, `{"/a"`: o, many + "}": o,
	} {
		if _, err := of.Set([]byte(values)); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("%.40s: %v", values, err)
		}
	}
}
