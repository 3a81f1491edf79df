package smtpd_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hookglass"
	"hookglass/internal/smtpd"
)

func scripted(status int, text string) *hookglass.Reply {
	return &hookglass.Reply{Status: status, Body: []byte(text), Source: hookglass.SourceCustom}
}

func held(d time.Duration) *hookglass.Reply {
	return &hookglass.Reply{Source: hookglass.SourceCustom, Delay: d}
}

// refusing has the ledger refuse recipients one after another.
func refusing(l *ledger, replies ...*hookglass.Reply) *ledger {
	n := 0
	l.rcpt = func(string, string) (*hookglass.Reply, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		n++
		return replies[min(n, len(replies))-1], nil
	}
	return l
}

func (c *client) wasReset() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.r); len(rest) > 0 || !errors.Is(err, syscall.ECONNRESET) {
		c.t.Errorf("not reset: %q, %v", rest, err)
	}
}

// secure goes on under TLS.
func (c *client) secure(pool *x509.CertPool) {
	secured := tls.Client(c.nc, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
	c.nc = secured
	c.r.Reset(secured)
}

func TestAScriptAnswersAMessage(t *testing.T) {
	l := &ledger{data: func(int64) *hookglass.Reply { return scripted(451, "4.7.1 Greylisted") }}
	_, addr := start(t, smtpd.Config{}, l)
	c := begun(t, addr, "inbox@mail.test")
	c.says("DATA", 354)
	if said := c.says("Subject: x\r\n\r\nx\r\n.", 451); said != "4.7.1 Greylisted" {
		t.Errorf("said %q", said)
	}
	c.begin("inbox@mail.test") // the connection goes on
	c.send("BDAT 5 LAST\r\nhello")
	c.expect(451)
	if n := len(l.stored()); n != 2 {
		t.Errorf("%d mails", n)
	}
}

// What failed is told, whatever the script says: the mail is not there.
func TestAScriptDoesNotCoverAFailure(t *testing.T) {
	l := &ledger{data: func(int64) *hookglass.Reply { return scripted(250, "2.0.0 Thanks") }, keep: func(n int64) error {
		if n == second {
			return &hookglass.Error{Code: hookglass.CodeUnavailable}
		}
		return nil
	}}
	_, addr := start(t, smtpd.Config{}, l)
	c := begun(t, addr, "inbox@mail.test", "second@mail.test")
	c.says("DATA", 354)
	c.says("x\r\n.", 451)
	c.begin("inbox@mail.test")
	c.says("DATA", 354)
	if said := c.says("x\r\n.", 250); said != "2.0.0 Thanks" {
		t.Errorf("said %q", said)
	}
}

func TestAScriptRefusesRecipients(t *testing.T) {
	l := refusing(&ledger{}, scripted(450, "4.2.1 Later"), scripted(550, "5.1.1 Gone"), scripted(250, "2.1.5 Fine"))
	_, addr := start(t, smtpd.Config{}, l)
	c := greeted(t, addr)
	// Pipelined, as RFC 2920 has it: replies come in order, and a client whose recipients are all refused has sent DATA
	// already.
	c.send("MAIL FROM:<a@example.org>\r\nRCPT TO:<inbox@mail.test>\r\nRCPT TO:<second@mail.test>\r\nDATA\r\nRSET\r\n")
	for _, code := range []int{250, 450, 550, 503, 250} {
		c.expect(code)
	}
	c.send("MAIL FROM:<a@example.org>\r\nRCPT TO:<inbox@mail.test>\r\nDATA\r\n")
	c.expect(250)
	if said := c.expect(250); said != "2.1.5 Fine" {
		t.Errorf("said %q", said)
	}
	c.expect(354)
	c.says("x\r\n.", 250)
	if mails := l.stored(); len(mails) != 1 || len(mails[0].To) != 1 {
		t.Errorf("%d mails", len(mails))
	}
	if l.reasons["script"] != 2 {
		t.Errorf("refusals %v", l.reasons)
	}
}

// A client under test may be refused for long: that is no habit for which it is sent away.
func TestScriptedRefusalsAreNoFaultsOfTheClient(t *testing.T) {
	_, addr := start(t, smtpd.Config{}, refusing(&ledger{}, scripted(550, "5.1.1 Gone")))
	c := greeted(t, addr)
	for range 300 {
		c.send("MAIL FROM:<a@example.org>\r\nRCPT TO:<inbox@mail.test>\r\nDATA\r\nRSET\r\n")
		for _, code := range []int{250, 550, 503, 250} {
			c.expect(code)
		}
	}
	c.says("MAIL FROM:<a@example.org>", 250)
	c.says("RCPT TO:<inbox@mail.test>", 550)
	c.send("BDAT 2 LAST\r\nxx")
	c.expect(503)
	c.says("NOOP", 250)
}

func TestAnAttemptThatCannotBeCountedIsToComeAgain(t *testing.T) {
	l := &ledger{rcpt: func(string, string) (*hookglass.Reply, error) {
		return nil, &hookglass.Error{Code: hookglass.CodeUnavailable}
	}}
	_, addr := start(t, smtpd.Config{}, l)
	c := greeted(t, addr)
	c.says("MAIL FROM:<a@example.org>", 250)
	c.says("RCPT TO:<inbox@mail.test>", 451)
}

func TestAScriptEndsTheConnection(t *testing.T) {
	for _, stage := range []string{"rcpt", "data"} {
		for name, answer := range map[string]*hookglass.Reply{"421": scripted(421, "4.3.2 Bye"), "reset": held(0), "timeout": held(50 * time.Millisecond)} {
			l := &ledger{data: func(int64) *hookglass.Reply { return answer }}
			if stage == "rcpt" {
				l = refusing(&ledger{}, answer)
			}
			_, addr := start(t, smtpd.Config{}, l)
			c := greeted(t, addr)
			began := time.Now()
			c.send("MAIL FROM:<a@example.org>\r\n")
			c.expect(250)
			c.send("RCPT TO:<inbox@mail.test>\r\n")
			if stage == "data" {
				c.expect(250)
				c.says("DATA", 354)
				c.send("x\r\n.\r\n")
			}
			if name == "421" {
				c.expect(421)
				c.closed()
				continue
			}
			c.wasReset()
			if took := time.Since(began); took < answer.Delay {
				t.Errorf("%s at %s: after %s", name, stage, took)
			}
		}
	}
}

func TestAResetUnderTLSIsOneOfTheSocket(t *testing.T) {
	cfg, pool := selfSigned(t)
	l := &ledger{data: func(int64) *hookglass.Reply { return held(0) }}
	_, addr := start(t, smtpd.Config{TLS: cfg}, l)
	c := greeted(t, addr)
	c.says("STARTTLS", 220)
	c.secure(pool)
	c.says("EHLO x", 250)
	c.begin("inbox@mail.test")
	c.says("DATA", 354)
	c.send("x\r\n.\r\n")
	c.wasReset()
}

// What was answered before is not kept back by an answer that waits.
func TestAnAnswerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := scripted(451, "4.3.0 Late")
		late.Delay = time.Minute
		s, ln := smtpd.New(smtpd.Config{Domain: "mail.test"}, refusing(&ledger{}, late), discard()), make(pipes)
		go s.Serve(ln)
		ours, theirs := net.Pipe()
		ln <- theirs
		c := &client{t, ours, bufio.NewReader(ours)}
		c.expect(220)
		c.says("EHLO client.test", 250)
		begun := time.Now()
		c.send("MAIL FROM:<a@example.org>\r\nRCPT TO:<inbox@mail.test>\r\nRSET\r\n")
		c.expect(250)
		if took := time.Since(begun); took > 0 {
			t.Errorf("MAIL was answered after %s", took)
		}
		c.expect(451)
		if took := time.Since(begun); took != late.Delay {
			t.Errorf("RCPT was answered after %s", took)
		}
		c.expect(250)
		ours.Close()
		_ = s.Shutdown(t.Context())
	})
}

func TestAServerThatStopsDoesNotWaitWithAnswers(t *testing.T) {
	late := scripted(451, "4.3.0 Late")
	late.Delay = time.Hour
	l := &ledger{data: func(int64) *hookglass.Reply { return late }, entered: make(chan struct{}), release: make(chan struct{})}
	s, addr := start(t, smtpd.Config{}, l)
	c := begun(t, addr, "inbox@mail.test")
	c.says("DATA", 354)
	c.send("x\r\n.\r\n")
	<-l.entered
	l.release <- struct{}{}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.expect(451)
	c.expect(421)
}

// A client that is gone leaves its place to others; under TLS too.
func TestAClientThatIsGoneIsNotWaitedFor(t *testing.T) {
	cfg, pool := selfSigned(t)
	for _, stage := range []string{"rcpt", "data"} {
		for _, secure := range []bool{false, true} {
			l := &ledger{data: func(int64) *hookglass.Reply { return held(time.Hour) }}
			if stage == "rcpt" {
				l = refusing(&ledger{}, held(time.Hour))
			}
			_, addr := start(t, smtpd.Config{TLS: cfg, MaxConnsPerAddr: 1}, l)
			c := greeted(t, addr)
			if secure {
				c.says("STARTTLS", 220)
				c.secure(pool)
				c.says("EHLO x", 250)
			}
			c.says("MAIL FROM:<a@example.org>", 250)
			c.send("RCPT TO:<inbox@mail.test>\r\n")
			if stage == "data" {
				c.expect(250)
				c.says("DATA", 354)
				c.send("x\r\n.\r\n")
			}
			c.nc.Close()
			for ended := time.Now().Add(2 * time.Minute); ; {
				next := dial(t, addr)
				code, _ := next.reply()
				next.nc.Close()
				if code == 220 {
					break
				}
				if time.Now().After(ended) {
					t.Fatalf("%s, TLS %t: the connection is still held", stage, secure)
				}
			}
			if stage == "data" && len(l.stored()) != 1 {
				t.Errorf("TLS %t: %d mails", secure, len(l.stored()))
			}
		}
	}
}

// What comes while an answer waits is served after it, in order, whether it fits into the buffer or not.
func TestWhatComesWhileAnAnswerWaitsIsServed(t *testing.T) {
	for _, n := range []int{1, 1_000} {
		late := scripted(250, "2.1.5 Late")
		late.Delay = 100 * time.Millisecond
		l := refusing(&ledger{}, late)
		_, addr := start(t, smtpd.Config{}, l)
		c := greeted(t, addr)
		c.says("MAIL FROM:<a@example.org>", 250)
		began := time.Now()
		c.send("RCPT TO:<inbox@mail.test>\r\nBDAT 3\r\n")
		c.send("abcBDAT 2 LAST\r\nde" + strings.Repeat("NOOP a longer line\r\n", n))
		c.expect(250)
		if took := time.Since(began); took < late.Delay {
			t.Errorf("%d lines: answered after %s", n, took)
		}
		for range 2 + n {
			c.expect(250)
		}
		if mails := l.stored(); len(mails) != 1 || string(mails[0].Raw) != "abcde" {
			t.Errorf("%d lines: %d mails", n, len(mails))
		}
	}
}

// A client that has closed its side alone has said all that it had to say: it is served, without the wait.
func TestAClientThatHasSaidAllIsServedWithoutTheWait(t *testing.T) {
	late := scripted(250, "2.1.5 Late")
	late.Delay = time.Hour
	l := refusing(&ledger{}, late)
	_, addr := start(t, smtpd.Config{}, l)
	c := greeted(t, addr)
	c.send("MAIL FROM:<a@example.org>\r\nRCPT TO:<inbox@mail.test>\r\nBDAT 5 LAST\r\nhelloQUIT\r\n")
	if err := c.nc.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{250, 250, 250, 221} {
		c.expect(code)
	}
	c.closed()
	if n := len(l.stored()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// Half of the connections may wait; who comes beyond that is answered at once.
func TestWaitingAnswersLeaveRoomForOthers(t *testing.T) {
	late := scripted(550, "5.1.1 Late")
	late.Delay = time.Hour
	_, addr := start(t, smtpd.Config{MaxConns: 4}, refusing(&ledger{}, late))
	for range 2 {
		c := greeted(t, addr)
		c.send("MAIL FROM:<a@example.org>\r\nRCPT TO:<inbox@mail.test>\r\n")
		c.expect(250) // to MAIL: with that out, it waits
	}
	c := greeted(t, addr)
	c.says("MAIL FROM:<a@example.org>", 250)
	c.says("RCPT TO:<inbox@mail.test>", 550)
}

func TestLMTPAnswersEachRecipientByItsScript(t *testing.T) {
	answers := map[int64]*hookglass.Reply{inbox: scripted(451, "4.3.0 Later")}
	l := &ledger{data: func(n int64) *hookglass.Reply { return answers[n] }}
	addr := startLMTP(t, smtpd.Config{}, l)
	session := func() *client {
		c := dial(t, addr)
		c.expect(220)
		c.says("LHLO client.test", 250)
		c.begin("inbox@mail.test", "second@mail.test", "inbox+x@mail.test")
		c.says("DATA", 354)
		c.send("x\r\n.\r\n")
		return c
	}
	c := session()
	for i, code := range []int{451, 250, 451} {
		if said := c.expect(code); code == 250 && !strings.Contains(said, "eml_") {
			t.Errorf("recipient %d was told %q", i, said)
		}
	}
	c.says("NOOP", 250)

	answers[second] = held(0) // after which there is nobody to be answered
	c = session()
	c.expect(451)
	c.wasReset()

	answers[second], answers[inbox] = nil, scripted(421, "4.3.2 Bye")
	c = session()
	for _, code := range []int{421, 250, 421} {
		c.expect(code)
	}
	c.closed()
	if n := len(l.stored()); n != 3 {
		t.Errorf("%d mails", n)
	}
}
