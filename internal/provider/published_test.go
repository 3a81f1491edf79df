package provider_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/provider"
)

const (
	topic   = "arn:aws:sns:eu-west-1:123456789012:orders"
	snsCert = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem"
	ppCert  = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-aecacc47"
)

// senderKeys are keys as a sender has them, with what it publishes.
type senderKeys struct {
	rsa  *rsa.PrivateKey
	ec   *ecdsa.PrivateKey
	cert string // PEM
	jwk  string
}

func newSenderKeys(t testing.TB) senderKeys {
	var k senderKeys
	var err error
	k.rsa, err = rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns.amazonaws.com"}, NotBefore: received.Add(-time.Hour), NotAfter: received.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.rsa.PublicKey, k.rsa)
	must(t, err)
	k.cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	k.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	point, err := k.ec.PublicKey.Bytes()
	must(t, err)
	k.jwk = fmt.Sprintf(`{"alg":"ES256","crv":"P-256","kid":"kid-1","kty":"EC","use":"sig","x":"%s","y":"%s","created_at":1,"expired_at":null}`, rawURL(point[1:33]), rawURL(point[33:]))
	return k
}

func rawURL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// sns returns a message as Amazon would send it. The fields change what is signed.
func (k senderKeys) sns(t testing.TB, version string, fields map[string]string) string {
	m := map[string]string{"Type": "Notification", "MessageId": "m-1", "TopicArn": topic, "Message": "line\n\"two\"", "Timestamp": "2026-02-16T12:00:00.000Z"}
	for name, v := range fields {
		m[name] = v
	}
	var text strings.Builder
	for _, name := range []string{"Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"} {
		if v, ok := m[name]; ok {
			text.WriteString(name + "\n" + v + "\n")
		}
	}
	sum1, sum256 := sha1.Sum([]byte(text.String())), sha256.Sum256([]byte(text.String()))
	sig, err := rsa.SignPKCS1v15(rand.Reader, k.rsa, crypto.SHA256, sum256[:])
	if version == "1" {
		sig, err = rsa.SignPKCS1v15(rand.Reader, k.rsa, crypto.SHA1, sum1[:])
	}
	must(t, err)
	m["SignatureVersion"], m["Signature"] = version, b64(sig)
	if m["SigningCertURL"] == "" {
		m["SigningCertURL"] = snsCert
	}
	body, err := json.Marshal(m)
	must(t, err)
	return string(body)
}

func (k senderKeys) paypal(t testing.TB, webhook, body string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "tr-1|2026-02-16T12:00:00Z|%s|%d", webhook, crc32.ChecksumIEEE([]byte(body))))
	sig, err := rsa.SignPKCS1v15(rand.Reader, k.rsa, crypto.SHA256, sum[:])
	must(t, err)
	return "PAYPAL-TRANSMISSION-ID: tr-1\nPAYPAL-TRANSMISSION-TIME: 2026-02-16T12:00:00Z\nPAYPAL-CERT-URL: " + ppCert + "\nPAYPAL-AUTH-ALGO: SHA256withRSA\nPAYPAL-TRANSMISSION-SIG: " + b64(sig)
}

func (k senderKeys) plaid(t testing.TB, header string, issued int64, body string) string {
	bodySum := sha256.Sum256([]byte(body))
	signed := rawURL([]byte(header)) + "." + rawURL(fmt.Appendf(nil, `{"iat":%d,"request_body_sha256":"%s"}`, issued, hex.EncodeToString(bodySum[:])))
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, k.ec, sum[:])
	must(t, err)
	return "Plaid-Verification: " + signed + "." + rawURL(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

const plaidHead = `{"alg":"ES256","kid":"kid-1","typ":"JWT"}`

// Senders whose public key has to be fetched: what is asked for, and the verdict when it is there.
func TestVerifyWithPublishedKeys(t *testing.T) {
	k, other := newSenderKeys(t), newSenderKeys(t)
	const body = `{"webhook_type":"ITEM","webhook_code":"ERROR","item_id":"i"}`
	const credentials = `{"client_id":"c","secret":"s3","environment":"sandbox"}`
	plaidAsk := provider.KeyRef{URL: "https://sandbox.plaid.com/webhook_verification_key/get", Post: `{"client_id":"c","key_id":"kid-1","secret":"s3"}`}
	ecDER, err := x509.MarshalPKIXPublicKey(&k.ec.PublicKey)
	must(t, err)
	ecPub := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: ecDER}))
	cut := func(text string, n int) string { return text[:len(text)-n] }
	published := map[provider.KeyRef][]byte{
		{URL: snsCert}: []byte(k.cert), {URL: "https://sns.cn-north-1.amazonaws.com.cn/a.pem"}: []byte(k.cert),
		{URL: ppCert}: []byte(k.cert), plaidAsk: []byte(`{"key":` + k.jwk + `,"request_id":"r"}`),
	}
	needed := func(id string) *provider.KeyRef {
		ref := map[string]provider.KeyRef{"aws_sns": {URL: snsCert}, "paypal": {URL: ppCert}, "plaid": plaidAsk}[id]
		return &ref
	}
	for _, c := range []struct {
		name, id, headers, body, secret string
		want                            string // reason; "" verified
		offline                         bool   // the same without any key
	}{
		{name: "sns version 1", id: "aws_sns", body: k.sns(t, "1", nil), secret: topic},
		{name: "sns version 2, with a subject", id: "aws_sns", body: k.sns(t, "2", map[string]string{"Subject": "s"}), secret: topic + "\n"},
		{name: "sns confirmation", id: "aws_sns", body: k.sns(t, "1", map[string]string{"Type": "SubscriptionConfirmation", "Token": "t", "SubscribeURL": "https://x"}), secret: topic},
		{name: "sns of China", id: "aws_sns", body: k.sns(t, "1", map[string]string{"SigningCertURL": "https://sns.cn-north-1.amazonaws.com.cn/a.pem"}), secret: topic},
		{name: "sns with a certificate of its own", id: "aws_sns", body: k.sns(t, "1", map[string]string{"SigningCertURL": "https://evil.test/a.pem"}), secret: k.cert, offline: true},
		{name: "sns with a certificate on one line", id: "aws_sns", body: k.sns(t, "2", nil), secret: strings.ReplaceAll(k.cert, "\n", ""), offline: true},
		{name: "sns with a key in the older form of RSA", id: "aws_sns", body: k.sns(t, "2", nil),
			secret: string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&k.rsa.PublicKey)})), offline: true},
		{name: "sns of another topic", id: "aws_sns", body: k.sns(t, "1", map[string]string{"TopicArn": topic + "2"}), secret: topic, want: "other_topic", offline: true},
		{name: "sns changed", id: "aws_sns", body: strings.Replace(k.sns(t, "1", nil), "m-1", "m-2", 1), secret: topic, want: "signature_mismatch"},
		{name: "sns of another key", id: "aws_sns", body: other.sns(t, "1", nil), secret: topic, want: "signature_mismatch"},
		{name: "sns of another version", id: "aws_sns", body: k.sns(t, "3", nil), secret: topic, want: "no_supported_scheme", offline: true},
		{name: "sns, no arn", id: "aws_sns", body: k.sns(t, "1", nil), secret: "orders", want: "unusable_secret", offline: true},
		{name: "sns, no signature", id: "aws_sns", body: `{"Type":"Notification","SigningCertURL":"` + snsCert + `"}`, secret: topic, want: "missing_signature", offline: true},
		{name: "sns, a signature that is none", id: "aws_sns", body: strings.Replace(k.sns(t, "1", nil), `"Signature":"`, `"Signature":"%`, 1), secret: topic, want: "malformed_signature", offline: true},
		{name: "sns by a key of another kind", id: "aws_sns", body: k.sns(t, "1", nil), secret: ecPub, want: "signature_mismatch", offline: true},
		{name: "paypal", id: "paypal", headers: k.paypal(t, "WH-9", body), body: body, secret: "WH-9"},
		{name: "paypal with a certificate of its own", id: "paypal", headers: strings.Replace(k.paypal(t, "WH-9", body), ppCert, "https://evil.test/", 1), body: body, secret: "WH-9\n" + k.cert, offline: true},
		{name: "paypal with a certificate as JSON has it", id: "paypal", headers: k.paypal(t, "WH-9", body), body: body, secret: "WH-9 " + strings.ReplaceAll(k.cert, "\n", `\r\n`), offline: true},
		{name: "paypal of another webhook", id: "paypal", headers: k.paypal(t, "WH-8", body), body: body, secret: "WH-9", want: "signature_mismatch"},
		{name: "paypal of another body", id: "paypal", headers: k.paypal(t, "WH-9", body+" "), body: body, secret: "WH-9", want: "signature_mismatch"},
		{name: "paypal of another algorithm", id: "paypal", headers: strings.Replace(k.paypal(t, "WH-9", body), "SHA256with", "SHA1with", 1), body: body, secret: "WH-9", want: "no_supported_scheme", offline: true},
		{name: "paypal with half a certificate", id: "paypal", headers: k.paypal(t, "WH-9", body), body: body, secret: "WH-9 -----BEGIN CERTIFICATE-----", want: "unusable_secret", offline: true},
		{name: "plaid by credentials", id: "plaid", headers: k.plaid(t, plaidHead, stamp, body), body: body, secret: credentials},
		{name: "plaid by a key", id: "plaid", headers: k.plaid(t, plaidHead, stamp-300, body), body: body, secret: k.jwk, offline: true},
		{name: "plaid by the answer of the API", id: "plaid", headers: k.plaid(t, plaidHead, stamp, body), body: body, secret: `{"key":` + k.jwk + `}`, offline: true},
		{name: "plaid too old", id: "plaid", headers: k.plaid(t, plaidHead, stamp-301, body), body: body, secret: k.jwk, want: "timestamp_out_of_tolerance", offline: true},
		{name: "plaid of another body", id: "plaid", headers: k.plaid(t, plaidHead, stamp, body+" "), body: body, secret: k.jwk, want: "body_hash_mismatch", offline: true},
		{name: "plaid of another key", id: "plaid", headers: k.plaid(t, plaidHead, stamp, body), body: body, secret: other.jwk, want: "signature_mismatch", offline: true},
		{name: "plaid by a key that has ended", id: "plaid", headers: k.plaid(t, plaidHead, stamp, body), body: body, secret: strings.Replace(k.jwk, `"expired_at":null`, `"expired_at":1771243200`, 1), want: "signature_mismatch", offline: true},
		{name: "plaid by a key that ends later", id: "plaid", headers: k.plaid(t, plaidHead, stamp, body), body: body, secret: strings.Replace(k.jwk, `"expired_at":null`, `"expired_at":1771243201`, 1), offline: true},
		{name: "plaid, a short signature", id: "plaid", headers: cut(k.plaid(t, plaidHead, stamp, body), 46), body: body, secret: k.jwk, want: "signature_mismatch", offline: true},
		{name: "plaid by half the credentials", id: "plaid", headers: k.plaid(t, plaidHead, stamp, body), body: body, secret: `{"client_id":"c"}`, want: "unusable_secret", offline: true},
		{name: "plaid by the other half", id: "plaid", headers: k.plaid(t, plaidHead, stamp, body), body: body, secret: `{"secret":"s"}`, want: "unusable_secret", offline: true},
		{name: "plaid by no JSON", id: "plaid", headers: k.plaid(t, plaidHead, stamp, body), body: body, secret: `{"client_id":"c","secret":"s"`, want: "unusable_secret", offline: true},
		{name: "plaid by a key with another id", id: "plaid", headers: k.plaid(t, plaidHead, stamp, body), body: body, secret: strings.Replace(k.jwk, "kid-1", "kid-2", 1), want: "signature_mismatch", offline: true},
		{name: "plaid says none", id: "plaid", headers: k.plaid(t, `{"alg":"none","kid":"kid-1"}`, stamp, body), body: body, secret: k.jwk, want: "no_supported_scheme", offline: true},
		{name: "plaid says HS256", id: "plaid", headers: k.plaid(t, `{"alg":"HS256","kid":"kid-1"}`, stamp, body), body: body, secret: k.jwk, want: "no_supported_scheme", offline: true},
		{name: "plaid of a strange id", id: "plaid", headers: k.plaid(t, `{"alg":"ES256","kid":"a/b"}`, stamp, body), body: body, secret: credentials, want: "malformed_signature", offline: true},
		{name: "plaid of an unknown environment", id: "plaid", headers: k.plaid(t, plaidHead, stamp, body), body: body, secret: `{"client_id":"c","secret":"s","environment":"evil.test"}`, want: "unusable_secret", offline: true},
		{name: "plaid, no token", id: "plaid", headers: "Plaid-Verification: a.b", body: body, secret: k.jwk, want: "malformed_signature", offline: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &provider.Request{Method: "POST", URL: target, Headers: fields(c.headers), Body: []byte(c.body), ReceivedAt: received}
			configs := []provider.Config{{ID: 7, Provider: c.id, Secrets: []string{c.secret}}}
			d := provider.Detect(r)
			if d.Provider != c.id && c.want != "missing_signature" {
				t.Errorf("Detect: %q", d.Provider)
			}
			d.Provider = c.id
			got := provider.Verify(r, d, configs)
			if c.offline {
				check(t, got, c.want)
			} else if got.Status != hookglass.SignatureUnchecked || got.Reason != "key_unavailable" || got.Message == "" || got.Needs == nil {
				t.Fatalf("without the key: %+v", got)
			} else if want := needed(c.id); c.name != "sns of China" && *got.Needs != *want {
				t.Errorf("needs %+v, want %+v", *got.Needs, *want)
			}
			if f := provider.Diagnose(r, d, configs); !c.offline && f.Code != "key_unavailable" {
				t.Errorf("Diagnose without the key: %+v", f)
			}
			r.Keys = func(ref provider.KeyRef) []byte { return published[ref] }
			check(t, provider.Verify(r, d, configs), c.want)
			if f := provider.Diagnose(r, d, configs); strings.Contains(fmt.Sprint(f), "s3\"") || f.Code == "" {
				t.Errorf("Diagnose: %+v", f)
			}
		})
	}
	if s := fmt.Sprint(plaidAsk); strings.Contains(s, "s3") {
		t.Errorf("a reference shows what it asks with: %s", s)
	}
}

func check(t *testing.T, got provider.Verdict, want string) {
	t.Helper()
	if got.Reason != want || (want == "") != (got.Status == hookglass.SignatureVerified) || got.Needs != nil {
		t.Errorf("%+v, want %q", got, want)
	}
}

// A signature within a body covers some of its members. Nothing else may be taken for what it covers: parsers differ in
// which of two members with one name they take, and a body may go on behind what is read here.
func TestASignatureWithinABodyNeedsOneReading(t *testing.T) {
	k := newSenderKeys(t)
	key, err := hex.DecodeString(hex64)
	must(t, err)
	item := func(psp, success, more string) string {
		return `{"NotificationRequestItem":{"additionalData":{"hmacSignature":"` + b64(mac(sha256.New, key, psp+"::::1130:EUR:AUTHORISATION:true")) + `"},"pspReference":"` + psp +
			`","amount":{"value":1130,"currency":"EUR"},"eventCode":"AUTHORISATION","success":"` + success + `"` + more + `}}`
	}
	adyen := func(items, more string) string {
		return `{"live":"false","notificationItems":[` + items + `]` + more + `}`
	}
	sns, good := k.sns(t, "2", nil), item("1", "true", "")
	added := func(members string) string { return strings.TrimSuffix(sns, "}") + "," + members + "}" }
	for _, c := range []struct{ name, id, body, want string }{
		{"sns", "aws_sns", sns, ""},
		{"sns with white space", "aws_sns", "\xef\xbb\xbf\n" + sns + "\r\n", ""},
		{"sns with more", "aws_sns", added(`"UnsubscribeURL":"https://x"`), ""},
		{"sns with another message behind", "aws_sns", added(`"Message":"forged"`), "body_hash_mismatch"},
		{"sns with another message behind, escaped", "aws_sns", added(`"Mess\u0061ge":"forged"`), "body_hash_mismatch"},
		{"sns with another message before", "aws_sns", `{"Message":"forged",` + sns[1:], "signature_mismatch"},
		{"sns with a second body", "aws_sns", sns + `{"Message":"forged"}`, "body_hash_mismatch"},
		{"sns with a second body far behind", "aws_sns", sns + strings.Repeat(" ", 1<<20) + `{"Message":"forged"}`, "body_hash_mismatch"},
		{"adyen with an item that is not signed", "adyen", adyen(good+`,{"NotificationRequestItem":{"success":"true"}}`, ""), "missing_signature"},
		{"sns with another message far behind", "aws_sns", added(`"x":"` + strings.Repeat("x", 1<<20) + `","Message":"forged"`), "body_hash_mismatch"},
		{"adyen", "adyen", adyen(good+","+item("2", "true", ""), ""), ""},
		{"adyen with a forged item", "adyen", adyen(good+","+item("2", "false", ""), ""), "signature_mismatch"},
		{"adyen with other items behind", "adyen", adyen(good, `,"notificationItems":[`+item("2", "false", "")+`]`), "body_hash_mismatch"},
		{"adyen with another success", "adyen", adyen(item("1", "true", `,"success":"false"`), ""), "body_hash_mismatch"},
		{"adyen with another amount", "adyen", adyen(item("1", "true", `,"amount":{"value":1,"currency":"EUR"}`), ""), "body_hash_mismatch"},
		{"adyen with other items far behind", "adyen", adyen(good, `,"x":"`+strings.Repeat("x", 1<<20)+`","notificationItems":[`+item("2", "false", "")+`]`), "body_hash_mismatch"},
	} {
		secrets := map[string]string{"aws_sns": k.cert, "adyen": hex64}
		r := &provider.Request{Method: "POST", URL: target, Body: []byte(c.body), ReceivedAt: received}
		got := provider.Verify(r, provider.Detection{Provider: c.id}, []provider.Config{{Provider: c.id, Secrets: []string{secrets[c.id]}}})
		if got.Reason != c.want || (c.want == "") != (got.Status == hookglass.SignatureVerified) {
			t.Errorf("%s: %+v, want %q", c.name, got, c.want)
		}
	}
}

// What a delivery names is fetched from the sender's own hosts and from nowhere else, however it is spelled.
func TestKeyAddresses(t *testing.T) {
	k := newSenderKeys(t)
	judge := func(id, headers, body, secret string) provider.Verdict {
		r := &provider.Request{Method: "POST", Headers: fields(headers), Body: []byte(body), ReceivedAt: received}
		return provider.Verify(r, provider.Detection{Provider: id}, []provider.Config{{Provider: id, Secrets: []string{secret}}})
	}
	for _, address := range []string{
		"http://sns.eu-west-1.amazonaws.com/a.pem", "https://sns.eu-west-1.amazonaws.com.evil.test/a.pem", "https://evil.test/sns.eu-west-1.amazonaws.com/a.pem",
		"https://sns.eu-west-1.amazonaws.com@evil.test/a.pem", "https://evil.test#sns.eu-west-1.amazonaws.com/a.pem", "https://sns.eu-west-1.amazonaws.com:8443/a.pem",
		"https://sns.eu-west-1.amazonaws.com:/a.pem", "https://sns.a.b.amazonaws.com/a.pem", "https://sns..amazonaws.com/a.pem", "https://sns.eu-west-1.amazonaws.com/a/b.pem",
		"https://sns.eu-west-1.amazonaws.com/a.pem?x=1", "https://sns.eu-west-1.amazonaws.com/a.pem#x", "https://sns.eu-west-1.amazonaws.com/a.txt", "https://SNS.eu-west-1.amazonaws.com/a.pem",
		"https://s3.eu-west-1.amazonaws.com/a.pem", "https://sns.evil%2etest/.amazonaws.com/a.pem", "//sns.eu-west-1.amazonaws.com/a.pem", "https://sns.eu_west.amazonaws.com/a.pem",
		"https://sns.eu-west-1.amazonaws.com/%61.pem/", "https://169.254.169.254/a.pem", "file:///etc/passwd.pem", "https://sns.eu-west-1.amazonaws.com/..pem",
		"https://sns.internal/a.pem", "https://eu-west-1.amazonaws.com/a.pem", "https://sns.eu-west-1.amazonaws.com/" + strings.Repeat("y", 600) + ".pem", "x" + strings.Repeat("y", 600),
	} {
		if v := judge("aws_sns", "", k.sns(t, "1", map[string]string{"SigningCertURL": address}), topic); v.Status != hookglass.SignatureFailed || v.Reason != "foreign_key" || v.Needs != nil {
			t.Errorf("sns %q: %+v", address, v)
		}
	}
	for _, address := range []string{
		"https://www.paypal.com/v1/notifications/certs/CERT-1", "https://api.paypal.com.evil.test/v1/notifications/certs/CERT-1", "https://api.paypal.com/v1/notifications/certs/",
		"https://api.paypal.com/v1/notifications/certs/../../x", "https://api.paypal.com/v1/notifications/certs/CERT-1?x", "http://api.paypal.com/v1/notifications/certs/CERT-1",
		"https://evil@api.paypal.com/v1/notifications/certs/CERT-1", "https://api.paypal.com/v1/notifications/certs/a/b", "https://api.paypal.com/v1/notifications/certs/a%2fb", "",
	} {
		headers := strings.Replace(k.paypal(t, "W", "{}"), ppCert, address, 1)
		if v := judge("paypal", headers, "{}", "W"); v.Status != hookglass.SignatureFailed || v.Reason != "foreign_key" || v.Needs != nil {
			t.Errorf("paypal %q: %+v", address, v)
		}
	}
}

func TestKeyAnswers(t *testing.T) {
	k := newSenderKeys(t)
	cert, ask := provider.KeyRef{URL: snsCert}, provider.KeyRef{URL: "https://production.plaid.com/webhook_verification_key/get", Post: "{}"}
	for _, c := range []struct {
		ref    provider.KeyRef
		answer string
		want   bool
	}{
		{cert, k.cert, true}, {cert, "", false}, {cert, "<html>", false}, {cert, k.jwk, false}, {cert, strings.Repeat("x", 70<<10) + k.cert, false},
		{cert, k.cert + strings.Repeat("\n", 70<<10), false},
		{ask, strings.NewReplacer(`"x"`, `"y"`, `"y"`, `"x"`).Replace(k.jwk), false}, // no point of the curve
		{cert, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", false},
		{ask, k.jwk, true}, {ask, `{"key":` + k.jwk + `}`, true}, {ask, `{"error_code":"INVALID"}`, false}, {ask, k.cert, false},
		{ask, strings.Replace(k.jwk, `"x":"`, `"x":"A`, 1), false}, {ask, `[]`, false}, {ask, strings.Replace(k.jwk, "P-256", "P-384", 1), false},
	} {
		if got := c.ref.Accepts([]byte(c.answer)); got != c.want {
			t.Errorf("%s %.60q: %v", c.ref, c.answer, got)
		}
	}
}

// Whatever a delivery says, an address to fetch from is the sender's, and nothing panics.
func FuzzPublishedKeys(f *testing.F) {
	k := newSenderKeys(f)
	f.Add("aws_sns", "", k.sns(f, "1", nil), topic)
	f.Add("paypal", k.paypal(f, "W", "{}"), "{}", "W")
	f.Add("plaid", k.plaid(f, plaidHead, stamp, "{}"), "{}", `{"client_id":"c","secret":"s"}`)
	f.Add("plaid", k.plaid(f, plaidHead, stamp, "{}"), "{}", k.jwk)
	f.Fuzz(func(t *testing.T, id, headers, body, secret string) {
		r := &provider.Request{Method: "POST", Headers: fields(headers), Body: []byte(body), ReceivedAt: received}
		v := provider.Verify(r, provider.Detection{Provider: id}, []provider.Config{{Provider: id, Secrets: []string{secret}}})
		if v.Needs == nil {
			return
		}
		host, _, _ := strings.Cut(strings.TrimPrefix(v.Needs.URL, "https://"), "/")
		if !strings.HasPrefix(v.Needs.URL, "https://") || !strings.HasSuffix(host, ".amazonaws.com") && !strings.HasSuffix(host, ".amazonaws.com.cn") && !strings.HasSuffix(host, ".paypal.com") && !strings.HasSuffix(host, ".plaid.com") {
			t.Errorf("needs %s", v.Needs.URL)
		}
		_ = v.Needs.Accepts([]byte(secret))
	})
}
