package email_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass/internal/cputime"
	"hookglass/internal/email"
)

func TestCodes(t *testing.T) {
	for _, c := range []struct {
		subject, text, html string
		want                []string
	}{
		{"", "Your verification code is 482910.", "", []string{"482910"}},
		{"", "Code: 1234", "", []string{"1234"}},
		{"123456 is your Example code", "", "", []string{"123456"}},
		{"", "G-928374 is your Google verification code.", "", []string{"G-928374"}},
		{"", "Use the one-time password\n\n  839 201\n\nIt expires in 10 minutes.", "", []string{"839201"}},
		{"", "Your login code: X7K9P2", "", []string{"X7K9P2"}},
		{"Sign in to Linear", "", "<p>Your <b>login code</b></p><h1>xyz</h1><h1>KD72-94QZ</h1>", []string{"KD72-94QZ"}},
		{"", "", "<style>.code{color:#123456}</style><p>Your code</p><table><tr><td>847 120</td></tr></table>", []string{"847120"}},
		{"", "Ihr Bestätigungscode lautet 771234. Er gilt 10 Minuten.", "", []string{"771234"}},
		{"", "Votre code de vérification : 551234", "", []string{"551234"}},
		{"", "Tu código de verificación es 665544", "", []string{"665544"}},
		{"", "Ваш код подтверждения: 908172", "", []string{"908172"}},
		{"", "您的验证码是482913，请在5分钟内输入。", "", []string{"482913"}},
		{"", "認証番号：736251", "", []string{"736251"}},
		{"", "인증번호 [482911]를 입력하세요", "", []string{"482911"}},
		{"", "Your PIN is 0042", "", []string{"0042"}},
		{"", "Use 123456 to verify your address.", "", []string{"123456"}},
		{"", "Hi,\n\nTo verify your email address, please use the following One Time Password (OTP):\n\n482910\n\nDo not share this OTP with anyone. © 2026 Example, 410 Terry Ave N, Seattle, WA 98109", "", []string{"482910"}},
		{"[Example] Please verify your device", "Hey ada!\n\nA sign in attempt requires further verification.\n\nVerification code: 482910\n\nIf you did not attempt this, https://example.com/settings/2021", "", []string{"482910"}},
		{"", "Confirm your email address\nYour confirmation code is below — enter it in your open browser window.\n\nABC-DEF\n\nQuestions?", "", []string{"ABC-DEF"}},
		{"", "Here is the Steam Guard code you need to login:\n\nR4T9P\n\nThis email was generated because of a login attempt", "", []string{"R4T9P"}},
		{"", "Security code: 1234567", "", []string{"1234567"}},
		{"", "Your one-time password is Xk3P9q", "", []string{"Xk3P9q"}},
		{"", "Your One Time Password: k7m2q9 (valid for 5 minutes)", "", []string{"k7m2q9"}},
		{"", "A one-time password reset was asked for by ada99.", "", []string{}},
		{"", "Your Example ID Code is: 123456. Don't share it with anyone.", "", []string{"123456"}},
		{"Your temporary Example login code", "Enter this temporary verification code to continue:\n\n  031337\n", "", []string{"031337"}},
		{"", "", "<html><body><div>Your code:</div><div><span>4</span><span>8</span><span>2</span><span>9</span></div></body></html>", []string{"4829"}},
		{"", "", "<p>Code</p><p style=\"letter-spacing:4px\">&nbsp;48291&#48;&nbsp;</p>", []string{"482910"}},
		{"", "Uw verificatiecode is 112233", "", []string{"112233"}},
		{"", "Il tuo codice di verifica è 445566", "", []string{"445566"}},
		{"", "Seu código de verificação: 778899", "", []string{"778899"}},
		{"", "Twój kod weryfikacyjny: 990011", "", []string{"990011"}},
		{"", "Doğrulama kodunuz: 223344", "", []string{"223344"}},
		{"", "Code:482913", "", []string{"482913"}},
		{"", "OTP:482913, valid until 12:3456", "", []string{"482913"}},
		{"", "", "<p>Enter this code:</p><table><tr><td>4</td>\n  <td>8</td><td>2</td>\n  <td>9</td><td>1</td><td>3</td></tr></table><p>It expires in 10 minutes.</p>", []string{"482913"}},
		{"", "", "<p>Your code</p><h1>4 8 2 9 1 3</h1>", []string{"482913"}},
		{"", "4 8 2 9 1 3 is your login code", "", []string{"482913"}},
		{"", "Step 12\n4 8 2 9 1 3 is your login code", "", []string{"482913"}},
		{"", "Use 4 8 2 9 1 3 5 7 to verify your address.", "", []string{"48291357"}},
		{"", "", "<p>Your one-time password</p><h1>482&nbsp;913</h1>", []string{"482913"}},
		{"", "Your code: 4829 1357", "", []string{"48291357"}},
		{"", "Your verification code: a1b2c3", "", []string{"a1b2c3"}},
		{"", "Use this code:\n\n    x7Gk2P\n\nIt expires in 10minutes.", "", []string{"x7Gk2P"}},
		{"", "Din verifieringskod är 482913", "", []string{"482913"}},
		{"", "Din bekræftelseskode er: 482913", "", []string{"482913"}},
		{"", "Your new card 4111 1111 1111 1111 has no security code yet.", "", []string{}},
		{"", "The Skoda drove 15000 km. The source code is by http2server.", "", []string{}},
		{"", "Rate the source of this code: 1 2 3", "", []string{}},
		{"Rechnung", "Rechnung 2026-1044 über 119,00 EUR, fällig am 04.12.2026. Kundennummer 884213.", "", []string{}},
		{"Your receipt", "Use promo code SAVE20 on your next order. Order 48213-A, 20 November 2026, 18:37.", "", []string{}},
		{"", "Call +49 30 123456 or 555-0199. Meeting at 1830.", "", []string{}},
		{"", "Open https://example.com/verify?code=123456 to sign in.", "", []string{}},
		{"", "Shipping to zip code 90210.", "", []string{}},
		{"", "The job ended with status code 5003.", "", []string{}},
		{"", "Order #48213, total $1234.56, paid.", "", []string{}},
		{"", "Shopping in 2024 was 123456 times better.", "", []string{}},
		{"", "Our code of conduct of May 14, see paragraph 7.", "", []string{}},
		{"", "Your code: 4829 2026-11-23 10:00 UTC", "", []string{"4829"}},
		{"", "PIN: 4829 2026-11-23", "", []string{"4829"}},
		{"", "Your PIN is 4829 1800 seconds left", "", []string{"4829"}},
		{"", "Your code is 4829 1357 and expires soon.", "", []string{"48291357"}},
		{"", "Your code is 4829 1357. It expires soon.", "", []string{"48291357"}},
		{"", "4829 1357 is your code", "", []string{"48291357"}},
		{"", "Use 4829 1357 to verify your address.", "", []string{"48291357"}},
		{"", "", "<p>Your code</p><h1>4829 2013</h1>", []string{"48292013"}},
		{"", "", "<p>Your code</p><h1>x7Gk2P</h1>", []string{"x7Gk2P"}},
		{"", "", "<p>Your code:</p><td>4</td><td>8</td><td>2</td><td>9</td><p>10 minutes are left</p>", []string{"4829"}},
		{"", "", "<p>How easy was it to enter your code?</p><table><tr><td>1</td><td>2</td><td>3</td><td>4</td><td>5</td></tr></table>", []string{}},
		{"", "", "<p>How easy was it to enter your code?</p><p>5 4 3 2 1</p>", []string{}},
		{"", "", "<p>Our code of conduct</p><ol><li>1</li><li>2</li><li>3</li><li>4</li></ol>", []string{}},
		{"", "Our code of conduct: 3 1 2 0 15", "", []string{}},
		{"", "Scores 3 1 2 0, token awarded", "", []string{}},
		{"", "Tax code for 2025 2026", "", []string{}},
		{"", "", "<p>Tax code</p><p>2025 2026</p>", []string{}},
		{"", "Two-step verification\niPhone15", "", []string{}},
		{"", "verification: Chrome119", "", []string{}},
		{"", "Verification\n\nWindows11", "", []string{}},
		{"", "The code is Python3 only", "", []string{}},
		{"", "Security token\nv2024b", "", []string{}},
		{"", "Use code Welcome10", "", []string{}},
		{"", "Use code Summer25", "", []string{}},
		{"", "Fejlkode 4032, landskode 0045", "", []string{}},
		{"", "Your code: " + strings.Repeat("123 ", 19) + "\n" + strings.Repeat("4829 ", 19), "", []string{}},
		{"", "Your code: 123456789", "", []string{}},
		{"", "The code for order #48213 is on its way.", "", []string{}},
		{"", "Our codec 4829 is fast.", "", []string{}},
		{"Your new code: 111222", "Code: 333444", "", []string{"111222", "333444"}}, // of two alike the first
		{"Your code is 111222", "Your code is 111222", "<p>Your code is 111222</p>", []string{"111222"}},
	} {
		e := email.Extract(&email.Message{Subject: c.subject, Text: c.text, HTML: c.html})
		if !slices.Equal(e.Codes, c.want) {
			t.Errorf("%q %q %q: codes %q, want %q", c.subject, c.text, c.html, e.Codes, c.want)
		}
	}
}

// unevenFolds has letters whose lower case is shorter and ones whose lower case is longer: the length of both is the
// same.
const unevenFolds = "İİİ 1 2 3 4 5 6 to verify ȺȺȺ"

func TestLettersOfUnevenCaseShiftNoCode(t *testing.T) {
	for _, text := range []string{unevenFolds, "İİİ 482913 to verify ȺȺȺ", "\xffİ 482913 to verify Ⱥ\xff"} {
		e := email.Extract(&email.Message{Text: text})
		if strings.Contains(text, "482913") && !slices.Equal(e.Codes, []string{"482913"}) {
			t.Errorf("%q: codes %q", text, e.Codes)
		}
	}
}

func BenchmarkCodesAmongDigits(b *testing.B) {
	for name, text := range map[string]string{
		"cells":  strings.Repeat("otp ", 40) + strings.Repeat("1 ", 500_000),
		"groups": strings.Repeat("otp ", 40) + strings.Repeat("123 ", 250_000),
		"spaces": strings.Repeat(" ", 900_000) + strings.Repeat("code "+strings.Repeat("12345 ", 25), 600),
		"line":   strings.Repeat("x ", 480_000) + strings.Repeat("code "+strings.Repeat("12345 ", 25), 600),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				email.Extract(&email.Message{Text: text})
			}
		})
	}
}

func TestLinks(t *testing.T) {
	for _, c := range []struct {
		text, html string
		want       []string
	}{
		{"See https://example.com/a?b=c&d=e, and (http://example.org/x_(y)).", "", []string{"https://example.com/a?b=c&d=e", "http://example.org/x_(y)"}},
		{"<https://example.com/one> \"https://example.com/two\" HTTPS://EXAMPLE.COM/three!", "",
			[]string{"https://example.com/one", "https://example.com/two", "HTTPS://EXAMPLE.COM/three"}},
		{"https://example.com/1 https://example.com/1", `<a href="https://example.com/1">x</a><a href='https://example.com/2?a=1&amp;b=2'>https://example.com/3</a>`,
			[]string{"https://example.com/1", "https://example.com/2?a=1&b=2", "https://example.com/3"}},
		{"", `<a href="javascript:alert(1)"></a><a href="mailto:a@b.c"></a><a href="/relative"></a><a name=x></a><area href=" https://example.com/area
">`, []string{"https://example.com/area"}},
		{"https://example.com/t/V1StGXR8_Z5j_ *https://example.com/b*, _https://example.com/c_. 'https://example.com/d' **See https://example.com/e~**", "",
			[]string{"https://example.com/t/V1StGXR8_Z5j_", "https://example.com/b", "https://example.com/c", "https://example.com/d", "https://example.com/e~"}},
		{"_*https://example.com/a*_ *_https://example.com/b_* ~**https://example.com/c**~ *https://example.com/d_*", "",
			[]string{"https://example.com/a", "https://example.com/b", "https://example.com/c", "https://example.com/d_"}},
		{"ftp://example.com/ file:///etc/passwd ://x http:// https://", "", []string{}},
		{"", `<a href=" https://example.com/my file.pdf?a=b c ">`, []string{"https://example.com/my%20file.pdf?a=b%20c"}}, // as browsers open it
		{"Half: https://example.com/50%-off.", `<a href="https://example.com/100%?a=%zz">`, []string{"https://example.com/50%-off", "https://example.com/100%?a=%zz"}},
		{"https://%-off.example.com/", "", []string{}},
		{"日本語https://example.jp/道。続き", "", []string{"https://example.jp/道"}},
		{"https://example.com/a\u0085b", `<a href="ftp://example.com/">`, []string{"https://example.com/a"}},
		{"", `<a href="https://example.com/` + strings.Repeat("x", 8<<10) + `">`, []string{}},
	} {
		e := email.Extract(&email.Message{Text: c.text, HTML: c.html})
		if !slices.Equal(e.Links, c.want) {
			t.Errorf("%q %q: links %q, want %q", c.text, c.html, e.Links, c.want)
		}
	}
}

// A link that is nothing but what ends one is no more to read than any other.
func TestLinksOfBracketsAreCheap(t *testing.T) {
	for _, closing := range []string{")", "]", ").", "])", "'*)"} {
		cputime.AtMost(t, 2*time.Second, "a link before half a million "+closing, func() {
			email.Extract(email.Parse([]byte("Content-Type: text/plain\r\n\r\nhttp://example.com/([" + strings.Repeat(closing, 500_000))))
		})
	}
}

func TestWhatIsExtractedIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		b.WriteString("https://example.com/")
		b.WriteString(strings.Repeat("x", i))
		fmt.Fprintf(&b, " code %d\n", 4000+i)
	}
	e := email.Extract(&email.Message{Text: b.String()})
	if len(e.Links) != 100 || len(e.Codes) != 10 {
		t.Errorf("%d links, %d codes", len(e.Links), len(e.Codes))
	}
	const most = 1<<20 - len("<p>")
	if shown := (&email.Message{HTML: "<p>" + strings.Repeat("x", most-1) + "é"}).Shown(); shown != strings.Repeat("x", most-1) {
		t.Errorf("of a large document it shows %d bytes, the last %q", len(shown), shown[len(shown)-2:])
	}
}

func TestWhatHTMLDoesNotShow(t *testing.T) {
	for _, c := range []struct{ html, want string }{
		{"<p>a<script>b</script>c</p>", "ac"},
		{"<p>a<script/>b</script>c</p>", "ac"},
		{"<p>a<style/>b</style>c</p>", "ac"},
		{"<p>a<template>b</style>b</template>c</p>", "ac"},
		{"<p>a<b/>c</p>", "ac"},
	} {
		m := email.Parse([]byte("Content-Type: text/html\r\n\r\n" + c.html))
		if got := strings.TrimSpace(m.Shown()); got != c.want {
			t.Errorf("%s shows %q, want %q", c.html, got, c.want)
		}
	}
}
