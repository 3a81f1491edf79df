package smtpd

import (
	"bufio"
	"bytes"
	"io"
)

// dataReader reads the message that follows DATA. It ends at CR LF . CR LF and nothing else, and a dot that was added
// to a line that begins with one is removed (RFC 5321, section 4.5.2). Every other byte is passed on. A lone CR or LF
// ends no line, so it can neither end the message nor hide a dot.
type dataReader struct {
	r     *bufio.Reader
	state dataState
}

type dataState int

const (
	lineStart dataState = iota // after CR LF, including that of DATA itself
	inLine
	afterCR    // in a line
	afterDot   // a dot at the start of a line, not passed on yet
	afterDotCR // that dot and a CR, not passed on yet
	atEnd
)

// Read implements io.Reader. A connection that ends before the message does is io.ErrUnexpectedEOF.
func (d *dataReader) Read(p []byte) (n int, err error) {
	if d.state == atEnd {
		return 0, io.EOF
	}
	if _, err := d.r.Peek(1); err != nil {
		return 0, cutShort(err)
	}
	in, _ := d.r.Peek(d.r.Buffered())
	used := 0
	for used < len(in) && n < len(p) && d.state != atEnd {
		if d.state == inLine {
			// Nothing special happens before the next CR.
			run := in[used:min(len(in), used+len(p)-n)]
			if i := bytes.IndexByte(run, '\r'); i >= 0 {
				run = run[:i+1]
				d.state = afterCR
			}
			n += copy(p[n:], run)
			used += len(run)
			continue
		}
		out, taken := d.step(in[used])
		if out >= 0 {
			p[n] = byte(out)
			n++
		}
		if taken {
			used++
		}
	}
	_, _ = d.r.Discard(used)
	if d.state == atEnd && n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// step processes one byte. It returns the next byte of the message, -1 for none, and whether the byte was consumed.
func (d *dataReader) step(b byte) (out int, taken bool) {
	switch {
	case d.state == lineStart && b == '.':
		d.state = afterDot
		return -1, true
	case d.state == afterDot && b == '\r':
		d.state = afterDotCR
		return -1, true
	case d.state == afterDotCR && b == '\n':
		d.state = atEnd
		return -1, true
	case d.state == afterDotCR:
		d.state = afterCR // the CR ended no line, so it belongs to the message
		return '\r', false
	case d.state == afterCR && b == '\n':
		d.state = lineStart
	case b == '\r':
		d.state = afterCR
	default:
		d.state = inLine
	}
	return int(b), true
}

func cutShort(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
