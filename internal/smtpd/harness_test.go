package smtpd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/smtpd"
)

// ledger is a capturer that has mailboxes in.test and in two, and remembers what it was given.
type ledger struct {
	mu      sync.Mutex
	mails   []*capture.Mail
	given   []time.Duration // how long it had for each
	refused map[int64]int
	reasons map[string]int
	admit   func(localPart string) error                    // a fault of admission; nil: none
	keep    func(endpoint int64) error                      // a fault of storage; nil: none
	rcpt    func(from, to string) (*hookglass.Reply, error) // what a script says to a recipient; nil: nothing
	data    func(endpoint int64) *hookglass.Reply           // and to a message
	entered chan struct{}                                   // told when a mail is being stored; nil: nobody is
	release chan struct{}                                   // waited for before it is
}

// The mailboxes and their endpoints.
const inbox, second = 1, 2

func (l *ledger) AdmitMail(_ context.Context, localPart string) (t capture.Target, err error) {
	if l.admit != nil {
		if err := l.admit(localPart); err != nil {
			return t, err
		}
	}
	switch localPart {
	case "inbox":
		t.Endpoint.Num = inbox
	case "second":
		t.Endpoint.Num = second
	case "disabled":
		return t, hookglass.Errorf(hookglass.CodeGone, "This endpoint is disabled.")
	default:
		return t, hookglass.NotFound("endpoint")
	}
	return t, nil
}

func (l *ledger) AnswerRecipient(_ context.Context, _ capture.Target, from, to string) (*hookglass.Reply, error) {
	if l.rcpt == nil {
		return nil, nil
	}
	return l.rcpt(from, to)
}

func (l *ledger) CaptureMail(ctx context.Context, m *capture.Mail) []capture.Delivered {
	end, _ := ctx.Deadline()
	given := time.Until(end)
	if l.entered != nil {
		l.entered <- struct{}{}
		<-l.release
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delivered := make([]capture.Delivered, len(m.To))
	kept := false
	for i, r := range m.To {
		if l.keep != nil {
			delivered[i].Err = l.keep(r.Target.Endpoint.Num)
		}
		if delivered[i].Err == nil {
			delivered[i].Event = hookglass.EventID(fmt.Sprintf("eml_%d_%d", len(l.mails), r.Target.Endpoint.Num))
			kept = true
			if l.data != nil {
				delivered[i].Reply = l.data(r.Target.Endpoint.Num)
			}
		}
	}
	if kept {
		l.mails, l.given = append(l.mails, m), append(l.given, given)
	}
	return delivered
}

func (l *ledger) Refuse(_ context.Context, t capture.Target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused == nil {
		l.refused = map[int64]int{}
	}
	l.refused[t.Endpoint.Num]++
}

func (l *ledger) stored() []*capture.Mail {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mails
}

func (l *ledger) countRefusal(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reasons == nil {
		l.reasons = map[string]int{}
	}
	l.reasons[reason]++
}

// start serves SMTP for the domain mail.test and returns the address.
func start(t *testing.T, cfg smtpd.Config, l smtpd.Capturer) (*smtpd.Server, string) {
	t.Helper()
	return serve(t, cfg, l, (*smtpd.Server).Serve)
}

func startLMTP(t *testing.T, cfg smtpd.Config, l smtpd.Capturer) string {
	t.Helper()
	_, addr := serve(t, cfg, l, (*smtpd.Server).ServeLMTP)
	return addr
}

func serve(t *testing.T, cfg smtpd.Config, l smtpd.Capturer, f func(*smtpd.Server, net.Listener) error) (*smtpd.Server, string) {
	t.Helper()
	return serveLogged(t, cfg, l, f, discard())
}

func serveLogged(t *testing.T, cfg smtpd.Config, l smtpd.Capturer, f func(*smtpd.Server, net.Listener) error, log *slog.Logger) (*smtpd.Server, string) {
	t.Helper()
	if cfg.Domain == "" {
		cfg.Domain = "mail.test"
	}
	if known, ok := l.(*ledger); ok {
		cfg.Refused = known.countRefusal
	}
	s := smtpd.New(cfg, l, log)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- f(s, ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; !errors.Is(err, smtpd.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return s, ln.Addr().String()
}

// client speaks SMTP byte by byte.
type client struct {
	t  *testing.T
	nc net.Conn
	r  *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(2 * time.Minute))
	return &client{t, nc, bufio.NewReader(nc)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.nc, text); err != nil {
		c.t.Fatalf("send %.60q: %v", text, err)
	}
}

// reply reads one reply, all its lines.
func (c *client) reply() (code int, lines []string) {
	c.t.Helper()
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			c.t.Fatalf("read a reply: %v, after %q", err, lines)
		}
		if !strings.HasSuffix(line, "\r\n") || len(line) < 6 {
			c.t.Fatalf("the line %q", line)
		}
		lines = append(lines, line[4:len(line)-2])
		if line[3] == ' ' {
			code, _ = strconv.Atoi(line[:3])
			return code, lines
		}
	}
}

// expect reads one reply, which has the code, and returns its last line.
func (c *client) expect(code int) string {
	c.t.Helper()
	got, lines := c.reply()
	if got != code {
		c.t.Fatalf("%d %q, want %d", got, lines, code)
	}
	return lines[len(lines)-1]
}

// says sends a line and reads its reply.
func (c *client) says(line string, code int) string {
	c.t.Helper()
	c.send(line + "\r\n")
	return c.expect(code)
}

// closed reads to the end of the connection, which comes.
func (c *client) closed() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.r); err != nil || len(rest) > 0 {
		c.t.Errorf("the connection goes on: %q, %v", rest, err)
	}
}

// greeted is a connection that has said hello.
func greeted(t *testing.T, addr string) *client {
	t.Helper()
	c := dial(t, addr)
	c.expect(220)
	c.says("EHLO client.test", 250)
	return c
}

// begun is a connection with a message begun for the recipients.
func begun(t *testing.T, addr string, to ...string) *client {
	t.Helper()
	c := greeted(t, addr)
	c.begin(to...)
	return c
}

func (c *client) begin(to ...string) {
	c.t.Helper()
	c.says("MAIL FROM:<sender@example.org>", 250)
	for _, r := range to {
		c.says("RCPT TO:<"+r+">", 250)
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
