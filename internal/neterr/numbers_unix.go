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
