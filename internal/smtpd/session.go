package smtpd

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/intake"
)

// envelope is what the client said about a message before sending it.
type envelope struct {
	begun     bool // MAIL was accepted
	oversized bool // MAIL was refused for its SIZE
	from      string
	to        []capture.Recipient
	scripted  bool // a script refused a recipient of this mail
}

func (c *conn) reset() {
	c.envelope = envelope{}
	c.lease.Release()
}

// command serves one command. An error ends the connection.
func (c *conn) command(line string) error {
	if c.commands++; c.commands > maxCommands {
		return replyCommands
	}
	verb, rest := splitCommand(line)
	switch verb {
	case "EHLO", "HELO", "LHLO":
		return c.greet(verb, rest)
	case "MAIL":
		return c.mail(rest)
	case "RCPT":
		return c.rcpt(rest)
	case "DATA":
		return c.data(rest)
	case "BDAT":
		return c.bdat(rest)
	case "RSET":
		c.reset()
		c.say(replyOK)
	case "NOOP":
		c.say(replyOK)
	case "VRFY":
		c.say(reply{252, "2.5.0", "Send a mail and see"})
	case "HELP":
		commands := "EHLO HELO MAIL RCPT DATA BDAT RSET NOOP VRFY QUIT"
		if c.offersTLS() {
			commands += " STARTTLS"
		}
		if c.offersSignIn() {
			commands += " AUTH"
		}
		c.say(reply{214, "2.0.0", commands})
	case "QUIT":
		c.say(replyBye)
		return errEnd
	case "STARTTLS":
		switch {
		case c.server.cfg.TLS == nil:
			return c.fault(replyNotHere)
		case c.secure:
			return c.fault(replyTLSAlready)
		case rest != "":
			return c.fault(replySyntax)
		}
		return c.startTLS()
	case "AUTH":
		return c.auth(rest)
	case "EXPN", "TURN", "ETRN", "SEND", "SOML", "SAML":
		return c.fault(replyNotHere)
	default:
		return c.fault(replyUnknown)
	}
	return nil
}

func (c *conn) greet(verb, name string) error {
	switch {
	case (verb == "LHLO") != c.lmtp:
		return c.fault(replyUnknown) // RFC 2033, section 4.1
	case name == "" || len(name) > 255:
		return c.fault(replySyntax)
	}
	c.reset()
	c.helo = name
	if verb == "HELO" {
		c.greeted = "SMTP"
		c.say(reply{code: 250, text: c.server.cfg.Domain})
		return nil
	}
	c.greeted = "ESMTP"
	if c.lmtp {
		c.greeted = "LMTP"
	}
	lines := []string{
		c.server.cfg.Domain, "PIPELINING", "SIZE " + strconv.FormatInt(c.server.cfg.MaxMessageBytes, 10), "8BITMIME", "SMTPUTF8", "CHUNKING",
		"LIMITS RCPTMAX=" + strconv.Itoa(c.server.cfg.MaxRecipients),
	}
	if c.offersTLS() {
		lines = append(lines, "STARTTLS")
	}
	if c.offersSignIn() {
		lines = append(lines, "AUTH PLAIN LOGIN")
	}
	for _, l := range lines {
		_, _ = c.out.WriteString("250-" + l + "\r\n")
	}
	c.say(reply{code: 250, text: "ENHANCEDSTATUSCODES"})
	return nil
}

// offersTLS reports whether STARTTLS is available.
func (c *conn) offersTLS() bool { return c.server.cfg.TLS != nil && !c.secure }

// protocol returns the name of the transport, such as ESMTPS (RFC 3848).
func (c *conn) protocol() string {
	name := c.greeted
	if c.secure {
		name += "S"
	}
	if c.signedIn && c.greeted == "ESMTP" {
		name += "A"
	}
	return name
}

func (c *conn) mail(rest string) error {
	switch {
	case c.greeted == "":
		return c.fault(replyGreetFirst)
	case c.begun:
		return c.fault(replyNested)
	}
	c.oversized = false
	p, err := parsePath(rest, "FROM:")
	if err != nil {
		return c.fault(refusalOfPath(err))
	}
	for name, value := range p.params {
		switch name {
		case "SIZE":
			size, ok := parseSize(value)
			if !ok {
				return c.fault(replySyntax)
			}
			if size > c.server.cfg.MaxMessageBytes {
				c.oversized = true
				c.refused(reasonTooLarge, "from", p.address, "size", value)
				c.say(replyTooLarge)
				return nil
			}
		case "BODY":
			if v := strings.ToUpper(value); v != "7BIT" && v != "8BITMIME" {
				return c.fault(replySyntax)
			}
		case "SMTPUTF8":
			if value != "" {
				return c.fault(replySyntax)
			}
		case "AUTH": // the author, according to the client (RFC 4954, section 5)
			if !c.offersSignIn() {
				return c.fault(replyBadParam)
			}
		default:
			return c.fault(replyBadParam)
		}
	}
	c.begun, c.from = true, p.address
	c.say(reply{250, "2.1.0", "OK"})
	return nil
}

func refusalOfPath(err error) reply {
	if err == errParam {
		return replySyntax
	}
	return replyAddress
}

func (c *conn) rcpt(rest string) error {
	if !c.begun && !c.oversized {
		return c.fault(replyMailFirst)
	}
	p, err := parsePath(rest, "TO:")
	switch {
	case err != nil:
		return c.fault(refusalOfPath(err))
	case p.address == "":
		return c.fault(replyAddress)
	case len(p.params) > 0:
		return c.fault(replyBadParam)
	case len(c.to) >= c.server.cfg.MaxRecipients:
		c.say(replyTooMany)
		return nil
	case !c.signedIn && !sameDomain(p.domain, c.server.cfg.Domain):
		return c.refuseRcpt(p.address, replyRelay, reasonRelay, nil)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.server.cfg.CaptureTimeout)
	defer cancel()
	target, err := c.admit(ctx, p)
	switch {
	case err != nil:
		r, reason := replyOf(err)
		return c.refuseRcpt(p.address, r, reason, err)
	case c.oversized:
		// A pipelining client names the recipients of the message nevertheless: count the refusal for their endpoints.
		c.server.capturer.Refuse(ctx, target)
		return c.fault(replyMailFirst)
	}
	scripted, err := c.server.capturer.AnswerRecipient(ctx, target, c.from, p.address)
	switch {
	case err != nil:
		r, reason := replyOf(err)
		return c.refuseRcpt(p.address, r, reason, err)
	case scripted != nil && scripted.Status != 250:
		c.scripted = true
		c.refused(reasonScript, "from", c.from, "to", p.address)
		return c.give(scripted)
	}
	c.to = append(c.to, capture.Recipient{Address: p.address, Target: target})
	if scripted != nil {
		return c.give(scripted)
	}
	c.say(reply{250, "2.1.5", "OK"})
	return nil
}

func (c *conn) refuseRcpt(address string, r reply, reason string, err error) error {
	details := []any{"from", c.from, "to", address}
	if err != nil && reason != reasonUnknown && reason != reasonDisabled {
		details = append(details, "error", err)
	}
	c.refused(reason, details...)
	c.say(r)
	if c.refusals++; c.refusals >= maxRefusals {
		return replyErrors
	}
	return nil
}

// refused counts and logs a refusal of this connection.
func (c *conn) refused(reason string, details ...any) {
	c.server.log.refused(reason, append([]any{"client", addrText(c.client), "helo", c.helo}, details...)...)
}

func (c *conn) data(rest string) error {
	switch {
	case rest != "":
		return c.fault(replySyntax)
	case !c.begun:
		return c.fault(replyMailFirst)
	case len(c.to) == 0:
		return c.noRecipient()
	}
	c.say(reply{code: 354, text: "Send the message; CR LF . CR LF ends it"})
	// Send the 354 before anything more is read: flush would hold it back if input is waiting.
	if err := c.out.Flush(); err != nil {
		return err
	}
	return c.receive(&dataReader{r: c.in})
}

// noRecipient answers a message without recipients. It is not a fault of the client if it pipelined and a script
// refused all of them.
func (c *conn) noRecipient() error {
	if c.scripted {
		c.say(replyRcptFirst)
		return nil
	}
	return c.fault(replyRcptFirst)
}

func (c *conn) bdat(rest string) error {
	size, last, ok := parseChunk(rest)
	if !ok {
		return replySyntax // the chunk's end is unknown, so nothing that follows can be read as a command
	}
	chunks := &chunkReader{conn: c, left: size, last: last, rest: c.server.cfg.CommandTimeout}
	if !c.begun || len(c.to) == 0 {
		chunks.last = true // read this chunk only
		switch err := c.discard(chunks); {
		case err == intake.ErrTooLarge && c.begun:
			return replyRcptFirst
		case err == intake.ErrTooLarge:
			return replyMailFirst
		case err != nil:
			return err
		}
		if c.begun {
			return c.noRecipient()
		}
		return c.fault(replyMailFirst)
	}
	if err := c.out.Flush(); err != nil {
		return err
	}
	return c.receive(chunks)
}

// receive reads a message, has it stored and replies.
func (c *conn) receive(r io.Reader) error {
	raw, err := c.read(r)
	switch {
	case err == errGivenUp:
		c.reset()
		return nil
	case err != nil:
		return c.refuseMessage(r, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.storingTime(len(raw)))
	defer cancel()
	answers := capture.AnswersOne
	if c.lmtp {
		answers = capture.AnswersEach
	}
	results := c.server.capturer.CaptureMail(ctx, &capture.Mail{
		From: c.from, To: c.to, Helo: c.helo, Protocol: c.protocol(), Client: c.client, Raw: raw, At: time.Now(), Answers: answers,
	})
	c.lease.Release() // an answer may wait
	err = c.settle(results)
	c.reset()
	return err
}

// storingRate is what a slow disk writes per second, and maxStoring bounds the extra time for a message. Clients wait
// ten minutes for the reply (RFC 5321, section 4.5.3.2.6); one that is told to retry sends the message again to all
// recipients, also those that have it.
const (
	storingRate = 8 << 20
	maxStoring  = 5 * time.Minute
)

// storingTime returns how long the capturer may take for a message of a size, which it stores once for each endpoint.
func (c *conn) storingTime(size int) time.Duration {
	seconds := float64(size) * float64(len(c.targets())) / storingRate
	return c.server.cfg.CaptureTimeout + min(time.Duration(seconds*float64(time.Second)), maxStoring)
}

// read reads a message into memory, at its pace.
func (c *conn) read(r io.Reader) ([]byte, error) {
	cfg := &c.server.cfg
	c.pace, c.paced = intake.NewPace(time.Now(), cfg.BodyGrace, cfg.MinBodyRate), true
	defer func() { c.paced = false }()
	return intake.Collect(r, -1, cfg.MaxMessageBytes, &c.lease, cfg.BudgetWait, &c.pace)
}

// discardFactor bounds how much of a refused message is read and discarded, in multiples of the largest message.
// Clients send all of a message before they read a reply, so most would miss an early one.
const discardFactor = 4

// refuseMessage replies to a message that was not read completely.
func (c *conn) refuseMessage(r io.Reader, err error) error {
	c.lease.Release()
	var answer reply
	switch {
	case err == intake.ErrTooLarge:
		answer = replyTooLarge
		ctx, cancel := context.WithTimeout(context.Background(), c.server.cfg.CaptureTimeout)
		defer cancel()
		for _, t := range c.targets() {
			c.server.capturer.Refuse(ctx, t)
		}
		c.refused(reasonTooLarge, "from", c.from, "to", c.to[0].Address)
	case hookglass.Is(err, hookglass.CodeUnavailable):
		answer = replyMemory
		c.refused(reasonBusy, "from", c.from, "to", c.to[0].Address)
	case isTimeout(err):
		c.refused("slow", "from", c.from, "to", c.to[0].Address)
		return reply{421, replySlow.enhanced, replySlow.text}
	default:
		return err
	}
	recipients := len(c.to)
	if chunks, ok := r.(*chunkReader); ok && !chunks.last {
		// Reply to the failed chunk, once even for LMTP. What follows belongs to no message (RFC 3030, section 2).
		chunks.last, recipients = true, 1
	}
	switch err := c.discard(r); {
	case err == nil:
		c.answer(answer, recipients)
	case err == errGivenUp:
	case isTimeout(err) || err == intake.ErrTooLarge:
		return answer // ends the connection, because the end of the message is unknown
	default:
		return err
	}
	c.reset()
	return nil
}

// discard reads and discards a message, up to a bound, at the pace of one for which others may have to wait.
func (c *conn) discard(r io.Reader) error {
	cfg := &c.server.cfg
	c.pace, c.paced = intake.NewPace(time.Now(), cfg.BodyGrace, cfg.MinBodyRate), true
	c.pace.Stood(0)
	defer func() { c.paced = false }()
	n, err := io.CopyN(io.Discard, r, discardFactor*cfg.MaxMessageBytes)
	if err == io.EOF {
		return nil
	}
	if err == nil && n > 0 {
		return intake.ErrTooLarge
	}
	return err
}

// targets returns the endpoints of the message, each once.
func (c *conn) targets() []capture.Target {
	var targets []capture.Target
	for _, r := range c.to {
		if !slices.ContainsFunc(targets, func(t capture.Target) bool { return t.Endpoint.Num == r.Target.Endpoint.Num }) {
			targets = append(targets, r.Target)
		}
	}
	return targets
}

// answer sends one reply for the whole message, by LMTP once for each recipient.
func (c *conn) answer(r reply, recipients int) {
	if !c.lmtp {
		recipients = 1
	}
	for range recipients {
		c.say(r)
	}
}

// settle replies to a message that was given to the capturer. SMTP has one reply for all recipients: that of a script,
// which the capturer has chosen for all of them, or 250 if the mail is stored at every endpoint that still exists.
// Otherwise the sender is told to retry, and endpoints that have the mail will get it twice.
func (c *conn) settle(results []capture.Delivered) error {
	replies := make([]reply, len(results))
	var failed, gone *reply
	var scripted *hookglass.Reply
	events := map[string]struct{}{}
	first := -1
	for i, d := range results {
		if d.Err == nil {
			replies[i] = stored(d.Event, 1)
			events[string(d.Event)] = struct{}{}
			if first < 0 {
				first, scripted = i, d.Reply
			}
			continue
		}
		var reason string
		replies[i], reason = replyOf(d.Err)
		c.refused(reason, "from", c.from, "to", c.to[i].Address, "error", d.Err)
		if replies[i].code/100 == 5 {
			gone = &replies[i]
		} else {
			failed = &replies[i]
		}
	}
	if first >= 0 {
		c.errors, c.refusals, c.commands = 0, 0, 0
	}
	switch {
	case c.lmtp:
		return c.settleEach(results, replies)
	case failed != nil:
		c.say(*failed)
	case scripted != nil:
		return c.give(scripted)
	case first >= 0:
		c.say(stored(results[first].Event, len(events)))
	default:
		c.say(*gone)
	}
	return nil
}
