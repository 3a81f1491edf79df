package store_test

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hookglass/internal/store"
)

// A server whose machine vanishes says nothing, and what waits for its answer without a deadline would do so for as
// long as the system sends again: 15 minutes by default, in which a node fetches no jobs.
func TestSystemEndsConnectionsWhoseServerVanished(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := store.Dial(t.Context(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	socket, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(level, name int) (value int) {
		t.Helper()
		var failed error
		if err := socket.Control(func(fd uintptr) { value, failed = unix.GetsockoptInt(int(fd), level, name) }); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return value
	}
	if ms := option(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); ms <= 0 || ms > 30_000 {
		t.Errorf("what was sent may be unacknowledged for %d ms; want 30 s at most", ms)
	}
	idle, again, times := option(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), option(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL), option(unix.IPPROTO_TCP, unix.TCP_KEEPCNT)
	if option(unix.SOL_SOCKET, unix.SO_KEEPALIVE) == 0 || idle+again*times > 30 {
		t.Errorf("a server that is waited for is asked after %d s, %d times each %d s; want it known to be gone within 30 s", idle, times, again)
	}
}

// A pool asks each session that was not used for a second, one after the other: of many that a firewall forgot, the
// last would be found out only after the patience of as many callers.
func TestUnusedSessionsAreAskedBriefly(t *testing.T) {
	if asked, err := store.AskedFor(t.Context()); err != nil || asked <= 0 || asked > time.Second {
		t.Errorf("a session may take %v to answer, %v; want a second at most", asked, err)
	}
}
