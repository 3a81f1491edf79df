package smtpd

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"hookglass"
	"hookglass/internal/capture"
)

// inbox is the endpoint that a client has signed in to. It catches all mail that the client sends to addresses of other
// servers: a program under test writes to its own users.
type inbox struct {
	signedIn bool
	local    string // the local part of its address, in lower case
}

// Replies of the exchange (RFC 4954, sections 4 and 6).
var (
	replySignedIn      = reply{235, "2.7.0", "Signed in; mail for other addresses is caught here"}
	replyNoMechanism   = reply{504, "5.5.4", "The mechanism is not known; PLAIN and LOGIN are"}
	replyNoInbox       = reply{535, "5.7.8", "The user name is no address of an inbox here"}
	replyNoSignInNow   = reply{454, "4.7.0", "Nobody can be signed in now; try again later"}
	replyAuthTLS       = reply{538, "5.7.11", "STARTTLS first"}
	replyAuthAlready   = reply{503, "5.5.1", "You are signed in already"}
	replyAuthBase64    = reply{501, "5.5.2", "That is not base64"}
	replyAuthGivenUp   = reply{501, "5.7.0", "Given up"}
	replyAuthMalformed = reply{501, "5.5.2", "The answer is malformed"}
)

// errAnswered ends an exchange in which the client was already told why.
var errAnswered = errors.New("the exchange has ended")

// offersSignIn reports whether the client may sign in now. If TLS is offered, that is only after STARTTLS.
func (c *conn) offersSignIn() bool { return c.server.cfg.SignIn && !c.lmtp && !c.offersTLS() }

// auth serves AUTH. The user name is the address of an inbox, or its local part. The password is read and ignored:
// inboxes have none, because anybody who knows the address can send to it without signing in.
func (c *conn) auth(rest string) error {
	switch {
	case !c.server.cfg.SignIn || c.lmtp:
		return c.fault(replyNoAuth)
	case c.greeted == "":
		return c.fault(replyGreetFirst)
	case c.signedIn:
		return c.fault(replyAuthAlready)
	case c.begun:
		return c.fault(replyNested)
	case !c.offersSignIn():
		return c.fault(replyAuthTLS)
	}
	mechanism, initial, _ := strings.Cut(rest, " ")
	var name string
	var err error
	switch strings.ToUpper(mechanism) {
	case "PLAIN":
		name, err = c.authPlain(initial)
	case "LOGIN":
		name, err = c.authLogin(initial)
	default:
		return c.fault(replyNoMechanism)
	}
	switch err {
	case nil:
		return c.signIn(name)
	case errAnswered:
		return nil
	}
	return err
}

// endAuth replies to a fault in the exchange.
func (c *conn) endAuth(r reply) error {
	if err := c.fault(r); err != nil {
		return err
	}
	return errAnswered
}

// authPlain reads the user name of a PLAIN exchange (RFC 4616).
func (c *conn) authPlain(initial string) (name string, err error) {
	message, err := c.authAnswer("", initial)
	if err != nil {
		return "", err
	}
	fields := strings.Split(message, "\x00") // whom to act for, who signs in, the password
	if len(fields) != 3 {
		return "", c.endAuth(replyAuthMalformed)
	}
	return fields[1], nil
}

// authLogin reads the user name of a LOGIN exchange, which no RFC describes: two questions, two answers.
func (c *conn) authLogin(initial string) (name string, err error) {
	if name, err = c.authAnswer("Username:", initial); err != nil {
		return "", err
	}
	_, err = c.authAnswer("Password:", "")
	return name, err
}

// authAnswer decodes the answer to a challenge. It sends the challenge unless the command already came with the answer,
// given.
func (c *conn) authAnswer(challenge, given string) (string, error) {
	if given == "" {
		c.say(reply{code: 334, text: base64.StdEncoding.EncodeToString([]byte(challenge))})
		line, err := c.readCommand()
		switch {
		case err != nil:
			return "", err
		case line == "*":
			return "", c.endAuth(replyAuthGivenUp)
		}
		given = line
	} else if given == "=" { // an empty answer (RFC 4954, section 4)
		return "", nil
	}
	answer, err := base64.StdEncoding.DecodeString(given)
	if err != nil {
		return "", c.endAuth(replyAuthBase64)
	}
	return string(answer), nil
}

// signIn signs the client in to the inbox whose address, or local part, is name.
func (c *conn) signIn(name string) error {
	local, domain, whole := strings.Cut(name, "@")
	if local == "" || whole && !sameDomain(domain, c.server.cfg.Domain) {
		return c.fault(replyNoInbox)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.server.cfg.CaptureTimeout)
	defer cancel()
	switch _, err := c.server.capturer.AdmitMail(ctx, mailbox(local)); {
	case err == nil:
		c.inbox = inbox{signedIn: true, local: mailbox(local)}
		c.say(replySignedIn)
		return nil
	case hookglass.Is(err, hookglass.CodeNotFound), hookglass.Is(err, hookglass.CodeGone):
		return c.fault(replyNoInbox)
	default:
		c.say(replyNoSignInNow)
		return nil
	}
}

// admit finds the endpoint for a recipient: the one with that address, or else the inbox that the client has signed in
// to.
func (c *conn) admit(ctx context.Context, p path) (capture.Target, error) {
	if sameDomain(p.domain, c.server.cfg.Domain) {
		target, err := c.server.capturer.AdmitMail(ctx, mailbox(p.local))
		if !c.signedIn || !hookglass.Is(err, hookglass.CodeNotFound) {
			return target, err
		}
	}
	return c.server.capturer.AdmitMail(ctx, c.local)
}
