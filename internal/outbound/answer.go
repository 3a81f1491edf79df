package outbound

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"hookglass"
)

// Bounds of a response, besides the length of its body and the time.
const (
	maxHeadBytes = 64 << 10 // of all heads and trailers together; the same as for incoming requests
	maxHeadLines = 256      // their header lines, likewise
	maxInterim   = 8        // 1xx responses before the final one
	maxChunkLine = 256      // bytes of the line before a chunk
)

// answer reads one response from a connection that nothing else uses meanwhile (RFC 9112, sections 4 to 7). A response
// that exceeds a bound or is not HTTP fails with a *Failure, a broken connection with its own error.
type answer struct {
	in    *bufio.Reader
	bytes int // left for heads
	lines int // left for heads

	delimited bool // set by read: the response said where its body ends
}

func (a *answer) read(method string, maxBody int64) (*Response, error) {
	for range maxInterim + 1 {
		r, err := a.head()
		if err != nil {
			return nil, err
		}
		if r.Status == 101 {
			return nil, failed(CodeProtocolError, "The target switched to another protocol, which nobody asked for.")
		}
		if r.Status >= 200 {
			return r, a.body(r, method, maxBody)
		}
	}
	return nil, failed(CodeProtocolError, "The target sent one interim answer after another.")
}

// tlsAlert is how a port that speaks TLS begins its answer to what is no TLS: the type and major version of an alert
// (RFC 8446, section 5.1).
const tlsAlert = "\x15\x03"

// head reads a status line and the header fields after it.
func (a *answer) head() (*Response, error) {
	// Refuse at once what does not begin like HTTP: its first line may never end.
	if start, err := a.in.Peek(len("HTTP/1.")); strings.HasPrefix(string(start), tlsAlert) {
		return nil, failed(CodeProtocolError, "The target speaks TLS: its URL must begin with https://.")
	} else if string(start) != "HTTP/1."[:len(start)] {
		return nil, failed(CodeProtocolError, "The target did not answer with HTTP/1.1.")
	} else if err != nil {
		return nil, err
	}
	line, err := a.line()
	if err != nil {
		return nil, err
	}
	proto, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if len(proto) != len("HTTP/1.1") || !isDigit(proto[len(proto)-1]) || err != nil || len(code) != 3 || status < 100 {
		return nil, failed(CodeProtocolError, "The target answered with a malformed status line.")
	}
	r := &Response{Proto: proto, Status: status}
	r.Headers, err = a.fields()
	return r, err
}

// fields reads field lines up to the empty one. It unfolds a folded line with a space (RFC 9112, section 5.2).
func (a *answer) fields() (hookglass.Headers, error) {
	var h hookglass.Headers
	for {
		line, err := a.line()
		if err != nil || line == "" {
			return h, err
		}
		if a.lines--; a.lines < 0 {
			return nil, failed(CodeResponseTooLarge, "The target answered with too many header lines.")
		}
		if line[0] == ' ' || line[0] == '\t' {
			if len(h) == 0 {
				return nil, errHeaderLine()
			}
			last := &h[len(h)-1]
			if last.Value = strings.Trim(last.Value+" "+strings.Trim(line, " \t"), " \t"); !hookglass.IsFieldValue(last.Value) {
				return nil, errHeaderLine()
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !hookglass.IsToken(name) || !hookglass.IsFieldValue(value) {
			return nil, errHeaderLine()
		}
		h = append(h, hookglass.Header{Name: name, Value: strings.Trim(value, " \t")})
	}
}

func errHeaderLine() *Failure {
	return failed(CodeProtocolError, "The target answered with a malformed header line.")
}

// line reads one line of a head without its line end, which may be LF alone.
func (a *answer) line() (string, error) {
	var line []byte
	for {
		part, err := a.in.ReadSlice('\n')
		if a.bytes -= len(part); a.bytes < 0 {
			return "", failed(CodeResponseTooLarge, "The target answered with headers that are too long.")
		}
		if err == nil && line == nil {
			return string(trimEnd(part)), nil
		}
		line = append(line, part...)
		if err == nil {
			return string(trimEnd(line)), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
}

func trimEnd(line []byte) []byte {
	line = line[:len(line)-1]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

// body reads the content, up to max bytes of it.
func (a *answer) body(r *Response, method string, max int64) error {
	if method == "HEAD" || r.Status == 204 || r.Status == 304 {
		a.delimited = true
		return nil
	}
	length := int64(-1)
	chunked := false
	for _, f := range r.Headers {
		switch {
		case strings.EqualFold(f.Name, "Transfer-Encoding"):
			if chunked || !strings.EqualFold(f.Value, "chunked") {
				return failed(CodeProtocolError, "The target answered with a transfer encoding that nobody asked for.")
			}
			chunked = true
		case strings.EqualFold(f.Name, "Content-Length"):
			for v := range strings.SplitSeq(f.Value, ",") {
				v = strings.Trim(v, " \t")
				n, err := strconv.ParseInt(v, 10, 64)
				if err != nil || !isDigit(v[0]) || length >= 0 && n != length {
					return failed(CodeProtocolError, "The target answered with a malformed or contradictory length.")
				}
				length = n
			}
		}
	}
	a.delimited = chunked != (length >= 0) // with both, different readers see different ends
	var err error
	switch {
	case chunked: // overrides a Content-Length (RFC 9112, section 6.3)
		err = a.chunks(r, max)
	case length >= 0:
		r.Truncated = length > max
		want := min(length, max)
		r.Body = make([]byte, 0, min(want, 64<<10))
		err = a.content(r, want, want)
	default:
		if err = a.content(r, max, max); err == nil {
			_, err = a.in.ReadByte()
			r.Truncated = err == nil
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	return err
}

// chunks reads a chunked body and discards its trailers (RFC 9112, section 7.1).
func (a *answer) chunks(r *Response, max int64) error {
	for {
		line, err := a.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) || err == nil && len(line) > maxChunkLine {
			return errChunk()
		} else if err != nil {
			return err
		}
		digits, _, _ := strings.Cut(string(trimEnd(line)), ";")
		digits = strings.Trim(digits, " \t")
		size, err := strconv.ParseInt(digits, 16, 64)
		if err != nil || !isHexDigit(digits[0]) {
			return errChunk()
		}
		if size == 0 {
			_, err = a.fields()
			return err
		}
		room := max - int64(len(r.Body))
		if err := a.content(r, min(size, room), room); err != nil {
			return err
		}
		if size > room {
			r.Truncated = true
			return nil
		}
		if end, err := a.in.ReadSlice('\n'); errors.Is(err, bufio.ErrBufferFull) || err == nil && len(trimEnd(end)) > 0 {
			return errChunk()
		} else if err != nil {
			return err
		}
	}
}

func errChunk() *Failure {
	return failed(CodeProtocolError, "The target answered with a malformed chunk.")
}

// content appends n bytes to the body, which may grow by room bytes in all. It allocates as bytes arrive, not as many
// as are announced.
func (a *answer) content(r *Response, n, room int64) error {
	for n > 0 {
		if len(r.Body) == cap(r.Body) {
			r.Body = slices.Grow(r.Body, int(min(room, max(4<<10, int64(cap(r.Body))))))
		}
		free := r.Body[len(r.Body):cap(r.Body)]
		m, err := a.in.Read(free[:min(int64(len(free)), n)])
		r.Body = r.Body[:len(r.Body)+m]
		room -= int64(m)
		if n -= int64(m); n > 0 && err != nil {
			return err
		}
	}
	return nil
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isHexDigit(b byte) bool { return isDigit(b) || 'a' <= b|0x20 && b|0x20 <= 'f' }
