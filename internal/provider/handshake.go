package provider

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	"hookglass"
)

// maxChallenge bounds what is echoed to a sender; the longest known challenges have a few hundred bytes.
const maxChallenge = 4096

// Handshake returns the answer with which a sender validates a new endpoint, and whether the request is such a
// handshake (providers.md section 4). Answers that need a secret are given if a config has it. Handshakes that require
// a request of our own (Amazon SNS) are not handled here.
func Handshake(r *Request, d Detection, configs []Config) (Answer, bool) {
	in := &input{Request: r}
	switch r.Method {
	case "GET":
		return handshakeGET(in, configs)
	case "OPTIONS":
		return handshakeOptions(in)
	case "POST":
	default:
		return Answer{}, false
	}
	if strings.Contains(r.RawQuery, "validationToken=") { // Microsoft Graph
		if token, ok := formValue(in.queryParams(), "validationToken"); ok {
			return echo(token)
		}
	}
	switch d.Provider {
	case "slack":
		if d.EventType == "url_verification" {
			return echo(in.at([]string{"challenge"}).text())
		}
	case "zoom":
		if d.EventType == "endpoint.url_validation" {
			return zoomValidation(in, configs)
		}
	case "azure_event_grid":
		return eventGridValidation(in)
	case "asana":
		if secret := r.Headers.Get("X-Hook-Secret"); secret != "" {
			return Answer{Status: 200, Headers: hookglass.Headers{{Name: "X-Hook-Secret", Value: secret}}}, true
		}
	case "twitch":
		if strings.EqualFold(r.Headers.Get("Twitch-Eventsub-Message-Type"), "webhook_callback_verification") {
			return echo(in.at([]string{"challenge"}).text())
		}
	case "discord":
		return discordPing(in, d, configs)
	case "xero":
		return xeroIntent(in, d, configs)
	case "adyen":
		if in.at(adyenItems).present() {
			accepted := answerText(200, "[accepted]")
			accepted.Ordinary = true
			return accepted, true
		}
	case hookglass.UnknownProvider:
		return handshakeBody(in, configs)
	}
	return Answer{}, false
}

// maxQuestion bounds the bodies of unknown senders that are searched for a handshake; the longest known have 1 KB.
const maxQuestion = 16 << 10

// handshakeBody answers handshakes that the body alone identifies, when no rule matches the sender: a manual test, or a
// request that lost its headers on the way.
func handshakeBody(in *input, configs []Config) (Answer, bool) {
	if len(in.Body) > maxQuestion {
		return Answer{}, false
	}
	switch { // a cheap check first, because nearly no delivery is a handshake
	case bytes.Contains(in.Body, []byte("url_verification")) && in.at([]string{"type"}).text() == "url_verification":
		return echo(in.at([]string{"challenge"}).text())
	case bytes.Contains(in.Body, []byte("endpoint.url_validation")) && in.at([]string{"event"}).text() == "endpoint.url_validation":
		return zoomValidation(in, configs)
	case bytes.Contains(in.Body, []byte("SubscriptionValidationEvent")):
		return eventGridValidation(in)
	}
	return Answer{}, false
}

// handshakeGET answers handshakes in the query; their senders have no identifying header.
func handshakeGET(in *input, configs []Config) (Answer, bool) {
	if in.RawQuery == "" {
		return Answer{}, false
	}
	query := in.queryParams()
	switch mode, _ := formValue(query, "hub.mode"); mode {
	case "subscribe", "unsubscribe": // Meta, WebSub
		challenge, _ := formValue(query, "hub.challenge")
		return echo(challenge)
	}
	if token, ok := formValue(query, "crc_token"); ok { // X
		if secret := secretOf("x_twitter", configs); secret != "" && len(token) <= maxChallenge {
			digest := hmacSHA256(secret, token)
			return answerJSON(map[string]string{"response_token": "sha256=" + base64.StdEncoding.EncodeToString(digest)}), true
		}
		return Answer{}, false
	}
	if challenge, ok := formValue(query, "challenge"); ok && len(query) == 1 { // Dropbox, Nylas
		return echo(challenge)
	}
	if token, ok := formValue(query, "validationToken"); ok { // Microsoft Graph
		return echo(token)
	}
	return Answer{}, false
}

// handshakeOptions answers the abuse protection of CloudEvents (HTTP Webhook 1.0, section 4).
func handshakeOptions(in *input) (Answer, bool) {
	origin := in.Headers.Get("WebHook-Request-Origin")
	if origin == "" || !printableHeader(origin) {
		return Answer{}, false
	}
	rate := in.Headers.Get("WebHook-Request-Rate")
	if rate == "" || !printableHeader(rate) {
		rate = "*"
	}
	return Answer{Status: 200, Headers: hookglass.Headers{
		{Name: "Allow", Value: "POST"},
		{Name: "WebHook-Allowed-Origin", Value: origin},
		{Name: "WebHook-Allowed-Rate", Value: rate},
	}}, true
}

func eventGridValidation(in *input) (Answer, bool) {
	if in.at([]string{"0", "eventType"}).text() != "Microsoft.EventGrid.SubscriptionValidationEvent" {
		return Answer{}, false
	}
	code := in.at([]string{"0", "data", "validationCode"}).text()
	return answerJSON(map[string]string{"validationResponse": code}), code != ""
}

func zoomValidation(in *input, configs []Config) (Answer, bool) {
	token := in.at([]string{"payload", "plainToken"}).text()
	secret := secretOf("zoom", configs)
	// During a rotation the sender may still use the old secret: it expects the answer to be made with the one it
	// signed with.
	if v := Verify(in.Request, Detection{Provider: "zoom"}, configs); v.Status == hookglass.SignatureVerified {
		for _, c := range configs {
			if c.Provider == "zoom" && c.ID == v.ConfigID && v.SecretIndex < len(c.Secrets) {
				secret = c.Secrets[v.SecretIndex]
				break
			}
		}
	}
	if token == "" || secret == "" || len(token) > maxChallenge {
		return Answer{}, false
	}
	return answerJSON(map[string]string{"plainToken": token, "encryptedToken": hex.EncodeToString(hmacSHA256(secret, token))}), true
}

// discordPing answers both kinds of PING: type 0 of webhook events, whose events are of type 1, and type 1 of
// interactions. Discord also sends some with an invalid signature and expects 401 for these.
func discordPing(in *input, d Detection, configs []Config) (Answer, bool) {
	kind := in.at([]string{"type"}).text()
	event := kind == "0"
	if !event && kind != "1" || !in.at([]string{"application_id"}).present() || in.at([]string{"event"}).present() {
		return Answer{}, false
	}
	switch {
	case Verify(in.Request, d, configs).Status == hookglass.SignatureFailed:
		return answerText(401, "invalid request signature"), true
	case event:
		return Answer{Status: 204}, true
	}
	return Answer{Status: 200, Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}, Body: []byte(`{"type":1}`)}, true
}

// xeroIntent answers Xero's "intent to receive": deliveries without events, some of them deliberately with a wrong
// signature.
func xeroIntent(in *input, d Detection, configs []Config) (Answer, bool) {
	events := in.at([]string{"events"})
	if len(events) < 2 || events[0] != '[' || events[skipSpace(events, 1)] != ']' {
		return Answer{}, false
	}
	switch Verify(in.Request, d, configs).Status {
	case hookglass.SignatureVerified:
		return Answer{Status: 200}, true
	case hookglass.SignatureFailed:
		return Answer{Status: 401}, true
	}
	return Answer{}, false
}

// secretOf returns the first secret of the provider's configs.
func secretOf(provider string, configs []Config) string {
	for _, c := range configs {
		if s := cmp.Or(c.Secrets...); s != "" && c.Provider == provider {
			return s
		}
	}
	return ""
}

func hmacSHA256(secret, text string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return h.Sum(nil)
}

// echo answers with the sender's own text, served so that browsers do not treat it as a page.
func echo(text string) (Answer, bool) {
	if text == "" || len(text) > maxChallenge {
		return Answer{}, false
	}
	return answerText(200, text), true
}

func answerText(status int, text string) Answer {
	return Answer{Status: status, Body: []byte(text), Headers: hookglass.Headers{
		{Name: "Content-Type", Value: "text/plain"},
		{Name: "X-Content-Type-Options", Value: "nosniff"},
	}}
}

func answerJSON(members map[string]string) Answer {
	body, _ := json.Marshal(members) // of texts: it cannot fail
	return Answer{Status: 200, Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}, Body: body}
}

// printableHeader reports whether a value may be sent back in a header.
func printableHeader(s string) bool {
	return len(s) <= maxChallenge && strings.IndexFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0
}
