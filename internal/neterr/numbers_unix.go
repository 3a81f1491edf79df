//go:build unix

package neterr

import "syscall"

const (
	refused      = syscall.ECONNREFUSED
	reset        = syscall.ECONNRESET
	brokenPipe   = syscall.EPIPE
	inUse        = syscall.EADDRINUSE
	notAvailable = syscall.EADDRNOTAVAIL
)

// unread are the errors of writing into a pipe that nobody reads.
var unread = []syscall.Errno{syscall.EPIPE}
