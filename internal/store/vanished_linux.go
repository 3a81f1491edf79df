package store

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// endUnacknowledged has the system bound how long it sends the same bytes again (tcp(7), TCP_USER_TIMEOUT). Where it
// cannot, the connection is as good as any other.
func endUnacknowledged(network, _ string, socket syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return socket.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
}
