package ingest

import (
	"time"
)

// maxHeld bounds the senders that are kept waiting without an answer. Beyond the bound, connections are reset at once.
const maxHeld = 1024

// hold keeps a sender waiting without an answer for d, or until the front drains.
func (f *Front) hold(d time.Duration) {
	if d <= 0 {
		return
	}
	defer f.held.Add(-1)
	if f.held.Add(1) <= maxHeld {
		f.delay(d)
	}
}

// reset makes closing the connection a reset, so that it is not mistaken for an empty answer (RFC 9293, section
// 3.10.7.4).
func (c *conn) reset() {
	if tcp, ok := c.socket.(interface{ SetLinger(seconds int) error }); ok {
		tcp.SetLinger(0) // if this fails, the connection is closed normally
	}
}
