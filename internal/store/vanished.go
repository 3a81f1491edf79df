package store

import (
	"net"
	"time"
)

const (
	// unacknowledged is how long what was sent to the server may be on its way. It is longer than a statement may take
	// (queryTimeout): what a server does not read meanwhile counts as well.
	unacknowledged = 30 * time.Second
	// A connection on which nothing is on its way is asked for after silence, then again and again; the server asks
	// for us in the same way, see setUp.
	silence, silenceAgain, silenceTimes = 8 * time.Second, 4 * time.Second, 3
)

// dialer connects to the server in such a way that the system ends a connection whose other end has vanished without a
// word: its machine is gone, or what stands between forgot it. The queue asks for jobs without a deadline of its own,
// and would wait for an answer for a quarter of an hour.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: silenceAgain, Count: silenceTimes},
		Control:         endUnacknowledged,
	}
}
