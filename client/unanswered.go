package client

import (
	"errors"
	"net"
	"net/url"

	"hookglass/internal/neterr"
)

// Unanswered is the error of a call that got no answer. It unwraps to the error of net/http.
type Unanswered struct{ cause *url.Error }

func unanswered(err error) error {
	var call *url.Error
	if !errors.As(err, &call) {
		return err
	}
	return &Unanswered{call}
}

// Error returns the call, as net/http does, with its [Unanswered.Reason].
func (u *Unanswered) Error() string { return u.cause.Op + " " + u.cause.URL + ": " + u.Reason() }

// Unwrap returns the error of net/http.
func (u *Unanswered) Unwrap() error { return u.cause }

// Server is the scheme and host that were called.
func (u *Unanswered) Server() string {
	address, err := url.Parse(u.cause.URL)
	if err != nil {
		return u.cause.URL
	}
	return address.Scheme + "://" + address.Host
}

// Repeatable reports whether repeating the call is safe: it changes nothing, or the connection was refused.
func (u *Unanswered) Repeatable() bool {
	return u.cause.Op == "Get" || neterr.Refused(u.cause)
}

// Proxy reports whether it was a proxy that could not be reached.
func (u *Unanswered) Proxy() bool {
	var op *net.OpError
	return errors.As(u.cause, &op) && op.Op == "proxyconnect"
}

// Reason says why there was no answer, without the addresses of the connection, which differ with each attempt.
func (u *Unanswered) Reason() string { return reason(u.cause.Err) }

func reason(err error) string {
	var name *net.DNSError
	if errors.As(err, &name) {
		return "the name " + name.Name + " cannot be resolved: " + name.Err
	}
	for op := (*net.OpError)(nil); errors.As(err, &op) && op.Err != nil; {
		err = op.Err
	}
	return err.Error()
}
