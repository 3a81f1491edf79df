package alert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	netmail "net/mail"
	"net/textproto"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"hookglass"
)

// Failure codes of mail that is passed on.
const (
	passUnreachable = "relay_unreachable"  // the conversation never began
	passRefused     = "relay_refused"      // it refused us, the sender, or the mail
	passRecipient   = "recipient_refused"  // it refused one of the recipients, so nobody was sent anything
	passTooLarge    = "message_too_large"  // larger than the SIZE that it announces
	passNoUTF8      = "smtputf8_missing"   // the mail needs SMTPUTF8, which it does not offer
	passNo8Bit      = "eightbit_missing"   // likewise 8BITMIME
	passLost        = "relay_disconnected" // before it had all of the mail
	passUnanswered  = "relay_no_answer"    // once it had all of it
)

// maxHeard bounds what a relay may say in one conversation, in bytes.
const maxHeard = 1 << 20

// brief is a connection that bounds how much the other end may send.
type brief struct {
	net.Conn
	left int
}

func (b *brief) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("the relay says too much")
	}
	n, err := b.Conn.Read(into[:min(len(into), b.left)])
	b.left -= n
	return n, err
}

// maxReply bounds what is kept of an answer of the relay, in characters.
const maxReply = 300

// From returns the sender's address, with its domain in ASCII.
func (m *Mailer) From() netmail.Address {
	a, err := netmail.ParseAddress(m.relay.From)
	if err != nil {
		return netmail.Address{Address: m.relay.From}
	}
	at := strings.LastIndexByte(a.Address, '@')
	if ascii, err := idna.Lookup.ToASCII(a.Address[at+1:]); err == nil {
		a.Address = a.Address[:at+1] + ascii
	}
	return *a
}

// Pass hands a mail, given in consecutive parts, to the relay: for all of the recipients, whose domains are ASCII, or,
// when the relay refuses one, for none. The mail is not changed, except that every line ends in CR LF, since SMTP has
// no other line end (RFC 5321, section 2.3.8). The error is for the log: it says what went wrong besides the relay's
// answer.
//
// When the relay had the whole mail and did not answer, the outcome is unknown. Otherwise it is sent or failed.
func (m *Mailer) Pass(ctx context.Context, to []string, parts ...[]byte) (hookglass.Relayed, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which closes the connection
	var conn net.Conn
	dial := m.until(ctx)
	client, err := m.client(func(dialling context.Context, network, address string) (net.Conn, error) {
		plain, err := dial(dialling, network, address)
		if err != nil {
			return nil, err
		}
		conn = &brief{plain, maxHeard}
		return conn, nil
	})
	if err != nil {
		return unsent(passUnreachable, "The mail relay is not configured correctly."), err
	}
	open, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return m.unopened(err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	p := &passing{Mailer: m, text: open.Text, offers: open.Extension}
	return p.run(to, parts)
}

// unopened returns the outcome when the conversation could not begin. The relay's words about this installation go to
// its operator only.
func (m *Mailer) unopened(err error) (hookglass.Relayed, error) {
	if answered, ok := errors.AsType[*textproto.Error](err); ok {
		r := unsent(passRefused, fmt.Sprintf("The mail relay answered %d before it was told of any mail.", answered.Code))
		r.Code = answered.Code
		return r, errors.New(m.reply(err.Error()))
	}
	return unsent(passUnreachable, "The mail relay could not be reached, or not in the way that its operator wants; the reason is in the service's log."), errors.New(m.reply(err.Error()))
}

// passing is one mail on its way.
type passing struct {
	*Mailer
	text   *textproto.Conn
	offers func(extension string) (bool, string)
}

func (p *passing) run(to []string, parts [][]byte) (hookglass.Relayed, error) {
	from := p.From().Address
	arguments, refused := p.arguments(measure(parts), from, to)
	if refused != nil {
		p.quit()
		return *refused, nil
	}
	if r, err := p.ask(250, "MAIL FROM:<"+from+">"+arguments); r != nil {
		return *r, err
	}
	for _, address := range to {
		if r, err := p.ask(25, "RCPT TO:<"+address+">"); r != nil {
			if r.Code != 0 {
				p.quit()
				r.Failure = &hookglass.Failure{Code: passRecipient, Message: fmt.Sprintf("The mail relay refused %s, with %d, so the mail was sent to nobody.", address, r.Code)}
			}
			return *r, err
		}
	}
	if r, err := p.ask(354, "DATA"); r != nil {
		return *r, err
	}
	if err := p.write(parts); err != nil {
		return unsent(passLost, lostText), err
	}
	// From here until the answer it is unknown whether the relay takes the mail.
	_, err := io.WriteString(p.text.W, ".\r\n")
	if err == nil {
		err = p.text.W.Flush()
	}
	unknown := hookglass.Relayed{
		Status:  hookglass.ReleaseUnknown,
		Failure: &hookglass.Failure{Code: passUnanswered, Message: "The mail relay had the whole mail and did not answer, so it is not known whether it took it."},
	}
	if err != nil {
		return unknown, err
	}
	code, message, err := p.text.ReadResponse(250)
	if r := p.answered(err); r != nil && r.Code == 0 {
		return unknown, err
	} else if r != nil {
		return *r, nil
	}
	p.quit()
	return hookglass.Relayed{Status: hookglass.ReleaseSent, Code: code, Message: p.reply(message)}, nil
}

// arguments returns the parameters of the MAIL command, as far as the relay's extensions allow, or the outcome when the
// mail needs an extension that the relay does not offer or is too large.
func (p *passing) arguments(s size, from string, to []string) (arguments string, refused *hookglass.Relayed) {
	refuse := func(code, message string) (string, *hookglass.Relayed) {
		return "", new(unsent(code, message))
	}
	international := s.utf8
	for _, address := range append([]string{from}, to...) {
		international = international || !isASCII([]byte(address))
	}
	if offered, _ := p.offers("SMTPUTF8"); international && !offered {
		return refuse(passNoUTF8, "The mail relay does not offer SMTPUTF8, which letters beyond ASCII in addresses and in the mail's header need.")
	}
	if offered, _ := p.offers("8BITMIME"); s.eightBit {
		if !offered {
			return refuse(passNo8Bit, "The mail relay does not offer 8BITMIME, which a mail with bytes beyond ASCII needs.")
		}
		arguments += " BODY=8BITMIME"
	}
	if international {
		arguments += " SMTPUTF8"
	}
	if offered, limit := p.offers("SIZE"); offered {
		if most, err := strconv.ParseInt(limit, 10, 64); err == nil && most > 0 && s.bytes > most {
			return refuse(passTooLarge, fmt.Sprintf("The mail has %d bytes, and the mail relay takes %d at most.", s.bytes, most))
		}
		arguments += " SIZE=" + strconv.FormatInt(s.bytes, 10)
	}
	return arguments, nil
}

// ask sends a command. It returns nil when the answer is the expected one.
func (p *passing) ask(expected int, command string) (*hookglass.Relayed, error) {
	err := p.text.PrintfLine("%s", command)
	if err == nil {
		_, _, err = p.text.ReadResponse(expected)
	}
	r := p.answered(err)
	if r == nil || r.Code != 0 {
		return r, nil
	}
	return r, err
}

// answered returns the outcome of a mail that got this answer, or nil for the expected one.
func (p *passing) answered(err error) *hookglass.Relayed {
	if err == nil {
		return nil
	}
	answer, ok := errors.AsType[*textproto.Error](err)
	if !ok {
		return new(unsent(passLost, lostText))
	}
	r := unsent(passRefused, fmt.Sprintf("The mail relay answered %d.", answer.Code))
	r.Code, r.Message = answer.Code, p.reply(answer.Msg)
	return &r
}

// write writes the mail as DATA requires (RFC 5321, section 4.5.2), without the final dot.
func (p *passing) write(parts [][]byte) error {
	w := p.text.W
	for line := range lines(parts) {
		if len(line) > 0 && line[0] == '.' {
			w.WriteByte('.')
		}
		w.Write(line)
		if _, err := w.WriteString("\r\n"); err != nil { // also of earlier writes: the writer keeps its first error
			return err
		}
	}
	return w.Flush()
}

// quit ends the conversation; the answer does not matter.
func (p *passing) quit() { p.text.PrintfLine("QUIT") }

// reply returns an answer of the relay for display: one clean line, without the password if the relay repeats it.
func (m *Mailer) reply(text string) string {
	if m.relay.Password != "" {
		text = strings.ReplaceAll(text, m.relay.Password, hookglass.Redacted)
	}
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return oneLine(text, maxReply)
}

const lostText = "The mail relay did not answer in time, or the connection to it ended, before it had the whole mail."

func unsent(code, message string) hookglass.Relayed {
	return hookglass.Relayed{Status: hookglass.ReleaseFailed, Failure: &hookglass.Failure{Code: code, Message: message}}
}

// size is what a relay may need to know about a mail in advance.
type size struct {
	bytes    int64 // with CR LF after each line, without dot-stuffing
	eightBit bool
	utf8     bool // its header has letters beyond ASCII, which only SMTPUTF8 allows (RFC 6532)
}

func measure(parts [][]byte) (s size) {
	header := true
	for line := range lines(parts) {
		s.bytes += int64(len(line)) + 2
		header = header && len(line) > 0
		if !isASCII(line) {
			s.eightBit = true
			s.utf8 = s.utf8 || header && utf8.Valid(line)
		}
	}
	return s
}

// lines yields the lines of a mail without their ends: CR LF, and CR or LF alone.
func lines(parts [][]byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, rest := range parts {
			for len(rest) > 0 {
				line := rest
				if end := bytes.IndexAny(rest, "\r\n"); end >= 0 {
					line = rest[:end]
					if rest = rest[end:]; bytes.HasPrefix(rest, []byte("\r\n")) {
						rest = rest[1:]
					}
					rest = rest[1:]
				} else {
					rest = nil
				}
				if !yield(line) {
					return
				}
			}
		}
	}
}

func isASCII(b []byte) bool {
	return bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
