package alert_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"hookglass"
	"hookglass/internal/alert"
)

// host is a relay that says what a test wants, and remembers what it was told, to the byte.
type host struct {
	extensions []string
	answers    map[string]string // by the beginning of a command, "." being the end of a mail; "" hangs up, "hang" says nothing
	greeting   string
	deaf       int    // hangs up after so many bytes of a mail
	stuck      int    // reads no more after so many, and hangs up when the test ends
	silent     func() // is called when it says nothing more
	fell       atomic.Bool

	mu       sync.Mutex
	commands []string
	mail     []byte // as it was on the wire, without the line that ends it
	whole    bool
	ended    chan struct{}
}

func (h *host) listen(t *testing.T) *alert.Mailer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.ended = make(chan struct{})
	var conns sync.WaitGroup
	t.Cleanup(func() {
		ln.Close()
		close(h.ended)
		conns.Wait()
	})
	conns.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				h.serve(conn)
			})
		}
	})
	return mailerTo(ln.Addr(), alert.Relay{Host: "127.0.0.1", Port: 25, From: "Hookglass <hooks@example.com>"})
}

// mailerTo is a mailer whose relay is at an address, whatever its name.
func mailerTo(addr net.Addr, r alert.Relay) *alert.Mailer {
	r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr.String())
	}
	return alert.NewMailer(r)
}

func (h *host) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	say := func(text string) bool {
		switch text {
		case "":
			return false
		case "hang":
			h.silence()
			io.Copy(io.Discard, in)
			return false
		}
		_, err := io.WriteString(conn, text+"\r\n")
		return err == nil
	}
	if h.greeting == "" {
		h.greeting = "220 relay"
	}
	if !say(h.greeting) {
		return
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\r\n")
		h.mu.Lock()
		h.commands = append(h.commands, line)
		h.mu.Unlock()
		answer := "250 2.0.0 fine"
		switch {
		case strings.HasPrefix(line, "EHLO"):
			answer = strings.Join(append([]string{"250-relay"}, h.extensions...), "\r\n250-") + "\r\n250 HELP"
		case line == "DATA":
			answer = "354 go on"
		case line == "QUIT":
			return
		}
		for begins, other := range h.answers {
			if strings.HasPrefix(line, begins) {
				answer = other
			}
		}
		if !say(answer) {
			return
		}
		if line != "DATA" || !strings.HasPrefix(answer, "354") {
			continue
		}
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if line == ".\r\n" {
				break
			}
			h.mu.Lock()
			h.mail = append(h.mail, line...)
			n := len(h.mail)
			h.mu.Unlock()
			if h.stuck > 0 && n > h.stuck {
				h.silence()
				<-h.ended
				return
			}
			if h.deaf > 0 && n > h.deaf {
				return
			}
		}
		h.mu.Lock()
		h.whole = true
		h.mu.Unlock()
		end, ok := h.answers["."]
		if !ok {
			end = "250 2.0.0 queued as 1"
		}
		if !say(end) {
			return
		}
	}
}

func (h *host) silence() {
	h.fell.Store(true)
	if h.silent != nil {
		h.silent()
	}
}

func (h *host) heard(t *testing.T) (commands []string, mail []byte, whole bool) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.commands), slices.Clone(h.mail), h.whole
}

var all = []string{"PIPELINING", "SIZE 30000000", "8BITMIME", "SMTPUTF8"}

// What the relay is told is the mail, byte for byte, but for what SMTP asks: lines end in CR LF, and a dot in front of
// one is doubled.
func TestAMailIsPassedOnAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		parts [][]byte
		wire  string
		mail  string // what MAIL says
	}{
		"plain":      {[][]byte{[]byte("Subject: a\r\n\r\nbody\r\n")}, "Subject: a\r\n\r\nbody\r\n", " SIZE=20"},
		"parts":      {[][]byte{[]byte("Resent-To: x\r\n"), []byte("Subject: a\r\n\r\n")}, "Resent-To: x\r\nSubject: a\r\n\r\n", " SIZE=28"},
		"no part":    {[][]byte{nil, []byte("a\r\n")}, "a\r\n", " SIZE=3"},
		"dots":       {[][]byte{[]byte(".\r\n..\r\n.a.\r\na.\r\n")}, "..\r\n...\r\n..a.\r\na.\r\n", " SIZE=16"},
		"bare LF":    {[][]byte{[]byte("a\n\n.\nb\n")}, "a\r\n\r\n..\r\nb\r\n", " SIZE=11"},
		"bare CR":    {[][]byte{[]byte("a\r.\r\r\nb")}, "a\r\n..\r\n\r\nb\r\n", " SIZE=11"},
		"smuggled":   {[][]byte{[]byte("a\r\n.\rQUIT\n.\nMAIL FROM:<x>\r\n")}, "a\r\n..\r\nQUIT\r\n..\r\nMAIL FROM:<x>\r\n", " SIZE=30"},
		"no end":     {[][]byte{[]byte("a")}, "a\r\n", " SIZE=3"},
		"NUL":        {[][]byte{[]byte("a\x00b\r\n")}, "a\x00b\r\n", " SIZE=5"},
		"8 bit":      {[][]byte{[]byte("A: b\r\n\r\n\xff\xfe\r\n")}, "A: b\r\n\r\n\xff\xfe\r\n", " BODY=8BITMIME SIZE=12"},
		"8-bit name": {[][]byte{[]byte("A: \xe9\r\n\r\n")}, "A: \xe9\r\n\r\n", " BODY=8BITMIME SIZE=8"}, // no UTF-8
		"UTF-8 name": {[][]byte{[]byte("A: é\r\n\r\n")}, "A: é\r\n\r\n", " BODY=8BITMIME SMTPUTF8 SIZE=9"},
		"UTF-8 text": {[][]byte{[]byte("A: b\r\n\r\né\r\n")}, "A: b\r\n\r\né\r\n", " BODY=8BITMIME SIZE=12"},
		"long line":  {[][]byte{[]byte(strings.Repeat("x", 5000))}, strings.Repeat("x", 5000) + "\r\n", " SIZE=5002"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &host{extensions: all}
			r, err := h.listen(t).Pass(t.Context(), []string{"dev@example.org", "two@example.org"}, c.parts...)
			if err != nil || r.Status != hookglass.ReleaseSent || r.Code != 250 || r.Message != "2.0.0 queued as 1" || r.Failure != nil {
				t.Fatalf("%+v, %v", r, err)
			}
			commands, mail, _ := h.heard(t)
			if string(mail) != c.wire {
				t.Errorf("the relay has %q, want %q", mail, c.wire)
			}
			want := []string{"EHLO example.com", "MAIL FROM:<hooks@example.com>" + c.mail, "RCPT TO:<dev@example.org>", "RCPT TO:<two@example.org>", "DATA"}
			if !slices.Equal(commands[:5], want) {
				t.Errorf("the relay heard %q", commands)
			}
		})
	}
}

// A relay that offers nothing is told nothing of the kind.
func TestNothingIsSaidThatTheRelayDoesNotOffer(t *testing.T) {
	h := &host{}
	if r, err := h.listen(t).Pass(t.Context(), []string{"dev@example.org"}, []byte("A: b\r\n\r\nc\r\n")); r.Status != hookglass.ReleaseSent {
		t.Fatalf("%+v, %v", r, err)
	}
	if commands, _, _ := h.heard(t); commands[1] != "MAIL FROM:<hooks@example.com>" {
		t.Errorf("%q", commands)
	}
}

// The relay's limit is for the mail as it goes over the wire, and a mail of just that size goes.
func TestAMailAsLargeAsTheRelayTakes(t *testing.T) {
	mail := []byte("A: b\r\n\r\n.\n") // its bare LF becomes CR LF; the dot that is doubled does not count (RFC 1870, section 3)
	for limit, want := range map[string]hookglass.ReleaseStatus{"SIZE 11": hookglass.ReleaseSent, "SIZE 10": hookglass.ReleaseFailed, "SIZE 0": hookglass.ReleaseSent} {
		h := &host{extensions: []string{limit}}
		if r, err := h.listen(t).Pass(t.Context(), []string{"dev@example.org"}, mail); r.Status != want {
			t.Errorf("%s: %+v, %v", limit, r, err)
		}
	}
}

func TestAMailOf20MB(t *testing.T) {
	line := []byte(".0123456789 0123456789 0123456789 0123456789 0123456789 0123456789\r\n")
	raw := bytes.Repeat(line, 20<<20/len(line))
	h := &host{extensions: all}
	r, err := h.listen(t).Pass(t.Context(), []string{"dev@example.org"}, []byte("Resent-To: dev@example.org\r\n"), raw)
	if r.Status != hookglass.ReleaseSent {
		t.Fatalf("%+v, %v", r, err)
	}
	_, mail, _ := h.heard(t)
	_, mail, _ = bytes.Cut(mail, []byte("\r\n"))
	if plain := bytes.ReplaceAll(mail, []byte("\r\n."), []byte("\r\n"))[1:]; sha256.Sum256(plain) != sha256.Sum256(raw) {
		t.Errorf("%d bytes came of %d", len(plain), len(raw))
	}
}

// Whatever a relay does, the mail is either not sent to anybody, or sent, or nobody knows; and the answer says which.
func TestWhatRelaysMakeOfAMail(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789\r\n"), 1<<20)
	const text = "A: b\r\n\r\nc\r\n"
	for name, c := range map[string]struct {
		host    *host
		to      string // "": dev@example.org
		mail    []byte // nil: text
		status  hookglass.ReleaseStatus
		code    int
		failure string
		message string        // of the relay
		limit   time.Duration // 0: the caller gives up as soon as the relay is silent, however long it took until then
	}{
		"a refused greeting":            {host: &host{greeting: "554 not you"}, status: "failed", code: 554, failure: "relay_refused"},
		"no greeting":                   {host: &host{greeting: "hang"}, limit: 200 * time.Millisecond, status: "failed", failure: "relay_unreachable"},
		"no SMTP":                       {host: &host{greeting: "HTTP/1.1 400 Bad Request"}, status: "failed", failure: "relay_unreachable"},
		"a refused sender":              {host: &host{answers: map[string]string{"MAIL": "451 4.7.1 later"}}, status: "failed", code: 451, failure: "relay_refused", message: "4.7.1 later"},
		"a refused recipient":           {host: &host{answers: map[string]string{"RCPT": "550-5.1.1 nobody\r\n550 5.1.1 here"}}, status: "failed", code: 550, failure: "recipient_refused", message: "5.1.1 nobody 5.1.1 here"},
		"a recipient for later":         {host: &host{answers: map[string]string{"RCPT": "452 full"}}, status: "failed", code: 452, failure: "recipient_refused", message: "full"},
		"refused data":                  {host: &host{answers: map[string]string{"DATA": "554 no"}}, status: "failed", code: 554, failure: "relay_refused", message: "no"},
		"a refused mail":                {host: &host{answers: map[string]string{".": "552 5.3.4 too much\x1b[2J\u202e spam"}}, status: "failed", code: 552, failure: "relay_refused", message: "5.3.4 too much[2J spam"},
		"a mail for later":              {host: &host{answers: map[string]string{".": "451 later"}}, status: "failed", code: 451, failure: "relay_refused", message: "later"},
		"an end at the recipient":       {host: &host{answers: map[string]string{"RCPT": ""}}, status: "failed", failure: "relay_disconnected"},
		"silence at the recipient":      {host: &host{answers: map[string]string{"RCPT": "hang"}}, status: "failed", failure: "relay_disconnected"},
		"an end in the middle":          {host: &host{deaf: 100_000}, mail: long, status: "failed", failure: "relay_disconnected"},
		"silence in the middle":         {host: &host{stuck: 100_000}, mail: long, status: "failed", failure: "relay_disconnected"},
		"silence before the mail":       {host: &host{answers: map[string]string{"DATA": "hang"}}, limit: 2 * time.Second, status: "failed", failure: "relay_disconnected"},
		"an end instead of an answer":   {host: &host{answers: map[string]string{".": ""}}, status: "unknown", failure: "relay_no_answer"},
		"silence instead of an answer":  {host: &host{answers: map[string]string{".": "hang"}}, status: "unknown", failure: "relay_no_answer"},
		"nonsense instead of an answer": {host: &host{answers: map[string]string{".": "what?"}}, status: "unknown", failure: "relay_no_answer"},
		"too long an answer":            {host: &host{answers: map[string]string{".": strings.Repeat("250-x\r\n", 1<<18)}}, status: "unknown", failure: "relay_no_answer"},
		"a long answer":                 {host: &host{answers: map[string]string{".": "550 " + strings.Repeat("é", 400)}}, status: "failed", code: 550, failure: "relay_refused", message: strings.Repeat("é", 299) + "…"},
		"no SMTPUTF8 for a recipient":   {host: &host{extensions: []string{"8BITMIME"}}, to: "münze@example.org", status: "failed", failure: "smtputf8_missing"},
		"no SMTPUTF8 for a header":      {host: &host{extensions: []string{"8BITMIME"}}, mail: []byte("A: é\r\n\r\n"), status: "failed", failure: "smtputf8_missing"},
		"no 8BITMIME":                   {host: &host{extensions: []string{"SIZE"}}, mail: []byte("A: b\r\n\r\n\xff\r\n"), status: "failed", failure: "eightbit_missing"},
		"no room":                       {host: &host{extensions: []string{"SIZE 10"}}, status: "failed", failure: "message_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			if c.host.silent = cancel; c.limit > 0 {
				c.host.silent = nil
			}
			mailer := c.host.listen(t)
			to, mail := c.to, c.mail
			if to == "" {
				to = "dev@example.org"
			}
			if mail == nil {
				mail = []byte(text)
			}
			pass := func() (r hookglass.Relayed) {
				if c.limit > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), c.limit)
					defer cancel()
				}
				r, _ = mailer.Pass(ctx, []string{to}, mail)
				return r
			}
			r := pass()
			for tries := 1; c.limit > 0 && !c.host.fell.Load() && tries < 10; tries++ { // on a busy machine its time can be over before
				r = pass()
			}
			if r.Status != c.status || r.Code != c.code || r.Message != c.message || r.Failure == nil || r.Failure.Code != c.failure {
				t.Errorf("%+v %+v", r, r.Failure)
			}
			_, _, whole := c.host.heard(t)
			if c.status == "unknown" != (whole && c.code == 0) {
				t.Errorf("the relay has the whole mail: %v", whole)
			}
			if c.failure == "recipient_refused" && !strings.Contains(r.Failure.Message, to) {
				t.Errorf("%q does not name the recipient", r.Failure.Message)
			}
		})
	}
}

func TestARelayThatIsNotThere(t *testing.T) {
	nobody := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	r, err := mailerTo(nobody, alert.Relay{Host: "127.0.0.1", Port: 25, From: "hooks@example.com"}).Pass(t.Context(), []string{"dev@example.org"}, []byte("a"))
	if r.Status != hookglass.ReleaseFailed || r.Failure.Code != "relay_unreachable" || err == nil || strings.Contains(r.Failure.Message, nobody.String()) {
		t.Errorf("%+v %+v, %v", r, r.Failure, err)
	}
}

// inbox is what a real server keeps.
type inbox struct {
	mu      sync.Mutex
	secured bool
	user    string
	from    string
	to      []string
	mail    []byte
}

func (b *inbox) NewSession(c *gosmtp.Conn) (gosmtp.Session, error) {
	_, secured := c.TLSConnectionState()
	b.mu.Lock()
	b.secured = secured
	b.mu.Unlock()
	return b, nil
}
func (b *inbox) AuthMechanisms() []string { return []string{sasl.Plain} }
func (b *inbox) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != "hunter2-secret" {
			return &gosmtp.SMTPError{Code: 535, Message: "the password " + password + " is wrong"}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.user = user
		return nil
	}), nil
}
func (b *inbox) Mail(from string, _ *gosmtp.MailOptions) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.user == "" {
		return gosmtp.ErrAuthRequired
	}
	b.from = from
	return nil
}
func (b *inbox) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = append(b.to, to)
	return nil
}
func (b *inbox) Data(r io.Reader) error {
	mail, err := io.ReadAll(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mail = mail
	return err
}
func (b *inbox) Reset()        {}
func (b *inbox) Logout() error { return nil }

// certificate is one for relay.example that this process trusts as it does its system's.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"relay.example"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file) // read at the first use of the system's, which is in this test
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TLS and the password are those of the mailer, whose other mail goes the same way.
func TestAMailIsPassedOnUnderTLSAndWithAPassword(t *testing.T) {
	config := &tls.Config{Certificates: []tls.Certificate{certificate(t)}}
	const raw = "Subject: a\r\n\r\n.b\r\n\xff\r\n"
	for name, c := range map[string]struct {
		port     int
		tls      *tls.Config
		host     string
		password string
		status   hookglass.ReleaseStatus
		failure  string
		code     int
	}{
		"STARTTLS":                  {port: 587, tls: config, host: "relay.example", password: "hunter2-secret", status: "sent"},
		"TLS from the start":        {port: 465, tls: config, host: "relay.example", password: "hunter2-secret", status: "sent"},
		"a wrong password":          {port: 587, tls: config, host: "relay.example", password: "hunter3-secret", status: "failed", failure: "relay_refused", code: 535},
		"no TLS":                    {port: 587, host: "relay.example", password: "hunter2-secret", status: "failed", failure: "relay_unreachable"},
		"another name":              {port: 587, tls: config, host: "other.example", password: "hunter2-secret", status: "failed", failure: "relay_unreachable"},
		"another name, TLS at once": {port: 465, tls: config, host: "other.example", password: "hunter2-secret", status: "failed", failure: "relay_unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			b := &inbox{}
			server := gosmtp.NewServer(b)
			server.AllowInsecureAuth, server.ErrorLog = true, quiet{}
			server.TLSConfig = c.tls
			addr := ln.Addr()
			if c.port == 465 {
				ln = tls.NewListener(ln, c.tls)
			}
			ended := make(chan error, 1)
			go func() { ended <- server.Serve(ln) }()
			t.Cleanup(func() {
				server.Close()
				<-ended
			})
			m := mailerTo(addr, alert.Relay{Host: c.host, Port: c.port, User: "app", Password: c.password, From: "hooks@bücher.example"})
			r, err := m.Pass(t.Context(), []string{"dev@example.org"}, []byte(raw))
			if r.Status != c.status || r.Failure != nil && (r.Failure.Code != c.failure || r.Code != c.code) {
				t.Fatalf("%+v %+v, %v", r, r.Failure, err)
			}
			if told := fmt.Sprint(r, r.Failure, err); strings.Contains(told, c.password) {
				t.Errorf("the password is told: %q", told)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if c.status == "sent" && (!b.secured || b.user != "app" || b.from != "hooks@xn--bcher-kva.example" || !slices.Equal(b.to, []string{"dev@example.org"}) || string(b.mail) != raw) {
				t.Errorf("%+v", b)
			}
		})
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}
