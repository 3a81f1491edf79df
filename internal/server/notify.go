package server

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"
)

// notify tells the service manager that started this process about its state; see sd_notify(3). Without one it does
// nothing.
func notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	nc, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // a leading @ is an abstract socket, as Go writes it too
	if err != nil {
		return // whoever waits for it will say so
	}
	defer nc.Close()
	_, _ = nc.Write([]byte(state))
}

// watchdog tells a service manager that wants to know that the service still answers (WATCHDOG_USEC in
// sd_watchdog_enabled(3)): a process that is there but frozen is restarted. It asks the server itself for its
// health, which needs no database: one that is away is no reason to be restarted.
func (s *Server) watchdog(ctx context.Context) error {
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err != nil || micros <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return nil
	}
	every := time.Duration(micros) * time.Microsecond / 3
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if s.answers(every) {
			notify("WATCHDOG=1")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// answers reports whether the listener takes a connection and something reads from it.
func (s *Server) answers(within time.Duration) bool {
	nc, err := net.DialTimeout("tcp", reachable(s.listener.Addr()), within)
	if err != nil {
		return false
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(within))
	if _, err := nc.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")); err != nil {
		return false
	}
	n, _ := nc.Read(make([]byte, 1)) // under TLS the answer is that this is not TLS
	return n == 1
}
