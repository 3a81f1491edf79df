package smtpd_test

import (
	"slices"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/smtpd"
)

func TestWhoIsARecipient(t *testing.T) {
	_, addr := start(t, smtpd.Config{}, &ledger{})
	for to, want := range map[string]int{
		"<inbox@mail.test>":                            250,
		"inbox@mail.test":                              250, // as people type it
		" <inbox@mail.test>":                           250,
		"<INBOX@MAIL.TEST>":                            250,
		"<inbox+tag@mail.test>":                        250,
		"<inbox+@mail.test>":                           250,
		`<"inbox"@mail.test>`:                          250,
		`<"in\box"@mail.test>`:                         250,
		"<@a.test,@b.test:inbox@mail.test>":            250, // the route is ignored
		"<nobody@mail.test>":                           550,
		"<+tag@mail.test>":                             550,
		"<\u0130nbox@mail.test>":                       550, // whose lower case is inbox
		`<"in box"@mail.test>`:                         550,
		"<münchen@mail.test>":                          550,
		"<x@mail.test>":                                550,
		"<" + strings.Repeat("x", 51) + "@mail.test>":  550,
		"<disabled@mail.test>":                         550,
		"<inbox@elsewhere.test>":                       550,
		"<inbox@mail.test.elsewhere.test>":             550,
		"<inbox%elsewhere.test@mail.test>":             550,
		"<elsewhere.test!inbox@mail.test>":             550,
		"<inbox>":                                      550,
		"<postmaster>":                                 550,
		"<inbox@[127.0.0.1]>":                          550,
		"<@mail.test:inbox@elsewhere.test>":            550,
		"<>":                                           501,
		"<@mail.test>":                                 501,
		"<inbox@>":                                     501,
		"<inbox@mail.test":                             501,
		"<inbox@mail.test>x":                           501,
		"<inbox@mail.test@elsewhere.test>":             501,
		"<in box@mail.test>":                           501,
		`<"inbox@mail.test>`:                           501,
		"<inb\xffx@mail.test>":                         501,
		"<" + strings.Repeat("x", 600) + "@mail.test>": 501,
		"<inbox@mail.test> NOTIFY=NEVER":               555, // not offered
	} {
		c := begun(t, addr)
		c.says("RCPT TO:"+to, want)
	}
	c := begun(t, addr)
	if unknown, disabled := c.says("RCPT TO:<nobody@mail.test>", 550), c.says("RCPT TO:<disabled@mail.test>", 550); unknown == disabled {
		t.Errorf("both are told %q", unknown)
	}
	c.says("DATA", 503)
}

func TestADomainHasTwoForms(t *testing.T) {
	_, addr := start(t, smtpd.Config{Domain: "xn--bcher-kva.test"}, &ledger{})
	for domain, want := range map[string]int{
		"xn--bcher-kva.test": 250, "XN--BCHER-KVA.test": 250, "bücher.test": 250, "BÜCHER.TEST": 250, "bu\u0308cher.test": 250,
		"bücher.elsewhere.test": 550, "bucher.test": 550, "xn--.test": 550,
	} {
		begun(t, addr).says("RCPT TO:<inbox@"+domain+">", want)
	}
}

// An address is kept with the quotes that it needs, so that it can be written again; without them where they say nothing.
func TestQuotesStayWhereTheyAreNeeded(t *testing.T) {
	for written, want := range map[string]string{
		`<"q q"@x.example>`: `"q q"@x.example`, `<"inbox"@mail.test>`: "inbox@mail.test", `<"in\box"@mail.test>`: "inbox@mail.test", `<"a.b"@c.test>`: "a.b@c.test",
		`<"a..b"@c.test>`: `"a..b"@c.test`, `<".a"@c.test>`: `".a"@c.test`, `<"a."@c.test>`: `"a."@c.test`, `<"a@b"@c.test>`: `"a@b"@c.test`, `<"a\"b"@c.test>`: `"a\"b"@c.test`,
		`<"a\\b"@c.test>`: `"a\\b"@c.test`, `<"a\ b"@c.test>`: `"a b"@c.test`, `<"a,b"@c.test>`: `"a,b"@c.test`, `<"münchen"@c.test>`: "münchen@c.test", `<"mün chen"@c.test>`: `"mün chen"@c.test`,
		"<a..b@c.test>": "a..b@c.test", "<o'neil+x/y=z@c.test>": "o'neil+x/y=z@c.test", `<"q q">`: `"q q"`, `"q q"@x.example`: `"q q"@x.example`,
	} {
		got, _, _, err := smtpd.ParsePath("TO:"+written, "TO:")
		if err != nil || got != want {
			t.Errorf("%s is kept as %s, %v; want %s", written, got, err, want)
		}
		if again, _, _, err := smtpd.ParsePath("TO:<"+got+">", "TO:"); err != nil || again != got {
			t.Errorf("%s is read as %s, %v", got, again, err)
		}
	}
}

func TestTheSender(t *testing.T) {
	_, addr := start(t, smtpd.Config{}, &ledger{})
	for from, want := range map[string]int{
		"<>": 250, "<a@b.test>": 250, "a@b.test": 250, "<ä@b.test> SMTPUTF8": 250, "<a@b.test> BODY=8BITMIME SIZE=100": 250, "<a@b.test> body=7bit": 250,
		"<ä@b.test> SMTPUTF8 SMTPUTF8 BODY=8BITMIME": 250,
		"": 501, "<a b>": 501, "a b": 555, "<a@b.test> BODY=BINARYMIME": 501, "<a@b.test> SIZE=1 SIZE=2": 501, "<a@b.test> RET=FULL": 555,
	} {
		greeted(t, addr).says("MAIL FROM:"+from, want)
	}
}

func TestCommandsHaveAnOrder(t *testing.T) {
	_, addr := start(t, smtpd.Config{}, &ledger{})
	c := dial(t, addr)
	if said := c.expect(220); !strings.HasPrefix(said, "mail.test ESMTP") {
		t.Errorf("the greeting %q", said)
	}
	for _, early := range []string{"MAIL FROM:<a@b.test>", "RCPT TO:<inbox@mail.test>", "DATA", "BDAT 0 LAST"} {
		c.says(early, 503)
	}
	c.says("EHLO", 501)
	c.says("LHLO x", 500)
	c.says("HELO x", 250)
	c.says("RCPT TO:<inbox@mail.test>", 503)
	c.says("DATA", 503)
	c.says("MAIL FROM:<a@b.test>", 250)
	c.says("MAIL FROM:<other@b.test>", 503)
	c.says("DATA", 503)
	c.says("RCPT TO:<inbox@mail.test>", 250)
	c.says("DATA now", 501)
	c.says("EHLO again", 250) // which gives the message up
	c.says("RCPT TO:<inbox@mail.test>", 503)
	c.says("STARTTLS", 502)
	c.says("AUTH PLAIN AGEAYg==", 502)
	for line, want := range map[string]int{"NOOP": 250, "noop": 250, "RSET": 250, "VRFY inbox": 252, "HELP": 214} {
		c.says(line, want)
	}
	c.says("EXPN list", 502)
	c.says("QUIT", 221)
	c.closed()
}

func TestWhatIsOffered(t *testing.T) {
	_, addr := start(t, smtpd.Config{MaxMessageBytes: 12345, MaxRecipients: 7}, &ledger{})
	c := dial(t, addr)
	c.expect(220)
	c.send("EHLO x\r\n")
	_, lines := c.reply()
	want := []string{"mail.test", "PIPELINING", "SIZE 12345", "8BITMIME", "SMTPUTF8", "CHUNKING", "LIMITS RCPTMAX=7", "ENHANCEDSTATUSCODES"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
}

func TestLinesEndWithCRLF(t *testing.T) {
	l := &ledger{}
	_, addr := start(t, smtpd.Config{}, l)
	for _, line := range []string{"NOOP\n", "NOOP\r\r\n", "NO\x00OP\r\n", "NOOP \x1b[2J\r\n", "\n", "NO\rOP\r\n"} {
		c := greeted(t, addr)
		c.send(line)
		c.expect(500)
		c.says("NOOP", 250)
	}
}

func TestLinesAndErrorsHaveLimits(t *testing.T) {
	_, addr := start(t, smtpd.Config{}, &ledger{})
	c := greeted(t, addr)
	c.says("NOOP "+strings.Repeat("x", 2048-len("NOOP \r\n")), 250)
	c.says("NOOP "+strings.Repeat("x", 2049-len("NOOP \r\n")), 500)
	c.closed()

	c = greeted(t, addr)
	c.send(strings.Repeat("x", 1<<20)) // no line end at all
	c.expect(500)

	c = greeted(t, addr)
	for range 20 {
		c.says("NONSENSE", 500)
	}
	c.expect(421)
	c.closed()

	c = begun(t, addr)
	for range 200 {
		c.says("RCPT TO:<nobody@mail.test>", 550)
	}
	c.expect(421)
	c.closed()

	c = greeted(t, addr)
	c.send(strings.Repeat("NOOP\r\n", 2600))
	answered := 0
	for {
		code, _ := c.reply()
		if code == 421 {
			break
		}
		answered++
	}
	if answered != 2500-1 { // and EHLO
		t.Errorf("%d commands were answered", answered)
	}
}

// A relay sends all that it has by one connection: what went wrong before a message that was stored is forgotten.
func TestAMessageThatIsStoredEndsTheCount(t *testing.T) {
	_, addr := start(t, smtpd.Config{}, &ledger{})
	c := greeted(t, addr)
	for range 2 {
		for range 19 {
			c.says("NONSENSE", 500)
		}
		c.begin("inbox@mail.test")
		for range 150 {
			c.says("RCPT TO:<nobody@mail.test>", 550)
		}
		c.send("DATA\r\n")
		c.expect(354)
		c.send("Hello\r\n.\r\n")
		c.expect(250)
		c.send(strings.Repeat("NOOP\r\n", 2_000))
		for range 2_000 {
			c.expect(250)
		}
		c.begin("inbox@mail.test")
		c.says("DATA", 354)
		c.send("Hello\r\n.\r\n")
		c.expect(250)
	}
}

func TestRecipientsHaveALimit(t *testing.T) {
	l := &ledger{}
	_, addr := start(t, smtpd.Config{}, l)
	c := begun(t, addr)
	c.send(strings.Repeat("RCPT TO:<inbox@mail.test>\r\n", 1001) + "DATA\r\n")
	for range 100 {
		c.expect(250)
	}
	for range 901 {
		c.expect(452)
	}
	c.expect(354)
	c.send("Hello\r\n.\r\n")
	c.expect(250)
	if n := len(l.stored()[0].To); n != 100 {
		t.Errorf("%d recipients", n)
	}
}

// Commands may come together (RFC 2920), and in any pieces.
func TestCommandsMayBePipelined(t *testing.T) {
	l := &ledger{}
	_, addr := start(t, smtpd.Config{}, l)
	const session = "EHLO x\r\nMAIL FROM:<a@b.test>\r\nRCPT TO:<inbox@mail.test>\r\nRCPT TO:<nobody@mail.test>\r\nDATA\r\nHello\r\n.\r\n" +
		"MAIL FROM:<>\r\nRCPT TO:<second@mail.test>\r\nBDAT 4 LAST\r\nyou\nQUIT\r\n"
	for _, piece := range []int{len(session), 1, 7} {
		c := dial(t, addr)
		c.expect(220)
		for rest := session; rest != ""; rest = rest[min(piece, len(rest)):] {
			c.send(rest[:min(piece, len(rest))])
		}
		for _, want := range []int{250, 250, 250, 550, 354, 250, 250, 250, 250, 221} {
			c.expect(want)
		}
		c.closed()
	}
	if n := len(l.stored()); n != 6 {
		t.Errorf("%d messages", n)
	}
}

func TestAServiceThatStartsAsksToComeBack(t *testing.T) {
	starting := &ledger{admit: func(string) error { return &hookglass.Error{Code: hookglass.CodeUnavailable} }}
	_, addr := start(t, smtpd.Config{}, starting)
	c := begun(t, addr)
	c.says("RCPT TO:<inbox@mail.test>", 451)
	c.says("RCPT TO:<inbox@elsewhere.test>", 550)
	if starting.reasons["unavailable"] != 1 || starting.reasons["relay"] != 1 {
		t.Errorf("counted %v", starting.reasons)
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"TO:<a@b> X=1", `TO:<"a\"b"@c>`, "TO:<@x,@y:a@b>", "TO:a@b", "TO:<>", "TO: <a@b>  A B=C", `TO:<"@b>`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		address, domain, params, err := smtpd.ParsePath(s, "TO:")
		if err != nil {
			return
		}
		if strings.ContainsRune(domain, '>') || strings.ContainsRune(domain, ' ') || strings.ContainsRune(domain, '@') || len(address) > 512 {
			t.Errorf("%q: %q at %q, %v", s, address, domain, params)
		}
		again, _, _, err := smtpd.ParsePath("TO:<"+address+">", "TO:")
		if err != nil || again != address {
			t.Errorf("%q is kept as %q, which is read as %q, %v", s, address, again, err)
		}
	})
}
