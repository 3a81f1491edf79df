package smtpd

import (
	"bufio"
	"errors"
	"time"

	"hookglass"
	"hookglass/internal/capture"
)

// errReset ends a connection whose client gets no answer from a script.
var errReset = errors.New("the connection is reset")

// codeClosing is the code after which a server closes the connection (RFC 5321, section 3.8).
const codeClosing = 421

// give sends the answer of a script after its delay. An error ends the connection.
func (c *conn) give(r *hookglass.Reply) error {
	if err := c.delay(r.Delay); err != nil {
		return err
	}
	if r.Unanswered() {
		return errReset
	}
	said := reply{code: r.Status, text: string(r.Body)}
	if r.Status == codeClosing {
		return said
	}
	c.say(said)
	return nil
}

// settleEach answers a message for each recipient. All wait once, for the longest delay. After a recipient without an
// answer, none gets one.
func (c *conn) settleEach(results []capture.Delivered, replies []reply) error {
	var longest time.Duration
	closing, unanswered := false, len(results)
	for i, d := range results {
		if d.Reply == nil {
			continue
		}
		longest = max(longest, d.Reply.Delay)
		if d.Reply.Unanswered() {
			unanswered = i
			break
		}
		replies[i] = reply{code: d.Reply.Status, text: string(d.Reply.Body)}
		closing = closing || d.Reply.Status == codeClosing
	}
	if err := c.delay(longest); err != nil {
		return err
	}
	for _, r := range replies[:unanswered] {
		c.say(r)
	}
	switch {
	case unanswered < len(results):
		return errReset
	case closing:
		return errEnd
	}
	return nil
}

// delay waits before an answer, at most until the server stops or the client is gone. Earlier answers are sent first.
// At most half of the connections may wait at a time, so that scripts leave room for others; any further one does not
// wait.
func (c *conn) delay(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	defer c.server.delayed.Add(-1)
	if 2*c.server.delayed.Add(1) > int64(c.server.cfg.MaxConns) {
		return nil
	}
	if err := c.out.Flush(); err != nil {
		return err
	}
	until := time.Now().Add(d)
	if c.watch(until) {
		return nil
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.server.drain:
	}
	return nil
}

// watch reads ahead until a time, and reports whether the wait for it is over: it has come, the server stops, or the
// client sends no more. What a pipelining client sent stays in the buffer and is served as always, also that of a
// client that is gone: it may have closed its side alone. Once the buffer is full, nothing more is heard of the client.
func (c *conn) watch(until time.Time) (over bool) {
	c.mu.Lock()
	if c.nudged {
		c.mu.Unlock()
		return true
	}
	c.waiting = true
	c.nc.SetReadDeadline(until)
	c.mu.Unlock()
	var err error
	for err == nil {
		_, err = c.in.Peek(c.in.Buffered() + 1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = false
	return err != bufio.ErrBufferFull
}
