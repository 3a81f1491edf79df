package delivery_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/cputime"
	"hookglass/internal/delivery"
	"hookglass/internal/provider"
	"hookglass/internal/timeshift"
)

// transform is a known answer: what a captured request becomes.
type transform struct {
	ID, Provider string
	Input        struct {
		Method   string
		Headers  [][2]string
		BodyFile string `json:"body_file"`
	}
	Options struct {
		Identity  string `json:"identity_mode"`
		Signature string `json:"signature_mode"`
		Target    string `json:"target_url"`
	}
	Fixed struct {
		Suffix, UUID, Digits, Secret string
		Now                          int64
	}
	Expected struct {
		URL      string
		Headers  [][2]string
		BodyFile string `json:"body_file"`
		Error    *struct{ Status int }
	}
}

const vectors = "../provider/testdata"

func readBody(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(vectors, name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func fields(list [][2]string) (h hookglass.Headers) {
	for _, f := range list {
		h = append(h, hookglass.Header{Name: f[0], Value: f[1]})
	}
	return h
}

func TestReplayVectors(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(vectors, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Replay []transform }
	if err := json.Unmarshal(text, &file); err != nil || len(file.Replay) == 0 {
		t.Fatalf("%d transforms: %v", len(file.Replay), err)
	}
	for _, v := range file.Replay {
		t.Run(v.ID, func(t *testing.T) {
			now := time.Unix(v.Fixed.Now, 0)
			o := delivery.Order{
				Event: &hookglass.Event{
					ID: "req_1", Type: hookglass.EventWebhook, Method: v.Input.Method, Provider: v.Provider,
					Payload: &hookglass.Payload{Headers: fields(v.Input.Headers), Body: readBody(t, v.Input.BodyFile)},
				},
				TargetURL: v.Options.Target, At: now,
				Options:  hookglass.ReplayOptions{Identity: hookglass.IdentityMode(v.Options.Identity), Signature: hookglass.SignatureMode(v.Options.Signature)},
				Identity: provider.Identity{UUID: v.Fixed.UUID, Suffix: v.Fixed.Suffix, Digits: v.Fixed.Digits},
				Configs:  []provider.Config{{ID: 1, Provider: v.Provider, Secrets: []string{v.Fixed.Secret}}},
			}
			got, err := delivery.Build(o)
			if v.Expected.Error != nil {
				if !hookglass.Is(err, hookglass.CodeValidationFailed) {
					t.Fatalf("%v, want validation_failed", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.URL != v.Expected.URL || got.Method != v.Input.Method {
				t.Errorf("%s %s", got.Method, got.URL)
			}
			if want := readBody(t, v.Expected.BodyFile); !bytes.Equal(got.Body, want) {
				t.Errorf("body %q, want %q", got.Body, want)
			}
			want := append(fields(v.Expected.Headers),
				hookglass.Header{Name: "X-Service-Replay", Value: "true"},
				hookglass.Header{Name: "X-Service-Original-Request", Value: "req_1"},
				hookglass.Header{Name: "X-Service-Replay-Time", Value: now.UTC().Format(hookglass.TimeLayout)})
			if g, w := got.Headers.AppendWire(nil), want.AppendWire(nil); !bytes.Equal(g, w) {
				t.Errorf("headers\n%s\nwant\n%s", g, w)
			}
		})
	}
}

func event(method, headers, body string) *hookglass.Event {
	return &hookglass.Event{
		ID: "req_1", Type: hookglass.EventWebhook, Method: method, Provider: hookglass.UnknownProvider, ReceivedAt: time.Unix(1_800_000_000, 0),
		Payload: &hookglass.Payload{Headers: hookglass.ParseWire([]byte(headers)), Body: []byte(body)},
	}
}

func order(e *hookglass.Event) delivery.Order {
	return delivery.Order{
		Event: e, TargetURL: "https://app.example.test/a?b=1&a=2", At: time.Unix(1_800_000_000, 0), Identity: provider.NewIdentity(),
		Options: hookglass.ReplayOptions{Identity: hookglass.IdentityOriginal, Signature: hookglass.DefaultSignatureMode},
	}
}

const replayed = "X-Service-Replay: true\r\nX-Service-Original-Request: req_1\r\nX-Service-Replay-Time: 2027-01-15T08:00:00.000000Z\r\n"

// Reliability, rows 71 and 72.
func TestWhatIsSentIsWhatWasCaptured(t *testing.T) {
	for name, c := range map[string]struct {
		method, headers, body, want string
		proxied                     bool
	}{
		"repeated, odd spelling, order":  {method: "PUT", headers: "x-b: 2\r\nX-A: 1\r\nx-B: 3\r\n", want: "x-b: 2\r\nX-A: 1\r\nx-B: 3\r\n"},
		"bytes that are no text":         {method: "POST", headers: "X-A: caf\xe9\r\n", body: "\xff\x00", want: "X-A: caf\xe9\r\n"},
		"a GET with a body":              {method: "GET", body: "hi"},
		"compressed":                     {method: "POST", headers: "Content-Encoding: gzip\r\n", body: "\x1f\x8b", want: "Content-Encoding: gzip\r\n"},
		"framing":                        {method: "POST", headers: "Host: x\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nTE: trailers\r\nUpgrade: h2c\r\nProxy-Connection: close\r\nExpect: 100-continue\r\n", body: "hi"},
		"what Connection names":          {method: "POST", headers: "Connection: close, X-Hop\r\nX-Hop: 1\r\nX-Keep: 2\r\n", want: "X-Keep: 2\r\n"},
		"an earlier replay's":            {method: "POST", headers: "x-service-replay: true\r\nx-service-original-request: req_0\r\nx-service-replay-time: 1\r\n"},
		"a sender's forwarding":          {method: "POST", headers: "X-Forwarded-For: 192.0.2.1\r\n", want: "X-Forwarded-For: 192.0.2.1\r\n"},
		"our proxy's forwarding":         {method: "POST", headers: "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=x\r\nX-Real-IP: x\r\nX-A: 1\r\n", proxied: true, want: "X-A: 1\r\n"},
		"no user agent, no encoding put": {method: "POST"},
	} {
		o := order(event(c.method, c.headers, c.body))
		o.Proxied = c.proxied
		got, err := delivery.Build(o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h := string(got.Headers.AppendWire(nil)); h != c.want+replayed {
			t.Errorf("%s: headers\n%s", name, h)
		}
		if string(got.Body) != c.body || got.Method != c.method || got.URL != o.TargetURL {
			t.Errorf("%s: %s %s %q", name, got.Method, got.URL, got.Body)
		}
		if string(o.Event.Headers.AppendWire(nil)) != c.headers {
			t.Errorf("%s: the event was changed", name)
		}
	}
}

func TestOverridesChangeACopy(t *testing.T) {
	longest := "https://app.example.test/" + strings.Repeat("a", 8<<10-len("https://app.example.test/?z=%20"))
	o := order(event("POST", "X-A: 1\r\nX-B: 2\r\nx-a: 3\r\n", "body"))
	o.Overrides = delivery.Overrides{Method: new("PUT"), Body: new(""), Query: new("z=%20"), Headers: map[string]*string{"x-A": new("9"), "X-B": nil, "X-New": new("n")}}
	got, err := delivery.Build(o)
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != "PUT" || got.URL != "https://app.example.test/a?z=%20" || len(got.Body) != 0 {
		t.Errorf("%+v", got)
	}
	if h := string(got.Headers.AppendWire(nil)); h != "X-A: 9\r\nX-New: n\r\n"+replayed {
		t.Errorf("headers\n%s", h)
	}
	if string(o.Event.Body) != "body" || o.Event.Headers[0].Value != "1" {
		t.Error("the event was changed")
	}
	for target, want := range map[string]string{
		"https://app.example.test/a?x=1#top": "https://app.example.test/a?z=%20", // not behind what is never sent
		"https://app.example.test/a#top":     "https://app.example.test/a?z=%20",
		longest:                              longest + "?z=%20",
	} {
		o.TargetURL, o.Overrides = target, delivery.Overrides{Query: new("z=%20")}
		if got, err = delivery.Build(o); err != nil || got.URL != want {
			t.Errorf("%.50s leads to %.100s, %v", target, got.URL, err)
		}
	}
	o.TargetURL, o.Overrides.Query = longest, new("z=%200")
	if _, err := delivery.Build(o); !hookglass.Is(err, hookglass.CodeValidationFailed) {
		t.Errorf("an address of more than 8 KiB: %v", err)
	}
	for field, v := range map[string]delivery.Overrides{
		"overrides.method":  {Method: new("TRACE")},
		"overrides.query":   {Query: new("a b")},
		"overrides.headers": {Headers: map[string]*string{"X-A": new("a\r\nX-Evil: 1")}},
	} {
		o.Overrides = v
		if _, err := delivery.Build(o); !hookglass.Is(err, hookglass.CodeValidationFailed) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, name := range []string{"Host", "content-length", "Connection", "Transfer-Encoding", "X-Service-Replay", "bad name", ""} {
		o.Overrides = delivery.Overrides{Headers: map[string]*string{name: new("x")}}
		if _, err := delivery.Build(o); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("%q: %v", name, err)
		}
	}
	o.Overrides = delivery.Overrides{Headers: map[string]*string{"x-a": new("1"), "X-A": new("2")}}
	if _, err := delivery.Build(o); !hookglass.Is(err, hookglass.CodeValidationFailed) {
		t.Errorf("one header in two spellings: %v", err)
	}
}

// Headers that are too many are refused without being looked at: a body of the API holds a hundred thousand.
func TestVeryManyOverridesAreRefusedAtOnce(t *testing.T) {
	o := order(event("POST", "A: b\r\n", "{}"))
	headers := map[string]*string{}
	for i := range 100_000 {
		headers[fmt.Sprintf("X-%d", i)] = new("v")
	}
	o.Overrides = delivery.Overrides{Headers: headers}
	var err error
	cputime.AtMost(t, 2*time.Second, "refusing 100,000 headers", func() { _, err = delivery.Build(o) })
	var coded *hookglass.Error
	if !errors.As(err, &coded) || len(coded.Details) != 1 || coded.Details[0].Field != "overrides.headers" {
		t.Errorf("%.200v", err)
	}
}

func TestAnOverriddenBodyIsWhatIsSigned(t *testing.T) {
	o := order(event("POST", "X-GitHub-Event: push\r\nX-Hub-Signature-256: sha256=0\r\n", `{"a":1}`))
	o.Event.Provider, o.Options.Signature = "github", hookglass.SignatureResign
	o.Configs = []provider.Config{{ID: 1, Provider: "github", Secrets: []string{"s3cret"}}}
	o.Overrides.Body = new(`{"a":2}`)
	got, err := delivery.Build(o)
	if err != nil {
		t.Fatal(err)
	}
	v := provider.Verify(&provider.Request{Method: got.Method, Headers: got.Headers, Body: got.Body}, provider.Detection{Provider: "github"}, o.Configs)
	if v.Status != hookglass.SignatureVerified {
		t.Errorf("%+v", v)
	}
}

// Who signs a URL signs it as its receiver sees it.
func TestResignSignsTheURLAsItIsSent(t *testing.T) {
	o := order(event("POST", "X-Twilio-Signature: 0\r\nContent-Type: application/x-www-form-urlencoded\r\n", "a=1"))
	o.Event.Provider, o.Options.Signature, o.TargetURL = "twilio", hookglass.SignatureResign, "https://Hooks.BÜCHER.example:443/é?n=ü'#top"
	o.Configs = []provider.Config{{ID: 1, Provider: "twilio", Secrets: []string{"s3cret"}}}
	got, err := delivery.Build(o)
	if err != nil {
		t.Fatal(err)
	}
	const seen = "https://hooks.xn--bcher-kva.example/%C3%A9?n=%C3%BC'"
	v := provider.Verify(&provider.Request{Method: got.Method, URL: seen, Headers: got.Headers, Body: got.Body}, provider.Detection{Provider: "twilio"}, o.Configs)
	if v.Status != hookglass.SignatureVerified || got.URL != seen {
		t.Errorf("%+v of %s", v, got.URL)
	}
}

// Reference: providers.md, section 6; reliability, row 73.
func TestResignNeedsAConfigAndAProviderThatCanBeSignedFor(t *testing.T) {
	github := provider.Config{ID: 1, Provider: "github", Secrets: []string{"s3cret"}}
	generic := provider.Config{ID: 2, Provider: provider.GenericHMAC, Secrets: []string{"s3cret"}}
	for name, c := range map[string]struct {
		provider string
		configs  []provider.Config
		header   string // "": refused
	}{
		"no config":             {"github", nil, ""},
		"another's config":      {"stripe", []provider.Config{github}, ""},
		"its own":               {"github", []provider.Config{generic, github}, "X-Hub-Signature-256"},
		"a generic one":         {hookglass.UnknownProvider, []provider.Config{github, generic}, "X-Signature"},
		"asymmetric":            {"discord", []provider.Config{{Provider: "discord", Secrets: []string{"x"}}, generic}, ""},
		"unknown, no signature": {hookglass.UnknownProvider, []provider.Config{github}, ""},
	} {
		o := order(event("POST", "", "{}"))
		o.Event.Provider, o.Configs, o.Options.Signature = c.provider, c.configs, hookglass.SignatureResign
		got, err := delivery.Build(o)
		if c.header == "" {
			if !hookglass.Is(err, hookglass.CodeValidationFailed) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !got.Headers.Has(c.header) {
			t.Errorf("%s: %v %v", name, got.Headers, err)
		}
	}
}

func TestAStaleTimestampIsWarnedOf(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		provider, header string
		warned           bool
	}{
		"stripe, old":          {"stripe", "Stripe-Signature: t=1799999000,v1=00\r\n", true},
		"stripe, at the edge":  {"stripe", "Stripe-Signature: t=1799999700,v1=00\r\n", false},
		"stripe, past it":      {"stripe", "Stripe-Signature: t=1799999699,v1=00\r\n", true},
		"stripe, ahead":        {"stripe", "Stripe-Signature: t=1800000301,v1=00\r\n", true},
		"slack, old":           {"slack", "X-Slack-Request-Timestamp: 1799999000\r\nX-Slack-Signature: v0=00\r\n", true},
		"slack, fresh":         {"slack", "X-Slack-Request-Timestamp: 1799999990\r\nX-Slack-Signature: v0=00\r\n", false},
		"workos, in ms":        {"workos", "WorkOS-Signature: t=1799999000000, v1=00\r\n", true},
		"workos, fresh":        {"workos", "WorkOS-Signature: t=1799999990000, v1=00\r\n", false},
		"github has no time":   {"github", "X-Hub-Signature-256: sha256=00\r\n", false},
		"a time of its own is": {"github", "X-When: 1700000000\r\n", false},
		"box, as text":         {"box", "BOX-DELIVERY-TIMESTAMP: 2027-01-15T07:43:20Z\r\nBOX-SIGNATURE-PRIMARY: 00\r\n", true},
		"box, fresh":           {"box", "BOX-DELIVERY-TIMESTAMP: 2027-01-15T00:00:01.5-08:00\r\nBOX-SIGNATURE-PRIMARY: 00\r\n", false},
		"twitch, beside it":    {"twitch", "Twitch-Eventsub-Message-Timestamp: 2027-01-15T07:43:20.123456789Z\r\nTwitch-Eventsub-Message-Signature: sha256=00\r\n", true},
		"another's timestamp":  {"github", "X-Hub-Signature-256: sha256=00\r\nX-Timestamp: 1700000000\r\n", false},
		"nothing is signed":    {"twitch", "Twitch-Eventsub-Message-Timestamp: 2027-01-15T07:43:20Z\r\n", false},
	} {
		o := order(event("POST", c.header, "{}"))
		o.Event.Provider, o.At = c.provider, now
		got, err := delivery.Build(o)
		if err != nil || (len(got.Warnings) > 0) != c.warned {
			t.Errorf("%s: %v %v", name, got.Warnings, err)
		}
		o.Unwarned = true
		if bare, err := delivery.Build(o); err != nil || len(bare.Warnings) > 0 || !reflect.DeepEqual(bare.SentRequest, got.SentRequest) {
			t.Errorf("%s, where nobody reads warnings: %v %v", name, bare, err)
		}
		o.Unwarned, o.Options.Signature = false, hookglass.SignatureStrip
		if got, err = delivery.Build(o); err != nil || len(got.Warnings) > 0 {
			t.Errorf("%s, stripped: %v %v", name, got.Warnings, err)
		}
	}
}

func TestTheNewDeliveryIDIsTold(t *testing.T) {
	id := provider.Identity{UUID: "0d9c8b7a-6f5e-4d3c-9b2a-190817263544", Suffix: "_rpl_7f3a9c1e5b20", Digits: "4821"}
	for _, c := range []struct{ provider, headers, body, want string }{
		{"github", "X-GitHub-Event: push\r\nX-GitHub-Delivery: x\r\n", `{}`, id.UUID},
		{"stripe", "Stripe-Signature: t=1,v1=0\r\n", `{"id":"evt_1","object":"event","type":"a.b","api_version":null,"data":{"object":{}}}`, "evt_1" + id.Suffix},
		{hookglass.UnknownProvider, "", `{"id":"a"}`, "a" + id.Suffix},
		{hookglass.UnknownProvider, "", `{"id":7}`, "74821"},
		{hookglass.UnknownProvider, "", `{"n":1,"event_id":"b\u00e9","id":"a"}`, "bé" + id.Suffix},
		{hookglass.UnknownProvider, "", `[{"name":"a"},{"id":"a"}]`, "a" + id.Suffix},
		{hookglass.UnknownProvider, "", `{"name":"a"}`, ""},
		// A batch of many is read once: looking each id up in the whole body took longer than any test may.
		{hookglass.UnknownProvider, "", `[{"id":"a"}` + strings.Repeat(`,{"id":"b"}`, 200_000) + `]`, "a" + id.Suffix},
	} {
		o := order(event("POST", c.headers, c.body))
		o.Event.Provider, o.Options.Identity, o.Identity = c.provider, hookglass.IdentityRegenerate, id
		got, err := delivery.Build(o)
		if err != nil || got.NewDeliveryID != c.want {
			t.Errorf("%s: %q %v", c.provider, got.NewDeliveryID, err)
		}
		if c.want == "" && len(got.Warnings) == 0 {
			t.Error("nothing changed, and no warning")
		}
	}
}

func TestANewIdentityUnderAKeptSignatureIsWarnedOf(t *testing.T) {
	for name, c := range map[string]struct {
		headers, body string
		mode          hookglass.SignatureMode
		warned        bool
	}{
		"a signed body":     {"Stripe-Signature: t=1800000000,v1=00\r\n", `{"id":"evt_1","object":"event"}`, hookglass.SignaturePreserve, true},
		"without signature": {"", `{"id":"evt_1","object":"event"}`, hookglass.SignaturePreserve, false},
		"stripped":          {"Stripe-Signature: t=1800000000,v1=00\r\n", `{"id":"evt_1","object":"event"}`, hookglass.SignatureStrip, false},
	} {
		o := order(event("POST", c.headers, c.body))
		o.Event.Provider, o.Options.Identity, o.Options.Signature = "stripe", hookglass.IdentityRegenerate, c.mode
		got, err := delivery.Build(o)
		if err != nil || (len(got.Warnings) > 0) != c.warned || got.NewDeliveryID == "" {
			t.Errorf("%s: %v %q %v", name, got.Warnings, got.NewDeliveryID, err)
		}
	}
	for p, headers := range map[string]string{
		"standard_webhooks": "webhook-id: x\r\nwebhook-timestamp: 1800000000\r\nwebhook-signature: v1,00\r\n",
		"svix":              "svix-id: x\r\nsvix-timestamp: 1800000000\r\nsvix-signature: v1,00\r\n",
		"twitch":            "Twitch-Eventsub-Message-Id: x\r\nTwitch-Eventsub-Message-Signature: sha256=00\r\n",
		"paypal":            "PAYPAL-TRANSMISSION-ID: x\r\nPAYPAL-TRANSMISSION-SIG: 00\r\n",
	} {
		o := order(event("POST", headers, "{}"))
		o.Event.Provider, o.Options.Identity, o.At = p, hookglass.IdentityRegenerate, time.Unix(1_800_000_000, 0)
		if got, err := delivery.Build(o); err != nil || len(got.Warnings) != 1 {
			t.Errorf("%s, whose header is signed: %v %v", p, got.Warnings, err)
		}
	}
	o := order(event("POST", "X-GitHub-Delivery: x\r\nX-Hub-Signature-256: sha256=00\r\n", "{}"))
	o.Event.Provider, o.Options.Identity = "github", hookglass.IdentityRegenerate
	if got, err := delivery.Build(o); err != nil || len(got.Warnings) > 0 {
		t.Errorf("a header that is not signed: %v %v", got.Warnings, err)
	}
	o.Overrides.Body = new("[]")
	if got, err := delivery.Build(o); err != nil || len(got.Warnings) != 1 {
		t.Errorf("a header that is not signed, above another body: %v %v", got.Warnings, err)
	}
}

func TestAReplacedBodyUnderKeptHeadersIsWarnedOf(t *testing.T) {
	const signed, zipped = "X-Hub-Signature-256: sha256=00\r\n", "Content-Encoding: gzip\r\n"
	for name, c := range map[string]struct {
		headers  string
		change   delivery.Overrides
		warnings int
	}{
		"signed":                   {signed, delivery.Overrides{Body: new("[]")}, 1},
		"encoded":                  {zipped, delivery.Overrides{Body: new("[]")}, 1},
		"both":                     {signed + zipped, delivery.Overrides{Body: new("[]")}, 2},
		"neither":                  {"X-A: b\r\nContent-Encoding: identity\r\n", delivery.Overrides{Body: new("[]")}, 0},
		"the same body":            {signed + zipped, delivery.Overrides{Body: new("{}")}, 0},
		"the captured body":        {signed + zipped, delivery.Overrides{Method: new("PUT")}, 0},
		"a signature of one's own": {signed, delivery.Overrides{Body: new("[]"), Headers: map[string]*string{"x-hub-signature-256": new("sha256=11")}}, 0},
		"an encoding of one's own": {zipped, delivery.Overrides{Body: new("[]"), Headers: map[string]*string{"content-encoding": new("br")}}, 0},
		"without the encoding":     {zipped, delivery.Overrides{Body: new("[]"), Headers: map[string]*string{"content-encoding": nil}}, 0},
	} {
		o := order(event("POST", c.headers, "{}"))
		o.Event.Provider, o.Overrides = "github", c.change
		if got, err := delivery.Build(o); err != nil || len(got.Warnings) != c.warnings {
			t.Errorf("%s: %v %v", name, got.Warnings, err)
		}
	}
}

func TestTimesThatCanNotBeMovedOrAreSignedInTheBodyAreWarnedOf(t *testing.T) {
	const (
		sns     = `{"Type":"Notification","MessageId":"m","Message":"x","Timestamp":"2026-02-16T12:00:00.000Z","SignatureVersion":"2","Signature":"AA=="}`
		mailgun = `{"signature":{"timestamp":"1771243200","token":"t","signature":"00"},"event-data":{"id":"e"}}`
	)
	for name, c := range map[string]struct {
		provider, headers, body string
		warnings                int
	}{
		"signed in the body":              {"aws_sns", "X-A: b\r\n", sns, 1},
		"a signed time of the body":       {"mailgun", "X-A: b\r\n", mailgun, 1},
		"a body that is signed":           {"github", "X-Hub-Signature-256: sha256=00\r\n", `{"created_at":"2026-02-16T12:00:00Z"}`, 1},
		"not signed":                      {"unknown", "X-A: b\r\n", sns, 0},
		"compressed":                      {"unknown", "Content-Encoding: gzip\r\n", "\x1f\x8b", 1},
		"compressed, as the header says":  {"unknown", "Content-Encoding: gzip\r\n", `{"created":1771243200}`, 0},
		"empty, and said to be something": {"unknown", "Content-Encoding: gzip\r\n", "", 0},
	} {
		o := order(event("POST", c.headers, c.body))
		o.Event.Provider, o.Options.Signature = c.provider, hookglass.SignaturePreserve
		o.Shift, _ = timeshift.Parse("+1h")
		if got, err := delivery.Build(o); err != nil || len(got.Warnings) != c.warnings {
			t.Errorf("%s: %v %v", name, got.Warnings, err)
		}
	}
}

func TestMailIsPostedAsJSON(t *testing.T) {
	raw := strings.Join([]string{
		"From: =?utf-8?q?Ad=C3=A9?= <a@example.com>", "To: b@example.com, c@example.com", "CC: d@example.com", "Subject: <Hi> & bye", "Message-Id: <1@x>",
		"Date: Fri, 20 Nov 2026 18:37:33 +0100", "Received: one", "received: two", "MIME-Version: 1.0", `Content-Type: multipart/mixed; boundary="b"`, "",
		"--b", "Content-Type: text/plain; charset=iso-8859-1", "", "caf\xe9", "--b", "Content-Type: text/html", "", "<p>hi</p>",
		"--b", `Content-Type: image/png; name="../x.png"`, "Content-ID: <pic@x>", "Content-Transfer-Encoding: base64", "", "AAEC/w==", "--b--", "",
	}, "\r\n")
	o := order(event("EMAIL", "From: not used\r\n", raw))
	o.Event.Type, o.Event.ID = hookglass.EventEmail, "eml_1"
	o.Event.Authentication = hookglass.Authentication{SPF: "pass", DKIM: "fail"}
	o.Options = hookglass.ReplayOptions{Identity: hookglass.IdentityRegenerate, Signature: hookglass.SignatureResign} // which mail ignores
	got, err := delivery.Build(o)
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != "POST" || got.Headers.Get("Content-Type") != "application/json" || got.Headers.Has("From") || got.Headers.Get("X-Service-Original-Request") != "eml_1" {
		t.Errorf("%s %s", got.Method, got.Headers.AppendWire(nil))
	}
	if !bytes.Contains(got.Body, []byte(`"<Hi> & bye"`)) {
		t.Errorf("%s", got.Body)
	}
	var m map[string]any
	if err := json.Unmarshal(got.Body, &m); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"id": "eml_1", "type": "email", "from": "Adé <a@example.com>", "to": "b@example.com, c@example.com", "cc": "d@example.com", "subject": "<Hi> & bye",
		"date": "Fri, 20 Nov 2026 18:37:33 +0100", "message_id": "<1@x>", "text_body": "café", "html_body": "<p>hi</p>",
		"attachments":    []any{map[string]any{"filename": "x.png", "content_type": "image/png", "size": 4.0, "content_id": "pic@x", "content_base64": "AAEC/w=="}},
		"authentication": map[string]any{"spf": "pass", "dkim": "fail", "dmarc": "pending"},
		"received_at":    o.Event.ReceivedAt.UTC().Format(hookglass.TimeLayout),
	} {
		if !reflect.DeepEqual(m[name], want) {
			t.Errorf("%s is %v, want %v", name, m[name], want)
		}
		delete(m, name)
	}
	if h := m["headers"].(map[string]any); h["Received"] != "one, two" || h["From"] != "Adé <a@example.com>" || len(m) != 1 {
		t.Errorf("%v", m)
	}
	o.Event.Path, o.Local = "b@example.com", true // a mail's path is its address, and no path of a local machine
	if got, err = delivery.Build(o); err != nil || got.URL != "/" {
		t.Errorf("a local machine gets it at %q, %v", got.URL, err)
	}
}

// A notification by mail carries its hops, and forwarding that mail continues the count.
func TestAForwardedMailKeepsItsHops(t *testing.T) {
	for captured, want := range map[string]string{"": "1", "X-Service-Hops: 2\r\n": "3", "X-Service-Hops: 3\r\n": ""} {
		e := event("EMAIL", captured, "Subject: hi\r\n\r\nhi\r\n")
		e.Type = hookglass.EventEmail
		got, failure := delivery.RenderForward(e, "https://example.com/", false)
		if looped := failure != nil; looped != (want == "") || looped && failure.Code != "loop_detected" || !looped && got.Headers.Get("X-Service-Hops") != want {
			t.Errorf("%q: %s %+v", captured, got.Headers.AppendWire(nil), failure)
		}
	}
}

// A mail without anything is posted as the same document, with empty lists rather than null.
func TestAnEmptyMailIsPostedAsJSON(t *testing.T) {
	o := order(event("EMAIL", "", ""))
	o.Event.Type, o.Event.From, o.Event.To = hookglass.EventEmail, "envelope@example.com", "in@example.com"
	got, err := delivery.Build(o)
	if err != nil || !bytes.Contains(got.Body, []byte(`"headers":{},"attachments":[]`)) || !bytes.Contains(got.Body, []byte(`"from":"envelope@example.com","to":"in@example.com"`)) ||
		!bytes.Contains(got.Body, []byte(`"authentication":{"spf":"pending","dkim":"pending","dmarc":"pending"}`)) {
		t.Errorf("%v %s", err, got.Body)
	}
}

func TestAppendPath(t *testing.T) {
	for _, c := range [][4]string{
		{"https://a.test", "/x%2Fy", "", "https://a.test/x%2Fy"},
		{"https://a.test/b/", "/x", "q=1", "https://a.test/b/x?q=1"},
		{"https://a.test/b?k=1#f", "/", "b=2&a=1", "https://a.test/b?k=1&b=2&a=1"},
		{"https://a.test/b", "/", "", "https://a.test/b"},
		{"https://a.test/#/inbox?folder=1", "", "", "https://a.test/"}, // RFC 3986, section 3.5: a fragment may hold a ?
		{"https://a.test/b#f?k=1", "/x", "q=1", "https://a.test/b/x?q=1"},
		{"https://a.test/b", "/x#y", "q=1#2", "https://a.test/b/x%23y?q=1%232"}, // senders need not escape it
	} {
		if got := delivery.AppendPath(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%v: %s", c, got)
		}
	}
}

// A target may answer with what it was sent.
func TestCredentialsOfARequestAreRedactedInItsAnswer(t *testing.T) {
	sent := hookglass.Headers{
		{Name: "Authorization", Value: "Bearer canary-authorization"}, {Name: "Cookie", Value: "a=short; session=canary-session"}, {Name: "X-Api-Key", Value: `canary"key`},
		{Name: "X-Auth-Token", Value: "short"}, {Name: "X-Other", Value: "not-a-credential"},
	}
	secrets := delivery.Secrets(nil, sent)
	for answer, want := range map[string]string{
		`Bearer canary-authorization`:                          `[redacted]`,
		`{"token":"canary-authorization"}`:                     `{"token":"[redacted]"}`,
		`{"Cookie":"a=short; session=canary-session","b":1}`:   `{"Cookie":"[redacted]","b":1}`,
		`{"cookies":{"a":"short","session":"canary-session"}}`: `{"cookies":{"a":"short","session":"[redacted]"}}`,
		`canary"key {"k":"canary\"key"}`:                       `[redacted] {"k":"[redacted]"}`,
		`not-a-credential`:                                     `not-a-credential`,
		`?k=canary%22key`:                                      `?k=[redacted]`,
		`Y2FuYXJ5LWF1dGhvcml6YXRpb24=`:                         `[redacted]`,
		`canary-authoriz, Bearer canary`:                       `canary-authoriz, Bearer canary`, // parts may be any words
	} {
		if got := secrets.Secrets(answer); got != want {
			t.Errorf("%s: %s", answer, got)
		}
	}
	var parts strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&parts, "a=canary-%04d;", i)
	}
	secrets = delivery.Secrets(nil, hookglass.Headers{{Name: "Cookie", Value: parts.String()}})
	if got := secrets.Secrets("canary-0000 canary-0098 canary-0100"); got != "[redacted] [redacted] canary-0100" {
		t.Errorf("of a cookie with thousands of parts: %s", got)
	}
}

func TestRedaction(t *testing.T) {
	configs := []provider.Config{{Secrets: []string{"s3cret-value", "abc"}}}
	h := hookglass.Headers{{Name: "authorization", Value: "Bearer x"}, {Name: "X-Gitlab-Token", Value: "y"}, {Name: "X-Access-Key", Value: "z"}, {Name: "X-Hub-Signature-256", Value: "sha256=0a"}, {Name: "X-Sig", Value: "k=s3cret-value;"}, {Name: "X-A", Value: "abc"}}
	got := string(delivery.RedactHeaders(h, delivery.Secrets(configs, nil)).AppendWire(nil))
	if got != "authorization: [redacted]\r\nX-Gitlab-Token: [redacted]\r\nX-Access-Key: [redacted]\r\nX-Hub-Signature-256: sha256=0a\r\nX-Sig: k=[redacted];\r\nX-A: abc\r\n" {
		t.Error(got)
	}
	if h[0].Value != "Bearer x" {
		t.Error("the original was changed")
	}
}
