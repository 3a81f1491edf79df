package ingest

import "hookglass"

// ParsedHead is a head as the fuzz tests see it.
type ParsedHead struct {
	Method, Target, Proto, Host string
	Headers                     hookglass.Headers
	Length                      int64
	Chunked, Close              bool
}

// ParseHead finds and reads the head that b starts with, and returns its length; 0 when b has no whole
// head, and a nil head when it is refused.
func ParseHead(b []byte, maxHeaders int) (*ParsedHead, int) {
	n, _ := endOfHead(b, 0)
	if n == 0 {
		return nil, 0
	}
	var h head
	if h.parse(string(b[:n]), maxHeaders) != nil {
		return nil, n
	}
	return &ParsedHead{h.method, h.target, h.proto, h.host, h.headers, h.length, h.chunked, h.close}, n
}

// DecodeChunks decodes a chunked body that is given in pieces of the given size, and returns how much of b
// belongs to it. It fails on a malformed body, and is not done with one that goes on.
func DecodeChunks(b []byte, piece int) (data, trailer []byte, n int, done, ok bool) {
	d := chunked{maxTrail: 1 << 20}
	for n < len(b) && !d.done() {
		k, isData, err := d.step(b[n:min(len(b), n+piece)])
		if err != nil {
			return nil, nil, 0, false, false
		}
		if isData {
			data = append(data, b[n:n+k]...)
		}
		n += k
	}
	return data, d.trailer, n, d.done(), true
}
