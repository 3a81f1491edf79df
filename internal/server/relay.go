package server

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"os"
	"strconv"
	"strings"

	"hookglass/internal/alert"
	"hookglass/internal/outbound"
)

// relay validates the flags of the mail relay; nil means none.
func (c Config) relay() (*alert.Relay, error) {
	if c.SMTPRelay == "" {
		if c.SMTPRelayUser != "" || c.SMTPRelayPasswordFile != "" {
			return nil, errors.New("--smtp-relay: is missing, while a user or password for it is set")
		}
		return nil, nil
	}
	host, digits, err := net.SplitHostPort(c.SMTPRelay)
	port, perr := strconv.ParseUint(digits, 10, 16)
	if err != nil || perr != nil || host == "" || port == 0 {
		// Do not quote the value: it may be the URL of a relay with its password.
		return nil, errors.New("--smtp-relay: is not host:port; a user and a password for it have flags of their own")
	}
	r := &alert.Relay{Host: host, Port: int(port), User: c.SMTPRelayUser, Password: os.Getenv("HOOKGLASS_SMTP_RELAY_PASSWORD"), From: cmp.Or(c.MailFrom, "hookglass@"+c.MailDomain)}
	if a, err := mail.ParseAddress(r.From); err != nil || a.Address != r.From && c.MailFrom == "" {
		return nil, fmt.Errorf("--mail-from: %q is not a mail address", r.From)
	}
	if c.SMTPRelayPasswordFile != "" {
		text, err := os.ReadFile(c.SMTPRelayPasswordFile)
		if err != nil {
			return nil, errors.New("--smtp-relay-password-file: cannot be read")
		}
		r.Password = strings.TrimRight(string(text), "\r\n")
	}
	if (r.User == "") != (r.Password == "") {
		return nil, errors.New("--smtp-relay-user: goes with a password, in --smtp-relay-password-file or HOOKGLASS_SMTP_RELAY_PASSWORD")
	}
	// The operator has named this host, so it is allowed wherever it is, except for what is always blocked.
	r.Dial = outbound.New(outbound.Config{Allow: outbound.Everywhere(uint16(port), uint16(port))}).DialContext
	return r, nil
}

// mailer returns the mailer for notification channels, or nil.
func (c *checked) mailer() *alert.Mailer {
	if c.mailRelay == nil {
		return nil
	}
	return alert.NewMailer(*c.mailRelay)
}
