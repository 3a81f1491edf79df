// Package neterr tells the errors of connections, pipes and addresses apart. Windows has numbers of its own for them,
// which package syscall does not compare with those of Unix.
package neterr

import (
	"errors"
	"slices"
	"syscall"
)

// Refused reports whether nothing listens where a connection was to go.
func Refused(err error) bool { return errors.Is(err, refused) }

// Closed reports whether the other end closed the connection while it was used.
func Closed(err error) bool {
	return errors.Is(err, reset) || errors.Is(err, brokenPipe)
}

// Unread reports whether the other end of a pipe is closed, so that nobody reads what is written into it.
func Unread(err error) bool {
	return slices.ContainsFunc(unread, func(n syscall.Errno) bool { return errors.Is(err, n) })
}

// InUse reports whether another socket listens at the address.
func InUse(err error) bool { return errors.Is(err, inUse) }

// NotOurs reports whether this machine has no such address.
func NotOurs(err error) bool { return errors.Is(err, notAvailable) }
