package bundle_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/bundle"
	"hookglass/internal/cputime"
	"hookglass/internal/provider"
)

var at = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func webhook(providerID, target, head, body string, configs ...provider.Config) bundle.Source {
	return bundle.Source{
		Type: hookglass.EventWebhook, Provider: providerID, ReceivedAt: at, Configs: configs,
		Request: provider.Outgoing{Method: "POST", URL: target, Headers: hookglass.ParseWire([]byte(strings.ReplaceAll(head, "\n", "\r\n"))), Body: []byte(body)},
	}
}

func makeBundle(t *testing.T, o bundle.Options, sources ...bundle.Source) bundle.Made {
	t.Helper()
	m, err := bundle.New(o)
	if err != nil {
		t.Fatal(err)
	}
	made, err := m.Make(t.Context(), sources)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const (
	jsonHead = "Host: hooks.example.com\nContent-Type: application/json\nContent-Length: 1\n"
	aToken   = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhZGEtNDIiLCJlbWFpbCI6ImFkYUBsb3ZlbGFjZS5leGFtcGxlLm9yZyIsImlhdCI6MTcwMDAwMDAwMH0.c2lnbmF0dXJlLW9mLWFkYQ"
)

// canaries are what must not be in a bundle in any encoding.
var canaries = []string{
	"ada@lovelace.example.org", "Ada Lovelace", "Lovelace", "+1 (415) 867-5309", "14158675309", "4242 4242 4242 4242", "4242424242424242", "GB82 WEST 1234 5698 7654 32", "GB82WEST12345698765432",
	"81.2.69.142", "2a02:6b8::feed", "12 Analytical Street", "SW1A 2AA", "sk_live_51HcanaryCANARYcanary", "canarycanarycanary51Hc", "whsec_of_the_endpoint_itself", "hunter2-canary", "s3ss10n-canary", "c2lnbmF0dXJlLW9mLWFkYQ",
	"ada-42-loves-engines", "ep_capability_of_the_endpoint",
}

func body() string {
	return `{ "id" : "evt_1",
  "amount": 1000.50, "created":1700000000, "escaped":"\u00e9\/x",
  "customer": {"name":"Ada Lovelace", "email": "ada@lovelace.example.org", "phone":"+1 (415) 867-5309", "first_name": "Ada", "last_name":"Lovelace",
     "address": {"line1":"12 Analytical Street", "postal_code":"SW1A 2AA", "city":"London", "country":"GB"}},
  "card": {"number":"4242 4242 4242 4242"}, "pan": 4242424242424242, "bank":"GB82 WEST 1234 5698 7654 32", "plain":"GB82WEST12345698765432",
  "client_ip":"81.2.69.142", "ips":["2a02:6b8::feed"], "note":"Mail ada@lovelace.example.org, ask for Ada Lovelace or call 14158675309.",
  "api_token":"sk_live_51HcanaryCANARYcanary", "jwt":"` + aToken + `", "password":"hunter2-canary",
  "ref": "ada-42-loves-engines", "again":["see ada-42-loves-engines"],
  "data":"` + base64.StdEncoding.EncodeToString([]byte(`{"email":"ada@lovelace.example.org"}`)) + `",
  "odd":"x` + base64.StdEncoding.EncodeToString([]byte("to ada@lovelace.example.org from her")) + `",
  "hex":"` + hex.EncodeToString([]byte("ada@lovelace.example.org")) + `",
  "url":"https://shop.example.com/?email=` + url.QueryEscape("ada@lovelace.example.org") + `&q=Ada%20Lovelace",
  "inner":"{\"email\":\"ada@lovelace.example.org\",\"n\":1.0}", "secret_note":"whsec_of_the_endpoint_itself", "hook":"https://h.example.com/hooks/ep_capability_of_the_endpoint",
  "ada@lovelace.example.org": true }`
}

func theSource() bundle.Source {
	return webhook("stripe", "/in/ada@lovelace.example.org?email=ada%40lovelace.example.org&token=hunter2-canary",
		jsonHead+"Stripe-Signature: t=1,v1=00\nAuthorization: Bearer canarycanarycanary51Hc\nCookie: session=s3ss10n-canary\nX-Forwarded-For: 81.2.69.142, 2a02:6b8::feed\nX-Session: s3ss10n-canary\nUser-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\n",
		body(), provider.Config{ID: 1, Provider: "stripe", Secrets: []string{"whsec_of_the_endpoint_itself"}})
}

var theOptions = bundle.Options{Pointers: []string{"/ref"}, Secrets: []string{"whsec_of_the_endpoint_itself", "ep_capability_of_the_endpoint"}}

func TestNothingThatWasReplacedIsLeftInAnyEncoding(t *testing.T) {
	made := makeBundle(t, theOptions, theSource(), webhook("github", "/", jsonHead, `{"text":"ada@lovelace.example.org asked about ada-42-loves-engines"}`))
	var file bytes.Buffer
	if err := made.File(at).Write(&file); err != nil {
		t.Fatal(err)
	}
	texts := []string{file.String()}
	for _, e := range made.Events {
		texts = append(texts, e.Head, string(e.Body))
	}
	var decoded []string
	for _, text := range texts {
		unescaped, _ := url.QueryUnescape(regexp.MustCompile(`%(?:[^0-9A-Fa-f]|$)`).ReplaceAllString(text, ""))
		decoded = append(decoded, unescaped)
		for _, run := range regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}`).FindAllString(text, -1) {
			run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
			for start := range 4 {
				part := run[start:]
				b, _ := base64.RawStdEncoding.DecodeString(part[:len(part)-len(part)%4])
				decoded = append(decoded, string(b))
			}
			for start := range 2 {
				b, _ := hex.DecodeString(run[start:])
				decoded = append(decoded, string(b))
			}
		}
	}
	for _, text := range append(texts, decoded...) {
		for _, canary := range canaries {
			if i := strings.Index(strings.ToLower(text), strings.ToLower(canary)); i >= 0 {
				t.Errorf("%q is left: …%s…", canary, text[max(0, i-60):min(len(text), i+60)])
			}
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", made.Events[0].Head, made.Events[0].Body)
	}
}

// What is known for a secret or a name from one place goes from the others, where nothing tells what it is.
func TestWhatOnePlaceTellsIsReplacedInTheOthers(t *testing.T) {
	made := makeBundle(t, bundle.Options{Pointers: []string{"header:x-shop", "/l/*/n", "/x@lovelace.example.org/b"}}, webhook("unknown", "/", jsonHead+"Authorization: Bearer onlyLettersHere\nCookie: theme=inTheCookieOnly\nX-Shop: analytical engine\n",
		`{"email":"ada.l1815@lovelace.example.org","login":"ada.l1815","a":"onlyLettersHere","b":"inTheCookieOnly","c":"analytical engine","l":[{"n":"difference engine"}],"x@lovelace.example.org":{"a":"1","b":"babbage 17"}}`))
	got := made.Events[0].Head + string(made.Events[0].Body)
	for _, gone := range []string{"l1815", "onlyLettersHere", "inTheCookieOnly", "analytical", "difference", "babbage"} {
		if strings.Contains(got, gone) {
			t.Errorf("%s is left in %s", gone, got)
		}
	}
}

func TestTheRestStaysByteForByte(t *testing.T) {
	made := makeBundle(t, theOptions, theSource())
	got := string(made.Events[0].Body)
	for _, kept := range []string{`{ "id" : "evt_1",` + "\n" + `  "amount": 1000.50, "created":1700000000, "escaped":"\u00e9\/x",`, `"country":"GB"}},`, `\"n\":1.0}"`, "Mail ", ", ask for ", "https://shop.example.com/?email=", `: true }`} {
		if !strings.Contains(got, kept) {
			t.Errorf("%q is not kept in %s", kept, got)
		}
	}
	for _, kept := range []string{"User-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\n", "Content-Type: application/json\r\n"} {
		if !strings.Contains(made.Events[0].Head, kept) {
			t.Errorf("%q is not kept in %s", kept, made.Events[0].Head)
		}
	}
	for _, gone := range []string{"Authorization", "Cookie", "hooks.example.com"} {
		if strings.Contains(made.Events[0].Head, gone) {
			t.Errorf("%q is in %s", gone, made.Events[0].Head)
		}
	}
	plain := `{"id":"evt_1","type":"invoice.paid","livemode":false,"data":{"object":{"id":"in_1MtHbELkdIwHu7ixl4OzzPMv","total":1099,"currency":"usd","hash":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"}},"created":1700000000,"v":"1.2.3.4.5","at":"2026-11-20T10:00:00+00:00","uuid":"123e4567-e89b-12d3-a456-426614174000"}`
	if made := makeBundle(t, bundle.Options{}, webhook("stripe", "/", jsonHead, plain)); string(made.Events[0].Body) != plain || len(made.Replaced) != 0 {
		t.Errorf("what is nobody's was replaced: %v\n%s", made.Replaced, made.Events[0].Body)
	}
}

func TestSubstitutesAreStableAndKeepTheirForm(t *testing.T) {
	text := `{"a":"ada@lovelace.example.org","b":"ADA@lovelace.example.org","c":"bob@lovelace.example.org","phone":"+1 (415) 867-5309","phone2":"+14158675309","card":"4242 4242 4242 4242","card_number":"X4929 1234 5678 9012","iban":"GB82 WEST 1234 5698 7654 32","iban2":"NO93 8601 1117 947","ip":"81.2.69.142","ip6":"2a02:2e0:3fe:1001:302::2","full_name":"Ada Lovelace","first_name":"Ada","dob":"1815-12-10"}`
	read := func() map[string]string {
		made := makeBundle(t, bundle.Options{}, webhook("unknown", "/", jsonHead, text))
		var v map[string]string
		if err := json.Unmarshal(made.Events[0].Body, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := read()
	if !strings.EqualFold(v["a"], v["b"]) || strings.EqualFold(v["a"], v["c"]) {
		t.Errorf("%q, %q, %q", v["a"], v["b"], v["c"])
	}
	if _, domain, _ := strings.Cut(v["a"], "@"); !strings.HasSuffix(v["c"], "@"+domain) || !strings.HasSuffix(domain, ".example") {
		t.Errorf("one domain became two: %q, %q", v["a"], v["c"])
	}
	for name, form := range map[string]string{
		"a": `^[a-z]{3}@[a-z]{8}\.example$`, "phone": `^\+1 \(4\d\d\) \d{3}-\d{4}$`, "card": `^4\d{3} \d{4} \d{4} \d{4}$`, "card_number": `^X4\d{3} \d{4} \d{4} \d{4}$`, "iban": `^GB\d\d [A-Z]{4} \d{4} \d{4} \d{4} \d\d$`,
		"iban2": `^NO\d\d \d{4} \d{4} \d{3}$`, "ip6": `^2001:db8:`, "ip": `^198\.1[89]\.\d+\.\d+$`, "full_name": `^[A-Z][a-z]{2} [A-Z][a-z]{7}$`, "dob": `^(19|20)\d\d-[01]\d-[0-2]\d$`,
	} {
		if !regexp.MustCompile(form).MatchString(v[name]) {
			t.Errorf("%s became %q", name, v[name])
		}
	}
	only := func(s string) string { return regexp.MustCompile(`\D`).ReplaceAllString(s, "") }
	if only(v["phone"]) != only(v["phone2"]) {
		t.Errorf("one number became two: %q, %q", v["phone"], v["phone2"])
	}
	if !strings.HasPrefix(v["full_name"], v["first_name"]+" ") {
		t.Errorf("one name became two: %q, %q", v["full_name"], v["first_name"])
	}
	sum := 0
	for i, c := range only(v["card"]) {
		d := int(c - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	if sum%10 != 0 {
		t.Errorf("the check digit of %q is wrong", v["card"])
	}
	if again := read(); again["a"] == v["a"] || again["card"] == v["card"] {
		t.Errorf("two bundles have one key: %q", again["a"])
	}
}

// Of 90 numbers of two digits, 40 are used: no two of them become one, none stays, and what is hexadecimal stays that.
func TestNoTwoValuesBecomeOne(t *testing.T) {
	for range 5 {
		values := map[string]string{"id": strings.Repeat("abcdef01-", 8) + "abcdef01"}
		for i := range 40 {
			values["k"+strconv.Itoa(10+i)] = strconv.Itoa(10 + i)
		}
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(makeBundle(t, bundle.Options{Pointers: []string{"/*"}, Keep: []string{"token"}}, webhook("unknown", "/", jsonHead, string(text))).Events[0].Body, &got); err != nil {
			t.Fatal(err)
		}
		made := map[string]bool{}
		for name, value := range got {
			made[value] = true
			if value == values[name] {
				t.Errorf("%s stays", value)
			}
		}
		if len(made) != len(values) || !regexp.MustCompile(`^([a-f]{6}\d\d-?){9}$`).MatchString(got["id"]) {
			t.Fatalf("%d values became %d: %v", len(values), len(made), got)
		}
	}
}

// Whoever takes what is public verifies every event, at the time when it came.
func TestSignaturesVerifyWithThePublishedSecret(t *testing.T) {
	for _, sample := range provider.Samples() {
		o, err := provider.Sample(sample.Provider, sample.Event, "https://hooks.example.com/in")
		if err != nil {
			t.Fatal(err)
		}
		_, query, _ := strings.Cut(o.URL, "?")
		o.URL = "/in"
		if query != "" {
			o.URL += "?" + query
		}
		info, _ := provider.Known(sample.Provider)
		made := makeBundle(t, bundle.Options{}, bundle.Source{Type: hookglass.EventWebhook, Request: o, Provider: sample.Provider, EventType: sample.EventType, ReceivedAt: at,
			Configs: []provider.Config{{ID: 7, Provider: provider.GenericHMAC, Secrets: []string{"own"}, Options: hookglass.GenericOptions{Header: "X-Own-Hmac", Encoding: "base64"}}}})
		var file bytes.Buffer
		if err := made.File(at).Write(&file); err != nil {
			t.Fatal(err)
		}
		read, err := bundle.Read(&file)
		if err != nil {
			t.Fatal(err)
		}
		e := read.Events[0]
		verdict, err := e.Verify()
		if err != nil || info.Signable && verdict.Status != hookglass.SignatureVerified {
			t.Errorf("%s %s: %s %s %v", sample.Provider, sample.Event, verdict.Status, verdict.Reason, err)
		}
		if e.EventType != sample.EventType || e.Provider != sample.Provider {
			t.Errorf("%s %s became %s %s", sample.Provider, sample.EventType, e.Provider, e.EventType)
		}
		if e.Signature == nil {
			continue
		}
		again, err := e.For("http://localhost:3000/hooks?x=y", at.Add(48*time.Hour))
		if err != nil {
			t.Errorf("%s: %v", sample.Provider, err)
		}
		found := provider.Verify(&provider.Request{Method: again.Method, URL: again.URL, RawQuery: strings.SplitN(again.URL, "?", 2)[1], Headers: again.Headers, Body: again.Body, ReceivedAt: at.Add(48 * time.Hour)},
			provider.Detection{Provider: e.Provider}, []provider.Config{{Provider: e.Signature.Provider, Secrets: []string{e.Signature.Secret}, Options: hookglass.GenericOptions{Header: "X-Own-Hmac", Encoding: "base64"}}})
		if found.Status != hookglass.SignatureVerified {
			t.Errorf("%s, sent anew: %s", sample.Provider, found.Reason)
		}
	}
}

func TestWhatIsReplacedIsListedWithoutItsValue(t *testing.T) {
	made := makeBundle(t, theOptions, theSource())
	lines := map[string]int{}
	for _, r := range made.Replaced {
		lines[r.Where+" "+string(r.Kind)] += r.Count
	}
	for _, want := range []string{"/customer/email email", "/customer/name name", "/customer/phone phone", "/card/number card", "/bank iban", "/client_ip ip", "/ips/0 ip", "/jwt jwt", "/api_token token",
		"/ref pointer", "header:Authorization removed", "header:Cookie removed", "header:X-Forwarded-For ip", "query:email email", "path email", "/customer/address/line1 address"} {
		if lines[want] == 0 {
			t.Errorf("%q is not listed in %v", want, lines)
		}
	}
	if lines["header:X-Forwarded-For ip"] != 2 {
		t.Errorf("%v", lines)
	}
}

func TestWhatIsKeptStays(t *testing.T) {
	made := makeBundle(t, bundle.Options{Keep: []string{"/customer/email", "ip", "phone", "/note", "/OTHER", "header:authorization", "header:*"}},
		webhook("unknown", "/", jsonHead+"Authorization: Bearer for-everybody\nX-Api-Key: for-nobody-1\n", `{"last_name":"Marvin","note":"Marvin asks","customer":{"email":"ada@lovelace.example.org","first_name":"Zaphod"},"mobile":"0151 12345","ip":"81.2.69.142","again":"ada@lovelace.example.org","other":"bob@lovelace.example.org"}`))
	got := string(made.Events[0].Body)
	if strings.Count(got, "ada@lovelace.example.org") != 2 || !strings.Contains(got, "81.2.69.142") || !strings.Contains(got, "0151 12345") || strings.Contains(got, "bob@") || strings.Contains(got, "Zaphod") {
		t.Error(got)
	}
	if !strings.Contains(got, `"note":"Marvin asks"`) || strings.Contains(got, `"last_name":"Marvin"`) {
		t.Error(got)
	}
	if !strings.Contains(made.Events[0].Head, "Authorization: Bearer for-everybody") || strings.Contains(made.Events[0].Head, "for-nobody-1") {
		t.Error(made.Events[0].Head)
	}
}

// The endpoint's own are kept nowhere, whether a place is named that they are in, all of their kind, or a value.
func TestWhatIsTheEndpointsOwnIsNeverKept(t *testing.T) {
	o := bundle.Options{
		Keep: []string{"/secret", "/hook", "/to", "email", "token", "header:X-Secret"}, Secrets: []string{"whsec_of_the_endpoint_itself", "ep_capability"},
		Addresses: []string{"inbox-1@mails", "inbox-1+tag@mails"},
	}
	made := makeBundle(t, o, webhook("unknown", "/", jsonHead+"X-Secret: whsec_of_the_endpoint_itself\nX-Again: whsec_of_the_endpoint_itself\n",
		`{"secret":"whsec_of_the_endpoint_itself","hook":"see ep_capability","to":"inbox-1@mails","more":["whsec_of_the_endpoint_itself","a inbox-1+tag@mails b","ada@lovelace.example.org"]}`))
	got := made.Events[0].Head + string(made.Events[0].Body)
	for _, own := range []string{"whsec_of_the_endpoint_itself", "ep_capability", "inbox-1"} {
		if strings.Contains(got, own) {
			t.Errorf("%s is left in %s", own, got)
		}
	}
	if !strings.Contains(got, "ada@lovelace.example.org") || strings.Count(got, ".example\"") != 1 {
		t.Error(got)
	}
}

func TestBodiesOfOtherKinds(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(`{"email":"ada@lovelace.example.org"}`))
	z.Close()
	for _, c := range []struct{ name, head, body, want string }{
		{"a form", "Content-Type: application/x-www-form-urlencoded\n", "a=1&customer%5Bemail%5D=ada%40lovelace.example.org&first_name=Zaphod&b=x+y", `^a=1&customer%5Bemail%5D=[a-z]{3}%40[a-z]{8}\.example&first_name=[A-Z][a-z]{5}&b=x\+y$`},
		{"JSON in a form", "Content-Type: application/x-www-form-urlencoded\n", "payload=" + url.QueryEscape(`{"email": "ada@lovelace.example.org"}`), `^payload=%7B%22email%22%3A\+%22[a-z]{3}%40[a-z]{8}\.example%22%7D$`},
		{"JSON that says it is a form", "Content-Type: application/x-www-form-urlencoded\n", `{"first_name": "Zaphod", "n": "a b"}`, `^{"first_name": "[A-Z][a-z]{5}", "n": "a b"}$`},
		{"JSON behind a byte order mark", "Content-Type: application/json\n", "\xef\xbb\xbf" + `{"first_name":"Zaphod"}`, "^\xef\xbb\xbf" + `{"first_name":"[A-Z][a-z]{5}"}$`},
		{"JSON behind many blanks", "", strings.Repeat(" ", 80) + `{"first_name":"Zaphod"}`, `^ {80}{"first_name":"[A-Z][a-z]{5}"}$`},
		{"text", "Content-Type: text/plain\n", "From ada@lovelace.example.org\r\nto x", `^From [a-z]{3}@[a-z]{8}\.example\r\nto x$`},
		{"XML", "Content-Type: application/xml\n", "<p><first_name>Zaphod</first_name><n>1</n></p>", `^<p><first_name>[A-Z][a-z]{5}</first_name><n>1</n></p>$`},
		{"references in HTML", "Content-Type: application/json\n", `{"first_name":"Zoëanne","html":"<p>Zo&euml;anne &amp; ada&#64;lovelace&#x2e;example.org &lt;b&gt; &c;</p>"}`,
			`^{"first_name":"([^"]+)","html":"<p>[^& ]+ &amp; [a-z]{3}@[a-z]{8}\.example &lt;b&gt; &c;</p>"}$`},
		{"lines of JSON", "Content-Type: application/x-ndjson\n", "{\"email\":\"ada@lovelace.example.org\"}\n{\"n\":1}\n", `^{"email":"[a-z]{3}@[a-z]{8}\.example"}\n{"n":1}\n$`},
		{"JSON behind a byte order mark and spaces", "Content-Type: application/json\n", "\ufeff" + strings.Repeat(" ", 99) + `{"first_name":"Zaphod"}`, `^\x{feff} {99}{"first_name":"[A-Z][a-z]{5}"}$`},
		{"lines of JSON that are no objects", "Content-Type: application/x-ndjson\n", "{\"n\":1}\n\"ada@lovelace.example.org\"\n4242424242424242\n\"x\"\n", `^{"n":1}\n"[a-z]{3}@[a-z]{8}\.example"\n4\d{15}\n"x"\n$`},
		{"compressed", "Content-Type: application/json\nContent-Encoding: gzip\n", packed.String(), `^{"email":"[a-z]{3}@[a-z]{8}\.example"}$`},
		{"compressed in another way", "Content-Type: application/json\nContent-Encoding: br\n", "\x0b\x02\x80", `^$`},
		{"binary", "Content-Type: image/png\n", "\x89PNG\xff", `^$`},
		{"multipart", "Content-Type: multipart/form-data; boundary=xx\n", "--xx\r\nContent-Disposition: form-data; name=\"email\"\r\n\r\nada@lovelace.example.org\r\n--xx\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.bin\"\r\n\r\n\xff\xfe\r\n--xx--\r\n",
			`^--xx\r\nContent-Disposition: form-data; name="email"\r\n\r\n[a-z]{3}@[a-z]{8}\.example\r\n--xx\r\nContent-Disposition: form-data; name="f"; filename="f.bin"\r\n\r\n\r\n--xx--\r\n$`},
		{"multipart with bare line feeds", "Content-Type: multipart/form-data; boundary=xx\n", "--xx\nContent-Disposition: form-data; name=\"first_name\"\n\nZaphod\n--xx--\n",
			`^--xx\nContent-Disposition: form-data; name="first_name"\n\n[A-Z][a-z]{5}\n--xx--\n$`},
		{"multipart without parts", "Content-Type: multipart/form-data; boundary=xx\n", "to ada@lovelace.example.org\r\n", `^to [a-z]{3}@[a-z]{8}\.example\r\n$`},
		{"UTF-16", "Content-Type: application/json\n", "{\x00\"\x00}\x00", `^$`},
		{"multipart in lines that end with LF", "Content-Type: multipart/form-data; boundary=xx\n", "--xx\nContent-Disposition: form-data; name=\"first_name\"\n\nZaphod\n--xx\nX-From: ada@lovelace.example.org\n--xx--\n",
			`^--xx\nContent-Disposition: form-data; name="first_name"\n\n[A-Z][a-z]{5}\n--xx\nX-From: [a-z]{3}@[a-z]{8}\.example\n--xx--\n$`},
		{"multipart in lines that end with LF, with others in a value", "Content-Type: multipart/form-data; boundary=xx\n", "--xx\nContent-Disposition: form-data; name=\"password\"\n\ns3cr=t\r\n\r\nsure\n--xx--\n",
			`^--xx\nContent-Disposition: form-data; name="password"\n\n[a-z]\d[a-z]{2}=[a-z]\r\n\r\n[a-z]{4}\n--xx--\n$`},
		{"text around multipart", "Content-Type: multipart/form-data; boundary=xx\n", "ada@lovelace.example.org\r\n--xx--\r\nbob@lovelace.example.org", `^[a-z]{3}@[a-z]{8}\.example\r\n--xx--\r\n[a-z]{3}@[a-z]{8}\.example$`},
		{"JSON that is called multipart", "Content-Type: multipart/form-data; boundary=xx\n", `{"first_name":"Zaphod"}`, `^{"first_name":"[A-Z][a-z]{5}"}$`},
		{"JSON that is called a form, as curl -d does", "Content-Type: application/x-www-form-urlencoded\n", `{"first_name":"Zaphod","password":"s3cr=t&x"}`, `^{"first_name":"[A-Z][a-z]{5}","password":"[a-z]\d[a-z]{2}=[a-z]&[a-z]"}$`},
		{"a form that is not quite encoded", "Content-Type: application/x-www-form-urlencoded\n", "a=1&password=100%sure&100%=ada@lovelace.example.org&first_name=Zaphod%", `^a=1&password=\d{3}%[a-z]{4}&100%=[a-z]{3}(%40|@)[a-z]{8}\.example&first_name=[A-Z][a-z]{5}%$`},
		{"JSON behind a byte order mark", jsonHead, "\ufeff{\"first_name\":\"Zaphod\"}", `^\x{FEFF}{"first_name":"[A-Z][a-z]{5}"}$`},
		{"JSON behind much white space", jsonHead, strings.Repeat(" ", 100) + `{"first_name":"Zaphod"}`, `^ {100}{"first_name":"[A-Z][a-z]{5}"}$`},
		{"names of fields with other words and numbers", jsonHead, `{"phone2":"020 7946 0958","FromCity":"Zaphodville","billing_first_name":"Zaphod","x.customerDateOfBirth":"1979-10-12","address_zip":"QX9 7ZZ","IPCity":"Zaphodburg","user_street_2":"17 Zaphod","mobile":79460958}`,
			`^{"phone2":"\d{3} \d{4} \d{4}","FromCity":"[A-Z][a-z]{10}","billing_first_name":"[A-Z][a-z]{5}","x.customerDateOfBirth":"[^"]{10}","address_zip":"[A-Z]{2}\d \d[A-Z]{2}","IPCity":"[A-Z][a-z]{9}","user_street_2":"\d\d [A-Z][a-z]{5}","mobile":\d+}$`},
		{"names of fields that only end alike", jsonHead, `{"velocity":"plain","last_login":"2026-11-20T10:00:00Z","is_mobile":"true","repository_full_name":"ada/engine","microphone":"415 867 5309 x","ip_address":"eth0"}`,
			`^{"velocity":"plain","last_login":"2026-11-20T10:00:00Z","is_mobile":"true","repository_full_name":"ada/engine","microphone":"415 867 5309 x","ip_address":"eth0"}$`},
		{"names in lists", jsonHead, `[["auth","s3cr2abc"],["X-Api_Key2","s3cr3abc"],["my-token of old","plain1a2"],["token","plain1a3"],["x","auth","plain1a4"],{"0":"auth","1":"plain1a5"}]`,
			`^\[\["auth","[a-z]\d[a-z]{2}\d[a-z]{3}"\],\["X-Api_Key2","[a-z]\d[a-z]{2}\d[a-z]{3}"\],\["my-token of old","plain1a2"\],\["token","plain1a3"\],\["x","auth","plain1a4"\],{"0":"auth","1":"[^"]*"}\]$`},
		{"headers in lists", jsonHead, `{"raw":["Host","a","X-Token","s3cr2abc"],"vars":[{"name":"api_token","value":"s3cr3abc"},{"name":"n","value":"plain"}],"words":["password","plain"]}`,
			`^{"raw":\["Host","a","X-Token","[a-z]\d[a-z]{2}\d[a-z]{3}"\],"vars":\[{"name":"api_token","value":"[a-z]\d[a-z]{2}\d[a-z]{3}"},{"name":"n","value":"plain"}\],"words":\["password","plain"\]}$`},
		{"attributes", "Content-Type: application/xml\n", `<a password="s3cr2abc" n="plain">s3cr2abc</a>`, `^<a password="([a-z]\d[a-z]{2}\d[a-z]{3})" n="plain">[a-z]\d[a-z]{2}\d[a-z]{3}</a>$`},
		{"names of fields in brackets", "Content-Type: application/x-www-form-urlencoded\n", "customer%5Bfirst_name%5D=Zaphod&order%5Bid%5D=7", `^customer%5Bfirst_name%5D=[A-Z][a-z]{5}&order%5Bid%5D=7$`},
		{"names of fields in capitals", jsonHead, `{"ZIP":"QX9 7ZZ","FIRST_NAME":"ZAPHOD"}`, `^{"ZIP":"[A-Z]{2}\d \d[A-Z]{2}","FIRST_NAME":"[A-Z]{6}"}$`},
		{"in a text what fields tell", jsonHead, `{"street":"17 Zaphod Way","dob":"1979-10-12","ssn":"078-05-1120","text":"at 17 Zaphod Way, 1979-10-12; 078-05-1120"}`,
			`^{"street":"\d\d [A-Z][a-z]{5} [A-Z][a-z]{2}","dob":"\d{4}-\d\d-\d\d","ssn":"\d{3}-\d\d-\d{4}","text":"at \d\d [A-Z][a-z]{5} [A-Z][a-z]{2}, \d{4}-\d\d-\d\d; \d{3}-\d\d-\d{4}"}$`},
		{"names before addresses", jsonHead, `{"from":"Zaphod Beeble <zb@lovelace.example.org>","to":"\"Zaphod\" <zb@lovelace.example.org>, 'Zaphod' <bb@lovelace.example.org>"}`,
			`^{"from":"[A-Z][a-z]{5} [A-Z][a-z]{5} <[a-z]{2}@[a-z]{8}\.example>","to":"\\"[A-Z][a-z]{5}\\" <[a-z]{2}@[a-z]{8}\.example>, '[A-Z][a-z]{5}' <[a-z]{2}@[a-z]{8}\.example>"}$`},
		{"names in other letters", jsonHead, `{"first_name":"Захар","note":"Захар пишет"}`, `^{"first_name":"\p{Cyrillic}{5}","note":"\p{Cyrillic}{5} пишет"}$`},
		{"a number and a user that a field tells", jsonHead, `{"phone":"020 7946 0958","email":"zb.beeble@lovelace.example.org","text":"zb.beeble at 020 7946 0958","of":"bb@lovelace.example.org","in":"xdG8gYmJAbG92ZWxhY2UuZXhhbXBsZS5vcmcsIHNvb24="}`,
			`^{"phone":"\d{3} \d{4} \d{4}","email":"[a-z]{2}\.[a-z]{6}@[a-z]{8}\.example","text":"[a-z]{2}\.[a-z]{6} at \d{3} \d{4} \d{4}","of":"[a-z]{2}@[a-z]{8}\.example","in":"[^"]+"}$`},
		{"fields of numbers that hold none", jsonHead, `{"mobile":"not given","cell":"A5","tel":"see form 20261120 of ours"}`, `^{"mobile":"not given","cell":"A5","tel":"see form 20261120 of ours"}$`},
		{"a table of secrets", "Content-Type: text/csv\n", "id,api_key\n1,s3crets3cret\n2,plain\n", `^id,api_key\n1,[a-z]\d[a-z]{5}\d[a-z]{4}\n2,[a-z]{5}\n$`},
		{"dates of birth in other forms", jsonHead, `{"birthday":"1979","dob":"12.10.1979"}`, `^{"birthday":"\d{4}","dob":"\d\d\.\d\d\.\d{4}"}$`},
		{"names that are nobody's", jsonHead, `{"first_name":"Test","last_name":"User","mode":"Test User","address":"https://shop.example.com/a"}`,
			`^{"first_name":"[A-Z][a-z]{3}","last_name":"[A-Z][a-z]{3}","mode":"Test User","address":"https://shop\.example\.com/a"}$`},
		{"nothing", "", "", `^$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := makeBundle(t, bundle.Options{}, webhook("unknown", "/", c.head, c.body)).Events[0]
			if !regexp.MustCompile(c.want).Match(e.Body) || regexp.MustCompile(`Zaphod|lovelace|s3cr|sure|4242424242424242|7946 ?0958|1979-10-12|QX9 7ZZ|078-05|ZAPHOD|Захар|beeble|bG92ZWxhY2UuZXhh`).Match(e.Body) {
				t.Errorf("%q", e.Body)
			}
			if strings.Contains(e.Head, "gzip") || !strings.Contains(e.Head, "Content-Length: ") {
				t.Error(e.Head)
			}
		})
	}
}

// Parameters whose escapes are none count by their names as well.
func TestQueriesThatAreNotQuiteEncoded(t *testing.T) {
	e := makeBundle(t, bundle.Options{}, webhook("unknown", "/in?apikey=100%25sure&password=100%sure&n\xff=1&\xe9mail=%ff", jsonHead, `{}`)).Events[0]
	if target := strings.Fields(e.Head)[1]; !regexp.MustCompile(`^/in\?apikey=\d{3}%25[a-z]{4}&password=\d{3}%[a-z]{4}&n%FF=1&%E9mail=%ff$`).MatchString(target) || strings.Contains(target, "sure") {
		t.Error(target)
	}
}

// A value that is not UTF-8 is Latin-1, as where it is shown: a file of JSON could not hold its bytes.
func TestHeadersThatAreNotUTF8(t *testing.T) {
	e := makeBundle(t, bundle.Options{}, webhook("unknown", "/in", jsonHead+"X-Place: caf\xe9\nX-Far: 東京\n", `{}`)).Events[0]
	if !strings.Contains(e.Head, "X-Place: café\r\n") || !strings.Contains(e.Head, "X-Far: 東京\r\n") {
		t.Errorf("%q", e.Head)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for field, o := range map[string]bundle.Options{
		"pointers": {Pointers: []string{"email"}},
		"keep":     {Keep: []string{"secret"}},
	} {
		_, err := bundle.New(o)
		if !hookglass.Is(err, hookglass.CodeValidationFailed) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, p := range []string{"", "/a/~2", "header:", strings.Repeat("/a", 513)} {
		if _, err := bundle.New(bundle.Options{Pointers: []string{p}}); err == nil {
			t.Errorf("%q is taken", p)
		}
	}
	pointers := slices.Repeat([]string{"/a"}, 101)
	if _, err := bundle.New(bundle.Options{Pointers: pointers}); err == nil {
		t.Error("101 pointers are taken")
	}
	if _, err := bundle.New(bundle.Options{Pointers: pointers[1:]}); err != nil {
		t.Errorf("100 pointers: %v", err)
	}
	m, _ := bundle.New(bundle.Options{})
	if _, err := m.Make(t.Context(), make([]bundle.Source, bundle.MaxEvents+1)); !hookglass.Is(err, hookglass.CodePayloadTooLarge) {
		t.Error(err)
	}
	m, _ = bundle.New(bundle.Options{})
	if _, err := m.Make(t.Context(), make([]bundle.Source, bundle.MaxEvents)); err != nil {
		t.Error(err)
	}
}

// A request is numbered as it was named, and its head is that of the body which is in the bundle.
func TestRequestsAreWholeAndInOrder(t *testing.T) {
	get := webhook("unknown", "/in", jsonHead, `{"a":1}`)
	get.Request.Method = "GET"
	made := makeBundle(t, bundle.Options{}, get, webhook("unknown", "/two?", jsonHead, ``))
	for i, want := range []string{"GET /in HTTP/1.1\r\nHost: bundle.example\r\n", "POST /two? HTTP/1.1\r\nHost: bundle.example\r\n"} {
		e := made.Events[i]
		if e.Number != i+1 || !strings.HasPrefix(e.Head, want) || !strings.Contains(e.Head, fmt.Sprintf("Content-Length: %d\r\n", len(e.Body))) {
			t.Errorf("number %d: %s", e.Number, e.Head)
		}
	}
}

func TestAFileThatWasChangedIsRefused(t *testing.T) {
	made := makeBundle(t, bundle.Options{}, webhook("stripe", "/", jsonHead, `{"id":"evt_1"}`))
	var file bytes.Buffer
	if err := made.File(at).Write(&file); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"another body": strings.Replace(file.String(), `"body_base64": "`, `"body_base64": "IA`, 1), "no bundle": `{}`, "no JSON": "x", "another version": strings.Replace(file.String(), `"version": 1`, `"version": 2`, 1),
		"a head that is none": strings.Replace(file.String(), "HTTP/1.1", "HTTP", 1),
	} {
		if _, err := bundle.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for _, head := range []string{
		"POST / HTTP/1.1", "POST / HTTP/2\r\n\r\n", "POST / / HTTP/1.1\r\n\r\n", "POST in HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\nX-A\r\n\r\n", "POST / HTTP/1.1\r\n: 1\r\n\r\n",
		"POST / HTTP/1.1\r\nX-A: 1\nX-B: 2\r\n\r\n", "POST / HTTP/1.1\r\nX-A: 1\rX-B: 2\r\n\r\n", "POST / HTTP/1.1\r\nX-A: \x00\r\n\r\n",
	} {
		if o, err := (bundle.Event{Number: 1, Head: head}).Request(); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("%q is taken: %+v", head, o)
		}
	}
}

// Valid JSON stays valid JSON of the same structure.
func FuzzBundle(f *testing.F) {
	f.Add([]byte(body()))
	f.Add([]byte(`{"email":"a@b.cd","name":"Ada","phone":"+1 415 867 5309","a":[1,{"pan":4242424242424242}]}`))
	f.Add([]byte(`["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x", "%61%40b.cd", "YUBiLmNkYUBiLmNk"]`))
	f.Add([]byte(`["a"] "b" 1`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := bundle.New(bundle.Options{Pointers: []string{"/a/*/b"}})
		if err != nil {
			t.Fatal(err)
		}
		made, err := m.Make(t.Context(), []bundle.Source{webhook("unknown", "/", "Content-Type: application/json\n", string(text))})
		if err != nil {
			if hookglass.Is(err, hookglass.CodeConflict) || hookglass.Is(err, hookglass.CodePayloadTooLarge) {
				return
			}
			t.Fatal(err)
		}
		if !json.Valid(text) || !utf8.Valid(text) {
			return
		}
		var before, after any
		if err := json.Unmarshal(made.Events[0].Body, &after); err != nil {
			t.Fatalf("%q became %q", text, made.Events[0].Body)
		}
		if json.Unmarshal(text, &before) == nil && form(before) != form(after) {
			t.Fatalf("%q became %q", text, made.Events[0].Body)
		}
	})
}

// A file comes from anybody: what is read of it can be checked, signed for another place, and written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format":"hookglass-bundle","version":1,"events":[{"head":"x"}]}`), "POST /in?a HTTP/1.1\r\nHost: a\r\nX-Hub-Signature: sha1=0\r\n\r\n", []byte(`{"a":1}`), "github", "secret", "")
	f.Add([]byte("{"), "GET / HTTP/1.1\r\nX:\r\n", []byte(nil), "generic_hmac", "\x00", "{timestamp}.{body}")
	f.Add([]byte("[]"), "A /%zz HTTP/1.1\r\n\r\n", []byte("a=1&timestamp=2&token=3&signature=4"), "mailgun", "", "{")
	sum := func(b []byte) string {
		s := sha256.Sum256(b)
		return hex.EncodeToString(s[:])
	}
	f.Fuzz(func(t *testing.T, text []byte, head string, body []byte, providerID, secret, template string) {
		_, _ = bundle.Read(bytes.NewReader(text))
		head = strings.ToValidUTF8(head, "")
		file := bundle.File{Format: "hookglass-bundle", Version: 1, Events: []bundle.Event{{
			Provider: providerID, ReceivedAt: at, Head: head, HeadSHA256: sum([]byte(head)), Body: body, BodySHA256: sum(body),
			Signature: &bundle.Signature{Provider: providerID, Secret: secret, Options: &bundle.Scheme{PayloadTemplate: template}},
		}}}
		var written bytes.Buffer
		if err := file.Write(&written); err != nil {
			t.Fatal(err)
		}
		read, err := bundle.Read(&written)
		if err != nil {
			return
		}
		e := read.Events[0]
		if _, err := e.Verify(); err != nil {
			t.Error(err)
		}
		if o, err := e.For("https://a.test/b", at); err == nil && (!bytes.Equal(o.Body, body) && providerID != "adyen" && providerID != "mailgun" || !strings.HasPrefix(o.URL, "https://a.test/b")) {
			t.Errorf("%q for %s", o.Body, o.URL)
		}
	})
}

// form is the structure of a value without names and values.
func form(v any) string {
	switch v := v.(type) {
	case []any:
		var b strings.Builder
		for _, e := range v {
			b.WriteString(form(e) + ",")
		}
		return "[" + b.String() + "]"
	case map[string]any:
		return "{" + strings.Repeat("m", len(v)) + "}"
	case string:
		return "s"
	case float64:
		return "n"
	}
	return "c"
}

func TestShortNamesAreFoundInTheSpellingsThatAreNames(t *testing.T) {
	for in, want := range map[string]string{
		`{"first_name":"Will","note":"Will, WILL and will-o'-wisp will"}`:                       " and will-o'-wisp will",
		`{"first_name":"Jane","username":"jane","note":"jane or JANE","list":["Jane","janet"]}`: "janet",
		`{"login":"bob","note":"Bob asked, bob wrote, bobby"}`:                                  "bobby",
	} {
		out := string(makeBundle(t, bundle.Options{}, webhook("", "/in", jsonHead, in)).Events[0].Body)
		left := regexp.MustCompile(`\b(Will|WILL|[Jj]ane|JANE|[Bb]ob)\b`).FindString(out)
		if left != "" || !strings.Contains(out, want) {
			t.Errorf("%s is left of %s in %s", left, in, out)
		}
	}
}

// A body takes time in proportion to its length, whatever its names and values have in common.
func TestWhatIsMadeOfOneBodyTakesNoTimeWithoutEnd(t *testing.T) {
	var users strings.Builder
	for i := range 25_000 {
		fmt.Fprintf(&users, `,{"email":"user%05d@example.com"}`, i)
	}
	for what, body := range map[string]string{
		"a long name":                 `{"` + strings.Repeat("n", 100_000) + `":[{"a":1}` + strings.Repeat(`,1,"a"`, 20_000) + `]}`,
		"values that begin as others": `[` + users.String()[1:] + `]`,
		"a long value":                `{"password":"` + strings.Repeat("a", 60_000) + `b","text":"` + strings.Repeat("a", 300_000) + `"}`,
		"a very long value":           `{"password":"` + strings.Repeat("a", 500_000) + `"}`,
		"what begins as cards":        strings.Repeat("4 4 4 4 ", 50_000),
		"what begins as accounts":     strings.Repeat("AA11 ", 50_000),
	} {
		var made bundle.Made
		cputime.AtMost(t, 8*time.Second, what, func() {
			made = makeBundle(t, bundle.Options{}, webhook("unknown", "/in", jsonHead, body))
		})
		if bytes.Contains(made.Events[0].Body, []byte("user0")) {
			t.Errorf("%s: it is left", what)
		}
	}
}

// leaving is a context that is done once it was asked a few times, as of a client that leaves meanwhile.
type leaving struct {
	context.Context
	left int
}

func (l *leaving) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestNoBundleIsMadeForAClientThatLeft(t *testing.T) {
	m, err := bundle.New(bundle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := "[" + strings.Repeat(`"user@example.com",`, 100) + "0]"
	_, err = m.Make(&leaving{t.Context(), 50}, []bundle.Source{webhook("unknown", "/", jsonHead, text)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it was made: %v", err)
	}
}
