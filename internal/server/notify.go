package server

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"time"
)

// notify tells the service manager that started this process about its state; see sd_notify(3). Without a manager it
// does nothing.
func notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	nc, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // a leading @ means an abstract socket, also in Go
	if err != nil {
		return // the manager will report the missing notification
	}
	defer nc.Close()
	_, _ = nc.Write([]byte(state))
}

// watchdog tells a service manager that the service still answers (WATCHDOG_USEC in sd_watchdog_enabled(3)), so that a
// frozen process is restarted. It checks the server's own health endpoint, which needs no database: an unavailable
// database is no reason to restart.
func (s *Server) watchdog(ctx context.Context) error {
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err != nil || micros <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return nil
	}
	every := time.Duration(micros) * time.Microsecond / 3
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if answering(reachable(s.Addr()), every) {
			notify("WATCHDOG=1")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// answering reports whether something takes connections at an address and does something with them, if only to close
// them: with as many as may be, a TLS listener has no other answer, and to restart a busy service would help nobody.
func answering(address string, within time.Duration) bool {
	nc, err := net.DialTimeout("tcp", address, within)
	if err != nil {
		return false
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(within))
	if _, err = nc.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")); err == nil {
		_, err = nc.Read(make([]byte, 1))
	}
	return !errors.Is(err, os.ErrDeadlineExceeded)
}
