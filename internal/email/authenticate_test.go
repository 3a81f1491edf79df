package email_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/emersion/go-msgauth/dkim"

	"hookglass/internal/email"
)

var _ email.Resolver = (*net.Resolver)(nil)

func zone(t testing.TB, lines ...string) *email.Zone {
	t.Helper()
	z, err := email.ParseZone([]byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func from(ip, mailFrom string) email.Envelope {
	return email.Envelope{RemoteIP: netip.MustParseAddr(ip), HELO: "mail.example.com", MailFrom: mailFrom}
}

// RFC 7208.
func TestSPF(t *testing.T) {
	dns := zone(t,
		`example.com TXT "v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 -all"`,
		`mail.example.com TXT "v=spf1 ip4:192.0.2.1 -all"`,
		`soft.example TXT "v=spf1 ~all"`,
		`neutral.example TXT "v=spf1 ?all"`,
		`open.example TXT "v=spf1 +all"`,
		`silent.example TXT "v=spf1 ip4:198.51.100.1"`,
		`other.example TXT "google-site-verification=x"`, `other.example TXT "verified = by some words"`,
		`twice.example TXT "v=spf1 -all"`, `twice.example TXT "v=spf1 +all"`,
		`bad.example TXT "v=spf1 nonsense -all"`,
		`down.example SERVFAIL`,
		`mx.example TXT "v=spf1 mx -all"`, `mx.example MX 10 in.mx.example`, `in.mx.example A 192.0.2.7`,
		`a.example TXT "v=spf1 a -all"`, `a.example A 192.0.2.8`,
		`ptr.example TXT "v=spf1 ptr -all"`, `192.0.2.9 PTR host.ptr.example`, `host.ptr.example A 192.0.2.9`,
		`include.example TXT "v=spf1 include:example.com -all"`,
		`redirect.example TXT "v=spf1 redirect=example.com"`,
		`exists.example TXT "v=spf1 exists:%{i}.%{l}.exists.example -all"`, `192.0.2.5.ada.exists.example A 127.0.0.2`,
		`broken.example TXT "v=spf1 include:down.example -all"`,
		`void.example TXT "v=spf1 a:v1.example a:v2.example a:v3.example -all"`,
		`many.example TXT "v=spf1 a:h.example a:h.example a:h.example a:h.example a:h.example a:h.example a:h.example a:h.example a:h.example a:h.example a:h.example -all"`, `h.example A 203.0.113.1`,
		`xn--bcher-kva.example TXT "v=spf1 ip4:192.0.2.1 -all"`,
		`alias.example CNAME example.com`,
	)
	for _, c := range []struct {
		ip, mailFrom string
		want         email.Result
		reason       string
	}{
		{"192.0.2.1", "ada@example.com", email.Pass, "matched_ip"},
		{"::ffff:192.0.2.1", "ada@example.com", email.Pass, "matched_ip"},
		{"2001:db8::1", "ada@example.com", email.Pass, "matched_ip"},
		{"203.0.113.1", "ada@example.com", email.Fail, "matched_all"},
		{"203.0.113.1", "ada@EXAMPLE.com.", email.Fail, "matched_all"},
		{"192.0.2.1", "", email.Pass, "matched_ip"}, // the null sender: HELO
		{"192.0.2.2", "", email.Fail, "matched_all"},
		{"192.0.2.1", "ada@soft.example", email.SoftFail, "matched_all"},
		{"192.0.2.1", "ada@neutral.example", email.Neutral, "matched_all"},
		{"192.0.2.1", "ada@open.example", email.Pass, "matched_all"},
		{"192.0.2.1", "ada@silent.example", email.Neutral, "no_match"},
		{"192.0.2.1", "ada@other.example", email.None, "no_record"},
		{"192.0.2.1", "ada@unheard.example", email.None, "no_record"},
		{"192.0.2.1", "ada@localhost", email.None, "no_domain"},
		{"192.0.2.1", "ada@[192.0.2.1]", email.None, "no_domain"},
		{"192.0.2.1", "ada@a..b.example", email.None, "no_domain"},
		{"192.0.2.1", "ada@twice.example", email.PermError, "multiple_records"},
		{"192.0.2.1", "ada@bad.example", email.PermError, "invalid_record"},
		{"192.0.2.1", "ada@down.example", email.TempError, "dns_error"},
		{"192.0.2.7", "ada@mx.example", email.Pass, "matched_mx"},
		{"192.0.2.8", "ada@a.example", email.Pass, "matched_a"},
		{"192.0.2.9", "ada@ptr.example", email.Pass, "matched_ptr"},
		{"192.0.2.1", "ada@include.example", email.Pass, "matched_ip"},
		{"192.0.2.1", "ada@redirect.example", email.Pass, "matched_ip"},
		{"192.0.2.5", "ada@exists.example", email.Pass, "matched_exists"},
		{"192.0.2.5", "bob@exists.example", email.Fail, "matched_all"},
		{"192.0.2.1", "ada@home@example.com", email.Pass, "matched_ip"}, // "ada@home"@example.com without its quotes
		{"192.0.2.5", "ada@home@exists.example", email.Fail, "matched_all"},
		{"192.0.2.1", "ada@broken.example", email.TempError, "dns_error"},
		{"192.0.2.1", "ada@void.example", email.PermError, "too_many_void_lookups"},
		{"192.0.2.1", "ada@many.example", email.PermError, "too_many_lookups"},
		{"192.0.2.1", "ada@bücher.example", email.Pass, "matched_ip"},
		{"192.0.2.1", "ada@alias.example", email.Pass, "matched_ip"},
	} {
		r := email.Authenticate(t.Context(), dns, from(c.ip, c.mailFrom), []byte("\r\n"))
		if r.SPF.Result != c.want || r.SPF.Reason != c.reason {
			t.Errorf("%s %s: %+v, want %s %s", c.ip, c.mailFrom, r.SPF, c.want, c.reason)
		}
	}
	if r := email.Authenticate(t.Context(), dns, email.Envelope{MailFrom: "ada@example.com"}, nil); r.SPF.Result != email.None || r.SPF.Reason != "no_client_address" {
		t.Errorf("without a client: %+v", r.SPF)
	}
	if r := email.Authenticate(t.Context(), dns, from("192.0.2.1", ""), nil); r.SPF.Identity != "helo" || r.SPF.Domain != "mail.example.com" {
		t.Errorf("the null sender: %+v", r.SPF)
	}
}

// signer signs for a domain and has the record of its key.
type signer struct {
	key    crypto.Signer
	record string
}

func newSigner(t testing.TB, kind string) signer {
	t.Helper()
	if kind == "ed25519" {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return signer{private, "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)}
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return signer{private, "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(der)}
}

func (s signer) sign(t testing.TB, raw []byte, options dkim.SignOptions) []byte {
	t.Helper()
	options.Signer = s.key
	var b bytes.Buffer
	if err := dkim.Sign(&b, bytes.NewReader(raw), &options); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// RFC 6376.
func TestDKIM(t *testing.T) {
	s, other, edwards := newSigner(t, "rsa"), newSigner(t, "rsa"), newSigner(t, "ed25519")
	small, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	dns := zone(t,
		`s1._domainkey.example.com TXT "`+s.record+`"`,
		`ed._domainkey.example.com TXT "`+edwards.record+`"`,
		`split._domainkey.example.com TXT "`+s.record[:100]+`" "`+s.record[100:]+`"`,
		`wrong._domainkey.example.com TXT "`+other.record+`"`,
		`revoked._domainkey.example.com TXT "v=DKIM1; p="`,
		`strict._domainkey.example.com TXT "`+s.record+`; t=y : s"`,
		`calls._domainkey.example.com TXT "`+s.record+`; s=voice"`,
		`junk._domainkey.example.com TXT "v=DKIM1; p=!!!!"`,
		`cut._domainkey.example.com TXT "v=DKIM1; p=`+base64.StdEncoding.EncodeToString(small[:40])+`"`,
		`two._domainkey.example.com TXT "`+s.record+`"`, `two._domainkey.example.com TXT "`+s.record+`"`,
		`down._domainkey.example.com SERVFAIL`,
	)
	raw := wire("From: ada@example.com", "To: b@example.org", "Subject: s", "", "Hello", "there")
	signed := func(selector string, change ...func(*dkim.SignOptions)) []byte {
		o := dkim.SignOptions{Domain: "example.com", Selector: selector, HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed}
		for _, f := range change {
			f(&o)
		}
		if selector == "ed" {
			return edwards.sign(t, raw, o)
		}
		return s.sign(t, raw, o)
	}
	tagged := func(from, to string) []byte {
		return bytes.Replace(signed("s1"), []byte(from), []byte(to), 1)
	}
	for _, c := range []struct {
		name   string
		raw    []byte
		want   email.Result
		reason string
	}{
		{"unsigned", raw, email.None, ""},
		{"signed", signed("s1"), email.Pass, ""},
		{"signed simply", signed("s1", func(o *dkim.SignOptions) {
			o.HeaderCanonicalization, o.BodyCanonicalization = dkim.CanonicalizationSimple, dkim.CanonicalizationSimple
		}), email.Pass, ""},
		{"Ed25519", signed("ed"), email.Pass, ""},
		{"a key in two strings", signed("split"), email.Pass, ""},
		{"of LF lines", bytes.ReplaceAll(signed("s1"), []byte("\r\n"), []byte("\n")), email.Pass, ""},
		{"body changed", bytes.Replace(signed("s1"), []byte("Hello"), []byte("Hallo"), 1), email.Fail, "body_hash_mismatch"},
		{"body appended to", append(signed("s1"), "more\r\n"...), email.Fail, "body_hash_mismatch"},
		{"header changed", bytes.Replace(signed("s1"), []byte("Subject: s"), []byte("Subject: t"), 1), email.Fail, "signature_mismatch"},
		{"another's key", signed("wrong"), email.Fail, "signature_mismatch"},
		{"no key", signed("missing"), email.PermError, "key_not_found"},
		{"revoked", signed("revoked"), email.PermError, "key_revoked"},
		{"a key that is for no mail", signed("calls"), email.PermError, "key_not_for_mail"},
		{"a key that is none", signed("junk"), email.PermError, "key_invalid"},
		{"a key that is cut", signed("cut"), email.PermError, "key_invalid"},
		{"two keys", signed("two"), email.PermError, "multiple_keys"},
		{"DNS down", signed("down"), email.TempError, "dns_error"},
		{"expired", signed("s1", func(o *dkim.SignOptions) { o.Expiration = time.Now().Add(-time.Hour) }), email.Fail, "signature_expired"},
		{"of a part of the body", tagged(" a=rsa-sha256;", " a=rsa-sha256; l=5;"), email.Fail, "body_length_tag"},
		{"with SHA-1", tagged("rsa-sha256", "rsa-sha1"), email.PermError, "weak_algorithm"},
		{"with an unknown hash", tagged("rsa-sha256", "rsa-md5"), email.PermError, "unsupported_algorithm"},
		{"without a selector", tagged(" s=s1;", ""), email.PermError, "malformed_signature"},
		{"of another version", tagged(" v=1", " v=2"), email.PermError, "malformed_signature"},
		{"not over From", tagged(" h=From:", " h=X-Other:"), email.PermError, "from_not_signed"},
		{"for an identity below the domain", signed("s1", func(o *dkim.SignOptions) { o.Identifier = "ada@sub.example.com" }), email.Pass, ""},
		{"for one below, where the key forbids it", signed("strict", func(o *dkim.SignOptions) { o.Identifier = "ada@sub.example.com" }), email.PermError, "identity_mismatch"},
		{"for the domain, where the key forbids others", signed("strict", func(o *dkim.SignOptions) { o.Identifier = "ada@example.com" }), email.Pass, ""},
		{"with a key for the domain alone", signed("strict"), email.Pass, ""},
		{"for another's identity", tagged(" a=rsa-sha256;", " a=rsa-sha256; i=@example.org;"), email.PermError, "identity_mismatch"},
	} {
		r := email.Authenticate(t.Context(), dns, email.Envelope{}, c.raw)
		reason := ""
		if len(r.DKIM.Signatures) == 1 {
			reason = r.DKIM.Signatures[0].Reason
		}
		if r.DKIM.Result != c.want || reason != c.reason || (c.want != email.None) != (len(r.DKIM.Signatures) == 1) {
			t.Errorf("%s: %+v, want %s %s", c.name, r.DKIM, c.want, c.reason)
		}
	}

	t.Run("what is told of a signature", func(t *testing.T) {
		r := email.Authenticate(t.Context(), dns, email.Envelope{}, signed("ed"))
		if want := (email.Signature{Result: email.Pass, Domain: "example.com", Selector: "ed", Algorithm: "ed25519-sha256"}); r.DKIM.Signatures[0] != want {
			t.Errorf("%+v", r.DKIM.Signatures)
		}
	})
	t.Run("one of several is enough", func(t *testing.T) {
		several := s.sign(t, signed("revoked"), dkim.SignOptions{Domain: "example.com", Selector: "s1", HeaderKeys: []string{"From"}})
		several = s.sign(t, several, dkim.SignOptions{Domain: "example.com", Selector: "down", HeaderKeys: []string{"From"}})
		r := email.Authenticate(t.Context(), dns, email.Envelope{}, several)
		got := []email.Result{}
		for _, sig := range r.DKIM.Signatures {
			got = append(got, sig.Result)
		}
		if r.DKIM.Result != email.Pass || !slices.Equal(got, []email.Result{email.TempError, email.Pass, email.PermError}) {
			t.Errorf("%+v", r.DKIM)
		}
	})
	t.Run("of a hundred, ten are looked at", func(t *testing.T) {
		header, _, _ := bytes.Cut(signed("s1"), []byte("From: ada"))
		r := email.Authenticate(t.Context(), dns, email.Envelope{}, append(bytes.Repeat(header, 99), signed("s1")...))
		if r.DKIM.Result != email.Pass || len(r.DKIM.Signatures) != 10 || r.DKIM.Reason != "too_many_signatures" {
			t.Errorf("%+v", r.DKIM)
		}
	})
	t.Run("a signature of very many fields is not followed", func(t *testing.T) {
		for n, want := range map[int]email.Result{90: email.Fail, 5000: email.PermError} {
			costly := tagged(" h=From", " h="+strings.Repeat("from:", n)+"From")
			if r := email.Authenticate(t.Context(), dns, email.Envelope{}, costly); r.DKIM.Result != want {
				t.Errorf("%d: %s %s", n, r.DKIM.Result, r.DKIM.Reason)
			}
		}
	})
	t.Run("a header that is not read to its end is not verified", func(t *testing.T) {
		for _, odd := range []string{"no field\r\n", "X-Long: " + strings.Repeat("x", 300<<10) + "\r\n", "X-Long: " + strings.Repeat("x", 70<<10) + "\r\n"} {
			raw := bytes.Replace(signed("s1"), []byte("Subject:"), []byte(odd+"Subject:"), 1)
			if r := email.Authenticate(t.Context(), dns, email.Envelope{}, raw); r.DKIM.Result != email.PermError {
				t.Errorf("%.20q: %+v", odd, r.DKIM)
			}
		}
	})
	t.Run("a header without an end", func(t *testing.T) {
		header, _, _ := bytes.Cut(signed("s1"), []byte("\r\n\r\n"))
		if r := email.Authenticate(t.Context(), dns, email.Envelope{}, header); r.DKIM.Result != email.PermError || r.DKIM.Reason != "malformed_message" {
			t.Errorf("%+v", r.DKIM)
		}
	})
}

// RFC 7489.
func TestDMARC(t *testing.T) {
	s := newSigner(t, "rsa")
	var records []string
	for _, domain := range []string{"example.com", "mail.example.com", "sub.example.co.uk", "elsewhere.example", "strict.example", "news.strict.example"} {
		records = append(records, `s1._domainkey.`+domain+` TXT "`+s.record+`"`, domain+` TXT "v=spf1 ip4:192.0.2.1 -all"`)
	}
	dns := zone(t, append(records,
		`_dmarc.example.com TXT "v=DMARC1; p=reject; sp=quarantine; rua=mailto:x@example.com"`,
		`_dmarc.example.co.uk TXT "v=DMARC1; p=quarantine"`,
		`_dmarc.strict.example TXT "v=DMARC1;p=none;adkim=s;aspf=s"`,
		`_dmarc.twice.example TXT "v=DMARC1; p=none"`, `_dmarc.twice.example TXT "v=DMARC1; p=reject"`,
		`_dmarc.other.example TXT "v=spf1 -all"`,
		`_dmarc.bad.example TXT "v=DMARC1; p=perhaps"`,
		`_dmarc.reporting.example TXT "v=DMARC1; p=perhaps; rua=mailto:x@reporting.example"`,
		`_dmarc.capitals.example TXT "v=DMARC1; p=Reject; adkim=S; aspf=R"`,
		`_dmarc.slips.example TXT "v=DMARC1; p=reject; garbage; pct=100%; ri=0; fo=1:; rf=iodef; adkim=perhaps; rua=mailto:x@slips.example"`,
		`_dmarc.bad-sub.example TXT "v=DMARC1; p=reject; sp=perhaps"`,
		`_dmarc.down.example SERVFAIL`,
		`spf-down.example SERVFAIL`, `_dmarc.spf-down.example TXT "v=DMARC1; p=reject"`,
		`_dmarc.xn--bcher-kva.example TXT "v=DMARC1; p=reject"`, `xn--bcher-kva.example TXT "v=spf1 ip4:192.0.2.1 -all"`,
	)...)
	for _, c := range []struct {
		name, from, mailFrom, ip, signed string
		want                             email.Result
		aligned, policy, reason          string
	}{
		{"SPF and DKIM", "ada@example.com", "ada@example.com", "192.0.2.1", "example.com", email.Pass, "spf dkim", "reject", ""},
		{"SPF alone", "ada@example.com", "ada@example.com", "192.0.2.1", "", email.Pass, "spf", "reject", ""},
		{"DKIM alone", "ada@example.com", "ada@example.com", "203.0.113.1", "example.com", email.Pass, "dkim", "reject", ""},
		{"neither", "ada@example.com", "ada@example.com", "203.0.113.1", "", email.Fail, "", "reject", "not_authenticated"},
		{"SPF of a subdomain", "ada@example.com", "bounce@mail.example.com", "192.0.2.1", "", email.Pass, "spf", "reject", ""},
		{"From a subdomain: its own policy", "ada@mail.example.com", "ada@example.com", "192.0.2.1", "", email.Pass, "spf", "quarantine", ""},
		{"the suffix has two labels", "ada@news.example.co.uk", "x@elsewhere.example", "192.0.2.1", "sub.example.co.uk", email.Pass, "dkim", "quarantine", ""},
		{"others of one suffix are not aligned", "ada@example.co.uk", "x@elsewhere.example", "192.0.2.1", "", email.Fail, "", "quarantine", "not_aligned"},
		{"another's signature", "ada@example.com", "x@elsewhere.example", "192.0.2.1", "elsewhere.example", email.Fail, "", "reject", "not_aligned"},
		{"strict, the same", "ada@strict.example", "ada@strict.example", "192.0.2.1", "strict.example", email.Pass, "spf dkim", "none", ""},
		{"strict, a subdomain", "ada@strict.example", "ada@news.strict.example", "192.0.2.1", "news.strict.example", email.Fail, "", "none", "not_aligned"},
		{"no policy", "ada@elsewhere.example", "ada@elsewhere.example", "192.0.2.1", "elsewhere.example", email.None, "", "", "no_record"},
		{"another record", "ada@other.example", "", "192.0.2.1", "", email.None, "", "", "no_record"},
		{"two policies", "ada@twice.example", "", "192.0.2.1", "", email.None, "", "", "multiple_records"},
		{"a policy that is none", "ada@bad.example", "", "192.0.2.1", "", email.PermError, "", "", "invalid_record"},
		{"a policy that asks for reports", "ada@reporting.example", "", "192.0.2.1", "", email.Fail, "", "none", "not_authenticated"},
		{"words in capitals", "ada@capitals.example", "", "192.0.2.1", "", email.Fail, "", "reject", "not_authenticated"},
		{"slips in other tags", "ada@slips.example", "", "192.0.2.1", "", email.Fail, "", "reject", "not_authenticated"},
		{"a policy for subdomains that is none", "ada@bad-sub.example", "", "192.0.2.1", "", email.PermError, "", "", "invalid_record"},
		{"DNS down", "ada@down.example", "", "192.0.2.1", "", email.TempError, "", "", "dns_error"},
		{"SPF might yet pass", "ada@spf-down.example", "ada@spf-down.example", "192.0.2.1", "", email.TempError, "", "reject", "dns_error"},
		{"an international domain", "ada@bücher.example", "ada@bücher.example", "192.0.2.1", "", email.Pass, "spf", "reject", ""},
		{"no From", "", "", "192.0.2.1", "", email.PermError, "", "", "no_from"},
		{"From without a domain", "ada", "", "192.0.2.1", "", email.PermError, "", "", "no_from"},
		{"From of a host by its own name", "root@host", "", "192.0.2.1", "", email.None, "", "", "no_domain"},
		{"From of an address", "root@[192.0.2.1]", "", "192.0.2.1", "", email.PermError, "", "", "no_from"},
		{"From of two domains", "ada@example.com, eve@elsewhere.example", "ada@example.com", "192.0.2.1", "", email.PermError, "", "", "multiple_from"},
		{"From of two people of one domain", "ada@example.com, bob@example.com", "ada@example.com", "192.0.2.1", "", email.Pass, "spf", "reject", ""},
		{"two From fields", "ada@example.com\r\nFrom: ada@example.com", "ada@example.com", "192.0.2.1", "", email.PermError, "", "", "multiple_from"},
		{"a name that poses as an address", "\"ada@example.com\" <eve@elsewhere.example>", "eve@elsewhere.example", "192.0.2.1", "", email.None, "", "", "no_record"},
	} {
		raw := wire("From: "+c.from, "Subject: s", "Authentication-Results: mx.example.com; spf=pass; dkim=pass; dmarc=pass", "", "Hello")
		if c.signed != "" {
			raw = s.sign(t, raw, dkim.SignOptions{Domain: c.signed, Selector: "s1"})
		}
		m := email.Authenticate(t.Context(), dns, email.Envelope{RemoteIP: netip.MustParseAddr(c.ip), HELO: "x", MailFrom: c.mailFrom}, raw).DMARC
		if m.Result != c.want || strings.Join(m.Aligned, " ") != c.aligned || m.Policy != c.policy || m.Reason != c.reason {
			t.Errorf("%s: %+v, want %s %q %q %q", c.name, m, c.want, c.aligned, c.policy, c.reason)
		}
	}
}

func TestForgedResultsAreNotBelieved(t *testing.T) {
	raw := wire("Authentication-Results: hookglass; spf=pass; dkim=pass; dmarc=pass", "Received-SPF: pass", "ARC-Seal: i=2; cv=pass; d=example.org", "ARC-Seal: i=1; cv=none; d=example.com",
		"From: ceo@example.com", "", "pay")
	r := email.Authenticate(t.Context(), zone(t, `_dmarc.example.com TXT "v=DMARC1; p=reject"`), from("203.0.113.1", "eve@evil.example"), raw)
	if r.SPF.Result != email.None || r.DKIM.Result != email.None || r.DMARC.Result != email.Fail {
		t.Errorf("%+v", r)
	}
	if r.ARC == nil || *r.ARC != (email.ARC{Instance: 2, Domain: "example.org", Claim: "pass"}) {
		t.Errorf("%+v", r.ARC)
	}
}

// One deadline holds for all lookups: a DNS that never answers costs ten seconds, however much there is to ask.
func TestDeadDNSCostsTenSeconds(t *testing.T) {
	s := newSigner(t, "ed25519")
	raw := wire("From: ada@example.com", "Subject: s", "", "Hello")
	for range 5 {
		raw = s.sign(t, raw, dkim.SignOptions{Domain: "example.com", Selector: "s1", HeaderKeys: []string{"From"}})
	}
	synctest.Test(t, func(t *testing.T) {
		dns := zone(t, "example.com TIMEOUT", "s1._domainkey.example.com TIMEOUT", "_dmarc.example.com TIMEOUT")
		start := time.Now()
		r := email.Authenticate(t.Context(), dns, from("192.0.2.1", "ada@example.com"), raw)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("it took %s", took)
		}
		if r.SPF.Result != email.TempError || r.DKIM.Result != email.TempError || r.DMARC.Result != email.TempError {
			t.Errorf("%+v", r)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		email.Authenticate(ctx, zone(t, "example.com TIMEOUT"), from("192.0.2.1", "ada@example.com"), raw)
		if took := time.Since(start); took != time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestZone(t *testing.T) {
	z := zone(t,
		"; a comment", "",
		"example.com. 300 IN A 192.0.2.1 ; the first",
		"EXAMPLE.com IN AAAA 2001:db8::1",
		`example.com TXT "one; two" 'three'`,
		`example.com TXT "a \"quoted\" word"`,
		"example.com 60 MX 5 Mail.Example.com.",
		"www.example.com CNAME example.com",
		"loop.example.com CNAME loop.example.com",
		"2001:db8::1 PTR host.example.com.",
	)
	ctx := t.Context()
	if a, err := z.LookupIPAddr(ctx, "WWW.example.com."); err != nil || len(a) != 2 || a[0].String() != "192.0.2.1" {
		t.Errorf("%v %v", a, err)
	}
	if txt, err := z.LookupTXT(ctx, "example.com"); err != nil || !slices.Equal(txt, []string{"one; two'three'", `a "quoted" word`}) {
		t.Errorf("%q %v", txt, err)
	}
	if mx, err := z.LookupMX(ctx, "example.com"); err != nil || len(mx) != 1 || mx[0].Host != "mail.example.com." || mx[0].Pref != 5 {
		t.Errorf("%v %v", mx, err)
	}
	if names, err := z.LookupAddr(ctx, "2001:0db8:0::1"); err != nil || !slices.Equal(names, []string{"host.example.com."}) {
		t.Errorf("%v %v", names, err)
	}
	for _, name := range []string{"loop.example.com", "unheard.example"} {
		_, err := z.LookupTXT(ctx, name)
		if failure, ok := err.(*net.DNSError); !ok || failure.IsNotFound == (name == "loop.example.com") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{"example.com", "example.com A", "example.com A 2001:db8::1", "example.com AAAA 192.0.2.1", "example.com MX mail", "example.com MX x mail", "example.com CNAME", "example.com NS x", `example.com TXT "open`} {
		if _, err := email.ParseZone([]byte("; first\n" + bad)); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// brokenDNS panics when it is asked for TXT records, as a library may over what a sender's DNS answers.
type brokenDNS struct{ email.Resolver }

func (brokenDNS) LookupTXT(context.Context, string) ([]string, error) { panic("over a record") }

// What a sender writes in the tags of a signature or a seal is text without control characters where it is shown.
func TestTagsAreShownAsText(t *testing.T) {
	raw := wire("DKIM-Signature: v=1; d=b\xfccher\x00.example; s=\x1b[31m; a=\x7f", "ARC-Seal: i=1; d=\x1b[31m\xfc; cv=\x00")
	r := email.Authenticate(t.Context(), zone(t), email.Envelope{}, raw)
	if len(r.DKIM.Signatures) != 1 || r.ARC == nil {
		t.Fatalf("%+v", r)
	}
	s := r.DKIM.Signatures[0]
	for _, text := range []string{s.Domain, s.Selector, s.Algorithm, r.ARC.Domain, r.ARC.Claim} {
		if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%q", text)
		}
	}
	if !strings.HasPrefix(s.Domain, "bücher") {
		t.Errorf("the domain is %q", s.Domain)
	}
}

// Who has a mail judged recovers, so it must be told where it can: a goroutine that nobody watches ends the process.
func TestAPanicOverSPFIsTheCallers(t *testing.T) {
	defer func() {
		if v := recover(); v != "over a record" {
			t.Errorf("recovered %v", v)
		}
	}()
	email.Authenticate(t.Context(), brokenDNS{}, from("192.0.2.1", "ada@example.com"), []byte("From: ada@example.com\r\n\r\nHi\r\n"))
}
