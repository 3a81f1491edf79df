package smtpd_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math"
	"math/big"
	"net"
	"net/netip"
	"net/smtp"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"hookglass"
	"hookglass/internal/httpd"
	"hookglass/internal/smtpd"
)

func selfSigned(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, pool
}

// The standard library's client takes STARTTLS where it is offered.
func TestAnOrdinaryClientSendsByTLS(t *testing.T) {
	l := &ledger{}
	cfg, pool := selfSigned(t)
	_, addr := start(t, smtpd.Config{TLS: cfg}, l)
	c, err := smtp.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.StartTLS(&tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	if ok, _ := c.Extension("STARTTLS"); ok {
		t.Error("STARTTLS is offered again")
	}
	if err := c.Mail("a@b.test"); err != nil {
		t.Fatal(err)
	}
	if err := c.Rcpt("inbox@mail.test"); err != nil {
		t.Fatal(err)
	}
	w, err := c.Data()
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte("Subject: x\n\n.dot\n"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Quit(); err != nil {
		t.Fatal(err)
	}
	if m := l.stored()[0]; string(m.Raw) != "Subject: x\r\n\r\n.dot\r\n" || m.Protocol != "ESMTPS" {
		t.Errorf("%q by %s", m.Raw, m.Protocol)
	}
}

// What was sent in the clear behind STARTTLS is not taken for what was sent by TLS (CVE-2011-0411).
func TestCommandsBehindSTARTTLSAreDropped(t *testing.T) {
	l := &ledger{}
	cfg, pool := selfSigned(t)
	_, addr := start(t, smtpd.Config{TLS: cfg}, l)
	c := greeted(t, addr)
	c.says("MAIL FROM:<before@example.org>", 250)
	c.send("STARTTLS\r\nEHLO evil\r\nMAIL FROM:<evil@example.org>\r\n")
	c.expect(220)
	secured := tls.Client(c.nc, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
	if err := secured.Handshake(); err != nil {
		t.Fatal(err)
	}
	c = &client{t, secured, bufio.NewReader(secured)}
	c.says("RCPT TO:<inbox@mail.test>", 503) // neither is a message begun
	c.says("MAIL FROM:<a@b.test>", 503)      // nor did anyone say hello
	c.says("STARTTLS", 503)
	c.says("EHLO x", 250)
	c.says("QUIT", 221)
}

func TestHelpNamesSTARTTLSWhereItIsOffered(t *testing.T) {
	cfg, _ := selfSigned(t)
	for _, tls := range []*tls.Config{nil, cfg} {
		_, addr := start(t, smtpd.Config{TLS: tls}, &ledger{})
		c := greeted(t, addr)
		c.send("HELP\r\n")
		if _, lines := c.reply(); strings.Contains(lines[0], "STARTTLS") != (tls != nil) {
			t.Errorf("%q, and a certificate: %t", lines, tls != nil)
		}
	}
}

func TestLMTPAnswersForEachRecipient(t *testing.T) {
	unavailable := &hookglass.Error{Code: hookglass.CodeUnavailable}
	l := &ledger{keep: func(e int64) error { return map[int64]error{second: unavailable}[e] }}
	s := smtpd.New(smtpd.Config{Domain: "mail.test"}, l, discard())
	path := filepath.Join(t.TempDir(), "lmtp")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go s.ServeLMTP(ln)
	defer s.Shutdown(t.Context())
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c := gosmtp.NewClientLMTP(nc)
	defer c.Close()
	if err := c.Mail("a@b.test", nil); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"inbox@mail.test", "second@mail.test", "inbox+x@mail.test"} {
		if err := c.Rcpt(to, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Rcpt("nobody@mail.test", nil); err == nil {
		t.Error("an unknown recipient is accepted")
	}
	w, err := c.Data()
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte("Hello\r\n"))
	responses, err := w.CloseWithLMTPResponse()
	var failed gosmtp.LMTPDataError
	if failed, _ = err.(gosmtp.LMTPDataError); len(failed) != 1 || failed["second@mail.test"].Code != 451 || len(responses) != 2 {
		t.Errorf("%v, %v", responses, err)
	}
	if m := l.stored()[0]; len(m.To) != 3 || m.Protocol != "LMTP" || m.Client.IsValid() {
		t.Errorf("%+v", m)
	}
}

// RFC 2033, section 4.2: what is said of a message is said once for each recipient, also where none has it. A client
// that counts them takes the next reply for the one that it lacks.
func TestLMTPRefusesForEachRecipient(t *testing.T) {
	c := dial(t, startLMTP(t, smtpd.Config{MaxMessageBytes: 1_000}, &ledger{}))
	c.expect(220)
	c.says("LHLO client.test", 250)
	c.begin("inbox@mail.test", "second@mail.test")
	c.says("DATA", 354)
	c.send(strings.Repeat("x", 1_001) + "\r\n.\r\n")
	c.expect(552)
	c.expect(552)
	c.says("NOOP", 250)
}

func TestSMTPAndLMTPAreToldApart(t *testing.T) {
	c := dial(t, startLMTP(t, smtpd.Config{}, &ledger{}))
	c.expect(220)
	c.says("EHLO x", 500)
	c.says("HELO x", 500)
	c.says("LHLO x", 250)
}

const v2 = "\r\n\r\n\x00\r\nQUIT\n"

func TestATrustedProxyNamesTheClient(t *testing.T) {
	trusted := httpd.Proxies{netip.MustParsePrefix("127.0.0.0/8")}
	six := netip.MustParseAddr("2001:db8::7").As16()
	for name, c := range map[string]struct {
		header, client string
	}{
		"version 1":                        {"PROXY TCP4 192.0.2.7 192.0.2.1 5000 25\r\n", "192.0.2.7"},
		"version 1, IPv6":                  {"PROXY TCP6 2001:db8::7 2001:db8::1 5000 25\r\n", "2001:db8::7"},
		"version 1, unknown":               {"PROXY UNKNOWN\r\n", "127.0.0.1"},
		"version 1, unknown and addresses": {"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", "127.0.0.1"},
		"version 2":                        {v2 + "\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x01\x13\x88\x00\x19", "192.0.2.7"},
		"version 2, IPv6 and an addition":  {v2 + "\x21\x21\x00\x28" + string(six[:]) + string(six[:]) + "\x13\x88\x00\x19\x04\x00\x01x", "2001:db8::7"},
		"version 2, the proxy itself":      {v2 + "\x20\x00\x00\x00", "127.0.0.1"},
		"version 2, a Unix socket":         {v2 + "\x21\x31\x00\xd8" + strings.Repeat("\x00", 216), "127.0.0.1"},
		"none":                             {"", "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			_, addr := start(t, smtpd.Config{TrustedProxies: trusted}, l)
			conn := dial(t, addr)
			conn.send(c.header + "EHLO x\r\n")
			conn.expect(220)
			conn.expect(250)
			conn.begin("inbox@mail.test")
			conn.says("DATA", 354)
			conn.send(".\r\n")
			conn.expect(250)
			if got := l.stored()[0].Client.String(); got != c.client {
				t.Errorf("the client is %s, want %s", got, c.client)
			}
		})
	}
	for name, header := range map[string]string{
		"no addresses":     "PROXY TCP4\r\n",
		"no line end":      "PROXY TCP4 192.0.2.7 192.0.2.1 5000 25\n" + strings.Repeat("x", 200),
		"a wrong family":   "PROXY TCP4 2001:db8::7 2001:db8::1 5000 25\r\n",
		"a name":           "PROXY TCP4 localhost 192.0.2.1 5000 25\r\n",
		"a port too large": "PROXY TCP4 192.0.2.7 192.0.2.1 65536 25\r\n",
		"too short":        v2 + "\x21\x11\x00\x04\xc0\x00\x02\x07",
		"too long":         v2 + "\x21\x11\xff\xff",
		"version 3":        v2 + "\x31\x11\x00\x00",
	} {
		_, addr := start(t, smtpd.Config{TrustedProxies: trusted}, &ledger{})
		conn := dial(t, addr)
		conn.send(header)
		conn.expect(220)
		if code, lines := conn.reply(); code != 421 {
			t.Errorf("%s: %d %q", name, code, lines)
		}
	}
}

// Whoever is no trusted proxy cannot pose as one, nor can a client behind one: its header would be the second.
func TestNobodyElseNamesTheClient(t *testing.T) {
	_, addr := start(t, smtpd.Config{}, &ledger{})
	c := dial(t, addr)
	c.expect(220)
	c.says("PROXY TCP4 192.0.2.7 192.0.2.1 5000 25", 500)
	_, addr = start(t, smtpd.Config{TrustedProxies: httpd.Proxies{netip.MustParsePrefix("127.0.0.0/8")}}, &ledger{})
	c = dial(t, addr)
	c.send("PROXY TCP4 192.0.2.7 192.0.2.1 5000 25\r\n")
	c.expect(220)
	c.says("PROXY TCP4 192.0.2.8 192.0.2.1 5000 25", 500)
}

func TestConnectionsHaveALimit(t *testing.T) {
	_, addr := start(t, smtpd.Config{MaxConnsPerAddr: 2}, &ledger{})
	first := greeted(t, addr)
	greeted(t, addr)
	third := dial(t, addr)
	third.expect(421)
	third.closed()
	first.says("QUIT", 221)
	first.closed()
	// The server may not have heard of the end yet.
	code := 421
	for deadline := time.Now().Add(2 * time.Minute); code == 421 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		code, _ = dial(t, addr).reply()
	}
	if code != 220 {
		t.Errorf("a connection after one has ended: %d, want 220", code)
	}

	_, addr = start(t, smtpd.Config{MaxConns: 1}, &ledger{})
	greeted(t, addr)
	dial(t, addr).expect(421)

	// Behind a proxy each client has the limit to itself.
	_, addr = start(t, smtpd.Config{MaxConnsPerAddr: 1, TrustedProxies: httpd.Proxies{netip.MustParsePrefix("127.0.0.0/8")}}, &ledger{})
	for _, client := range []string{"192.0.2.7", "192.0.2.8"} {
		c := dial(t, addr)
		c.send("PROXY TCP4 " + client + " 192.0.2.1 5000 25\r\nNOOP\r\n")
		c.expect(220)
		c.expect(250)
	}
	c := dial(t, addr)
	c.send("PROXY TCP4 192.0.2.7 192.0.2.1 5000 25\r\nNOOP\r\n")
	c.expect(220)
	c.expect(421)
}

func TestSilenceIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ln := smtpd.New(smtpd.Config{Domain: "mail.test", CommandTimeout: time.Minute, BodyGrace: time.Minute}, &ledger{}, discard()), make(pipes)
		go s.Serve(ln)
		greeted := func() *client {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { ours.Close() })
			ln <- theirs
			c := &client{t, ours, bufio.NewReader(ours)}
			c.expect(220)
			c.says("EHLO client.test", 250)
			return c
		}
		c := greeted()
		c.expect(421)
		c.closed()
		c = greeted()
		c.send("NOO") // a line that does not end
		c.expect(421)
		c = greeted()
		c.begin("inbox@mail.test")
		c.send("DATA\r\nHel")
		c.expect(354)
		c.expect(421)
		c.closed()
		c = greeted()
		c.begin("inbox@mail.test")
		c.send("BDAT 100 LAST\r\nHel")
		c.expect(421)
		c.nc.Close()
		_ = s.Shutdown(t.Context())
	})
}

func TestAStopTellsThoseWhoWaitAndKeepsWhatIsUnderWay(t *testing.T) {
	l := &ledger{entered: make(chan struct{}, 2), release: make(chan struct{})}
	s, addr := start(t, smtpd.Config{}, l)
	waiting, between := greeted(t, addr), begun(t, addr, "inbox@mail.test")
	storing, sending := begun(t, addr, "inbox@mail.test"), begun(t, addr, "second@mail.test")
	storing.says("DATA", 354)
	storing.send("Hello\r\n.\r\n")
	<-l.entered
	sending.says("DATA", 354)
	sending.send("half")
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.Background()) }()
	for _, c := range []*client{waiting, between} {
		c.expect(421)
		c.closed()
	}
	close(l.release)
	storing.expect(250)
	storing.expect(421)
	storing.closed()
	sending.send(" and half\r\n.\r\n")
	<-l.entered
	sending.expect(250)
	sending.expect(421)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if nc, err := net.Dial("tcp", addr); err == nil {
		nc.Close()
		t.Error("the listener is open")
	}
	if n := len(l.stored()); n != 2 {
		t.Errorf("%d messages", n)
	}
}

func TestAStopDoesNotWaitForEver(t *testing.T) {
	s, addr := start(t, smtpd.Config{}, &ledger{})
	c := begun(t, addr, "inbox@mail.test")
	c.says("DATA", 354)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); err == nil {
		t.Error("a message that never ends was waited for")
	}
	c.closed()
}

// Large messages share memory; who does not get any in time is told to try again, and the connection goes on.
func TestMemoryIsShared(t *testing.T) {
	const size = 1 << 20
	l := &ledger{}
	_, addr := start(t, smtpd.Config{MaxMessageBytes: size, InFlightBytes: 1, BudgetWait: time.Millisecond}, l)
	// One message may go over the budget; it holds what it took while it is not at its end. Which of two that is
	// depends on which is read first, so both are tried again where it was the second.
	for range 100 {
		first, second := begun(t, addr, "inbox@mail.test"), begun(t, addr, "inbox@mail.test")
		first.says("DATA", 354)
		first.send(strings.Repeat("x", size/2))
		second.says("DATA", 354)
		second.send(strings.Repeat("y", size/2) + "\r\n.\r\n")
		code, _ := second.reply()
		if code == 250 {
			first.nc.Close()
			second.nc.Close()
			continue
		}
		if code != 451 {
			t.Errorf("%d", code)
		}
		second.says("NOOP", 250)
		first.send("\r\n.\r\n")
		first.expect(250)
		return
	}
	t.Error("the second message was never refused")
}

// What becomes of a message must not take memory from those that come after it.
func TestMemoryComesBackFromAMessageThatCouldNotBeServed(t *testing.T) {
	const size = 1 << 20
	l := &ledger{keep: func(int64) error { panic("a message that nobody thought of") }}
	_, addr := start(t, smtpd.Config{MaxMessageBytes: size, InFlightBytes: 1, BudgetWait: time.Millisecond}, l)
	for range 2 {
		c := begun(t, addr, "inbox@mail.test")
		c.says("DATA", 354)
		c.send(strings.Repeat("x", size/2) + "\r\n.\r\n")
		c.expect(421)
		c.closed()
	}
	l.mu.Lock()
	l.keep = nil
	l.mu.Unlock()
	c := begun(t, addr, "inbox@mail.test")
	c.says("DATA", 354)
	c.send(strings.Repeat("x", size/2) + "\r\n.\r\n")
	c.expect(250)
}

func FuzzProxy(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.7 192.0.2.1 5000 25\r\nEHLO"))
	f.Add([]byte(v2 + "\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x01\x13\x88\x00\x19EHLO"))
	f.Add([]byte(v2 + "\x20\x00\x00\x00"))
	f.Add([]byte("EHLO x\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		client, found, err := smtpd.ReadProxy(r)
		if err == nil && !found && r.Buffered() > 0 {
			if rest, _ := r.Peek(r.Buffered()); !bytes.HasPrefix(b, rest) {
				t.Errorf("%q: it was read, and is not there", b)
			}
		}
		if err != nil && client.IsValid() {
			t.Errorf("%q: %v in spite of %v", b, client, err)
		}
	})
}

// The reader agrees with a plain reading of the rule: the first CR LF . CR LF, or . CR LF at the start, ends a message.
func FuzzData(f *testing.F) {
	for _, s := range []string{"a\r\n.\r\n", ".\r\n", "..\r\n.\r\n", "\r\n.\r\r\n.\r\n", "\n.\n\r.\r", ".\rx\r\n.\r\n", "\r\r\n.\r\n", "\r\n\n.\r\n", "\r\n.\n.\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var want []byte
		end := false
		if bytes.HasPrefix(b, []byte(".\r\n")) {
			end = true
		} else if i := bytes.Index(b, []byte("\r\n.\r\n")); i >= 0 {
			want, end = b[:i+2], true
		}
		if end {
			want = bytes.ReplaceAll(append([]byte("\r\n"), want...), []byte("\r\n."), []byte("\r\n"))[2:]
		}
		var got bytes.Buffer
		_, err := got.ReadFrom(smtpd.NewDataReader(bytes.NewReader(b)))
		if (err == nil) != end || end && !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%q: %q, %v, want %q, %v", b, got.Bytes(), err, want, end)
		}
	})
}

// The size is what ABNF calls 1*DIGIT (RFC 3030, section 2), of as many digits as 64 bits need; LAST alone may follow.
func FuzzChunk(f *testing.F) {
	for _, s := range []string{"0", "86 LAST", "1 last ", "99999999999999999999 LAST", "000000000000000000001", "+1", "-1", " 1", "1  LAST", "1 FIRST", "1 LAST LAST", ""} {
		f.Add(s)
	}
	form := regexp.MustCompile(`^([0-9]{1,20})(?: \s*((?i:LAST))\s*)?$`)
	f.Fuzz(func(t *testing.T, s string) {
		size, last, ok := smtpd.ParseChunk(s)
		m := form.FindStringSubmatch(s)
		if !ok {
			if m != nil {
				t.Errorf("%q is refused", s)
			}
			return
		}
		n, _ := strconv.ParseUint(strings.TrimLeft(strings.Fields(s)[0], "0"), 10, 64)
		if size < 0 || n <= math.MaxInt64 && uint64(size) != n || last != strings.Contains(strings.ToUpper(s), "LAST") {
			t.Errorf("%q: %d, last %v", s, size, last)
		}
	})
}
