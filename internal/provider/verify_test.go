package provider_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"hash"
	"mime/multipart"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/provider"
)

const (
	secret = "s3cr3t-of-the-sender"
	target = "https://in.example.test/hooks/ep_1?team=ops"
	stamp  = 1771243200
)

var received = time.Unix(stamp, 0)

func mac(h func() hash.Hash, key []byte, parts ...string) []byte {
	m := hmac.New(h, key)
	for _, p := range parts {
		m.Write([]byte(p))
	}
	return m.Sum(nil)
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// signed is what a sender would send: made here with nothing but the primitives, from the public descriptions.
type signed struct {
	headers, body, secret string
	detected              string // when it is not the provider itself
}

// Every provider of the table whose signatures are verified, and each scheme of it.
func TestVerifyEveryProvider(t *testing.T) {
	const body = "{\"id\":\"x\", \"webhookTimestamp\": 1771243200000}\n"
	hex256 := hex.EncodeToString(mac(sha256.New, []byte(secret), body))
	base256 := b64(mac(sha256.New, []byte(secret), body))
	hexSha1 := hex.EncodeToString(mac(sha1.New, []byte(secret), body))
	baseSha1 := b64(mac(sha1.New, []byte(secret), body))
	ts := fmt.Sprint(stamp)
	tsBody := hex.EncodeToString(mac(sha256.New, []byte(secret), ts, ".", body))
	rfc := received.UTC().Format(time.RFC3339)
	v0 := hex.EncodeToString(mac(sha256.New, []byte(secret), "v0:", ts, ":", body))
	key := []byte("0123456789abcdef01234567")
	standard := func(prefix string, key []byte) string {
		return fmt.Sprintf("%sid: msg_1\n%stimestamp: %s\n%ssignature: v1,%s v1a,xx v1,%s", prefix, prefix, ts, prefix,
			b64(make([]byte, 32)), b64(mac(sha256.New, key, "msg_1.", ts, ".", body)))
	}
	whsec := "whsec_" + b64(key)

	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	edPub, err := x509.MarshalPKIXPublicKey(pub)
	must(t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	sum := sha256.Sum256([]byte(ts + body))
	ecSig, err := ecdsa.SignASN1(rand.Reader, ec, sum[:])
	must(t, err)
	ecPub, err := x509.MarshalPKIXPublicKey(&ec.PublicKey)
	must(t, err)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	rsPub, err := x509.MarshalPKIXPublicKey(&rs.PublicKey)
	must(t, err)
	travis := sha1.Sum([]byte(`{"state":"passed"}`))
	rsSig, err := rsa.SignPKCS1v15(rand.Reader, rs, crypto.SHA1, travis[:])
	must(t, err)

	plain := sha256.Sum256([]byte(secret + body))
	hubspot2 := sha256.Sum256([]byte(secret + "POST" + target + body))
	bodySum := sha256.Sum256([]byte(body))
	jws := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"netlify","sha256":"`+hex.EncodeToString(bodySum[:])+`"}`))
	jws += "." + base64.RawURLEncoding.EncodeToString(mac(sha256.New, []byte(secret), jws))
	adyenKey, _ := hex.DecodeString(hex64)
	adyen := b64(mac(sha256.New, adyenKey, "7914073381342284::TestMerchant:TestPayment-1407325143704:1130:EUR:AUTHORISATION:true"))

	// TestVerifyWithPublishedKeys has those whose public key is fetched.
	checked := map[string]bool{"aws_sns": true, "paypal": true, "plaid": true}
	for name, c := range map[string]signed{
		"acuity":           {headers: "X-Acuity-Signature: " + base256},
		"adyen":            {headers: "HmacSignature: " + b64(mac(sha256.New, adyenKey, body)), secret: hex64},
		"adyen payment":    {secret: hex64, body: `{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"` + adyen + `"},"amount":{"value":1130,"currency":"EUR"},"pspReference":"7914073381342284","eventCode":"AUTHORISATION","merchantAccountCode":"TestMerchant","merchantReference":"TestPayment-1407325143704","success":"true"}}]}`},
		"airtable":         {headers: "X-Airtable-Content-MAC: hmac-sha256=" + hex.EncodeToString(mac(sha256.New, key, body)), secret: b64(key)},
		"asana":            {headers: "X-Hook-Signature: " + hex256},
		"attio":            {headers: "Attio-Signature: " + hex256},
		"bigcommerce":      {headers: standard("webhook-", []byte(secret)), detected: "standard_webhooks"},
		"bitbucket":        {headers: "X-Event-Key: repo:push\nX-Hook-UUID: u\nX-Hub-Signature: sha256=" + hex256},
		"bitbucket_server": {headers: "X-Event-Key: pr:opened\nX-Request-Id: u\nX-Hub-Signature: sha256=" + hex256},
		"box":              {headers: "BOX-SIGNATURE-PRIMARY: " + base256 + "\nBOX-SIGNATURE-SECONDARY: " + b64(mac(sha256.New, []byte(secret), body, rfc)) + "\nBOX-DELIVERY-TIMESTAMP: " + rfc},
		"cal_com":          {headers: "X-Cal-Signature-256: " + hex256},
		"calendly":         {headers: "Calendly-Webhook-Signature: t=" + ts + ",v1=" + tsBody},
		"circleci":         {headers: "circleci-signature: v1=" + hex256 + ",v2=abc"},
		"clerk":            {headers: standard("svix-", key), secret: whsec, detected: "svix"},
		"clickup":          {headers: "X-Signature: " + hex256, detected: "unknown"},
		"coinbase_cdp":     {headers: "X-Hook0-Signature: t=" + ts + ",h=x-a,v0=" + tsBody + ",v1=00"},
		"coinbase_cdp v1": {headers: "X-Event-Id: e 1\nX-Hook0-Signature: t=" + ts + ",h=x-event-id x-none content-type,v1=" +
			hex.EncodeToString(mac(sha256.New, []byte(secret), ts, ".x-event-id x-none content-type.e 1..text/plain.", body)) + "\nContent-Type: text/plain"},
		"coinbase_commerce": {headers: "X-CC-Webhook-Signature: " + hex256},
		"contentful": {headers: "X-Contentful-Topic: a\nx-contentful-timestamp: " + ts + "000\nx-contentful-signed-headers: x-contentful-timestamp,X-Contentful-Topic,x-contentful-signed-headers\nx-contentful-signature: " +
			hex.EncodeToString(mac(sha256.New, []byte(secret), "POST\n/hooks/ep_1?team=ops\n"+
				"x-contentful-signed-headers:x-contentful-timestamp,X-Contentful-Topic,x-contentful-signed-headers;x-contentful-timestamp:"+ts+"000;x-contentful-topic:a\n"+body))},
		"customer_io":             {headers: "X-CIO-Timestamp: " + ts + "\nX-CIO-Signature: " + v0},
		"discord":                 {headers: "X-Signature-Timestamp: " + ts + "\nX-Signature-Ed25519: " + hex.EncodeToString(ed25519.Sign(priv, []byte(ts+body))), secret: hex.EncodeToString(pub)},
		"docusign":                {headers: "X-DocuSign-Signature-1: " + b64(make([]byte, 32)) + "\nX-DocuSign-Signature-2: " + base256},
		"dropbox":                 {headers: "X-Dropbox-Signature: " + hex256},
		"elevenlabs":              {headers: "ElevenLabs-Signature: t=" + ts + ",v0=" + tsBody},
		"expo":                    {headers: "expo-signature: sha1=" + hexSha1},
		"fastspring":              {headers: "X-FS-Signature: " + base256},
		"gitea":                   {headers: "X-Gitea-Event: push\nX-Gitea-Signature: " + hex256},
		"gitea by the other one":  {headers: "X-Gitea-Event: push\nX-Hub-Signature-256: sha256=" + hex256},
		"gitlab token":            {headers: "X-Gitlab-Event: Push Hook\nX-Gitlab-Token: " + secret},
		"gitlab signature":        {headers: "X-Gitlab-Event: Push Hook\nX-Gitlab-Token: other\n" + standard("webhook-", key), secret: whsec},
		"gocardless":              {headers: "Webhook-Signature: " + hex256},
		"help_scout":              {headers: "X-HelpScout-Signature: " + baseSha1},
		"heroku":                  {headers: "Heroku-Webhook-Hmac-SHA256: " + base256},
		"hookdeck":                {headers: "x-hookdeck-signature: " + b64(make([]byte, 32)) + "\nx-hookdeck-signature-2: " + base256, detected: "unknown"},
		"hubspot 1":               {headers: "X-HubSpot-Signature: " + hex.EncodeToString(plain[:])},
		"hubspot 2":               {headers: "X-HubSpot-Signature: " + hex.EncodeToString(hubspot2[:])},
		"hubspot 3":               {headers: "X-HubSpot-Signature: 00\nX-HubSpot-Request-Timestamp: " + ts + "000\nX-HubSpot-Signature-V3: " + b64(mac(sha256.New, []byte(secret), "POST", target, body, ts, "000"))},
		"intercom":                {body: `{"type":"notification_event"}`, headers: "X-Hub-Signature: sha1=" + hex.EncodeToString(mac(sha1.New, []byte(secret), `{"type":"notification_event"}`))},
		"jira":                    {headers: "X-Atlassian-Webhook-Identifier: w\nX-Hub-Signature: sha256=" + hex256},
		"klaviyo":                 {headers: "Klaviyo-Timestamp: Mon, 16 Feb 2026 12:00:00 GMT\nKlaviyo-Signature: " + b64(mac(sha256.New, []byte(secret), body, "Mon, 16 Feb 2026 12:00:00 GMT"))},
		"launchdarkly":            {headers: "X-LD-Signature: " + hex256},
		"lemonsqueezy":            {headers: "X-Event-Name: order_created\nX-Signature: " + hex256},
		"line":                    {headers: "x-line-signature: " + base256},
		"linear":                  {headers: "Linear-Signature: " + hex256},
		"mailerlite":              {headers: "Signature: " + hex256, detected: "unknown"},
		"mailgun":                 {body: `{"signature":{"timestamp":"1","token":"tok","signature":"` + hex.EncodeToString(mac(sha256.New, []byte(secret), "1tok")) + `"},"event-data":{"event":"opened"}}`},
		"mailgun form":            {headers: form, body: "timestamp=1&token=tok&signature=" + hex.EncodeToString(mac(sha256.New, []byte(secret), "1tok"))},
		"mandrill":                {headers: form + "X-Mandrill-Signature: " + b64(mac(sha1.New, []byte(secret), target, "a 1b=2&")), body: "b=%3D2%26&a+=1"},
		"meta":                    {body: `{"object":"page","entry":[]}`, headers: "X-Hub-Signature: sha1=00\nX-Hub-Signature-256: sha256=" + hex.EncodeToString(mac(sha256.New, []byte(secret), `{"object":"page","entry":[]}`))},
		"mandrill odd escapes":    {headers: form + "X-Mandrill-Signature: " + b64(mac(sha1.New, []byte(secret), target, "a\n%4z%zf\xff\xfa")), body: "a=%0A%4z%zf%fF%Fa"},
		"mollie":                  {headers: "X-Mollie-Signature: sha256=" + hex64 + "\nX-Mollie-Signature: sha256=" + hex256},
		"mux":                     {headers: "Mux-Signature: t=" + ts + ",v1=" + tsBody},
		"netlify":                 {headers: "X-Webhook-Signature: " + jws},
		"notion":                  {headers: "X-Notion-Signature: sha256=" + hex256},
		"nylas":                   {headers: "x-nylas-signature: " + strings.ToUpper(hex256)},
		"openai":                  {headers: standard("webhook-", []byte(secret)), detected: "standard_webhooks"},
		"paddle":                  {headers: "Paddle-Signature: ts=" + ts + ";h1=" + hex.EncodeToString(mac(sha256.New, []byte(secret), ts, ":", body))},
		"pagerduty":               {headers: "X-PagerDuty-Signature: v1=" + hex64 + ",v1=" + hex256},
		"paystack":                {headers: "x-paystack-signature: " + hex.EncodeToString(mac(sha512.New, []byte(secret), body))},
		"planetscale":             {headers: "X-PlanetScale-Signature: " + hex256},
		"plivo 2":                 {headers: "X-Plivo-Signature-V2-Nonce: n\nX-Plivo-Signature-V2: " + b64(mac(sha256.New, []byte(secret), "https://in.example.test/hooks/ep_1", "n"))},
		"plivo 3":                 {headers: form + "X-Plivo-Signature-V3-Nonce: n\nX-Plivo-Signature-V3: " + b64(make([]byte, 32)) + "," + b64(mac(sha256.New, []byte(secret), "https://in.example.test/hooks/ep_1?team=ops.a1b2.n")), body: "b=2&a=1"},
		"pusher":                  {headers: "X-Pusher-Key: k\nX-Pusher-Signature: " + hex256},
		"quickbooks":              {headers: "intuit-signature: " + base256},
		"razorpay":                {headers: "X-Razorpay-Signature: " + hex256},
		"recharge":                {headers: "X-Recharge-Hmac-Sha256: " + hex.EncodeToString(plain[:])},
		"replicate":               {headers: standard("webhook-", key), secret: whsec, detected: "standard_webhooks"},
		"resend":                  {headers: standard("svix-", key), secret: whsec, detected: "svix"},
		"segment":                 {headers: "X-Signature: " + hexSha1, detected: "unknown"},
		"sendgrid":                {headers: "X-Twilio-Email-Event-Webhook-Timestamp: " + ts + "\nX-Twilio-Email-Event-Webhook-Signature: " + b64(ecSig), secret: b64(ecPub)},
		"sentry":                  {headers: "Sentry-Hook-Signature: " + hex256},
		"square":                  {headers: "x-square-hmacsha256-signature: " + b64(mac(sha256.New, []byte(secret), target, body))},
		"standard_webhooks":       {headers: standard("webhook-", key), secret: whsec},
		"standard_webhooks url":   {headers: standard("webhook-", []byte("\xfb\xff\xbe")), secret: "whsec_-_--"},
		"standard_webhooks plain": {headers: standard("webhook-", key), secret: b64(key)},
		"svix asymmetric":         {headers: "svix-id: msg_1\nsvix-timestamp: " + ts + "\nsvix-signature: v1,xx v1a," + b64(ed25519.Sign(priv, []byte("msg_1."+ts+"."+body))), secret: "whpk_" + b64(pub)},
		"surveymonkey":            {headers: "Sm-Signature: " + baseSha1},
		"svix":                    {headers: standard("svix-", key), secret: whsec},
		"tailscale":               {headers: "Tailscale-Webhook-Signature: t=" + ts + ",v1=" + tsBody},
		"tally":                   {headers: "Tally-Signature: " + base256},
		"telegram":                {headers: "X-Telegram-Bot-Api-Secret-Token: " + secret},
		"telnyx":                  {headers: "telnyx-timestamp: " + ts + "\ntelnyx-signature-ed25519: " + b64(ed25519.Sign(priv, []byte(ts+"|"+body))), secret: b64(pub)},
		"telnyx by pem":           {headers: "telnyx-timestamp: " + ts + "\ntelnyx-signature-ed25519: " + b64(ed25519.Sign(priv, []byte(ts+"|"+body))), secret: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: edPub}))},
		"travis":                  {headers: form + "Travis-Repo-Slug: a/b\nSignature: " + b64(rsSig), body: "payload=" + url.QueryEscape(`{"state":"passed"}`), secret: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: rsPub}))},
		"travis pkcs1":            {headers: form + "Travis-Repo-Slug: a/b\nSignature: " + b64(rsSig), body: "payload=" + url.QueryEscape(`{"state":"passed"}`), secret: string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&rs.PublicKey)}))},
		"travis on one line":      {headers: form + "Travis-Repo-Slug: a/b\nSignature: " + b64(rsSig), body: "payload=" + url.QueryEscape(`{"state":"passed"}`), secret: strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: rsPub})), "\n", "")},
		"travis with blanks":      {headers: form + "Travis-Repo-Slug: a/b\nSignature: " + b64(rsSig), body: "payload=" + url.QueryEscape(`{"state":"passed"}`), secret: strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: rsPub})), "\n", " ")},
		"travis as JSON has it":   {headers: form + "Travis-Repo-Slug: a/b\nSignature: " + b64(rsSig), body: "payload=" + url.QueryEscape(`{"state":"passed"}`), secret: strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: rsPub})), "\n", `\n`)},
		"trello":                  {headers: "X-Trello-Webhook: " + b64(mac(sha1.New, []byte(secret), body, target))},
		"twitch":                  {headers: "Twitch-Eventsub-Message-Id: m\nTwitch-Eventsub-Message-Timestamp: 2026-02-16T12:00:00.123456789Z\nTwitch-Eventsub-Message-Signature: sha256=" + hex.EncodeToString(mac(sha256.New, []byte(secret), "m2026-02-16T12:00:00.123456789Z", body))},
		"typeform":                {headers: "Typeform-Signature: sha256=" + base256},
		"vercel":                  {headers: "x-vercel-signature: " + hexSha1},
		"webex":                   {headers: "X-Spark-Signature: " + hexSha1},
		"webflow":                 {headers: "x-webflow-timestamp: " + ts + "000\nx-webflow-signature: " + hex.EncodeToString(mac(sha256.New, []byte(secret), ts, "000:", body))},
		"whatsapp":                {body: `{"object":"whatsapp_business_account","entry":[]}`, headers: "X-Hub-Signature-256: sha256=" + hex.EncodeToString(mac(sha256.New, []byte(secret), `{"object":"whatsapp_business_account","entry":[]}`))},
		"woocommerce":             {headers: "X-WC-Webhook-Signature: " + base256},
		"workos":                  {headers: "WorkOS-Signature: t=" + ts + "000, v1=" + hex.EncodeToString(mac(sha256.New, []byte(secret), ts, "000.", body))},
		"x_twitter":               {headers: "x-twitter-webhooks-signature: sha256=" + base256},
		"xero":                    {headers: "x-xero-signature: " + base256},
		"zendesk":                 {headers: "X-Zendesk-Webhook-Signature-Timestamp: " + rfc + "\nX-Zendesk-Webhook-Signature: " + b64(mac(sha256.New, []byte(secret), rfc, body))},
		"zoom":                    {headers: "x-zm-request-timestamp: " + ts + "\nx-zm-signature: v0=" + v0},
	} {
		t.Run(name, func(t *testing.T) {
			id, _, _ := strings.Cut(name, " ")
			checked[id] = true
			r := &provider.Request{Method: "POST", URL: target, RawQuery: "team=ops", Headers: fields(c.headers), Body: []byte(or(c.body, body)), ReceivedAt: received}
			d := provider.Detect(r)
			if want := or(c.detected, id); d.Provider != want {
				t.Errorf("Detect: %q, want %q", d.Provider, want)
			}
			good := provider.Config{ID: 3, Provider: id, Secrets: []string{"", "another", or(c.secret, secret)}}
			if got := provider.Verify(r, d, []provider.Config{good}); got.Status != hookglass.SignatureVerified || got.ConfigID != 3 || got.SecretIndex != 2 {
				t.Fatalf("right secret: %+v", got)
			}
			d.Provider = id
			for _, wrong := range []string{"another", "", " ", "whsec_", hex64[:62] + "00", "whsec_bm90IHRoZSBrZXk="} {
				if got := provider.Verify(r, d, []provider.Config{{ID: 3, Provider: id, Secrets: []string{wrong}}}); got.Status != hookglass.SignatureFailed || got.Reason == "" || got.Message == "" {
					t.Errorf("secret %q: %+v", wrong, got)
				}
			}
			if !strings.Contains("|adyen payment|gitlab token|mailgun|mailgun form|plivo 2|telegram|", "|"+name+"|") { // which do not sign the body
				changed := *r
				changed.Body = append(bytes.Clone(r.Body), ' ')
				if got := provider.Verify(&changed, d, []provider.Config{good}); got.Status != hookglass.SignatureFailed {
					t.Errorf("another body: %+v", got)
				}
			}
			bare := *r
			bare.Headers = provider.Strip(d, r.Headers)
			bare.Body = []byte(`{}`)
			if got := provider.Verify(&bare, d, []provider.Config{good}); got.Status != hookglass.SignatureFailed || got.Reason != "missing_signature" {
				t.Errorf("without signature: %+v", got)
			}
			if info, ok := provider.Known(id); !ok || !info.Verifiable {
				t.Errorf("Known: %+v", info)
			}
		})
	}
	for _, info := range provider.Providers() {
		if info.Verifiable && !slices.Contains(firstClass, info.ID) && !checked[info.ID] {
			t.Errorf("%s is verifiable but not tried here", info.ID)
		}
	}
}

// firstClass are the providers of the specification.
var firstClass = []string{"generic_hmac", "github", "shopify", "slack", "stripe", "twilio"}

func or(s, value string) string {
	if s == "" {
		return value
	}
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stripe returns a signed Stripe request whose timestamp is off by the given seconds.
func stripe(body string, off int64, key string) *provider.Request {
	t := fmt.Sprint(stamp + off)
	return &provider.Request{Method: "POST", URL: target, Body: []byte(body), ReceivedAt: received.Add(999 * time.Millisecond),
		Headers: fields("Stripe-Signature: t=" + t + ",v1=" + hex.EncodeToString(mac(sha256.New, []byte(key), t, ".", body)))}
}

func TestTolerances(t *testing.T) {
	slack := func(off int64) *provider.Request {
		ts := fmt.Sprint(stamp + off)
		return &provider.Request{Method: "POST", Body: []byte("{}"), ReceivedAt: received, Headers: fields("X-Slack-Request-Timestamp: " + ts +
			"\nX-Slack-Signature: v0=" + hex.EncodeToString(mac(sha256.New, []byte(secret), "v0:", ts, ":{}")))}
	}
	// Half a second after the others.
	listed := func(header, separator string, time int64) *provider.Request {
		ts := fmt.Sprint(time)
		return &provider.Request{Method: "POST", Body: []byte("{}"), ReceivedAt: received.Add(500e6),
			Headers: fields(fmt.Sprintf(header, ts, hex.EncodeToString(mac(sha256.New, []byte(secret), ts, separator, "{}"))))}
	}
	linear := func(body string) *provider.Request {
		return &provider.Request{Method: "POST", Body: []byte(body), ReceivedAt: received.Add(500e6), Headers: fields("Linear-Signature: " + hex.EncodeToString(mac(sha256.New, []byte(secret), body)))}
	}
	for _, c := range []struct {
		name string
		r    *provider.Request
		want string
	}{
		{"stripe at the edge", stripe("{}", -300, secret), ""},
		{"stripe too old", stripe("{}", -301, secret), "timestamp_out_of_tolerance"},
		{"stripe of the future", stripe("{}", 100000, secret), ""},
		{"slack at the edge", slack(-300), ""},
		{"slack too old", slack(-301), "timestamp_out_of_tolerance"},
		{"slack ahead at the edge", slack(300), ""},
		{"slack too far ahead", slack(301), "timestamp_out_of_tolerance"},
		{"mux at the edge", listed("Mux-Signature: t=%[1]s,v1=%[2]s", ".", stamp-300), ""},
		{"mux too old", listed("Mux-Signature: t=%[1]s,v1=%[2]s", ".", stamp-301), "timestamp_out_of_tolerance"},
		{"mux of the future", listed("Mux-Signature: t=%[1]s,v1=%[2]s", ".", stamp+100000), ""},
		{"paddle at the edge", listed("Paddle-Signature: ts=%[1]s;h1=%[2]s", ":", stamp-4), ""},
		{"paddle too old by half a second", listed("Paddle-Signature: ts=%[1]s;h1=%[2]s", ":", stamp-5), "timestamp_out_of_tolerance"},
		{"elevenlabs at the edge", listed("ElevenLabs-Signature: t=%[1]s,v0=%[2]s", ".", stamp-1799), ""},
		{"elevenlabs too old by half a second", listed("ElevenLabs-Signature: t=%[1]s,v0=%[2]s", ".", stamp-1800), "timestamp_out_of_tolerance"},
		{"elevenlabs of the future", listed("ElevenLabs-Signature: t=%[1]s,v0=%[2]s", ".", stamp+100000), ""},
		{"linear at the edge", linear(`{"webhookTimestamp":1771243140500}`), ""},
		{"linear too old by a millisecond", linear(`{"webhookTimestamp":1771243140499}`), "timestamp_out_of_tolerance"},
		{"linear without a time", linear(`{}`), "missing_timestamp"},
		{"workos at the edge", listed("WorkOS-Signature: t=%[1]s, v1=%[2]s", ".", (stamp-180)*1000+500), ""},
		{"workos too old by a millisecond", listed("WorkOS-Signature: t=%[1]s, v1=%[2]s", ".", (stamp-180)*1000+499), "timestamp_out_of_tolerance"},
		{"workos of the future", listed("WorkOS-Signature: t=%[1]s, v1=%[2]s", ".", (stamp+100000)*1000), ""},
	} {
		d := provider.Detect(c.r)
		got := provider.Verify(c.r, d, []provider.Config{{Provider: d.Provider, Secrets: []string{secret}}})
		if got.Reason != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestStripeHeader(t *testing.T) {
	good := hex.EncodeToString(mac(sha256.New, []byte(secret), fmt.Sprint(stamp), ".{}"))
	for header, want := range map[string]string{
		"t=1771243200,v1=" + good:                       "",
		"t=1771243200,v1=" + hex64 + ",v1=" + good:      "",
		"t=1771243200,v0=" + good + ",v1=" + good:       "",
		"v1=" + good + ",t=1771243200,x=y":              "",
		"t=1771243200,v0=" + good:                       "no_supported_scheme",
		"t=1771243200, v1=" + good:                      "no_supported_scheme", // pairs are not trimmed
		"v1=" + good:                                    "malformed_signature",
		"t=soon,v1=" + good:                             "malformed_signature",
		"t=1771243200,v1=zz":                            "malformed_signature",
		"":                                              "malformed_signature",
		"t=99999999999999999999999999,v1=" + good:       "malformed_signature",
		"t=1771243200,v1=" + strings.ToUpper(good):      "",
		strings.Repeat("v1="+hex64+",", 200) + "t=1":    "malformed_signature", // the entries looked at are bounded
		"t=1771243200," + strings.Repeat("v1=zz,", 300): "malformed_signature",
	} {
		r := &provider.Request{Method: "POST", Body: []byte("{}"), ReceivedAt: received, Headers: hookglass.Headers{{Name: "stripe-signature", Value: header}}}
		got := provider.Verify(r, provider.Detect(r), []provider.Config{{Provider: "stripe", Secrets: []string{secret}}})
		if got.Reason != want {
			t.Errorf("%.80q: %+v, want %q", header, got, want)
		}
	}
}

func TestVerifyChoosesConfigs(t *testing.T) {
	r := stripe("{}", 0, secret)
	d := provider.Detect(r)
	config := func(id int64, p string, secrets ...string) provider.Config {
		return provider.Config{ID: id, Provider: p, Secrets: secrets}
	}
	generic := config(9, "generic_hmac", secret)
	generic.Options = hookglass.GenericOptions{Header: "Stripe-Signature", Prefix: "v1=", PayloadTemplate: "{timestamp}.{body}"}
	for _, c := range []struct {
		name    string
		configs []provider.Config
		want    provider.Verdict
	}{
		{"none", nil, provider.Verdict{Status: "unchecked"}},
		{"another provider's", []provider.Config{config(1, "github", secret)}, provider.Verdict{Status: "unchecked"}},
		{"of a provider that signs nothing", []provider.Config{config(1, "dockerhub", secret)}, provider.Verdict{Status: "unchecked"}},
		{"of nobody", []provider.Config{config(1, "nobody", secret)}, provider.Verdict{Status: "unchecked"}},
		{"the second of two", []provider.Config{config(1, "stripe", "old"), config(2, "stripe", "older", secret)}, provider.Verdict{Status: "verified", ConfigID: 2, SecretIndex: 1}},
		{"generic where no other is of the provider", []provider.Config{config(1, "github", secret), generic}, provider.Verdict{Status: "verified", ConfigID: 9}},
		{"generic does not mend a failure", []provider.Config{config(1, "stripe", "old"), generic}, provider.Verdict{Status: "failed", Reason: "signature_mismatch"}},
		{"the most that is known of two", []provider.Config{config(1, "stripe", "old"), config(2, "stripe")}, provider.Verdict{Status: "failed", Reason: "signature_mismatch"}},
		{"the most that is known of two, behind", []provider.Config{config(1, "stripe"), config(2, "stripe", "old")}, provider.Verdict{Status: "failed", Reason: "signature_mismatch"}},
		{"no secret", []provider.Config{config(1, "stripe")}, provider.Verdict{Status: "failed", Reason: "unusable_secret"}},
		{"an empty secret", []provider.Config{config(1, "stripe", "")}, provider.Verdict{Status: "failed", Reason: "unusable_secret"}},
	} {
		got := provider.Verify(r, d, c.configs)
		got.Message = ""
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	empty := stripe("{}", 0, "")
	if got := provider.Verify(empty, d, []provider.Config{config(1, "stripe", "")}); got.Status != hookglass.SignatureFailed {
		t.Errorf("signed with the empty secret: %+v", got)
	}
}

func TestASecretThatIsNoPublicKeyIsNamed(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(&ec.PublicKey)
	must(t, err)
	r := &provider.Request{Method: "POST", ReceivedAt: received, Headers: fields("X-Signature-Timestamp: " + fmt.Sprint(stamp) + "\nX-Signature-Ed25519: " + strings.Repeat("00", 64))}
	for secret, want := range map[string]string{
		"client secret":         "unusable_secret",
		strings.Repeat("0", 62): "unusable_secret", // a byte too short
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})): "unusable_secret", // of another kind
		strings.Repeat("0", 64): "signature_mismatch",
	} {
		got := provider.Verify(r, provider.Detection{Provider: "discord"}, []provider.Config{{Provider: "discord", Secrets: []string{secret}}})
		if got.Status != hookglass.SignatureFailed || got.Reason != want {
			t.Errorf("%q: %+v, want %s", secret, got, want)
		}
	}
}

// With an empty key, or one that can be guessed from the secret's form, anybody could sign.
func TestASecretThatIsNoKeyVerifiesNothing(t *testing.T) {
	for secret, key := range map[string]string{"whsec_": "", "whsec_=": "", "whsec_%%": "whsec_%%", "whsec_%": "%"} {
		for _, id := range []string{"svix", "standard_webhooks", "openai"} {
			signature := "v1," + b64(mac(sha256.New, []byte(key), "m.", fmt.Sprint(stamp), ".{}"))
			headers := ""
			for _, prefix := range []string{"svix-", "webhook-"} {
				headers += fmt.Sprintf("%sid: m\n%stimestamp: %d\n%ssignature: %s\n", prefix, prefix, stamp, prefix, signature)
			}
			r := &provider.Request{Method: "POST", Headers: fields(headers), Body: []byte("{}"), ReceivedAt: received}
			got := provider.Verify(r, provider.Detection{Provider: id}, []provider.Config{{Provider: id, Secrets: []string{secret}}})
			if got.Status != hookglass.SignatureFailed || got.Reason != "unusable_secret" {
				t.Errorf("%s by %s: %+v", id, secret, got)
			}
		}
	}
}

// Senders of Standard Webhooks show their secrets in different ways, and each is taken as it is shown. The signatures are
// those of the senders' own libraries.
func TestASecretOfStandardWebhooksIsTakenAsTheSenderShowsIt(t *testing.T) {
	const base64Key, ofBase64 = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "IVjCKcEqSDGV5XWeCOwAUKguBJwN+zdKdEeCUVgX9KQ="
	for _, c := range []struct{ name, secret, signature string }{
		{"with its prefix", "whsec_" + base64Key, ofBase64},
		{"without it", base64Key, ofBase64},
		{"with the version before it (Supabase)", "v1,whsec_" + base64Key, ofBase64},
		{"with blanks around it", " whsec_" + base64Key + "\r\n", ofBase64},
		{"as text (Polar)", "polar_whs_9Q1cBBbq0OMRhKVFqUyRM1sqLQZEzfFHFLpRzzyyabcd", "JGGEtsaal6UAQIeuSnZ0VoJmddcR1PeQLUcVdWSVYw0="},
	} {
		r := &provider.Request{Method: "POST", Headers: fields(fmt.Sprintf("webhook-id: msg_1\nwebhook-timestamp: %d\nwebhook-signature: v1,%s", stamp, c.signature)),
			Body: []byte(`{"type":"order.paid"}`), ReceivedAt: received}
		config := provider.Config{Provider: "standard_webhooks", Secrets: []string{c.secret}}
		if got := provider.Verify(r, provider.Detect(r), []provider.Config{config}); got.Status != hookglass.SignatureVerified {
			t.Errorf("%s: %+v", c.name, got)
		}
		got, err := provider.Sign(provider.Outgoing{Method: "POST", URL: target, Headers: r.Headers, Body: r.Body}, config, received)
		if signature := got.Headers.Get("webhook-signature"); err != nil || signature != "v1,"+c.signature {
			t.Errorf("%s: signed %s, want %s (%v)", c.name, signature, c.signature, err)
		}
	}
	// Text that is base64 by chance: only a delivery shows which of the two its sender means.
	r := &provider.Request{Method: "POST", Headers: fields(fmt.Sprintf("webhook-id: msg_1\nwebhook-timestamp: %d\nwebhook-signature: v1,rnqlk0d3ogE5LqNx0c0ZBX4KtkEDdARX9wtcsuy3oYE=", stamp)),
		Body: []byte(`{"type":"order.paid"}`), ReceivedAt: received}
	if got := provider.Verify(r, provider.Detect(r), []provider.Config{{Provider: "standard_webhooks", Secrets: []string{"abcdefghijklmnop"}}}); got.Status != hookglass.SignatureVerified {
		t.Errorf("text that is base64 by chance: %+v", got)
	}
}

// Svix sends the headers of Standard Webhooks beside its own: a config of either vouches for the delivery.
func TestVerifyStandardWebhooksBesideSvix(t *testing.T) {
	key := []byte("0123456789abcdef01234567")
	signature := "v1," + b64(mac(sha256.New, key, "m.", fmt.Sprint(stamp), ".{}"))
	headers := ""
	for _, prefix := range []string{"svix-", "webhook-"} {
		headers += fmt.Sprintf("%sid: m\n%stimestamp: %d\n%ssignature: %s\n", prefix, prefix, stamp, prefix, signature)
	}
	r := &provider.Request{Method: "POST", Headers: fields(strings.TrimSpace(headers)), Body: []byte("{}"), ReceivedAt: received}
	d := provider.Detect(r)
	for _, id := range []string{"svix", "standard_webhooks", "clerk", "replicate"} {
		config := provider.Config{ID: 5, Provider: id, Secrets: []string{"whsec_" + b64(key)}}
		if got := provider.Verify(r, d, []provider.Config{config}); d.Provider != "svix" || got.Status != hookglass.SignatureVerified {
			t.Errorf("%s: detected %s, %+v", id, d.Provider, got)
		}
	}
}

// Only kin vouches for a delivery in another's name, and the gateway that passed it on.
func TestVerifyByAnothersConfig(t *testing.T) {
	key := []byte("0123456789abcdef01234567")
	headers := fmt.Sprintf("svix-id: m\nsvix-timestamp: %d\nsvix-signature: v1,%s\nX-Signature: %s\nx-hookdeck-signature: %s\nX-Twilio-Signature: %s", stamp,
		b64(mac(sha256.New, key, "m.", fmt.Sprint(stamp), ".{}")), hex.EncodeToString(mac(sha256.New, []byte(secret), "{}")), b64(mac(sha256.New, []byte(secret), "{}")),
		b64(mac(sha1.New, []byte(secret), target)))
	r := &provider.Request{Method: "POST", URL: target, Headers: fields(headers), Body: []byte("{}"), ReceivedAt: received}
	for _, c := range []struct {
		detected, relay, config, secret string
		want                            hookglass.SignatureStatus
	}{
		{"standard_webhooks", "", "svix", "whsec_" + b64(key), "verified"},
		{"svix", "", "svix", "whsec_" + b64(key), "verified"},
		{"github", "", "svix", "whsec_" + b64(key), "unchecked"},
		{"dockerhub", "", "svix", "whsec_" + b64(key), "unchecked"},
		{"nobody", "", "svix", "whsec_" + b64(key), "unchecked"},
		{"svix", "", "clickup", secret, "unchecked"},
		{"svix", "", "twilio", secret, "unchecked"},
		{"unknown", "", "clickup", secret, "verified"},
		{"dockerhub", "", "dockerhub", secret, "unchecked"},
		{"unknown", "", "dockerhub", secret, "unchecked"},
		{"github", "hookdeck", "hookdeck", secret, "verified"},
		{"github", "hookdeck", "hookdeck", "another", "failed"},
		{"github", "", "hookdeck", secret, "unchecked"},
	} {
		got := provider.Verify(r, provider.Detection{Provider: c.detected, Relay: c.relay}, []provider.Config{{Provider: c.config, Secrets: []string{c.secret}}})
		if got.Status != c.want {
			t.Errorf("detected as %s, config of %s: %+v, want %s", c.detected, c.config, got, c.want)
		}
	}
}

// Box sends UTF-8 and signs it as it is or with escapes; its library takes both. The signatures are the library's.
func TestBoxMaySignItsBodyEscaped(t *testing.T) {
	const body = "{\"source\":{\"name\":\"файл 😀 \x7f.pdf\",\"path\":\"a/b\",\"url\":\"https:\\/\\/a.test\"}}"
	for signature, want := range map[string]hookglass.SignatureStatus{
		"TFslcg6o93D1+rNcy85bKLRDocdv7F7saIIsmoVgG+U=": "verified", // as it is
		"HZmZdpnTdOeIdFUkUdA5pR63O/q+dK91j0IbTwY2Xn4=": "verified", // escaped
		b64(make([]byte, 32)):                          "failed",
	} {
		headers := "BOX-DELIVERY-TIMESTAMP: 2026-02-16T12:00:00-00:00\nBOX-SIGNATURE-VERSION: 1\nBOX-SIGNATURE-ALGORITHM: HmacSHA256\nBOX-SIGNATURE-PRIMARY: " + signature
		r := &provider.Request{Method: "POST", Headers: fields(headers), Body: []byte(body), ReceivedAt: received}
		if got := provider.Verify(r, provider.Detect(r), []provider.Config{{Provider: "box", Secrets: []string{secret}}}); got.Status != want {
			t.Errorf("%s: %+v", signature, got)
		}
	}
}

// A sender could make much of this work with few bytes: it may repeat the header of the signature, or name many in one.
func TestAPayloadIsHashedOnceForAllItsSignatures(t *testing.T) {
	work := func(of string, headers int) float64 {
		h := fields("BOX-DELIVERY-TIMESTAMP: 2026-02-16T12:00:00-00:00")
		for range headers {
			h = append(h, hookglass.Header{Name: "BOX-SIGNATURE-PRIMARY", Value: b64(make([]byte, 32))},
				hookglass.Header{Name: "X-Hub-Signature-256", Value: "sha256=" + strings.Repeat("00", 32)})
		}
		r := &provider.Request{Method: "POST", Headers: h, Body: []byte("{}"), ReceivedAt: received}
		return testing.AllocsPerRun(10, func() {
			provider.Verify(r, provider.Detection{Provider: of}, []provider.Config{{Provider: of, Secrets: []string{secret}}})
		})
	}
	for _, of := range []string{"box", "github"} {
		if one, many := work(of, 1), work(of, 16); many-one > 3*15 { // what is read of 15 headers: a hash takes more
			t.Errorf("%s: 16 signatures take %v allocations, one takes %v", of, many, one)
		}
	}
}

func TestOfAPublicKeySixteenSignaturesAreChecked(t *testing.T) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	right := "v1a," + b64(ed25519.Sign(priv, fmt.Appendf(nil, "msg_1.%d.{}", stamp)))
	wrong := "v1a," + b64(make([]byte, 64)) + " "
	for before, want := range map[int]hookglass.SignatureStatus{0: "verified", 15: "verified", 16: "failed"} {
		r := &provider.Request{Method: "POST", Body: []byte("{}"), ReceivedAt: received,
			Headers: fields(fmt.Sprintf("svix-id: msg_1\nsvix-timestamp: %d\nsvix-signature: %s%s", stamp, strings.Repeat(wrong, before), right))}
		if got := provider.Verify(r, provider.Detect(r), []provider.Config{{Provider: "svix", Secrets: []string{"whpk_" + b64(pub)}}}); got.Status != want {
			t.Errorf("after %d others: %+v, want %s", before, got, want)
		}
	}
}

// HubSpot signs some characters of the URL decoded that it sends escaped. Its library takes the URL as it is given: the
// signatures are the library's, for either.
func TestHubSpotMaySignTheURLDecoded(t *testing.T) {
	const sent = "https://in.example.test/hooks/ep_1?userEmail=a%40b.test&next=https%3A%2F%2Fc.test%2F%20x"
	for signature, want := range map[string]hookglass.SignatureStatus{
		"+YXxaQqgmRl/nE0nE91vYd7gZ1FhTKMlXZEXHE0TTJc=": "verified", // as it is sent
		"1Cr/Q6/4xHv91vI95eKhU+DpXN3tnV8YSh4x7/MM0kg=": "verified", // https://in.example.test/hooks/ep_1?userEmail=a@b.test&next=https://c.test/%20x
		b64(make([]byte, 32)):                          "failed",
	} {
		r := &provider.Request{Method: "GET", URL: sent, Headers: fields("X-HubSpot-Request-Timestamp: 1771243200000\nX-HubSpot-Signature-v3: " + signature), ReceivedAt: received}
		if got := provider.Verify(r, provider.Detect(r), []provider.Config{{Provider: "hubspot", Secrets: []string{secret}}}); got.Status != want {
			t.Errorf("%s: %+v", signature, got)
		}
	}
}

// MailerLite's header is one that many send, so that only a config says that a delivery may be MailerLite's.
func TestVerifySenderThatNoRuleNames(t *testing.T) {
	configs := []provider.Config{{ID: 1, Provider: "github", Secrets: []string{secret}}, {ID: 2, Provider: "mailerlite", Secrets: []string{secret}}}
	good := "Signature: " + hex.EncodeToString(mac(sha256.New, []byte(secret), "{}"))
	for headers, want := range map[string]provider.Verdict{
		good:                                   {Status: "verified", ConfigID: 2},
		"Signature: " + hex64:                  {Status: "failed", Reason: "signature_mismatch"},
		"Signature: keyId=x":                   {Status: "failed", Reason: "malformed_signature"},
		"X-Other: 1":                           {Status: "unchecked"},
		"X-Hub-Signature-256: sha256=" + hex64: {Status: "unchecked"},
		"X-GitHub-Event: push\nSignature: " + "x": {Status: "failed", Reason: "missing_signature"},
	} {
		r := &provider.Request{Method: "POST", Headers: fields(headers), Body: []byte("{}"), ReceivedAt: received}
		got := provider.Verify(r, provider.Detect(r), configs)
		if got.Message = ""; got != want {
			t.Errorf("%s: %+v, want %+v", headers, got, want)
		}
	}
}

// Mailgun's inbound routes send a multipart form where the mail has attachments.
func TestVerifyMultipartForm(t *testing.T) {
	form := func(fields ...string) *provider.Request {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		file, err := w.CreateFormFile("token", "token.txt")
		must(t, err)
		file.Write([]byte("no field"))
		for i := 0; i < len(fields); i += 2 {
			must(t, w.WriteField(fields[i], fields[i+1]))
		}
		must(t, w.Close())
		return &provider.Request{Method: "POST", Headers: hookglass.Headers{{Name: "Content-Type", Value: w.FormDataContentType()}}, Body: body.Bytes(), ReceivedAt: received}
	}
	right := hex.EncodeToString(mac(sha256.New, []byte(secret), "1771243200", "tok"))
	for _, c := range []struct {
		name, provider, want string
		r                    *provider.Request
	}{
		{"right", "mailgun", "", form("recipient", "a@b.test", "timestamp", "1771243200", "token", "tok", "signature", right)},
		{"wrong", "mailgun", "signature_mismatch", form("timestamp", "1771243201", "token", "tok", "signature", right)},
		{"a file is no field", "unknown", "", form("timestamp", "1771243200", "signature", right)},
	} {
		d := provider.Detect(c.r)
		v := provider.Verify(c.r, d, []provider.Config{{ID: 1, Provider: "mailgun", Secrets: []string{secret}}})
		if d.Provider != c.provider || v.Reason != c.want || c.want == "" && (v.Status == "verified") != (d.Provider == "mailgun") {
			t.Errorf("%s: %+v %+v", c.name, d, v)
		}
	}
	cut := form("timestamp", "1771243200", "token", "tok", "signature", right)
	cut.Body = cut.Body[:len(cut.Body)-70]
	if d := provider.Detect(cut); d.Provider == "mailgun" {
		t.Errorf("cut off: %+v", d)
	}
	o := provider.Outgoing{Method: "POST", Headers: cut.Headers, Body: form("timestamp", "1", "token", "tok", "signature", right).Body}
	if _, err := provider.Sign(o, provider.Config{Provider: "mailgun", Secrets: []string{secret}}, received); !hookglass.Is(err, hookglass.CodeValidationFailed) {
		t.Errorf("signed in a multipart form: %v", err)
	}
}

func TestGenericHMAC(t *testing.T) {
	const body = `{"a":1}`
	hex256 := hex.EncodeToString(mac(sha256.New, []byte(secret), body))
	hexTime := hex.EncodeToString(mac(sha256.New, []byte(secret), "1771243200.", body))
	for _, c := range []struct {
		name, headers, secret, want string
		options                     hookglass.GenericOptions
	}{
		{name: "defaults", headers: "X-Signature: " + hex256},
		{name: "a prefix nobody configured", headers: "X-Signature: sha256=" + hex256},
		{name: "a longer one", headers: "X-Signature: hmac-sha256=" + hex256},
		{name: "base64 with padding is not a prefix", headers: "X-Signature: " + b64(mac(sha256.New, []byte(secret), body)), options: hookglass.GenericOptions{Encoding: "base64"}},
		{name: "a prefix that is missing", headers: "X-Signature: " + hex256, options: hookglass.GenericOptions{Prefix: "sha256="}, want: "malformed_signature"},
		{name: "no hex", headers: "X-Signature: nothing", want: "malformed_signature"},
		{name: "no header", headers: "X-Other: " + hex256, want: "missing_signature"},
		{name: "wrong", headers: "X-Signature: " + hex64, want: "signature_mismatch"},
		{name: "timestamp header", headers: "X-T: 1771243200\nX-Signature: " + hexTime, options: hookglass.GenericOptions{TimestampHeader: "X-T", PayloadTemplate: "{timestamp}.{body}", ToleranceSeconds: 300}},
		{name: "timestamp missing", headers: "X-Signature: " + hexTime, options: hookglass.GenericOptions{TimestampHeader: "X-T", PayloadTemplate: "{timestamp}.{body}"}, want: "missing_timestamp"},
		{name: "timestamp no number", headers: "X-T: now\nX-Signature: " + hexTime, options: hookglass.GenericOptions{TimestampHeader: "X-T", PayloadTemplate: "{timestamp}.{body}"}, want: "malformed_timestamp"},
		{name: "timestamp in the list", headers: "X-Signature: t=1771243200, v1=" + hexTime, options: hookglass.GenericOptions{PayloadTemplate: "{timestamp}.{body}", ToleranceSeconds: 1}},
		{name: "timestamp in the list, none", headers: "X-Signature: v1=" + hexTime, options: hookglass.GenericOptions{PayloadTemplate: "{timestamp}.{body}", Prefix: "v1="}, want: "malformed_signature"},
		{name: "only another version", headers: "X-Signature: t=1771243200,v0=" + hexTime, options: hookglass.GenericOptions{PayloadTemplate: "{timestamp}.{body}", Prefix: "v1="}, want: "no_supported_scheme"},
		{name: "id", headers: "X-Id: i7\nX-Signature: " + hex.EncodeToString(mac(sha256.New, []byte(secret), "i7.", body)), options: hookglass.GenericOptions{IDHeader: "X-Id", PayloadTemplate: "{id}.{body}"}},
		{name: "id as in standard webhooks", headers: "webhook-id: i7\nX-Signature: " + hex.EncodeToString(mac(sha256.New, []byte(secret), "i7.", body)), options: hookglass.GenericOptions{PayloadTemplate: "{id}.{body}"}},
		{name: "id missing", headers: "X-Signature: " + hex256, options: hookglass.GenericOptions{PayloadTemplate: "{id}.{body}"}, want: "missing_id"},
		{name: "timestamp header beside one in the list", headers: "X-T: 1771243200\nX-Signature: t=1,v1=" + hexTime, options: hookglass.GenericOptions{TimestampHeader: "X-T", PayloadTemplate: "{timestamp}.{body}", ToleranceSeconds: 1}},
		{name: "base64 secret", headers: "X-Signature: " + hex256, secret: b64([]byte(secret)), options: hookglass.GenericOptions{SecretEncoding: "base64"}},
		{name: "a secret that is no hex", headers: "X-Signature: " + hex256, secret: "xyz", options: hookglass.GenericOptions{SecretEncoding: "hex"}, want: "unusable_secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			must(t, provider.ValidateOptions("signature_config.options.", c.options))
			r := &provider.Request{Method: "POST", Headers: fields(c.headers), Body: []byte(body), ReceivedAt: received}
			config := provider.Config{ID: 1, Provider: provider.GenericHMAC, Secrets: []string{or(c.secret, secret)}, Options: c.options}
			got := provider.Verify(r, provider.Detect(r), []provider.Config{config})
			if got.Reason != c.want || (c.want == "") != (got.Status == hookglass.SignatureVerified) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Some senders write base64 in the alphabet of URLs. The signature is that of Sanity's library.
func TestGenericHMACTakesEitherAlphabetOfBase64(t *testing.T) {
	config := provider.Config{Provider: provider.GenericHMAC, Secrets: []string{secret}, Options: hookglass.GenericOptions{
		Header: "sanity-webhook-signature", Encoding: "base64", Prefix: "v1=", PayloadTemplate: "{timestamp}.{body}", TimestampUnit: "ms", ToleranceSeconds: 300}}
	at := time.UnixMilli(1771243200123)
	for _, sent := range []string{"t=1771243200123,v1=vk8UE_NYpSTHaTurIt_aupvQ1l2WqyfY9W_XosTxhwM", "t=1771243200123,v1=vk8UE/NYpSTHaTurIt/aupvQ1l2WqyfY9W/XosTxhwM="} {
		r := &provider.Request{Method: "POST", Headers: fields("sanity-webhook-signature: " + sent), Body: []byte(`{"_id":"a"}`), ReceivedAt: at}
		if got := provider.Verify(r, provider.Detect(r), []provider.Config{config}); got.Status != hookglass.SignatureVerified {
			t.Errorf("%s: %+v", sent, got)
		}
		// Signed again, it is written as it was.
		got, err := provider.Sign(provider.Outgoing{Method: "POST", URL: target, Headers: r.Headers, Body: r.Body}, config, at)
		if text := got.Headers.Get("sanity-webhook-signature"); err != nil || text != sent {
			t.Errorf("signed %s, want %s (%v)", text, sent, err)
		}
	}
}

func TestValidateOptions(t *testing.T) {
	for field, o := range map[string]hookglass.GenericOptions{
		"o.algorithm":          {Algorithm: "md5"},
		"o.encoding":           {Encoding: "any"},
		"o.timestamp_unit":     {TimestampUnit: "rfc3339"},
		"o.secret_encoding":    {SecretEncoding: "standard"},
		"o.header":             {Header: "X Signature"},
		"o.header ":            {Header: "*"},
		"o.header  ":           {Header: strings.Repeat("x", 201)},
		"o.payload_template ":  {PayloadTemplate: "{body}" + strings.Repeat("x", 495)},
		"o.timestamp_header":   {TimestampHeader: "X-T\n"},
		"o.id_header":          {IDHeader: "ä"},
		"o.prefix":             {Prefix: strings.Repeat("x", 201)},
		"o.tolerance_seconds":  {ToleranceSeconds: -1},
		"o.tolerance_seconds ": {ToleranceSeconds: 86401},
		"o.payload_template":   {PayloadTemplate: "{timestamp}"},
	} {
		err := provider.ValidateOptions("o.", o)
		if !hookglass.Is(err, hookglass.CodeValidationFailed) || !strings.Contains(err.Error(), strings.TrimSpace(field)) {
			t.Errorf("%s: %v", field, err)
		}
	}
	must(t, provider.ValidateOptions("o.", hookglass.GenericOptions{ToleranceSeconds: 86400, Header: "aA0-zZ9"}))
	if err := provider.ValidateOptions("o.", hookglass.GenericOptions{PayloadTemplate: `{"b":{body}}`}); err == nil {
		t.Error("other braces are accepted")
	}
}

func TestTwilio(t *testing.T) {
	const form = "Content-Type: application/x-www-form-urlencoded; charset=UTF-8\n"
	sign := func(text string) string { return "X-Twilio-Signature: " + b64(mac(sha1.New, []byte(secret), text)) }
	shared := func(algorithm string, h func() hash.Hash, text string) string {
		return "X-Twilio-Webhooks-Signature-Settings: key=k1, algorithm=" + algorithm + "\nX-Twilio-Signature: " + b64(mac(h, []byte(secret), text))
	}
	sum := sha256.Sum256([]byte(`{"a":1}`))
	hashed := "https://in.example.test/h?bodySHA256=" + hex.EncodeToString(sum[:])
	for _, c := range []struct {
		name, method, url, headers, body, want string
		urls                                   []string
	}{
		{name: "get signs the url", method: "GET", url: "https://a.test/h?x=%20y", headers: sign("https://a.test/h?x=%20y")},
		{name: "form", url: "https://a.test/h", headers: form + sign("https://a.test/ha1 2bc"), body: "b=&a=1+2&c="},
		{name: "duplicates are unique and sorted", url: "https://a.test/h", headers: form + sign("https://a.test/hTo1To2"), body: "To=2&To=1&To=2"},
		{name: "an escape that is none stays", url: "https://a.test/h", headers: form + sign("https://a.test/ha100%"), body: "a=100%"},
		{name: "default port left out", url: "https://a.test:443/h", headers: sign("https://a.test/h")},
		{name: "default port of http added", url: "http://a.test/h", headers: sign("http://a.test:80/h")},
		{name: "a host alone", url: "https://a.test?x=1", headers: sign("https://a.test:443?x=1")},
		{name: "IPv6", url: "https://[::1]/h", headers: sign("https://[::1]:443/h")},
		{name: "the fragment never counts", url: "https://a.test/h#x", headers: sign("https://a.test/h")},
		{name: "further spellings", url: "https://a.test/h", urls: []string{"http://b.test/h"}, headers: sign("http://b.test/h")},
		{name: "json", url: hashed, headers: "Content-Type: application/json\n" + sign(hashed), body: `{"a":1}`},
		{name: "json of another body", url: hashed, headers: "Content-Type: application/json\n" + sign(hashed), body: `{"a":2}`, want: "body_hash_mismatch"},
		{name: "json nobody vouches for", url: "https://a.test/h", headers: "Content-Type: application/json\n" + sign("https://a.test/h"), body: `{"a":1}`, want: "body_hash_mismatch"},
		{name: "a form whose digest the url holds", url: hashed, headers: form + sign(hashed), body: `{"a":1}`},
		{name: "a form whose digest the url holds, with its parameters", url: hashed, headers: form + sign(hashed+`{"a":1}`), body: `{"a":1}`},
		{name: "a form without its parameters", url: "https://a.test/h?x=1", headers: form + sign("https://a.test/h?x=1"), body: "a=1", want: "signature_mismatch"},
		{name: "a shared key", url: "https://a.test/h", headers: form + shared("HMAC_SHA256", sha256.New, "https://a.test/ha1"), body: "a=1"},
		{name: "a shared key with json", url: hashed, headers: "Content-Type: application/json\n" + shared("hmac_sha256", sha256.New, hashed), body: `{"a":1}`},
		{name: "a shared key with sha-1", url: "https://a.test/h", headers: form + shared("HMAC_SHA1", sha1.New, "https://a.test/ha1"), body: "a=1"},
		{name: "a shared key, another hash", url: "https://a.test/h", headers: form + shared("HMAC_SHA256", sha1.New, "https://a.test/ha1"), body: "a=1", want: "signature_mismatch"},
		{name: "a hash of the future", url: "https://a.test/h", headers: form + shared("HMAC_SHA3", sha1.New, "https://a.test/ha1"), body: "a=1", want: "no_supported_scheme"},
		{name: "sha-256 that no header names", url: "https://a.test/h", headers: "X-Twilio-Signature: " + b64(mac(sha256.New, []byte(secret), "https://a.test/h")), want: "signature_mismatch"},
		{name: "an escaped query", url: "https://a.test/h?n=o'b", headers: sign("https://a.test/h?n=o%27b")},
		{name: "a query encoded anew", url: "https://a.test/h?n=o%27b+c&d", headers: sign("https://a.test:443/h?n=o'b%20c&d=")},
		{name: "not base64", url: "https://a.test/h", headers: "X-Twilio-Signature: ?", want: "malformed_signature"},
		{name: "missing", url: "https://a.test/h", headers: "I-Twilio-Idempotency-Token: t", want: "missing_signature"},
		{name: "hex", url: "https://a.test/h", headers: "X-Twilio-Signature: " + hex.EncodeToString(mac(sha1.New, []byte(secret), "https://a.test/h")), want: "signature_mismatch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &provider.Request{Method: or(c.method, "POST"), URL: c.url, URLs: c.urls, Headers: fields(c.headers), Body: []byte(c.body), ReceivedAt: received}
			got := provider.Verify(r, provider.Detect(r), []provider.Config{{Provider: "twilio", Secrets: []string{secret}}})
			if got.Reason != c.want || (c.want == "") != (got.Status == hookglass.SignatureVerified) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A form may be longer than what is searched for hints: Mandrill's has mail with its attachments.
func TestLongForm(t *testing.T) {
	long := strings.Repeat("é+%25/", 400_000)
	body := "b=" + url.QueryEscape(long) + "&mandrill_events=[]&a=&b=1&mandrill_events=[]"
	signed := target + "a" + "b1" + "b" + long + "mandrill_events[]"
	r := &provider.Request{Method: "POST", URL: target, Body: []byte(body), ReceivedAt: received,
		Headers: fields("Content-Type: application/x-www-form-urlencoded\nX-Mandrill-Signature: " + b64(mac(sha1.New, []byte(secret), signed)))}
	if got := provider.Verify(r, provider.Detect(r), []provider.Config{{Provider: "mandrill", Secrets: []string{secret}}}); got.Status != hookglass.SignatureVerified {
		t.Errorf("%+v", got)
	}
}

// However many secrets and URLs there are to try, a long form is decoded and sorted once.
func TestALongFormIsReadOnce(t *testing.T) {
	body := "a=" + strings.Repeat("%25", 700_000)
	read := func(secrets int) uint64 {
		r := &provider.Request{Method: "POST", URL: target + "?n=o'b", Body: []byte(body), ReceivedAt: received,
			Headers: fields("Content-Type: application/x-www-form-urlencoded\nX-Twilio-Signature: " + b64(make([]byte, 20)))}
		c := provider.Config{Provider: "twilio", Secrets: slices.Repeat([]string{secret}, secrets)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := provider.Verify(r, provider.Detect(r), []provider.Config{c})
		runtime.ReadMemStats(&after)
		if got.Reason != "signature_mismatch" {
			t.Errorf("%+v", got)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if one, ten := read(1), read(10); ten > one+uint64(len(body)) {
		t.Errorf("one secret takes %d bytes, ten take %d", one, ten)
	}
}

// The URLs that the libraries of Contentful (node-apps-toolkit) and Plivo (plivo-node) make of one with a query and
// escapes.
func TestURLsAsTheLibrariesReadThem(t *testing.T) {
	const names = "x-contentful-signed-headers:x-contentful-signed-headers,x-contentful-timestamp;x-contentful-timestamp:1771243200000\n"
	for _, c := range []struct{ provider, sub, signed, body string }{
		{"contentful", "/a%20b/(c)?x=1+2&y=%2B", "POST\n/hooks/ep_1/a%2520b/(c)?x%253D1%252B2%2526y%253D%25252B\n" + names, ""},
		{"contentful", "/a%20b?x=1", "POST\n/hooks/ep_1/a%20b?x=1\n" + names, ""},
		{"plivo", "/caf%C3%A9?b=2&a=2&a=1+.", "https://in.example.test/hooks/ep_1/caf%C3%A9?a=1 .&a=2&b=2.CallUUIDu.n", "CallUUID=u"},
		{"plivo", "/caf%C3%A9?b=2&a=2&a=1+.", "https://in.example.test/hooks/ep_1/café?a=2&a=1 .&b=2.CallUUIDu.n", "CallUUID=u"},
		{"plivo", "", "https://in.example.test/hooks/ep_1?b1b1b2.n", "b=2&b=1&b=1"},
		{"plivo", "/%20?b=2.", "https://in.example.test/hooks/ep_1/%20?b=2..n", ""},
		{"plivo", "/%20", "https://in.example.test/hooks/ep_1/%20?CallUUIDu.n", "CallUUID=u"},
	} {
		m := mac(sha256.New, []byte(secret), c.signed)
		headers := "X-Contentful-Topic: a\nx-contentful-signed-headers: x-contentful-signed-headers,x-contentful-timestamp\nx-contentful-timestamp: 1771243200000\nx-contentful-signature: " + hex.EncodeToString(m)
		if c.provider == "plivo" {
			headers = "Content-Type: application/x-www-form-urlencoded\nX-Plivo-Signature-V3-Nonce: n\nX-Plivo-Signature-V3: " + b64(m)
		}
		r := &provider.Request{Method: "POST", URL: "https://in.example.test/hooks/ep_1" + c.sub, Headers: fields(headers), Body: []byte(c.body), ReceivedAt: received}
		if got := provider.Verify(r, provider.Detect(r), []provider.Config{{Provider: c.provider, Secrets: []string{secret}}}); got.Status != hookglass.SignatureVerified {
			t.Errorf("%s %s as %q: %+v", c.provider, c.sub, c.signed, got)
		}
	}
}
