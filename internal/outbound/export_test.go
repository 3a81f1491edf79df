package outbound

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/netip"
	"time"
)

// OnConnect puts itself in place of the system's connect. Until it returns nothing has been asked of the network; what
// it returns is used in place of the connection.
func (c *Client) OnConnect(f func(ctx context.Context, to netip.AddrPort) (net.Conn, error)) {
	c.connect = func(ctx context.Context, _ *net.Dialer, to netip.AddrPort) (net.Conn, error) { return f(ctx, to) }
}

// InFlight returns how many turns are taken and how many keys are known.
func (c *Client) InFlight() (taken, keys int) {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	return c.turns.taken, len(c.turns.keys)
}

// Permits is the judgement of one address.
func (c *Client) Permits(to netip.AddrPort) bool { return c.permits(to, false) }

// Attempt connects to an address that no one has judged before.
func (c *Client) Attempt(ctx context.Context, to netip.AddrPort) error {
	conn, err := c.attempt(ctx, to, 1, false)
	if err == nil {
		conn.Close()
	}
	return err
}

// ReadAnswer reads an answer from its bytes.
func ReadAnswer(wire []byte, method string, maxBody int64) (*Response, error) {
	a := answer{in: bufio.NewReaderSize(bytes.NewReader(wire), 4<<10), lines: maxHeadLines, bytes: maxHeadBytes}
	return a.read(method, maxBody)
}

// Age makes the idle connections older.
func (c *Client) Age(by time.Duration) {
	c.kept.mu.Lock()
	defer c.kept.mu.Unlock()
	for _, lines := range c.kept.lines {
		for _, l := range lines {
			l.since = l.since.Add(-by)
		}
	}
}
