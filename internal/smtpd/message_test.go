package smtpd_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"hookglass"
	"hookglass/internal/smtpd"
)

func TestAMessageIsStoredByteForByte(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, message := range map[string]string{
		"an ordinary one":                  "From: a@b\r\nSubject: x\r\n\r\nHello\r\n",
		"empty":                            "",
		"no header":                        "just text\r\n",
		"no blank line":                    "Subject: x\r\n",
		"every byte":                       "Subject: x\r\n\r\n" + string(every) + "\r\n",
		"bare LF":                          "Subject: x\n\nHello\n.\nBye\n\r\n",
		"bare CR":                          "Subject: x\r\rHello\r.\rBye\r\n",
		"CR before CR LF":                  "x\r\r\n",
		"a dot behind a CR CR LF":          "x\r\r\n.y\r\n",
		"NUL":                              "\x00\r\n",
		"lines of dots":                    ".\r\n..\r\n...\r\n.x\r\n",
		"a dot and a CR that ends nothing": ".\rfoo\r\n",
		"a dot, CR and CR LF":              ".\r\r\n",
		"a line of 100,000":                strings.Repeat("x", 100_000) + "\r\n",
		"8 bit":                            "Subject: caf\xe9 \xff\xfe\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			_, addr := start(t, smtpd.Config{}, l)
			c := begun(t, addr, "inbox@mail.test")
			c.says("DATA", 354)
			c.send(stuffed(message) + ".\r\n")
			c.expect(250)
			c.begin("inbox@mail.test")
			c.send(fmt.Sprintf("BDAT %d LAST\r\n%s", len(message), message))
			c.expect(250)
			for _, m := range l.stored() {
				if string(m.Raw) != message {
					t.Errorf("stored %.200q, want %.200q", m.Raw, message)
				}
			}
			if n := len(l.stored()); n != 2 {
				t.Errorf("%d messages", n)
			}
		})
	}
}

// stuffed puts a dot before each line that begins with one (RFC 5321, section 4.5.2).
func stuffed(message string) string {
	if strings.HasPrefix(message, ".") {
		message = "." + message
	}
	return strings.ReplaceAll(message, "\r\n.", "\r\n..")
}

// What other servers took for the end of a message (CVE-2023-51764 to 51766), and what is none by RFC 5321, section
// 4.1.1.4.
func TestOnlyOneSequenceEndsAMessage(t *testing.T) {
	const smuggled = "MAIL FROM:<evil@example.org>\r\nRCPT TO:<second@mail.test>\r\nDATA\r\nevil\r\n"
	for _, end := range []string{
		"\n.\n", "\n.\r\n", "\r.\r", "\r.\r\n", "\r\n.\n", "\r\n.\r", "\r\n\x00.\r\n", "\r\n.\x00\r\n", "\n\r.\r\n", "\n.\r", "\r.\n", "\r\n.\r\r\n",
		"\r\n .\r\n", "\r\n. \r\n", "\r\n\t.\r\n", "\r\n..\r\n", "\r\n\n.\r\n", "\r\n.\n.\r\n", "\x00\n.\n", "\u0085.\u0085", "\u2028.\u2028", "\r\n.\r\x00\n",
	} {
		l := &ledger{}
		_, addr := start(t, smtpd.Config{}, l)
		c := begun(t, addr, "inbox@mail.test")
		c.says("DATA", 354)
		c.send("Subject: x\r\n\r\nfirst" + end + smuggled + "\r\n.\r\n")
		c.expect(250)
		c.says("QUIT", 221)
		c.closed()
		if mails := l.stored(); len(mails) != 1 || !bytes.Contains(mails[0].Raw, []byte("evil@example.org")) || len(mails[0].To) != 1 {
			t.Errorf("%q: %d messages", end, len(l.stored()))
		}
	}
}

func TestTheEndIsSeenHoweverTheBytesCome(t *testing.T) {
	message := "a\r\r\n..b\r\n.\rc\r\nd\r\n.\r\n"
	want := "a\r\r\n.b\r\n\rc\r\nd\r\n"
	for _, c := range []struct {
		name string
		r    io.Reader
	}{
		{"at once", strings.NewReader(message + "QUIT\r\n")},
		{"one by one", iotest.OneByteReader(strings.NewReader(message + "QUIT\r\n"))},
		{"by halves", iotest.HalfReader(strings.NewReader(message + "QUIT\r\n"))},
	} {
		got, err := io.ReadAll(smtpd.NewDataReader(c.r))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if got, err := io.ReadAll(iotest.OneByteReader(smtpd.NewDataReader(strings.NewReader(message)))); err != nil || string(got) != want {
			t.Errorf("read one by one: %q, %v", got, err)
		}
	}
}

// A message whose end did not come is no message.
func TestAMessageThatIsCutShortIsNotStored(t *testing.T) {
	for _, sent := range []string{"DATA\r\nhalf a message\r\n.", "DATA\r\nhalf", "BDAT 100 LAST\r\nhalf", "BDAT 4\r\nhalf", "BDAT 4\r\nhalfBDAT 100 LAST\r\nhalf", "BDAT 4\r\nhalfRSET\r\n", "BDAT 4\r\nhalfQUIT\r\n"} {
		l := &ledger{}
		_, addr := start(t, smtpd.Config{}, l)
		c := begun(t, addr, "inbox@mail.test")
		c.send(sent)
		c.nc.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c.r)
		if n := len(l.stored()); n != 0 {
			t.Errorf("%q: %d messages", sent, n)
		}
	}
}

func TestChunksMakeOneMessage(t *testing.T) {
	l := &ledger{}
	_, addr := start(t, smtpd.Config{}, l)
	c := begun(t, addr, "inbox@mail.test")
	c.send("BDAT 7\r\nx\r\n.\r\ny")
	c.expect(250)
	c.says("NOOP", 250)
	c.says("MAIL FROM:<other@example.org>", 503)
	c.says("RCPT TO:<second@mail.test>", 503)
	c.says("DATA", 503)
	c.send("BDAT 0\r\n")
	c.expect(250)
	c.send("bdat 3 last\r\n\r\nzMAIL FROM:<next@example.org>\r\n")
	if said := c.expect(250); !strings.Contains(said, "eml_") {
		t.Errorf("the answer %q names no event", said)
	}
	c.expect(250)
	if m := l.stored()[0]; string(m.Raw) != "x\r\n.\r\ny\r\nz" || m.From != "sender@example.org" || len(m.To) != 1 {
		t.Errorf("%q %+v", m.Raw, m)
	}
	// A chunk that comes out of order is read away, so that its bytes are no commands.
	c.send("RSET\r\nBDAT 21 LAST\r\nMAIL FROM:<e@x.org>\r\nNOOP\r\n")
	c.expect(250)
	c.expect(503)
	c.expect(250)
	for _, argument := range []string{"", " x", " -1", " 5 FIRST", " 1 LAST LAST"} {
		c := begun(t, addr, "inbox@mail.test")
		c.says("BDAT"+argument, 501)
		c.closed()
	}
	// One that is too long to be read away is answered, too.
	for _, begin := range []string{"NOOP", "MAIL FROM:<a@example.org>"} {
		_, addr := start(t, smtpd.Config{MaxMessageBytes: 1 << 10}, l)
		c := greeted(t, addr)
		c.says(begin, 250)
		c.send("BDAT 99999999999999999999 LAST\r\n" + strings.Repeat("x", 5<<10))
		c.expect(503)
		c.closed()
	}
}

// Who gives a message up between two chunks is answered, and may begin another.
func TestAMessageMayBeGivenUpBetweenChunks(t *testing.T) {
	l := &ledger{}
	_, addr := start(t, smtpd.Config{}, l)
	c := begun(t, addr, "inbox@mail.test")
	for _, command := range []string{"RSET", "EHLO client.test", "HELO client.test"} {
		c.send("BDAT 4\r\nhalf")
		c.expect(250)
		c.says(command, 250)
		c.begin("second@mail.test")
	}
	c.send("BDAT 5 LAST\r\nwhole")
	c.expect(250)
	if mails := l.stored(); len(mails) != 1 || string(mails[0].Raw) != "whole" || mails[0].To[0].Address != "second@mail.test" {
		t.Errorf("%d messages", len(mails))
	}
	c.begin("inbox@mail.test")
	c.send("BDAT 4\r\nhalf")
	c.expect(250)
	c.says("QUIT", 221)
	c.closed()
}

// RFC 3030, section 2: a chunk that fails is read away and answered so, and more of the message may be on its way.
func TestAChunkThatFailsEndsTheMessage(t *testing.T) {
	half := strings.Repeat("x", 6_000)
	for _, lmtp := range []bool{false, true} {
		l := &ledger{}
		cfg := smtpd.Config{MaxMessageBytes: 10_000}
		var c *client
		if lmtp {
			c = dial(t, startLMTP(t, cfg, l))
			c.expect(220)
			c.says("LHLO client.test", 250)
			c.begin("inbox@mail.test", "second@mail.test")
		} else {
			_, addr := start(t, cfg, l)
			c = begun(t, addr, "inbox@mail.test", "second@mail.test")
		}
		c.send("BDAT 6000\r\n" + half)
		c.expect(250)
		c.send("BDAT 6000\r\n" + half + "BDAT 6 LAST\r\nRSET\r\nNOOP\r\n")
		c.expect(552)
		c.expect(503)
		c.expect(250)
		c.begin("inbox@mail.test")
		c.send("BDAT 2 LAST\r\nhi")
		c.expect(250)
		if mails := l.stored(); len(mails) != 1 || string(mails[0].Raw) != "hi" || l.refused[inbox] != 1 || l.refused[second] != 1 {
			t.Errorf("%d messages, refused %v", len(mails), l.refused)
		}
	}
}

func TestAMessageMayComeInVeryManyChunks(t *testing.T) {
	const chunks = 3_000
	l := &ledger{}
	_, addr := start(t, smtpd.Config{}, l)
	c := begun(t, addr, "inbox@mail.test")
	chunk := "BDAT 1024\r\n" + strings.Repeat("x", 1024)
	go func() {
		for range chunks {
			if _, err := io.WriteString(c.nc, chunk); err != nil {
				return
			}
		}
		_, _ = io.WriteString(c.nc, "BDAT 0 LAST\r\n")
	}()
	for range chunks + 1 {
		c.expect(250)
	}
	if mails := l.stored(); len(mails) != 1 || len(mails[0].Raw) != chunks*1024 {
		t.Errorf("%d messages", len(mails))
	}
	c.begin("inbox@mail.test")
	go func() { // they bring nothing
		for range chunks {
			if _, err := io.WriteString(c.nc, "BDAT 1\r\nx"); err != nil {
				return
			}
		}
	}()
	for code := 250; code != 421; code, _ = c.reply() {
		if code != 250 {
			t.Fatal(code)
		}
	}
}

// The answer to a chunk does not wait for the bytes of the next, of which only the command is there.
func TestAChunkIsAnsweredWhenItIsThere(t *testing.T) {
	_, addr := start(t, smtpd.Config{}, &ledger{})
	c := begun(t, addr, "inbox@mail.test")
	c.send("BDAT 1\r\nxBDAT 1 LAST\r\n")
	c.expect(250)
	c.send("y")
	c.expect(250)
}

// pipes are connections within the process, on which time can be had without waiting.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if nc, ok := <-p; ok {
		return nc, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func TestAClientMayPauseBetweenChunksButNotForEver(t *testing.T) {
	for _, c := range []struct {
		pauses []time.Duration
		want   int
	}{
		{[]time.Duration{time.Minute}, 250},
		{[]time.Duration{time.Minute, 50 * time.Second}, 250},
		{[]time.Duration{119 * time.Second}, 250},
		{[]time.Duration{121 * time.Second}, 421},
		{[]time.Duration{110 * time.Second, 110 * time.Second}, 421},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &ledger{}
			s, ln := smtpd.New(smtpd.Config{Domain: "mail.test"}, l, discard()), make(pipes)
			go s.Serve(ln)
			ours, theirs := net.Pipe()
			ln <- theirs
			cl := &client{t, ours, bufio.NewReader(ours)}
			cl.expect(220)
			cl.says("EHLO client.test", 250)
			cl.begin("inbox@mail.test")
			// The command and the bytes by themselves, so that the bytes are waited for.
			chunk := func(command string) (code int) {
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for _, part := range []string{command, "x"} {
						_, _ = io.WriteString(ours, part) // the server may have left
					}
				}()
				code, _ = cl.reply()
				if code != 250 {
					ours.Close()
				}
				<-sent
				return code
			}
			code := 250
			for _, pause := range c.pauses {
				if code = chunk("BDAT 1\r\n"); code == 250 {
					time.Sleep(pause)
				}
			}
			if code == 250 {
				code = chunk("BDAT 1 LAST\r\n")
			}
			if code != c.want {
				t.Errorf("after pauses of %v: %d, want %d", c.pauses, code, c.want)
			}
			ours.Close()
			_ = s.Shutdown(t.Context())
		})
	}
}

func TestSizeHasALimit(t *testing.T) {
	const limit = 10_000
	cfg := smtpd.Config{MaxMessageBytes: limit}
	for _, over := range []int{-1, 0, 1, 2, 5 * limit} {
		message := strings.Repeat("x", limit+over-2) + "\r\n"
		want, refusals := 250, 0
		if over > 0 {
			want, refusals = 552, 1
		}
		for how, sent := range map[string]string{"DATA": message + ".\r\n", fmt.Sprintf("BDAT %d LAST", len(message)): message} {
			if over > 4*limit {
				continue // see below
			}
			l := &ledger{}
			_, addr := start(t, cfg, l)
			c := begun(t, addr, "inbox@mail.test", "second@mail.test", "inbox+x@mail.test")
			c.send(how + "\r\n")
			if how == "DATA" {
				c.expect(354)
			}
			c.send(sent)
			c.expect(want)
			if len(l.stored()) != 1-refusals || l.refused[inbox] != refusals || l.refused[second] != refusals {
				t.Errorf("%s of the limit %+d: %d stored, refused %v", how, over, len(l.stored()), l.refused)
			}
			c.says("NOOP", 250)
			c.begin("inbox@mail.test") // the connection is as good as new
		}
	}
	l := &ledger{}
	_, addr := start(t, cfg, l)
	c := greeted(t, addr)
	c.says("MAIL FROM:<a@example.org> SIZE=10000", 250)
	c.says("RSET", 250)
	for _, size := range []string{"10001", "99999999999", "99999999999999999999"} {
		c.says("MAIL FROM:<a@example.org> SIZE="+size, 552)
	}
	c.says("MAIL FROM:<a@example.org> SIZE=-1", 501)
	c.says("MAIL FROM:<a@example.org> SIZE=", 501)
	if len(l.refused) != 0 || l.reasons["too_large"] != 3 {
		t.Errorf("refused %v, counted %v", l.refused, l.reasons)
	}
	// A client that sends its commands together says whom the message was for.
	c.send("MAIL FROM:<a@example.org> SIZE=10001\r\nRCPT TO:<inbox@mail.test>\r\nDATA\r\n")
	c.expect(552)
	c.expect(503)
	c.expect(503)
	if l.refused[inbox] != 1 {
		t.Errorf("refused %v", l.refused)
	}
}

// Who sends for ever is told and cut off, whatever the message is made of.
func TestAnEndlessMessageIsCutOff(t *testing.T) {
	l := &ledger{}
	_, addr := start(t, smtpd.Config{MaxMessageBytes: 100_000}, l)
	c := begun(t, addr, "inbox@mail.test")
	c.says("DATA", 354)
	junk := bytes.Repeat([]byte("x"), 64<<10)
	go func() {
		for {
			if _, err := c.nc.Write(junk); err != nil {
				return
			}
		}
	}()
	c.expect(552)
	c.closed() // where it ends is not known, and nothing of it may be taken for a command
	if len(l.stored()) != 0 || l.refused[inbox] != 1 {
		t.Errorf("%d stored, refused %v", len(l.stored()), l.refused)
	}
}

func TestAMessageToSeveralIsOneArrival(t *testing.T) {
	l := &ledger{}
	_, addr := start(t, smtpd.Config{}, l)
	c := begun(t, addr, "inbox@mail.test", "INBOX+tag@MAIL.test", "second@mail.test")
	c.says("DATA", 354)
	c.send("Hello\r\n.\r\n")
	if said := c.expect(250); !strings.Contains(said, "and 1 more") {
		t.Errorf("the answer %q", said)
	}
	m := l.stored()[0]
	var to []string
	for _, r := range m.To {
		to = append(to, r.Address)
	}
	if !slices.Equal(to, []string{"inbox@mail.test", "INBOX+tag@MAIL.test", "second@mail.test"}) || m.Helo != "client.test" || m.Protocol != "ESMTP" || m.Client.String() != "127.0.0.1" {
		t.Errorf("%v %+v", to, m)
	}
}

// Otherwise a slow disk has a large message sent again and again to those who have it.
func TestTimeToStoreFollowsWhatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		s, ln := smtpd.New(smtpd.Config{Domain: "mail.test", CaptureTimeout: time.Second}, l, discard()), make(pipes)
		go s.Serve(ln)
		large := strings.Repeat(strings.Repeat("x", 1022)+"\r\n", 8<<10)
		for _, message := range []string{"Hello\r\n", large} {
			ours, theirs := net.Pipe()
			ln <- theirs
			c := &client{t, ours, bufio.NewReader(ours)}
			c.expect(220)
			c.says("EHLO client.test", 250)
			c.begin("inbox@mail.test", "inbox+tag@mail.test", "second@mail.test")
			c.says("DATA", 354)
			c.send(message + ".\r\n")
			c.expect(250)
			ours.Close()
		}
		_ = s.Shutdown(t.Context())
		if d := l.given[0]; d < time.Second || d > time.Second+time.Millisecond {
			t.Errorf("a small message had %v", d)
		}
		if d := l.given[1]; d != 3*time.Second { // 8 MiB for each of two endpoints
			t.Errorf("a large message had %v", d)
		}
	})
}

func TestWhatStorageCanNotTakeIsTriedAgain(t *testing.T) {
	unavailable := &hookglass.Error{Code: hookglass.CodeUnavailable}
	gone := hookglass.NotFound("endpoint")
	for name, c := range map[string]struct {
		keep func(int64) error
		want int
	}{
		"unavailable":                       {func(int64) error { return unavailable }, 451},
		"internal":                          {func(int64) error { return io.ErrClosedPipe }, 451},
		"busy":                              {func(int64) error { return &hookglass.Error{Code: hookglass.CodeRateLimited} }, 451},
		"one of two unavailable":            {func(e int64) error { return map[int64]error{second: unavailable}[e] }, 451},
		"one of two deleted meanwhile":      {func(e int64) error { return map[int64]error{second: gone}[e] }, 250},
		"both deleted meanwhile":            {func(int64) error { return gone }, 550},
		"one deleted and one not available": {func(e int64) error { return map[int64]error{inbox: gone, second: unavailable}[e] }, 451},
	} {
		t.Run(name, func(t *testing.T) {
			_, addr := start(t, smtpd.Config{}, &ledger{keep: c.keep})
			conn := begun(t, addr, "inbox@mail.test", "second@mail.test")
			conn.says("DATA", 354)
			conn.send("Hello\r\n.\r\n")
			conn.expect(c.want)
			conn.says("NOOP", 250)
		})
	}
}
