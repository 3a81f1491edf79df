package ingest

import (
	"time"
)

// maxHeld bounds the senders that are left without an answer for a while. Whoever comes beyond it is not held: its
// connection is reset at once.
const maxHeld = 1024

// hold leaves a sender without an answer for as long as its reply asks, or until the front drains.
func (f *Front) hold(d time.Duration) {
	if d <= 0 {
		return
	}
	defer f.held.Add(-1)
	if f.held.Add(1) <= maxHeld {
		f.delay(d)
	}
}

// reset has the end of the connection be seen as broken, not as an answer that is empty (RFC 9293, section 3.10.7.4).
func (c *conn) reset() {
	if tcp, ok := c.socket.(interface{ SetLinger(seconds int) error }); ok {
		tcp.SetLinger(0) // where it cannot be, the connection is closed all the same
	}
}
