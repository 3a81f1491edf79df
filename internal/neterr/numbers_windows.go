package neterr

import "golang.org/x/sys/windows"

const (
	refused      = windows.WSAECONNREFUSED
	reset        = windows.WSAECONNRESET
	brokenPipe   = windows.WSAECONNABORTED // what a write gets after the other end has closed
	inUse        = windows.WSAEADDRINUSE
	notAvailable = windows.WSAEADDRNOTAVAIL
)
