package provider_test

import (
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/provider"
)

// Whatever can be signed here is verified with the published secret, and nothing of the signature that came stays.
func TestWhatIsSignedWithThePublishedSecretVerifies(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	bodies := map[string]string{
		"adyen":   `{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"captured"},"pspReference":"1","merchantAccountCode":"m","amount":{"value":1,"currency":"EUR"},"eventCode":"AUTHORISATION","success":"true"}}]}`,
		"mailgun": `{"signature":{"timestamp":"1","token":"t","signature":"captured"},"event-data":{}}`,
		"linear":  `{"webhookTimestamp":1795168800000}`,
	}
	signed := 0
	for _, info := range provider.Providers() {
		t.Run(info.ID, func(t *testing.T) {
			d := provider.Detection{Provider: info.ID}
			configs := []provider.Config{{ID: 1, Provider: info.ID, Secrets: []string{"captured"}}}
			c, ok := provider.Published(d, "", configs)
			if ok != info.Signable {
				t.Fatalf("signable %v, published %v", info.Signable, ok)
			}
			body := bodies[info.ID]
			if body == "" {
				body = `{"id":"evt_1"}`
			}
			o := provider.Outgoing{Method: "POST", URL: "https://bundle.example/", Body: []byte(body), Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}}
			for _, name := range provider.SignatureHeaders(info.ID) {
				o.Headers = append(o.Headers, hookglass.Header{Name: strings.TrimSuffix(name, "*") + strings.Repeat("2", strings.Count(name, "*")), Value: "captured"})
			}
			if !ok {
				return
			}
			signed++
			o, err := provider.SignAlone(o, d, configs, c, at)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(o.Headers.AppendWire(nil)) + string(o.Body); strings.Contains(text, "captured") {
				t.Errorf("a signature that came stays: %s", text)
			}
			_, query, _ := strings.Cut(o.URL, "?")
			got := provider.Verify(&provider.Request{Method: o.Method, URL: o.URL, RawQuery: query, Headers: o.Headers, Body: o.Body, ReceivedAt: at}, d, []provider.Config{c})
			if got.Status != hookglass.SignatureVerified {
				t.Errorf("%s %s\n%s", got.Status, got.Reason, o.Headers.AppendWire(nil))
			}
		})
	}
	if signed < 80 {
		t.Errorf("%d senders were signed for", signed)
	}
}

func TestTheEndpointsOwnSchemeIsSignedWithThePublishedSecret(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for _, encoding := range []string{"", "utf8", "base64", "hex"} {
		configs := []provider.Config{{ID: 1, Provider: provider.GenericHMAC, Secrets: []string{"captured"}, Options: hookglass.GenericOptions{Header: "X-Own", SecretEncoding: encoding}}}
		c, ok := provider.Published(provider.Detection{Provider: hookglass.UnknownProvider}, "", configs)
		if !ok {
			t.Fatal("there is nothing to sign by")
		}
		o, err := provider.SignAlone(provider.Outgoing{Method: "POST", URL: "https://bundle.example/", Body: []byte("x")}, provider.Detection{}, configs, c, at)
		if err != nil {
			t.Fatal(err)
		}
		got := provider.Verify(&provider.Request{Method: "POST", URL: o.URL, Headers: o.Headers, Body: o.Body, ReceivedAt: at}, provider.Detection{}, []provider.Config{c})
		if got.Status != hookglass.SignatureVerified || !o.Headers.Has("X-Own") {
			t.Errorf("%q: %s %s", encoding, got.Status, got.Reason)
		}
	}
	if c, ok := provider.Published(provider.Detection{Provider: hookglass.UnknownProvider}, "", nil); ok {
		t.Errorf("%+v", c)
	}
}

// MailerLite's and Hookdeck's deliveries are known by the config alone that verifies them.
func TestASenderThatNoRuleNamesIsSignedForAsItWasVerified(t *testing.T) {
	unknown := provider.Detection{Provider: hookglass.UnknownProvider}
	configs := []provider.Config{
		{ID: 1, Provider: provider.GenericHMAC, Secrets: []string{"captured"}, Options: hookglass.GenericOptions{Header: "X-Own"}},
		{ID: 2, Provider: "mailerlite", Secrets: []string{"captured"}}, {ID: 3, Provider: "discord", Secrets: []string{"captured"}},
	}
	for by, want := range map[string]string{"mailerlite": "mailerlite", "hookdeck": "hookdeck", "": provider.GenericHMAC, provider.GenericHMAC: provider.GenericHMAC, "discord": "", "a newer one": provider.GenericHMAC} {
		c, ok := provider.Published(unknown, by, configs)
		if c.Provider != want || ok != (want != "") || ok && c.Options != configs[0].Options && want == provider.GenericHMAC {
			t.Errorf("%q: %+v %v", by, c, ok)
		}
	}
	if c, _ := provider.Published(provider.Detection{Provider: "github"}, "mailerlite", configs); c.Provider != "github" {
		t.Errorf("%+v", c)
	}
}
