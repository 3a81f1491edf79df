package neterr

import (
	"syscall"

	"golang.org/x/sys/windows"
)

const (
	refused      = windows.WSAECONNREFUSED
	reset        = windows.WSAECONNRESET
	brokenPipe   = windows.WSAECONNABORTED // what a write gets after the other end has closed
	inUse        = windows.WSAEADDRINUSE
	notAvailable = windows.WSAEADDRNOTAVAIL
)

// unread are the errors of writing into a pipe that nobody reads.
var unread = []syscall.Errno{windows.ERROR_NO_DATA, windows.ERROR_BROKEN_PIPE, windows.ERROR_PIPE_NOT_CONNECTED}
