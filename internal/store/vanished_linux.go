package store

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// endUnacknowledged limits how long the system retransmits data (tcp(7), TCP_USER_TIMEOUT). If that fails, the
// connection works without it.
func endUnacknowledged(network, _ string, socket syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return socket.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
}
