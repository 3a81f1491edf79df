package alert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"hookglass"
	"hookglass/internal/outbound"
)

// mailTimeout bounds a whole conversation with the relay.
const mailTimeout = 20 * time.Second

// Relay is a mail server that takes over mail for others.
type Relay struct {
	Host     string
	Port     int
	User     string // empty: no authentication
	Password string
	From     string
	// Dial connects to the relay and nowhere else, under the guard of outbound requests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Mailer sends mail through a relay.
type Mailer struct{ relay Relay }

// NewMailer returns a mailer. It uses TLS from the start on port 465. On other ports it upgrades the connection when
// the relay offers that, and insists on it before sending a password, unless the relay is this machine.
func NewMailer(r Relay) *Mailer { return &Mailer{r} }

// implicitTLS is the port of submission under TLS (RFC 8314, section 3.3).
const implicitTLS = 465

// partly is the failure of a mail that reached only some of its recipients.
type partly struct{ refused, of, code int }

func (p partly) Error() string {
	return fmt.Sprintf("the mail relay refused %d of %d addresses", p.refused, p.of)
}

// send sends a message to all recipients. When the relay refuses some for good, it sends to each of the others and
// returns partly. hops above 0 is sent as a header.
func (m *Mailer) send(ctx context.Context, to []string, msg hookglass.Message, hops int) error {
	mail, err := m.compose(to, msg, hops)
	if err != nil {
		return err
	}
	err = m.talk(ctx, mail)
	if mail.IsDelivered() {
		return nil // an error after that, as of a relay that does not wait for QUIT, is no reason to send it again
	}
	var refused *gomail.SendError
	if !errors.As(err, &refused) || refused.Reason != gomail.ErrSMTPRcptTo || refused.IsTemp() || len(to) < 2 {
		return err
	}
	each := make([]*gomail.Msg, len(to))
	for i := range to {
		if each[i], err = m.compose(to[i:i+1], msg, hops); err != nil {
			return err
		}
	}
	err = m.talk(ctx, each...)
	some := partly{of: len(to), code: refused.ErrorCode()}
	for _, mail := range each {
		if !mail.IsDelivered() {
			some.refused++
		}
	}
	switch some.refused {
	case 0:
		return nil
	case some.of:
		return err
	}
	return some
}

// talk sends mails in one conversation.
func (m *Mailer) talk(ctx context.Context, mails ...*gomail.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel() // which closes the connection
	client, err := m.client(m.until(ctx))
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, mails...)
}

// compose builds the mail for a message.
func (m *Mailer) compose(to []string, msg hookglass.Message, hops int) (*gomail.Msg, error) {
	mail := gomail.NewMsg()
	if err := mail.From(m.relay.From); err != nil {
		return nil, errors.New("the sender's address cannot be used")
	}
	if err := mail.To(to...); err != nil {
		return nil, errors.New("a recipient's address cannot be used")
	}
	subject := msg.Title
	if subject == "" {
		subject, _, _ = strings.Cut(msg.Text, "\n")
	}
	mail.Subject(oneLine(subject, 150))
	mail.SetDateWithValue(msg.At)
	mail.SetMessageIDWithValue(msg.ID + "@" + domainOf(m.relay.From))
	mail.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no vacation replies
	// The recipient may be an inbox of this service.
	if hops > 0 {
		mail.SetGenHeader(outbound.HopHeader, strconv.Itoa(hops))
	}
	mail.SetBodyString(gomail.TypeTextPlain, mailText(msg))
	return mail, nil
}

// until returns a dialler whose connections are closed when ctx ends: the library bounds the steps of a conversation,
// but not all of it.
func (m *Mailer) until(ctx context.Context) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(dialling context.Context, network, address string) (net.Conn, error) {
		conn, err := m.relay.Dial(dialling, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
}

// client returns an SMTP client for the relay that connects with connect.
func (m *Mailer) client(connect func(ctx context.Context, network, address string) (net.Conn, error)) (*gomail.Client, error) {
	tlsConfig := &tls.Config{ServerName: m.relay.Host, MinVersion: tls.VersionTLS12}
	dial := connect
	if m.relay.Port == implicitTLS {
		dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := connect(ctx, network, address)
			if err != nil {
				return nil, err
			}
			secured := tls.Client(conn, tlsConfig)
			if err := secured.HandshakeContext(ctx); err != nil {
				conn.Close()
				return nil, err
			}
			return secured, nil
		}
	}
	local := m.relay.Host == "localhost"
	if ip := net.ParseIP(m.relay.Host); ip != nil {
		local = ip.IsLoopback()
	}
	policy := gomail.TLSOpportunistic
	switch {
	case m.relay.Port == implicitTLS:
		policy = gomail.NoTLS // the connection is under TLS already
	case m.relay.User != "" && !local:
		policy = gomail.TLSMandatory
	}
	options := []gomail.Option{
		gomail.WithPort(m.relay.Port), gomail.WithTimeout(mailTimeout), gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(tlsConfig),
		gomail.WithDialContextFunc(dial), gomail.WithHELO(domainOf(m.relay.From)),
	}
	if m.relay.User != "" {
		kind := gomail.SMTPAuthPlain
		if local {
			kind = gomail.SMTPAuthPlainNoEnc
		}
		options = append(options, gomail.WithSMTPAuth(kind), gomail.WithUsername(m.relay.User), gomail.WithPassword(m.relay.Password))
	}
	client, err := gomail.NewClient(m.relay.Host, options...)
	if err != nil {
		return nil, errors.New("the mail relay is not configured correctly")
	}
	return client, nil
}

// mailFailure describes an error without the relay's own words, which may hold anything.
func mailFailure(err error) *hookglass.Failure {
	f := &hookglass.Failure{Code: "smtp_error", Message: "The mail relay could not be reached, or did not take the message."}
	if some, ok := errors.AsType[partly](err); ok {
		f.Message = fmt.Sprintf("The mail relay refused %d of %d addresses, with %d. The others were sent the message.", some.refused, some.of, some.code)
	}
	if sent, ok := errors.AsType[*gomail.SendError](err); ok && sent.ErrorCode() != 0 {
		f.Message = fmt.Sprintf("The mail relay answered %d.", sent.ErrorCode())
	}
	return f
}

func mailText(m hookglass.Message) string {
	var b strings.Builder
	b.WriteString(strings.ToValidUTF8(m.Text, "\uFFFD"))
	b.WriteString("\r\n\r\n")
	if m.EndpointID != "" {
		fmt.Fprintf(&b, "Endpoint: %s\r\n", m.EndpointID)
	}
	if m.EventID != "" {
		fmt.Fprintf(&b, "Request: %s\r\n", m.EventID)
	}
	fmt.Fprintf(&b, "Time: %s\r\n", m.At.UTC().Format(time.RFC3339))
	return b.String()
}

// oneLine makes a text fit a header line.
func oneLine(s string, most int) string {
	controls := func(r rune) bool { return r < ' ' || r == 0x7f }
	return shortened(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), controls), " "), most)
}

func domainOf(address string) string {
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		return strings.Trim(address[i+1:], "> ")
	}
	return "localhost"
}
