package ingest

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropSYN drops packets that open a connection: those with SYN and without ACK in byte 13 of the TCP header (RFC 9293,
// section 3.1). For a filter on a TCP socket, the packet begins with that header.
var dropSYN = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 13},
	{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0x12},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x02, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff},
}

// lastCall makes the system ignore new connection requests, and reports whether it does. The client retries a second
// later and reaches another listener or is refused. Neither costs a request, unlike a connection that is established
// and then reset.
func lastCall(ln net.Listener) bool {
	socket, ok := ln.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	var failed error
	program := unix.SockFprog{Len: uint16(len(dropSYN)), Filter: &dropSYN[0]}
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
	})
	return err == nil && failed == nil
}
