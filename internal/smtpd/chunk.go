package smtpd

import (
	"errors"
	"io"
	"strings"
	"time"
)

// errGivenUp says that the client abandoned a message between two chunks; the command that did so is pending.
var errGivenUp = errors.New("the message was given up")

// parseChunk reads the arguments of BDAT (RFC 3030, section 2).
func parseChunk(rest string) (size int64, last, ok bool) {
	digits, word, _ := strings.Cut(rest, " ")
	size, ok = parseSize(digits)
	last = strings.EqualFold(strings.TrimSpace(word), "LAST")
	return size, last, ok && (last || word == "")
}

// ampleChunk is the size from which a chunk does not count as a command: some servers send a large message in thousands
// of chunks of 8 KiB.
const ampleChunk = 1 << 10

// chunkReader reads a message that comes in chunks. It replies to each chunk but the last, and reads the next command.
type chunkReader struct {
	conn *conn
	left int64
	last bool
	// rest is how long the client may still pause between chunks in total: an incomplete message holds memory.
	rest time.Duration
}

// Read implements io.Reader. A connection that ends within a chunk or between two is io.ErrUnexpectedEOF.
func (r *chunkReader) Read(p []byte) (int, error) {
	for r.left == 0 {
		if r.last {
			return 0, io.EOF
		}
		r.conn.say(replyOK)
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	if r.conn.in.Buffered() == 0 { // about to block: the client may be waiting for the reply to the last chunk
		if err := r.conn.out.Flush(); err != nil {
			return 0, err
		}
	}
	n, err := r.conn.in.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, cutShort(err)
}

// next reads the command of the next chunk.
func (r *chunkReader) next() error {
	c := r.conn
	c.paced = false
	began := time.Now()
	defer func() {
		rested := min(time.Since(began), r.rest)
		r.rest -= rested
		c.pace.Rested(rested)
		c.paced = true
	}()
	for {
		line, err := c.readCommand()
		if err != nil {
			return cutShort(err)
		}
		verb, rest := splitCommand(line)
		size, last, ok := int64(0), false, false
		if verb == "BDAT" {
			size, last, ok = parseChunk(rest)
		}
		if size < ampleChunk {
			if c.commands++; c.commands > maxCommands {
				return replyCommands
			}
		}
		switch verb {
		case "BDAT":
			if r.left, r.last = size, last; !ok {
				return replySyntax
			}
			return nil
		case "NOOP":
			c.say(replyOK)
		case "RSET", "QUIT", "EHLO", "HELO", "LHLO":
			c.pending, c.hasPending = line, true
			return errGivenUp
		default:
			if err := c.fault(replyNested); err != nil {
				return err
			}
		}
	}
}
