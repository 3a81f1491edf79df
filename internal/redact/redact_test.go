package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/cputime"
	"hookglass/internal/jsondoc"
	"hookglass/internal/redact"
)

// A secret is blotted out in whatever spelling a target may answer with it, alone and within other text.
func TestSecretsAreBlottedOut(t *testing.T) {
	for _, secret := range []string{
		"canary-7f3a9b2c4d5e6f70", `we"ird\sec/ret&<>=+é 0`, "short7", "abcd", "p@ss/w~rd!", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "-----BEGIN KEY-----\nMIIabc/+def==\n-----END KEY-----\n", "密码密码密码", `it's "ключ+😀/&`, "aZ_z.A-0+/9 =k",
	} {
		r := redact.New(redact.Mask{Value: secret})
		quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
		text := jsondoc.Text(secret).Bytes()
		spellings := map[string]string{
			"as it is":                       secret,
			"JSON":                           string(text),
			"JSON for HTML":                  quoted(secret),
			"JSON, slashes":                  strings.ReplaceAll(string(text), "/", `\/`),
			"a query":                        url.QueryEscape(secret),
			"a path":                         url.PathEscape(secret),
			"a query, lower case":            lowerEscapes(url.QueryEscape(secret)),
			"encodeURIComponent":             percentEncodedBut(secret, "-._~!*'()"),
			"encodeURIComponent, lower case": lowerEscapes(percentEncodedBut(secret, "-._~!*'()")),
			"encodeURI":                      percentEncodedBut(secret, "-._~!*'();,/?:@&=+$#"),
			"a path, whole":                  percentEncodedBut(secret, "-._~/"),
			"a form":                         strings.ReplaceAll(percentEncodedBut(secret, "-._*"), "%20", "+"),
			"HTML":                           html.EscapeString(secret),
			"hexadecimal":                    hex.EncodeToString([]byte(secret)),
			"HEXADECIMAL":                    strings.ToUpper(hex.EncodeToString([]byte(secret))),
			"Python's JSON":                  escapedJSON(secret, "", false),
			"JSON, ASCII alone":              escapedJSON(secret, "", true),
			"PHP's JSON":                     strings.ReplaceAll(escapedJSON(secret, "", false), "/", `\/`),
			".NET's JSON":                    escapedJSON(secret, "\"&'+<>`", true),
			"HTML, quotes by name":           strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace(secret),
			"base64":                         base64.StdEncoding.EncodeToString([]byte(secret)),
			"base64, bare":                   base64.RawStdEncoding.EncodeToString([]byte(secret)),
			"base64 for URLs":                base64.URLEncoding.EncodeToString([]byte(secret)),
			"base64 for URLs, bare":          base64.RawURLEncoding.EncodeToString([]byte(secret)),
		}
		for how, s := range spellings {
			got := r.Text("before " + s + " after")
			if shown := strings.NewReplacer(`"`, "", "=", "").Replace(got); shown != "before [redacted] after" {
				t.Errorf("%q as %s: %s", secret, how, got)
			}
		}
		if len(secret) < 6 {
			continue // too little of it is left within other base64 to be told from anything else
		}
		for _, user := range []string{"", "u", "us", "use", "user"} {
			for _, behind := range []string{"", "b", "bc", "bcd"} {
				basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + secret + behind))
				if got := r.Text("Basic " + basic); got == "Basic "+basic || len(got) > len("Basic ")+len(hookglass.Redacted)+len(user)*4/3+len(behind)*4/3+9 {
					t.Errorf("%q of %q: %s", secret, user, got)
				}
			}
		}
	}
}

// escapedJSON writes what is not ASCII, and the marks, as numbers of UTF-16.
func escapedJSON(s, marks string, upper bool) string {
	format := `\u%04x`
	if upper {
		format = `\u%04X`
	}
	var b strings.Builder
	for _, c := range s {
		switch text := jsondoc.Text(string(c)).Bytes(); {
		case c < utf8.RuneSelf && !strings.ContainsRune(marks, c):
			b.Write(text[1 : len(text)-1])
		default:
			for _, unit := range utf16.Encode([]rune{c}) {
				fmt.Fprintf(&b, format, unit)
			}
		}
	}
	return b.String()
}

// percentEncodedBut leaves letters, digits and the marks as they are.
func percentEncodedBut(s, marks string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(marks, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func lowerEscapes(s string) string {
	parts := strings.Split(s, "%")
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.ToLower(parts[i][:2]) + parts[i][2:]
	}
	return strings.Join(parts, "%")
}

// A secret in pieces, or cut off at the end of an answer, is found where a piece is long enough to be told from other
// text.
func TestPiecesOfSecretsAreBlottedOut(t *testing.T) {
	const secret = "canary-7f3a9b2c4d5e6f70-9081a2b3"
	r := redact.New(redact.Mask{Value: secret})
	for _, s := range []string{secret[:16], secret[16:], secret[:len(secret)-1], secret[3:20], hex.EncodeToString([]byte(secret))[:40], base64.StdEncoding.EncodeToString([]byte(secret))[:24], secret[3:13]} {
		got := r.Text("<" + s + ">")
		if strings.Contains(got, s[2:10]) || !strings.HasPrefix(got, "<") || !strings.HasSuffix(got, ">") {
			t.Errorf("%s: %s", s, got)
		}
	}
	for _, s := range []string{"canary", "-9081a2b3", "a text about canaries and 7f3a9b2c"} {
		if got := r.Text(s); got != s {
			t.Errorf("%s: %s", s, got)
		}
	}
	if got := redact.New(redact.Mask{Value: "7f3a9b2c4d5e6f70"}).Secrets("7f3a9b2c and 4d5e6f70"); got != "[redacted] and [redacted]" {
		t.Errorf("half of 16 bytes: %s", got)
	}
	url := redact.New(redact.Mask{Value: "https://hooks.example.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"})
	for _, s := range []string{"https://example.org/x", "https://hooks.example"} {
		if got := url.Text(s); got != s {
			t.Errorf("what is common to many is no piece: %s", got)
		}
	}
}

// A secret of a few bytes is blotted out as a word of its own, and leaves other words alone.
func TestShortSecrets(t *testing.T) {
	r := redact.New(redact.Mask{Value: "ab"}, redact.Mask{Value: "7"}, redact.Mask{Value: ""})
	for text, want := range map[string]string{
		"ab": "[redacted]", "grab the cab": "grab the cab", "key=ab&x=cab": "key=[redacted]&x=cab", `{"a":"ab"}`: `{"a":"[redacted]"}`, "Bearer ab": "Bearer [redacted]",
		"17 7 71": "17 [redacted] 71", "abab ab": "abab [redacted]", "éab": "éab", "": "",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestTheLongerOfTwoSecretsGoesFirst(t *testing.T) {
	r := redact.New(redact.Mask{Value: "abcd", Shown: "<1>"}, redact.Mask{Value: "abcdefgh", Shown: "<2>"}, redact.Mask{Value: "abcd", Shown: "<3>"})
	if got := r.Text("abcdefgh abcd abcdef"); got != "<2> <1> <1>ef" {
		t.Error(got)
	}
}

// A few large secrets do not take from the short ones that these are found encoded and in pieces.
func TestLargeSecretsLeaveRoomForShortOnes(t *testing.T) {
	const token = "canary-7f3a9b2c4d5e6f70-9081a2b3"
	var masks []redact.Mask
	for i := range 60 {
		masks = append(masks, redact.Mask{Value: fmt.Sprintf("%d%s", i, strings.Repeat(string(rune('a'+i%26)), 16<<10))})
	}
	r := redact.New(append(masks, redact.Mask{Value: token})...)
	for _, s := range []string{hex.EncodeToString([]byte(token)), base64.StdEncoding.EncodeToString([]byte("user:" + token)), token[:20], token[12:]} {
		if got := r.Text("<" + s + ">"); strings.Contains(got, s[4:12]) {
			t.Errorf("%s: %s", s, got)
		}
	}
}

// However many secrets there are, each is found as it is and as JSON writes it.
func TestManyLongSecrets(t *testing.T) {
	var masks []redact.Mask
	for i := range 60 {
		masks = append(masks, redact.Mask{Value: fmt.Sprintf("%d\"%s", i, strings.Repeat(string(rune('a'+i%26)), 16<<10))})
	}
	r := redact.New(masks...)
	for _, m := range masks {
		text, _ := json.Marshal(m.Value)
		if got := r.Text("<" + m.Value + ">" + string(text)); got != `<[redacted]>"[redacted]"` {
			t.Errorf("%.10s is shown as %.100s", m.Value, got)
		}
	}
}

// Of a text that holds the beginnings of many values at each place nothing is shown, rather than that it takes minutes.
func TestManyValuesThatBeginAlike(t *testing.T) {
	var masks []redact.Mask
	for i := range 100 {
		masks = append(masks, redact.Mask{Value: strings.Repeat("a", 9_000+i) + "b"})
	}
	r := redact.New(masks...)
	cputime.AtMost(t, 5*time.Second, "a text of beginnings", func() {
		if got := r.Body(strings.Repeat("a", 1<<20)); got != hookglass.Redacted {
			t.Errorf("%d bytes are shown", len(got))
		}
	})
	if got := r.Body("-" + masks[50].Value + "-" + strings.Repeat("x", 1<<20)); got != "-"+hookglass.Redacted+"-"+strings.Repeat("x", 1<<20) {
		t.Errorf("%d bytes are shown", len(got))
	}
}

func TestHeadersAreRedacted(t *testing.T) {
	r := redact.New(redact.Mask{Value: "s3cret-value"})
	got := r.Headers(hookglass.Headers{
		{Name: "Authorization", Value: "Bearer x"}, {Name: "cookie", Value: "a=b"}, {Name: "Set-Cookie", Value: "a=b"}, {Name: "Proxy-Authorization", Value: "Basic x"},
		{Name: "X-Api-Key", Value: "k"}, {Name: "X-Auth-Token", Value: "t"}, {Name: "X-Client-Secret", Value: "s"}, {Name: "X-Hub-Signature-256", Value: "sha256=1"},
		{Name: "Stripe-Signature", Value: "t=1"}, {Name: "X-Signature-Ed25519", Value: "00"}, {Name: "X-Token", Value: ""},
		{Name: "X-Echo", Value: "got s3cret-value"}, {Name: "Content-Type", Value: "text/plain"}, {Name: "X-s3cret-value", Value: "1"}, {Name: "Location", Value: "https://u:p@h/?token=abc&a=b"},
	})
	var shown []string
	for _, h := range got {
		shown = append(shown, h.Name+"="+h.Value)
	}
	want := []string{
		"Authorization=[redacted]", "cookie=[redacted]", "Set-Cookie=[redacted]", "Proxy-Authorization=[redacted]", "X-Api-Key=[redacted]", "X-Auth-Token=[redacted]",
		"X-Client-Secret=[redacted]", "X-Hub-Signature-256=[redacted]", "Stripe-Signature=[redacted]", "X-Signature-Ed25519=[redacted]", "X-Token=",
		"X-Echo=got [redacted]", "Content-Type=text/plain", "X-[redacted]=1", "Location=https://[redacted]@h/?token=[redacted]&a=b",
	}
	if !slices.Equal(shown, want) {
		t.Errorf("%q", shown)
	}
}

func TestValuesAreRedactedWithTheirPlaces(t *testing.T) {
	r := redact.New(redact.Mask{Value: "s3cret-value"})
	v, err := jsondoc.Parse([]byte(`{"method":"POST","url":"https://h/s3cret-value?api_key=1","headers":{"authorization":"Bearer t","x-a":"b"},
		"body":"{\"password\":\"p\",\"n\":1.0,\"deep\":{\"note\":\"s3cret-value\"}}","form":"user=ann&password=p","list":["s3cret-value",{"access_token":"t","token_count":3,"accessToken":""}],
		"has_password":true,"private_key":{"kty":"RSA"},"total":12,"s3cret-value":1,"text":"not {json}"}`), jsondoc.Wide())
	if err != nil {
		t.Fatal(err)
	}
	got, paths := r.Value(v)
	const want = `{"method":"POST","url":"https://h/[redacted]?api_key=[redacted]","headers":{"authorization":"[redacted]","x-a":"b"},` +
		`"body":"{\"password\":\"[redacted]\",\"n\":1.0,\"deep\":{\"note\":\"[redacted]\"}}","form":"user=ann&password=[redacted]","list":["[redacted]",{"access_token":"[redacted]","token_count":3,"accessToken":""}],` +
		`"has_password":true,"private_key":"[redacted]","total":12,"[redacted]":1,"text":"not {json}"}`
	if string(got.Bytes()) != want {
		t.Errorf("%s", got.Bytes())
	}
	if !slices.Equal(paths, []string{"/url", "/headers/authorization", "/body", "/form", "/list/0", "/list/1/access_token", "/private_key", "/[redacted]"}) {
		t.Errorf("%q", paths)
	}
	if got := r.Body("user=ann&client_secret=p&x=s3cret-value"); got != "user=ann&client_secret=[redacted]&x=[redacted]" {
		t.Error(got)
	}
	if got := r.Body(`[{"token":"t"},"s3cret-value"]`); got != `[{"token":"[redacted]"},"[redacted]"]` {
		t.Error(got)
	}
	if got := r.Body("plain \xff s3cret-value"); got != "plain \ufffd [redacted]" {
		t.Error(got)
	}
}

func TestSensitiveNames(t *testing.T) {
	for _, name := range []string{
		"password", "Password", "user_password", "newPassword", "passwd", "secret", "clientSecret", "client-secret", "token", "access_token", "idToken", "api_key", "apiKey", "API-KEY",
		"x-api-key", "private_key", "authorization", "X-Authorization", "cookie", "credentials", "signature", "aws_secret_access_key", "session_id", "card_number", "cvc", "user[password]", "x-hub-signature", "password2", "token0", "token9",
	} {
		if !redact.Sensitive(name) {
			t.Errorf("%s is sensitive", name)
		}
	}
	for _, name := range []string{"", "-", "--", "_-", " -.", "x-", "id", "name", "secretary", "tokens_used", "token_count", "signature_status", "author", "authors", "passenger", "key", "keyboard", "monkey", "path", "secret_name_is_public", strings.Repeat("password", 20)} {
		if redact.Sensitive(name) {
			t.Errorf("%s is not sensitive", name)
		}
	}
	for name, want := range map[string]bool{"Authorization": true, "X-Access-Key": true, "token2": true, "Stripe-Signature": false, "X-Hub-Signature-256": false, "X-Signature-Ed25519": false, "X-A": false} {
		if redact.Credential(name) != want {
			t.Errorf("%s holds a credential: %v", name, !want)
		}
	}
}

// Of a credential nothing is shown beside its secrets, but for the scheme of an authorisation.
func TestPartsOfCredentialsAreNotShown(t *testing.T) {
	r := redact.New(redact.Mask{Value: "7Kq9-tok-55"}, redact.Mask{Value: "s3cret-value", Shown: "{{secrets.KEY}}"})
	for _, c := range []struct{ name, value, want string }{
		{"password", "correcthorse7Kq9-tok-55", "[redacted]"},
		{"password", "7Kq9-tok-55horse", "[redacted]"},
		{"password", "horse 7Kq9-tok-55", "[redacted]"},
		{"password", "Bearer 7Kq9-tok-55", "[redacted]"},
		{"password", "s3cret-value", "{{secrets.KEY}}"},
		{"password", "7Kq9-tok-55s3cret-value", "[redacted]{{secrets.KEY}}"},
		{"Authorization", "7Kq9-tok-55", "[redacted]"},
		{"Authorization", "bearer 7Kq9-tok-55", "bearer [redacted]"},
		{"Proxy-Authorization", "Basic  s3cret-value", "Basic  {{secrets.KEY}}"},
		{"Authorization", "correct 7Kq9-tok-55", "[redacted]"},
		{"Authorization", "Bearer7Kq9-tok-55", "[redacted]"},
		{"Authorization", "7Kq9-tok-55 Bearer", "[redacted]"},
		{"Authorization", "Bearer horse 7Kq9-tok-55", "[redacted]"},
		{"Authorization", "Bearer abc", "[redacted]"},
		{"Auth", "Bearer s3cret-value", "Bearer {{secrets.KEY}}"},
	} {
		if got := r.Headers(hookglass.Headers{{Name: c.name, Value: c.value}})[0].Value; got != c.want {
			t.Errorf("header %s: %s is shown as %s, want %s", c.name, c.value, got, c.want)
		}
		got, _ := r.Value(jsondoc.Members(jsondoc.Member{Name: c.name, Value: jsondoc.Text(c.value)}))
		if m, _ := got.Member(c.name); m.Text() != c.want {
			t.Errorf("member %s: %s is shown as %s, want %s", c.name, c.value, m.Text(), c.want)
		}
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add("canary-7f3a9b2c", `{"a":"canary-7f3a9b2c","password":1}`)
	f.Add("ab", "grab ab https://u:p@h/?token=x")
	f.Add("é\"\\/+ =&<>", "Y2FuYXJ5 ==")
	f.Fuzz(func(t *testing.T, secret, text string) {
		if !utf8.ValidString(secret) || !utf8.ValidString(text) || len(secret) > 200 {
			return
		}
		r := redact.New(redact.Mask{Value: secret})
		got := r.Text(text)
		if !utf8.ValidString(got) {
			t.Fatalf("%q became %q", text, got)
		}
		if len(secret) >= 4 && !strings.Contains(hookglass.Redacted, secret) && strings.Contains(strings.ReplaceAll(got, hookglass.Redacted, "\x00"), secret) {
			t.Fatalf("%q of %q shows %q", got, text, secret)
		}
		r.Body(text)
		if v, err := jsondoc.Parse([]byte(text), jsondoc.Wide()); err == nil {
			shown, paths := r.Value(v)
			if again, err := jsondoc.Parse(shown.Bytes(), jsondoc.Wide()); err != nil || !jsondoc.Same(again, shown) {
				t.Fatalf("%s: %v", shown.Bytes(), err)
			}
			if len(paths) == 0 && !jsondoc.Same(v, shown) {
				t.Fatalf("%s became %s", text, shown.Bytes())
			}
		}
	})
}

// A text that was cut ends with the beginning of a secret, of which nothing stays; it is found as by trying each length.
func TestTheBeginningOfASecretAtTheEndGoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab"[random.IntN(2)]
		}
		return string(b)
	}
	found := 0
	for range 50_000 {
		secret, text := word(9+random.IntN(6)), word(random.IntN(30))
		want := strings.ReplaceAll(text, secret, "[redacted]")
		for n := len(secret) - 1; n >= 8; n-- {
			if strings.HasSuffix(want, secret[:n]) {
				want = want[:len(want)-n] + "[redacted]"
				found++
				break
			}
		}
		if got := redact.New(redact.Mask{Value: secret}).Cut(text); got != want {
			t.Fatalf("%s without %s is %s, want %s", text, secret, got, want)
		}
	}
	if found < 100 {
		t.Errorf("%d texts end so", found)
	}
	if got := redact.New(redact.Mask{Value: "12345678"}).Cut("1234567"); got != "1234567" {
		t.Errorf("fewer than 8 bytes became %s", got)
	}
}

// Parts are looked for in what is a secret, not in what may be one.
func TestWhatMayBeNoSecretIsRedactedWhole(t *testing.T) {
	for whole, want := range map[bool]string{false: "in [redacted]", true: "in staging-environ"} {
		r := redact.New(redact.Mask{Value: "staging-environment-of-europe", Whole: whole})
		if got := r.Secrets("in staging-environ"); got != want {
			t.Errorf("whole: %v: %s", whole, got)
		}
		if got := r.Secrets("staging-environment-of-europe"); got != "[redacted]" {
			t.Errorf("whole: %v: %s", whole, got)
		}
	}
	long := strings.Repeat("a=\"é\"; ", 5000)
	if n := redact.New(redact.Mask{Value: long, Whole: true}).Size(); n > 3*len(long) {
		t.Errorf("%d bytes are looked for in the place of %d", n, len(long))
	}
}
