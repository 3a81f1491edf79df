package smtpd_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/smtp"
	"slices"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/smtpd"
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestWithoutSignInNobodyMay(t *testing.T) {
	l := &ledger{}
	_, addr := start(t, smtpd.Config{}, l)
	c := greeted(t, addr)
	c.says("AUTH PLAIN "+b64("\x00inbox\x00x"), 502)
	c.says("AUTH LOGIN", 502)
	c.says("MAIL FROM:<a@b.test> AUTH=<>", 555)
	c.says("MAIL FROM:<a@b.test>", 250)
	c.says("RCPT TO:<alice@example.com>", 550)
}

// A program that signs in to an inbox is as one that sends to it, whomever it names.
func TestWhoSignsInIsCaughtInTheInbox(t *testing.T) {
	l := &ledger{}
	_, addr := start(t, smtpd.Config{SignIn: true}, l)
	c := dial(t, addr)
	c.expect(220)
	c.send("EHLO app.test\r\n")
	if _, lines := c.reply(); !slices.Contains(lines, "AUTH PLAIN LOGIN") {
		t.Fatalf("offered: %q", lines)
	}
	c.says("MAIL FROM:<a@b.test>", 250)
	c.says("RCPT TO:<alice@example.com>", 550) // before
	c.says("RSET", 250)
	c.says("AUTH PLAIN "+b64("\x00Inbox+ci@mail.test\x00secret"), 235)
	c.says("AUTH PLAIN "+b64("\x00second\x00secret"), 503)
	c.says("EHLO app.test", 250) // which does not sign out
	c.says("MAIL FROM:<app@example.org> AUTH=<>", 250)
	for _, to := range []string{"alice@example.com", "bob@example.net", "nobody@mail.test", "postmaster"} {
		c.says("RCPT TO:<"+to+">", 250)
	}
	c.says("RCPT TO:<second@mail.test>", 250)   // an address of ours
	c.says("RCPT TO:<disabled@mail.test>", 550) // and one that takes nothing
	c.says("DATA", 354)
	c.says("Subject: x\r\n\r\nx\r\n.", 250)
	mails := l.stored()
	if len(mails) != 1 {
		t.Fatalf("%d mails", len(mails))
	}
	m := mails[0]
	got := map[string]int64{}
	for _, r := range m.To {
		got[r.Address] = r.Target.Endpoint.Num
	}
	for to, want := range map[string]int64{"alice@example.com": inbox, "bob@example.net": inbox, "nobody@mail.test": inbox, "postmaster": inbox, "second@mail.test": second} {
		if got[to] != want {
			t.Errorf("%s went to endpoint %d, want %d", to, got[to], want)
		}
	}
	if len(m.To) != 5 || m.Protocol != "ESMTPA" {
		t.Errorf("%d recipients by %s", len(m.To), m.Protocol)
	}
}

func TestWaysToSignIn(t *testing.T) {
	_, addr := start(t, smtpd.Config{SignIn: true}, &ledger{})
	for name, exchange := range map[string][][2]string{
		"PLAIN at once":                {{"AUTH PLAIN " + b64("\x00inbox\x00p"), "235"}},
		"PLAIN acting for somebody":    {{"auth plain " + b64("who\x00inbox@MAIL.TEST\x00p"), "235"}},
		"PLAIN when asked":             {{"AUTH PLAIN", "334"}, {b64("\x00inbox\x00p"), "235"}},
		"LOGIN when asked":             {{"AUTH LOGIN", "334 " + b64("Username:")}, {b64("inbox"), "334 " + b64("Password:")}, {b64("p"), "235"}},
		"LOGIN at once, no password":   {{"AUTH LOGIN " + b64("inbox"), "334 " + b64("Password:")}, {"", "235"}},
		"a name that is no inbox":      {{"AUTH PLAIN " + b64("\x00nobody\x00p"), "535"}},
		"an inbox that is disabled":    {{"AUTH PLAIN " + b64("\x00disabled\x00p"), "535"}},
		"an inbox of another domain":   {{"AUTH PLAIN " + b64("\x00inbox@example.com\x00p"), "535"}},
		"no name":                      {{"AUTH LOGIN", "334"}, {"", "334"}, {"", "535"}},
		"an empty answer at once":      {{"AUTH PLAIN =", "501"}},
		"fields that are missing":      {{"AUTH PLAIN " + b64("inbox\x00p"), "501"}},
		"what is no base64":            {{"AUTH PLAIN !", "501"}, {"AUTH LOGIN", "334"}, {"inbox", "501"}},
		"given up":                     {{"AUTH LOGIN", "334"}, {"*", "501"}, {"NOOP", "250"}},
		"a mechanism that there isn't": {{"AUTH CRAM-MD5", "504"}, {"AUTH", "504"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := greeted(t, addr)
			for _, step := range exchange {
				c.send(step[0] + "\r\n")
				line, err := c.r.ReadString('\n')
				if err != nil || !strings.HasPrefix(line, step[1]) {
					t.Fatalf("%q was answered %q, %v; want %s", step[0], line, err, step[1])
				}
			}
			last := exchange[len(exchange)-1][1]
			c.says("MAIL FROM:<a@b.test>", 250)
			if last == "235" {
				c.says("RCPT TO:<alice@example.com>", 250)
			} else {
				c.says("RCPT TO:<alice@example.com>", 550)
			}
			c.says("AUTH PLAIN "+b64("\x00inbox\x00p"), 503) // within a message
		})
	}
}

func TestSigningInComesAfterTheGreetingAndTLS(t *testing.T) {
	cfg, pool := selfSigned(t)
	l := &ledger{}
	_, addr := start(t, smtpd.Config{SignIn: true, TLS: cfg}, l)
	c := dial(t, addr)
	c.expect(220)
	c.says("AUTH PLAIN "+b64("\x00inbox\x00p"), 503)
	c.send("EHLO app.test\r\n")
	if _, lines := c.reply(); slices.Contains(lines, "AUTH PLAIN LOGIN") {
		t.Errorf("passwords are asked for in the clear: %q", lines)
	}
	c.says("AUTH PLAIN "+b64("\x00inbox\x00p"), 538)

	secure, err := smtp.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close()
	if err := secure.StartTLS(&tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(secure.Auth(smtp.PlainAuth("", "inbox", "p", "127.0.0.1")), secure.Mail("app@example.org"), secure.Rcpt("alice@example.com")); err != nil {
		t.Fatal(err)
	}
	w, err := secure.Data()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("Subject: x\r\n\r\nx\r\n")); errors.Join(err, w.Close()) != nil {
		t.Fatal(err)
	}
	if mails := l.stored(); len(mails) != 1 || mails[0].Protocol != "ESMTPSA" {
		t.Errorf("%+v", mails)
	}
}

func TestLMTPHasNoSignIn(t *testing.T) {
	c := dial(t, startLMTP(t, smtpd.Config{SignIn: true}, &ledger{}))
	c.expect(220)
	c.says("LHLO app.test", 250)
	c.says("AUTH PLAIN "+b64("\x00inbox\x00p"), 502)
}

// What is wrong with the storage is not told as a wrong name: programs give up on that.
func TestSigningInWhileStorageIsAway(t *testing.T) {
	l := &ledger{admit: func(string) error { return hookglass.Errorf(hookglass.CodeUnavailable, "The database is away.") }}
	_, addr := start(t, smtpd.Config{SignIn: true}, l)
	greeted(t, addr).says("AUTH PLAIN "+b64("\x00inbox\x00p"), 454)
}

func TestGuessingNamesEndsTheConnection(t *testing.T) {
	_, addr := start(t, smtpd.Config{SignIn: true}, &ledger{})
	c := greeted(t, addr)
	for range 19 {
		c.says("AUTH PLAIN "+b64("\x00guess\x00p"), 535)
	}
	c.says("AUTH PLAIN "+b64("\x00guess\x00p"), 535)
	c.expect(421)
	c.closed()
}

// A line that is too long within the exchange ends the connection, as anywhere.
func TestAnAnswerThatIsTooLong(t *testing.T) {
	_, addr := start(t, smtpd.Config{SignIn: true}, &ledger{})
	c := greeted(t, addr)
	c.says("AUTH PLAIN", 334)
	c.says(strings.Repeat("A", 9000), 500)
	c.closed()
}

func TestThePasswordIsKeptNowhere(t *testing.T) {
	var log bytes.Buffer
	l := &ledger{keep: func(int64) error { return errors.New("broken") }}
	_, addr := serveLogged(t, smtpd.Config{SignIn: true}, l, (*smtpd.Server).Serve, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	err := smtp.SendMail(addr, smtp.PlainAuth("", "inbox", "c4nary-pass", "127.0.0.1"), "app@example.org", []string{"alice@example.com"}, []byte("Subject: x\r\n\r\nx\r\n"))
	if err == nil || !strings.Contains(err.Error(), "451") {
		t.Fatalf("%v", err)
	}
	if s := log.String(); !strings.Contains(s, "mail refused") || strings.Contains(s, "c4nary") || strings.Contains(s, b64("\x00inbox\x00c4nary-pass")) {
		t.Errorf("the log: %s", s)
	}
}

// Whatever comes with AUTH PLAIN, only a message of three fields (RFC 4616) that names an inbox signs in, and the
// connection goes on.
func FuzzAuthPlain(f *testing.F) {
	for _, s := range []string{b64("\x00inbox\x00x"), b64("who\x00inbox@MAIL.TEST\x00p"), b64("\x00nobody\x00p"), b64("inbox\x00p"), "=", "*", "====", "AGluYm94AHg", b64("\x00\x00\x00")} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 400 || strings.TrimSpace(s) != s || s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
			return // no line of a client
		}
		_, addr := start(t, smtpd.Config{SignIn: true}, &ledger{})
		c := greeted(t, addr)
		want := 501
		message, err := base64.StdEncoding.DecodeString(s)
		if fields := strings.Split(string(message), "\x00"); err == nil && len(fields) == 3 {
			local, domain, whole := strings.Cut(fields[1], "@")
			local, _, _ = strings.Cut(local, "+")
			if want = 535; slices.Contains([]string{"inbox", "second"}, strings.Map(lower, local)) && (!whole || strings.EqualFold(domain, "mail.test")) {
				want = 235
			}
		}
		c.says("AUTH PLAIN "+s, want)
		c.says("NOOP", 250)
	})
}

// lower folds ASCII alone, as addresses are.
func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
