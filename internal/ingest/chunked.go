package ingest

// chunked parses the chunked transfer coding (RFC 9112, section 7.1) of a body as its bytes arrive. It finds the data
// and the end of the body, and keeps the trailer section. Lines must end in CRLF: with a lone LF, two parsers could
// disagree about where the body ends.
type chunked struct {
	state    chunkState
	left     int64 // data bytes left in the chunk
	digits   int   // read of the size
	line     int   // bytes read of the size line
	overhead int64 // framing bytes, less the allowance for data
	trailer  []byte
	maxTrail int
}

type chunkState uint8

const (
	chunkSize chunkState = iota
	chunkBlank
	chunkExtension
	chunkSizeLF
	chunkData
	chunkDataCR
	chunkDataLF
	chunkTrailer
	chunkDone
)

const (
	maxChunkLine     = 4 << 10  // as net/http
	maxChunkOverhead = 16 << 10 // as net/http: in addition to 16 bytes per chunk and twice its data
)

// step consumes bytes from the front of b that are either all data or all framing, and returns how many. It consumes at
// least one, unless b is empty or the body is complete.
func (d *chunked) step(b []byte) (n int, data bool, err *refusal) {
	if d.state == chunkData {
		n = int(min(d.left, int64(len(b))))
		if d.left -= int64(n); d.left == 0 {
			d.state = chunkDataCR
		}
		return n, true, nil
	}
	for n < len(b) && d.state != chunkData && d.state != chunkDone {
		if err := d.framing(b[n]); err != nil {
			return n, false, err
		}
		n++
	}
	return n, false, nil
}

func (d *chunked) done() bool { return d.state == chunkDone }

func (d *chunked) framing(b byte) *refusal {
	switch d.state {
	case chunkSize:
		if digit, ok := hexDigit(b); ok {
			if d.digits++; d.digits > 15 {
				return errChunk
			}
			d.left = d.left<<4 | int64(digit)
			return d.counted()
		}
		if d.digits == 0 {
			return errChunk
		}
		return d.sizeEnds(b)
	case chunkBlank:
		return d.sizeEnds(b)
	case chunkExtension:
		switch b {
		case '\r':
			d.state = chunkSizeLF
		case '\n':
			return errChunk
		}
		return d.counted()
	case chunkSizeLF:
		if b != '\n' {
			return errChunk
		}
		d.overhead += int64(d.line) + 2 - 16 - 2*min(d.left, 1<<40)
		if d.overhead = max(d.overhead, 0); d.overhead > maxChunkOverhead {
			return errChunk
		}
		d.digits, d.line = 0, 0
		if d.state = chunkData; d.left == 0 {
			d.state = chunkTrailer
		}
	case chunkDataCR:
		if b != '\r' {
			return errChunk
		}
		d.state = chunkDataLF
	case chunkDataLF:
		if b != '\n' {
			return errChunk
		}
		d.state = chunkSize
	case chunkTrailer:
		return d.trailing(b)
	}
	return nil
}

// sizeEnds parses what follows the digits of a size: blanks, an extension, or the end of the line.
func (d *chunked) sizeEnds(b byte) *refusal {
	switch b {
	case '\r':
		d.state = chunkSizeLF
	case ';':
		d.state = chunkExtension
	case ' ', '\t':
		d.state = chunkBlank
	default:
		return errChunk
	}
	return d.counted()
}

func (d *chunked) counted() *refusal {
	if d.line++; d.line > maxChunkLine {
		return errChunk
	}
	return nil
}

// trailing collects the trailer section, including its empty line.
func (d *chunked) trailing(b byte) *refusal {
	d.trailer = append(d.trailer, b)
	n := len(d.trailer)
	if n > d.maxTrail {
		return errHeadersTooLarge
	}
	if b != '\n' {
		return nil
	}
	if n < 2 || d.trailer[n-2] != '\r' {
		return errChunk
	}
	if n == 2 || d.trailer[n-3] == '\n' {
		d.state = chunkDone
	}
	return nil
}

func hexDigit(b byte) (byte, bool) {
	switch {
	case b >= '0' && b <= '9':
		return b - '0', true
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10, true
	case b >= 'A' && b <= 'F':
		return b - 'A' + 10, true
	}
	return 0, false
}

var errChunk = malformed("The chunked body is malformed.")
