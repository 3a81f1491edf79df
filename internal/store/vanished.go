package store

import (
	"net"
	"time"
)

const (
	// unacknowledged is how long sent data may stay unacknowledged. It exceeds queryTimeout, because data that a busy
	// server does not read counts as well.
	unacknowledged = 30 * time.Second
	// An idle connection is probed after silence, then at intervals of silenceAgain; the server probes us likewise, see
	// setUp.
	silence, silenceAgain, silenceTimes = 8 * time.Second, 4 * time.Second, 3
)

// dialer returns a dialer whose connections the system ends if their other end vanishes silently, because its machine
// is gone or a gateway forgot the connection. The job queue polls without a deadline and would otherwise wait for a
// quarter of an hour.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: silenceAgain, Count: silenceTimes},
		Control:         endUnacknowledged,
	}
}
